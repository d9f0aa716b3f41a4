"""The user's own slash commands: Markdown files whose text is sent, with the arguments filled in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_tui.context.project.frontmatter import BadHead, split_head
from agent_tui.context.project.text_files import BadFile, Stamp, read_text, stamp
from agent_tui.text.clean import plain_line

COMMANDS_FOLDER = Path(".agent-tui") / "commands"

_COMMAND_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}(?:/[a-z0-9][a-z0-9_-]{0,63})*")
_PLACE = re.compile(r"\$(ARGUMENTS\b|[1-9])")


class UserCommand(Protocol):
    """Something sent as ``/name``. ``expand`` gives the message; for a prompt of an MCP server it has to be awaited."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    def expand(self, args: str) -> str | Awaitable[str]: ...


@dataclass(slots=True, frozen=True)
class FileCommand:
    """``text`` may hold ``$ARGUMENTS`` and ``$1`` to ``$9``."""

    name: str
    description: str
    text: str
    path: Path

    def expand(self, args: str) -> str:
        """The message: places filled in; arguments for which there is no place are added at the end."""
        words = _words(args)

        def fill(match: re.Match[str]) -> str:
            if match[1] == "ARGUMENTS":
                return args
            number = int(match[1])
            return words[number - 1] if number <= len(words) else ""

        # One pass: what the user typed is not looked at for places again.
        text, places = _PLACE.subn(fill, self.text)
        return f"{text}\n\n{args}" if args and not places else text


def load_commands(folder: Path, within: Path | None = None) -> tuple[list[FileCommand], list[str]]:
    """The commands of a folder by name (``sub/name`` for a folder below), and a line for each that is broken."""
    loaded: list[FileCommand] = []
    failed: list[str] = []
    for path in _command_files(folder):
        name = path.relative_to(folder).with_suffix("").as_posix().lower()
        try:
            if _COMMAND_NAME.fullmatch(name) is None:
                raise BadHead("its name may have letters, digits, '_' and '-'")
            head, text = split_head(read_text(path, within))
            if not text.strip():
                raise BadHead("has no text")
        except (BadFile, BadHead) as error:
            failed.append(f"{path}: {error}")
            continue
        first = next(line for line in text.splitlines() if line.strip())
        description = plain_line(head.get("description") or first.lstrip("# "), 120)
        loaded.append(FileCommand(name, description, text, path))
    return loaded, failed


def _command_files(folder: Path) -> list[Path]:
    try:
        return sorted([*folder.glob("*.md"), *folder.glob("*/*.md")])[:1_000]
    except OSError:
        return []


def _words(args: str) -> list[str]:
    try:
        return shlex.split(args)
    except ValueError:
        return args.split()


class UserCommands:
    """The commands of a session: the project's once its folder is trusted, and the user's. The project's win."""

    def __init__(
        self,
        config_dir: Path,
        root: Path,
        trusted: bool,
        prompts: Callable[[], list[UserCommand]] = list,
        holds: Callable[[], bool] = lambda: True,
    ) -> None:
        self._holds = holds
        self._own = config_dir / "commands"
        self._root = root
        self._prompts = prompts
        self.trusted = trusted
        self._state: list[tuple[Path, Stamp | None]] | None = None
        self._loaded: list[UserCommand] = []
        self.failed: list[str] = []

    def trust(self) -> None:
        """The folder is trusted from now on."""
        self.trusted = True

    def all(self) -> list[UserCommand]:
        """Every command by name, prompts of MCP servers last. Files are read again when they changed."""
        folders: list[tuple[Path, Path | None]] = [(self._own, None)]
        if self.trusted and self._holds():
            folders.insert(0, (self._root / COMMANDS_FOLDER, self._root))
        state = [(path, stamp(path)) for folder, _ in folders for path in _command_files(folder)]
        if state != self._state:
            self._state, self.failed = state, []
            found: dict[str, UserCommand] = {}
            for folder, within in folders:
                loaded, failed = load_commands(folder, within)
                self.failed += failed
                for command in loaded:
                    found.setdefault(command.name, command)
            self._loaded = [found[name] for name in sorted(found)]
        return [*self._loaded, *self._prompts()]
