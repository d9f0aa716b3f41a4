"""The project around a session: prompt, environment, memory files, skills and pinned documents as blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from agent_tui.context.prompt import SYSTEM_PROMPT, GitFacts, Stamp, environment_text, git_facts, stamp
from agent_tui.errors import AgentError
from agent_tui.models.messages import UPDATE, AttachmentPart
from agent_tui.models.requests import SentMessage, SystemBlock
from agent_tui.text.numbers import size

MAX_DOCUMENT_BYTES = 2_000_000


class Workspace:
    """``memory`` and ``skills`` make their blocks; they are asked before every turn, so that a changed file counts
    at once, while prompt and environment stay the same bytes for the whole session, restarts included. What became
    of the environment since is told with a message (``environment_update``). ``watched`` names the paths that memory
    blocks are made of. ``system`` is the system prompt, ``appended`` what is said after it. ``servers``
    make the blocks of what MCP servers say of their use."""

    def __init__(
        self,
        root: Path,
        cwd: Path,
        added_dirs: Sequence[Path] = (),
        memory: Callable[[], list[SystemBlock]] = list,
        skills: Callable[[], list[SystemBlock]] = list,
        today: Callable[[], date] = date.today,
        watched: Callable[[], list[Path]] = list,
        system: str = SYSTEM_PROMPT,
        appended: Sequence[str] = (),
        servers: Callable[[], list[SystemBlock]] = list,
    ) -> None:
        self._root = root
        self._cwd = cwd
        self._added = list(added_dirs)
        self._memory = memory
        self._skills = skills
        self._today = today
        self._watched = watched
        self._system = system
        self._appended = list(appended)
        self._servers = servers
        self._kept: str | None = None
        self._looked = False
        self.git = GitFacts()

    def look(self) -> None:
        """Asks git for the facts of now. Starts processes: to be called in a thread."""
        self.git = git_facts(self._root)
        self._looked = True

    def adopt(self, environment: str | None) -> None:
        """Takes over the environment as a session was told of it; None for a session that begins."""
        self._kept = environment

    @property
    def environment(self) -> str:
        """The environment as the session is told of it."""
        if self._kept is None:
            self._kept = self._now()
        return self._kept

    def environment_update(self, view: Sequence[SentMessage]) -> AttachmentPart | None:
        """What is different now from what the session was told at its start and in the messages that are sent; None
        when the model knows."""
        parts = (p for sent in reversed(view) for p in sent.message.parts)
        told = next((p.text for p in parts if isinstance(p, AttachmentPart) and p.name == UPDATE), None)
        text = update_text(self.environment, self._now())
        if not text and told is not None:
            text = "The environment is again as at the start of the session."
        return None if text == (told or "") else AttachmentPart(UPDATE, "text/plain", text=text)

    def _now(self) -> str:
        if not self._looked:
            self.look()
        return environment_text(self._cwd, self._root, self._added, self._today(), self.git)

    def blocks(self) -> list[SystemBlock]:
        """Everything but the documents, in the order it is sent."""
        return [
            SystemBlock("system", self._system, "system", "System prompt"),
            *(SystemBlock("system", text, "appended", "Appended instructions") for text in self._appended),
            SystemBlock("environment", self.environment, "environment", "Environment"),
            *self._memory(),
            *self._skills(),
            *self._servers(),
        ]

    @property
    def cwd(self) -> Path:
        return self._cwd

    def resolve(self, path: str) -> str:
        """The absolute path of a document named relative to the working directory."""
        return str((self._cwd / Path(path).expanduser()).resolve())

    def pinnable(self, path: str) -> str:
        """The absolute path of a file that can be pinned. Raises AgentError when it cannot."""
        resolved = self.resolve(path)
        _read(Path(resolved))
        return resolved

    def stamps(self, pinned: Sequence[str]) -> dict[Path, Stamp | None]:
        """What tells whether memory files and pinned files are as they were. Only looks at them; may be called in a
        thread."""
        return {path: stamp(path) for path in (*self._watched(), *map(Path, pinned))}

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


def update_text(then: str, now: str) -> str:
    """The facts that are new or different, after a line that says so; empty when there are none."""
    known = set(_facts(then))
    changed = [fact for fact in _facts(now) if fact not in known]
    return "\n".join(["The environment has changed since the session began. Now:", *changed]) if changed else ""


def _facts(environment: str) -> list[str]:
    """The entries of an environment text; an entry may have several lines."""
    return ["- " + entry for entry in environment.split("\n- ")[1:]]


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise AgentError(f"{path} is not a file.")
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise AgentError(f"{path} is larger than {size(MAX_DOCUMENT_BYTES)}; pin a smaller file.")
        data = path.read_bytes()
    except OSError as error:
        raise AgentError(f"{path} cannot be read: {error.strerror or error}.") from error
    if b"\0" in data:
        raise AgentError(f"{path} is a binary file; only text can be pinned.")
    return data.decode("utf-8", "replace")
