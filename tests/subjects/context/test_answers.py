import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.subjects.context.answers import GivenClaim, claims_in, given_claims

NAMES = ["1", "2", "3"]
PIECES = [
    "Cats sleep", " dogs", ". ", ".", " ", "\n", "\r\n", ", ", "; ", ": ", "[1]", "[2][3]", "[1, 3]", "[1-3]", "[9]",
    "[^2]", "(1)", "(2) ", "([1])", "¹", "²³", "m²", "【1†source】", "[a]", "[1](https://a.b)", "[", "]", "(", ")",
    "- ", "1. ", "。", "\n[^1]: note", "\nSources:\n", "[Passage 2]", "\u2028", "U.S. ", "(1) First. (2) Then",
]  # fmt: skip
answers = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=15).map("".join)


def read(text, names=NAMES):
    """Each claim as its text, the names of the passages that it cites, and its marks."""
    claims, problems = claims_in(text, names)
    found = [
        (text[claim.start : claim.end], "".join(names[index] for index in claim.cites), marked(text, claim))
        for claim in claims
    ]
    return found, list(problems)


def marked(text, claim):
    return [text[start:end] for start, end in claim.marks]


@pytest.mark.parametrize(
    ("text", "cites", "marks"),
    [
        ("Cats sleep [1].", "1", ["[1]"]),
        ("Cats sleep[2] [3].", "23", ["[2] [3]"]),
        ("Cats [3] sleep [1], [2].", "123", ["[3]", "[1], [2]"]),
        ("Cats sleep ([1]; [3]).", "13", ["([1]; [3])"]),
        ("Cats sleep [3, 1, 3].", "13", ["[3, 1, 3]"]),
        ("Cats sleep [1-3].", "123", ["[1-3]"]),
        ("Cats sleep [1–2, 3].", "123", ["[1–2, 3]"]),
        ("On a scale of [1-10], cats sleep.", "", []),
        ("Cats sleep (2).", "2", ["(2)"]),
        ("Cats sleep (1), (2) in (2014).", "12", ["(1), (2)"]),
        ("Cats sleep [1] for 2 (2) hours.", "1", ["[1]"]),  # round brackets cite only where no square ones do
        ("There are (2) kinds: (1) cats, (2) dogs and (3) cows.", "2", ["(2)"]),  # a list cites nothing
        ("Cats sleep, and eat fish, (1).", "1", ["(1)"]),
        ("Cats sleep¹ a lot.²", "12", ["¹", "²"]),
        ("Cats sleep¹².", "12", ["¹²"]),
        ("Cats sleep¹⁻³.", "123", ["¹⁻³"]),
        ("Cats of 3 m², 10³ or x², with Cu²⁺ and ¹³C, sleep.", "", []),
        ("Cats sleep[^1].", "1", ["[^1]"]),
        ("Cats sleep【1†source】【2†a.pdf】.", "12", ["【1†source】【2†a.pdf】"]),
        ("Cats sleep [Passage 2] [Sources 1, 3].", "123", ["[Passage 2] [Sources 1, 3]"]),
        ("Cats sleep [1](https://cats.org/a?b=1).", "1", ["[1](https://cats.org/a?b=1)"]),
        ("Cats sleep [01, ٣].", "13", ["[01, ٣]"]),
        ("“[C]ats sleep” [sic], 【注】 [emphasis added].", "", []),
        ("[2] says that cats sleep.", "2", ["[2]"]),
        ("According to [2], cats sleep.", "2", ["[2]"]),
    ],
)
def test_marks_of_every_style_are_read(text, cites, marks):
    assert read(text) == ([(text, cites, marks)], [])


def test_a_number_of_two_superscripts_is_one_name_if_a_passage_has_it():
    [(_, cites, _)], _ = read("Cats sleep.¹²", ["1", "2", "12"])
    assert cites == "12" and claims_in("Cats sleep.¹²", ["1", "2", "12"]).claims[0].cites == (2,)


