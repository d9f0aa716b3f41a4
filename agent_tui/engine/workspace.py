"""The project around a session: prompt, environment, memory files, skills and pinned documents as blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from agent_tui.context.prompt import SYSTEM_PROMPT, GitFacts, environment_text, git_facts
from agent_tui.errors import AgentError
from agent_tui.models.requests import SystemBlock

MAX_DOCUMENT_BYTES = 2_000_000


class Workspace:
    """``memory`` and ``skills`` make their blocks; they are asked before every turn, so that a changed file counts
    at once, while prompt and environment stay the same bytes for the whole session."""

    def __init__(
        self,
        root: Path,
        cwd: Path,
        added_dirs: Sequence[Path] = (),
        memory: Callable[[], list[SystemBlock]] = list,
        skills: Callable[[], list[SystemBlock]] = list,
    ) -> None:
        self._root = root
        self._cwd = cwd
        self._added = list(added_dirs)
        self._memory = memory
        self._skills = skills
        self._environment: str | None = None
        self.git = GitFacts()

    def blocks(self) -> list[SystemBlock]:
        """Everything but the documents, in the order it is sent."""
        if self._environment is None:
            self.git = git_facts(self._root)
            self._environment = environment_text(self._cwd, self._root, self._added, date.today(), self.git)
        return [
            SystemBlock("system", SYSTEM_PROMPT, "system", "System prompt"),
            SystemBlock("environment", self._environment, "environment", "Environment"),
            *self._memory(),
            *self._skills(),
        ]

    def renew(self) -> None:
        """Takes the environment again, for a new session."""
        self._environment = None

    def resolve(self, path: str) -> str:
        """The absolute path of a document named relative to the working directory."""
        return str((self._cwd / Path(path).expanduser()).resolve())

    def pinnable(self, path: str) -> str:
        """The absolute path of a file that can be pinned. Raises AgentError when it cannot."""
        resolved = self.resolve(path)
        _read(Path(resolved))
        return resolved

    def documents(self, pinned: Sequence[str]) -> tuple[list[SystemBlock], list[str]]:
        """The pinned files as they are now, and one line for each that cannot be read any more."""
        blocks: list[SystemBlock] = []
        problems: list[str] = []
        for path in pinned:
            try:
                text = _read(Path(path))
            except AgentError as error:
                problems.append(f"Not sent: {error}")
                continue
            name = self._short(Path(path))
            blocks.append(SystemBlock("documents", f'<document path="{name}">\n{text}\n</document>', name, name, path))
        return blocks, problems

    def _short(self, path: Path) -> str:
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else str(path)


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise AgentError(f"{path} is not a file.")
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise AgentError(f"{path} is larger than {MAX_DOCUMENT_BYTES // 1_000_000} MB; pin a smaller file.")
        data = path.read_bytes()
    except OSError as error:
        raise AgentError(f"{path} cannot be read: {error.strerror or error}.") from error
    if b"\0" in data:
        raise AgentError(f"{path} is a binary file; only text can be pinned.")
    return data.decode("utf-8", "replace")
