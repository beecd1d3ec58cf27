"""Every setting of a run, declared once.

The options of `ice run`, `ice plan` and `ice validate`, the keys of `--config` files and grids, the arguments of
`evaluate`, the manifest, the identity of a run and the reference page follow from the declarations below. A new setting
of a run is a field of `RunFields`, and an argument of `evaluate` and `plan`.
"""

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, get_args, get_origin

from ice_eval._registry import did_you_mean
from ice_eval.choices import (
    DYNAMIC,
    PROTOCOLS,
    SUBJECTS,
    Adaptive,
    AnswerStep,
    Calibration,
    ChainFrom,
    Direction,
    FillMode,
    Hint,
    LabelScoring,
    Order,
    Pose,
    Protocol,
    ProtocolName,
    Scope,
    Share,
    Sign,
    SubjectName,
    Unit,
    Until,
)
from ice_eval.errors import ConfigError

Kind = Literal["text", "names", "shares", "count", "number", "flag", "file", "pairs"]
"""Form of a value: `names` and `shares` are comma-separated lists, and `pairs` is a repeatable option."""
Role = Literal["rows", "adds", "computes"]
"""Effect of a setting: it defines rows, may be added to a folder later, or only changes how rows are computed."""

WHAT, HOW, CHAINS, WHERE, SERVER = (
    "What is evaluated", "How it is tested", "Chains of thought", "Where the model computes", "A model behind a server",
)  # fmt: skip
"""Headings of help."""
REQUIRED: Any = ...
"""Default of a required setting."""
DEFAULT_M, SEQUENTIAL_M = 50, 499
"""Default number of random sets, and the smallest limit of a sequential test: p-values down to 0.002."""
LARGEST = 2**63 - 1
"""Largest whole number of a setting: arrays hold no larger ones."""
_KINDS: Mapping[type, Kind] = {bool: "flag", int: "count", float: "number", tuple: "names"}
_ALL: tuple[SubjectName, ...] = get_args(SubjectName)
_TEXTS: tuple[SubjectName, ...] = ("text", "context")
"""Subjects that a model reads as tokens."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of a run."""

    name: str
    help: str
    panel: str
    default: Any = None
    """None if the default depends on other settings."""
    flag: str = ""
    """Name on the command line, if it differs."""
    kind: Kind = "text"
    metavar: str | None = None
    everyday: bool = False
    """True if the short help shows it."""
    role: Role = "rows"
    optional: bool = False
    """True if a manifest may lack the setting, and the identity of a run does not name it where it is None."""
    subjects: tuple[SubjectName, ...] = ("text",)

    @property
    def option(self) -> str:
        """The option of the command line, as `--n-fills`."""
        return "--" + (self.flag or self.name).replace("_", "-")


def setting(value: object, *, depends: bool = False, **declared: Any) -> Any:
    """Return a dataclass field that declares a `Setting`; with `depends`, users give None for its default."""
    kind = declared.pop("kind", _KINDS.get(type(value), "text"))
    declared = {"panel": HOW, "kind": kind, "default": None if depends else value, **declared}
    metadata = {"setting": declared, "value": value, "description": declared["help"]}  # for JSON Schemas
    return field(default=None, metadata=metadata) if declared.get("optional") else field(metadata=metadata)


_of_all = partial(setting, subjects=_ALL)
_of_texts = partial(setting, subjects=_TEXTS)
_of_chains = partial(setting, panel=CHAINS, subjects=("chain",))


