r"""A language model on this machine scores its own answer after parts of its chain, and shows its attributions.

A chain of thought is an input of the model whose units are its tokens, or its steps:

```text
prompt of the chat …  ask_prompt(problem)  … assistant:   7 + 5 = 12 \n Half of 12 is 6 \n  Answer:   [ 6]
token units          -1                               0  1 2 3  4    5 …                     -1      scored
step units           -1                               0  0 0 0  0    1 …                     -1      scored
```

The model reads what it read and wrote when it answered: the prompt that asks for steps, the steps as its own turn, and
the beginning of the answer line. All but the steps is protected. The score is that of the answer that follows.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from ice_eval import stats
from ice_eval.attributions import Attribution, Lens, Observer, PerRow, method_of
from ice_eval.encoding import encode_text, following_ids
from ice_eval.errors import CapabilityError, ConfigError, DataError
from ice_eval.files import write_atomically
from ice_eval.models import Labels, Model
from ice_eval.operators.remove import Delete
from ice_eval.rationales import n_sets, null_of, random_sets, set_size, top_k, units_of
from ice_eval.records import NO_IDS, PROTECTED, Direction, Encoded, Inputs, KeepMask, KeepMasks, PerUnit, Span
from ice_eval.results import RunFolder
from ice_eval.results.chains import LEVELS, level_tests, sign_of
from ice_eval.scoring import Reporter, Scorer
from ice_eval.seeding import rng_for
from ice_eval.subjects.chain.chat import ask_prompt
from ice_eval.subjects.chain.problems import Case, Problem
from ice_eval.tasks import Piece

ChainUnit = Literal["token", "step"]

_CHAIN = "chain"
_ANSWER = "\nAnswer:"


@dataclass(frozen=True)
class EncodedChain:
    """A chain that a model wrote, cut in two ways, and the answer that it came to."""

    tokens: Encoded
    """With its tokens as units."""
    steps: Encoded
    """The same ids, with its steps as units; a line break belongs to the step before it."""
    answer: Labels
    """The tokens that are scored, each after those before it."""

    def cut_in(self, unit: ChainUnit) -> Encoded:
        return self.tokens if unit == "token" else self.steps


def encode_chain(model: Model, problem: Problem, steps: Sequence[str], answer: str) -> EncodedChain:
    """Encode a chain and the text that followed its `Answer:` as the model read them; DataError if they do not fit.

    Without a chat template the prompt is plain text, and the chain follows it.
    """
    if "generate" not in model.offers:
        raise CapabilityError(f"'{model.name}' is not a language model, so it cannot score a written answer.")
    if not answer.strip() or not steps or not all(step.strip() for step in steps):
        raise DataError(f"problem '{problem.id}': a chain needs an answer and steps, none of them empty.")
    framed = model.chats
    before, after = model.codec.chat_frame(()) if framed else ("", "\n\n")
    pieces = [Piece(before + ask_prompt(problem) + after), Piece("\n".join(steps), _CHAIN), Piece(_ANSWER)]
    tokens = encode_text(model.codec, pieces, example_id=problem.id, framed=framed)
    text = "".join(piece.text for piece in pieces)
    ids = following_ids(model.codec, text, f" {answer.strip()}", framed=framed)
    labels = Labels((answer.strip(),), (ids,), scoring="full")
    length = len(tokens.ids) + labels.reserve
    if length > model.codec.max_tokens:
        have = f"prompt, chain and answer have {length} tokens"
        raise DataError(f"problem '{problem.id}': {have}, and the model takes {model.codec.max_tokens}.")
    # Each token belongs to the step that it begins in.
    starts = np.cumsum([0, *(len(step) + 1 for step in steps[:-1])])
    step_of = np.searchsorted(starts, [span.start for span in tokens.spans], side="right") - 1
    without = set(range(len(steps))) - set(step_of.tolist())
    if without:
        raise DataError(f"problem '{problem.id}': the step '{steps[min(without)]}' has no token of its own.")
    spans = tuple(Span(_CHAIN, int(start), int(start) + len(step)) for start, step in zip(starts, steps, strict=True))
    unit_of = np.append(step_of, PROTECTED)[tokens.unit_of]  # index -1 reads the sentinel at the end
    return EncodedChain(tokens, replace(tokens, unit_of=unit_of, spans=spans, texts=tuple(steps)), labels)


STEP_ATTRIBUTIONS = ("attention", "gradient")
"""Attributions that need one forward and backward pass."""
_OFFERED = frozenset({"attention_maps", "attentions", "embeddings", "gradients", "values"})
"""Needs of attributions that a chain offers; there are no other texts to count words in."""


class AnswerScorer:
    """Scores the answers of chains with one model.

    The score is the log-probability of the answer's tokens by the chain rule, from a float32 head. What is not kept is
    deleted. Rows of a chain share what stands before it, equal rows are computed once, and batches are packed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.notes: list[str] = []
        """Remarks for the user on how the model is run; filled by the first chain."""
        self._checked = False

    def scores(self, chain: EncodedChain, rows: Sequence[tuple[ChainUnit, KeepMasks]]) -> PerRow:
        """Return the log-probability of the answer when the units of each row stay, (rows,); all in one stream."""
        self._check(chain)
        inputs = Inputs.join([Delete().build(chain.cut_in(unit), keep, fills=NO_IDS) for unit, keep in rows])
        scorer = Scorer(self.model, chain.answer, budget=self.model.default_budget())
        found: PerRow = scorer.score(inputs, prefix=chain.tokens.content.start)[:, 0]
        return found

    def attributions(
        self,
        chain: EncodedChain,
        methods: Mapping[str, Attribution] | Sequence[str] = STEP_ATTRIBUTIONS,
        *,
        units: Sequence[ChainUnit] = ("step",),
        seed: int = 0,
    ) -> dict[ChainUnit, dict[str, PerUnit]]:
        """Return a number per token, or per step, where those of its tokens are summed, by unit and method.

        Attention is that of the last token before the answer. Gradients are those of the answer's log-probability. All
        methods and units share one forward and backward pass. Methods that probe (`occlusion`, `lime`) remove units of
        the kind asked for.
        """
        self._check(chain)
        chosen = methods if isinstance(methods, Mapping) else {name: method_of(name) for name in methods}
        for name, method in chosen.items():
            if method.needs - _OFFERED or method.sized:
                raise ConfigError(f"the attribution '{name}' does not work on chains of thought.")
        needs = frozenset[str]().union(*(method.needs for method in chosen.values()))
        targets = {chain.tokens.example_id: 0}
        observer = Observer(self.model, chain.answer, targets, needs & {"attentions", "gradients"})
        found: dict[ChainUnit, dict[str, PerUnit]] = {unit: {} for unit in units}
        for unit in units:

            def probed(
                _: Sequence[Encoded], masks: Sequence[KeepMasks], repeat: int, unit: ChainUnit = unit
            ) -> list[PerRow]:
                return [self.scores(chain, [(unit, np.asarray(keep))]) for keep in masks]

            for name, method in chosen.items():
                lens = Lens(observer, method.needs, seed, name, prober=probed)
                [found[unit][name]] = method.attribute(lens, [chain.cut_in(unit)])
        return found

    def _check(self, chain: EncodedChain) -> None:
        """Compare fast and plain scores once before anything depends on them."""
        if not self._checked:
            self._checked, item = True, chain.tokens
            rows = Inputs.join([item.full(), item.empty()])
            self.notes = self.model.check(rows, chain.answer, prefix=item.content.start)


