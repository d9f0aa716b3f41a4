"""What a project brings along that counts once its user trusts it: each command, server, rule, setting and text, whole,
with the files that it runs or is made of."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_tui.config.files import Layer, layer_of_text
from agent_tui.context.agents import AGENTS_FOLDERS, type_files
from agent_tui.context.folder import git_hooks, identity_of, walk
from agent_tui.context.skills import COMMANDS_FOLDERS, SKILLS_FOLDERS, markdown_files, skill_files
from agent_tui.errors import ConfigError
from agent_tui.paths import CLAUDE_SETTINGS, PROJECT_CONFIG, read_regular
from agent_tui.records import dataclass
from agent_tui.text.clean import spelled, visible_form
from agent_tui.text.lookalikes import name_problem
from agent_tui.text.numbers import size
from agent_tui.tools.files.fingerprints import NamedFiles, fingerprint
from agent_tui.tools.files.named_files import named_files

MCP_FILE = Path(".mcp.json")
PLACES = (PROJECT_CONFIG, *CLAUDE_SETTINGS, MCP_FILE, *SKILLS_FOLDERS, *COMMANDS_FOLDERS, *AGENTS_FOLDERS)
"""What is read of a trusted folder."""

MAX_FILES = 4_000
MAX_BYTES = 64_000_000
"""A folder that brings more than this is not trusted: nobody could say what it is."""
MAX_FILE = 16_000_000
"""Bytes of one file that can be trusted."""
MAX_SHOWN = 100_000
"""Bytes of one file whose text is shown; of a longer one its size is."""
MAX_DEFINITIONS = 1_000_000
"""Bytes of a file that says what runs and what is allowed."""

Kind: TypeAlias = Literal[
    "hook",
    "MCP server",
    "command of yours",
    "git hook",
    "rule",
    "model",
    "setting",
    "skill",
    "command",
    "subagent type",
    "file",
]
KINDS: Mapping[Kind, str] = {
    "hook": "Hooks, which run by themselves",
    "MCP server": "MCP servers, which run by themselves",
    "command of yours": "Commands of yours that run files of this folder",
    "git hook": "Programs that git runs by itself",
    "rule": "Rules on what is allowed",
    "model": "Models, and where they are",
    "setting": "Settings",
    "skill": "Skills",
    "command": "Commands",
    "subagent type": "Types of subagents",
    "file": "Files",
}
"""The kinds of items in the order in which they are shown: what runs by itself first."""


Keys: TypeAlias = tuple[str | int, ...]
"""Leads to a setting; ``ENTRY`` stands behind those of the list that it is in."""
ENTRY = 0


@dataclass(slots=True, frozen=True)
class FileText:
    """One file of an item. ``text`` is what it says, None where that cannot be shown; ``size`` in bytes."""

    digest: str
    size: int
    text: str | None = None


@dataclass(slots=True, frozen=True)
class TrustItem:
    """One thing that is accepted or not. ``text`` is what it says, whole; ``value`` what is used of it; ``files`` by
    path what it runs or is made of. ``problem`` says why it cannot be trusted, whatever the user answers. ``keys`` lead
    to it in the configuration file, where it is from there."""

    kind: Kind
    source: str
    name: str
    text: str = ""
    value: Any = field(default=None, compare=False)
    files: Mapping[str, FileText] = field(default_factory=dict)
    problem: str = ""
    keys: Keys = field(default=(), compare=False)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.source, self.name

    @property
    def digest(self) -> str:
        """Changes with every word of it and every byte of its files."""
        files = {path: file.digest for path, file in self.files.items()}
        # Of what is no JSON (a hook, a file) its name and text say all.
        whole = json.dumps([self.key, self.text, self.value, files], sort_keys=True, default=lambda _: None)
        return hashlib.blake2b(whole.encode(), digest_size=20).hexdigest()

    def __str__(self) -> str:
        place = "" if self.name == self.source else f" in {spelled(self.source, line=True)}"
        return f"{self.kind} {spelled(self.name, line=True)}{place}"


@dataclass(slots=True, frozen=True)
class Brought:
    """``identity`` tells a repository from another one at the same path. ``config`` is the project's configuration
    file; ``unused`` are lines on what of the hooks in a file means nothing here. ``problem`` says why it cannot be told
    what the folder brings; else empty."""

    identity: str
    items: tuple[TrustItem, ...] = ()
    config: Layer | None = field(default=None, compare=False)
    unused: tuple[tuple[str, str], ...] = ()
    problem: str = ""

    @property
    def content(self) -> list[tuple[str, str]]:
        """Differs where anything of it does."""
        return [(item.digest, item.problem) for item in self.items]


Command: TypeAlias = str | Sequence[str]
"""A line of shell, or a program with its arguments."""
OwnCommand: TypeAlias = tuple[str, Command]
"""One of the user's, as it is shown, and as it runs: what it is given in its environment may be a key."""


