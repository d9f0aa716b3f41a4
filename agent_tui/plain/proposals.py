"""What Tab completes a line to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.completion import FileIndex, propose, query_at

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.history import History

OWN = ("/output ", "/history ", "/reasoning ", "/queue ", "/steer ", "/edit ")
"""Commands that only plain mode has."""


async def proposals(text: str, agent: Agent, root: Path, history: History) -> Sequence[str]:
    """Whole lines that go on as ``text`` does; a single one that is near it where none does."""
    query = query_at(text, len(text), True)
    if query is None:
        return []
    shell = [e[1:] for e in history.search("!") if e.startswith("!") and "\n" not in e] if query.kind == "shell" else []
    found = [text[: query.start] + p.insert for p in await propose(query, agent, FileIndex(root), shell)]
    if query.kind == "command" and " " not in text:
        found += [name for name in OWN if name.startswith(text)]
    begins = [line for line in found if line.lower().startswith(text.lower())]
    return begins or (found if len(found) == 1 else [])
