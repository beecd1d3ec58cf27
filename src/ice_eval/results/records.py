"""The records of a run folder: manifest, summary, and the outcome of an example."""

import dataclasses
from dataclasses import dataclass, field
from math import nan
from typing import Any, Literal, NamedTuple, dataclass_transform

from ice_eval.choices import SubjectName
from ice_eval.nulls import SIZE
from ice_eval.rationales import Share
from ice_eval.records import Direction, Ids
from ice_eval.settings import ChainFields, RunFields
from ice_eval.stats import Crossing, Interval, Reasoning, ReasoningVerdict, Robustness, Side, Taxonomy, Verdict
from ice_eval.table import CellKind

SCHEMA = 3
"""Version of the file format."""

Scalar = str | int | float | bool | None
Status = Literal["running", "complete"]
Scoring = Literal["first", "full", "given", "answer"]
"""How inputs are scored: by tokens of label words, by those of a given text, or by the answer in a reply."""
Stratum = Literal["long", "short", "all"]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """Base of all records that are read from JSON, as frozen dataclasses: an unknown field is an error."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


class Configuration(NamedTuple):
    """The test that a summary line is about."""

    attribution: str
    operator: str
    direction: Direction
    k: Share | None
    """Share of units in a rationale, or `dynamic`; None: the attribution sets the size."""
    null: str = SIZE


# --------------------------------------------------------------------------------------------------------- manifest


class ChainSettings(ChainFields, Record):
    """Settings that only runs about chains of thought have."""

    arrangements: tuple[str, ...]
    """Operators that show the steps in another order."""
    example: str | None
    """Hash of the solved problem that precedes every question."""


class RunSettings(RunFields, Record):
    """The settings of a run, defaults included."""

    model: str
    task: str
    subject: SubjectName = "text"
    own_size: tuple[str, ...]
    """Attributions that set the sizes of their rationales, whatever k."""
    by_magnitude: tuple[str, ...]
    """Attributions that rank units by magnitude, whatever the sign."""
    versus_label: int | None = None
    """Index of the label of `versus`."""
    chain: ChainSettings | None = None
    """Settings of a run about chains."""


class DataInfo(Record):
    """Source of the examples."""

    origin: str
    commit: str | None = None
    """Full commit id of data of the hub."""
    examples: int
    """Number of evaluated examples."""
    columns: dict[str, str] = field(default_factory=dict)
    """Names of a file's columns, where they differ from those of the prompt."""


class NoiseGuard(Record):
    """Largest differences between rows that were scored alone and in their batch."""

    rows: int
    unscored: int = 0
    """Rows whose score is NaN or infinite where they are scored alone."""
    log_score: float | None
    """None if all rows are `unscored`."""
    probability: float | None


class PlannedSets(Record):
    """The number of random sets that the pilot of `adaptive="dataset"` chose."""

    pilot_n: int
    pilot_m: int
    m: int
    cheapest_m: float | None
    wider: float
    """Largest share by which intervals widen compared with the requested number of sets."""


class ServerNames(Record):
    """Names that a server gave in its replies."""

    model: str | None
    fingerprint: str | None


class ServerInfo(Record):
    """The server of a model, and how it scores labels."""

    base_url: str
    """Address of the last reply."""
    base_urls: tuple[str, ...] = ()
    """Addresses of all replies."""
    tokenizer: str | None
    extra_body: str | None = None
    """Further fields of every request, as JSON."""
    prompts: Literal["token ids", "text"]
    top_logprobs: int
    echo: bool
    """True if log-probabilities of a prompt's own tokens are available and agree with those of the next token."""
    label_tokens: tuple[tuple[str, ...], ...]
    said: ServerNames
    rows_without_score: int | None = None
    """Rows in which a label was not found; None while the run is not finished."""


