"""Runs about cited answers in the terminal, in tables and on the page."""

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from tests import axe
from tests.cli.commands import called
from tests.report.test_colours import contrast

from ice_eval.api import evaluate
from ice_eval.report import ShownExample, difference_tables, failures, notes, summary_html, tables, words_of, write_html
from ice_eval.report.browser import BUDGET, COLUMNS, run_record
from ice_eval.report.citations import MEANINGS, headline, headlines, shown_answers
from ice_eval.report.colours import CLAIM_COLOURS, FILLS, INKS, OPERATOR_COLOURS
from ice_eval.report.page import page as page_content
from ice_eval.report.provenance import command
from ice_eval.results import differences, view_example
from ice_eval.results.records import CarriedLine
from ice_eval.results.view import passages_named, passages_of
from ice_eval.tasks import Records

SCRIPT = "<script>alert('{}')</script>"
IMAGE = '[1]<img src=x onerror="alert(1)">'
N_PASSAGES = 21


def passage(question, number):
    words = " ".join(f"q{question}p{number}w{place}" for place in range(6))
    return f"{words}. Then {words[::-1]}."


def answer(question):
    """One claim of each kind: cited and used, used but not cited, remembered, and one that cites nothing."""

    def copied(number):
        return passage(question, number).partition(".")[0]

    return {
        "id": f"{SCRIPT.format('id')}{question}",
        "question": f"What? {SCRIPT.format('question')}",
        "passages": [
            {"id": str(number), "text": passage(question, number) + (f" {SCRIPT.format('passage')}" * (number == 3))}
            for number in range(1, N_PASSAGES + 1)
        ],
        "claims": [
            {"text": f"{copied(3)} [3].", "cites": ["3"], "support": f"Complete {IMAGE}"},
            {"text": f"{copied(5)} [6].", "cites": ["6"]},
            {"text": "The capital of France is Paris [7].", "cites": ["7"]},
            {"text": f"{SCRIPT.format('claim')} {copied(8)} [8].", "cites": ["8"]},
        ],
        "answer": f"{copied(3)} [3]. Nobody cites {IMAGE} here. {copied(5)} [6]. The capital of France is Paris [7]. "
        f"{SCRIPT.format('claim')} {copied(8)} [8]. The end.",
    }


def run(out, **settings):
    settings = {"operators": ("delete", "blank"), "attributions": ("cited", "bm25"), "m": 20, **settings}
    rows = [answer(question) for question in range(3)]
    return evaluate("toy-reader", "citations", data=Records(rows), out=out, **settings)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return run(tmp_path_factory.mktemp("citations") / "run")


@pytest.fixture(scope="module")
def summary(found):
    return found.folder.summary()


@pytest.fixture(scope="module")
def content(summary):
    return summary.citations


@pytest.fixture(scope="module")
def written_page(found, tmp_path_factory):
    path = write_html([found.folder], tmp_path_factory.mktemp("page") / "page.html")
    return path, path.read_text(encoding="utf-8")


def words_by_number(content):
    return {claim.example_id.rpartition("#")[2]: claim.word for claim in content.claims}


def test_the_toy_run_has_the_words_that_these_tests_rest_on(content):
    assert words_by_number(content) == {
        "1": "faithful", "2": "uncited but used", "3": "parametric", "4": "faithful"
    }  # fmt: skip


class TestHeadline:
    def test_says_how_many_citations_carry_their_claim_and_how_many_need_none(self, content):
        limits = "[{:.0f}, {:.0f}]".format(*(100 * limit for limit in content.carried[0].carried_ci))
        assert headline(content) == (
            f"Where passages matter, 67 % of citations carry their claim {limits}; random passages of the same number: "
            "2 %. 25 % of claims are parametric: without any passage they are about as probable."
        )

    def test_speaks_of_another_attribution_where_citations_are_not_tested(self, content):
        others = tuple(line for line in content.carried if line.attribution != "cited")
        said = headline(replace(content, carried=others, words=(), claims=(), n_claims=0))
        assert "100 % of claims are carried by the top 20 % of passages by bm25 [" in said
        assert "parametric" not in said

    def test_says_that_no_claim_is_parametric(self, content):
        words = tuple(replace(line, n=0, share=0.0) for line in content.words)
        assert headline(replace(content, words=words)).endswith("2 %. No claim is parametric.")

    def test_leaves_the_control_to_the_last(self, content):
        random = replace(content.carried[-1], attribution="random", operator="delete")
        assert "cited" not in headline(replace(content, carried=(random,)))
        assert "of citations carry" in headline(replace(content, carried=(random, *content.carried)))

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"carried": ()}, "No passages were kept alone"),
            ({"n": 0, "carried": None, "carried_ci": None}, "Passages add next to nothing to any claim"),
        ],
    )
    def test_says_why_there_is_no_number(self, content, changes, said):
        empty = CarriedLine(**{**vars(content.carried[0]), **changes})
        lines = () if changes["carried"] == () else (empty,)
        assert headline(replace(content, carried=lines)).startswith(said)

    def test_names_the_run_where_there_are_several(self, summary):
        assert [line[:18] for line in headlines([summary, summary])] == ["Run 1: Where passa", "Run 2: Where passa"]
        assert headlines([replace(summary, citations=None)]) == []


