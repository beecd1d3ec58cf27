"""Sentiment in nine languages: six data sets, and three prompts for texts of the user's own."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import DataSource, HubData, NoData


def _sentiment(
    language: str,
    prompt: str,
    *,
    words: tuple[str, str],
    shots: tuple[str, str],
    lexicon: str,
    data: DataSource | None = None,
) -> Task:
    """Return a task about sentiment; `words` and `shots` are those of negative, then of positive."""
    negative, positive = words
    return Task(
        data=data or NoData(),
        language=language,
        prompt=prompt,
        label_words={"negative": negative, "positive": positive},
        worked=(Shot({"text": shots[0]}, "negative"), Shot({"text": shots[1]}, "positive")),
        lexicon=frozenset(lexicon.split()),
    )


@task("arabic")
def arabic() -> Task:
    """Sentiment of Arabic tweets (ASTD: Nabil et al., 2015), without mixed and objective ones.

    No revision is published for it, so the hub's current one is read.
    """
    labels = {3: "negative", 2: "positive"}
    return _sentiment(
        "ar",
        "التغريدة: {text}\nالشعور:",
        words=(" سلبي", " إيجابي"),
        shots=("الخدمة سيئة والانتظار طويل جدا", "يوم جميل مع أصدقائي، شكرا لكم"),
        lexicon="سيء سيئة أسوأ فاشل فاشلة حزين حرام كذب ظلم فساد "
        "جميل جميلة رائع رائعة ممتاز ممتازة أفضل أحسن شكرا مبروك سعيد",
        data=HubData("arbml/ASTD", split="train", fields={"text": "tweet"}, labels=labels, only_labels=True),
    )


@task("chinese")
def chinese() -> Task:
    """Sentiment of Chinese reviews of hotels, books and computers (ChnSentiCorp: Tan & Zhang, 2008)."""
    return _sentiment(
        "zh",
        "评论：{text}\n情感：",
        words=("负面", "正面"),
        shots=("房间又小又吵，一夜没睡好。", "服务热情，位置方便，下次还会来。"),
        lexicon="差 坏 烂 糟 糟糕 失望 很差 太差 垃圾 难吃 脏 吵 好 棒 赞 不错 很好 满意 喜欢 推荐 干净 舒适 优秀 值得",
        data=HubData(
            "lansinuote/ChnSentiCorp",
            split="test",
            revision="b0c4c119c3fb33b8e735969202ef9ad13d717e5a",
            labels={0: "negative", 1: "positive"},
        ),
    )


@task("finnish")
def finnish() -> Task:
    """Sentiment of Finnish reviews; give the texts with --data."""
    return _sentiment(
        "fi",
        "Arvostelu: {text}\nSävy:",
        words=(" kielteinen", " myönteinen"),
        shots=("Tarina laahaa ja loppu oli pettymys.", "Ihana elokuva, suosittelen kaikille."),
        lexicon="huono huonoin surkea tylsä pettymys kamala ikävä heikko turha kehno "
        "hyvä paras erinomainen loistava upea ihana mahtava hieno kaunis hauska",
    )


@task("french")
def french() -> Task:
    """Sentiment of French film reviews (Allociné: Blard, 2020)."""
    return _sentiment(
        "fr",
        "Critique : {text}\nSentiment :",
        words=(" négatif", " positif"),
        shots=("Une intrigue paresseuse, j’ai failli m’endormir.", "Une belle surprise, drôle et touchante."),
        lexicon="mauvais mauvaise nul nulle ennuyeux ennuyeuse raté décevant déception médiocre pire horrible pénible "
        "bon bonne excellent excellente magnifique superbe génial géniale sublime meilleur émouvant réussi",
        data=HubData(
            "tblard/allocine",
            split="test",
            revision="a4654f4896408912913a62ace89614879a549287",
            fields={"text": "review"},
            labels={0: "negative", 1: "positive"},
        ),
    )


@task("german")
def german() -> Task:
    """Opinion in German posts about railway travel (GermEval 2017: Wojatzki et al., 2017), without the neutral ones.

    No revision is published for it, so the hub's current one is read.
    """
    return _sentiment(
        "de",
        "Beitrag: {text}\nMeinung:",
        words=(" negativ", " positiv"),
        shots=("Der Zug fiel ohne jede Durchsage aus.", "Sehr freundliches Personal und pünktlich am Ziel."),
        lexicon="schlecht schlechter schlimm furchtbar ärgerlich nervig unfreundlich unverschämt katastrophe chaos "
        "gut gute guter super toll klasse prima freundlich danke zufrieden schön angenehm",
        data=HubData(
            "akash418/germeval_2017",
            split="test",
            fields={"label": "sentiment"},
            labels={"negative": "negative", "positive": "positive"},
            only_labels=True,
        ),
    )


@task("hindi")
def hindi() -> Task:
    """Sentiment of Hindi reviews (IndicSentiment: Doddapaneni et al., 2023), translated from English by people.

    A file for `--data` may hold another set, such as film reviews that were written in Hindi: then its numbers do not
    belong beside those of the paper.
    """
    return _sentiment(
        "hi",
        "समीक्षा: {text}\nभावना:",
        words=(" नकारात्मक", " सकारात्मक"),
        shots=("कहानी बहुत लंबी और उबाऊ है।", "अभिनय शानदार है, दोबारा देखूँगा।"),
        lexicon="बुरा बुरी खराब बेकार घटिया उबाऊ निराश निराशाजनक कमजोर बकवास "
        "अच्छा अच्छी अच्छे बढ़िया शानदार बेहतरीन उत्कृष्ट सुंदर मजेदार कमाल",
        data=HubData(
            "ai4bharat/IndicSentiment",
            config="translation-hi",
            split="test",
            revision="dc8f3f66886531c6897fedffca1e938a68fc5013",
            fields={"text": "INDIC REVIEW", "label": "LABEL"},
            labels={"Negative": "negative", "Positive": "positive"},
            only_labels=True,
        ),
    )


@task("japanese")
def japanese() -> Task:
    """Sentiment of Japanese reviews; give the texts with --data."""
    return _sentiment(
        "ja",
        "レビュー：{text}\n評価：",
        words=("否定的", "肯定的"),
        shots=("話が長くて、途中で眠くなった。", "とても楽しくて、また見たいと思った。"),
        lexicon="悪い 最悪 退屈 残念 嫌い ひどい つまらない 駄目 不満 失敗 "
        "良い 最高 素晴らしい 好き 面白い 楽しい 綺麗 満足 感動 傑作",
    )


@task("turkish")
def turkish() -> Task:
    """Sentiment of Turkish film reviews (Demirtas & Pechenizkiy, 2013).

    A file for `--data` may hold another set, such as the reviews of Türkmenoğlu and Tantuğ (2014): then its numbers do
    not belong beside those of the paper.
    """
    return _sentiment(
        "tr",
        "Yorum: {text}\nDuygu:",
        words=(" olumsuz", " olumlu"),
        shots=("Senaryo zayıf, yarısında çıktım.", "Oyunculuk çok iyi, herkese öneririm."),
        lexicon="kötü berbat sıkıcı rezalet saçma vasat başarısız zayıf gereksiz "
        "iyi güzel harika mükemmel muhteşem süper başarılı kusursuz etkileyici şahane efsane",
        data=HubData(
            "asparius/Turkish-Movie-Review",
            split="test",
            revision="409a4415cce5f6bcfca6d5f3ca3c408211ca00b3",
            labels={0: "negative", 1: "positive"},
        ),
    )


@task("vietnamese")
def vietnamese() -> Task:
    """Sentiment of Vietnamese reviews; give the texts with --data."""
    return _sentiment(
        "vi",
        "Nhận xét: {text}\nCảm xúc:",
        words=(" tiêu cực", " tích cực"),
        shots=("Phim dài dòng, xem giữa chừng đã chán.", "Món ăn ngon, nhân viên rất nhiệt tình."),
        lexicon="tệ dở kém chán xấu tồi nhạt bẩn đắt tốt hay đẹp ngon tuyệt thích vui sạch",
    )
