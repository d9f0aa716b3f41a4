"""Finds what a git command that talks to a remote may reach, from its words and from the settings of its repository.

A repository's configuration is data here. Git itself reads it for us, from a copy, without includes; kept are the few
settings that say where a remote is and what is pushed to it. All others could have git start a program.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from agent_tui.records import dataclass
from agent_tui.tools.git.configuration import config_of
from agent_tui.tools.git.repository import Repository, find_repository, read_small
from agent_tui.urls import read_address

_USER = r"[A-Za-z0-9_][\w.+-]*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*)|\[[0-9A-Fa-f:.]+\])"
_SSH = re.compile(rf"(?:ssh|git\+ssh|ssh\+git)://((?:{_USER}@)?{_HOST})(?::(\d{{1,5}}))?(/[^\s]+)")
_SHORT = re.compile(rf"((?:{_USER}@)?{_HOST}):([^-:\s][^\s]*)")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]|%[01][0-9a-f]|%7f", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class Address:
    """``web`` has its whole ``text``, ``ssh`` a ``host`` (with a user, as ssh takes it), a ``port`` (empty: the usual
    one) and a ``path``, ``local`` an absolute ``path``."""

    kind: Literal["web", "ssh", "local"]
    text: str
    host: str = ""
    port: str = ""
    path: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """The same for two ways to write one place."""
        return (self.kind, self.text) if self.kind == "web" else (self.kind, self.host, self.port, self.path)


def parse_address(text: str, folder: Path) -> Address | None:
    """None for everything else: addresses that name a helper (``ext::``), hold options or characters that are not seen.
    A path is taken from ``folder`` on."""
    if not text or text.startswith("-") or _UNSEEN.search(text) or "::" in text.partition("/")[0].replace("[::", "["):
        return None
    if (web := read_address(text)) is not None:
        return Address("web", web.text)
    if match := _SSH.fullmatch(text):
        host, port, path = match[1], match[2], unquote(match[3])
        return Address("ssh", text, host.replace("[", "").replace("]", ""), port or "", path[path.startswith("/~") :])
    if text.startswith("file:///"):
        return _local(text, Path(unquote(text.removeprefix("file://"))))
    if "://" in text:
        return None
    if match := _SHORT.fullmatch(text):
        return Address("ssh", text, match[1].replace("[", "").replace("]", ""), "", match[2])
    return None if ":" in text.partition("/")[0] else _local(text, folder / text)


def _local(text: str, path: Path) -> Address | None:
    try:
        return Address("local", text, path=os.path.realpath(path))
    except (OSError, ValueError):
        return None


def rewritten(text: str, instead: Iterable[tuple[str, str]]) -> str:
    """``text`` by the longest of the beginnings that a configuration gives another form: (form, beginning)."""
    found = max(
        (pair for pair in instead if pair[1] and text.startswith(pair[1])), key=lambda p: len(p[1]), default=None
    )
    return found[0] + text[len(found[1]) :] if found is not None else text


def relative_to(base: str, text: str) -> str:
    """The address of a submodule, which may be given as a path from that of its repository on."""
    if not text.startswith(("./", "../")):
        return text
    base = base.rstrip("/")
    while text.startswith(("./", "../")):
        step, _, text = text.partition("/")
        if step == "..":
            cut = max(base.rfind("/"), base.rfind(":") if "://" not in base else -1)
            if cut < 0:
                return ""
            base = base[: cut + (base[cut] == ":")]
    return f"{base}{'' if base.endswith(':') else '/'}{text.rstrip('/')}"


Settings = tuple[tuple[str, str], ...]

_LARGEST = 2_000_000
_MODULES = 200
_REMOTE_KEYS = ("url", "pushurl", "fetch", "push", "mirror", "tagopt", "prune")
_BRANCH_KEYS = ("remote", "merge", "pushremote", "rebase")
_PLAIN_KEYS = re.compile(
    r"remote\.pushdefault|push\.(?:default|followtags|autosetupremote|useforceifincludes)|extensions\.objectformat"
)
_FLAGS = re.compile(
    r"-[ufdnqv46]+|--(?:set-upstream|force|force-with-lease(?:=[^\s-][^\s]*)?|(?:no-)?force-if-includes|all|branches|mirror"
    r"|tags|(?:no-)?follow-tags|delete|dry-run|porcelain|quiet|verbose|(?:no-)?progress|prune|(?:no-)?atomic"
    r"|(?:no-)?verify|(?:no-)?thin|ipv4|ipv6|no-recurse-submodules|no-signed|push-option=.+)"
)
_VALUED = ("-o", "--push-option")
_EVERY = ("--all", "--multiple", "update")
_MODULE_WORDS = ("submodule", "--recurse-submodules", "--recursive", "--recurse")


@dataclass(slots=True, frozen=True)
class RemoteReach:
    """The reach of one command beyond the sandbox: ``argv`` in ``folder``. ``addresses`` are those it may talk to,
    ``named`` those of them that stand in its words. ``push`` are its words behind ``push``, for a command that is one:
    it runs with ``settings`` and reads ``objects``. ``problem``: why it may do nothing of that; else empty."""

    argv: tuple[str, ...]
    folder: Path
    repository: Path | None = None
    addresses: tuple[Address, ...] = ()
    named: tuple[Address, ...] = ()
    push: tuple[str, ...] | None = None
    settings: Settings = ()
    objects: Path | None = None
    problem: str = ""


class Remotes:
    """The remotes of one session. ``folders`` are those that the model may write in: their repositories are looked at
    when the session begins, and what differs later is ``unfamiliar`` until it was shown and answered."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = tuple(folder.resolve() for folder in folders)
        self._seen: dict[Path, set[tuple[str, ...]]] = {}
        self._begun = False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Looks at what is there now; once. Starts git a few times: not for the UI's loop."""
        with self._lock:
            if self._begun:
                return
            self._begun = True
            for folder in self.folders:
                repository = find_repository(folder)
                if repository is None or repository.stranger:
                    continue
                tree = repository.tree or folder
                for place in (repository.common, *_modules(repository.common)):
                    self._see(place, _settings(place, tree), tree)
                modules = _addresses(_module_addresses(repository), tree)
                self._learn(repository.common, modules, ())

    def _see(self, place: Path, settings: Settings, folder: Path) -> None:
        self._learn(place, [a for name in _names(settings) for a in _of(settings, name, folder)], settings)

    def _learn(self, place: Path, addresses: Iterable[Address], settings: Settings) -> None:
        self._seen.setdefault(place.resolve(), set()).update([a.key for a in addresses], _pushed_by(settings))

    def learn(self, reach: RemoteReach) -> None:
        """The user was shown what ``reach`` is about, and said yes."""
        if reach.repository is not None:
            self._learn(reach.repository, reach.addresses, reach.settings)

    def unfamiliar(self, reach: RemoteReach) -> list[str]:
        """Returns the parts of a reach that the user has to see before it may happen: addresses and settings that were
        not there when the session began. What stands in the command itself they see anyway."""
        seen = self._seen.get(reach.repository.resolve(), set()) if reach.repository is not None else set()
        plain = {address.key for address in reach.named}
        found = [a.text for a in reach.addresses if a.key not in seen and a.key not in plain]
        if reach.push is not None and not found:
            found = [f"{key} = {value}" for key, value in sorted(_pushed_by(reach.settings) - seen)]
        return found

    def reach(self, argv: Sequence[str], folder: Path) -> RemoteReach:
        """Returns the reach of a git command. Starts git to read a configuration: not for the UI's loop."""
        self.begin()
        found = RemoteReach(tuple(argv), folder.resolve())
        words = list(argv[1:])
        own = False
        while words[:1] in (["-C"], ["-c"]) and len(words) > 1:
            folder = folder / words[1] if words[0] == "-C" else folder
            own = own or words[0] == "-c"
            words = words[2:]
        while words[:1] in (["--no-pager"], ["-P"]):
            words = words[1:]
        # A fetch has them inside the sandbox; what pushes is outside.
        if not words or words[0].startswith("-") or (own and words[0] == "push"):
            return _refused(found, "git with settings of its own")
        folder = folder.resolve()
        repository = find_repository(folder)
        if repository is not None and repository.stranger:
            return _refused(found, "its .git points to a repository that does not know this folder")
        place = repository.common.resolve() if repository is not None else None
        settings = _settings(repository.common, repository.tree or folder) if repository is not None else ()
        found = RemoteReach(found.argv, folder, place, settings=settings)
        if words[0] == "push":
            return self._push(found, words[1:], repository)
        return self._fetch(found, words, repository)

    def _fetch(self, reach: RemoteReach, words: list[str], repository: Repository | None) -> RemoteReach:
        named = self._named(words[1:], reach.folder)
        remotes = [name for name in _names(reach.settings) if name in words[1:]]
        if not remotes and not named and repository is not None and words[0] not in ("clone", "submodule"):
            every = any(word in _EVERY for word in words)
            remotes = _names(reach.settings) if every else _default(reach.settings, repository, "remote")
        found = [address for name in remotes for address in _of(reach.settings, name, reach.folder)[:1]]
        if repository is not None and any(word.startswith(_MODULE_WORDS) for word in words):
            found += _addresses(_module_addresses(repository), reach.folder)
        # What the repository's submodules are fetched from beside it was there when the session began.
        known = [] if repository is None else self._of_modules(repository)
        asked = [address for address in (*found, *named, *known) if not self._inside(address)]
        return replace(reach, addresses=tuple(dict.fromkeys(asked)), named=tuple(named))

    def _of_modules(self, repository: Repository) -> list[Address]:
        found: list[Address] = []
        for place in _modules(repository.common):
            seen = self._seen.get(place.resolve())
            settings = _settings(place, repository.tree or place) if seen is not None else ()
            addresses = [a for name in _names(settings) for a in _of(settings, name, place)]
            found += [address for address in addresses if seen is not None and address.key in seen]
        return found

    def _push(self, reach: RemoteReach, words: list[str], repository: Repository | None) -> RemoteReach:
        if repository is None:
            return _refused(reach, "it is not in a repository")
        objects = repository.common / "objects"
        if not objects.resolve().is_relative_to(repository.common.resolve()):
            return _refused(reach, "the repository keeps its objects elsewhere")
        operands: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            if word in _VALUED:
                at += 1
            elif word.startswith("-") and not _FLAGS.fullmatch(word):
                return _refused(reach, f"{word[:40]} is an unknown option")
            elif not word.startswith("-"):
                operands.append(word)
            at += 1
        named: list[Address] = []
        names: list[str] = []
        if operands and operands[0] not in _names(reach.settings):
            address = parse_address(operands[0], reach.folder)
            if address is None:
                return _refused(reach, f"{operands[0][:80]} is neither a remote nor a plain address")
            named, found = [address], [address]
            text = address.path if address.kind == "local" else address.text
            words = [text if word == operands[0] else word for word in words]
        else:
            names = operands[:1] or _default(reach.settings, repository, "pushremote")
            found = [address for name in names for address in _of(reach.settings, name, reach.folder, push=True)]
        settings = tuple(
            (key, value)
            for key, value in reach.settings
            if not key.startswith("remote.")
            or key == "remote.pushdefault"
            or key.split(".", 1)[1].rpartition(".")[0] in names
        )
        if not found:
            return _refused(reach, "it has no remote with a valid address")
        if any(self._inside(address) for address in found):
            return _refused(reach, "that remote is in the project and can be reached from the sandbox")
        addresses, plain = tuple(found), tuple(named)
        return replace(reach, addresses=addresses, named=plain, push=tuple(words), settings=settings, objects=objects)

    def _named(self, words: Sequence[str], folder: Path) -> list[Address]:
        """The addresses in a command's words; a word alone is a remote, a branch or a folder."""
        plain = [word for word in words if re.match(r"\.{0,2}/|[^-/]*:", word) and not word.startswith("+")]
        return _addresses(plain, folder)

    def _inside(self, address: Address) -> bool:
        """Returns whether an address lies where the model may write: no program of ours runs there."""
        return address.kind == "local" and any(Path(address.path).is_relative_to(place) for place in self.folders)


