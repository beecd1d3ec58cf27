"""Shipped tasks: English reviews, news, inference and questions about a passage, and sentiment in nine languages."""

import functools
from collections.abc import Mapping, Sequence

from ice_eval.tasks._base import Shot, Task, TaskFactory, Wording, task, tasks
from ice_eval.tasks._data import DataSource, HubData, NoData, PackageData, Row

_SENTIMENT = {0: "negative", 1: "positive"}
_RELATIONS = ("entailment", "neutral", "contradiction")
_TOPICS = ("World", "Sports", "Business", "Sci/Tech")
_VERDICTS = frozenset(
    "good great best better excellent wonderful brilliant superb perfect amazing fantastic beautiful charming "
    "delightful enjoyable entertaining hilarious masterpiece masterful love loved loves recommend recommended "
    "bad worst worse terrible awful horrible dull boring poor poorly stupid lame tedious disappointing disappointment "
    "mess waste wasted fails failure unfunny pointless mediocre hate hated avoid".split()
)
_TOPIC_WORDS = frozenset(
    "world international foreign government president minister election troops war military peace nations "
    "sport sports game games team teams league cup coach player players season championship olympic football baseball "
    "business company companies market markets stock stocks shares profit profits sales economy prices oil bank "
    "technology tech science scientists software internet computer computers online web space nasa".split()
)


@functools.cache
def _worked_reviews() -> tuple[Shot, ...]:
    return tuple(Shot({"text": row["text"]}, row["label"]) for row in PackageData("demo_shots.jsonl").rows())


def _words(labels: Sequence[str], *words: str) -> dict[str, str]:
    return dict(zip(labels, words, strict=True))


def _film_reviews(data: DataSource, variants: Mapping[str, Wording]) -> Task:
    return Task(
        data=data,
        language="en",
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        variants=variants,
        worked=_worked_reviews(),
        lexicon=_VERDICTS,
    )


@task("demo")
def demo() -> Task:
    """Sentiment of short reviews written for this package, with four worked examples before each."""
    return Task(
        data=PackageData("demo.jsonl"),
        language="en",
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        shots=_worked_reviews(),
        variants={"question": Wording("Review: {text}\nIs this review positive or negative? It is")},
    )


@task("sst2")
def sst2() -> Task:
    """Sentiment of one film-review sentence (Socher et al., 2013)."""
    fields, revision = {"text": "sentence"}, "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"
    return _film_reviews(
        HubData("nyu-mll/glue", config="sst2", revision=revision, fields=fields, labels=_SENTIMENT),
        {
            "minimal": Wording("{text}\nSentiment:"),
            "paper": Wording("Classify sentiment. Text: {text} Sentiment:"),
            "question": Wording("Review: {text}\nIs this review positive or negative? It is"),
            "completion": Wording("{text} In short, the film was", {"negative": " bad", "positive": " good"}),
            "quoted": Wording('A viewer wrote: "{text}"\nThis opinion of the film is'),
        },
    )


@task("imdb")
def imdb() -> Task:
    """Sentiment of whole film reviews (Maas et al., 2011)."""
    stars = "Review: {text}\nStars, from one (worst) to five (best):"
    liked = "Review: {text}\nDid the writer like the film, yes or no?"
    return _film_reviews(
        HubData(
            "stanfordnlp/imdb",
            split="test",
            revision="e6281661ce1c48d982bc483cf8a173c1bbeb5d31",
            labels=_SENTIMENT,
        ),
        {
            "rating": Wording(stars, {"negative": " one", "positive": " five"}),
            "yes-no": Wording(liked, {"negative": " no", "positive": " yes"}),
        },
    )


@task("movies")
def movies() -> Task:
    """Sentiment of long film reviews with passages that people marked (Zaidan et al., 2007; ERASER).

    The repository holds a loading script, which is never run: the hub's own conversion to Parquet is read. No revision
    of it could be verified, so the current one is read, and its commit is recorded in the manifest.
    """
    return _film_reviews(
        HubData(
            "eraser-benchmark/movie_rationales",
            split="test",
            branch="refs/convert/parquet",
            file="default/test/0000.parquet",
            fields={"text": "review"},
            labels=_SENTIMENT,
            quotes="evidences",
        ),
        {},
    )


