"""Trust in folders: whether one is trusted, and what it brings along; what the user saw and said yes to holds, nothing
else."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from agent_tui.context.agents import AGENTS_FOLDERS
from agent_tui.context.skills import COMMANDS_FOLDERS, SKILLS_FOLDERS
from agent_tui.paths import CLAUDE_SETTINGS
from agent_tui.records import dataclass
from agent_tui.store.facts import Trust
from agent_tui.text.clean import plain_line
from agent_tui.text.numbers import plural, size
from agent_tui.tools.files.named_files import changed_files, fingerprint, named_files

READ = (
    (Path(".agent-tui") / "config.toml", "configuration"),
    *((place, "hooks, rules") for place in CLAUDE_SETTINGS),
    (Path(".mcp.json"), "MCP servers"),
    *((folder, "skills") for folder in SKILLS_FOLDERS),
    *((folder, "commands") for folder in COMMANDS_FOLDERS),
    *((folder, "subagents") for folder in AGENTS_FOLDERS),
)
"""What is read from a trusted folder alone."""

HOOKS = (Path(".git") / "hooks", Path(".githooks"), Path(".husky"), Path(".claude") / "hooks")
"""Programs that git, or hooks of ours, run by themselves: a change of them is a change of what was trusted."""

MAX_FILES = 4_000
MAX_BYTES = 64_000_000
"""A folder that brings more than this is not trusted: nobody could say what it is."""

KEPT_TEXT = 20_000
KEPT_TEXTS = 500_000
"""Bytes of one file, and of all, whose text is kept to show later what changed in it."""

DIFF_LINES = 6
DIFF_WIDTH = 100
LISTED = 12
"""Lines of one file's difference, characters of such a line, and files, that are shown."""


@dataclass(slots=True, frozen=True)
class Content:
    """``files`` are digests by path below the root, ``texts`` what small ones say. ``identity`` tells a repository
    from another one at the same path. ``problem`` says why it cannot be told what the folder brings; else empty."""

    identity: str
    files: Mapping[str, str]
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)
    problem: str = ""

    def dumps(self) -> str:
        return json.dumps({"files": dict(self.files), "texts": dict(self.texts)}, separators=(",", ":"))

    @classmethod
    def loads(cls, identity: str, data: str) -> Content | None:
        """None for what is not the content of a folder."""
        try:
            value = json.loads(data)
            files, texts = value["files"], value["texts"]
        except (ValueError, KeyError, TypeError):
            return None
        if not (_are_texts(files) and _are_texts(texts)):
            return None
        return cls(identity, files, texts)


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())


Stamps = tuple[tuple[str, int, int, int], ...]


def read_content(root: Path) -> Content:
    """Returns what the folder brings along now. Reads files; nothing is raised."""
    files: dict[str, str] = {}
    texts: dict[str, str] = {}
    room, kept = MAX_BYTES, KEPT_TEXTS
    for path in _brought(root):
        if len(files) >= MAX_FILES:
            return Content(_identity(root), files, texts, f"it brings more than {MAX_FILES:,} files")
        name = path.relative_to(root).as_posix()
        data = _read(path, room)
        if data is None:
            files[name] = "unreadable"
            continue
        room -= len(data)
        if room <= 0:
            return Content(_identity(root), files, texts, f"it brings more than {size(MAX_BYTES)}")
        files[name] = hashlib.blake2b(_link(path) + data, digest_size=20).hexdigest()
        if len(data) <= min(KEPT_TEXT, kept) and b"\0" not in data:
            kept -= len(data)
            texts[name] = data.decode("utf-8", "replace")
    return Content(_identity(root), files, texts)


def stamps(root: Path) -> Stamps:
    """Changes whenever a file was written, added or removed; far cheaper than the content."""
    found: list[tuple[str, int, int, int]] = []
    for path in _brought(root):
        try:
            info = path.stat()
        except OSError:
            found.append((str(path), 0, 0, 0))
        else:
            found.append((str(path), info.st_mtime_ns, info.st_size, info.st_ino))
        if len(found) > MAX_FILES:
            break
    return tuple(found)


def places(root: Path) -> list[str]:
    """Returns the places in a folder that are read from trusted folders alone, each with
    what it is: ``.mcp.json (MCP servers)``."""
    return [f"{place.as_posix()} ({what})" for place, what in READ if next(_walk(root / place), None) is not None]


@dataclass(slots=True, frozen=True)
class Change:
    """``how`` is new, changed or gone; ``lines`` are those that differ, begun with + or -, where they are known."""

    path: str
    how: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{plain_line(self.path, 120)} {self.how}"


