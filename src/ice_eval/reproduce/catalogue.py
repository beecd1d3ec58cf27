"""The paper's tables and figures by their labels: the grids that each needs, its numbers, and its layout."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.reproduce import contents
from ice_eval.reproduce.contents import Sources
from ice_eval.reproduce.layout import Layout, Shown, Value

if TYPE_CHECKING:
    from ice_eval.report.figures import Figure


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A grid of runs that tables and figures share."""

    name: str
    preset: str
    """Name of its grid among those of `ice bench`."""
    title: str
    steps: bool = False
    """True for chains of thought."""
    served: bool = False
    """True for models behind a server."""
    needs: str = ""
    """Data or models that the user supplies."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One table or figure."""

    label: str
    title: str
    experiments: tuple[str, ...] = ()
    content: Callable[[Sources], list[Value]] | None = None
    """Returns its numbers; None where it has none."""
    layout: Layout | None = None
    figure: str = ""
    """Name of the function of `reproduce.figures` that draws it; empty for a table."""
    needs: str = ""
    """Data that the user supplies, beside those of its experiments."""
    note: str = ""

    @property
    def kind(self) -> Literal["table", "figure"]:
        return "table" if self.label.startswith("tab:") else "figure"

    @property
    def file(self) -> str:
        """Name of its files."""
        return self.label.replace(":", "-")

    def drawn(self, values: Sequence[Value], sources: Sources) -> "Figure":
        """Return the figure of its numbers."""
        from ice_eval.reproduce import figures

        draw: Callable[[Sequence[Value], Item, Sources], Figure] = getattr(figures, self.figure)
        return draw(values, self, sources)


EXPERIMENTS = {
    each.name: each
    for each in (
        Experiment(name="english", preset="paper-english", title="seven models on four English data sets"),
        Experiment(name="multilingual", preset="paper-multilingual", title="seven models in six languages"),
        Experiment(
            name="translation",
            preset="paper-translation",
            title="SST-2 translated to French and German",
            needs="translated/french.jsonl and translated/german.jsonl in --data-dir, as `ice translate` writes them",
        ),
        Experiment(name="examples", preset="paper-examples", title="four sentences of SST-2"),
        Experiment(name="k-sweep", preset="k-sweep", title="five sizes of rationales"),
        Experiment(name="prompts", preset="prompt-sensitivity", title="every wording of the English prompts"),
        Experiment(name="masks", preset="operator-ablation", title="deletion and masks"),
        Experiment(
            name="encoder",
            preset="paper-encoder",
            title="encoders on five data sets",
            needs="an encoder that was fine-tuned for each data set: --models encoder/sst2=PATH, and so on",
        ),
        Experiment(
            name="steps",
            preset="steps-open",
            title="tokens and steps of open models on GSM8K",
            steps=True,
        ),
        Experiment(
            name="frontier",
            preset="steps-frontier",
            title="steps of chat models on GSM8K and SST-2",
            steps=True,
            served=True,
            needs="models behind a server: --models frontier=openai:NAME --base-url URL",
        ),
        Experiment(
            name="eraser",
            preset="steps-eraser",
            title="steps of chat models on six tasks",
            steps=True,
            served=True,
            needs="models behind a server: --models eraser=openai:NAME --base-url URL",
        ),
    )
}

_MODEL = {"model": "Model"}
_CONFIGURATION = {"configuration": "Configuration"}
_RATE = Shown(header="WR")
_COLUMN = {"win_rate": Shown(header="WR", bold="column")}
_HEAT = Layout(
    blocks=("attribution", "operator"),
    block_title="{1} + {0}: win rate (%)",
    rows=_MODEL,
    columns=("task",),
    quantities=_COLUMN,
)
_BY_OPERATOR = Layout(
    blocks=("operator",), block_title="{}, attention: win rate (%)", rows=_MODEL, columns=("task",), quantities=_COLUMN
)
_OPERATORS = Layout(
    rows=_CONFIGURATION,
    columns=("operator",),
    quantities={"win_rate": _RATE, "word": Shown(header="Tax", kind="text")},
)
_REPRESENTATIVE = (
    "Configurations that the paper compares, or without any of its models the six with the widest gap. F: above 60 %, "
    "WF: 55 to 60 %, NR: 50 to 55 %, AF: below 50 %."
)
_EFFECT = Shown(header="d", kind="signed")
_PROMPTS = Layout(
    blocks=("model",),
    rows={"task": "Data", "prompt": "Prompt"},
    quantities={
        "accuracy": Shown(header="Acc"),
        "confidence": Shown(header="Conf"),
        "attention": Shown(header="Attn", marked="†"),
        "gradient": Shown(header="Grad", marked="†"),
        "difference": Shown(header="Δ", kind="points"),
    },
)
_PROMPT_NOTE = "†: below 50 %. Δ is attention less gradient, in percentage points; deletion."
_HIGHLIGHTS = "esnli.jsonl or esnli.csv with the published highlights in --data-dir"
_CHAIN_RATES = {
    "necessity": Shown(header="Nec", kind="decimal"),
    "sufficiency": Shown(header="Suf", kind="decimal"),
}

