"""Chains of thought as the subject of a run: steps are kept or removed, and the model is asked for its answer again.

To the engine a chain is an input like any other. Its tokens are whole steps, its scores say whether the reply gives the
chain's own answer:

```text
ids      [problem 7][step a][step b][step c]           ask: question 7 with the steps a, b, c
delete   [problem 7][step a][step c]                   ask: question 7 with the steps a, c
again    [problem 7][repeat 1][step a][step b][step c] ask the first once more
posed    [problem 7][pose 1][step a][step c]           ask in another way
scores   same, changed                                 from the answer in the reply
```
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ice_eval.attributions import Attribution, Lens
from ice_eval.attributions.steps import RATE, rating_request
from ice_eval.choices import Pose
from ice_eval.errors import BudgetError, CapabilityError, ConfigError, DataError, ModelError
from ice_eval.models import Labels, Model, Served
from ice_eval.operators import POSE_MARK, operators
from ice_eval.operators.steps import Arrangement
from ice_eval.pipeline import Reporter, Subject, prepare
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.rows import ExampleRows, reference_rows
from ice_eval.rationales import n_sets, set_size
from ice_eval.records import (
    NO_IDS,
    PROTECTED,
    Answer,
    Encoded,
    Example,
    Ids,
    Inputs,
    Kind,
    LogScores,
    PerUnit,
    Rows,
    Span,
    heads,
    marked,
)
from ice_eval.results import Manifest, RunFolder, chains, content_hash
from ice_eval.results.examples import InputRow
from ice_eval.results.ledger import NO_NAMES, Ledger
from ice_eval.results.records import ChainSettings
from ice_eval.seeding import rng_for
from ice_eval.servers import NO_REPLY, RESPONSES, Message, Request, RequestPlan, Response, ResponseStore, plan_requests
from ice_eval.settings import SETTINGS, ChainFields, RunConfig
from ice_eval.subjects.chain import chat, interventions
from ice_eval.subjects.chain.answers import AnswerReading, FinalAnswer, Unreadable
from ice_eval.subjects.chain.local import encode_chain, write_levels
from ice_eval.subjects.chain.model import LOOKS, MOST_REPEATS, ChainModel, StepCodec, rows_of
from ice_eval.subjects.chain.problems import (
    CUT_OFF,
    Case,
    GivenChain,
    Problem,
    ReasoningTask,
    WorkedExample,
    begins_anew,
    given_case,
    reading_of,
    reasoned_anew,
    written_case,
)
from ice_eval.subjects.chain.steps import given_steps
from ice_eval.tasks import AnyTask

LimitName = Literal["max_tokens", "answer_tokens"]
_FEW_CUT = 0.05
"""Share of replies that may be cut off without a message."""
_USUAL_STEPS, _USUAL_STEP = 6, "So many words fit into one usual step, with 3 + 4 = 7 and what follows from it."
"""A chain before any is known: for plans."""
_FIRST_REPLIES = 10
"""Replies about steps that are looked at before the others are asked."""
_READ = "read"
_MANY_TOKENS = 2048
"""Smallest limit to propose where most replies are cut off: models that think write that much."""
_AT_ONCE = (
    'Let the model answer at once, in another --out: --extra-body \'{"chat_template_kwargs": {"enable_thinking": '
    'false}}\' (vLLM, SGLang), --extra-body \'{"reasoning_effort": "minimal"}\' (OpenAI), or --poses prefill.'
)
_OTHER_MODEL = "Choose a model that answers at once, or --poses prefill."
_FURTHER = "The log holds several responses to a problem: the first is evaluated, and {:,} others are not."


@dataclass(frozen=True, kw_only=True)
class ChainPlan(RequestPlan):
    """The plan of the requests, with what is known beforehand of the problems."""

    n_problems: int
    skipped: dict[str, int]
    """User-supplied chains that cannot be evaluated, by reason; nothing is asked about them."""
    assumed: bool
    """True if no chain is written yet: six steps are assumed, and the plan is an estimate."""
    exceeds: str | None = None
    """The limit that the plan exceeds, if any."""
    n_further: int = 0
    """Further responses of a log to the same problems, which are not evaluated."""

    def __str__(self) -> str:
        lines = [super().__str__()]
        if self.skipped:
            reasons = "; ".join(f"{reason} ({count})" for reason, count in self.skipped.items())
            lines.insert(0, f"{sum(self.skipped.values()):,} of {self.n_problems:,} chains are skipped: {reasons}")
        if self.n_further:
            lines.insert(0, _FURTHER.format(self.n_further))
        if self.assumed:
            lines = [line.replace("at most about", "about") for line in lines]
            lines.append(
                "This is an estimate: chains are not known yet, and six steps are assumed. Longer chains take more "
                "requests; an upper limit is printed once they are written."
            )
        if self.exceeds is not None:
            after = "if the chains are as long, the run stops after writing them" if self.assumed else "the run stops"
            lines.append(f"This exceeds the limit of {self.exceeds}: {after}, before it asks about any step.")
        return "\n".join(lines)


@dataclass
class _Readings:
    """Counts of what was read in replies to some of the steps."""

    by_pose: dict[Pose, Counter[str]] = field(default_factory=dict)
    """Pose -> reason, or `read` -> count."""
    thought: Counter[Pose] = field(default_factory=Counter)
    """Replies that reasoned anew."""
    begun_anew: int = 0

    @property
    def total(self) -> Counter[str]:
        return sum(self.by_pose.values(), Counter[str]())


class ChainSubject(Subject):
    """The chains of some problems: written by the model, or supplied by the user."""

    observes_in_attribute = repeats_inputs = stores_answers = True
    task: AnyTask

    def __init__(
        self,
        task: ReasoningTask,
        problems: Sequence[Problem | GivenChain],
        *,
        fields: Mapping[str, Any],
        arrangements: Sequence[str] = (),
        worked_example: bool = False,
    ) -> None:
        """Take the problems of a task; `fields` are those of `ChainFields`."""
        if worked_example and task.example is None:
            raise ConfigError("a worked example comes from a task, and none with one is named; choose one with --task.")
        self.task, self.codec = task, StepCodec()
        self.arrangements = tuple(arrangements)
        self._fields, self._example = ChainFields(**fields), task.example if worked_example else None
        pairs = [(each, None) if isinstance(each, Problem) else (each.problem, each) for each in problems]
        self._asked = {problem.id: (problem, given) for problem, given in pairs}
        self._problems = [problem for problem, _ in self._asked.values()]
        self._given = [given for _, given in self._asked.values() if given is not None]
        self._unwritten = [problem for problem, given in self._asked.values() if given is None]
        self._n_further = sum(each.n_further for each in self._given)
        self._cases: dict[str, Case] = {}
        self._by_id: dict[int, Case] = {}
        self.fills: dict[str, Mapping[str, tuple[str, ...]]] = {}
        """Operator -> chain -> the text in place of each step, as far as they are known."""
        self.paraphrases: Mapping[str, str] = {}
        """Step -> the words that the model found for it."""
        self._pool: interventions.StepPool | None = None
        self._model: ChainModel | None = None
        self._stored: Manifest | None = None

    @property
    def examples(self) -> list[Example]:
        """The problems as examples; `complete` adds their chains."""
        found = []
        for problem, given in self._asked.values():
            fields = {chains.QUESTION: problem.shown}
            if problem.gold is not None:
                fields[chains.GOLD] = problem.gold.value
            if given is not None:
                fields[chains.CHAIN] = given.chain.response
                if isinstance(given.final, FinalAnswer):
                    fields[chains.ANSWER] = given.final.value
            found.append(Example(problem.id, fields))
        return found

    @property
    def evaluated(self) -> list[Case]:
        """The chains that are not skipped."""
        return [case for case in self._cases.values() if case.skip_reason is None]

    @property
    def model(self) -> ChainModel:
        assert self._model is not None, "a run has a model"
        return self._model

    def answered_by(self, model: Model | Served) -> ChainModel:
        """Return the model that this subject asks; what it answers is read here."""
        self._model = ChainModel(model, self)
        if self._fields.levels and self._model.inner is None:
            why = "tokens and steps side by side need a look into the model, which a server does not show"
            raise CapabilityError(f"{why}; load it here, without a server.")
        return self._model

    # ------------------------------------------------------------------------------------------- before the first row

    def identity(self) -> dict[str, Any]:
        plain = {name: value for name, value in vars(self._fields).items() if SETTINGS[name].role == "rows"}
        hashes = {
            "prompt": content_hash([*chat.PROMPTS, RATE, interventions.PARAPHRASE, interventions.HINTS]),
            "pose": self._fields.poses[0],
            "example": self._shown,
            "problems": content_hash([asdict(given or problem) for problem, given in self._asked.values()]),
            "extra_body": None if self._model is None else self._model.extra_text,
        }
        return {"task": self.task.name, "task_version": self.task.version, **hashes, **plain}

    @property
    def _shown(self) -> str | None:
        return None if self._example is None else content_hash(asdict(self._example))

    def labels(self, model: Model, config: RunConfig) -> Labels:
        return Labels(chains.LABELS, ((0,), (1,)), are_classes=True)

    def described(self, model: Model) -> dict[str, Any]:
        about = self.model.about(were_given=not self._unwritten)
        worked = () if self._example is None else ("\n".join(text for _, text in chat.asked_turns(self._example)),)
        return {"prompt": chat.CONCLUDE, "label_scoring": "answer", "chains": about, "worked": worked}

    def settings(self) -> dict[str, Any]:
        return {"chain": ChainSettings(arrangements=self.arrangements, example=self._shown, **vars(self._fields))}

    def extended_by(self, stored: Manifest) -> Subject:
        assert stored.config.chain is not None and stored.chains is not None, "the run is about chains"
        self.arrangements = tuple(dict.fromkeys([*stored.config.chain.arrangements, *self.arrangements]))
        before, now = stored.config.chain, self._fields
        self._fields = replace(
            now,
            levels=before.levels or now.levels,
            poses=tuple(dict.fromkeys([*before.poses, *now.poses])),
            hints=tuple(dict.fromkeys([*before.hints, *now.hints])),
        )
        self._stored = stored
        return self

    def notes(self, examples: Sequence[Example]) -> list[str]:
        unread = [each for each in self._problems if each.unread_gold is not None]
        if not unread:
            return []
        return [
            f"{len(unread)} of {len(self._problems)} gold answers cannot be read as {unread[0].kind.noun} (the first: "
            f"{unread[0].unread_gold!r:.60}, problem '{unread[0].id}'): these problems are evaluated, and do not count "
            "for the accuracy. Correct the data if that matters."
        ]

    def pool(self, engine: Engine, examples: Sequence[Example]) -> interventions.StepPool:
        if len(self._problems) < 2 and any(name.partition("@")[0] == "replace" for name in engine.operators):
            why = "the operator 'replace' takes steps of other problems, and there is one problem only"
            raise ConfigError(f"{why}; evaluate more, or leave it out.")
        self._pool = interventions.StepPool(self, engine.config.seed)
        return self._pool

    def start(self, engine: Engine, reporter: Reporter) -> None:
        """Let the model write the chains that are missing, all at once, and read every chain."""
        if self._n_further:
            reporter.say(_FURTHER.format(self._n_further))
        asked = {each.id: self._chain_request(each) for each in self._unwritten}
        missing = self.model.asker.plan(list(asked.values()))
        if missing.n_to_ask:
            self._refuse_costs(missing, "to write the chains")
            self.assumed()
            every = self.model.asker.plan([*asked.values(), *self._expected(engine), *self._most_rationales(engine)])
            reporter.say(f"plan, for chains of six steps: {self._plan_of(every, self.model.asker.over_budget(every))}")
            reporter.start(missing.n_to_ask, "chains")
        try:
            replies = self.model.asker.ask(list(asked.values()), progress=reporter.advance)
        finally:
            if missing.n_to_ask:
                reporter.stop()
        self._refuse_too_long(replies.values(), "max_tokens")
        read = partial(written_case, policy=self._fields.answer_step, source=self._fields.chain_from)
        written = [read(each, replies[asked[each.id].key]) for each in self._unwritten]
        self._set_cases(written)
        self._report_cut(Counter(_reason(case.answer) for case in written), "max_tokens", reporter)
        self._write_paraphrases(engine)
        expected = list(self._expected(engine))
        planned = self.model.asker.plan(expected)
        if not self._has_rationales(engine.config, planned):
            planned = self.model.asker.plan([*expected, *self._most_rationales(engine)])
        reporter.say(f"about the chains: at most {planned}")
        stored_chains = None if self._stored is None else self._stored.chains
        before, here = stored_chains and stored_chains.base_url, self.model.base_url
        if before is not None and before != here and planned.n_to_ask:
            reporter.say(f"{before} has answered so far; missing answers come from {here}.")
        self._refuse_costs(planned, "about the steps of the chains")
        if planned.n_to_ask:
            self._try_first(engine, reporter)

    def _has_rationales(self, config: RunConfig, planned: RequestPlan) -> bool:
        """Return True if the folder holds all rows of rationales, so that no more than the plan is asked."""
        stored = self._stored
        if planned.n_to_ask or stored is None or stored.status != "complete" or stored.config.chain is None:
            return False
        is_same_limit = stored.config.chain.answer_tokens == self._fields.answer_tokens
        return is_same_limit and set(config.attributions) <= set(stored.config.attributions)

    def _refuse_costs(self, planned: RequestPlan, purpose: str) -> None:
        """Raise BudgetError if a plan exceeds a limit, before anything of it is asked."""
        limit = self.model.asker.over_budget(planned)
        if limit is None or not planned.n_to_ask:
            return
        n_charged = self.model.asker.store.n_charged
        needed = f"up to {planned.n_to_ask:,} requests are needed {purpose}, beside {n_charged:,} so far"
        if planned.cost is not None:
            needed += f"; they cost at most about {planned.cost:.2f}, beside {planned.cost_so_far:.2f} spent"
        raise BudgetError(
            f"{needed}. The limit is {limit}, so no request was sent. Earlier answers are kept, and the same "
            "command with a higher limit continues; a smaller --n or --m takes fewer requests, in another --out."
        )

    def _try_first(self, engine: Engine, reporter: Reporter) -> None:
        """Ask a few requests of the run first: a model that reasons anew, or needs more tokens, shows in these."""
        first = list(self._first_rows(engine))
        replies = self.model.asker.ask([self.request(row) for row in first])
        self._refuse_too_long(replies.values(), "answer_tokens")
        n_thought = sum(map(reasoned_anew, replies.values()))
        if n_thought:
            reporter.say(
                f"{n_thought} of the first {len(replies)} replies to some of the steps reasoned again. Such replies "
                "may ignore the steps that they are given, so the run cannot show whether steps matter, and there "
                f"will be no verdict. {_AT_ONCE if self.model.inner is None else _OTHER_MODEL}"
            )
        read = self._read((row, replies[self.request(row).key]) for row in first)
        if read.begun_anew:
            reporter.say(
                f"{read.begun_anew} of the first replies to a begun turn (--poses prefill) start a new chain: "
                "the server does not continue the turn. So this pose says nothing about the steps and gets no verdict. "
                "Choose other poses, in another --out."
            )
        self._report_cut_replies(read, reporter, may_end=self.model.inner is None)

    def _first_rows(self, engine: Engine) -> Iterator[Ids]:
        """Yield the first rows of each pose, ten in all."""
        left = dict.fromkeys(self._fields.poses, -(-_FIRST_REPLIES // len(self._fields.poses)))
        for case in self.evaluated:
            for row in rows_of(self._rows_of(engine, case)):
                pose = self._pose_of(row)
                if left[pose]:
                    left[pose] -= 1
                    yield row
            if not any(left.values()):
                return

    def _read(self, replies: Iterable[tuple[Ids, Response]]) -> _Readings:
        """Count how replies read."""
        found = _Readings()
        for row, reply in replies:
            pose, reading, is_anew = self._pose_of(row), self._reading(row, reply), False
            if pose == "prefill" and isinstance(reading, FinalAnswer):  # a chain of its own: the turn is not continued
                is_anew = begins_anew(self._behind(row, reply), reading, self._by_id[int(row[0])].problem.kind)
            found.by_pose.setdefault(pose, Counter())[_reason(reading)] += 1
            found.thought[pose] += is_anew or reasoned_anew(reply)
            found.begun_anew += is_anew
        return found

    def _report_cut_replies(self, found: _Readings, reporter: Reporter, *, may_end: bool) -> None:
        """Report that most replies in a pose were cut off."""
        if found.by_pose:
            worst = max(found.by_pose.values(), key=lambda each: each[CUT_OFF] / each.total())
            may_end = may_end and not found.total[_READ]
            self._report_cut(worst, "answer_tokens", reporter, may_end=may_end)

    def _refuse_too_long(self, replies: Collection[Response], limit: LimitName) -> None:
        """Raise ModelError if the model cannot read any of some requests."""
        if replies and all(reply.status == "too_long" for reply in replies):
            raise ModelError(
                "no chain can be evaluated: every request is longer than the model reads "
                f"({next(iter(replies)).error}). Choose a model that reads more, or a smaller {SETTINGS[limit].option} "
                f"than {getattr(self._fields, limit)}: some servers leave room for that many tokens."
            )

    def _report_cut(
        self,
        readings: Counter[str],
        limit: LimitName,
        reporter: Reporter,
        *,
        may_end: bool = True,
        what: str | None = None,
    ) -> None:
        """Report replies that were cut off; raise ModelError if these are most and none was read, unless it may not."""
        n_cut, n, tokens = readings[CUT_OFF], readings.total(), getattr(self._fields, limit)
        if n_cut <= _FEW_CUT * n:
            return
        what = what or ("chains" if limit == "max_tokens" else "replies to some of the steps")
        message = (
            f"{n_cut} of {n} {what} were cut off at {tokens} tokens before they gave an answer. The same command with "
            f"{SETTINGS[limit].option} {max(_MANY_TOKENS, 4 * tokens)} continues, and asks only for those again."
        )
        if may_end and 2 * n_cut > n and not readings[_READ]:
            raise ModelError(f"no chain can be evaluated: {message}")
        reporter.say(message)

    def _set_cases(self, written: Sequence[Case]) -> None:
        """Set the cases: of all user-supplied chains, and of those that the model wrote."""
        read = partial(given_case, policy=self._fields.answer_step, source=self._fields.chain_from)
        cases = [*map(read, self._given), *written]
        self._cases = {case.id: case for case in cases}
        self._by_id = {self.codec.id_of(case.id, kind="problem"): case for case in cases}
        self.fills = {}

    def _write_paraphrases(self, engine: Engine) -> None:
        """Let the model say every step in other words; a step without usable ones keeps its own."""
        if not any(name.startswith("paraphrase") for name in engine.operators):
            return
        asked = {text: self._paraphrase_request(text) for case in self.evaluated for text in case.texts}
        # Other words are not known yet; with the steps themselves, rows would be those of the whole chain.
        self.fills = {"paraphrase": {case.id: tuple(f"So: {text}" for text in case.texts) for case in self.evaluated}}
        every = self.model.asker.plan([*self._expected(engine), *self._most_rationales(engine)])
        self.fills = {}
        if self.model.asker.plan(list(asked.values())).n_to_ask:
            self._refuse_costs(every, "about the steps of the chains, with those for other words")
        replies = self.model.asker.ask(list(asked.values()))
        found = {text: interventions.usable_paraphrase(text, replies[request.key]) for text, request in asked.items()}
        self.paraphrases = {text: words for text, words in found.items() if words is not None}

    def _paraphrase_request(self, step: str) -> Request:
        longest = 1 << len(step).bit_length()  # few limits: replies are looked up under each
        return self.question(interventions.PARAPHRASE.format(step=step), self._fields.answer_tokens + longest)

    def assumed(self) -> list[Encoded]:
        """Return the chains as inputs; each that is not written yet is taken to have six usual steps."""
        texts = ([f"{each.id}, {n}: {_USUAL_STEP}" for n in range(_USUAL_STEPS)] for each in self._unwritten)
        pairs = zip(self._unwritten, map(given_steps, texts), strict=True)
        self._set_cases([Case(each, own, each.gold or FinalAnswer("7", "whole"), own.steps) for each, own in pairs])
        if self._unwritten:
            other = tuple(f"Elsewhere, {number}. {_USUAL_STEP}" for number in range(_USUAL_STEPS))
            shown = {case.id: (other * len(case.steps))[: len(case.steps)] for case in self._cases.values()}
            self.fills = {"replace": shown, "paraphrase": shown}
        return [self._encoded(case) for case in self.evaluated]

    def plan(self, model: Model | Served, config: RunConfig, attributions: Mapping[str, Attribution]) -> ChainPlan:
        """Estimate what a run would ask; asks nothing. Chains that are not written yet are assumed."""
        self.assumed()
        engine = prepare(config, self.answered_by(model), self, attributions, self.examples)
        asks = [*map(self._chain_request, self._unwritten), *self._expected(engine), *self._most_rationales(engine)]
        found = plan_requests(asks, ResponseStore(Path(RESPONSES)), self.model.budget)  # never entered: reads nothing
        return self._plan_of(found, self.model.budget.exceeded(found.n_to_ask, found.tokens))

    def _plan_of(self, found: RequestPlan, exceeds: str | None) -> ChainPlan:
        reasons = Counter(case.skip_reason for case in self._cases.values() if case.skip_reason is not None)
        return ChainPlan(
            **vars(found),
            n_problems=len(self._problems),
            skipped=dict(reasons.most_common()),
            assumed=bool(self._unwritten),
            exceeds=exceeds,
            n_further=self._n_further,
        )

    def _rows_of(self, engine: Engine, case: Case) -> Inputs:
        """Return the rows of a chain, without those of rationales."""
        item, engine = self._encoded(case), replace(engine, attributions={}, probing={})
        rows = [reference_rows(engine, {0: item}), *ExampleRows(engine, 0, item, {}).new()]
        return Inputs.join([each.inputs for each in rows])

    def _expected(self, engine: Engine) -> Iterator[Request]:
        """Yield the requests about chains, without the rows of rationales: these are not known yet."""
        methods = engine.attributions.values()
        for case in self.evaluated:
            item, inputs = self._encoded(case), [self._rows_of(engine, case)]
            without = item.without(item.tokens_kept(~np.eye(item.n_units, dtype=bool)))
            for method in methods:
                samples = method.n_probes(item.n_units) // item.n_units
                inputs += [self.repeated(without, 1 + sample) for sample in range(samples)]
                if "generate" in method.needs:
                    yield self.question(*rating_request(item))
            yield from map(self.request, rows_of(Inputs.join(inputs)))
            if any(name.startswith("paraphrase") for name in engine.operators):
                yield from map(self._paraphrase_request, case.texts)
            if self._fields.hints:
                yield from self._hint_requests(case, engine.config.seed)

    def _most_rationales(self, engine: Engine) -> Iterator[Request]:
        """Yield as many requests as rationales may add, as long as any: sets that are not among the random ones."""
        config = engine.config
        for case in self.evaluated:
            full, n_steps = self._encoded(case).ids, len(case.steps)
            sizes = [size for size in self.sizes(n_steps, config) if n_sets(n_steps, size) > config.m + 1]
            most = len(config.attributions) * len(sizes) * len(config.operators) * len(config.directions)
            for place in range(most):  # repeats keep them apart
                yield replace(self.request(full), repeat=MOST_REPEATS + place)

    # ------------------------------------------------------------------------------------------------------- examples

    def complete(self, example: Example) -> Example:
        case = self._cases[example.id]
        fields = {chains.QUESTION: case.problem.question, chains.CHAIN: case.chain.response}
        if isinstance(case.answer, FinalAnswer):
            fields[chains.ANSWER] = case.answer.value
        if case.answer_first:
            fields[chains.ANSWER_FIRST] = "yes"
        if case.chain.asides:
            fields[chains.N_ASIDES] = str(len(case.chain.asides))
        if case.problem.gold is not None:
            fields[chains.GOLD] = case.problem.gold.value
        if case.problem.kind.choices:
            fields[chains.N_OPTIONS] = str(len(case.problem.kind.choices))
        return Example(example.id, fields, gold=None if case.is_right is None else int(not case.is_right))

    def encode(self, model: Model, config: RunConfig, example: Example, *, reserve: int) -> Encoded:
        """Return a chain with its steps as units; without any before it is written."""
        case = self._cases.get(example.id)
        return Encoded(example.id, NO_IDS, NO_IDS, NO_IDS, (), ()) if case is None else self._encoded(case)

    def _encoded(self, case: Case) -> Encoded:
        problem = self.codec.id_of(case.id, kind="problem")
        ids = np.array([problem, *map(self.codec.id_of, case.texts)], dtype=np.int64)
        fields = {chains.QUESTION: case.problem.shown}
        if isinstance(case.answer, FinalAnswer):
            fields[chains.ANSWER] = case.answer.value
        return Encoded(
            case.id,
            ids,
            np.zeros_like(ids),
            unit_of=np.arange(PROTECTED, len(case.steps)),
            spans=tuple(Span(chains.CHAIN, step.start, step.end) for step in case.steps),
            texts=case.texts,
            fields=fields,
        )

    def skip_reason(self, example: Example) -> str | None:
        return self._cases[example.id].skip_reason

    def target(self, config: RunConfig, example: Example, full: LogScores, empty: LogScores) -> int:
        return chains.LABELS.index("same")

    # ----------------------------------------------------------------------------------------------------------- rows

    def sizes(self, n_units: int, config: RunConfig) -> Sequence[int]:
        """Return the size of every share: capacity compares random sets, whatever explanations choose."""
        return list(dict.fromkeys(set_size(n_units, k) for k in config.k if isinstance(k, float)))

    def further_rows(self, engine: Engine, place: int, item: Encoded) -> list[Rows]:
        """Return the full chain for every repeat and pose, no step in every other pose, and steps in other orders."""
        every, config = np.ones((1, item.n_units), dtype=bool), engine.config
        found = [
            Rows.of(heads(1, example=place, kind=Kind.AGAIN, set=repeat), every, self.repeated(item.full(), repeat))
            for repeat in range(1, self._fields.repeats)
        ]
        for pose in self._fields.poses[1:]:
            found += self._posed_references(engine, place, item, pose)
        for name in self.arrangements:
            operator = operators.get(name)()
            assert isinstance(operator, Arrangement), "checked where the run begins"
            rng = rng_for(config.seed, item.example_id, "arrangements", name)
            at = {"example": place, "kind": Kind.ARRANGED, "operator": engine.operator_names.index(name)}
            for index, order in enumerate(operator.orders(item.n_units, config.m, rng)):
                head = heads(1, **at, set=index, size=len(order))
                shown = np.array([item.ids[0], *item.ids[1:][list(order)]], dtype=np.int64)
                kept = np.array(order, dtype=np.int64)
                found.append(Rows(head, kept, np.array([len(order)]), Inputs.one(shown)))
        return found

    def _posed_references(self, engine: Engine, place: int, item: Encoded, pose: Pose) -> Iterator[Rows]:
        """Yield the whole chain, as often as it is asked, and none of it, in another pose.

        They stand beside the rows of the first operator of that pose.
        """
        operator = next(index for index, name in enumerate(engine.operators) if name.endswith(f"@{pose}"))
        mark = POSE_MARK + get_args(Pose).index(pose)
        head = {"example": place, "kind": Kind.AGAIN, "operator": operator}
        for kept, inputs, repeats in ((True, item.full(), self._fields.repeats), (False, item.empty(), 1)):
            for repeat in range(repeats):
                own = heads(1, **head, set=repeat, size=item.n_units if kept else 0)
                keep = np.full((1, item.n_units), kept)
                yield Rows.of(own, keep, self.repeated(marked(inputs, mark), repeat))

    def repeated(self, inputs: Inputs, repeat: int) -> Inputs:
        return marked(inputs, repeat) if repeat else inputs

    def attribute(self, method: Attribution, lens: Lens, items: Sequence[Encoded]) -> list[PerUnit]:
        """Return a number per step; what a method sees inside the model is summed over the tokens of each step."""
        if not method.needs & LOOKS:
            return method.attribute(lens, items)
        found, scorer = [], self.model.scorer
        assert scorer is not None, "a model behind a server offers no look"
        for item in items:
            case = self._cases[item.example_id]
            try:
                chain = encode_chain(scorer.model, case.problem, case.texts, case.own.value)
            except DataError as exc:  # too long for the model
                lens.note(item, Answer(None, 0, problem=str(exc)))
                found.append(np.full(item.n_units, np.nan))
            else:
                found.append(scorer.attributions(chain, {lens.name: method}, seed=lens.seed)["step"][lens.name])
        return found

    def texts(self, inputs: Inputs) -> Mapping[int, str]:
        replies = [self.model.reply(self.request(row)) for row in rows_of(inputs)]
        return {place: reply.text for place, reply in enumerate(replies) if reply.answered}

    def is_outdated(self, inputs: Sequence[InputRow], ledger: Ledger) -> bool:
        """Return True if a reply is missing, or a chain that came late has changed the fills of others."""
        stored = [(fill.operator, row.example_id, fill.texts) for row in inputs for fill in row.fills]
        if any(self._pool is None or self._pool.texts(name, example) != texts for name, example, texts in stored):
            return True
        problems = [answer.problem for row in inputs for answer in row.answers.values()]
        reasons = [*problems, *(row.skip_reason for row in inputs)]
        if len(ledger.texts) < len(ledger) or any(NO_REPLY in (reason or "") for reason in reasons):
            return True
        if any(row.fields.get(chains.CHAIN) != self._cases[row.example_id].chain.response for row in inputs):
            return True
        for place, ids in enumerate(rows_of(ledger.inputs)):  # cut off, and is a longer one here?
            request = self.request(ids)
            known = self.model.replies(request)
            if known and (request.max_tokens not in known or known[request.max_tokens].text != ledger.texts[place]):
                return True
        return False

    # ------------------------------------------------------------------------------------------------------- requests

    def _chain_request(self, problem: Problem) -> Request:
        return self.question(chat.ask_prompt(problem), self._fields.max_tokens, before=chat.asked_turns)

    def _hint_requests(self, case: Case, seed: int) -> list[Request]:
        """Return the requests for a chain with each hint, and last for one without any."""
        shown = [interventions.hinted(case, hint, seed=seed) for hint in self._fields.hints]
        ask = partial(self.question, max_tokens=self._fields.max_tokens, before=chat.asked_turns)
        control = ask(chat.ask_prompt(case.problem), repeat=1)
        return [*(ask(chat.ask_prompt(case.problem, shown=each)) for each in shown), control]

    def request(self, row: Ids) -> Request:
        """Return the request for the answer to some of the steps."""
        repeat, pose = sum(index for index in row[1:].tolist() if index < POSE_MARK), self._pose_of(row)
        return self.question(
            self.prompt(row),
            self._fields.answer_tokens,
            repeat=repeat,
            before=chat.asked_turns if pose == "prefill" else partial(chat.concluded_turns, pose=pose),
            begun=self._begun(row) if pose == "prefill" else None,
        )

    def _begun(self, row: Ids) -> str:
        """Return some of the steps as the model's own turn, up to the answer."""
        return "\n".join([*self._steps_in(row), chat.BEGUN])

    def prompt(self, row: Ids) -> str:
        """Return the prompt for the answer to some of the steps."""
        return chat.conclude_prompt(self._by_id[int(row[0])].problem, self._steps_in(row), pose=self._pose_of(row))

    def _steps_in(self, row: Ids) -> list[str]:
        return [self.codec.text(index) for index in row[1:].tolist() if index >= MOST_REPEATS]

    def _pose_of(self, row: Ids) -> Pose:
        marks = [index - POSE_MARK for index in row[1:].tolist() if POSE_MARK <= index < MOST_REPEATS]
        pose: Pose = get_args(Pose)[marks[0]] if marks else self._fields.poses[0]
        return pose

    def question(
        self,
        prompt: str,
        max_tokens: int,
        *,
        repeat: int = 0,
        before: Callable[[WorkedExample], chat.Turns] | None = None,
        begun: str | None = None,
    ) -> Request:
        """Return a request with a prompt of its own, and perhaps the beginning of the reply."""
        turns = before(self._example) if before is not None and self._example is not None else ()
        if before is None:  # ratings of steps: a model that thinks needs as much for them as for an answer
            max_tokens = max(max_tokens, self._fields.answer_tokens)
        own = () if begun is None else (Message("assistant", begun),)
        request = Request(
            messages=(*turns, Message("user", prompt), *own),
            model=self.model.asked_as,
            max_tokens=max_tokens,
            temperature=self._fields.temperature,
            extra={**self.model.extra, **({} if begun is None else self.model.fields_of_begun_turn)},
            repeat=repeat,
        )
        return self.model.settled(request)

    def score(self, row: Ids, reply: Response) -> tuple[float, float]:
        """Return the log-scores of a reply: does it give the chain's own answer?"""
        case, reading = self._by_id[int(row[0])], self._reading(row, reply)
        if not isinstance(reading, FinalAnswer):
            return chains.UNREAD
        return chains.SAME if case.problem.kind.same(reading, case.own) else chains.CHANGED

    def _reading(self, row: Ids, reply: Response) -> AnswerReading:
        """Read the answer in a reply; that to a begun turn goes on behind its marker."""
        if self._pose_of(row) == "prefill":
            reply = replace(reply, text=f"{chat.BEGUN}{self._behind(row, reply)}")
        return reading_of(reply, self._by_id[int(row[0])].problem.kind)

    def _behind(self, row: Ids, reply: Response) -> str:
        """Return what a reply adds to a begun turn; some servers repeat the turn."""
        return reply.text.removeprefix(self._begun(row))

    # -------------------------------------------------------------------------------------------------- after the rows

    def finish(self, folder: RunFolder, config: RunConfig, reporter: Reporter) -> dict[str, Any]:
        if self._fields.levels and self.model.inner is not None:
            shares = [k for k in config.k if isinstance(k, float)]
            write_levels(folder, self.evaluated, self.model.inner, k=shares, seed=config.seed, reporter=reporter)
        if self._fields.hints:
            self._ask_hints(folder, config.seed, reporter)
        ledgers = (folder.ledger(part, NO_NAMES, inputs=True) for part in folder.parts())
        rows = (row for ledger in ledgers for row in rows_of(ledger.inputs))
        read = self._read((row, self.model.reply(self.request(row))) for row in rows)
        self._report_cut_replies(read, reporter, may_end=not self._fields.levels)
        steps = {text for case in self.evaluated for text in case.texts} if "paraphrase" in self.fills else set[str]()
        n_written = len(steps & set(self.paraphrases))
        account = self.model.account(
            were_given=not self._unwritten,
            rows_read=dict(read.total),
            replies_thought=read.thought.total(),
            paraphrased={"written": n_written, "kept": len(steps) - n_written} if steps else {},
            thought_rates={pose: n / read.by_pose[pose].total() for pose, n in read.thought.items() if n},
        )
        return {"chains": account}

    def _ask_hints(self, folder: RunFolder, seed: int, reporter: Reporter) -> None:
        """Ask every question with each hint and without, and write what came of it."""
        asked = {case.id: self._hint_requests(case, seed) for case in self.evaluated}
        replies = self.model.asker.ask([request for own in asked.values() for request in own])
        tests, read = list[dict[str, Any]](), Counter[str]()
        for case in self.evaluated:
            *own, control = (replies[request.key] for request in asked[case.id])
            read.update(_reason(reading_of(reply, case.problem.kind)) for reply in own)
            tests += interventions.hint_tests(case, dict(zip(self._fields.hints, own, strict=True)), control, seed=seed)
        interventions.write_hints(folder.path, tests)
        self._report_cut(read, "max_tokens", reporter, may_end=False, what="chains with a hint")


def _reason(reading: AnswerReading) -> str:
    """Return why an answer cannot be read, or `read`."""
    return reading.reason if isinstance(reading, Unreadable) else _READ
