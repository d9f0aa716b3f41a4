"""The files that a command of a project or of the user names in places where the model's commands may write, and what
is in them: what is started outside the sandbox is then what somebody saw.

The command, and each script that it names, are read as text: a word that is a file is named. What lies beside a Python
script is imported before what is installed, so it counts, and so does all of an environment of packages. What a
program finds by itself is known of a few (``make`` its Makefile); what runs the project's own tests runs them all.
"""
# ruff: noqa: PTH111, PTH112, PTH113, PTH114, PTH115, PTH118, PTH119, PTH120, PTH122, PTH208  (thousands of paths a look)

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from agent_tui.pipes.programs import may_be_written
from agent_tui.records import dataclass
from agent_tui.text.numbers import size
from agent_tui.tools.files import beneath

MOST_FILES, MOST_BYTES = 2_000, 32_000_000
MOST_PACKAGED = 60_000
"""Files that a command may name, their bytes, and the files of an environment of packages: of more it is not known what
runs."""

SETTLED_SECONDS = 1.0
"""Whoever wrote a file later than this before it is looked at may be about to write it again."""

BEING_WRITTEN = "? being written"
"""Stands for the content of such a file; what begins with ``?`` is not known, and the same as nothing else."""

_TICK = 0.02
"""Seconds within which two changes of a file may have one time; systems count in fractions of that."""

_SCRIPT_BYTES = 400_000
_RUNS = frozenset(
    [".py", ".pyc", ".so", ".js", ".mjs", ".cjs", ".ts", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".lua"]
)
_IMPORTED = (".py", ".pyc", ".so")
_WORD = re.compile(r"[\w./~@%+*?-]+")
_INTERPRETED = re.compile(
    r"(?:^|[\s;&|(`/])(?:(?:ba|da|z|k|fi)?sh|python[\d.]*|node|ruby|perl|php|(?:deno|bun)(?: run)?|exec)"
    r"\s+(?:-\S+\s+)*[\"']?([^\s;&|\"']+)"
)
_SOURCED = re.compile(r"(?:^|[\s;&|(])(?:source|\.)\s+([^\n;&|]+)")
_IMPLIED = (
    (re.compile(r"\bg?make\b"), ("GNUmakefile", "makefile", "Makefile")),
    (re.compile(r"\b(?:npm|pnpm|yarn|bun)\s+(?:run|test|start|exec)\b"), ("package.json",)),
    (re.compile(r"\bjust\b"), ("justfile", "Justfile", ".justfile")),
)
"""Files in which a program finds what it runs, where it is called by its bare name."""
_VARIABLE = re.compile(r"\$\{?\w+\}?")
_GOES = re.compile(r"(?:\b(?:cd|pushd)|\s(?:-C|--(?:directory|prefix|cwd)))[ =]+[\"']?([^\s;&|\"']+)")
_MODULE = re.compile(r"(?:^[ \t]*(?:from|import)|\s-m)[ \t]+([\w., \t]+)", re.MULTILINE)
_BESIDE = re.compile(r"\.pyw?\b|\bpython[\d.]*\s+(?:-\S+\s+)*-\w*m\b")
"""Python may be asked to import from the folder of a script, or from where it starts."""
_WHERE_IT_STARTS = re.compile(r"\bpython[\d.]*[\"']?\s+(?:-\S+\s+)*(?:-\w*[cm]\b|-(?:\s|$)|<<)")
_BYTECODE = re.compile(
    r"\benv\s+-|\bPYTHONPYCACHEPREFIX\b|\bpython[\d.]*\s+(?:-\w+\s+)*-\w*[EI]|#!.*python.*\s-\w*[EI]"
)
"""It may read bytecode that lies in the project, whatever its environment says."""


@dataclass(slots=True, frozen=True)
class NamedFiles:
    """``files`` lie where commands may write, ``trees`` are environments of packages there; ``missing`` are scripts
    that are named and not there. ``imports``: modules beside a script are wanted. ``problem`` says why it cannot be
    told what would run; else empty. ``stamps`` say of files that were read for what they name which ones those were."""

    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    imports: bool = False
    problem: str = ""
    stamps: Mapping[str, tuple[int, ...]] = field(default_factory=dict, compare=False)


def named_files(command: str | Sequence[str], cwd: Path, root: Path) -> NamedFiles:
    """What a line of shell, or a program with its arguments, names when it is started in ``cwd``; ``root`` is the
    project. Reads files; nothing is raised."""
    text = command if isinstance(command, str) else "\n".join(command)
    return _Search(os.path.realpath(cwd), os.path.realpath(root)).of(text)


