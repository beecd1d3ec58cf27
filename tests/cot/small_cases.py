"""Chains and replies of a line each, for tests that need some."""

from ice_eval.cot import Answer, Number, Problem, given_steps
from ice_eval.cot.cases import Case
from ice_eval.servers import Response


def case(identity, steps, answer="7"):
    chain = given_steps(steps)
    return Case(Problem(identity, "How many?", (), None, Number()), chain, Answer(answer, "whole"), chain.steps)


def response(text, **fields):
    return Response(key="k", request="r", repeat=0, time="now", **{"status": "ok", "text": text, **fields})