def _refused(reach: RemoteReach, why: str) -> RemoteReach:
    return RemoteReach(reach.argv, reach.folder, reach.repository, problem=why)


def _addresses(texts: Iterable[str], folder: Path) -> list[Address]:
    return [address for text in texts if (address := parse_address(text, folder)) is not None]


def _names(settings: Settings) -> list[str]:
    """The remotes that have an address."""
    keys = (key.removeprefix("remote.") for key, _ in settings if key.startswith("remote."))
    return list(dict.fromkeys(key.rpartition(".")[0] for key in keys if key.endswith((".url", ".pushurl"))))


def _of(settings: Settings, name: str, folder: Path, push: bool = False) -> list[Address]:
    """The addresses of a remote; all that it has where it is not said whether it is pushed to."""
    urls = [value for key, value in settings if key == f"remote.{name}.url"]
    pushed = [value for key, value in settings if key == f"remote.{name}.pushurl"]
    return _addresses((pushed or urls) if push else [*urls, *pushed], folder)


def _default(settings: Settings, repository: Repository, key: str) -> list[str]:
    """The remote of a command that names none."""
    values = dict(settings)
    wanted = [f"branch.{repository.branch}.remote"]
    if key == "pushremote":
        wanted = [f"branch.{repository.branch}.pushremote", "remote.pushdefault", *wanted]
    names = _names(settings)
    found = next((values[one] for one in wanted if one in values), names[0] if len(names) == 1 else "origin")
    return [found]