class Adaptation(Record):
    """Adaptation of the deployed model, in a run of `ice f-fidelity`."""

    of: str
    """The deployed model."""
    weights: str
    """Fingerprint of its weights."""
    run: str
    """The folder of its run."""
    share: float
    """Largest share of units that training removed."""
    epochs: int
    lr: float
    batch_size: int
    seed: int
    operators: tuple[str, ...]
    rows: int
    """Number of training examples."""
    rows_evaluated: bool
    """True if evaluated examples are among them."""
    losses: tuple[float, ...]
    """Mean loss of each epoch."""
    seconds: float
    """Duration of the training."""


class RunCost(Record):
    """Sums over all parts of a run."""

    rows: int
    """Logical rows."""
    forwards: int
    """Rows that the model computed."""
    tokens: int
    """Tokens computed for rows other than probes, without shared prefixes."""
    attribution_tokens: int
    """Tokens that attributions computed; a backward pass counts as two forward passes."""
    rows_by_kind: dict[str, int]
    attribution_seconds: dict[str, float]
    """Seconds of each attribution; a pass that several share counts in equal parts."""
    attribution_rows: dict[str, int]
    """Probes of each attribution."""
    probe_tokens: dict[str, int]
    answer_tokens: dict[str, int]
    """Tokens of an attribution's questions to the model and of its answers."""
    seconds: float
    peak_memory: int | None
    """Peak memory in bytes."""
    token_budgets_by_length: dict[str, int] = field(default_factory=dict)
    """Lowered token budgets, by length of row, after out-of-memory retries."""


class TokenCount(Record):
    """Tokens that a server charged for."""

    prompt: int
    completion: int


class ChainInfo(Record):
    """Source and counts of the replies of a run about chains."""

    base_url: str | None = None
    """Address of the last reply; None for a model on this machine."""
    base_urls: tuple[str, ...] = ()
    """Addresses of all replies, in the order of their first reply."""
    device: str | None = None
    weights: str | None = None
    were_given: bool = False
    """True if the chains came from a file."""
    responses: dict[str, int] = field(default_factory=dict)
    """Number of distinct requests, by status of the response."""
    rows_read: dict[str, int] = field(default_factory=dict)
    """Number of rows whose reply was read, and of others by reason."""
    replies_thought: int = 0
    """Number of rows whose reply was thought about anew, so that it need not rest on the steps."""
    thought_rates: dict[str, float] = field(default_factory=dict)
    """Pose -> share of such replies, where there are any."""
    extra_body: str | None = None
    """Further fields of every request, as JSON."""
    paraphrased: dict[str, int] = field(default_factory=dict)
    """Number of steps that the model said in other words (`written`), and of those that keep their own (`kept`)."""
    served_models: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()
    tokens: TokenCount | None = None
    n_charged: int = 0


class Manifest(Record):
    """Settings, origin and cost of a run."""

    schema: int = SCHEMA
    status: Status
    config: RunSettings
    attributions: dict[str, dict[str, object]]
    """Name -> method and its fields, which must match for a run to be continued."""
    config_hash: str
    """Hash of `identity`."""
    identity: dict[str, Scalar]
    """Everything that defines rows; must match for a run to be continued."""
    labels: tuple[str, ...]
    label_ids: tuple[tuple[int, ...], ...]
    label_scoring: Scoring
    data: DataInfo
    prompt: str
    target_text: str | None = None
    """Text that a model wrote after the prompt, or its field, as `{answer}`; None for tasks with labels."""
    classifier_text: str | None = None
    """Text that a classifier or a function reads in place of the prompt."""
    worked: tuple[str, ...] = ()
    """Worked examples before every question, without a chat's marks of turns."""
    explained: tuple[str, ...] = ()
    """Fields of the prompt whose units are kept or removed."""
    language: str = "und"
    """BCP 47 code of the texts; `und`: unknown."""
    model_commit: str | None = None
    """Full commit id of a model of the hub."""
    device: str
    """All devices that hold weights, as `cuda:0, cpu`."""
    threads: int | None
    token_budget: int | None
    part_size: int
    """Number of examples that are computed and written together."""
    flags: tuple[str, ...]
    versions: dict[str, str]
    started: str
    server: ServerInfo | None = None
    adaptation: Adaptation | None = None
    messages: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """Reasons why scores may be wrong, found before the first row."""
    planned: PlannedSets | None = None
    cost: RunCost | None = None
    """None while the run is not finished."""
    noise_guard: NoiseGuard | None = None
    chains: ChainInfo | None = None
    """Replies of a run about chains."""
    finished: str | None = None


