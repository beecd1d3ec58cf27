"""Chains and replies of a line each, for tests that need some."""

from ice_eval.servers import Response
from ice_eval.subjects.chain import FinalAnswer, NumberAnswer, Problem, given_steps
from ice_eval.subjects.chain.problems import Case


def case(identity, steps, answer="7"):
    chain = given_steps(steps)
    return Case(
        Problem(identity, "How many?", (), None, NumberAnswer()), chain, FinalAnswer(answer, "whole"), chain.steps
    )


def response(text, **fields):
    return Response(key="k", request="r", repeat=0, time="now", **{"status": "ok", "text": text, **fields})
