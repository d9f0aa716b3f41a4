"""What the terminal answers to a question about its background: whether that is light."""

from __future__ import annotations

import re
from collections.abc import Callable

QUERY = "\x1b]11;?\x1b\\"
"""Asks for the background's colour. Terminals that do not know it say nothing; tmux answers for the one around it."""
LIGHT = 0.5
"""Relative luminance (gamma left as it is) above which a background is light."""

_ANSWER = re.compile(r"(?:\x1b\]|\x9d)11;rgba?:([0-9a-fA-F/]{5,19})(?:\x07|\x1b\\|\x9c)")


def hears_background(heard: Callable[[bool], object]) -> Callable[[str], None]:
    """Returns who is told the terminal's reports; ``heard`` is called with whether the background is light."""

    def listen(report: str) -> None:
        if (answer := _ANSWER.fullmatch(report)) is not None and (light := is_light(answer[1])) is not None:
            heard(light)

    return listen


def is_light(parts: str) -> bool | None:
    """Returns whether a colour like ``ffff/fafa/f0f0`` is light; None where it is none."""
    numbers = [part for part in parts.split("/") if part]
    if len(numbers) < 3 or max(map(len, numbers)) > 4:
        return None
    red, green, blue = (int(part, 16) / ((1 << 4 * len(part)) - 1) for part in numbers[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > LIGHT