def _pushed_by(settings: Settings) -> frozenset[tuple[str, str]]:
    """Returns the settings that decide what is pushed and where. Those of branches are left out: they change with every
    new branch."""
    return frozenset((key, value) for key, value in settings if not key.startswith("branch."))


def _modules(common: Path) -> list[Path]:
    """The repositories of submodules, as far as they are kept in that of ``common``."""
    found: list[Path] = []
    todo = [common / "modules"]
    while todo and len(found) < _MODULES:
        try:
            inside = [entry for entry in sorted(todo.pop().iterdir()) if entry.is_dir() and not entry.is_symlink()]
        except OSError:
            continue
        for entry in inside:
            whole = (entry / "HEAD").is_file() and (entry / "objects").is_dir()
            found += [entry] if whole else []
            todo.append(entry / "modules" if whole else entry)
    return found


def _module_addresses(repository: Repository) -> Iterator[str]:
    """Yields the addresses of submodules that ``.gitmodules`` and the configuration name."""
    listed = list(config_of(read_small(repository.common / "config", repository.common, _LARGEST)))
    if repository.tree is not None:
        listed += config_of(read_small(repository.tree / ".gitmodules", repository.tree, _LARGEST))
    settings = _kept(listed, repository.common)
    base = next(
        (a for a in (dict(settings).get(f"remote.{n}.url", "") for n in ("origin", *_names(settings))) if a), ""
    )
    for key, value in listed:
        if key.startswith("submodule.") and key.endswith(".url"):
            yield relative_to(base, value)


def _settings(common: Path, folder: Path) -> Settings:
    """Returns the settings that are kept of a repository's configuration."""
    return _kept(config_of(read_small(common / "config", common, _LARGEST)), folder)


def _kept(listed: Iterable[tuple[str, str]], folder: Path) -> Settings:
    listed = list(listed)
    instead = [(key[4:-10], value) for key, value in listed if key.startswith("url.") and key.endswith(".insteadof")]
    found: list[tuple[str, str]] = []
    for key, value in listed:
        first, _, rest = key.partition(".")
        name, _, last = rest.rpartition(".")
        if re.search(r"[\x00-\x1f\x7f]", key + value):
            continue
        if first == "remote" and name and last in ("url", "pushurl"):
            address = parse_address(rewritten(value, instead), folder)
            if address is not None:
                found.append((key, address.path if address.kind == "local" else address.text))
        elif (
            (first == "remote" and name and last in _REMOTE_KEYS)
            or (first == "branch" and name and last in _BRANCH_KEYS)
            or _PLAIN_KEYS.fullmatch(key)
        ):
            found.append((key, value))
    return tuple(found)
