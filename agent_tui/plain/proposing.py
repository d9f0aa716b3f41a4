"""Completing a line that is typed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from agent_tui.plain.line import Line

Completes = Callable[[str], Awaitable[Sequence[str]]]
"""What a line can be completed to, each a whole line."""

SHOWN = 40
"""Proposals that are said."""


async def propose(line: Line, completes: Completes) -> str:
    """Completes the line as far as there is one way to; where there are several, returns what is said of them. A line
    that has changed meanwhile stays as it is."""
    text, at = line.text, line.at
    found = list(await completes(text)) if at == len(text) else []
    if (line.text, line.at) != (text, at) or not found:
        return ""
    common = beginning(found)
    if len(found) == 1 or (len(common) > len(text) and common.lower().startswith(text.lower())):
        line.put(common)
        return ""
    more = f", and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return f"Proposals: {', '.join(each.strip() for each in found[:SHOWN])}{more}"


def beginning(texts: Sequence[str]) -> str:
    """What all of the texts begin with."""
    first, last = min(texts), max(texts)
    same = next((at for at, letter in enumerate(first) if last[at : at + 1] != letter), len(first))
    return first[:same]