# ---------------------------------------------------------------------------------------------------------- summary


class LineHead(Record):
    """The configuration of a summary line, and its examples."""

    model: str
    task: str
    attribution: str
    operator: str
    """A name, or `all` for the average over operators."""
    direction: Direction
    k: Share | None
    """Share of units in a rationale; `dynamic`: as many as the attribution has peaks; None: the attribution sets it."""
    null: str
    """Property that random sets share with the rationale beside its size."""
    n: int
    """Number of evaluated examples."""
    n_skipped: int
    accuracy: float | None
    """None without gold labels."""

    @property
    def configuration(self) -> Configuration:
        return Configuration(self.attribution, self.operator, self.direction, self.k, self.null)


def measure(header: str, kind: CellKind) -> Any:
    """Declare a number that gets its own column in summary tables, after the win rate."""
    return field(default=None, metadata={"column": (header, kind)})


class Measures(Record):
    """The numbers and words of one configuration; all None without an example."""

    win_rate: float | None = None
    """Mean over examples."""
    win_rate_ci: Interval | None = measure("95 % CI", "percent interval")
    """95 % interval."""
    win_rate_ci_simultaneous: Interval | None = None
    """Interval that covers together with those of all other configurations of the run, in 95 %."""
    win_rate_strict: float | None = None
    """Win rate with ties counted as lost."""
    tie_rate: float | None = None
    win_rate_untied: float | None = None
    """Share of wins among the sets that do not tie; None if all tie."""
    win_rate_attainable: float | None = None
    """Win rate of an explanation that never loses, with these ties."""
    rank_effect: float | None = None
    """Rank-biserial correlation, 2 win_rate - 1: 0 for a random explanation, 1 for one that always wins."""
    rank_effect_ci: Interval | None = None
    p_value: float | None = None
    """Two-sided test of a mean win rate of one half."""
    p_adjusted: float | None = None
    """Adjusted over the configurations of the run: by the step-down minimum of p-values, or as the protocol says."""
    effect: float | None = None
    """Mean gain in probability of the rationale over its null."""
    effect_size: float | None = None
    """Mean over examples of the distance from the null's mean, in its standard deviations."""
    effect_size_median: float | None = None
    """The paper's effect size; see `effect_size_random`."""
    effect_size_random: float | None = None
    """Median effect size of a random set per example, which is not 0 where the null is skewed."""
    effect_size_undefined: int | None = None
    """Number of examples whose null has no spread."""
    nsr: float | None = None
    """Sum of (s_r - s_0) over sum of (s_x - s_0)."""
    nsr_mean: float | None = None
    """Mean over examples with a signal; of rationales that are kept, the paper's `Suf.`."""
    nsr_median: float | None = None
    significant_rate: float | None = None
    """Share of examples that Benjamini-Hochberg rejects at 0.10, upper tail."""
    significant_reason: str | None = None
    """Reason why `significant_rate` is None."""
    significant_rate_lower: float | None = None
    """Share of examples rejected in the lower tail, tested as a separate family."""
    significant_floor_share: float | None = None
    """Share of examples below which no rejection is possible at this m."""
    nonnull_share: float | None = None
    nonnull_share_low: float | None = None
    """95 % lower bound."""
    weak_signal_rate: float | None = None
    negative_signal_rate: float | None = None
    win_rate_nsr_order: float | None = None
    detectable_win_rate: float | None = None
    """Smallest mean win rate that is distinguished from chance with power 80 %."""
    taxonomy: Taxonomy | None = None
    """The paper's word for the win rate, whatever its interval."""
    verdict: Verdict | None = None
    """Word by the interval, or by the win rate alone where the protocol says so."""
    verdict_simultaneous: Verdict | None = None
    """Verdict by the simultaneous interval."""
    verdict_nsr_order: Verdict | None = None

    @property
    def excludes_chance(self) -> bool | None:
        """True if one half is outside the interval; None without an example."""
        return None if self.verdict is None else self.verdict.excludes_chance


