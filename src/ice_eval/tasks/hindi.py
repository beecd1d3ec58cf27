"""Hindi: IndicSentiment."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import HubData


@task("hindi")
def hindi() -> Task:
    """Sentiment of Hindi reviews (IndicSentiment: Doddapaneni et al., 2023), translated from English by people.

    A file for `--data` may hold another set, such as film reviews that were written in Hindi: then its numbers do not
    belong beside those of the paper.
    """
    return Task(
        data=HubData(
            "ai4bharat/IndicSentiment",
            config="translation-hi",
            split="test",
            revision="dc8f3f66886531c6897fedffca1e938a68fc5013",
            fields={"text": "INDIC REVIEW", "label": "LABEL"},
            labels={"Negative": "negative", "Positive": "positive"},
            only_labels=True,
        ),
        language="hi",
        prompt="समीक्षा: {text}\nभावना:",
        label_words={"negative": " नकारात्मक", "positive": " सकारात्मक"},
        worked=(
            Shot({"text": "कहानी बहुत लंबी और उबाऊ है।"}, "negative"),
            Shot({"text": "अभिनय शानदार है, दोबारा देखूँगा।"}, "positive"),
        ),
        lexicon=frozenset(
            "बुरा बुरी खराब बेकार घटिया उबाऊ निराश निराशाजनक कमजोर बकवास "
            "अच्छा अच्छी अच्छे बढ़िया शानदार बेहतरीन उत्कृष्ट सुंदर मजेदार कमाल".split()
        ),
    )
