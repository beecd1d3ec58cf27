"""Generators whose first words are known: that numpy refuses a word is too rare to wait for it."""

import numpy as np


def generator_of(words):
    """A generator that gives these words of 32 bits first."""
    # The Mersenne Twister gives its state back word by word, and what it does to a word can be undone.
    bits = np.random.MT19937(0)
    state = bits.state
    key = state["state"]["key"].copy()
    key[: len(words)] = [_untempered(word) for word in words]
    state["state"] = {"key": key, "pos": 0}
    bits.state = state
    return np.random.Generator(bits)


def words_used(rng):
    """How many words such a generator has given."""
    return rng.bit_generator.state["state"]["pos"]


def _untempered(word):
    """The state behind a word of the Mersenne Twister (Matsumoto & Nishimura, 1998)."""
    value = word ^ (word >> 18)
    value ^= (value << 15) & 0xEFC60000
    found = value
    for _ in range(5):
        found = value ^ ((found << 7) & 0x9D2C5680)
    value = found
    for _ in range(3):
        found = value ^ (found >> 11)
    return found & 0xFFFFFFFF