@task("ag_news")
def ag_news() -> Task:
    """Topic of a news item: world, sports, business or technology (Zhang et al., 2015)."""
    question = "Article: {text}\nIs this about the world, sports, business or technology? It is about"
    return Task(
        data=HubData(
            "fancyzhx/ag_news",
            split="test",
            revision="eb185aade064a813bc0b7f42de02595523103ca4",
            labels=dict(enumerate(_TOPICS)),
        ),
        language="en",
        prompt="Article: {text}\nTopic:",
        label_words=_words(_TOPICS, " World", " Sports", " Business", " Technology"),
        variants={
            "minimal": Wording("{text}\nTopic:"),
            "question": Wording(question, _words(_TOPICS, " the world", " sports", " business", " technology")),
        },
        worked=(
            Shot({"text": "Envoys meet again over the border dispute. Talks resume on Monday."}, "World"),
            Shot({"text": "Late goal decides the derby. The visitors had led until half-time."}, "Sports"),
            Shot({"text": "Retailer lowers its forecast. Costs rose faster than expected this quarter."}, "Business"),
            Shot({"text": "New telescope sends its first images. Engineers call the pictures sharp."}, "Sci/Tech"),
        ),
        lexicon=_TOPIC_WORDS,
    )


@task("esnli")
def esnli() -> Task:
    """Entailment, contradiction or neither between a premise and a hypothesis (Camburu et al., 2018).

    The hub's e-SNLI is a loading script, which is never run, so SNLI is read, of which e-SNLI has every labelled pair.
    The published `esnli_test.csv` works as a file and adds the words that people highlighted; other files may give them
    as `highlights_premise` and `highlights_hypothesis`.
    """
    pair = "Premise: {premise}\nHypothesis: {hypothesis}\n"
    verb, truth = "Does the first prove, allow or refute the second? It", "True, false or unknown? The hypothesis is"
    return Task(
        data=HubData(
            "stanfordnlp/snli",
            split="test",
            revision="cdb5c3d5eed6ead6e5a341c8e56e669bb666725b",
            labels=dict(enumerate(_RELATIONS)),
            only_labels=True,
        ),
        language="en",
        prompt=pair + "Relation:",
        group="premise",
        label_words=_words(_RELATIONS, " entailment", " neutral", " contradiction"),
        variants={
            "verb": Wording(pair + verb, _words(_RELATIONS, " proves", " allows", " refutes")),
            "true-false-unknown": Wording(pair + truth, _words(_RELATIONS, " true", " unknown", " false")),
        },
        worked=(
            Shot({"premise": "Two boys kick a ball in a park.", "hypothesis": "Children are outside."}, "entailment"),
            Shot({"premise": "A woman reads on a bench.", "hypothesis": "She waits for a friend."}, "neutral"),
            Shot({"premise": "A man cooks soup at home.", "hypothesis": "The man is asleep."}, "contradiction"),
        ),
    )


@task("boolq")
def boolq() -> Task:
    """Yes or no to a question, from a passage (Clark et al., 2019); the passage is explained, the question stays."""
    return Task(
        data=HubData(
            "google/boolq",
            revision="35b264d03638db9f4ce671b711558bf7ff0f80d5",
            fields={"label": "answer"},
            labels={False: "no", True: "yes"},
        ),
        language="en",
        prompt="{passage}\nQuestion: {question}?\nAnswer:",
        label_words={"no": " no", "yes": " yes"},
        explain=("passage",),
        group="passage",
    )


@task("multirc")
def multirc() -> Task:
    """Truth of a candidate answer, from a passage (Khashabi et al., 2018); only the passage is explained.

    ERASER's files have the sentences that people chose as `rationale`; the hub's copy, of SuperGLUE, has none.
    """
    return Task(
        data=HubData(
            "aps/super_glue",
            config="multirc",
            revision="3de24cf8022e94f4ee4b9d55a6f539891524d646",
            fields={"passage": "paragraph"},
            labels={0: "false", 1: "true"},
        ),
        language="en",
        prompt="{passage}\nQuestion: {question}\nCandidate answer: {answer}\nThe candidate answer is",
        label_words={"false": " false", "true": " true"},
        explain=("passage",),
        group="passage",
    )


def _factory(row: Row) -> TaskFactory:
    """Return a function that makes the task of a row of `sentiment.jsonl`; its label words are of negative first."""

    def sentiment() -> Task:
        data = dict(row.get("data") or {})
        labels = {value: name for name, value in data.pop("labels", {}).items()}
        return Task(
            data=HubData(**data, labels=labels) if data else NoData(),
            language=row["language"],
            prompt=row["prompt"],
            label_words=row["words"],
            worked=tuple(Shot({"text": text}, label) for label, text in row["worked"].items()),
            lexicon=frozenset(row["lexicon"].split()),
        )

    sentiment.__doc__ = row["description"]
    return sentiment


for _row in PackageData("sentiment.jsonl").rows():
    tasks.add(_row["name"], _factory(_row))
