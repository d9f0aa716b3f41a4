"""Foreign text made harmless: no character that a terminal acts upon is left, each is replaced by a visible one."""

from __future__ import annotations

import re

from agent_tui.commands.format import visible

MAX_LINE = 100_000
"""Characters of one line that are shown. Far beyond anything readable, small enough to lay out at once."""
MAX_TEXT = 1_000_000
"""Characters of one text that are shown; copying still gives all of it."""

_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SGR = re.compile(r"\x1b\[[0-9;:]{0,64}m")


def clean(text: str) -> str:
    """Text of the same length without control characters (C0 shown as ␛ and the like), C1 controls, explicit
    bidirectional overrides (they reorder what stands around them) and lone surrogates. Newlines and tabs stay."""
    if text.isprintable():
        return text
    return _ACTIVE.sub(_visible, text)


def newlines(text: str) -> str:
    """``\\r\\n`` and lone ``\\r`` as ``\\n``."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def clean_output(text: str) -> str:
    """A program's output: colour sequences carry no text and are dropped, everything else stays visible, in the
    same signs as where a call is asked about."""
    if "\x1b" in text:
        text = _SGR.sub("", text)
    text = newlines(text)
    return clean(visible(text)) if _ACTIVE.search(text) else text


def cap_line(line: str) -> str:
    """A line of at most ``MAX_LINE`` characters, saying how many are missing."""
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + hidden(len(line) - MAX_LINE)


def hidden(count: int) -> str:
    """What stands for text that is not shown."""
    return f" … {count:,} more characters"


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 32:
        return chr(0x2400 + code)
    if code == 127:
        return "␡"
    return " " if code in (0x2028, 0x2029) else "\ufffd"