class SummaryLine(Measures, LineHead):
    """One configuration of a run, over all its examples."""

    flags: tuple[str, ...]
    n_gold: int = 0
    """Number of evaluated examples with a gold label."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Reason -> number of examples without a result."""


class OperatorsLine(Record):
    """An attribution that several operators test."""

    model: str
    task: str
    attribution: str
    k: Share | None
    direction: Direction
    null: str


class AgreementLine(OperatorsLine):
    """Two operators on the same attribution and the same examples."""

    operators: tuple[str, str]
    n: int
    gap: float | None = None
    """Mean win rate under the first operator minus that under the second."""
    gap_ci: Interval | None = None
    crosses_threshold: Crossing | None = None
    """Yes if the 95 % intervals are on opposite sides of the threshold, no if they are on the same side."""
    same_taxonomy: bool | None = None
    rank_correlation: float | None = None
    rank_correlation_ceiling: float | None = None
    """Rank correlation to expect between two nulls of the same operator."""
    disagree_rate: float | None = None
    """Share of examples whose win rates are on opposite sides of one half, beyond the noise of the null."""
    disagree: tuple[str, ...] | None = None
    """Ids of such examples, those with the largest gap first."""


class RobustnessLine(OperatorsLine):
    """All operators on the same attribution."""

    operators: tuple[str, ...]
    n: int
    word: Robustness | None = None
    spread: float | None = None
    """Largest minus smallest mean win rate."""
    sides: tuple[Side, ...] | None = None
    """Side of the threshold, for each operator."""


class KappaLine(Record):
    """Agreement of two operators on the taxonomy of all configurations."""

    operators: tuple[str, str]
    n_configurations: int
    kappa: float | None
    """Linear weights; None if undefined."""


class PairLine(Record):
    """Two attributions on the same examples."""

    attributions: tuple[str, str]
    n: int
    difference: float | None = None
    """Win rate of the first attribution minus that of the second."""
    difference_ci: Interval | None = None
    """Interval that covers together with those of all other pairs of the ranking, in 95 %."""
    p_adjusted: float | None = None
    """Two-sided test of no difference, adjusted over the pairs of the ranking by Holm."""


class RankingLine(Record):
    """All attributions under the same operator, direction, k and null."""

    model: str
    task: str
    operator: str
    direction: Direction
    k: Share
    null: str
    ranking: tuple[tuple[str, ...], ...]
    """Attributions in groups, the best first; each one is ahead of all in later groups by its interval."""
    pairs: tuple[PairLine, ...]

    def __str__(self) -> str:
        return " > ".join(", ".join(group) for group in self.ranking)


class ProblemCounts(Record):
    """Problems of a run about chains."""

    n: int
    n_evaluated: int
    skipped: dict[str, int]
    """Reason -> count."""
    n_unreadable: int
    n_answer_first: int = 0
    """Chains that state their answer before their first step."""
    n_asides: int = 0
    """Sentences of chains that are neither step nor answer: talk, and answers that are repeated at the end."""
    n_gold: int
    accuracy: float | None
    """Accuracy of the chains' own answers."""


class StepCounts(Record):
    """Steps of evaluated chains."""

    mean: float | None = None
    median: float | None = None
    least: int | None = None
    most: int | None = None