class TestTablesAndNotes:
    def test_words_and_carried_claims_come_first(self, summary):
        first, second, *others = tables([summary])
        assert first.title == "Words of single claims" and first.header == ("word", "n", "share", "95 % CI")
        assert [row[:3] for row in first.rows] == [
            ("faithful", "6", "50.0 %"), ("uncited but used", "3", "25.0 %"), ("post-rationalised", "0", "0.0 %"),
            ("parametric", "3", "25.0 %"), ("undetermined", "0", "0.0 %"),
        ]  # fmt: skip
        assert [words[0] for words in first.words] == list(MEANINGS)
        assert second.title == "Carried claims"
        assert second.header == ("attribution", "operator", "k", "n", "carried", "95 % CI", "random")
        assert [row[:5] for row in second.rows] == [
            ("cited", "delete", "own", "9", "66.7 %"), ("cited", "blank", "own", "9", "66.7 %"),
            ("bm25", "delete", "0.2", "9", "100.0 %"), ("bm25", "blank", "0.2", "9", "100.0 %"),
        ]  # fmt: skip
        assert others[0].title == "Faithfulness"

    def test_notes_define_the_words_and_their_limits(self, summary):
        said = notes(summary)
        assert said[0] == "12 claims of 3 answers have a word, under delete."
        text = " ".join(said)
        assert all(f"{word}: {meaning}" in text for word, meaning in MEANINGS.items())
        assert "at least 19 other sets of passages" in text
        assert "Answers that another model wrote are scored, not written, by this one" in text
        assert "intervals treat each answer as one observation" in text
        assert not any("cited" in note for note in notes(replace(summary, citations=None)) if "Words." in note)

    def test_claims_that_were_not_tested_are_counted_with_their_reason(self, summary, content):
        claims = [replace(claim, word=None, reason="too long") for claim in content.claims[:2]]
        changed = replace(content, n_claims=10, claims=(*claims, *content.claims[2:]))
        assert "2 claims were not tested: too long." in notes(replace(summary, citations=changed))
        without = replace(content, n_claims=0, claims=(), words=(), skipped={"no room": 1})
        said = notes(replace(summary, citations=without))
        assert said[0].startswith("Claims have no words here") and said[1] == "1 claim was not tested: no room."
        assert not any(note.startswith(("Words.", "A single claim")) for note in said)

    def test_two_runs_are_compared(self, found):
        first, *_ = [table for table in difference_tables(differences(found.folder, [found.folder])) if table.rows]
        assert first.title == "Carried claims"
        assert first.rows[0][:4] == ("cited", "delete", "own", "9, 9")
        assert first.rows[0][4] == first.rows[0][7] == "66.7 %"

    def test_every_word_of_a_claim_and_the_operator_have_a_colour(self):
        assert set(CLAIM_COLOURS) == set(MEANINGS) and "blank" in OPERATOR_COLOURS
        assert all(contrast(FILLS[word], INKS[word]) >= 4.5 for word in CLAIM_COLOURS)


