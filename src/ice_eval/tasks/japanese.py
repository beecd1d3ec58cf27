"""Japanese: prompt and label words."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import NoData


@task("japanese")
def japanese() -> Task:
    """Sentiment of Japanese reviews; bring the texts with --data."""
    return Task(
        data=NoData(),
        language="ja",
        prompt="レビュー：{text}\n評価：",
        label_words={"negative": "否定的", "positive": "肯定的"},
        worked=(
            Shot({"text": "話が長くて、途中で眠くなった。"}, "negative"),
            Shot({"text": "とても楽しくて、また見たいと思った。"}, "positive"),
        ),
        lexicon=frozenset(
            "悪い 最悪 退屈 残念 嫌い ひどい つまらない 駄目 不満 失敗 "
            "良い 最高 素晴らしい 好き 面白い 楽しい 綺麗 満足 感動 傑作".split()
        ),
    )