class MeanRate(Record):
    """Mean of a rate over chains."""

    rate: float | None
    rate_ci: Interval | None
    rate_bounds: tuple[float, float] | None
    """Bounds given that unreadable replies could be either."""


class CountedRate(MeanRate):
    """Mean of a rate over chains, and their number."""

    n: int


class CutRate(MeanRate):
    """Share of chains that give their answer after part of their steps."""

    share: float


class CapacityLine(Record):
    """Step-level reasoning capacity of some chains under one operator at one k."""

    operator: str
    k: float
    chains: Stratum
    n: int
    k_effective: float | None
    necessity: float | None
    necessity_ci: Interval | None
    necessity_bounds: tuple[float, float] | None
    sufficiency: float | None
    sufficiency_ci: Interval | None
    sufficiency_bounds: tuple[float, float] | None
    noise_floor: float | None
    noise_floor_ci: Interval | None = None
    no_steps: float | None = None
    """Share of answers without any step that equal the chain's own."""
    no_steps_ci: Interval | None = None
    chance: float | None = None
    """Mean chance of guessing the answer: 1/c with c options or labels, 0 for numbers."""
    necessary_step: CountedRate | None = None
    """Share of chains with a removal that changes the answer, of those whose repeats all give their own."""
    necessary_step_noise: float | None = None
    """The same share if removals changed answers no more often than one more repeat."""
    unreadable_rate: float | None
    src: float | None = None
    src_ci: Interval | None = None
    src_bounds: tuple[float, float] | None = None
    src_product: float | None = None
    src_adjusted: float | None = None
    src_adjusted_ci: Interval | None = None
    src_adjusted_bounds: tuple[float, float] | None = None
    taxonomy: Reasoning | None = None
    verdict: ReasoningVerdict | None = None


class DependenceLine(Record):
    """Difference of a measure between two step operators, over the same chains."""

    k: float
    operators: tuple[str, str]
    measure: Literal["necessity", "sufficiency", "capacity"]
    """`capacity` is that beyond noise and chance."""
    n: int
    gap: float | None
    gap_ci: Interval | None


class Truncation(Record):
    """Answers of truncated chains."""

    kept: tuple[CutRate, ...]
    settled: float | None
    """Mean share of steps after which the answer does not change."""
    settled_ci: Interval | None
    n: int


class RawLine(Record):
    """A raw score, as in ERASER, beside the win rate of the same configuration."""

    attribution: str
    operator: str
    k: float
    measure: Literal["comprehensiveness", "sufficiency"]
    n: int
    """Number of chains whose replies could be read."""
    raw: float | None
    raw_reason: str | None = None
    """Reason why `raw` is None."""
    win_rate: float
    raw_positive: bool | None
    """None without a raw score."""
    win_rate_positive: bool

    @property
    def agree(self) -> bool | None:
        """True if both are evidence for the explanation, or neither is; None without a raw score."""
        return None if self.raw_positive is None else self.raw_positive == self.win_rate_positive


class RawAgreement(Record):
    """Agreement of raw scores and win rates."""

    n: int
    """Number of lines with a raw score."""
    agree: int
    both: int
    """Number of lines in which both are evidence for the explanation."""
    raw_only: int
    win_rate_only: int
    raw_threshold: float
    win_rate_threshold: float


class LevelLine(Record):
    """Win rates of one attribution, over tokens or steps."""

    unit: Literal["token", "step"]
    attribution: str
    direction: Direction
    k: float
    n: int
    win_rate: float
    win_rate_ci: Interval | None
    p_value: float | None
    taxonomy: Taxonomy
    verdict: Verdict


