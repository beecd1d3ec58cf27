"""Seconds until `ice view` has opened a folder of many runs: the command, the first page, and the page again.

    python benchmarks/view.py --runs 200

The runs are copies of one run of the toy model, so that nothing is downloaded and no GPU is needed.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import ice_eval as ice


def folder_of_runs(root: Path, n: int) -> Path:
    first = root / "run-000"
    ice.evaluate("toy", "demo", out=first)
    for index in range(1, n):
        shutil.copytree(first, root / f"run-{index:03}")
    return root


def opened(root: Path) -> dict[str, float]:
    """Seconds of one start of the server, from the command on."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "ice_eval", "view", str(root), "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["url"]
            seconds = {"address": time.perf_counter() - started}
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
            for name, address in (("first page", url), ("page again", url.partition("?")[0])):
                before = time.perf_counter()
                assert b"</html>" in browser.open(address).read()
                seconds[name] = time.perf_counter() - before
        finally:
            server.send_signal(signal.SIGINT)
    assert server.returncode == 0
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = folder_of_runs(Path(folder), asked.runs)
        none = folder_of_runs(Path(folder, "..", Path(folder).name + "-one"), 1)
        for name, each in ((f"{asked.runs} runs", root), ("1 run", none)):
            found = [opened(each) for _ in range(asked.repeats)]
            best = {part: min(seconds[part] for seconds in found) for part in found[0]}
            print(f"{name}: " + ", ".join(f"{part} {seconds:.2f} s" for part, seconds in best.items()))
        shutil.rmtree(none)


if __name__ == "__main__":
    main()
