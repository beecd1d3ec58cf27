"""Whether the texts of a language model begin with a token that its tokenizer leaves out.

Models that were trained with a beginning-of-text token (BOS) in front answer garbage without it, and not every file
says so: conversions drop it, and some tokenizers leave it to the chat template.
"""

from typing import Any

_ALWAYS = "gemma"
"""Families of this name always begin with BOS."""
_USUALLY = frozenset(
    {
        "cohere", "cohere2", "deepseek_v2", "deepseek_v3", "jamba", "lfm2", "lfm2_moe", "llama", "llama4",
        "llama4_text", "minicpm", "ministral", "mistral", "mistral3", "mixtral",
    }
)  # fmt: skip
"""Families that begin with BOS where they have a token of that name and nothing says otherwise."""
_NAMES = frozenset({"s", "bos", "bostoken", "beginoftext", "beginofsentence", "startoftext"})
"""What a token is called that is a beginning and nothing else, without brackets: <s>, [BOS], <|begin_of_text|>."""
_SENTINEL = "\ue000bos\ue000"


def missing_bos(tokenizer: Any, *, family: str) -> str | None:
    """Why texts need the BOS token of a tokenizer that puts no special token in front by itself; None: they do not.

    They do if

    - the tokenizer's configuration asks for it (`add_bos_token`), and whoever made the file forgot to act on it,
    - the family always begins with it (Gemma),
    - the chat template writes `bos_token` first; one that spells out the same token (SmolLM2) is not meant,
    - the family usually begins with it (Llama, Mistral, …), the configuration is silent, and the token is named as a
      beginning and is not the end token too.
    """
    token = tokenizer.bos_token
    if token is None:
        return None
    asked = tokenizer.init_kwargs.get("add_bos_token")
    if asked:
        return "its configuration asks for it"
    if always_begins(family):
        return f"texts of {family} models always begin with it"
    if _template_begins_with_bos(tokenizer):
        return "its chat template begins with it"
    if asked is None and family in _USUALLY and _is_beginning(token) and token != tokenizer.eos_token:
        return f"texts of {family} models usually begin with it"
    return None


def always_begins(family: str) -> bool:
    """Whether no text of the family goes without BOS, a chat included."""
    return _ALWAYS in family


def _template_begins_with_bos(tokenizer: Any) -> bool:
    if not tokenizer.chat_template:
        return False
    try:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": "x"}], add_generation_prompt=True, tokenize=False, bos_token=_SENTINEL
        )
    except Exception:  # a template is a program: what it raises on a harmless turn is told when it is really used
        return False
    return str(text).lstrip().startswith(_SENTINEL)


def _is_beginning(token: str) -> bool:
    return "".join(c for c in token.casefold() if c.isalpha()) in _NAMES
