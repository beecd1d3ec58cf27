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
