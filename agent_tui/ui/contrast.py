"""Contrast of colours, as the Web Content Accessibility Guidelines 2.1 define it: 1 for the same colour, 21 for black
on white."""

from __future__ import annotations

from collections.abc import Sequence

from textual.color import Color

LEAST_TEXT = 4.5
"""What the guidelines ask of text (level AA)."""
LEAST_FAINT = 4.0
"""What text that may be overlooked keeps here."""
_STEP = 0.02


def contrast(one: Color, two: Color) -> float:
    """The contrast of two opaque colours, 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def toward(back: Color, front: Color, share: float, on: Sequence[Color], least: float) -> Color:
    """``back`` with ``share`` of ``front``, or more of it where less than ``least`` would be left on one of ``on``."""
    while share < 1:
        mixed = back.blend(front, share, 1)
        if all(contrast(mixed, each) >= least for each in on):
            return mixed
        share += _STEP
    return front


def text_on(back: Color, wanted: Color) -> Color:
    """``wanted``, or black or white where it could not be read on ``back``."""
    choices = (wanted, Color(255, 255, 255), Color(0, 0, 0))
    return next((c for c in choices if contrast(c, back) >= LEAST_TEXT), max(choices, key=lambda c: contrast(c, back)))


def _luminance(color: Color) -> float:
    parts = [part / 255 for part in color.rgb]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
