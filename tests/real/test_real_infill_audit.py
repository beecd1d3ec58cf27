"""What the blacklists of real tasks let through, with a real tokenizer."""

import pytest

from ice_eval.analysis import audit_infill
from ice_eval.encoding import encode
from ice_eval.tasks import FileData, load_task


def judged(smollm2, shared_data, name):
    task = load_task(name)
    examples = FileData(shared_data / f"{name}.jsonl").load(task.template.fields, task.labels)
    items = [(encode(smollm2.codec, task, example), example.gold) for example in examples]
    return task, {each.reference: each for each in audit_infill(smollm2.codec, task, items, model="smollm2").judged}


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.smollm2
@pytest.mark.parametrize("name", ["sst2", "ag_news", "esnli"])
def test_every_word_of_a_tasks_lexicon_is_blocked_and_pieces_of_words_survive(smollm2, shared_data, name):
    task, found = judged(smollm2, shared_data, name)
    words = found["words"]
    surviving = {piece.text.casefold() for piece in words.surviving.values() if piece.kind == "full word"}
    assert surviving.isdisjoint(word.casefold() for word in (*task.lexicon, *task.labels))
    assert {"prefix", "sub-word"} <= {piece.kind for piece in words.surviving.values()}
    assert 0 < words.rate < 0.05


@pytest.mark.real
@pytest.mark.smollm2
def test_topic_words_of_news_are_in_the_blacklist(smollm2, shared_data):
    _, found = judged(smollm2, shared_data, "ag_news")
    blocked = {piece.text.casefold() for piece in found["words"].blocked.values()}
    assert {"world", "business", "sports", "technology", "oil", "software", "team", "iraq"} <= blocked
    assert len(blocked) > 60
    assert found["held out"].p_value < 0.01  # and more of what tells the topic survives than chance finds
