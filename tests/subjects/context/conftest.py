import pytest

SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "ve"]
N_PASSAGES = 24


def word(number):
    """Return a made-up word that no other number has."""
    return "".join(SYLLABLES[(number // 16**place) % 16] for place in range(3))


def words(question, passage, start, count):
    """Return words of one passage, which no other passage of any question has."""
    first = question * 600 + passage * 20 + start
    return [word(each) for each in range(first, first + count)]


def answer(question):
    """Return an answer whose five claims were made in known ways: from one passage, two, another, several, memory."""
    passages = [
        {"id": str(number + 1), "text": f"{' '.join(words(question, number, 0, 8)).capitalize()}. "
         f"{' '.join(words(question, number, 8, 8)).capitalize()}."}
        for number in range(N_PASSAGES)
    ]  # fmt: skip
    several = [*words(question, 10, 0, 2), *(each for place in (12, 14, 16) for each in words(question, place, 1, 2))]
    texts = [
        (words(question, 3, 0, 6), "[4]"),
        ([*words(question, 5, 0, 4), *words(question, 6, 1, 4)], "[6][7]"),
        (words(question, 8, 0, 6), "[10]"),
        (several, "[20]"),
        ("the capital of France is Paris".split(), "[2]"),
    ]
    claims = [f"{each[0].capitalize()} {' '.join(each[1:])} {marks}." for each, marks in texts]
    return {"id": f"q{question}", "question": "Who?", "passages": passages, "answer": " ".join(claims)}


TRUTH = ("faithful", "faithful", "uncited but used", "post-rationalised", "parametric")


@pytest.fixture
def answers():
    """Answers of the toy reader whose claims were made in known ways; `TRUTH` names the five of each."""
    return [answer(question) for question in range(6)]
