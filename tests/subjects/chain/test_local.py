"""The probability of a model's own answer after a part of its chain, against plain forward passes, one at a time."""

import numpy as np
import pytest
import torch
import transformers
from tests.subjects.chain.conftest import CHAT_TEMPLATE
from tests.subjects.chain.plain_scores import PROBLEM, answer_ids, one_by_one

from ice_eval.errors import CapabilityError, ConfigError, DataError
from ice_eval.models import load_model
from ice_eval.records import PROTECTED
from ice_eval.subjects.chain.chat import ask_prompt
from ice_eval.subjects.chain.local import AnswerScorer, encode_chain

STEPS = ("3 films.", "And 4 more.", "3 + 4 = 7")
CHAIN = "\n".join(STEPS)
ANSWERS = ["7", "very 7 films"]


@pytest.fixture(params=[("llama", True), ("llama", False), ("lfm2", True)], ids=lambda each: f"{each[0]}-{each[1]}")
def case(request, tiny_folder):
    """A model, and what its prompt looks like around the chain: as turns of a chat, or plain."""
    family, chats = request.param
    model = load_model(str(tiny_folder(family)), device="cpu")
    if not chats:
        return model, f"{ask_prompt(PROBLEM)}\n\n"
    model.codec.tokenizer.chat_template = CHAT_TEMPLATE
    return model, f"<user>{ask_prompt(PROBLEM)}<end><assistant>"


def read(model, head):
    """Ids of the input, and which characters of the chain each token holds (None: of something else)."""
    text = f"{head}{CHAIN}\nAnswer:"
    found = model.codec.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    within = [(a, b) if b > len(head) and a < len(head) + len(CHAIN) else None for a, b in found["offset_mapping"]]
    return np.array(found["input_ids"]), [span and (span[0] - len(head), span[1] - len(head)) for span in within]


def test_a_chain_is_read_as_it_was_written_and_all_but_its_tokens_is_protected(case):
    model, head = case
    chain = encode_chain(model, PROBLEM, STEPS, " 7\n")
    ids, within = read(model, head)
    assert chain.tokens.ids.tolist() == chain.steps.ids.tolist() == ids.tolist()
    assert [unit != PROTECTED for unit in chain.tokens.unit_of] == [span is not None for span in within]
    assert [chain.tokens.n_units, chain.steps.n_units] == [sum(span is not None for span in within), 3]
    assert chain.steps.texts == STEPS
    assert [CHAIN[span.start : span.end] for span in chain.steps.spans] == list(STEPS)
    starts = [CHAIN.index(step) for step in STEPS]
    for span, step in zip(within, chain.steps.unit_of, strict=True):
        if span is not None:
            assert step == max(place for place, start in enumerate(starts) if start <= max(span[0], 0))
    assert model.codec.decode([chain.tokens.empty().ids]) == [f"{head}\nAnswer:"]
    assert (chain.tokens.example_id, chain.answer.names, chain.answer.ids) == (
        "p1",
        ("7",),
        (tuple(answer_ids(model, "7")),),
    )


@pytest.mark.parametrize("answer", ANSWERS)
def test_scores_are_those_of_plain_passes_one_at_a_time(case, answer):
    model, head = case
    ids, within = read(model, head)
    chain, scorer = encode_chain(model, PROBLEM, STEPS, answer), AnswerScorer(model)
    assert len(answer_ids(model, answer)) > 1 or answer == "7"
    rng = np.random.default_rng(0)
    own = np.flatnonzero([span is not None for span in within])
    for unit, n_units in (("token", len(own)), ("step", 3)):
        keep = np.vstack([rng.random((12, n_units)) < 0.5, np.ones((1, n_units), bool), np.zeros((1, n_units), bool)])
        units = np.arange(n_units) if unit == "token" else chain.steps.unit_of[own]
        slow = [one_by_one(model, np.delete(ids, own[~row[units]]), answer) for row in keep]
        fast = scorer.scores(chain, [(unit, keep)])
        assert fast == pytest.approx(slow, abs=2e-5)
        assert np.ptp(slow) > 0.01
    assert scorer.notes == []