def fingerprint(named: NamedFiles, root: Path, *, settled: bool = False) -> dict[str, str]:
    """What the files are, by their paths below ``root``, or whole for those elsewhere. With ``settled`` one that was
    written just now, and not read before, is ``BEING_WRITTEN``: it may change before it is used. So is one that is not
    the one that was read for what it names."""
    below = os.path.realpath(root)
    found = {_shown(path, below): _digest(path, settled, named.stamps.get(path)) for path in named.files}
    if settled:  # one that comes and goes is there when it is started
        found |= {_shown(path, below): BEING_WRITTEN for path in named.missing if _just_changed(path)}
    return found | {_shown(path, below) + "/": _tree_digest(path) for path in named.trees}


def changed_files(accepted: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The files that are not what was accepted. One that is gone counts only where the command still names it."""
    return [path for path, digest in now.items() if digest.startswith("?") or accepted.get(path) != digest]


class _Search:
    def __init__(self, cwd: str, root: str) -> None:
        self._cwd, self._root, self._home = cwd, root, os.path.expanduser("~")
        self._files: set[str] = set()
        self._trees: set[str] = set()
        self._missing: set[str] = set()
        self._todo: list[str] = []
        self._seen: set[str] = set()
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._entries: dict[str, frozenset[str]] = {}
        self._imports = self._bytecode = False

    def of(self, text: str) -> NamedFiles:
        self._read(text, self._cwd)
        starts = _WHERE_IT_STARTS.search(text) is not None
        scripts: list[str] = []
        while self._todo and len(self._files) <= MOST_FILES:
            path = self._todo.pop()
            text, self._stamps[path] = _read(path)
            scripts += [path] if path.endswith((".py", ".pyw")) or _is_python(text) else []
            starts = starts or _WHERE_IT_STARTS.search(text) is not None
            self._read(text, os.path.dirname(path))
        self._imports = self._imports or any(self._counts(path) for path in scripts)
        for folder in {os.path.dirname(path) for path in scripts} | ({self._cwd} if starts else set()):
            self._beside(folder)
        if len(self._files) > MOST_FILES:
            return NamedFiles(problem=f"it names more than {MOST_FILES:,} files that commands may write")
        total = 0
        for path in self._files:
            with contextlib.suppress(OSError):  # it is being replaced
                total += os.lstat(path).st_size
        if total > MOST_BYTES:
            return NamedFiles(problem=f"it names more than {size(MOST_BYTES)} that commands may write")
        files, missing, trees = (tuple(sorted(paths)) for paths in (self._files, self._missing, self._trees))
        return NamedFiles(files, missing, trees, self._imports, stamps=self._stamps)

    def _read(self, text: str, folder: str) -> None:
        """Takes the files that a text names, whose own folder is ``folder``."""
        self._imports = self._imports or _BESIDE.search(text) is not None
        self._bytecode = self._bytecode or _BYTECODE.search(text) is not None
        text = _VARIABLE.sub(" ", text)
        bases = list(dict.fromkeys((folder, self._cwd, self._root)))
        bases += [os.path.join(base, gone.lstrip("/")) for gone in _GOES.findall(text)[:20] for base in bases[:3]]
        for program, names in _IMPLIED:
            if program.search(text):
                for base in bases:
                    for name in names:
                        if name in self._names(base):
                            self._take(os.path.join(base, name))
        interpreted = {*_INTERPRETED.findall(text), *_WORD.findall(" ".join(_SOURCED.findall(text)))}
        for word in dict.fromkeys(_WORD.findall(text)):
            there = [path for path in self._places(word, bases) if os.path.isfile(path)]
            for path in there:
                if word in interpreted or _runs(path):
                    self._take(path)
            if not there and (word in interpreted or _is_script(word)) and not word.startswith("~"):
                places = [os.path.join(base, word.lstrip("/")) for base in bases]
                self._missing.update(path for path in [word, *places] if path.startswith("/") and self._counts(path))
        for names in _MODULE.findall(text):
            for name in re.findall(r"\w+", names.partition(" import ")[0] if " import " in names else names):
                self._module(name, bases)

    def _places(self, word: str, bases: Iterable[str]) -> Iterator[str]:
        """Where a word may be a file: behind a variable or a call it is the rest of a path (``$HOME/x``)."""
        if word.startswith("~"):
            yield os.path.expanduser(word)
            return
        if word.startswith("/"):
            yield word
            word, bases = word.lstrip("/"), (*bases, self._home)
        first = word.partition("/")[0]
        for base in bases:
            if first in self._names(base) or first in (".", ".."):
                yield os.path.join(base, word)
                if "/" in word and not os.path.splitext(word)[1]:  # as node and python leave it out
                    yield from (os.path.join(base, word + end) for end in (".js", ".ts", "/index.js", "/__main__.py"))

    def _module(self, name: str, bases: Iterable[str]) -> None:
        for base in bases:
            if name in self._names(base) and self._counts(base):
                for path in _importable(os.path.join(base, name)):
                    self._take(path)
            for end in _IMPORTED:
                if name + end in self._names(base):
                    self._take(os.path.join(base, name + end))

    def _beside(self, folder: str) -> None:
        """Takes what a Python that looks into ``folder`` first can import by any name."""
        if not (self._imports and self._counts(folder)):
            return
        for name in sorted(self._names(folder)):
            path = os.path.join(folder, name)
            if name.endswith(_IMPORTED):
                self._take(path)
            elif os.path.isdir(path):
                for end in _IMPORTED:
                    if os.path.isfile(f"{path}/__init__{end}"):
                        self._take(f"{path}/__init__{end}")
        if self._bytecode:
            cached = os.path.join(folder, "__pycache__")
            for name in self._names(cached):
                self._files.add(os.path.join(cached, name))

    def _take(self, path: str) -> None:
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if path in self._seen or len(self._files) > MOST_FILES:
            return
        self._seen.add(path)
        if not self._counts(path):
            self._todo.append(path)  # it may name others that count
            return
        tree = _environment_of(path)
        if tree is not None:
            self._trees.add(tree)
            return
        self._files.add(path)
        self._todo.append(path)

    def _counts(self, path: str) -> bool:
        return path == self._root or path.startswith(self._root + "/") or may_be_written(path)

    def _names(self, folder: str) -> frozenset[str]:
        if folder not in self._entries:
            try:
                self._entries[folder] = frozenset(os.listdir(folder))
            except OSError:
                self._entries[folder] = frozenset()
        return self._entries[folder]


def _is_script(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in _RUNS


def _runs(path: str) -> bool:
    return _is_script(path) or os.access(path, os.X_OK)


def _just_changed(path: str) -> bool:
    """Returns whether something came into the folder of a file, or went, so lately that it may come again."""
    try:
        return 0 <= time.time() - Path(path).parent.stat().st_ctime < SETTLED_SECONDS
    except OSError:
        return False


def _is_python(text: str) -> bool:
    return text.startswith("#!") and "python" in text.partition("\n")[0]


def _read(path: str) -> tuple[str, tuple[int, ...]]:
    """The text of a script, empty for a program and for what cannot be read; and which file it was."""
    try:
        with beneath.at(Path(os.path.realpath(path))) as place:
            data, info = place.read(_SCRIPT_BYTES)
    except OSError:
        return "", ()
    return "" if b"\0" in data[:1_000] else data.decode("utf-8", "replace"), _stamp(info)


def _importable(folder: str) -> Iterator[str]:
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "node_modules", ".git"))
        yield from (os.path.join(at, name) for name in sorted(names) if name.endswith(_IMPORTED))


def _environment_of(path: str) -> str | None:
    """The environment of packages that a file is in."""
    parts = Path(path).parents
    modules = next((str(folder) for folder in reversed(parts) if folder.name == "node_modules"), None)
    return modules or next((str(folder) for folder in parts if (folder / "pyvenv.cfg").is_file()), None)


def _shown(path: str, root: str) -> str:
    return path[len(root) + 1 :] if path.startswith(root + "/") else path


_read_before: dict[tuple[int, ...], str] = {}
"""Digests by what the system says of a file. Nobody but root can write a file and keep the time of its change."""


def _stamp(info: os.stat_result) -> tuple[int, ...]:
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def _digest(path: str, settled: bool, read: tuple[int, ...] | None = None) -> str:
    real = os.path.realpath(path)
    link = f"{real} " if os.path.islink(path) else ""
    if link and not may_be_written(real):
        return f"leads to {real}"
    try:
        with beneath.at(Path(real)) as place:
            # A file that is as it was is not opened: who waits for that would know when to put another in its place.
            stamp = _stamp(place.info())
            known = _read_before.get(stamp)
            if known is None:
                data, info = place.read(MOST_BYTES)
                known = hashlib.blake2b(data, digest_size=20).hexdigest()
                age = time.time() - info.st_ctime
                if settled and 0 <= age < SETTLED_SECONDS:
                    return BEING_WRITTEN
                if 0 <= age < _TICK:  # the next change would have the same time
                    time.sleep(_TICK)
                    return _digest(path, settled, read)
                stamp = _stamp(info)
                _read_before[stamp] = known
            return BEING_WRITTEN if settled and read not in (None, stamp) else link + known
    except FileNotFoundError:
        return "gone"
    except OSError as error:
        return f"? unreadable: {error.strerror}"


def _tree_digest(folder: str) -> str:
    """Of an environment of packages what the system says of its files: to read them takes seconds."""
    found, count = hashlib.blake2b(digest_size=20), 0
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            count += 1
            try:
                info = os.lstat(os.path.join(at, name))
            except OSError:
                continue
            target = os.readlink(os.path.join(at, name)) if stat.S_ISLNK(info.st_mode) else ""
            found.update(repr((os.path.relpath(os.path.join(at, name), folder), _stamp(info), target)).encode())
        if count > MOST_PACKAGED:
            return f"? more than {MOST_PACKAGED:,} files"
    return found.hexdigest()