@dataclass(frozen=True, kw_only=True)
class RunFields:
    """The settings that define what is tested."""

    attributions: tuple[str, ...] = _of_all(
        ("attention", "gradient", "random"), panel=WHAT, role="adds", everyday=True, metavar="NAMES", depends=True,
        help="By default attention,gradient,random; see `ice list`.",
    )  # fmt: skip
    operators: tuple[str, ...] = _of_all(
        ("delete", "infill"), role="adds", everyday=True, metavar="NAMES", depends=True,
        help="By default delete,infill; see `ice list operators`.",
    )  # fmt: skip
    directions: tuple[Direction, ...] = _of_texts(
        ("sufficiency",), role="adds", flag="direction", everyday=True, metavar="NAMES", depends=True,
        help="sufficiency (keep, the default) and/or necessity (remove).",
    )  # fmt: skip
    k: tuple[Share, ...] = _of_all(
        (0.2,), role="adds", kind="shares", everyday=True, metavar="SHARES",
        help="Shares of units in a rationale, or dynamic.",
    )  # fmt: skip
    n: int = _of_all(
        500, panel=WHAT, everyday=True, depends=True, help="Examples: by default 500 texts or claims, or 100 chains."
    )
    m: int = _of_all(
        DEFAULT_M,
        everyday=True,
        depends=True,
        help=f"Random sets per rationale: by default {DEFAULT_M}, or 20 of steps.",
    )
    nulls: tuple[str, ...] = _of_texts(
        ("size",), role="adds", flag="null", metavar="NAMES",
        help="Properties that random sets share with the rationale; see `ice list nulls`.",
    )  # fmt: skip
    adaptive: Adaptive | None = _of_texts(
        None, metavar="WORD",
        help="Fewer random sets: dataset (a pilot decides) or examples (until each test is decided, by default at most "
        f"{SEQUENTIAL_M}).",
    )  # fmt: skip
    until: Until | None = _of_texts(None, metavar="WORD", help="decided: stop as soon as every verdict is settled.")
    seed: int = _of_all(0, everyday=True, help="Defines random sets, fills and the random control.")
    unit: Unit = _of_texts(
        "token", everyday=True, metavar="WORD", depends=True,
        help="Unit to remove: token (by default), word, sentence or passage.",
    )  # fmt: skip
    scope: Scope = setting(
        "content", depends=True, metavar="WORD",
        help="Removable tokens: content (by default) or prompt (the template's too).",
    )  # fmt: skip
    target: str = setting("predicted", metavar="LABEL", help="Label to explain: predicted, gold, or a label by name.")
    versus: str | None = setting(
        None, depends=True, optional=True, metavar="LABEL",
        help="Explain why --target LABEL rather than this label: scores are log p(target) - log p(versus).",
    )  # fmt: skip
    sign: Sign = _of_texts(
        "support", depends=True, metavar="WORD",
        help="Order of signed attributions: support of the label (by default) or abs, the magnitude.",
    )  # fmt: skip
    fills: FillMode = _of_texts(
        "shared", depends=True, metavar="WORD",
        help="Fills of infill: shared by all rows (by default) or own, drawn for each row.",
    )  # fmt: skip
    n_fills: int = _of_texts(
        PROTOCOLS["default"].n_fills, depends=True,
        help=f"Fills per example: by default {PROTOCOLS['default'].n_fills}, at most one per random set.",
    )  # fmt: skip
    label_scoring: LabelScoring | None = setting(
        None, metavar="WORD", help="first (token) or full (chain rule); by default whichever decides."
    )
    calibration: Calibration = setting(
        "none", metavar="WORD", help="contextual (divide scores by the label prior of the empty input) or none."
    )
    order: Order | None = setting(
        None, depends=True, optional=True, metavar="WORD",
        help="Rows of a hub data set: shuffled (by default) or stored.",
    )  # fmt: skip
    max_characters: int | None = setting(
        None, depends=True, optional=True, kind="count",
        help="Cut explained texts to this length; by default, to what the model can read.",
    )  # fmt: skip
    min_confidence: float | None = setting(
        None, depends=True, optional=True, kind="number", metavar="SHARE",
        help="Skip examples whose explained label is less probable than this.",
    )  # fmt: skip
    eraser: bool = setting(False, role="adds", help="Also score the rows of ERASER's measures; see `ice measures`.")
    protocol: ProtocolName = setting(
        "default", metavar="WORD",
        help="Choices to follow: default, paper, released (the paper's package) or authors (its scripts).",
    )  # fmt: skip

    @property
    def choices(self) -> Protocol:
        """The choices of the protocol."""
        return PROTOCOLS[self.protocol]

    @property
    def reading(self) -> dict[str, Any]:
        """Settings of how data are read, as `tasks.read_as` takes them."""
        names = ("order", "max_characters")
        return {**{name: getattr(self, name) for name in names}, "max_tokens": self.choices.max_tokens}


