"""The proposals of the prompt: commands after ``/``, files and MCP resources after ``@``, shell commands after
``!``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.history import PromptHistory

Kind = Literal["command", "file", "shell"]

_FILE_WORD = re.compile(r"(?:^|(?<=[\s(\[{,]))@(\"[^\"]*|[^\s\"]*)$")
LIMIT = 200


class CompletionQuery(NamedTuple):
    """A word that can be completed: ``start`` is its column on the cursor's line, ``text`` without its sign."""

    kind: Kind
    start: int
    text: str


class Proposal(NamedTuple):
    """``insert`` replaces the line from the query's start to the cursor."""

    insert: str
    label: str
    detail: str = ""


def query_at(line: str, column: int, first_line: bool) -> CompletionQuery | None:
    """Returns the query for what is being typed before the cursor, if it is something to complete."""
    before = line[:column]
    if first_line and before.startswith("/") and "\n" not in before:
        return CompletionQuery("command", 0, before)
    if first_line and before.startswith("!") and len(before) > 1:
        return CompletionQuery("shell", 0, before[1:])
    hit = _FILE_WORD.search(before)
    if hit is None:
        return None
    return CompletionQuery("file", hit.start(), hit[1].lstrip('"'))


class FileIndex:
    """The project's files and folders, listed in a thread and kept until ``stale`` is called."""

    def __init__(self, root: Path, lister: Callable[[Path], list[str]] | None = None) -> None:
        self.root = root
        self._lister = lister
        self._paths: list[str] = []
        self._fresh = False
        self._lock = asyncio.Lock()

    def stale(self) -> None:
        """The next search lists again."""
        self._fresh = False

    async def search(self, text: str) -> list[str]:
        """Paths that match, best first. Listing and matching run in a thread."""
        async with self._lock:
            if not self._fresh:
                self._paths = await asyncio.to_thread(self._list)
                self._fresh = True
        from agent_tui.text.search import match_paths

        return await asyncio.to_thread(match_paths, text, self._paths, LIMIT)

    def _list(self) -> list[str]:
        if self._lister is None:
            from agent_tui.commands.mentions import project_files

            self._lister = project_files
        files = self._lister(self.root)
        folders = {f"{parent}/" for path in files for parent in _parents(path)}
        return [*sorted(folders), *files]


def _resources(text: str, agent: Agent | None) -> list[Proposal]:
    """Returns the resources that MCP servers offer, named ``@server:uri``."""
    if agent is None:
        return []
    from agent_tui.text.search import match as match_texts

    details = {name: detail for name, detail in agent.project.mcp_resources() if not any(c.isspace() for c in name)}
    return [Proposal(f"@{name} ", name, details[name]) for name in match_texts(text, list(details), 50)]


def _parents(path: str) -> Sequence[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def shell_lines(history: PromptHistory) -> list[str]:
    """Earlier ``!`` commands of one line, newest first, without their sign."""
    return [entry[1:] for entry in history.search("!") if entry.startswith("!") and "\n" not in entry]


async def propose(
    query: CompletionQuery, agent: Agent | None, files: FileIndex, shell: Sequence[str]
) -> list[Proposal]:
    """Proposals for a query, best first. ``shell`` are earlier ``!`` commands, newest first."""
    match query.kind:
        case "command":
            from agent_tui.commands.registry import complete

            found = complete(agent, query.text)
            if [c.label for c in found] == [query.text]:
                return []
            return [Proposal(c.insert, c.label, c.detail) for c in found]
        case "file":
            from agent_tui.commands.mentions import quote_path

            paths = await files.search(query.text)
            named = [Proposal(quote_path(p) if p.endswith("/") else quote_path(p) + " ", p) for p in paths]
            resources = _resources(query.text, agent)
            return [*resources, *named] if ":" in query.text else [*named, *resources]
        case "shell":
            from agent_tui.text.search import match as match_texts

            known = [text for text in match_texts(query.text, shell, 20) if text != query.text]
            return [Proposal(f"!{text}", f"!{text}") for text in known]
