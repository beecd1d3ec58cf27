"""AG News."""

from ice_eval.tasks._base import Shot, Task, Wording, task
from ice_eval.tasks._data import HubData

_TOPICS = frozenset(
    "world international foreign government president minister election troops war military peace nations "
    "sport sports game games team teams league cup coach player players season championship olympic football baseball "
    "business company companies market markets stock stocks shares profit profits sales economy prices oil bank "
    "technology tech science scientists software internet computer computers online web space nasa".split()
)
"""Words that name one of the topics, or hardly occur outside it."""


@task("ag_news")
def ag_news() -> Task:
    """Topic of a news item: world, sports, business or technology (Zhang et al., 2015)."""
    return Task(
        data=HubData(
            "fancyzhx/ag_news",
            split="test",
            revision="eb185aade064a81",
            labels={0: "World", 1: "Sports", 2: "Business", 3: "Sci/Tech"},
        ),
        language="en",
        prompt="Article: {text}\nTopic:",
        label_words={"World": " World", "Sports": " Sports", "Business": " Business", "Sci/Tech": " Technology"},
        variants={
            "minimal": Wording("{text}\nTopic:"),
            "question": Wording(
                "Article: {text}\nIs this about the world, sports, business or technology? It is about",
                {"World": " the world", "Sports": " sports", "Business": " business", "Sci/Tech": " technology"},
            ),
        },
        worked=(
            Shot({"text": "Envoys meet again over the border dispute. Talks resume on Monday."}, "World"),
            Shot({"text": "Late goal decides the derby. The visitors had led until half-time."}, "Sports"),
            Shot({"text": "Retailer lowers its forecast. Costs rose faster than expected this quarter."}, "Business"),
            Shot({"text": "New telescope sends its first images. Engineers call the pictures sharp."}, "Sci/Tech"),
        ),
        lexicon=_TOPICS,
    )
