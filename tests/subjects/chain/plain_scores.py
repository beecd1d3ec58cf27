"""What a model says of an answer, by plain forward passes: the reference for scores of chains."""

import torch

from ice_eval.subjects.chain import NumberAnswer, Problem

PROBLEM = Problem("p1", "How many films are 3 and 4?", (), None, NumberAnswer())


def answer_ids(model, answer):
    return model.codec.tokenizer(f" {answer}", add_special_tokens=False)["input_ids"]


def one_by_one(model, ids, answer):
    """Log-probability of an answer after some ids: a batch of one, the model's own logits, nothing shared."""
    after = answer_ids(model, answer)
    with torch.no_grad():
        logits = model.model(torch.tensor([[*ids, *after]])).logits[0].double()
    shares = torch.log_softmax(logits, dim=-1)
    return sum(float(shares[len(ids) - 1 + place, token]) for place, token in enumerate(after))
