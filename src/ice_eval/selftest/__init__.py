"""Self-test of the method on models with known truth."""

from ice_eval.selftest.checks import Check
from ice_eval.selftest.run import FULL, QUICK, Report, Sizes, selftest

__all__ = ["FULL", "QUICK", "Check", "Report", "Sizes", "selftest"]