class TooMuchError(ValueError):
    """More than can be looked at; the text says what."""


def read_brought(root: Path, cwd: Path, own: Sequence[OwnCommand] = ()) -> Brought:
    """Returns what the folder brings along now. Hooks start in ``cwd``; ``own`` are the commands of the user's that run
    by themselves, which may name files here. Reads files; nothing is raised."""
    reader = _Reader(root, cwd, own)
    identity = identity_of(root)
    try:
        items = [*reader.items()]
    except TooMuchError as error:
        return Brought(identity, problem=str(error))
    order = list(KINDS)
    items.sort(key=lambda item: (order.index(item.kind), item.source))
    return Brought(identity, tuple(items), reader.config, tuple(reader.problems))


class _Reader:
    """Reads one folder once."""

    def __init__(self, root: Path, cwd: Path, own: Sequence[OwnCommand]) -> None:
        self._root, self._cwd, self._own = root, cwd, own
        self._real = Path(os.path.realpath(root))
        self._room, self._files = MAX_BYTES, 0
        self._texts: dict[Path, FileText | str] = {}
        self._listed: dict[Path, dict[str, list[str]]] = {}
        self.config: Layer | None = None
        self.problems: list[tuple[str, str]] = []

    def items(self) -> Iterator[TrustItem]:
        yield from self._of_config()
        for place in CLAUDE_SETTINGS:
            yield from self._of_settings(place)
        yield from self._of_servers()
        for shown, command in self._own:
            item = self._item("command of yours", "your configuration", shown, runs=command)
            if item.files or item.problem:
                yield item
        for file in git_hooks(self._root):
            runs = shlex.quote(str(file))
            yield self._item("git hook", self._below(file), self._below(file), [file], runs=runs)
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
            self.config = layer = layer_of_text(path, known)
        except ConfigError:
            # Whoever trusts it is told at the start what is wrong with it.
            yield TrustItem("setting", source, source, known)
            return
        from agent_tui.config.schema import refusal

        for keys, value in _leaves(layer.values):
            item = self._setting(source, keys, value)
            yield replace(item, keys=keys, problem=item.problem or refusal(keys, value))

    def _setting(self, source: str, keys: Keys, value: Any) -> TrustItem:
        match keys, value:
            case ("hooks", str(event), int()), {"command": str(command)}:
                return self._hook(source, event, value.get("matcher") or "", command, value.get("timeout"), value)
            case ("permissions", which, int()), str():
                return TrustItem("rule", source, f"{which} {value}", value=value)
            case ("mcp", str(name)), dict():
                return self._server(source, name, value)
            case ("models", str(name)), dict():
                return TrustItem("model", source, name, _listing(value), value)
            case _:
                name = ".".join(key for key in keys if isinstance(key, str))
                return TrustItem("setting", source, name, _json(value), value)

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
        hooks, problems = hooks_of_settings(self._root, place, known)
        self.problems += [(source, line) for line in problems]
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
        name = f"{event} {matcher}".strip() + (f", at most {timeout} s" if timeout is not None else "")
        return self._item("hook", source, name, runs=command, text=command, value=value)

    def _server(self, source: str, name: str, entry: Any) -> TrustItem:
        if not isinstance(entry, dict):
            return TrustItem("MCP server", source, name, _json(entry), entry)
        from agent_tui.tools.mcp.config import started_by

        shown, args = dict(entry), entry.get("args", [])
        words = [entry.get("command"), *args] if isinstance(args, list) else [None]
        if all(isinstance(word, str) for word in words):
            shown = {"command": shlex.join(map(str, words)), **{k: v for k, v in entry.items() if k not in _STARTED}}
        runs, folder = started_by(entry, self._root)
        return self._item("MCP server", source, name, runs=runs, folder=folder, text=_listing(shown), value=entry)

    def _definitions(self, place: Path) -> str | TrustItem | None:
        """The text of a file that defines items; an item that says why there is none; None without such a file."""
        path = self._root / place
        if not (path.is_symlink() or path.exists()):
            return None
        file = self._file(path, most=MAX_DEFINITIONS)
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
        files: Iterable[Path] = (),
        *,
        runs: Command = "",
        folder: Path | None = None,
        text: str = "",
        value: Any = None,
    ) -> TrustItem:
        contents: dict[str, FileText] = {}
        problem = "" if kind == "command of yours" else name_problem(name)
        named = named_files(runs, folder or self._cwd, self._root) if runs else NamedFiles()
        digests = dict.fromkeys(map(self._below, files), "") | fingerprint(named, self._root)
        problem = problem or named.problem
        for name_below, digest in digests.items():
            path = self._root / name_below
            if digest.startswith("leads to ") or name_below.endswith("/"):
                file: FileText | str = FileText(digest, 0)
            else:
                file = self._file(path, kind == "git hook")
            if isinstance(file, FileText):
                contents[name_below] = file
                problem = problem or self._looks_like(path)
                if digest not in ("", file.digest):
                    problem = problem or f"{name_below} changes while it is read"
            else:
                problem = problem or f"{name_below}: {file}"
        return TrustItem(kind, source, name, text, value, contents, problem)

    def _below(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)

    def _file(self, path: Path, leads_anywhere: bool = False, most: int = MAX_SHOWN) -> FileText | str:
        """What a file says, or why it cannot be trusted. Raises TooMuchError."""
        if path not in self._texts:
            self._texts[path] = self._read(path, leads_anywhere, most)
        return self._texts[path]

    def _read(self, path: Path, leads_anywhere: bool, most: int) -> FileText | str:
        self._files += 1
        if self._files > MAX_FILES:
            raise TooMuchError(f"it brings more than {MAX_FILES:,} files")
        try:
            real = Path(os.path.realpath(path))
            if path.is_relative_to(self._root) and not (leads_anywhere or real.is_relative_to(self._real)):
                return "it is a link that leads out of the project"
            data = read_regular(path, MAX_FILE + 1)
        except OSError as error:
            return f"it cannot be read ({error.strerror})"
        if len(data) > MAX_FILE:
            return f"it is larger than {size(MAX_FILE)}"
        self._room -= len(data)
        if self._room <= 0:
            raise TooMuchError(f"it brings more than {size(MAX_BYTES)}")
        text = None if b"\0" in data or len(data) > most else data.decode("utf-8", "replace")
        # As ``fingerprint`` has it, which is asked before each start.
        link = f"{real} " if path.is_symlink() else ""
        return FileText(link + hashlib.blake2b(data, digest_size=20).hexdigest(), len(data), text)

    def _looks_like(self, path: Path) -> str:
        """Why a file may be taken for another one beside it; empty where it may not."""
        if not path.is_relative_to(self._root):
            return ""
        names = self._listed.get(path.parent)
        if names is None:
            names = self._listed[path.parent] = {}
            for entry in path.parent.iterdir():
                names.setdefault(visible_form(entry.name), []).append(entry.name)
        other = [name for name in names.get(visible_form(path.name), ()) if name != path.name]
        if other:
            return f"{self._below(path)}: there is {spelled(other[0], line=True)} beside it, which looks the same"
        why = name_problem(path.name)
        return f"{spelled(self._below(path), line=True)}: {why}" if why else ""