class TestGate:
    def test_a_claim_fails_for_its_word(self, summary):
        [line] = failures([summary], words_of(["uncited but used, post-rationalised"]))
        assert line.startswith("3 of 12 claims are uncited but used: <script>") and line.endswith("2#2")
        assert failures([summary], ["post-rationalised"]) == []
        [line] = failures([summary, summary], ["parametric"])[:1]
        assert line.startswith("run 1: 3 of 12 claims are parametric")

    def test_verdicts_on_attributions_fail_as_ever(self, summary):
        word = next(line.verdict.word for line in summary.configurations if line.operator == "delete")
        assert any(line.startswith("cited under delete") for line in failures([summary], [word]))

    def test_claims_count_only_for_the_citations(self, summary):
        assert failures([summary], ["uncited but used"], attributions=["bm25"]) == []
        assert failures([summary], ["uncited but used"], attributions=["cited"]) != []

    def test_words_of_claims_fail_where_no_claim_has_one(self, summary, content):
        [line] = failures([replace(summary, citations=None)], ["post-rationalised"])
        assert line.startswith("no run here is about cited answers, so none can exclude 'post-rationalised'")
        without = replace(summary, citations=replace(content, n_claims=0, claims=()))
        assert failures([without], ["post-rationalised"]) == ["claims: undetermined (no claim has a word)"]


