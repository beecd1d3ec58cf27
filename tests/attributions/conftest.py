import pytest

from ice_eval.attributions import Lens, Observer, method_of
from ice_eval.encoding import encode
from ice_eval.models import load_model
from ice_eval.tasks import Records, Task, load_task

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def tiny(tiny_folder):
    """Family -> a tiny model of it, freshly loaded."""

    def load(family, *, chat=False):
        model = load_model(str(tiny_folder(family)), device="cpu")
        if chat:
            model.codec.tokenizer.chat_template = TEMPLATE
        return model

    return load


@pytest.fixture
def reviews():
    """Reviews after two shots."""
    task = load_task("demo")
    return Task(data=task.data, prompt=task.prompt, label_words=task.label_words, shots=task.shots[:2])


@pytest.fixture
def long_labels():
    """Labels that begin alike, so that the chain rule decides."""
    return Task(
        data=Records([{"text": "a film with a slow start"}, {"text": "a warm one"}]),
        prompt="Review: {text}\nSentiment:",
        label_words={"bad": " very bad", "good": " very good"},
    )


@pytest.fixture
def explained():
    """(model, task, attribution) -> the encoded examples, and what the attribution gives them."""

    def explain(model, task, spec, *, n=3, target=1, items=None, chat=False):
        items = items or [encode(model.codec, task, example) for example in task.examples()[:n]]
        method, targets = method_of(spec), {item.example_id: target for item in items}
        observer = Observer(model, model.labels(task), targets, method.needs, chat=chat)
        return items, method.attribute(Lens(observer, method.needs, 0, spec), items)

    return explain
