"""Sentiment of English reviews: short ones of this package, SST-2, IMDB and ERASER's."""

import functools

from ice_eval.tasks._base import Shot, Task, Wording, task
from ice_eval.tasks._data import DataSource, HubData, PackageData

_VERDICTS = frozenset(
    "good great best better excellent wonderful brilliant superb perfect amazing fantastic beautiful charming "
    "delightful enjoyable entertaining hilarious masterpiece masterful love loved loves recommend recommended "
    "bad worst worse terrible awful horrible dull boring poor poorly stupid lame tedious disappointing disappointment "
    "mess waste wasted fails failure unfunny pointless mediocre hate hated avoid".split()
)


@functools.cache
def _worked_reviews() -> tuple[Shot, ...]:
    """Return four short reviews that were written for this package."""
    return tuple(Shot({"text": row["text"]}, row["label"]) for row in PackageData("demo_shots.jsonl").rows())


def _reviews(
    data: DataSource,
    *,
    variants: dict[str, Wording],
    shots: tuple[Shot, ...] = (),
    worked: tuple[Shot, ...] = (),
    lexicon: frozenset[str] = frozenset(),
) -> Task:
    return Task(
        data=data,
        language="en",
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        variants=variants,
        shots=shots,
        worked=worked,
        lexicon=lexicon,
    )


@task("demo")
def demo() -> Task:
    """Sentiment of short reviews written for this package, with four worked examples before each."""
    question = Wording("Review: {text}\nIs this review positive or negative? It is")
    return _reviews(PackageData("demo.jsonl"), variants={"question": question}, shots=_worked_reviews())


@task("imdb")
def imdb() -> Task:
    """Sentiment of whole film reviews (Maas et al., 2011)."""
    labels = {0: "negative", 1: "positive"}
    return _reviews(
        HubData("stanfordnlp/imdb", split="test", revision="e6281661ce1c48d", labels=labels),
        variants={
            "rating": Wording(
                "Review: {text}\nStars, from one (worst) to five (best):", {"negative": " one", "positive": " five"}
            ),
            "yes-no": Wording(
                "Review: {text}\nDid the writer like the film, yes or no?", {"negative": " no", "positive": " yes"}
            ),
        },
        worked=_worked_reviews(),
        lexicon=_VERDICTS,
    )


@task("movies")
def movies() -> Task:
    """Sentiment of long film reviews with passages that people marked (Zaidan et al., 2007; ERASER).

    No revision is published for it, so the hub's current one is read.
    """
    return _reviews(
        HubData(
            "eraser-benchmark/movie_rationales",
            split="test",
            fields={"text": "review"},
            labels={0: "negative", 1: "positive"},
            quotes="evidences",
        ),
        variants={},
        worked=_worked_reviews(),
        lexicon=_VERDICTS,
    )


@task("sst2")
def sst2() -> Task:
    """Sentiment of one film-review sentence (Socher et al., 2013)."""
    return _reviews(
        HubData(
            "nyu-mll/glue",
            config="sst2",
            split="validation",
            revision="bcdcba79d07bc86",
            fields={"text": "sentence"},
            labels={0: "negative", 1: "positive"},
        ),
        variants={
            "minimal": Wording("{text}\nSentiment:"),
            "question": Wording("Review: {text}\nIs this review positive or negative? It is"),
            "completion": Wording("{text} In short, the film was", {"negative": " bad", "positive": " good"}),
            "quoted": Wording('A viewer wrote: "{text}"\nThis opinion of the film is'),
        },
        worked=_worked_reviews(),
        lexicon=_VERDICTS,
    )
