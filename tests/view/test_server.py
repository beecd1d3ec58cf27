"""Who may see the pages, and what is in them."""

import json
import os
import re
import shutil
import sys
import threading

import pytest
from tests.toy_runs import stamps_of
from tests.view.conftest import MARKUP, TEXT, TOKEN, asker, serving

from ice_eval.view import RunIndex


@pytest.fixture
def ids(runs):
    return {each.name: each.id for each in RunIndex(runs).entries()}


def test_the_token_in_the_address_sets_a_cookie_that_scripts_and_other_sites_do_not_get(ask, served):
    found = ask(path=f"/?token={TOKEN}", token=None)
    assert (found.status, found.headers["Location"]) == (303, "/")
    assert found.headers["Set-Cookie"] == f"ice-view-{served.port}={TOKEN}; HttpOnly; Path=/; SameSite=strict"


@pytest.mark.parametrize("path", ["/", "/?token=other", "/compare", "/run/x/", "/favicon.ico", "/run/x/try"])
@pytest.mark.parametrize("token", [None, "other", ""])
def test_without_the_token_everything_is_refused(ask, path, token):
    found = ask(path=path, token=token)
    assert found.status == 403 and "toy" not in found.text


def test_another_name_of_this_machine_is_refused(ask, served):
    assert ask(host=f"evil.example:{served.port}").status == 403
    assert ask(host="127.0.0.1").status == 403
    assert ask(host=f"localhost:{served.port}").status == 200


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1"])
def test_a_post_of_another_page_is_refused(ask, ids, origin):
    headers = {} if origin is None else {"Origin": origin}
    assert ask("POST", f"/run/{ids['first']}/try", body="{}", **headers).status == 403


def test_every_answer_has_the_headers_that_keep_others_out(ask):
    for found in (ask(), ask(token=None), ask(path="/nothing")):
        assert found.headers["Cache-Control"] == "no-store"
        assert "frame-ancestors 'none'" in found.headers["Content-Security-Policy"]
        assert found.headers["X-Content-Type-Options"] == "nosniff"
    policy = ask().headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe-eval" not in policy


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
def test_nothing_can_be_written(ask, served, method):
    assert ask(method, "/", Origin=served.origin).status == 405


@pytest.mark.parametrize("path", ["/run/../first/", "/run/first/", "/run/%2e%2e%2fetc/", "/compare?run=first&run=x"])
def test_paths_are_no_ids(ask, path):
    assert ask(path=path).status == 404


def test_the_index_lists_finished_runs_at_any_depth_and_names_the_others(ask, ids):
    found = ask().text
    assert set(ids) == {"first", "grid/runs/second", "<b>odd<b>"}
    assert all(f'href="/run/{run}/"' in found for run in ids.values())
    assert "<bdi>unfinished</bdi>: the run is not finished" in found
    assert "empty" not in found


def test_names_that_are_markup_stay_text(ask, ids):
    paths = ["/", f"/run/{ids['<b>odd<b>']}/", f"/run/{ids['<b>odd<b>']}/try"]
    paths.append(f"/compare?run={ids['first']}&run={ids['<b>odd<b>']}")
    for path in paths:
        found = ask(path=path)
        assert found.status == 200 and MARKUP not in found.text and "<b>odd" not in found.text


def test_a_comparison_needs_two_runs(ask, ids):
    found = ask(path=f"/compare?run={ids['first']}&run={ids['first']}")
    assert found.status == 400 and "Choose two runs" in found.text


def test_run_folders_stay_as_they_are(ask, ids, served, runs):
    before = stamps_of(runs)
    body = json.dumps({"fields": {"text": TEXT}, "units": [1, 3], "operator": "infill"})
    assert ask("POST", f"/run/{ids['first']}/try", body=body, Origin=served.origin).status == 200
    ask()
    ask(path=f"/run/{ids['first']}/")
    ask(path=f"/compare?run={ids['first']}&run={ids['grid/runs/second']}")
    assert stamps_of(runs) == before


@pytest.mark.parametrize(
    "body",
    ["", "[]", "{}", "null", '{"fields": [], "units": [], "operator": "delete"}', "[" * 100_000,
     '{"fields": {"text": 1}, "units": [], "operator": "delete"}',
     '{"fields": {"text": "\\ud800"}, "units": [], "operator": "delete"}',
     '{"fields": {"text": "a"}, "units": [true], "operator": "delete"}'],
)  # fmt: skip
def test_what_is_no_question_is_refused(ask, ids, served, body):
    assert ask("POST", f"/run/{ids['first']}/try", body=body, Origin=served.origin).status == 400


def test_other_fields_than_those_of_the_run_are_refused(ask, ids, served):
    body = json.dumps({"fields": {"other": TEXT}, "units": [], "operator": "delete"})
    found = ask("POST", f"/run/{ids['first']}/try", body=body, Origin=served.origin)
    assert json.loads(found.text) == {"error": "The fields of the text are not those of the run."}


def test_a_run_that_is_gone_is_a_sentence(ask, runs):
    shutil.copytree(runs / "first", runs / "vanished")
    ask()
    [run] = [each.id for each in RunIndex(runs).entries() if each.name == "vanished"]
    shutil.rmtree(runs / "vanished")
    found = ask(path=f"/run/{run}/")
    assert found.status == 409 and "manifest.json is gone." in found.text and "vanished" not in ask().text