# Tokens and steps side by side: the same chains, the same attributions, one score, two units.

_SETS = 50
"""Random sets of each size."""
_COMPARED = ("win_rate", "tie_rate", "p_value", "p_lower", "effect_size")
_DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
_UNITS: tuple[ChainUnit, ...] = get_args(ChainUnit)


def answer_tests(
    scorer: AnswerScorer,
    chain: EncodedChain,
    *,
    attributions: Sequence[str] = STEP_ATTRIBUTIONS,
    k: Sequence[float] = (0.2,),
    directions: Sequence[Direction] = _DIRECTIONS,
    units: Sequence[ChainUnit] = _UNITS,
    m: int = _SETS,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Test attributions of one chain, with tokens and with steps as units: lines of `levels.jsonl`.

    A line compares the `rationale`, the top `size` of `n_units` units, with `m` random sets of as many (`exact`: all
    other sets there are). Scores are log-probabilities of the model's own answer: of the rationale (`score`), of the
    sets (`null`), after the whole chain (`score_full`) and after no step (`score_empty`). It wins against a set
    if the answer stays more probable when it is kept (sufficiency), or gets less probable when it is removed
    (necessity). `effect_size` is the distance from the mean of the sets in their standard deviations; None where they
    do not differ.

    The sets of a problem, unit and size are drawn once, whatever the attributions. A chain of a single unit has nothing
    to compare and gives no line.
    """
    problem = chain.tokens.example_id
    counts = {unit: n_units for unit in units if (n_units := chain.cut_in(unit).n_units) > 1}
    if not counts:
        return []
    vectors = scorer.attributions(chain, attributions, units=list(counts), seed=seed)
    sets: dict[tuple[ChainUnit, int], tuple[KeepMasks, dict[str, KeepMask]]] = {}
    rows: dict[tuple[ChainUnit, int, Direction], KeepMasks] = {}  # random sets, then the rationale of each attribution
    for unit, n_units in counts.items():
        for size in dict.fromkeys(set_size(n_units, share) for share in k):
            drawn = random_sets(n_units, size, m + 1, seed=seed, example_id=problem)
            rngs = {name: rng_for(seed, problem, "ties", name) for name in attributions}
            tops = {name: top_k(vectors[unit][name], size, rng=rng) for name, rng in rngs.items()}
            sets[unit, size] = drawn, tops
            keep = np.concatenate([drawn, np.stack(list(tops.values()))])
            rows |= {(unit, size, each): keep if each == "sufficiency" else ~keep for each in directions}
    all_or_none = np.array([[True], [False]]).repeat(chain.steps.n_units, axis=1)
    scores = scorer.scores(chain, [("step", all_or_none), *((unit, keep) for (unit, _, _), keep in rows.items())])
    full, empty = scores[:2].tolist()
    scored = np.split(scores[2:], np.cumsum([len(keep) for keep in rows.values()])[:-1].tolist())
    scores_of = dict(zip(rows, scored, strict=True))
    tests = []
    for unit, name, direction, share in itertools.product(counts, attributions, directions, k):
        size = set_size(counts[unit], share)
        (drawn, tops), own = sets[unit, size], scores_of[unit, size, direction]
        score = float(own[len(drawn) + list(tops).index(name)])
        null = null_of(tops[name], drawn, m)
        compared = stats.compare(sign_of(direction) * score, sign_of(direction) * own[: len(drawn)][null])
        about = {"problem_id": problem, "unit": unit, "attribution": name, "direction": direction, "k": share}
        about |= {"n_units": counts[unit], "size": size, "rationale": units_of(tops[name]), "m": len(null)}
        about["exact"] = n_sets(counts[unit], size) <= m + 1
        about |= {each: getattr(compared, each) for each in _COMPARED}
        about |= {"score": score, "score_full": full, "score_empty": empty}
        tests.append({**about, "null": tuple(own[: len(drawn)][null].tolist())})
    return tests


def write_levels(
    folder: RunFolder, cases: Sequence[Case], model: Model, *, k: Sequence[float], seed: int, reporter: Reporter
) -> None:
    """Test the attributions of every chain in both units; what the file holds already is kept."""
    scorer = AnswerScorer(model)
    kept = list(level_tests(folder.path))
    known = {(line["problem_id"], line["k"]) for line in kept}
    reporter.say(f"tokens and steps: {len(cases)} chains, {_SETS} random sets each.")
    for case in cases:
        missing = [share for share in k if (case.id, share) not in known]
        if not missing:
            continue
        try:
            chain = encode_chain(model, case.problem, case.texts, case.own.value)
            kept += answer_tests(scorer, chain, k=missing, seed=seed)
        except DataError as exc:  # too long for the model's window
            kept += ({"problem_id": case.id, "k": share, "error": str(exc)} for share in missing)
        with write_atomically(folder.path / LEVELS) as stream:
            for line in kept:
                stream.write(json.dumps(line, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n")
