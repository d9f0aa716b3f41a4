"""Skills: instructions for a kind of work, in a folder with a ``SKILL.md``. Listed always, loaded when wanted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.context.project.frontmatter import BadHead, split_head
from agent_tui.context.project.text_files import BadFile, Stamp, read_text, stamp
from agent_tui.models.requests import SystemBlock
from agent_tui.text.clean import plain_line

FILE = "SKILL.md"
SKILLS_FOLDER = Path(".agents") / "skills"

LISTED = 100
DESCRIPTION = 300
"""Characters of a skill's description that are listed."""

TEXT_LIMIT = 60_000

_SKILL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(slots=True, frozen=True)
class Skill:
    """``path`` is its ``SKILL.md``; ``text`` what stands there after the head."""

    name: str
    description: str
    path: Path
    text: str


@dataclass(slots=True, frozen=True)
class Source:
    """A folder of skills. ``within`` bounds where links may lead; None: anywhere, it is the user's own."""

    folder: Path
    within: Path | None = None


def load_skills(sources: Sequence[Source]) -> tuple[list[Skill], list[str]]:
    """All skills by name, and a line for each that is broken. The first source that has a name wins."""
    loaded: dict[str, Skill] = {}
    failed: list[str] = []
    for source in sources:
        for path in _skill_files(source.folder):
            try:
                skill = _load(path, source.within)
            except (BadFile, BadHead) as error:
                failed.append(f"{path}: {error}")
                continue
            loaded.setdefault(skill.name, skill)
    return sorted(loaded.values(), key=lambda s: s.name), failed


def _skill_files(folder: Path) -> list[Path]:
    try:
        return sorted(entry / FILE for entry in folder.iterdir() if (entry / FILE).exists())
    except OSError:
        return []


def _load(path: Path, within: Path | None) -> Skill:
    head, text = split_head(read_text(path, within, TEXT_LIMIT))
    name = head.get("name") or path.parent.name
    if _SKILL_NAME.fullmatch(name) is None:
        raise BadHead("its name may have letters, digits, '.', '_' and '-', at most 64")
    description = plain_line(head.get("description", ""), DESCRIPTION)
    if not description:
        raise BadHead("its head has no description")
    return Skill(name, description, path, text)


class Skills:
    """The skills of a session. Those of the project count once its folder is trusted, and as long as ``holds`` says
    that it is as it was trusted; they win over the user's of the same name. Folders are looked at again before every
    turn, files read when they changed."""

    def __init__(
        self, config_dir: Path, home: Path, root: Path, trusted: bool, holds: Callable[[], bool] = lambda: True
    ) -> None:
        self._root = root
        self._holds = holds
        self._own = [Source(config_dir / "skills"), Source(home / SKILLS_FOLDER)]
        self.trusted = trusted
        self._state: list[tuple[Path, Stamp | None]] | None = None
        self.loaded: list[Skill] = []
        self.failed: list[str] = []

    @property
    def folders(self) -> list[Path]:
        """The user's own folders of skills, whose files may be read."""
        return [source.folder for source in self._own]

    def trust(self) -> None:
        """The folder is trusted from now on."""
        self.trusted = True

    def refresh(self) -> None:
        """Reads what changed."""
        sources = list(self._own)
        if self.trusted and self._holds():
            sources.insert(0, Source(self._root / SKILLS_FOLDER, self._root))
        state = [(path, stamp(path)) for source in sources for path in _skill_files(source.folder)]
        if state != self._state:
            self._state = state
            self.loaded, self.failed = load_skills(sources)

    def blocks(self) -> list[SystemBlock]:
        """One block that lists names and descriptions; none without skills."""
        self.refresh()
        if not self.loaded:
            return []
        lines = [f"- {skill.name}: {skill.description}" for skill in self.loaded[:LISTED]]
        if len(self.loaded) > LISTED:
            lines.append(f"- … and {len(self.loaded) - LISTED} more")
        text = "Skills: instructions for certain tasks. When one fits, load it with the skill tool first.\n"
        return [SystemBlock("skills", text + "\n".join(lines), "skills", f"Skills ({len(self.loaded)})")]

    def find(self, name: str) -> tuple[str, Path] | None:
        """A skill's text and its folder; None when there is none of that name."""
        self.refresh()
        return next(((s.text, s.path.parent) for s in self.loaded if s.name == name), None)

    def names(self) -> list[str]:
        return [skill.name for skill in self.loaded]
