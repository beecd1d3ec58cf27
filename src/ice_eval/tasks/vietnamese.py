"""Vietnamese: prompt and label words."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import NoData


@task("vietnamese")
def vietnamese() -> Task:
    """Sentiment of Vietnamese reviews; bring the texts with --data."""
    return Task(
        data=NoData(),
        language="vi",
        prompt="Nhận xét: {text}\nCảm xúc:",
        label_words={"negative": " tiêu cực", "positive": " tích cực"},
        worked=(
            Shot({"text": "Phim dài dòng, xem giữa chừng đã chán."}, "negative"),
            Shot({"text": "Món ăn ngon, nhân viên rất nhiệt tình."}, "positive"),
        ),
        lexicon=frozenset("tệ dở kém chán xấu tồi nhạt bẩn đắt tốt hay đẹp ngon tuyệt thích vui sạch".split()),
    )