_USUAL = {each.name: each.metadata["value"] for each in fields(RunFields)}
_USUAL_FOR_CHAINS: Mapping[str, Any] = {
    "attributions": ("self-report", "position", "length", "random"), "operators": ("delete",),
    "directions": ("sufficiency", "necessity"), "n": 100, "m": 20, "unit": "step", "n_fills": 1,
}  # fmt: skip
_USUAL_OF: Mapping[SubjectName, Mapping[str, Any]] = {
    "text": {},
    "chain": _USUAL_FOR_CHAINS,
    "context": {
        "attributions": ("cited", "bm25", "occlusion", "random"), "operators": ("delete", "infill"),
        "directions": ("sufficiency", "necessity"), "unit": "passage", "n_fills": 4,
    },
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ChainFields:
    """The settings that define rows of chains of thought, and nothing else."""

    repeats: int = _of_chains(3, help="Answers to the full chain, for the noise floor.")
    temperature: float | None = _of_chains(
        0.0, kind="text", metavar="NUMBER", help="Sampling temperature, or server for the server's own."
    )
    max_tokens: int = _of_chains(
        1024, subjects=("chain", "context"), role="adds",
        help="Longest chain or cited answer, in tokens. Raising it asks again for chains that were cut off.",
    )  # fmt: skip
    answer_tokens: int = _of_chains(
        128, role="adds",
        help="Longest reply to some of the steps, in tokens. Raising it asks again for replies that were cut off.",
    )  # fmt: skip
    chain_from: ChainFrom = _of_chains(
        "auto", metavar="WORD",
        help="Chain of a model that thinks first: thinking, visible, or auto (thinking if there is any).",
    )  # fmt: skip
    answer_step: AnswerStep = _of_chains(
        "drop", metavar="WORD",
        help="Steps that state the final answer: drop or keep. Kept, every chain looks sufficient.",
    )  # fmt: skip
    poses: tuple[Pose, ...] = _of_chains(
        ("user",), role="adds", metavar="NAMES",
        help="How steps are shown: user (with a request to rely on them), neutral (without) or prefill (as the "
        "model's turn). Tables are about the first.",
    )  # fmt: skip
    hints: tuple[Hint, ...] = _of_chains(
        (), role="adds", metavar="NAMES",
        help="Put a wrong answer into the question, as opinion, authority or metadata: does the chain admit it?",
    )  # fmt: skip
    levels: bool = _of_chains(False, role="adds", help="Also test attention and gradient in tokens; for local models.")


class RunConfig(RunFields):
    """Settings with defaults; `run_config` checks them and fills in defaults that depend on others."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**_USUAL, **given})

    def extended_by(self, stored: RunFields) -> "RunConfig":
        """Return this configuration, preceded by the stored one's lists; every operator is in all poses."""
        union: dict[str, Any] = {
            name: tuple(dict.fromkeys([*getattr(stored, name), *getattr(self, name)])) for name in ADDABLE
        }
        plain = [name for name in union["operators"] if "@" not in name]
        poses = dict.fromkeys(name.partition("@")[2] for name in union["operators"] if "@" in name)
        posed = [f"{name}@{pose}" for pose in poses for name in plain]
        union["operators"] = tuple(dict.fromkeys([*union["operators"], *posed]))
        return replace(self, **union, eraser=self.eraser or stored.eraser)


RUN = tuple(Setting(name=each.name, **each.metadata["setting"]) for each in fields(RunFields))
CHAIN = (
    Setting(
        name="responses", panel=WHAT, kind="file", everyday=True, metavar="FILE", subjects=("chain",),
        help="Your chains: .jsonl, or a log of inspect_ai or lm_eval.",
    ),
    *(Setting(name=each.name, **each.metadata["setting"]) for each in fields(ChainFields)),
    Setting(
        name="worked_example", default=False, panel=CHAINS, kind="flag", subjects=("chain",),
        help="Show a solved problem before every question: small models need it.",
    ),
)  # fmt: skip
CONTEXT = (
    Setting(
        name="whole_answer", default=False, panel=WHAT, kind="flag", subjects=("context",),
        help="Test each cited answer as one claim, with all of its citations.",
    ),
)  # fmt: skip
_what = partial(Setting, panel=WHAT)
SUBJECT = (
    _what(
        name="model", default=REQUIRED, everyday=True, metavar="MODEL", subjects=_ALL,
        help="Hub id, folder, .gguf file, python:module:function, openai:NAME or a name of `ice list models`.",
    ),
    _what(
        name="task", everyday=True, metavar="TASK", subjects=_ALL,
        help="Name of `ice list tasks` (sst2, sst2/minimal) or task file; or give --data, --prompt and --labels.",
    ),
    _what(
        name="data", kind="file", everyday=True, metavar="FILE", subjects=_ALL,
        help=".jsonl or .csv with the fields, `label`, `id`, `group`.",
    ),
    _what(
        name="columns", everyday=True, metavar="NAME=COL", help="Data columns, e.g. text=comment; or paper (tables)."
    ),
    _what(
        name="prompt", everyday=True, metavar="TEXT", help="Prompt with fields, e.g. 'Review: {text}\\nSentiment:'."
    ),
    _what(
        name="labels", everyday=True, metavar="WORDS", help="Comma-separated label words, in the order of indices."
    ),
    _what(
        name="target_text", metavar="TEXT",
        help="Explain this continuation of the prompt in place of a label; '{answer}' is a column.",
    ),
    _what(
        name="explain", metavar="FIELDS", help="Fields to explain, comma-separated; by default all of the prompt's."
    ),
    _what(
        name="attribution_file", kind="pairs", everyday=True, metavar="NAME=FILE", role="adds", subjects=_TEXTS,
        help="Explanations of another tool; may be repeated.",
    ),
)  # fmt: skip
CHAT = (
    _what(
        name="chat", kind="flag", subjects=_TEXTS, help="Make the prompt a user turn of the model's chat template."
    ),
    _what(name="system", metavar="TEXT", subjects=_TEXTS, help="System turn of the chat."),
)  # fmt: skip
_where = partial(Setting, panel=WHERE, subjects=_ALL)
LOADING = (
    _where(
        name="device", default="auto", everyday=True, metavar="NAME", role="computes", help="auto, cpu, cuda, …"
    ),
    _where(
        name="dtype", default="auto", everyday=True, metavar="NAME", help="auto, float32, bfloat16 or float16."
    ),
    _where(
        name="device_map", metavar="MAP", role="computes",
        help="Spread a large model over devices: auto, balanced, balanced_low_0, sequential or a JSON file.",
    ),
    _where(
        name="max_memory", metavar="SIZES", role="computes",
        help="Limits of --device-map auto, e.g. 0=20GiB,cpu=60GiB.",
    ),
    _where(
        name="load_in", metavar="BITS",
        help="Quantise weights: 8bit, 4bit (bitsandbytes), torchao-8bit, quanto-8bit or quanto-4bit.",
    ),
)  # fmt: skip
_of_work = partial(_where, role="computes", subjects=_TEXTS)
BATCHING = (_of_work(name="token_budget", kind="count", help="Tokens per batch; by default what suits the device."),)
EXECUTION = (
    _of_work(
        name="executor", default="local", metavar="NAME",
        help="local, or ray (replicas on a cluster); see `ice list executors`.",
    ),
    _of_work(
        name="address", metavar="ADDRESS",
        help="Address of a running Ray cluster, or auto; by default $RAY_ADDRESS, or else a new local cluster.",
    ),
    _of_work(
        name="gpus_per_worker", kind="number",
        help="GPUs of each replica, or a share of one; by default 1 where there are GPUs.",
    ),
)  # fmt: skip
_served = partial(Setting, panel=SERVER, role="computes", subjects=_ALL)
SERVING = (
    _served(
        name="base_url", panel=WHERE, everyday=True, metavar="URL",
        help="Server of openai:NAME, as http://localhost:8000/v1.",
    ),
    _served(
        name="tokenizer", role="rows", metavar="MODEL", subjects=_TEXTS,
        help="Hub id or folder of the served model, to send token ids where the server takes them.",
    ),
    _served(
        name="api_key_env", metavar="NAME", help="Environment variable with the key; by default OPENAI_API_KEY."
    ),
    _served(name="concurrency", kind="count", help="Maximum number of concurrent requests; by default 16."),
    _served(name="timeout", kind="number", help="Seconds per attempt; by default 300."),
    _served(
        name="limit_field", metavar="NAME",
        help="Field of the token limit: max_tokens (by default) or max_completion_tokens.",
    ),
    _served(
        name="extra_body", role="rows", metavar="JSON",
        help='Further fields of every request, as \'{"reasoning_effort": "minimal"}\'.',
    ),
    _served(
        name="max_requests", kind="count",
        help="Maximum number of charged requests; the run then stops, and the same command continues it.",
    ),
    _served(
        name="max_cost", kind="number", help="Maximum cost of all requests, in the currency of the prices."
    ),
    _served(name="price_in", kind="number", help="Price of a million input tokens."),
    _served(name="price_out", kind="number", help="Price of a million output tokens."),
)  # fmt: skip

SETTINGS: Mapping[str, Setting] = {
    each.name: each for each in (*SUBJECT, *CHAT, *RUN, *CONTEXT, *CHAIN, *LOADING, *BATCHING, *EXECUTION, *SERVING)
}
"""Name -> setting, in the order of help."""
ADDABLE = tuple(each.name for each in RUN if each.role == "adds" and each.kind in ("names", "shares"))
"""Lists that a later command may extend. All other settings that define rows must be those of the folder."""


def names_of(settings: Iterable[Setting]) -> tuple[str, ...]:
    return tuple(each.name for each in settings)


def values_of(settings: Iterable[Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    return {each.name: given[each.name] for each in settings if each.name in given}


def refuse_others(values: Mapping[str, Any], subject: SubjectName, task: str) -> None:
    """Raise ConfigError if a setting is given that runs about other subjects have."""
    for each in SETTINGS.values():
        if subject not in each.subjects and not _is_usual(values.get(each.name), each.default):
            raise ConfigError(
                f"{each.option} is about {SUBJECTS[each.subjects[0]]}, and the task '{task}' is about "
                f"{SUBJECTS[subject]}; leave it out."
            )


def _is_usual(value: Any, default: Any) -> bool:
    """Return True for a default, perhaps a list of one given as its member."""
    if isinstance(default, tuple) and value is not None:
        return _several("", value) == default
    return value is None or str(value) == str(default) or (default == 0.0 and str(value) == "0")


def chain_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Check user values and return the fields of `ChainFields`; unknown keys are ignored."""
    found = {each.name: values.get(each.name, each.metadata["value"]) for each in fields(ChainFields)}
    for each in (SETTINGS[name] for name in found):
        if each.kind in _NORMAL:
            found[each.name] = _NORMAL[each.kind](each.name, found[each.name])
        _check_words(each, found[each.name])
    if not found["poses"]:
        raise ConfigError(f"--poses names none; expected: {', '.join(get_args(Pose))}.")
    if found["temperature"] in (None, "server"):
        return {**found, "temperature": None}
    try:
        temperature = float(found["temperature"])
    except (TypeError, ValueError):
        temperature = math.nan
    if not temperature >= 0:
        raise ConfigError(f"temperature = {found['temperature']}: a number from 0 on is expected, or 'server'.")
    return {**found, "temperature": temperature}


def run_config(
    values: Mapping[str, Any], subject: SubjectName = "text", *, task: str = "", language: str = "und"
) -> RunConfig:
    """Check user values and return a configuration; unknown keys are ignored, None is the default.

    A single name or share becomes a list of one. For chains of thought, arrangements are among the operators. The
    choices of a protocol depend on the name and the language of the task.

    Raises:
        ConfigError: A value is invalid, or two conflict.
    """
    given = {name: value for name, value in values_of(RUN, values).items() if value is not None}
    usual = _USUAL_OF[subject]
    given = {name: value for name, value in given.items() if name not in usual or subject in SETTINGS[name].subjects}
    for each in (SETTINGS[name] for name in given):
        if each.kind in _NORMAL:
            given[each.name] = _NORMAL[each.kind](each.name, given[each.name])
        _check_words(each, given[each.name], _UNITS[subject] if each.name == "unit" else ())
    of_protocol = PROTOCOLS[given.get("protocol", "default")].defaults(task, language)
    if subject != "text":
        of_protocol = {name: of_protocol[name] for name in ("scope", "fills", "n_fills", "sign")}
    m = SEQUENTIAL_M if given.get("adaptive") == "examples" else DEFAULT_M
    config = RunConfig(**{**of_protocol, "m": m, **usual, **given})
    _check_together(config)
    return config


def check_stored(config: RunFields) -> None:
    """Raise ConfigError unless a stored configuration has values that a run can have."""
    for each in RUN:
        value = getattr(config, each.name)
        if each.kind in _NORMAL and value is not None:
            _NORMAL[each.kind](each.name, value)
        if each.kind in ("names", "shares") and not value and each.name != "attributions":
            raise ConfigError(f"{each.name} is empty; at least one is needed.")


def _several(name: str, value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _shares(name: str, value: Any) -> tuple[Share, ...]:
    import numpy as np

    try:
        several = (value,) if isinstance(value, str) or np.ndim(value) == 0 else tuple(value)
        found = tuple(DYNAMIC if each == DYNAMIC else float(each) for each in several)
    except (TypeError, ValueError) as exc:
        raise ConfigError(
            f"{name} = {value!r}: a share between 0 and 1 or '{DYNAMIC}' is expected, or several."
        ) from exc
    for share in found:
        if share != DYNAMIC and not 0 < share < 1:
            raise ConfigError(f"{name} = {share}: a share between 0 and 1 is expected, such as 0.2, or {DYNAMIC}.")
    return found


def _count(name: str, value: Any) -> int:
    try:
        found = operator.index(value)  # whole numbers of numpy too, but no fractions
    except TypeError as exc:
        raise ConfigError(f"{name} = {value!r}: a whole number is expected.") from exc
    if found < 1 and name != "seed":
        raise ConfigError(f"{name} = {found}: at least 1 is needed.")
    if abs(found) > LARGEST:
        raise ConfigError(f"{name} = {found}: at most {LARGEST:,} is possible.")
    return found


def _number(name: str, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError) as exc:
        raise ConfigError(f"{name} = {value!r}: a number is expected.") from exc
    if not math.isfinite(found):
        raise ConfigError(f"{name} = {value}: a finite number is expected.")
    return found


_NORMAL: Mapping[Kind, Any] = {"names": _several, "shares": _shares, "count": _count, "number": _number}


def _words_in(kind: Any) -> tuple[str, ...]:
    """Return the words that a type allows, also within a tuple or beside None; empty if it allows any."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(word for part in get_args(kind) for word in _words_in(part))


_WORDS = {each.name: _words_in(each.type) for each in (*fields(RunFields), *fields(ChainFields)) if each.name != "k"}
_UNITS: Mapping[SubjectName, tuple[str, ...]] = {
    "text": ("token", "word", "sentence"), "chain": ("step",), "context": ("passage", "sentence")
}  # fmt: skip


def _check_words(declared: Setting, value: Any, allowed: tuple[str, ...] = ()) -> None:
    allowed = allowed or _WORDS.get(declared.name, ())
    for word in (value if isinstance(value, tuple) else (value,)) if allowed else ():
        if word not in allowed:
            name = declared.option.removeprefix("--")
            suggestion = did_you_mean(str(word), list(allowed))
            raise ConfigError(f"{name} '{word}'{suggestion} Expected: {', '.join(allowed)}.")


def _check_together(config: RunConfig) -> None:
    from ice_eval.nulls import nulls
    from ice_eval.operators import operators

    for name in config.operators:
        if config.unit not in operators.get(name).units:
            known = ", ".join(other for other, each in operators.items() if config.unit in each.units)
            raise ConfigError(f"the operator '{name}' does not work on {config.unit}s; those that do: {known}.")
    if config.unit == "step" and DYNAMIC in config.k:
        raise ConfigError(f"k = {DYNAMIC}: for steps shares between 0 and 1 are expected, such as 0.2.")
    for name in config.nulls:
        nulls.get(name)
    if config.adaptive == "examples" and config.m < SEQUENTIAL_M:
        raise ConfigError(
            f"m = {config.m}: with adaptive 'examples' m is the most sets that an example may take, at least "
            f"{SEQUENTIAL_M}; most examples take far fewer."
        )
    if config.min_confidence is not None and not 0 <= config.min_confidence < 1:
        raise ConfigError(f"min-confidence = {config.min_confidence:g}: a share between 0 and 1 is expected, e.g. 0.4.")
    if config.choices.own_null and (config.nulls != ("size",) or config.adaptive is not None):
        raise ConfigError(
            f"the protocol '{config.protocol}' draws random sets of its own: neither another null nor adaptive goes "
            "with it."
        )
    if config.until is not None and config.choices.percentile:
        raise ConfigError(
            f"until '{config.until}' needs intervals that hold at any time, and those of the protocol "
            f"'{config.protocol}' do not."
        )
    for name in ADDABLE:
        values = getattr(config, name)
        if not values and (name, config.unit) != ("attributions", "step"):
            raise ConfigError(f"no {name} given; at least one is needed.")
        if len(set(values)) < len(values):
            raise ConfigError(f"{name} names something twice: {', '.join(map(str, values))}.")
