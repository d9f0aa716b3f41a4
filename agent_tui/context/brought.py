"""What a project brings along that counts once its user trusts it: each command, server, rule, setting and text, whole,
with the files that it runs or is made of."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_tui.config.files import Layer, file_layer
from agent_tui.context.agents import AGENTS_FOLDERS, type_files
from agent_tui.context.skills import COMMANDS_FOLDERS, SKILLS_FOLDERS, markdown_files, skill_files
from agent_tui.errors import ConfigError
from agent_tui.paths import CLAUDE_SETTINGS, PROJECT_CONFIG
from agent_tui.records import dataclass
from agent_tui.text.clean import spelled, visible_form
from agent_tui.text.numbers import size

MCP_FILE = Path(".mcp.json")
GIT_HOOKS = (Path(".githooks"), Path(".husky"))
"""Folders beside ``.git/hooks`` whose programs git runs by itself where it was told to."""

MAX_FILES = 4_000
MAX_BYTES = 64_000_000
"""A folder that brings more than this is not trusted: nobody could say what it is."""
MAX_FILE = 16_000_000
"""Bytes of one file that can be trusted."""
MAX_SHOWN = 100_000
"""Bytes of one file whose text is shown; of a longer one its size is."""

Kind: TypeAlias = Literal[
    "hook", "MCP server", "git hook", "rule", "model", "setting", "skill", "command", "subagent type", "file"
]
KINDS: Mapping[Kind, str] = {
    "hook": "runs by itself", "MCP server": "runs by itself, or is called", "git hook": "is run by git",
    "rule": "says what is allowed", "model": "says where you send", "setting": "is set",
    "skill": "is read by the model", "command": "is sent as a command", "subagent type": "is told to subagents",
    "file": "cannot be read",
}  # fmt: skip
"""The kinds of items in the order in which they are shown: what runs by itself first."""


@dataclass(slots=True, frozen=True)
class FileText:
    """One file of an item. ``text`` is what it says, None where that cannot be shown; ``size`` in bytes."""

    digest: str
    size: int
    text: str | None = None


@dataclass(slots=True, frozen=True)
class TrustItem:
    """One thing that is accepted or not. ``text`` is what it says, whole; ``value`` what is used of it; ``files`` by path
    what it runs or is made of. ``problem`` says why it cannot be trusted, whatever the user answers. ``keys`` lead to it
    in the configuration file, where it is from there."""

    kind: Kind
    source: str
    name: str
    text: str = ""
    value: Any = field(default=None, compare=False)
    files: Mapping[str, FileText] = field(default_factory=dict)
    problem: str = ""
    keys: tuple[str, ...] = field(default=(), compare=False)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.source, self.name

    @property
    def digest(self) -> str:
        """Changes with every word of it and every byte of its files."""
        parts = [*self.key, self.text, *(f"{path}\0{file.digest}" for path, file in sorted(self.files.items()))]
        return digest_of(*parts)

    def __str__(self) -> str:
        place = "" if self.name == self.source else f" in {spelled(self.source, line=True)}"
        return f"{self.kind} {spelled(self.name, line=True)}{place}"


@dataclass(slots=True, frozen=True)
class Brought:
    """``identity`` tells a repository from another one at the same path. ``config`` is the project's configuration file,
    ``problem`` why it cannot be told what the folder brings; else empty."""

    identity: str
    items: tuple[TrustItem, ...] = ()
    config: Layer | None = field(default=None, compare=False)
    problem: str = ""


class TooMuchError(ValueError):
    """More than can be looked at; the text says what."""


def read_brought(root: Path) -> Brought:
    """Returns what the folder brings along now. Reads files; nothing is raised."""
    reader = _Reader(root)
    identity = identity_of(root)
    try:
        items = [*reader.items()]
    except TooMuchError as error:
        return Brought(identity, problem=str(error))
    order = list(KINDS)
    items.sort(key=lambda item: (order.index(item.kind), item.source))
    return Brought(identity, tuple(items), reader.config)


def digest_of(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


class _Reader:
    """Reads one folder once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real = Path(os.path.realpath(root))
        self._room, self._files = MAX_BYTES, 0
        self._texts: dict[Path, FileText | str] = {}
        self._listed: dict[Path, dict[str, list[str]]] = {}
        self.config: Layer | None = None

    def items(self) -> Iterator[TrustItem]:
        yield from self._of_config()
        for place in CLAUDE_SETTINGS:
            yield from self._of_settings(place)
        yield from self._of_servers()
        for name in git_hooks(self._root):
            yield self._item("git hook", self._below(name), self._below(name), [name], runs=shlex.quote(str(name)))
        for folder in SKILLS_FOLDERS:
            for file in skill_files(self._root / folder):
                yield self._item("skill", f"{folder.as_posix()}", file.parent.name, walk(file.parent), value=file)
        for folder in COMMANDS_FOLDERS:
            for file in markdown_files(self._root / folder):
                name = file.relative_to(self._root / folder).with_suffix("").as_posix()
                yield self._item("command", folder.as_posix(), f"/{name}", [file], value=file)
        for folder in AGENTS_FOLDERS:
            for file in type_files(self._root / folder):
                yield self._item("subagent type", folder.as_posix(), file.stem, [file], value=file)

    # The files that define something

    def _of_config(self) -> Iterator[TrustItem]:
        source, path = PROJECT_CONFIG.as_posix(), self._root / PROJECT_CONFIG
        if (known := self._definitions(PROJECT_CONFIG)) is None:
            return
        if isinstance(known, TrustItem):
            yield known
            return
        try:
            self.config = layer = file_layer(path)
        except ConfigError:
            # Whoever trusts it is told at the start what is wrong with it.
            yield TrustItem("setting", source, source, known)
            return
        if layer is None or layer.text != known:
            raise TooMuchError(f"{source} changes while it is read")
        for keys, value in _leaves(layer.values):
            yield replace(self._setting(source, keys, value), keys=keys)

    def _setting(self, source: str, keys: tuple[str, ...], value: Any) -> TrustItem:
        match keys, value:
            case ("hooks", event), {"command": str(command)}:
                return self._hook(source, event, value.get("matcher") or "", command, value.get("timeout"), value)
            case ("permissions", which), str():
                return TrustItem("rule", source, f"{which} {value}", value=value)
            case ("mcp", name), dict():
                return self._server(source, name, value)
            case ("models", name), dict():
                return TrustItem("model", source, name, _listing(value), value)
            case _:
                return TrustItem("setting", source, ".".join(keys), _json(value), value)

    def _of_settings(self, place: Path) -> Iterator[TrustItem]:
        """The hooks and rules of another agent's settings."""
        from agent_tui.tools.hooks import hooks_of_settings
        from agent_tui.tools.rules.foreign import rules_of_settings

        source = place.as_posix()
        if (known := self._definitions(place)) is None:
            return
        if isinstance(known, TrustItem):
            yield known
            return
        hooks, _ = hooks_of_settings(self._root, place, known)
        for hook in hooks:
            yield self._hook(source, hook.event, hook.matcher, hook.command, hook.timeout, hook)
        for which, rule in rules_of_settings(known):
            words = f"{which} {rule}" if which != "allow" else f"offer to allow {rule}"
            yield TrustItem("rule", source, words, value=(which, rule))

    def _of_servers(self) -> Iterator[TrustItem]:
        from agent_tui.tools.mcp.config import servers_in

        if (known := self._definitions(MCP_FILE)) is None:
            return
        if isinstance(known, TrustItem):
            yield known
            return
        entries, problem = servers_in(known)
        if problem:
            yield TrustItem("file", MCP_FILE.as_posix(), MCP_FILE.as_posix(), problem=f"it {problem}")
        for name, entry in entries.items():
            yield self._server(MCP_FILE.as_posix(), name, entry)

    def _hook(
        self, source: str, event: str, matcher: str, command: str, timeout: float | None, value: Any
    ) -> TrustItem:
        text = command if timeout is None else f"{command}\n(for at most {timeout:g} s)"
        return self._item("hook", source, f"{event} {matcher}".strip(), [], runs=command, text=text, value=value)

    def _server(self, source: str, name: str, entry: Any) -> TrustItem:
        if not isinstance(entry, dict):
            return TrustItem("MCP server", source, name, _json(entry), entry)
        words, rest = [entry.get("command"), *(entry.get("args") or [])], dict(entry)
        runs = ""
        if all(isinstance(word, str) for word in words):
            runs = shlex.join(words)
            del rest["command"]
            rest.pop("args", None)
        text = "\n".join(filter(None, (runs and f"command = {runs}", _listing(rest))))
        folder = entry["cwd"] if isinstance(entry.get("cwd"), str) else ""
        return self._item("MCP server", source, name, [], runs=runs, folder=folder, text=text, value=entry)

    def _definitions(self, place: Path) -> str | TrustItem | None:
        """The text of a file that defines items; an item that says why there is none; None without such a file."""
        path = self._root / place
        if not (path.is_symlink() or path.exists()):
            return None
        file = self._file(path)
        if isinstance(file, FileText) and file.text is not None:
            return file.text
        why = file if isinstance(file, str) else "it is no text, or too long"
        return TrustItem("file", place.as_posix(), place.as_posix(), problem=why)

    # The files of an item

    def _item(
        self,
        kind: Kind,
        source: str,
        name: str,
        files: Iterable[Path],
        *,
        runs: str = "",
        folder: str = "",
        text: str = "",
        value: Any = None,
    ) -> TrustItem:
        contents: dict[str, FileText] = {}
        problem = name_problem(name)
        named, why = named_files(runs, self._root, folder) if runs else ((), "")
        for path in dict.fromkeys((*files, *named)):
            shown = self._below(path)
            file = self._file(path, kind == "git hook")
            if isinstance(file, FileText):
                contents[shown] = file
                why = why or self._looks_like(path)
            else:
                why = why or f"{shown}: {file}"
        return TrustItem(kind, source, name, text, value, contents, problem or why)

    def _below(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)

    def _file(self, path: Path, leads_anywhere: bool = False) -> FileText | str:
        """What a file says, or why it cannot be trusted. Raises TooMuchError."""
        if path not in self._texts:
            self._texts[path] = self._read(path, leads_anywhere)
        return self._texts[path]

    def _read(self, path: Path, leads_anywhere: bool) -> FileText | str:
        self._files += 1
        if self._files > MAX_FILES:
            raise TooMuchError(f"it brings more than {MAX_FILES:,} files")
        try:
            real = Path(os.path.realpath(path))
            if path.is_relative_to(self._root) and not (leads_anywhere or real.is_relative_to(self._real)):
                return "it is a link that leads out of the project"
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                info = os.fstat(descriptor)
                if not stat.S_ISREG(info.st_mode):
                    return "it is no regular file"
                if info.st_size > MAX_FILE:
                    return f"it is larger than {size(MAX_FILE)}"
                data = file.read(MAX_FILE)
        except OSError as error:
            return f"it cannot be read ({error.strerror})"
        self._room -= len(data)
        if self._room <= 0:
            raise TooMuchError(f"it brings more than {size(MAX_BYTES)}")
        link = "" if real == path else str(real)
        text = None if b"\0" in data or len(data) > MAX_SHOWN else data.decode("utf-8", "surrogateescape")
        return FileText(hashlib.blake2b(link.encode("utf-8", "surrogateescape") + b"\0" + data, digest_size=20).hexdigest(), len(data), text)

    def _looks_like(self, path: Path) -> str:
        """Why a file may be taken for another one beside it; empty where it may not."""
        if not path.is_relative_to(self._root):
            return ""
        names = self._listed.get(path.parent)
        if names is None:
            names = self._listed[path.parent] = {}
            for entry in os.listdir(path.parent):
                names.setdefault(visible_form(entry), []).append(entry)
        other = [name for name in names.get(visible_form(path.name), ()) if name != path.name]
        if other:
            return f"{self._below(path)}: there is {spelled(other[0], line=True)} beside it, which looks the same"
        why = name_problem(path.name)
        return f"{spelled(self._below(path), line=True)}: {why}" if why else ""


