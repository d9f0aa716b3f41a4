"""The program's own words as they are to be heard: signs that stand for words are words."""

from __future__ import annotations

import re

_SIGNS = (
    (r"~(?=\$?\d)", "about "),
    (r"≥ ?(?=\$?\d)", "at least "),
    (r"<(?=\$?\d)", "less than "),
    (r" [·] ", ", "),
    (r" → ", " to "),
    (r" [✓]", ", holds"),
    (r" [✗]", ", does not hold"),
    (r"(?m)^[✓] ", "Fine: "),
    (r"(?m)^[✗] ", "Fails: "),
    (r"(?m)^! ", "Warning: "),
    (r"−(?=[\d$])", "minus "),
    (r"±0", "no change"),
)


def spoken(text: str) -> str:
    """Text of ours for the ear. What models, tools and files say is never passed through here: it stays as it is."""
    for pattern, words in _SIGNS:
        text = re.sub(pattern, words, text)
    return text
