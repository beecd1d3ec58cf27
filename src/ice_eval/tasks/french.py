"""French: Allociné."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import HubData


@task("french")
def french() -> Task:
    """Sentiment of French film reviews (Allociné: Blard, 2020)."""
    return Task(
        data=HubData(
            "tblard/allocine",
            split="test",
            revision="a4654f4896408912913a62ace89614879a549287",
            fields={"text": "review"},
            labels={0: "negative", 1: "positive"},
        ),
        language="fr",
        prompt="Critique : {text}\nSentiment :",
        label_words={"negative": " négatif", "positive": " positif"},
        worked=(
            Shot({"text": "Une intrigue paresseuse, j’ai failli m’endormir."}, "negative"),
            Shot({"text": "Une belle surprise, drôle et touchante."}, "positive"),
        ),
        lexicon=frozenset(
            "mauvais mauvaise nul nulle ennuyeux ennuyeuse raté décevant déception médiocre pire horrible pénible "
            "bon bonne excellent excellente magnifique superbe génial géniale sublime meilleur émouvant réussi".split()
        ),
    )
