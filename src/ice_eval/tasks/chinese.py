"""Chinese: ChnSentiCorp."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import HubData


@task("chinese")
def chinese() -> Task:
    """Sentiment of Chinese reviews of hotels, books and computers (ChnSentiCorp: Tan & Zhang, 2008)."""
    return Task(
        data=HubData(
            "lansinuote/ChnSentiCorp",
            split="test",
            revision="b0c4c119c3fb33b8e735969202ef9ad13d717e5a",
            labels={0: "negative", 1: "positive"},
        ),
        language="zh",
        prompt="评论：{text}\n情感：",
        label_words={"negative": "负面", "positive": "正面"},
        worked=(
            Shot({"text": "房间又小又吵，一夜没睡好。"}, "negative"),
            Shot({"text": "服务热情，位置方便，下次还会来。"}, "positive"),
        ),
        lexicon=frozenset(
            "差 坏 烂 糟 糟糕 失望 很差 太差 垃圾 难吃 脏 吵 "
            "好 棒 赞 不错 很好 满意 喜欢 推荐 干净 舒适 优秀 值得".split()
        ),
    )
