"""Inputs that are explained: alignment of words and tokens with a text, chains of thought, and cited answers."""

__all__: list[str] = []
