"""Memory files: what the user and the project want every session to know. ``AGENTS.md``, else ``CLAUDE.md``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_tui.context.project.text_files import BadFile, Stamp, read_text, stamp
from agent_tui.models.requests import SystemBlock
from agent_tui.paths import from_a_stranger

NAMES = ("AGENTS.md", "CLAUDE.md")
"""In each folder the first of these that exists."""


@dataclass(slots=True)
class _Read:
    stamp: Stamp
    text: str | None
    problem: str = ""


class MemoryFiles:
    """The user's own file from the configuration folder, then those of the folders from the project's root down to
    the working directory: what is nearer comes later and wins. Files are read again when they changed.

    They are read in folders that are not trusted too, and labelled with where they come from.
    """

    def __init__(self, config_dir: Path, root: Path, cwd: Path) -> None:
        self._config = config_dir
        self._root = root
        below = cwd.relative_to(root).parts if cwd.is_relative_to(root) else ()
        self._folders = [root, *(root.joinpath(*below[: n + 1]) for n in range(len(below)))]
        self._read: dict[Path, _Read] = {}
        self.problems: list[str] = []

    def candidates(self) -> list[Path]:
        """Every path at which a memory file is looked for, whether there is one or not."""
        return [folder / name for folder in (self._config, *self._folders) for name in NAMES]

    def blocks(self) -> list[SystemBlock]:
        """A block for each file, byte-stable while the files are. ``problems`` then has a line for each file that
        cannot be used."""
        self.problems = []
        seen: set[Path] = set()
        blocks: list[SystemBlock] = []
        for folder in (self._config, *self._folders):
            path = next((folder / name for name in NAMES if (folder / name).exists()), None)
            if path is None or path in seen:
                continue
            seen.add(path)
            own = folder == self._config
            label = path.name if folder == self._root else str(path.relative_to(self._root)) if not own else str(path)
            if not own and from_a_stranger(path):
                self.problems.append(f"{label} is not used: another user put it into a folder that is open to all.")
                continue
            text = self._text(path, label, None if own else self._root)
            if text is not None and text.strip():
                blocks.append(SystemBlock("memory", _block(text, label, own), str(path), label, str(path)))
        return blocks

    def _text(self, path: Path, label: str, within: Path | None) -> str | None:
        now = stamp(path)
        if now is None:
            return None
        known = self._read.get(path)
        if known is None or known.stamp != now:
            try:
                known = _Read(now, read_text(path, within))
            except BadFile as error:
                known = _Read(now, None, f"{label} is not used: it {error}.")
            self._read[path] = known
        if known.problem:
            self.problems.append(known.problem)
        return known.text


def _block(text: str, label: str, own: bool) -> str:
    whose = "the user's own, for all projects" if own else "this project's"
    return f'<instructions from="{label}" ({whose})>\n{text.strip()}\n</instructions>'
