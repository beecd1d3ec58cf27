"""Turkish: film reviews."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import HubData


@task("turkish")
def turkish() -> Task:
    """Sentiment of Turkish film reviews (Demirtas & Pechenizkiy, 2013).

    A file for `--data` may hold another set, such as the reviews of Türkmenoğlu and Tantuğ (2014): then its numbers do
    not belong beside those of the paper.
    """
    return Task(
        data=HubData(
            "asparius/Turkish-Movie-Review",
            split="test",
            revision="409a4415cce5f6bcfca6d5f3ca3c408211ca00b3",
            labels={0: "negative", 1: "positive"},
        ),
        language="tr",
        prompt="Yorum: {text}\nDuygu:",
        label_words={"negative": " olumsuz", "positive": " olumlu"},
        worked=(
            Shot({"text": "Senaryo zayıf, yarısında çıktım."}, "negative"),
            Shot({"text": "Oyunculuk çok iyi, herkese öneririm."}, "positive"),
        ),
        lexicon=frozenset(
            "kötü berbat sıkıcı rezalet saçma vasat başarısız zayıf gereksiz "
            "iyi güzel harika mükemmel muhteşem süper başarılı kusursuz etkileyici şahane efsane".split()
        ),
    )