def changes(before: Content, now: Content) -> list[Change]:
    """Returns the differences, by path."""
    found: list[Change] = []
    for path in sorted(before.files.keys() | now.files.keys()):
        if before.files.get(path) == now.files.get(path):
            continue
        how = "new" if path not in before.files else "gone" if path not in now.files else "changed"
        known = (path in before.texts or how == "new") and (path in now.texts or how == "gone")
        lines = _difference(before.texts.get(path, ""), now.texts.get(path, "")) if known else ()
        found.append(Change(path, how, lines))
    return found


def _difference(before: str, now: str) -> tuple[str, ...]:
    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), n=0, lineterm="")
    changed = [line for line in lines if line[:1] in "+-" and not line.startswith(("+++ ", "--- "))]
    shown = [line[0] + " " + plain_line(line[1:], DIFF_WIDTH) for line in changed[:DIFF_LINES]]
    more = len(changed) - len(shown)
    return (*shown, *((f"… {plural(more, 'more line')}",) if more else ()))


def _brought(root: Path) -> Iterator[Path]:
    for place in (*(place for place, _ in READ), *HOOKS):
        yield from _walk(root / place)


def _walk(place: Path) -> Iterator[Path]:
    """The files at or below a place, in order; links are followed, each folder is entered once."""
    if not place.is_dir():
        if place.is_symlink() or place.exists():
            yield place
        return
    seen: set[str] = set()
    for folder, folders, names in os.walk(place, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        # What husky writes itself, whenever packages are installed.
        folders[:] = sorted(f for f in folders if not (f == "_" and Path(folder).name == ".husky"))
        yield from (Path(folder, name) for name in sorted(names) if not name.endswith(".sample"))


def _read(path: Path, limit: int) -> bytes | None:
    """A regular file's content, at most ``limit`` bytes of it; None where there is none to be had."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None


def _link(path: Path) -> bytes:
    try:
        return os.fsencode(path.readlink()) + b"\0" if path.is_symlink() else b""
    except OSError:
        return b"unreadable\0"


def _identity(root: Path) -> str:
    """Tells a repository from another one that was put in its place; the same as long as it is the same clone.

    ``.git/description`` is written when a repository is made or cloned and hardly ever again, so its time is that
    of the clone, and it survives copies and backups that keep times, as inodes would not. The address of its origin
    counts as well. Where there is no repository, it is the folder itself.
    """
    git = root / ".git"
    try:
        if git.is_file():
            return _digest("worktree", git.read_text("utf-8", "replace")[:4_096], str(git.stat().st_mtime_ns))
        if git.is_dir():
            made = git / "description"
            when = f"{made.stat().st_mtime_ns}" if made.is_file() else f"inode {git.stat().st_ino}"
            return _digest("repository", when, _origin(git / "config"))
        return _digest("folder", str(root.stat().st_ino))
    except OSError:
        return "unreadable"


def _origin(config: Path) -> str:
    """The addresses that a repository's configuration names for its remote ``origin``, read as text."""
    data = _read(config, 200_000) or b""
    found: list[str] = []
    here = False
    for line in data.decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text.startswith("["):
            here = text.replace(" ", "").lower().startswith('[remote"origin"]')
        elif here and text.lower().startswith("url"):
            found.append(text.partition("=")[2].strip())
    return "\n".join(found)


Command = str | Sequence[str]


def _named(root: Path, own: Sequence[Command]) -> dict[str, str]:
    """What is in the files that the commands of a folder, and the user's ``own``, name in it."""
    from agent_tui.tools.hooks import project_hooks
    from agent_tui.tools.mcp.config import plan_servers

    commands = [*own, *(hook.command for hook in project_hooks(root)[0])]
    servers = [plan.server for plan in plan_servers({}, root, True) if plan.server is not None]
    commands += [[one.command, *one.args, *one.env.values()] for one in servers if one.command]
    found: dict[str, str] = {}
    for command in commands:
        found |= fingerprint(named_files(command, root, root), root)
    return found


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


State = Literal["trusted", "never", "unconfirmed", "changed", "elsewhere", "unknown"]
"""``never``: nobody was asked. ``unconfirmed``: trusted by a version that did not look at contents. ``elsewhere``:
another repository was trusted at this path. ``unknown``: it cannot be told what the folder brings."""

MANY = 4
"""Changes that are named in one line."""


class FolderTrust:
    """The trust of one folder. Reads its files when made; ``holds`` and ``accept`` look again. ``identity`` tells the
    repository that was there then from others at the same path."""

    def __init__(self, root: Path, stored: Trust) -> None:
        self.root = root
        self._stored = stored
        self._commands: Sequence[Command] = ()
        self._stamps = stamps(root)
        self.content = self._read()
        self.identity = self.content.identity
        self._trusted: Content | None = None
        row = stored.get(root)
        if row is not None and row.content is not None:
            self._trusted = Content.loads(row.identity, row.content)
        self._known = row is not None
        self.state: State = self._judge()

    @property
    def commands(self) -> Sequence[Command]:
        """The user's own commands that run by themselves, and may name files of the folder."""
        return self._commands

    @commands.setter
    def commands(self, commands: Sequence[Command]) -> None:
        self._commands = commands
        self.content = self._read()
        self.state = self._judge()

    def _read(self) -> Content:
        content = read_content(self.root)
        return replace(content, files={**content.files, **_named(self.root, self._commands)})

    def changed_since_accepted(self, files: Mapping[str, str]) -> list[str]:
        """The paths among the ``fingerprint`` of a command's files that are not as the user accepted them; all of them
        where the folder was never trusted."""
        known = self._trusted.files if self.trusted and self._trusted is not None else {}
        return changed_files(known, files)

    @property
    def trusted(self) -> bool:
        return self.state == "trusted"

    def _judge(self) -> State:
        if self.content.problem:
            return "unknown"
        if self._trusted is None:
            return "unconfirmed" if self._known else "never"
        if self._trusted.identity != self.content.identity:
            return "elsewhere"
        return "trusted" if self._trusted.files == self.content.files else "changed"

    def holds(self) -> bool:
        """Returns whether the folder is still as it was trusted. Cheap while no file was touched."""
        if not self.trusted:
            return False
        now = stamps(self.root)
        if now != self._stamps:
            self._stamps, self.content = now, self._read()
            self.state = self._judge()
        return self.trusted

    def changes(self) -> list[Change]:
        """Returns what is different from what was trusted; everything, where that is not known."""
        before = self._trusted if self._trusted is not None else Content("", {})
        return changes(before, self.content)

    def accept(self) -> bool:
        """Trusts what the folder brings along, if it is what ``content`` says, which is what the user was shown.
        Otherwise ``content`` is brought up to date, to be shown, and nothing is trusted: False."""
        now = self._read()
        same = now == self.content and not now.problem
        self.content, self._stamps = now, stamps(self.root)
        if same:
            self._stored.put(self.root, now.identity, now.dumps())
            self._trusted, self._known = now, True
        self.state = self._judge()
        return same

    def line(self) -> str:
        """One line for the user; empty when nothing is ignored."""
        ignored = places(self.root)
        what = f"so {', '.join(ignored)} {'is' if len(ignored) == 1 else 'are'} ignored" if ignored else ""
        match self.state:
            case "trusted":
                return ""
            case "never":
                return f"This folder is not trusted, {what}; run /trust (or --trust) to use them." if what else ""
            case "unknown":
                return f"This folder cannot be trusted: {self.content.problem}{f', {what}' if what else ''}."
            case "unconfirmed":
                why = "This folder was trusted before its contents were checked"
            case "elsewhere":
                why = "Another repository was trusted at this path"
            case "changed":
                found = self.changes()
                names = ", ".join(map(str, found[:MANY])) + (f" and {len(found) - MANY} more" * (len(found) > MANY))
                why = f"This folder changed since you trusted it ({names})"
        if not what and self.state != "changed":
            return ""
        return f"{why}{f', {what}' if what else ''}; run /trust to review it (--trust trusts it as is)."

    def details(self) -> str:
        """Returns what would be trusted, with what is different in it, file by file."""
        found = self.changes()
        if not found:
            return "Nothing here needs your trust."
        lines: list[str] = []
        for change in found[:LISTED]:
            lines += [f"  {change}", *(f"      {line}" for line in change.lines)]
        if len(found) > LISTED:
            lines.append(f"  … and {len(found) - LISTED:,} more files")
        lines += _hook_lines(self.root)
        return "\n".join(lines)


def _hook_lines(root: Path) -> list[str]:
    """A line for each command that a folder would run by itself."""
    from agent_tui.tools.hooks import project_hooks

    hooks = project_hooks(root)[0]
    lines = [f"  would run at {hook.when}: {plain_line(hook.command, 300)}" for hook in hooks[:LISTED]]
    return [*lines, *([f"  … and {len(hooks) - LISTED:,} more hooks"] if len(hooks) > LISTED else [])]
