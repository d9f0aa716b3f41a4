"""Sets of names written as people read them."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of ``text``, which are separated by white space."""
    return frozenset(text.split())
