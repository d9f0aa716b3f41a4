"""Skills and the user's own slash commands: Markdown files with a head, listed always, read when they are wanted.

The head holds ``key: value`` lines between two ``---`` lines, the small part of YAML that people use there. Values are
texts: plain, quoted, on following indented lines, or as a block after ``|`` or ``>``; lists and tables stay text.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Container, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from agent_tui.context.prompt import LIMIT
from agent_tui.errors import AgentError
from agent_tui.models.requests import SystemBlock
from agent_tui.records import dataclass
from agent_tui.text.clean import plain_line
from agent_tui.tools.files.access import BadFile, FileAccess, Reach, Stamp

FENCE = "---"


class BadHead(ValueError):
    """The head cannot be read; the text says where and why."""


def split_head(text: str) -> tuple[dict[str, str], str]:
    """The head's values and the text after it; a file without a head has no values. Raises BadHead."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        return {}, text
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in (FENCE, "...")), None)
    if end is None:
        raise BadHead("line 1: the front matter that begins with --- has no end")
    return _values(lines[:end]), "\n".join(lines[end + 1 :]).strip("\n")


def _values(lines: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    number = 1
    while number < len(lines):
        line = lines[number]
        number += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, rest = line.partition(":")
        if line[0].isspace() or not colon or not key.strip():
            raise BadHead(f"line {number}: expected `key: value`")
        block: list[str] = []
        while number < len(lines) and (not lines[number].strip() or lines[number][0] in " \t-"):
            block.append(lines[number])
            number += 1
        name = key.strip()
        if name in values:
            raise BadHead(f"line {number}: {name} is given twice")
        values[name] = _value(rest.strip(), block, number)
    return values


def _value(first: str, block: list[str], number: int) -> str:
    kept = [line.strip() for line in block]
    if first[:1] in ("|", ">") and first.rstrip("+-") in ("|", ">"):
        return ("\n" if first[0] == "|" else " ").join(kept).strip()
    if first[:1] == '"':
        try:
            return str(json.loads(" ".join([first, *kept]).strip()))
        except ValueError:
            raise BadHead(f"line {number}: the quoted value does not end, or holds an unknown escape") from None
    if first[:1] == "'":
        whole = " ".join([first, *kept]).strip()
        if len(whole) < 2 or not whole.endswith("'"):
            raise BadHead(f"line {number}: the quoted value does not end")
        return whole[1:-1].replace("''", "'")
    plain = first.split(" #")[0].rstrip()
    return " ".join(part for part in (plain, *kept) if part)


FILE = "SKILL.md"
SKILLS_FOLDERS = (Path(".agents") / "skills", Path(".claude") / "skills")
COMMANDS_FOLDERS = (Path(".agent-tui") / "commands", Path(".claude") / "commands", Path(".codex") / "prompts")
"""Below a project or the home, ours first. A command of ours in the home is in the configuration folder."""

_USED = frozenset({"name", "description", "argument-hint", "disable-model-invocation", "user-invocable"})
"""What is used of a head."""

LISTED = 100
DESCRIPTION = 300
"""Characters of a skill's description that are listed."""

TEXT_LIMIT = 60_000

SKILL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(slots=True, frozen=True)
class Skill:
    """``path`` is its ``SKILL.md``; ``text`` what stands there after the head. ``listed`` for the model; ``typed``: the
    user can send it as a command. ``unused`` are the keys of its head that mean nothing here."""

    name: str
    description: str
    path: Path
    text: str
    listed: bool = True
    typed: bool = True
    unused: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class SkillFolder:
    """A folder of skills, commands or types of subagents, the user's own or the project's. ``accepted`` are those of
    its files that may be used; None: all, it is the user's own."""

    folder: Path
    reach: Reach = "own"
    accepted: Container[Path] | None = None

    def only(self, files: Sequence[Path]) -> list[Path]:
        """Those of its files that may be used."""
        return [file for file in files if self.accepted is None or file in self.accepted]


Accepted = Callable[[], Container[Path]]
"""Finds the files of the project that its user accepted, as they are now."""


def load_skills(files: FileAccess, sources: Sequence[SkillFolder]) -> tuple[list[Skill], list[str]]:
    """All skills by name, and a line for each that is broken. The first source that has a name wins."""
    loaded: dict[str, Skill] = {}
    failed: list[str] = []
    for source in sources:
        for path in source.only(skill_files(source.folder)):
            try:
                skill = _load(files, path, source.reach)
            except (BadFile, BadHead) as error:
                failed.append(f"{path}: {error}")
                continue
            loaded.setdefault(skill.name, skill)
    return sorted(loaded.values(), key=lambda s: s.name), failed


def skill_files(folder: Path) -> list[Path]:
    """The ``SKILL.md`` of each skill in a folder."""
    try:
        return sorted(entry / FILE for entry in folder.iterdir() if (entry / FILE).exists())
    except OSError:
        return []


def _load(files: FileAccess, path: Path, reach: Reach) -> Skill:
    head, text = split_head(files.read_beginning(path, TEXT_LIMIT, reach))
    names = (head.get("name") or path.parent.name, path.parent.name)  # some write a title there
    name = next((one for one in names if SKILL_NAME.fullmatch(one)), path.parent.name)
    if SKILL_NAME.fullmatch(name) is None:
        raise BadHead("its name may have letters, digits, '.', '_' and '-', at most 64")
    description = plain_line(head.get("description") or _first_words(text), DESCRIPTION)
    if not description:
        raise BadHead("its front matter has no description")
    listed, typed = head.get("disable-model-invocation") != "true", head.get("user-invocable") != "false"
    return Skill(name, description, path, text, listed, typed, _unused(head))


def _first_words(text: str) -> str:
    return next((line.lstrip("# ") for line in text.splitlines() if line.strip("# ")), "")


def _unused(head: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(key for key in head if key not in _USED)


def own_skills(config_dir: Path, home: Path) -> list[Path]:
    """The user's own folders of skills, whose files may be read."""
    return [config_dir / "skills", *(home / folder for folder in SKILLS_FOLDERS)]


class Skills:
    """The skills of a session. Those of the project's files that are ``accepted`` now win over the user's of the same
    name. Folders are looked at again before every turn, files read when they changed."""

    def __init__(self, config_dir: Path, home: Path, files: FileAccess, accepted: Accepted) -> None:
        self._files = files
        self._accepted = accepted
        self._own = [SkillFolder(folder) for folder in own_skills(config_dir, home)]
        self._state: list[tuple[Path, Stamp | None]] | None = None
        self._only: Collection[str] | None = None
        self.loaded: list[Skill] = []
        self.failed: list[str] = []

    def narrow(self, names: Collection[str] | None) -> None:
        """Has only those named from now on (None: all)."""
        self._only, self._state = names, None

    def refresh(self) -> None:
        """Reads what changed."""
        accepted = self._accepted()
        brought = [SkillFolder(self._files.root / folder, "project", accepted) for folder in SKILLS_FOLDERS]
        sources = [*brought, *self._own]
        listed = [path for source in sources for path in source.only(skill_files(source.folder))]
        state = [(path, self._files.stamp(path)) for path in listed]
        if state != self._state:
            self._state = state
            loaded, self.failed = load_skills(self._files, sources)
            self.loaded = [skill for skill in loaded if self._only is None or skill.name in self._only]

    def blocks(self) -> list[SystemBlock]:
        """One block that lists names and descriptions; none without skills."""
        self.refresh()
        listed = [skill for skill in self.loaded if skill.listed]
        if not listed:
            return []
        lines = [f"- {skill.name}: {skill.description}" for skill in listed[:LISTED]]
        if len(listed) > LISTED:
            lines.append(f"- … and {len(listed) - LISTED} more")
        text = "Skills: instructions for certain tasks. When one fits, load it with the skill tool first.\n"
        return [SystemBlock("skills", text + "\n".join(lines), "skills", f"Skills ({len(listed)})")]

    def find(self, name: str) -> tuple[str, Path] | None:
        """A skill's text and its folder; None when there is none of that name."""
        self.refresh()
        return next(((s.text, s.path.parent) for s in self.loaded if s.name == name and s.listed), None)

    def names(self) -> list[str]:
        return [skill.name for skill in self.loaded if skill.listed]


MOST_COMMANDS = 1_000
"""Files of a folder that are looked at."""
_COMMAND_NAME = re.compile(r"[a-z0-9][a-z0-9_:-]{0,63}(?:/[a-z0-9][a-z0-9_:-]{0,63})*")
_PLACE = re.compile(r"\$(\$|ARGUMENTS\b|[1-9]|[A-Z][A-Z0-9_]*\b)")
"""``$FILE`` is filled from ``FILE=…``; in prompts written for Codex it has to be, and ``$$`` is a dollar there."""
_SHELL = re.compile(r"!`([^`\n]+)`")

Shell = Callable[[str], Awaitable[str]]
"""Runs a command as if the model had asked for it, and returns its output. Raises AgentError where it may not run."""


class UserCommand(Protocol):
    """Something sent as ``/name``. ``expand`` gives the message; for a prompt of an MCP server it has to be awaited."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    def expand(self, args: str) -> str | Awaitable[str]: ...


@dataclass(slots=True, frozen=True)
class FileCommand:
    """``text`` may hold ``$ARGUMENTS``, ``$1`` to ``$9`` and ``$NAME``, which must have a value where it is ``named``;
    ``shell`` runs what stands in ``!`…```, and its output takes the place. ``unused`` are the keys of its front matter
    that mean nothing here."""

    name: str
    description: str
    text: str
    path: Path
    named: bool = False
    shell: Shell | None = None
    unused: tuple[str, ...] = ()

    def expand(self, args: str) -> str | Awaitable[str]:
        """The message: places filled in; arguments for which there is no place are added at the end. Raises
        AgentError for a name without a value."""
        words = _words(args)
        values = dict(word.split("=", 1) for word in words if "=" in word)
        missing: dict[str, None] = {}
        filled = 0

        def fill(match: re.Match[str]) -> str:
            nonlocal filled
            place = match[1]
            if place == "$":
                return "$" if self.named else match[0]
            if place != "ARGUMENTS" and not place.isdigit() and place not in values:
                missing.update({place: None} if self.named else {})
                return match[0]
            filled += 1
            if place == "ARGUMENTS":
                return args
            if place.isdigit():
                return words[int(place) - 1] if int(place) <= len(words) else ""
            return values[place]

        # One pass: what the user typed is not looked at for places again, nor for commands.
        pieces = _SHELL.split(self.text) if self.shell is not None else [self.text]
        pieces = [_PLACE.sub(fill, piece) for piece in pieces]
        if missing:
            raise AgentError(f"Usage: /{self.name} {' '.join(f'{name}=…' for name in missing)}")
        if args and not filled:
            pieces[-1] += f"\n\n{args}"
        return "".join(pieces) if self.shell is None or len(pieces) == 1 else self._with_output(pieces, self.shell)

    async def _with_output(self, pieces: list[str], shell: Shell) -> str:
        return "".join([await shell(piece) if index % 2 else piece for index, piece in enumerate(pieces)])


def load_commands(
    files: FileAccess, source: SkillFolder, shell: Shell | None = None
) -> tuple[list[FileCommand], list[str]]:
    """The commands of a folder by name (``sub/name`` for a folder below), and a line for each that is broken."""
    folder = source.folder
    named = folder.name == COMMANDS_FOLDERS[-1].name
    loaded: list[FileCommand] = []
    failed: list[str] = []
    for path in source.only(markdown_files(folder)):
        name = path.relative_to(folder).with_suffix("").as_posix().lower()
        try:
            if _COMMAND_NAME.fullmatch(name) is None:
                raise BadHead("its name may have letters, digits, '_', ':' and '-'")
            head, text = split_head(files.read_beginning(path, LIMIT, source.reach))
            if not text.strip():
                raise BadHead("has no text")
        except (BadFile, BadHead) as error:
            failed.append(f"{path}: {error}")
            continue
        words = (head.get("argument-hint", ""), head.get("description") or _first_words(text))
        description = plain_line(" ".join(filter(None, words)), 120)
        loaded.append(FileCommand(name, description, text, path, named, shell, _unused(head)))
    return loaded, failed


def markdown_files(folder: Path) -> list[Path]:
    """Those of a folder and of folders below it; of linked folders those of the first level alone."""
    try:
        return sorted({*folder.glob("*/*.md"), *islice(folder.rglob("*.md"), MOST_COMMANDS)})[:MOST_COMMANDS]
    except OSError:
        return []


def _words(args: str) -> list[str]:
    try:
        return shlex.split(args)
    except ValueError:
        return args.split()


class UserCommands:
    """The commands of a session: those of the project's files that are ``accepted`` now, and the user's. The project's
    win."""

    def __init__(
        self,
        config_dir: Path,
        home: Path,
        files: FileAccess,
        accepted: Accepted,
        prompts: Callable[[], list[UserCommand]] = list,
        shell: Shell | None = None,
    ) -> None:
        self._accepted = accepted
        self._own = [
            SkillFolder(folder) for folder in (config_dir / "commands", *(home / f for f in COMMANDS_FOLDERS[1:]))
        ]
        self._files = files
        self._prompts = prompts
        self._shell = shell
        self._state: list[tuple[Path, Stamp | None]] | None = None
        self.loaded: list[FileCommand] = []
        self.failed: list[str] = []

    def all(self) -> list[UserCommand]:
        """Every command by name, prompts of MCP servers last. Files are read again when they changed."""
        accepted = self._accepted()
        brought = [SkillFolder(self._files.root / folder, "project", accepted) for folder in COMMANDS_FOLDERS]
        sources = [*brought, *self._own]
        listed = [path for source in sources for path in source.only(markdown_files(source.folder))]
        state = [(path, self._files.stamp(path)) for path in listed]
        if state != self._state:
            self._state, self.failed = state, []
            found: dict[str, FileCommand] = {}
            for source in sources:
                loaded, failed = load_commands(self._files, source, self._shell)
                self.failed += failed
                for command in loaded:
                    found.setdefault(command.name, command)
            self.loaded = [found[name] for name in sorted(found)]
        return [*self.loaded, *self._prompts()]
