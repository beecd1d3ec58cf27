"""Arabic: ASTD."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import HubData


@task("arabic")
def arabic() -> Task:
    """Sentiment of Arabic tweets (ASTD: Nabil et al., 2015), without mixed and objective ones.

    No revision is published for it, so the hub's current one is read.
    """
    return Task(
        data=HubData(
            "arbml/ASTD",
            split="train",
            fields={"text": "tweet"},
            labels={3: "negative", 2: "positive"},
            only_labels=True,
        ),
        language="ar",
        prompt="التغريدة: {text}\nالشعور:",
        label_words={"negative": " سلبي", "positive": " إيجابي"},
        worked=(
            Shot({"text": "الخدمة سيئة والانتظار طويل جدا"}, "negative"),
            Shot({"text": "يوم جميل مع أصدقائي، شكرا لكم"}, "positive"),
        ),
        lexicon=frozenset(
            "سيء سيئة أسوأ فاشل فاشلة حزين حرام كذب ظلم فساد "
            "جميل جميلة رائع رائعة ممتاز ممتازة أفضل أحسن شكرا مبروك سعيد".split()
        ),
    )