_LIKE_LATIN = frozenset("асеорхуіјѕһԁԛԝӏвкмнтАВСЕНІЈКМОРЅТХУԚԜοαενρτυχικΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
"""Letters of other scripts that look like Latin ones."""


def name_problem(name: str) -> str:
    """Why a name may be taken for another one; empty where it may not."""
    if name.isascii() and name.isprintable():
        return ""
    if spelled(name, line=True) != name:
        return "its name has characters that cannot be seen"
    for word in re.findall(r"[^\W\d_]+", name):
        scripts = {unicodedata.name(char, "").partition(" ")[0] for char in word}
        if ("LATIN" in scripts and len(scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})) or (
            _LIKE_LATIN.issuperset(word)
        ):
            return f"its name has letters that look like others ({word.encode('ascii', 'backslashreplace').decode()})"
    return ""


def _leaves(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each setting with its keys; the entries of lists of rules and hooks, and servers and models, one by one."""
    for key, value in values.items():
        keys = (*above, key)
        if _is_listed(keys) and isinstance(value, list) and value:
            yield from ((keys, entry) for entry in value)
        elif isinstance(value, dict) and value and not (keys[0] in ("mcp", "models") and len(keys) == 2):
            yield from _leaves(value, keys)
        else:
            yield keys, value


def _is_listed(keys: tuple[str, ...]) -> bool:
    """Returns whether these keys hold a list of rules or hooks, each of which is an item."""
    return len(keys) == 2 and (keys[0] == "hooks" or (keys[0] == "permissions" and keys[1] != "mode"))


def layer_of(layer: Layer, accepted: Iterable[TrustItem], gone_rules: Iterable[tuple[str, str]] = ()) -> Layer:
    """The layer with what was accepted of it alone. Of ``gone_rules`` (``deny``, ``bash(rm *)``), which it had, it keeps
    those that hold the model back."""
    values: dict[str, Any] = {}
    for keys, value in [*((item.keys, item.value) for item in accepted), *((("permissions", w), r) for w, r in gone_rules)]:
        *above, last = keys
        table = values
        for key in above:
            table = table.setdefault(key, {})
        if _is_listed(keys) and not isinstance(value, list):
            table.setdefault(last, []).append(value)
        else:
            table[last] = value
    return layer._replace(values=values)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _listing(values: Mapping[str, Any]) -> str:
    """One line for each value, those of tables below their names."""
    lines: list[str] = []
    for key, value in values.items():
        if isinstance(value, dict):
            lines += [f"{key}.{name} = {inner if isinstance(inner, str) else _json(inner)}" for name, inner in value.items()]
        else:
            lines.append(f"{key} = {value if isinstance(value, str) else _json(value)}")
    return "\n".join(lines)


# Folders and identity


def git_hooks(root: Path) -> list[Path]:
    """The programs that git runs by itself in a folder: those of the repository, of the folder that its configuration
    names, and of the usual ones beside it."""
    from agent_tui.tools.git.repository import git_places
    from agent_tui.tools.sandbox.protected import led_to

    folders = [root / folder for folder in GIT_HOOKS]
    if (root / ".git").exists():
        try:
            folders.append(git_places(root)[1] / "hooks")
        except (OSError, ValueError):
            folders.append(root / ".git" / "hooks")
        folders += led_to(root)
    return [*dict.fromkeys(file for folder in folders for file in walk(folder) if file.suffix != ".sample")]


def walk(place: Path) -> Iterator[Path]:
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
        # What husky writes itself whenever packages are installed, and what Python does.
        folders[:] = sorted(f for f in folders if not (f == "_" and Path(folder).name == ".husky") and f != "__pycache__")
        yield from (Path(folder, name) for name in sorted(names))


Stamps: TypeAlias = tuple[tuple[str, int, int, int], ...]


def stamps(root: Path, brought: Brought) -> Stamps:
    """Changes whenever a file of what is brought was written, added or removed; far cheaper than to read it. The time is
    that of the change of the file's entry, which no program can set."""
    paths: dict[Path, None] = dict.fromkeys(root / place for place in (PROJECT_CONFIG, *CLAUDE_SETTINGS, MCP_FILE))
    paths |= dict.fromkeys(git_hooks(root))
    for folder in (*SKILLS_FOLDERS, *COMMANDS_FOLDERS, *AGENTS_FOLDERS):
        paths |= dict.fromkeys(walk(root / folder))
    for item in brought.items:
        for name in item.files:
            paths |= {root / name: None, (root / name).parent: None}
    found: list[tuple[str, int, int, int]] = []
    for path in islice(paths, 2 * MAX_FILES):
        try:
            info = path.stat()
        except OSError:
            found.append((str(path), 0, 0, 0))
        else:
            found.append((str(path), info.st_ctime_ns, info.st_size, info.st_ino))
    return tuple(found)


def identity_of(root: Path) -> str:
    """Tells a repository from another one that was put in its place; the same as long as it is the same clone.

    ``.git/description`` is written when a repository is made or cloned and hardly ever again, so its time is that
    of the clone, and it survives copies and backups that keep times, as inodes would not. The address of its origin
    counts as well. Where there is no repository, it is the folder itself.
    """
    git = root / ".git"
    try:
        if git.is_file():
            return _named("worktree", git.read_text("utf-8", "replace")[:4_096], str(git.stat().st_mtime_ns))
        if git.is_dir():
            made = git / "description"
            when = f"{made.stat().st_mtime_ns}" if made.is_file() else f"inode {git.stat().st_ino}"
            return _named("repository", when, _origin(git / "config"))
        return _named("folder", str(root.stat().st_ino))
    except OSError:
        return "unreadable"


def _origin(config: Path) -> str:
    """The addresses that a repository's configuration names for its remote ``origin``, read as text."""
    try:
        with config.open("rb") as file:
            data = file.read(200_000)
    except OSError:
        return ""
    found: list[str] = []
    here = False
    for line in data.decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text.startswith("["):
            here = text.replace(" ", "").lower().startswith('[remote"origin"]')
        elif here and text.lower().startswith("url"):
            found.append(text.partition("=")[2].strip())
    return "\n".join(found)


def _named(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
