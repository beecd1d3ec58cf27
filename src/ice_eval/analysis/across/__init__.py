"""What a grid of runs says that no run says alone, one question a file; every answer is lines of numbers and notes."""

from ice_eval.analysis.across._base import (
    LONG_TEXT,
    GridLine,
    GridResults,
    GridRun,
    Question,
    TextFacts,
    grid_results,
    text_facts,
)
from ice_eval.analysis.across.guidelines import guidelines
from ice_eval.analysis.across.languages import languages
from ice_eval.analysis.across.operators import operators
from ice_eval.analysis.across.prompts import prompts
from ice_eval.analysis.across.sizes import sizes
from ice_eval.analysis.across.tuning import tuning
from ice_eval.analysis.across.worse_than_random import worse_than_random

QUESTIONS: dict[str, Question] = {
    "operator_dependence": operators,
    "anti_faithful": worse_than_random,
    "prompt_sensitivity": prompts,
    "k_sensitivity": sizes,
    "base_and_instruct": tuning,
    "languages": languages,
    "guidelines": guidelines,
}
"""All of them, by the name that JSON has, in the order in which they are printed."""

__all__ = [
    "LONG_TEXT",
    "QUESTIONS",
    "GridResults",
    "GridRun",
    "GridLine",
    "Question",
    "TextFacts",
    "grid_results",
    "guidelines",
    "languages",
    "operators",
    "prompts",
    "sizes",
    "text_facts",
    "tuning",
    "worse_than_random",
]