ITEMS = {
    each.label: each
    for each in (
        Item(
            label="fig:evolution",
            title="Evolution of faithfulness evaluation frameworks",
            note="A drawing of related work, without a number.",
        ),
        Item(
            label="tab:pipeline",
            title="One sentence under both operators",
            experiments=("examples",),
            content=contents.worked_example,
            layout=Layout(
                blocks=("model",),
                rows={"row": ""},
                columns=("operator",),
                quantities={"cell": Shown(header="", kind="text")},
            ),
            note="The paper does not name the model of its sentence; scores here are probabilities of the label.",
        ),
        Item(
            label="fig:english_heatmap",
            title="English win rates under both operators and both attributions",
            experiments=("english",),
            content=contents.english,
            layout=_HEAT,
            figure="english_heatmap",
        ),
        Item(
            label="fig:multilingual_heatmap",
            title="Win rates of attention by language under both operators",
            experiments=("multilingual",),
            content=contents.multilingual,
            layout=_BY_OPERATOR,
            figure="multilingual_heatmap",
        ),
        Item(
            label="tab:nllb",
            title="The same texts in another language: native and translated data",
            experiments=("multilingual", "translation"),
            content=contents.translation,
            layout=Layout(
                rows={"condition": "Condition"}, columns=("task",), quantities={"win_rate": Shown(header="WR")}
            ),
            note="Attention under deletion; the paper names neither.",
        ),
        Item(
            label="fig:plausibility",
            title="Overlap with human rationales against win rate on e-SNLI",
            experiments=("english",),
            content=contents.plausibility,
            layout=Layout(
                rows={"model": "Model", "attribution": "Method"},
                quantities={
                    "r": Shown(header="r", kind="fraction"),
                    "p": Shown(header="p", kind="p-value"),
                    "n": Shown(header="N", kind="count"),
                },
            ),
            figure="plausibility",
            needs=_HIGHLIGHTS,
        ),
        Item(
            label="fig:operator_both",
            title="Win rates of attention under both operators, side by side",
            experiments=("english",),
            content=contents.operator_comparison,
            layout=_OPERATORS,
            figure="operator_bars",
            note=_REPRESENTATIVE,
        ),
        Item(
            label="tab:eraser-comparison",
            title="Raw ERASER scores beside win rates, of chains of thought",
            experiments=("eraser",),
            content=contents.eraser,
            layout=Layout(
                rows={"model": "Model", "task": "Data", "metric": "Met."},
                quantities={
                    "raw": Shown(header="Raw", kind="decimal"),
                    "win_rate": Shown(header="WR", kind="decimal"),
                    "agree": Shown(header="Agree?", kind="text"),
                },
            ),
            note="All configurations; the paper prints nine of 120. C: comprehensiveness, S: sufficiency. Explanations "
            "are the model's own ratings of its steps; the paper does not say how it ranks them.",
        ),
        Item(
            label="tab:contamination",
            title="Label-indicative tokens and the blacklist of infill",
            experiments=("english",),
            content=contents.contamination,
            layout=Layout(
                rows={"task": "Dataset"},
                quantities={
                    "blocked": Shown(header="Blocked", kind="count"),
                    "surviving": Shown(header="Surviving", kind="count"),
                    "rate": Shown(header="Est. rate (%)"),
                    "per_example": Shown(header="Per example (%)"),
                },
            ),
            note="Est. rate: at least one surviving token in four draws from the pool; per example: in all draws of a "
            "rationale's fills. It needs data, and no run.",
        ),
        Item(
            label="tab:operator_ablation",
            title="Deletion against masks",
            experiments=("masks",),
            content=contents.operator_ablation,
            layout=Layout(
                blocks=("model", "task"),
                block_title="{} on {}: win rate (%)",
                rows={"operator": "Operator"},
                columns=("attribution",),
                quantities={"win_rate": Shown(header="WR")},
            ),
        ),
        Item(
            label="tab:models",
            title="Evaluated models",
            experiments=("english",),
            content=contents.models,
            layout=Layout(
                rows=_MODEL,
                quantities={
                    "size": Shown(header="Size", kind="text"),
                    "type": Shown(header="Type", kind="text"),
                    "source": Shown(header="Source", kind="text"),
                },
            ),
            note="It needs no run.",
        ),
        Item(
            label="tab:versions",
            title="Data sets and their revisions",
            experiments=("english",),
            content=contents.versions,
            layout=Layout(
                rows={"task": "Dataset"}, quantities={"revision": Shown(header="Source and revision", kind="text")}
            ),
            note="It needs no run.",
        ),
        Item(
            label="tab:ksweep",
            title="Win rates by the share of units kept",
            experiments=("k-sweep",),
            content=contents.k_sweep,
            layout=Layout(
                blocks=("task",),
                block_title="{}: win rate (%)",
                rows={"model": "Model", "attribution": "Extr."},
                columns=("k",),
                quantities={"win_rate": Shown(header="WR", bold="row")},
            ),
            note="Deletion; the paper does not name the operator.",
        ),
        Item(
            label="tab:prompt_sensitivity",
            title="Accuracy, confidence and win rates under every prompt",
            experiments=("prompts",),
            content=contents.prompts,
            layout=_PROMPTS,
            note=_PROMPT_NOTE,
        ),
        Item(
            label="fig:method_gap",
            title="Attention less gradient by prompt",
            experiments=("prompts",),
            content=contents.prompts,
            layout=_PROMPTS,
            figure="method_gap",
            note=_PROMPT_NOTE,
        ),
        Item(
            label="fig:faith_conf",
            title="Win rate against the model's confidence, over prompts",
            experiments=("prompts",),
            content=contents.prompts,
            layout=_PROMPTS,
            figure="faithfulness_and_confidence",
            note=_PROMPT_NOTE,
        ),
        Item(
            label="fig:gap_by_task",
            title="Attention less gradient by task",
            experiments=("prompts",),
            content=contents.prompts,
            layout=_PROMPTS,
            figure="gap_by_task",
            note=_PROMPT_NOTE,
        ),
        Item(
            label="tab:multilingual",
            title="Win rates of attention in other languages",
            experiments=("multilingual",),
            content=contents.multilingual,
            layout=_BY_OPERATOR,
        ),
        Item(
            label="tab:tokenization",
            title="Tokens per character, relative to English",
            experiments=("multilingual",),
            content=contents.tokenization,
            layout=Layout(rows=_MODEL, columns=("task",), quantities={"expansion": Shown(header="×", kind="times")}),
        ),
        Item(
            label="tab:encoder_results",
            title="Encoder results",
            experiments=("encoder",),
            content=contents.encoder,
            layout=Layout(
                blocks=("model", "task"),
                block_title="{}, {}",
                rows={"attribution": "Extractor"},
                quantities={
                    "sufficiency": Shown(header="Suf.", kind="fraction", bold="column"),
                    "significant_rate": Shown(header="Sig. Rate (%)", bold="column"),
                    "auc_sufficiency": Shown(header="AUC-Suf", kind="fraction", bold="column"),
                },
            ),
            note="Suf. is the mean NSR at k = 0.2 under deletion, AUC-Suf the area under it from k = 0 (NSR 0) to 0.5; "
            "the paper defines neither. Sig. Rate is 0 where nothing is rejected, also where M is too small for it.",
        ),
        Item(
            label="tab:effect_sizes",
            title="Standardized effect sizes",
            experiments=("english", "multilingual"),
            content=contents.effect_sizes,
            layout=Layout(
                rows=_CONFIGURATION,
                quantities={"win_rate": _RATE, "effect_size": _EFFECT, "word": Shown(header="Interp.", kind="text")},
            ),
            note="Configurations of the paper, or without any of its models the extremes. Large from 0.8 on.",
        ),
        Item(
            label="tab:anti_faithful_configs",
            title="Anti-faithful configurations under deletion",
            experiments=("english", "multilingual"),
            content=contents.anti_faithful,
            layout=Layout(rows=_CONFIGURATION, quantities={"win_rate": _RATE, "effect_size": _EFFECT}),
            note="All with a win rate below 50 %.",
        ),
        Item(
            label="tab:anti_faith_examples",
            title="Sentences and the words that gradient selects",
            experiments=("examples",),
            content=contents.anti_faithful_examples,
            layout=Layout(
                blocks=("model",),
                rows={"text": "Text"},
                quantities={
                    "win_rate": _RATE,
                    "effect_size": _EFFECT,
                    "words": Shown(header="Pattern", kind="text"),
                },
            ),
        ),
        Item(
            label="tab:bootstrap_ci",
            title="Win rates with 95 % intervals",
            experiments=("english", "multilingual"),
            content=contents.intervals,
            layout=Layout(
                rows=_CONFIGURATION,
                quantities={
                    "win_rate": Shown(header="Win Rate"),
                    "interval": Shown(header="95 % CI", kind="text"),
                },
            ),
        ),
        Item(
            label="tab:alignment_appendix",
            title="Correlation of overlap and win rate on e-SNLI",
            experiments=("english",),
            needs=_HIGHLIGHTS,
            content=contents.plausibility,
            layout=Layout(
                rows={"model": "Model", "attribution": "Method"},
                quantities={
                    "r": Shown(header="r", kind="fraction"),
                    "p": Shown(header="p", kind="p-value"),
                    "n": Shown(header="N", kind="count"),
                },
            ),
        ),
        Item(
            label="tab:retrieval_comparison_appendix",
            title="Win rates of attention under deletion and retrieval infill",
            experiments=("english",),
            content=contents.operator_comparison,
            layout=_OPERATORS,
            note=_REPRESENTATIVE,
        ),
        Item(
            label="fig:operator_comparison",
            title="Paired win rates of attention under both operators",
            experiments=("english",),
            content=contents.operator_comparison,
            layout=_OPERATORS,
            figure="operator_pairs",
            note=_REPRESENTATIVE,
        ),
        Item(
            label="tab:english_results_appendix",
            title="English win rates of attention",
            experiments=("english",),
            content=contents.english_attention,
            layout=_BY_OPERATOR,
        ),
        Item(
            label="tab:guidelines_appendix",
            title="Advised attributions",
            experiments=("english", "multilingual"),
            content=contents.guidelines,
            layout=Layout(
                rows={"scenario": "Scenario"}, quantities={"advice": Shown(header="Recommendation", kind="text")}
            ),
            note="Advised where the 95 % interval lies above 55 % under every operator and every other one is behind.",
        ),
        Item(
            label="tab:step_vs_token",
            title="Necessity and sufficiency of tokens and of steps on GSM8K",
            experiments=("steps",),
            content=contents.steps_and_tokens,
            layout=Layout(rows=_MODEL, columns=("unit",), quantities=_CHAIN_RATES),
            note="Tokens: win rates of attention; steps: necessity and sufficiency at k = 0.2.",
        ),
        Item(
            label="tab:frontier_cot",
            title="Step-level reasoning capacity and accuracy",
            experiments=("frontier",),
            content=contents.frontier,
            layout=Layout(
                rows=_MODEL,
                columns=("task",),
                quantities={"src": Shown(header="SRC", kind="decimal"), "accuracy": Shown(header="Acc (%)")},
            ),
        ),
    )
}
"""All tables and figures of the paper, in its order of floats within the main text and the appendix."""


def chosen(names: Sequence[str]) -> list[Item]:
    """Return items by label, with or without `tab:` and `fig:`, or by the name of an experiment; all for `all`.

    Raises:
        ConfigError: A name is unknown.
    """
    found: dict[str, Item] = {}
    short = {label.partition(":")[2]: label for label in ITEMS}
    for name in names or ["all"]:
        if name == "all":
            found |= ITEMS
        elif name in EXPERIMENTS:
            found |= {label: item for label, item in ITEMS.items() if name in item.experiments}
        elif name in ITEMS or name in short:
            label = short.get(name, name)
            found[label] = ITEMS[label]
        else:
            known = [*ITEMS, *EXPERIMENTS]
            raise ConfigError(
                f"the paper has no table or figure '{name}'{did_you_mean(name, known)} "
                "`ice reproduce --list` shows all of them; 'all' takes every one."
            )
    return [item for label, item in ITEMS.items() if label in found]
