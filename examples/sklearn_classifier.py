"""Do its weights explain a scikit-learn classifier? Needs a file of labelled texts.

python examples/sklearn_classifier.py reviews.jsonl     # lines of {"text": …, "label": "negative" | "positive"}
"""

import sys

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import ice_eval as ice

labels = ["negative", "positive"]
data = ice.FileData(sys.argv[1])
task = ice.Task(data=data, prompt="{text}", label_words={name: name for name in labels}, name="reviews")
examples = task.examples()
model = make_pipeline(TfidfVectorizer(), LogisticRegression())
model.fit([example.fields["text"] for example in examples], [labels[example.gold] for example in examples])

weights = dict(zip(model[0].get_feature_names_out(), model[1].coef_[0], strict=True))
explain = {
    "weights": lambda item: [abs(weights.get(word.lower(), 0.0)) for word in item.texts],
    "longest words": lambda item: [len(word) for word in item.texts],
    "random": None,
}
run = ice.evaluate(model.predict_proba, task, attributions=explain, unit="word", n=100)
print(run.summary()[["attribution", "operator", "win_rate", "win_rate_ci", "verdict"]].to_string())
