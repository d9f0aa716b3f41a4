"""The note a tool leaves in an output that was too long to send: where all of it is."""

from __future__ import annotations

import re

_NOTE = re.compile(r"\[… [\d,]+ characters left out; everything is in [^\n]{1,4096}?: read or grep it …\]")


def saved_note(left_out: int, path: object) -> str:
    """The note on ``left_out`` characters of an output that is whole in the file ``path``."""
    return f"[… {left_out:,} characters left out; everything is in {path}: read or grep it …]"


def find_saved_note(text: str) -> str:
    """The note in an output; empty when there is none."""
    found = _NOTE.search(text)
    return found[0] if found else ""
