"""Chains of thought, step by step: steps, final answers, and the problems that are reasoned about."""

from ice_eval.cot.steps import Chain, Step, given_steps, split_steps

__all__ = ["Chain", "Step", "given_steps", "split_steps"]