def _leaves(values: Mapping[str, Any], above: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Each setting with its keys; the entries of lists of rules and hooks, and servers and models, one by one."""
    for key, value in values.items():
        keys = (*above, key)
        is_list = len(keys) == 2 and keys[0] in ("hooks", "permissions") and isinstance(value, list)
        if is_list and value:
            yield from (((*keys, ENTRY), entry) for entry in value)
        elif isinstance(value, dict) and value and not (len(keys) == 2 and keys[0] in ("mcp", "models")):
            yield from _leaves(value, keys)
        else:
            yield keys, value


def layer_of(layer: Layer, accepted: Iterable[TrustItem], gone_rules: Iterable[tuple[str, str]] = ()) -> Layer:
    """The layer with what was accepted of it alone, and the rules (``deny``, ``bash(rm *)``) that are gone from it."""
    values: dict[str, Any] = {}
    leaves = [(item.keys, item.value) for item in accepted]
    for keys, value in [*leaves, *((("permissions", which, ENTRY), rule) for which, rule in gone_rules)]:
        names = [key for key in keys if isinstance(key, str)]
        table = values
        for key in names[:-1]:
            table = table.setdefault(key, {})
        if len(names) < len(keys):
            table.setdefault(names[-1], []).append(value)
        else:
            table[names[-1]] = value
    return layer._replace(values=values)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _listing(values: Mapping[str, Any]) -> str:
    """One line for each value, those of tables below their names."""
    lines: list[str] = []
    for key, value in values.items():
        if isinstance(value, dict):
            lines += [f"{_plain(key)}.{_plain(name)} = {_plain(inner)}" for name, inner in value.items()]
        else:
            lines.append(f"{_plain(key)} = {_plain(value)}")
    return "\n".join(lines)


_STARTED = ("command", "args")


def _plain(value: Any) -> str:
    """A text as it is, where it has one line; all else as JSON."""
    return value if isinstance(value, str) and value.isprintable() else _json(value)
