"""The questions of a step-level run, in three rounds, and the replies."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ice_eval.cot.answers import Unreadable
from ice_eval.cot.asking import Asker
from ice_eval.cot.attributions import Probe, StepLens, Unexplained
from ice_eval.cot.cases import Case, evaluated, given_case, reading_of, written_case
from ice_eval.cot.config import CotConfig
from ice_eval.cot.given import Given
from ice_eval.cot.inside import Inside
from ice_eval.cot.ledger import Explained, Replied
from ice_eval.cot.requests import (
    chain_request,
    expected_requests,
    fills_of,
    first_rows,
    probe_request,
    probes_of,
    requests_of,
    row_request,
)
from ice_eval.cot.rows import StepRow, rationale_rows
from ice_eval.cot.tasks import Problem
from ice_eval.models import Model
from ice_eval.pipeline import Reporter
from ice_eval.records import Answer as Said
from ice_eval.records import Kind
from ice_eval.results import RowKey
from ice_eval.results.records import ChainInfo, TokenCount
from ice_eval.seeding import rng_for
from ice_eval.servers import Request, RequestProgress, Response, ResponseStore, addresses


class Outcome(NamedTuple):
    """What came of all problems; by the id of the problem, and of those that take part alone."""

    cases: list[Case]
    """Of every problem, in order."""
    replies: Mapping[str, Sequence[Replied]]
    """To every row."""
    explained: Mapping[str, Explained]
    """What attributions said."""


class Rounds:
    """Three rounds of questions: the chains; rows and probes; the rows of what the attributions chose."""

    def __init__(self, config: CotConfig, model: Model | None, asker: Asker, reporter: Reporter) -> None:
        self._config, self._asker, self._reporter = config, asker, reporter
        self._inside = None if model is None else Inside(model, seed=config.seed)
        self._replies: dict[str, Response] = {}
        self._read: Counter[str] = Counter()

    def evaluate(self, problems: Sequence[Problem | Given]) -> Outcome:
        """Ask all that there is to ask about some problems."""
        config = self._config
        cases = self._cases(problems)
        used = evaluated(cases)
        fills = fills_of(used, config)
        rows = {case.id: list(first_rows(case, config, fills[case.id])) for case in used}
        probes = {case.id: probes_of(case, config) for case in used}
        about = self._requests(used, rows, probes)
        self._ask(about, "about the chains", rest=2 * len(used) * len(config.attributions) * len(config.k))
        explained = {case.id: self._explain(case, probes[case.id]) for case in used}
        for case in used:
            rows[case.id] += rationale_rows(case, config, fills[case.id], explained[case.id].vectors)
            rows[case.id] += _probe_rows(case, probes[case.id])
        self._ask(self._requests(used, rows, {}), "about what explanations chose", rest=0)
        replies = {case.id: [self._replied(case, row) for row in rows[case.id]] for case in used}
        return Outcome(cases, replies, explained)

    def _replied(self, case: Case, row: StepRow) -> Replied:
        response = self._replies[row_request(case, row, self._config).key]
        reading = reading_of(response, case.problem.kind)
        self._read[reading.reason if isinstance(reading, Unreadable) else "read"] += 1
        return Replied(row, response, reading)

    def _requests(
        self,
        cases: Sequence[Case],
        rows: Mapping[str, Sequence[StepRow]],
        probes: Mapping[str, Mapping[str, Sequence[Probe]]],
    ) -> list[Request]:
        return [
            request
            for case in cases
            for request in requests_of(case, rows[case.id], probes.get(case.id, {}), self._config)
        ]

    def account(self, store: ResponseStore, about: ChainInfo) -> ChainInfo:
        """Return `about` with the counts and the addresses of the replies."""
        replies = [store.responses[key] for key in self._replies]
        served = addresses(replies)
        return replace(
            about,
            base_url=served.get("base_url", about.base_url),
            base_urls=tuple(served.get("base_urls", ())),
            responses=dict(Counter(str(reply.status) for reply in replies)),
            rows_read=dict(self._read),
            served_models=tuple(sorted({reply.model for reply in replies if reply.model})),
            fingerprints=tuple(sorted({reply.fingerprint for reply in replies if reply.fingerprint})),
            tokens=TokenCount(**store.billed._asdict()),
            n_charged=store.n_charged,
        )

    def _cases(self, problems: Sequence[Problem | Given]) -> list[Case]:
        policy = self._config.answer_step
        asked = [problem for problem in problems if isinstance(problem, Problem)]
        requests = {problem.id: chain_request(problem, self._config) for problem in asked}
        expected = expected_requests(problems, self._config)
        if self._asker.plan(requests.values()).n_to_ask:  # else the rows are known, and told exactly
            self._reporter.say(f"plan, for chains of six steps: {self._asker.plan(expected)}")
        self._reporter.start(len(expected))
        self._ask(list(requests.values()), None, rest=len(expected) - len(requests))
        return [
            given_case(problem, policy=policy)
            if isinstance(problem, Given)
            else written_case(problem, self._replies[requests[problem.id].key], policy=policy)
            for problem in problems
        ]

    def _ask(self, requests: Sequence[Request], what: str | None, *, rest: int) -> None:
        """Ask what is missing.

        Args:
            requests: All of a round.
            what: They are, for the plan; None where the user knows it already.
            rest: About how many come in later rounds.
        """
        new = {request.key: request for request in requests if request.key not in self._replies}
        if not new:
            return
        plan = self._asker.plan(new.values())
        if what is not None:
            self._reporter.say(f"{what}: {plan}")
        self._reporter.correct(len(self._replies) + len(new) + rest)
        told = plan.n_answered
        self._reporter.advance(told, scored=False)

        def advance(progress: RequestProgress) -> None:
            nonlocal told
            self._reporter.advance(progress.n_done - told)
            told = progress.n_done

        self._replies.update(self._asker.ask(new.values(), progress=advance))

    def _explain(self, case: Case, probes: Mapping[str, Sequence[Probe]]) -> Explained:
        vectors, said = {}, {}
        inside = None if self._inside is None else self._inside.of(case)
        for name, method in self._config.methods().items():
            replies = [self._replies[probe_request(case, probe, self._config).key] for probe in probes[name]]
            lens = StepLens(replies, rng_for(self._config.seed, case.id, f"attribution:{name}"), inside)
            problem = None
            try:
                vectors[name] = method.attribute(case, lens)
            except Unexplained as exc:
                problem = str(exc)
            texts = [reply.text for probe, reply in zip(probes[name], replies, strict=True) if probe.prompt]
            if texts or problem:
                said[name] = Said("\n".join(texts) or None, sum(_tokens(reply) for reply in replies), problem=problem)
        return Explained(vectors, said)


def _probe_rows(case: Case, probes: Mapping[str, Sequence[Probe]]) -> list[StepRow]:
    """The probes that are rows."""
    return [
        StepRow(
            RowKey(case.id, Kind.PROBE, "delete", "necessity", 1, index, attribution=name),
            probe.kept,
            tuple(case.texts[step] for step in probe.kept),
            probe.repeat,
        )
        for name, asked in probes.items()
        for index, probe in enumerate(asked)
        if probe.kept is not None
    ]


def _tokens(reply: Response) -> int:
    return 0 if reply.usage is None else sum(reply.usage)