def test_a_long_question_is_refused(ask, ids, served):
    assert ask("POST", f"/run/{ids['first']}/try", body="x" * 300_000, Origin=served.origin).status == 413


def test_a_report_is_rendered_and_not_taken_from_the_folder(ask, ids, runs):
    (runs / "first" / "report.html").write_text("<script>alert(1)</script>")
    found = ask(path=f"/run/{ids['first']}/").text
    assert "alert(1)" not in found and "Is the explanation faithful to the model?" in found
    assert re.search(r'<a href="/">All runs</a> · <a href="/run/\w+/try">What if …</a> · <bdi>first</bdi>', found)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_folders_whose_names_are_not_utf_8_are_shown(runs, tmp_path):
    root = tmp_path / os.fsdecode(b"r\xff")
    for name in ("first", os.fsdecode(b"bad\xff")):
        shutil.copytree(runs / "first", root / name)
    shutil.copytree(runs / "unfinished", root / os.fsdecode(b"no\xff"))
    (root / os.fsdecode(b"no\xff") / "manifest.json").write_text("{")
    with serving(root) as served:
        ask, ids = asker(served), [each.id for each in RunIndex(root).entries()]
        compared = ask(path=f"/compare?run={ids[0]}&run={ids[1]}")
        assert "r\ufffd</bdi>: 2 runs" in ask().text and "no\ufffd/manifest.json is damaged" in ask().text
        assert compared.status == 200 and "/bad\ufffd." in compared.text
        assert all(ask(path=f"/run/{run}/").status == 200 for run in ids)


def test_files_that_contradict_themselves_are_a_sentence_and_one_line_of_log(runs, tmp_path, caplog, capfd):
    for name in ("good", "bad", "operator"):
        shutil.copytree(runs / "first", tmp_path / name)
    for name, field, value in (("bad", "win_rate", None), ("operator", "operator", "unheard-of")):
        summary = json.loads((tmp_path / name / "summary.json").read_text())
        summary["configurations"][0][field] = value
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    with serving(tmp_path) as served:
        ask, ids = asker(served), {each.name: each.id for each in RunIndex(tmp_path).entries()}
        assert ask().status == 200 and "good" in ids
        caplog.clear()
        found = ask(path=f"/run/{ids['bad']}/")
        assert found.status == 500 and "<code>ice rescore</code> writes the summary again" in found.text
        assert "default-src 'none'" in found.headers["Content-Security-Policy"]
        assert ask(path=f"/run/{ids['good']}/").status == 200
        assert ask(path=f"/run/{ids['operator']}/").status in (200, 500)
    [line] = [each.getMessage() for each in caplog.records if ids["bad"] in each.getMessage()]
    assert "\n" not in line and line.startswith(f"/run/{ids['bad']}/: TypeError")
    assert "Traceback" not in capfd.readouterr().err


def test_the_index_does_not_wait_for_a_report(runs, monkeypatch):
    entered, go_on = threading.Event(), threading.Event()

    def slow(folders):
        entered.set()
        go_on.wait(30)
        raise OSError("enough")

    monkeypatch.setattr("ice_eval.view.server.page", slow)
    with serving(runs) as served:
        ask, [run, *_] = asker(served), [each.id for each in RunIndex(runs).entries()]
        report = threading.Thread(target=ask, kwargs={"path": f"/run/{run}/"})
        report.start()
        assert entered.wait(30)
        assert ask().status == 200 and not go_on.is_set()
        go_on.set()
        report.join(30)


def test_a_comparison_links_the_report_of_every_run(runs, tmp_path):
    for number in range(9):
        shutil.copytree(runs / "first", tmp_path / str(number))
    with serving(tmp_path) as served:
        query = "&".join(f"run={each.id}" for each in RunIndex(tmp_path).entries())
        found = asker(served)(path=f"/compare?{query}").text
    assert all(f">Report {letter}</a>" in found for letter in "ABCDEFGHI")


def test_served_pages_do_not_claim_to_be_files(ask, ids):
    paths = ["/", "/nothing", f"/run/{ids['first']}/", f"/run/{ids['first']}/try"]
    for path in [*paths, f"/compare?run={ids['first']}&run={ids['grid/runs/second']}"]:
        found = ask(path=path).text
        assert "on this machine alone" in found and "This file needs no network" not in found


def test_a_run_that_no_sentence_can_be_made_of_does_not_hide_the_others(runs, tmp_path, monkeypatch):
    for name in ("good", "bad"):
        shutil.copytree(runs / "first", tmp_path / name)
    (tmp_path / "bad" / "summary.json").write_text((runs / "first" / "summary.json").read_text().replace("delete", "x"))
    index = RunIndex(tmp_path)

    def strict(summary, manifest):
        operators = dict.fromkeys(manifest.config.operators, True)
        return all(operators[line.operator] for line in summary.configurations if line.operator != "all")

    monkeypatch.setattr("ice_eval.view.index.conclude", strict)
    assert [each.name for each in index.entries()] == ["good"]
    assert index.unreadable == [("bad", "its files disagree (KeyError: 'x'); `ice rescore` writes the summary again.")]