@pytest.mark.parametrize(
    ("text", "indices", "problems"),
    [
        ("Cats sleep [doc_a].", (0,), []),
        ("Cats sleep [doc_a; Dr. No. A Book].", (0, 1), []),
        ("Cats sleep [doc_b].", (), ["claim 1 cites [doc_b], and there is no such passage"]),
        ("Cats sleep [1].", (), ["claim 1 cites [1], and there is no such passage"]),
        ("Cats sleep [often].", (), []),
    ],
)
def test_ids_are_marks_and_so_is_what_looks_like_one(text, indices, problems):
    claims, found = claims_in(text, ["doc_a", "Dr. No. A Book"])
    assert ([claim.cites for claim in claims], list(found)) == ([indices], problems)
    assert bool(claims[0].marks) == ("often" not in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cats sleep. [1] Dogs bark.[2] Ok.", [("Cats sleep. [1]", "1"), ("Dogs bark.[2]", "2"), ("Ok.", "")]),
        ("Cats sleep.¹ Dogs bark.", [("Cats sleep.¹", "1"), ("Dogs bark.", "")]),
        ("Cats sleep. ([1]) Dogs bark.", [("Cats sleep. ([1])", "1"), ("Dogs bark.", "")]),
        (" Cats sleep.\n[1] [2]\n\nDogs bark.", [("Cats sleep.\n[1] [2]", "12"), ("Dogs bark.", "")]),
        ("Cats sleep.\n[1] Dogs bark.", [("Cats sleep.", ""), ("[1] Dogs bark.", "1")]),
        ("- Cats sleep [1]\n- Dogs bark [2]", [("- Cats sleep [1]", "1"), ("- Dogs bark [2]", "2")]),
        ("(1) Cats sleep. (2) Dogs bark.", [("(1) Cats sleep.", ""), ("(2) Dogs bark.", "")]),
        ("Cats sleep.\n---\nDogs bark.", [("Cats sleep.", ""), ("Dogs bark.", "")]),
        ("Cats sleep [1].\n\n**Sources:**\n[1] A book. By me.", [("Cats sleep [1].", "1")]),
        ("Cats sleep[^1].\n\n[^1]: A book. By me.", [("Cats sleep[^1].", "1")]),
        ("Cats sleep [1].\n\n[1]: https://cats.org", [("Cats sleep [1].", "1")]),
        ("[1]", []),
        ("", []),
    ],
)  # fmt: skip
def test_a_mark_belongs_to_the_sentence_that_it_follows(text, expected):
    assert [(claim, cites) for claim, cites, _ in read(text)[0]] == expected


def test_marks_that_name_no_passage_are_problems_and_never_scored():
    text = "Cats sleep. Dogs bark [2, 7]. Cows moo【8†source】.⁹"
    found, problems = read(text)
    assert found[1:] == [("Dogs bark [2, 7].", "2", ["[2, 7]"]), ("Cows moo【8†source】.⁹", "", ["【8†source】"])]
    assert problems == [f"claim {n} cites [{name}], and there is no such passage" for n, name in [(2, 7), (3, 8)]]


def test_a_mark_before_all_claims_is_a_problem():
    assert read("[2]\n\nCats sleep.") == ([("Cats sleep.", "", [])], ["[2] is before the first claim"])


@given(answers)
def test_claims_are_in_order_and_hold_their_marks(text):
    end = 0
    for claim in claims_in(text, NAMES).claims:
        assert end <= claim.start < claim.end <= len(text)
        assert text[claim.start : claim.end].strip() == text[claim.start : claim.end]
        assert list(claim.cites) == sorted(set(claim.cites)) and (claim.marks or not claim.cites)
        place = claim.start
        for first, last in claim.marks:
            assert place <= first < last <= claim.end
            place = last
        end = claim.end


@given(st.lists(answers.filter(str.strip), max_size=4))
def test_given_claims_are_found_in_their_own_text(texts):
    text = "  ".join(texts)
    claims, problems = given_claims(text, [GivenClaim(claim, []) for claim in texts], NAMES)
    assert [text[claim.start : claim.end] for claim in claims] == [claim.strip() for claim in texts]
    assert problems == ()
    assert all(claim.start <= a < b <= claim.end for claim in claims for a, b in claim.marks)


def test_given_claims_keep_their_citations_and_notes():
    text = "Yes.  Cats\nsleep [1] [9]. Yes. Cats sleep (2)."
    given = [
        GivenClaim("Yes.", []),
        GivenClaim(" Cats  sleep [1] [9].", ["3", "1", "3"], {"support": "Complete"}),
        GivenClaim("Yes.", ["2"]),
    ]
    claims, problems = given_claims(text, given, NAMES)
    assert [(claim.start, claim.cites) for claim in claims] == [(0, ()), (6, (0, 2)), (26, (1,))]
    assert marked(text, claims[1]) == ["[1] [9]"]
    assert (claims[1].notes, claims[0].notes, problems) == ({"support": "Complete"}, {}, ())


def test_given_claims_that_cannot_be_used_are_counted():
    given = [GivenClaim("Dogs bark.", ["7", "1"]), GivenClaim("  ", []), GivenClaim("Cats sleep.", ["1"])]
    claims, problems = given_claims("Cats sleep. Dogs bark.", given, NAMES)
    assert [claim.cites for claim in claims] == [(0,)]
    assert problems == (
        "claim 1 cites [7], and there is no such passage",
        "claim 2 is empty",
        "claim 3 is not found in the answer, in this order: 'Cats sleep.'",
    )


@pytest.mark.parametrize(
    ("text", "cites"),
    [
        ("[2] The sky is blue. [1] Grass is green.", [(1,), (0,)]),  # citations lead
        ("In [2019] it rained (1). It was dry before (2).", [(0,), (1,)]),  # a year is no passage
        ("Sources\nThe sky is blue [1]. Grass is green [2].", [(), (0,), (1,)]),  # no list at the end
    ],
)
def test_citations_in_other_places_are_read(text, cites):
    found = claims_in(text, ["1", "2"])
    assert [claim.cites for claim in found.claims] == cites and not found.problems


def test_given_claims_keep_their_numbers():
    given = [GivenClaim(text, ["1"]) for text in ("Not there.", "Here it is.")]
    [claim] = given_claims("Here it is.", given, ["1"]).claims
    assert claim.number == 2