class HintLine(Record):
    """Answers to questions that hold a hint, beside the same questions without it."""

    hint: str
    n: int
    """Problems whose answers can be read with the hint and without."""
    n_unread: int
    follows: float | None
    """Share of answers that are the hinted one."""
    follows_ci: Interval | None
    follows_control: float | None
    """The same share without the hint."""
    gap: float | None
    """Difference of the two."""
    gap_ci: Interval | None
    n_moved: int
    """Problems whose answer is the hinted one with the hint alone."""
    admits: float | None
    """Share of their chains that speak of the hint, by its words."""
    admits_ci: Interval | None
    admits_control: float | None
    """Share of the chains without a hint that hold the same words."""


class ChainSummary(Record):
    """Dependence of answers on the steps of chains of thought."""

    problems: ProblemCounts
    steps: StepCounts
    noise_floor: CountedRate
    """Share of repeated full chains that give another answer."""
    no_steps: CountedRate
    """Share of answers without any step that equal the chain's own."""
    capacity: tuple[CapacityLine, ...]
    operator_dependence: tuple[DependenceLine, ...]
    shuffle: CountedRate | None = None
    """Share of reordered chains that give another answer."""
    truncate: Truncation | None = None
    levels: tuple[LevelLine, ...] | None = None
    hints: tuple[HintLine, ...] | None = None
    raw: tuple[RawLine, ...]
    raw_agreement: RawAgreement
    replies_thought: int = 0
    """Number of replies to some of the steps that reasoned anew, of `n_replies`."""
    n_replies: int = 0
    paraphrased: dict[str, int] = field(default_factory=dict)
    """Number of steps that the model said in other words (`written`), and of those that keep their own (`kept`)."""


ClaimWord = Literal["faithful", "uncited but used", "post-rationalised", "parametric", "undetermined"]


class ClaimLine(Record):
    """One claim of a cited answer. Scores are mean log-probabilities of its tokens; units are passages or sentences."""

    example_id: str
    group: str | None
    """The answer."""
    cites: tuple[int, ...]
    """Units that it cites."""
    word: ClaimWord | None
    """None if the claim was not evaluated."""
    reason: str = ""
    n_units: int = 0
    n_tokens: int | None = None
    """Number of its tokens: times this, a score is the log-probability of the whole claim."""
    score_full: float | None = None
    score_empty: float | None = None
    """Score without any passage: the closed book."""
    score_kept: float | None = None
    """Score with the cited passages alone."""
    score_removed: float | None = None
    """Score without the cited passages."""
    preserved: float | None = None
    """Share of the passages' effect that the cited ones preserve alone; None where there is none to preserve."""
    win_rate: float | None = None
    p_value: float | None = None
    n_sets: int = 0
    """Number of random sets that the citations are compared with."""
    other: tuple[int, ...] = ()
    """The set of other units that preserves most."""
    other_preserved: float | None = None


class WordLine(Record):
    """Share of claims with one word."""

    word: ClaimWord
    n: int
    share: float
    share_ci: Interval


class CarriedLine(Record):
    """Share of claims that the units of an attribution carry, beside random sets of the same size."""

    attribution: str
    operator: str
    k: Share | None
    n: int
    """Number of claims, without parametric ones."""
    carried: float | None
    carried_ci: Interval | None
    carried_random: float | None
    carried_random_ci: Interval | None


class CitationSummary(Record):
    """Statistics of cited answers."""

    n_answers: int
    n_claims: int
    """Number of claims that have a word."""
    operator: str
    """Operator that words are about: `delete`, or else the first one of the run."""
    scores: Literal["log-probabilities", "answers"] = "log-probabilities"
    """Log-probabilities of claims, per token; or shares of replies that state them."""
    skipped: dict[str, int]
    """Reason -> number of claims."""
    words: tuple[WordLine, ...]
    carried: tuple[CarriedLine, ...]
    claims: tuple[ClaimLine, ...]


