import json

from tests.small_grids import write_reviews


def test_the_list_names_every_table_and_reads_no_data(ice, tmp_path):
    result = ice("reproduce", "--list", "--out", tmp_path / "out")
    assert result.code == 0, result.out + result.err
    for label in ("fig:english_heatmap", "tab:ksweep", "tab:frontier_cot"):
        assert label in (result.out + result.err)
    assert not (tmp_path / "out").exists()


def test_one_table_is_run_printed_and_continued(ice, tmp_path):
    for name in ("french", "german"):
        write_reviews(tmp_path / f"{name}.jsonl", n=6)
    flags = ("reproduce", "tab:ksweep", "--out", tmp_path / "out")
    first = ice(*flags, "--models", "toy", "--n", 3, "--m", 4, "--data-dir", tmp_path)
    assert first.code == 0, first.out + first.err
    assert "Win rates by the share of units kept" in (first.out + first.err) and "rows/s" in (first.out + first.err)
    assert (tmp_path / "out" / "tables" / "tab-ksweep.pdf").is_file()
    again = ice(*flags)
    assert again.code == 0 and "rows/s" not in (again.out + again.err)
    shown = json.loads(ice(*flags, "--json").out)
    assert [item["state"] for item in shown["items"]] == ["done"]
    assert len(shown["values"]["tab:ksweep"]) == 20


def test_the_cost_is_printed_and_nothing_is_written(ice, tmp_path):
    write_reviews(tmp_path / "sst2.jsonl", n=6)
    result = ice("reproduce", "tab:operator_ablation", "--dry-run", "--data-dir", tmp_path, "--out", tmp_path / "out")
    assert result.code == 0 and "dollars" in (result.out + result.err) and "masks" in (result.out + result.err)
    assert not (tmp_path / "out").exists()
    result = ice("reproduce", "masks", "frontier", "--dry-run", "--data-dir", tmp_path, "--out", tmp_path / "out")
    lines = {line.split("  ")[0].strip(): line for line in (result.out + result.err).splitlines()}
    assert "–" in lines["frontier"] and "total of what is known" in lines


def test_statements_about_the_chosen_tables_alone_are_printed(ice, tmp_path):
    flags = ("reproduce", "tab:models", "tab:versions", "--models", "toy", "--out", tmp_path / "out")
    result = ice(*flags)
    assert result.code == 0 and "Statements" not in result.out + result.err
    write_reviews(tmp_path / "sst2.jsonl", n=6)
    result = ice("reproduce", "tab:operator_ablation", *flags[3:], "--data-dir", tmp_path, "--n", 3, "--m", 4)
    text = " ".join((result.out + result.err).split())
    assert "Masks lower the win rates" in text and "no data" not in text


def test_what_cannot_be_done_is_said_at_once(ice, tmp_path):
    out = ("--out", tmp_path / "out")
    for flags, message in (
        ((), "a table, a figure or 'all' is expected"),
        (("tab:nosuch",), "no table or figure 'tab:nosuch'"),
        (("all", "--protocol", "mine"), "no protocol 'mine'"),
        (("all", "--data-dir", tmp_path / "none"), "there is no folder"),
        (("all", "--models", "nosuch=toy"), "no experiment 'nosuch'"),
    ):
        result = ice("reproduce", *flags, *out)
        assert result.code == 2 and message in " ".join((result.out + result.err).split()), result.out + result.err
    assert not (tmp_path / "out").exists()


def test_a_run_that_fails_is_named_and_the_exit_code_is_1(ice, tmp_path):
    write_reviews(tmp_path / "french.jsonl", n=6)
    (tmp_path / "german.jsonl").write_text("not json\n")
    flags = ("--models", "toy", "--n", 3, "--m", 4, "--data-dir", tmp_path, "--out", tmp_path / "out")
    result = ice("reproduce", "tab:ksweep", *flags)
    assert result.code == 1 and "missing: toy on german" in " ".join((result.out + result.err).split())
    shown = ice("reproduce", "tab:ksweep", "--json", "--out", tmp_path / "out")
    assert shown.code == 1
    [item] = json.loads(shown.out)["items"]
    assert (item["state"], item["finished"], item["failed"]) == ("partly done", 1, 1)


def test_grids_and_prices_of_servers_are_shown(ice, tmp_path):
    row = {"id": "1", "question": "How many crates are there?", "answer": "#### 4"}
    (tmp_path / "gsm8k.jsonl").write_text(json.dumps(row) + "\n")
    write_reviews(tmp_path / "sst2.jsonl", n=1)
    flags = ("reproduce", "frontier", "--data-dir", tmp_path, "--n", 1, "--out", tmp_path / "out")
    url = ("--models", "openai:x", "--base-url", "http://127.0.0.1:9/v1")
    [cost] = json.loads(ice(*flags, *url, "--price-in", 1, "--price-out", 4, "--dry-run", "--json").out)["experiments"]
    assert cost["dollars"] == cost["price"] > 0 and cost["gpu_hours"] is None
    [item] = json.loads(ice(*flags, *url, "--list", "--json").out)["items"]
    assert item["experiments"] == ["frontier"] and item["state"] == "not begun"
    refused = ice(*flags, "--models", "openai:x")
    assert refused.code == 2 and "--base-url URL" in " ".join(refused.err.split())
