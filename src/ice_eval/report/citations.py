"""Cited answers in reports: the headline, tables, notes, and answers with a word for every claim."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ice_eval.rationales import DYNAMIC
from ice_eval.records import PASSAGE_FIELD
from ice_eval.report.example import NOT_TESTED, claim_scores, claim_test, shortened
from ice_eval.results import InputRow, RunFolder, Summary
from ice_eval.results.citations import CARRIES, CITED, LEVEL
from ice_eval.results.records import CarriedLine, CitationSummary, ClaimLine, ClaimWord
from ice_eval.results.view import ANSWER, CLAIM, QUESTION, passages_of
from ice_eval.table import Column, Table, estimate, naming, table_of, whole

MOST_ANSWERS = 25
"""Answers of a run that the page draws."""
_LONGEST = 300
"""Characters of a passage that the page shows beside a claim."""
_FEWEST_SETS = math.ceil(1 / LEVEL) - 1
"""Other sets from which on the p-value of one claim can be small enough."""
MEANINGS: Mapping[ClaimWord, str] = {
    "faithful": "its citations carry it, and beat random passages in the claim's own test.",
    "uncited but used": "other passages carry it, and those that it cites do not.",
    "post-rationalised": "its citations do not carry it, are no better than random, and are not missed without them.",
    "parametric": "all passages together change its probability by less than a factor of two.",
    "undetermined": "none of these; often there are too few other sets of passages.",
}
_SCORES = (
    "Scores are mean log-probabilities of the tokens of a claim, behind the question, the passages and the answer up "
    f"to it. Passages carry a claim if, alone, they preserve {100 * CARRIES:g} % or more of what all passages add. "
    "Parametric claims are not counted there."
)
_ANSWERS = (
    "The model answered again for every set of passages, and a score is 1 if the reply states the claim, else 0. "
    "Claims that are not stated even with all passages are left out."
)
_WORDS = (
    "Words. " + " ".join(f"{word}: {meaning}" for word, meaning in MEANINGS.items()),
    f"A single claim is tested only where it has at least {_FEWEST_SETS} other sets of passages: with fewer, no "
    f"p-value is {LEVEL:g} or less. “uncited but used” is an estimate, not a test.",
)
_AUTHOR = (
    "Answers that another model wrote are scored, not written, by this one: the words say what this model uses, not "
    "what the author of the answer used."
)
_NO_WORDS = (
    f"Claims have no words here: these need the attribution `{CITED}` and the direction sufficiency, which keeps the "
    "cited passages alone."
)


def numbered(summaries: Sequence[Summary]) -> list[tuple[str, CitationSummary]]:
    """Return the summary of each run about cited answers, with the number of the run where there are several."""
    runs = [(str(i) if len(summaries) > 1 else "", summary.citations) for i, summary in enumerate(summaries, start=1)]
    return [(run, content) for run, content in runs if content is not None]


def headlines(summaries: Sequence[Summary]) -> list[str]:
    """Return the headline of each run about cited answers, with the number of the run where there are several."""
    return [(f"Run {run}: " if run else "") + headline(content) for run, content in numbered(summaries)]


def headline(content: CitationSummary) -> str:
    """Return in plain words how many citations carry their claim, and how many claims need no passage."""
    line = leading(content)
    if line is None:
        return "No passages were kept alone, so the run does not show which of them carry a claim."
    if line.carried is None and content.n_claims:
        said = "Passages add next to nothing to any claim, so that no citation can carry one."
    elif line.carried is None:
        said = "No claim could be evaluated."
    else:
        random = f"random passages of the same number: {whole(line.carried_random)}"
        limits = "" if line.carried_ci is None else f" [{', '.join(f'{100 * each:.0f}' for each in line.carried_ci)}]"
        said = f"Where passages matter, {whole(line.carried)} {_subject(line)}{limits}; {random}."
    for each in content.words:
        if each.word == "parametric":
            why = "without any passage they are about as probable"
            said += f" {whole(each.share)} of claims are parametric: {why}." if each.n else " No claim is parametric."
    return said


def leading(content: CitationSummary) -> CarriedLine | None:
    """Return the line of the headline: the citations under the first operator, or else the first other attribution."""
    lines = [line for line in content.carried if line.operator == content.operator]
    order = {CITED: 0, "random": 2}
    return min(lines, key=lambda line: order.get(line.attribution, 1), default=None)


def _subject(line: CarriedLine) -> str:
    if line.attribution == CITED:
        return "of citations carry their claim"
    top = "" if line.k is None or line.k == DYNAMIC else f"top {100 * line.k:g} % of passages by {line.attribution}"
    return f"of claims are carried by the {top or f'passages that {line.attribution} marks'}"


CARRIED = (*estimate("carried", "carried", "percent"), Column("carried_random", "random", "percent"))


def words_table(*summaries: Summary) -> Table:
    found = [(run, line) for run, content in numbered(summaries) for line in content.words]
    word = Column("word", "word", "text", word=lambda line: line.word)
    columns = (word, *naming("n"), *estimate("share", "share", "percent"))
    return table_of("Words of single claims", [line for _, line in found], columns, runs=[run for run, _ in found])


def citation_tables(*summaries: Summary) -> list[Table]:
    """Return all tables about cited answers that have a row; runs of other kinds have none."""
    found = [(run, line) for run, content in numbered(summaries) for line in content.carried if line.n]
    columns = (*naming("attribution", "operator", "k", "n"), *CARRIED)
    carried = table_of("Carried claims", [line for _, line in found], columns, runs=[run for run, _ in found])
    return [table for table in (words_table(*summaries), carried) if table.rows]


def citation_notes(*summaries: Summary) -> list[str]:
    """Return sentences about the cited answers of some runs, each once; runs of other kinds have none."""
    runs = numbered(summaries)
    found = [(f"Run {run}: " if run else "") + note for run, content in runs for note in _about_claims(content)]
    words = _WORDS if any(content.words for _, content in runs) else ()
    scales = [_SCORES if content.scores == "log-probabilities" else _ANSWERS for _, content in runs]
    return list(dict.fromkeys([*found, *scales, *((*words, _AUTHOR) if runs else ())]))


def _about_claims(content: CitationSummary) -> Iterator[str]:
    if content.n_claims:
        yield f"{content.n_claims} claims of {content.n_answers} answers have a word, under {content.operator}."
    else:
        yield "No claim could be evaluated." if content.claims else _NO_WORDS
    reasons = Counter(claim.reason for claim in content.claims if claim.word is None)
    for reason, count in (reasons if content.claims else Counter(content.skipped)).most_common():
        yield f"{'1 claim was' if count == 1 else f'{count} claims were'} not tested: {reason}."


class ShownAnswer(NamedTuple):
    id: str
    question: str
    pieces: list[tuple[str, dict[str, Any] | None]]
    """Text in order: claims, each with what its card shows, and what is between them."""


def shown_answers(folder: RunFolder, content: CitationSummary, *, most: int = MOST_ANSWERS) -> list[ShownAnswer]:
    lines = {line.example_id: line for line in content.claims}
    groups: dict[str, list[InputRow]] = {}
    for part in folder.parts() if lines else ():
        for row in folder.inputs(part):
            name = row.example_id.rpartition("#")[0] if row.group is None else row.group
            if name in groups or len(groups) < most:
                groups.setdefault(name, []).append(row)
    return [_answer(group, rows, lines) for group, rows in groups.items()]


def _answer(name: str, rows: Sequence[InputRow], lines: Mapping[str, ClaimLine]) -> ShownAnswer:
    text, end, pieces = rows[0].fields.get(ANSWER, ""), 0, list[tuple[str, dict[str, Any] | None]]()
    for row in rows:
        claim = row.fields.get(CLAIM, "")
        start = text.find(claim, end)
        if start >= 0:
            pieces.append((text[end:start], None))
            end = start + len(claim)
        pieces.append((claim, _claim(row, lines[row.example_id])))
    return ShownAnswer(name, rows[0].fields.get(QUESTION, ""), [*pieces, (text[end:], None)])


def _claim(row: InputRow, line: ClaimLine) -> dict[str, Any]:
    def is_further(name: str) -> bool:  # as an expert's judgement of support
        return name not in (QUESTION, ANSWER, CLAIM) and not name.startswith(PASSAGE_FIELD)

    return {
        "line": line,
        "word": line.word or NOT_TESTED,
        "scores": [] if line.score_full is None else claim_scores(line),
        "test": claim_test(line, row),
        "cited": [each._replace(text=shortened(each.text, _LONGEST)) for each in passages_of(row, line.cites)],
        "notes": {name: shortened(text, _LONGEST) for name, text in row.fields.items() if is_further(name)},
    }