@pytest.mark.parametrize("answer", ANSWERS)
def test_attributions_of_steps_are_sums_over_their_tokens_of_what_plain_transformers_shows(tiny_folder, answer):
    model = load_model(str(tiny_folder("llama")), device="cpu")
    ids, within = read(model, head := f"{ask_prompt(PROBLEM)}\n\n")
    chain, scorer = encode_chain(model, PROBLEM, STEPS, answer), AnswerScorer(model)
    found = scorer.attributions(chain)["step"]
    assert list(found) == ["attention", "gradient"]

    plain = transformers.AutoModelForCausalLM.from_pretrained(tiny_folder("llama"), attn_implementation="eager")
    after = answer_ids(model, answer)
    embedded = plain.get_input_embeddings()(torch.tensor([[*ids, *after]])).detach().requires_grad_(True)
    output = plain(inputs_embeds=embedded, output_attentions=True)
    shares = torch.log_softmax(output.logits[0], dim=-1)
    sum(shares[len(ids) - 1 + place, token] for place, token in enumerate(after)).backward()
    per_token = {
        "attention": torch.stack(output.attentions)[:, 0, :, len(ids) - 1].mean(dim=(0, 1)).detach().numpy(),
        "gradient": embedded.grad[0].norm(dim=-1).numpy(),
    }
    starts = [len(head) + CHAIN.index(step) for step in STEPS]
    for name, values in per_token.items():
        sums = np.zeros(3)
        for value, span in zip(values, within, strict=False):
            if span is not None:
                sums[np.searchsorted(starts, len(head) + max(span[0], 0), side="right") - 1] += value
        assert found[name] == pytest.approx(sums, rel=1e-4)
        tokens = scorer.attributions(chain, [name], units=["token"])["token"][name]
        own = [value for value, span in zip(values, within, strict=False) if span is not None]
        assert tokens == pytest.approx(own, rel=1e-4)


def test_one_look_serves_all_attributions_and_units(chatty, monkeypatch):
    chain, looks, observe = encode_chain(chatty, PROBLEM, STEPS, "7"), [], chatty.observe
    monkeypatch.setattr(chatty, "observe", lambda *how, **more: looks.append(1) or observe(*how, **more))
    found = AnswerScorer(chatty).attributions(chain, ["attention", "gradient"], units=["token", "step"])
    assert {unit: list(values) for unit, values in found.items()} == dict.fromkeys(
        ["token", "step"], ["attention", "gradient"]
    )
    assert len(looks) == 1


def test_methods_that_probe_ask_for_the_same_score(chatty):
    chain, scorer = encode_chain(chatty, PROBLEM, STEPS, "7"), AnswerScorer(chatty)
    [full, *without] = scorer.scores(chain, [("step", np.vstack([np.ones((1, 3), bool), ~np.eye(3, dtype=bool)]))])
    [occluded] = scorer.attributions(chain, ["occlusion"])["step"].values()
    assert occluded == pytest.approx(full - np.array(without))
    [paths] = scorer.attributions(chain, ["integrated-gradients"], units=["token"])["token"].values()
    assert np.isfinite(paths).all() and np.abs(paths).sum() > 0


def test_what_asks_for_more_than_a_chain_offers_is_refused(chatty):
    chain, scorer = encode_chain(chatty, PROBLEM, STEPS, "7"), AnswerScorer(chatty)
    for name in ("human", "lexicon", "self-explanation"):
        with pytest.raises(ConfigError, match=f"'{name}' does not work on chains"):
            scorer.attributions(chain, [name])


def test_chains_that_cannot_be_read_are_refused(chatty, toy):
    with pytest.raises(CapabilityError, match="'toy' is not a language model"):
        encode_chain(toy, PROBLEM, STEPS, "7")
    for steps, answer in (((), "7"), (("a", " "), "7"), (STEPS, " ")):
        with pytest.raises(DataError, match="problem 'p1': a chain needs an answer and steps"):
            encode_chain(chatty, PROBLEM, steps, answer)
    with pytest.raises(
        DataError, match=r"problem 'p1': prompt, chain and answer have \d+ tokens, and the model takes 25"
    ):
        encode_chain(chatty, PROBLEM, STEPS * 40, "7")


def test_a_long_chain_is_not_cut(chatty):
    chatty.codec.max_tokens = 4000
    chain = encode_chain(chatty, PROBLEM, STEPS * 60, "7")
    assert chain.tokens.n_units > 512
    assert (chain.steps.n_units, chain.tokens.truncated) == (180, False)