class Claims(HTMLParser):
    """The claims of a page: id, word, text and card of each, in their order, and the text of each answer."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.claims, self.answers, self._open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag in ("div", "span"):
            self._open.append(given.get("class", ""))
        if given.get("class") == "claim":
            self.claims.append({"id": given["data-id"], "word": given["data-word"], "text": "", "chip": "", "card": ""})
        if given.get("class") == "running":
            self.answers.append("")

    def handle_endtag(self, tag):
        if tag in ("div", "span"):
            self._open.pop()

    def handle_data(self, data):
        if "running" not in self._open:
            return
        if "card" in self._open:
            self.claims[-1]["card"] += data
        elif self._open[-1] == "chip":
            self.claims[-1]["chip"] += data
        else:
            self.answers[-1] += data
            if self._open[-1] == "said-claim":
                self.claims[-1]["text"] += data


class TestPage:
    def test_every_claim_stands_once_in_its_answer_with_its_word(self, written_page, content):
        shown = Claims(written_page[1])
        assert [(claim["id"], claim["word"]) for claim in shown.claims] == [
            (claim.example_id, claim.word) for claim in content.claims
        ]
        assert all(claim["chip"] == claim["word"] for claim in shown.claims)
        rows = [answer(question) for question in range(3)]
        assert [text.strip("\n") for text in shown.answers] == [row["answer"] for row in rows]
        assert [claim["text"] for claim in shown.claims] == [each["text"] for row in rows for each in row["claims"]]

    def test_a_card_has_the_numbers_the_test_and_the_cited_passage(self, written_page, content):
        first, second, *_ = Claims(written_page[1]).claims
        words = " ".join(first["card"].replace("\xa0", " ").split())
        [claim, *_] = content.claims
        assert words.startswith(f"Claim {claim.example_id}: faithful. Its citations carry it and beat random passages")
        assert re.search(r"all passages ?−0\.22 ?−\d+\.\d\d ?closed book ?−\d\.\d\d ?−\d+\.\d\d ?cited alone", words)
        assert "win against 100 % of 20 random sets" in words and "Alone they preserve 100.0 %" in words
        assert f"Cites 3: {passage(0, 3)} {SCRIPT.format('passage')}" in words
        assert f"support: Complete {IMAGE}" in words
        assert "The best other set (passage 5) preserves 100.0 %" in second["card"].replace("\xa0", " ")

    def test_hostile_text_is_never_markup(self, written_page):
        text = written_page[1]
        shown = Claims(text)
        tags = {tag for tag, _ in shown.tags}
        assert not tags & {"img", "iframe", "link", "object"}
        assert not any(name.startswith("on") for _, attributes in shown.tags for name in attributes)
        for name in ("id", "question", "passage", "claim"):
            assert SCRIPT.format(name) not in text
            assert html.escape(SCRIPT.format(name)).replace("&#x27;", "&#39;") in text
        assert IMAGE not in text and "onerror=" in html.unescape(text)

    def test_the_section_opens_with_the_headline(self, written_page, content):
        text = html.unescape(written_page[1]).replace("\xa0", " ")
        section = text[text.index('<section id="citations"') :]
        assert re.search(r'<p class="said">(.*?)</p>', section)[1] == headline(content)
        assert "Does the model use what it cites?" in text and "answers are left out" not in text

    def test_only_some_answers_are_drawn_and_the_rest_is_counted(self, found, content, monkeypatch):
        assert [len(each.pieces) for each in shown_answers(found.folder, content, most=1)] == [9]
        monkeypatch.setattr("ice_eval.report.page.shown_answers", lambda *given: shown_answers(*given, most=2))
        [shown] = page_content([found.folder])["runs"]
        assert (len(shown["citations"]["answers"]), shown["citations"]["left_out"]) == (2, 1)

    def test_a_claim_that_is_not_in_its_text_is_not_lost(self, found, content, monkeypatch):
        rows = [replace(row, fields={**row.fields, "claim": "moved"}) for row in found.folder.inputs(0)[:1]]
        monkeypatch.setattr(type(found.folder), "inputs", lambda self, part: rows)
        [shown] = shown_answers(found.folder, content)
        assert [text for text, claim in shown.pieces if claim is not None] == ["moved"]

    def test_the_command_repeats_the_run(self, found, tmp_path):
        assert command(found.folder.manifest()) is None  # the answers came from Python
        manifest = found.folder.manifest()
        stored = replace(manifest, data=replace(manifest.data, origin=str(tmp_path / "answers.jsonl")))
        said = command(stored)
        assert "--task citations" in said and f"--data {tmp_path}" in said and "--operators delete,blank" in said
        assert not any(f"--{name}" in said for name in ("direction", "unit", "n-fills"))

    @pytest.mark.parametrize("width", [1440, 390])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_a_claim_opens_its_card_by_key_and_by_pointer(self, opened, written_page, width, scheme):
        page = opened(written_page[0].as_uri(), width=width, color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        claims = page.locator(".claim")
        assert claims.nth(0).locator(".card").is_hidden()
        claims.nth(0).focus()
        assert claims.nth(0).locator(".card").is_visible() and claims.nth(1).locator(".card").is_hidden()
        page.keyboard.press("Tab")
        if claims.nth(0).locator(".card").is_visible():  # it is long, so that the keys may scroll it
            page.keyboard.press("Tab")
        assert claims.nth(1).locator(".card").is_visible() and claims.nth(0).locator(".card").is_hidden()
        claims.nth(2).locator(".said-claim").hover()
        assert "parametric" in claims.nth(2).locator(".card").inner_text()
        assert claims.nth(2).locator(".card").is_visible()
        if width == 390:  # a sheet at the lower edge: it must not hide the claim
            box, card = (claims.nth(2).locator(name).bounding_box() for name in (".said-claim", ".card"))
            assert box["y"] + box["height"] <= card["y"]


class TestExamples:
    def test_scores_of_the_browser_are_log_probabilities(self, found, content):
        record = run_record(found.folder, budget=BUDGET)
        assert record["claims"] and len(record["examples"]) == 12
        example, [claim, *_] = record["examples"][0], content.claims
        assert (example["full"], example["empty"]) == (round(1000 * claim.score_full), round(1000 * claim.score_empty))
        places = {(each["attribution"], each["operator"], each["direction"]): index for index, each in
                  enumerate(record["configurations"])}  # fmt: skip
        cell = dict(zip(COLUMNS, example["cells"][places["cited", "delete", "sufficiency"]], strict=True))
        assert cell["score"] == round(1000 * claim.score_kept)
        [unit] = example["rationales"][cell["rationale"]]
        [cited] = [field for field in example["fields"] if unit in field["units"]]
        assert (cited["name"], "".join(cited["pieces"])) == ("passage 3", f"{passage(0, 3)} {SCRIPT.format('passage')}")
        assert len(example["nulls"][cell["null"]]) == 20 and max(example["nulls"][cell["null"]]) <= 0
        removed = dict(zip(COLUMNS, example["cells"][places["cited", "delete", "necessity"]], strict=True))
        assert removed["score"] == round(1000 * claim.score_removed) and removed["rationale"] == cell["rationale"]
        average = dict(zip(COLUMNS, example["cells"][places["cited", "all", "sufficiency"]], strict=True))
        assert average["score"] == cell["score"]  # both operators leave the same words

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_axe_finds_nothing(self, opened, written_page, scheme):
        assert axe.violations(opened(written_page[0].as_uri(), color_scheme=scheme, drawn=True)) == []

    def test_the_browser_shows_them_as_such(self, opened, written_page):
        page = opened(written_page[0].as_uri())
        detail = page.locator("#detail")
        assert detail.locator("h3").first.inner_text().startswith("Claim ")
        text = detail.inner_text()
        assert "log-probability per token, all passages" in text and "explained label" not in text
        assert "−0.22" in detail.locator(".facts").inner_text() and "%" not in detail.locator(".facts").inner_text()
        assert "Chosen passages alone: −0.22" in text
        assert "Log-probability per token across" in text and "letters are the chosen passages of methods" in text
        assert detail.locator("[data-method=cited] .kept").first.inner_text() == "[3]"
        assert detail.locator("#stack thead th").count() == detail.locator(".text .pick").count()
        page.locator(".text .pick").nth(1).click()
        assert re.search(r"^◆ Your own chosen passages: \[\d+\]", page.locator("#own").inner_text())
        assert page.locator("#own li").count() == page.locator("#nulls .strip").count() >= 1
        assert opened(page.url).locator("#own").inner_text() == page.locator("#own").inner_text()
        ticks = detail.locator("svg.null .tick").all_text_contents()
        assert ticks and all(re.fullmatch(r"−?\d\.\d\d", tick) for tick in ticks)
        assert page.locator("#count").inner_text() == "12 claims"
        assert page.locator("#list .start").nth(2).inner_text() == "The capital of France is Paris [7]."

    def test_ice_show_prints_a_claim(self, found, capsys, content):
        assert called("show", found.folder.path, "--example", content.claims[1].example_id) == 0
        out = capsys.readouterr().out
        assert "scores: mean log-probability of the claim's tokens" in out and "explained label" not in out
        assert "word: uncited but used (other passages carry it, and those that it cites do not)" in out
        assert "cites: 6\n" in out
        assert re.search(r"all passages +−0\.22 per token +−\d\.\d\d in sum", out)
        assert "The best other set (passage 5) preserves 100.0 %." in out
        assert re.search(r"cited under delete, sufficiency, k = own: win rate \d+ % of 20", out)
        assert re.search(r"^  -\d\.\d{3}  rationale:cited      passages: 6 alone$", out, re.MULTILINE)
        assert re.search(r"^  -\d\.\d{3}  rationale:cited      passages: 6 removed$", out, re.MULTILINE)

    def test_ice_show_gives_log_probabilities_as_json(self, found, capsys, content):
        assert called("show", found.folder.path, "--example", content.claims[0].example_id, "--json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["claim"]["word"] == "faithful"
        values = [row["log_probability_per_token"] for row in shown["rows"]]
        assert all(value <= 0 for value in values) and not any("probabilities" in row for row in shown["rows"])

    def test_notebooks_show_a_run_and_a_claim(self, found, content):
        run_html = summary_html(found.folder)
        assert "uncited but used" in run_html and "of citations carry their claim" in run_html
        shown = ShownExample(view_example(found.folder, content.claims[3].example_id))._repr_html_()
        assert "word: faithful" in shown and "<script>" not in shown

    def test_sentences_of_a_passage_are_named_by_their_numbers(self, tmp_path):
        done = run(tmp_path / "sentences", unit="sentence", attributions=("cited",), operators=("delete",), m=3)
        [row, *_] = done.folder.inputs(0)
        units = [unit for unit, span in enumerate(row.spans) if span.field == "passage 1"]
        assert len(units) == 2
        assert passages_named(row, units) == "1" and passages_named(row, []) == ""
        assert passages_of(row, units[1:])[0].name == "1 (sentence 2)"
        assert passages_named(row, [*units, units[-1] + 1]) == "1, 2 (sentence 1)"
        assert "of citations carry their claim" in headlines([done.folder.summary()])[0]
        assert done.report().is_file()


class TestCommands:
    @pytest.mark.parametrize("style", ["md", "csv", "latex", "jsonl"])
    def test_every_format_is_written(self, found, capsys, style):
        assert called("report", found.folder.path, "--format", style) == 0
        assert "uncited but used" in capsys.readouterr().out or style in ("csv", "jsonl")

    def test_the_terminal_begins_with_the_headline(self, found, capsys, content):
        assert called("report", found.folder.path) == 0
        assert capsys.readouterr().out.startswith(f"{headline(content)}\n\nWords of single claims\n")

    def test_the_gate_exits_with_one(self, found, capsys):
        assert called("report", found.folder.path, "--fail-if", "uncited but used") == 1
        assert "3 of 12 claims are uncited but used" in capsys.readouterr().err

    def test_runs_are_compared_and_scored_again(self, found, capsys):
        assert called("compare", found.folder.path, found.folder.path, "--full") == 0
        assert "Carried claims" in capsys.readouterr().out
        assert called("rescore", found.folder.path) == 0
        assert "Words of single claims" in capsys.readouterr().out
