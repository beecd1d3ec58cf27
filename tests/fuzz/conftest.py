def pytest_terminal_summary(terminalreporter):
    """Say how many cases were tried: every test of this folder records its own."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    counts = [value for each in reports for name, value in each.user_properties if name == "fuzz_cases"]
    if counts:
        terminalreporter.write_line(f"fuzzing: {sum(counts):,} cases in {len(counts)} tests")