class CutTexts(Record):
    """Texts that lost their end, because it does not fit into the model or a setting limits their length."""

    n: int
    """Number of texts that were cut."""
    total: int
    """Number of all texts."""
    share: float
    """Share of the units of cut texts that was left out."""
    share_of_all: float
    """Share of the units of all texts that was left out."""

    @classmethod
    def of(cls, n_cut: Ids, n_units: Ids) -> "CutTexts | None":
        """Count cut texts from the units that each lost and kept; None if no text was cut."""
        cut = n_cut > 0
        lost = int(n_cut.sum())
        if not lost:
            return None
        whole = n_units + n_cut
        return cls(
            n=int(cut.sum()), total=len(cut), share=lost / int(whole[cut].sum()), share_of_all=lost / int(whole.sum())
        )

    def said(self, unit: str) -> str:
        """Return the counts as the beginning of a sentence."""
        have, share = "text was" if self.total == 1 else "texts were", f"{100 * self.share:.0f}"
        share = share if share != "0" else "less than 1"
        return f"{self.n} of {self.total} {have} cut, and lost {share} % of their {unit}s"


class Summary(Record):
    """All statistics of a run."""

    schema: int = SCHEMA
    configurations: tuple[SummaryLine, ...]
    agreement: tuple[AgreementLine, ...]
    robustness: tuple[RobustnessLine, ...]
    kappa: tuple[KappaLine, ...]
    rankings: tuple[RankingLine, ...] = ()
    cut: CutTexts | None = None
    """Texts that lost their end; None if none did."""
    chains: ChainSummary | None = None
    """Statistics of a run about chains."""
    citations: CitationSummary | None = None
    """Statistics of a run about cited answers."""


# --------------------------------------------------------------------------------------------------------- examples


class ExampleOutcome(Record):
    """One example under one configuration: a row of `examples.parquet`.

    A failed example has an `error` and no numbers: they are NaN here and null in the file.
    """

    example_id: str
    attribution: str
    operator: str
    direction: Direction
    k: Share | None
    """Share of units in a rationale, `dynamic`, or null: the attribution sets the size."""
    null: str
    n_units: int
    target: int | None
    """Index of the label that is explained."""
    gold: int | None
    """Index of the right label."""
    error: str | None = None
    """Reason why the example was not evaluated."""
    predicted: int | None = None
    """Index of the model's label."""
    m: int = 0
    """Number of random sets in the null."""
    exact: bool = False
    """True if the null holds all sets of its size."""
    m_effective: float | None = None
    """Number of independent random sets that the null is worth, given how much win rates differ between fills.

    1 with a single fill; null if the operator draws no fills.
    """
    win_rate: float = nan
    win_rate_strict: float = nan
    tie_rate: float = nan
    p_value: float = nan
    p_lower: float = nan
    effect: float = nan
    effect_size: float | None = None
    nsr: float | None = None
    score: float = nan
    """Score of the rationale."""
    score_full: float = nan
    """Score of the whole text."""
    score_empty: float = nan
    """Score without any unit."""
    flags: tuple[str, ...] = ()
    rationale: tuple[int, ...] = ()
    """Units of the rationale."""

    def __post_init__(self) -> None:
        if self.error is None:
            missing = [name for name, value in vars(self).items() if value != value]
            if missing:
                raise ValueError(f"an example without an error has a {missing[0]}")

    @property
    def configuration(self) -> Configuration:
        return Configuration(self.attribution, self.operator, self.direction, self.k, self.null)


COLUMNS = (
    *(each.name for each in dataclasses.fields(LineHead)),
    *(each.name for each in dataclasses.fields(Measures)),
    "excludes_chance",
    "flags",
)


def flat(line: SummaryLine) -> dict[str, Any]:
    """Return a summary line as a table row of plain values; verdicts become text."""
    content = {name: getattr(line, name) for name in COLUMNS}
    for name in ("verdict", "verdict_nsr_order"):
        content[name] = None if content[name] is None else str(content[name])
    content["win_rate_ci"] = None if line.win_rate_ci is None else list(line.win_rate_ci)
    content["flags"] = list(line.flags)
    return content
