"""The models of the published suite, by short names; any other hub id works as well."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class HubModel:
    """A language model of the hub, and what to know before loading it."""

    hub_id: str
    parameters: float
    """In billions."""
    tuning: Literal["base", "instruct", "chat", "reasoning"]
    """What it was trained for in the end; all but base models have a chat template (`--chat`)."""
    kind: Literal["causal", "classifier"] = "causal"
    gated: bool = False
    """Whether the hub gives it only to those who accepted its terms."""
    unit: Literal["token", "step"] = "token"
    """What the paper explains it by."""
    note: str = ""

    @property
    def name(self) -> str:
        """The last part of the hub id, in lower case."""
        return self.hub_id.rpartition("/")[2].lower()

    @property
    def line(self) -> str:
        """A description in one line."""
        facts = [f"{self.parameters:.2g}B", self.tuning, *(["gated"] if self.gated else [])]
        note = " The paper explains it by steps of its reasoning." if self.unit == "step" else ""
        return f"{self.hub_id}: {', '.join(facts)}.{note}{f' {self.note}' if self.note else ''}"


SUITE = (
    HubModel(hub_id="openai-community/gpt2-xl", parameters=1.56, tuning="base"),
    HubModel(
        hub_id="LiquidAI/LFM2-2.6B",
        parameters=2.57,
        tuning="chat",
        note="The paper calls it a base model; it has a chat template.",
    ),
    HubModel(hub_id="meta-llama/Llama-3.2-3B-Instruct", parameters=3.21, tuning="instruct", gated=True),
    HubModel(hub_id="meta-llama/Llama-3.1-8B", parameters=8.03, tuning="base", gated=True),
    HubModel(hub_id="Qwen/Qwen2.5-7B-Instruct", parameters=7.62, tuning="instruct"),
    HubModel(
        hub_id="mistralai/Mistral-7B-Instruct-v0.3",
        parameters=7.25,
        tuning="instruct",
        gated=True,
        note="The paper does not say which version.",
    ),
    HubModel(hub_id="deepseek-ai/deepseek-llm-7b-chat", parameters=6.91, tuning="chat"),
    HubModel(hub_id="Qwen/Qwen3-0.6B", parameters=0.6, tuning="reasoning", unit="step"),
    HubModel(hub_id="Qwen/Qwen3-8B", parameters=8.19, tuning="reasoning", unit="step"),
    HubModel(hub_id="deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", parameters=7.62, tuning="reasoning", unit="step"),
)
"""The seven models of the paper's tables, then those of its appendix on reasoning."""


def suite_model(ref: str) -> HubModel | None:
    """The model that a short name or a hub id stands for, in any case and with or without `@revision`."""
    wanted = ref.partition("@")[0].lower()
    return next((each for each in SUITE if wanted in (each.name, each.hub_id.lower())), None)
