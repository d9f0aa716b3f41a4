"""The files that a command of a project or of the user names in places where the model's commands may write, and what
is in them: what is started outside the sandbox is then what somebody saw.

Every file counts that a word of the command, or of a script that it names, may mean, whatever it is called; what a
known program only looks at (``program_readings``) does not. What lies beside a Python script that imports some of it
counts, and so does all of an environment of packages.
"""
# ruff: noqa: PTH111, PTH112, PTH113, PTH114, PTH115, PTH118, PTH119, PTH120, PTH122, PTH207, PTH208  (thousands of paths a look)

from __future__ import annotations

import fnmatch
import hashlib
import itertools
import json
import os
import re
import shlex
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agent_tui.pipes.programs import may_be_written
from agent_tui.records import dataclass
from agent_tui.text.numbers import size
from agent_tui.tools.files import beneath
from agent_tui.tools.files.command_words import before_arguments, code_words, meanings, programs_of, statements
from agent_tui.tools.files.program_readings import READINGS, Reading, program_name, reading_of

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

_SCRIPT_BYTES, _MOST_READ, _MOST_GLOBS = 400_000, 800_000, 4_000
"""Of one script, and of all, what is read for what they name, and the patterns of files; the rest counts as it is."""
_MOST_ROUNDS, _MOST_BASES, _MOST_MATCHES, _MOST_LINES = 8, 64, 400, 200
_NODE_ENDS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx")
_SHELL_ENDS = (".sh", ".bash", ".zsh", ".fish", ".envrc", ".env")
_RUNS = frozenset([".py", ".pyc", ".so", ".rb", ".pl", ".php", ".lua", *_NODE_ENDS, *_SHELL_ENDS])
_LEFT_OUT = (".rb", ".pm", ".lua", ".jl", ".ps1")
"""Ends that are left out where such a file is asked for."""
_IMPORTED = (".py", ".pyc", ".so")
_STARTS_FOLDER = ("__main__.py", "package.json", *(f"index{end}" for end in _NODE_ENDS))
_PYTHONS = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
_STATE_ENDS = (".log", ".jsonl", ".csv", ".tsv", ".db", ".sqlite", ".sqlite3", ".lock", ".pid", ".tmp", ".md", ".html")
_KEPT_ENDS = (".json", ".txt", ".yaml", ".yml", ".toml")
"""Of files: where a script keeps what it did, which it does not run; the latter where it writes at all."""
_EVALUATES = re.compile(
    r"\b(?:exec|eval|compile|run_path|run_module|Function|vm|source|load_source|SourceFileLoader|spec_from_file_location)\b"
)
_KEEPS = re.compile(r"[\"'][wax][bt+]*[\"']|\bwrite_(?:text|bytes)\b|\b(?:append|write)File|\bjson\.dump\(")
_CALLS = re.compile(r"\b(?:system|popen|shell|exec\w*|spawn\w*|run|call|backticks)\b")
_LIBRARIES = re.compile(r"\bPYTHONPATH\b|\bsys\.path\b|\baddsitedir\b")
_MODULE = re.compile(r"(?:^[ \t]*|[;\"'][ \t]*)(?:from|import)[ \t]+([\w., \t]+)|\s-\w*m[ \t]+([\w.]+)", re.MULTILINE)
_PERLS = re.compile(r"^[ \t]*(?:use|require)\s+([\w:]+)", re.MULTILINE)
_IMPORTS = re.compile(
    r"\bpython[\d.]*[\"']?\s+(?:-\S+\s+)*-\w*m\s+"
    r"(?!(?:py_compile|compileall|json\.tool|ruff|black|isort|pyflakes|pycodestyle|tabnanny)\b)"
    r"|\bimportlib\b|\b__import__\b|\bsys\.path\b|\brunpy\b|\bpkgutil\b|\bPYTHONPATH\b"
)
"""Python is asked to import from the folder of a script, or from where it starts, what no word names."""
_WHERE_IT_STARTS = re.compile(r"\bpython[\d.]*[\"']?\s+(?:-\S+\s+)*(?:-\w*[cm]\b|-(?:\s|$)|<<)")
_BYTECODE = re.compile(
    r"\benv\s+-i|\benv\s+-\s|\bPYTHONPYCACHEPREFIX\b|\bpython[\d.]*\s+(?:-\w+\s+)*-\w*[EI]|#!.*python.*\s-\w*[EI]"
)
"""It may read bytecode that lies in the project, whatever its environment says."""


@dataclass(slots=True, frozen=True)
class NamedFiles:
    """``files`` lie where commands may write, ``trees`` are environments of packages there; ``missing`` are scripts
    that are named and not there. ``imports``: modules beside a script are wanted. ``problem`` says why it cannot be
    told what would run; else empty. ``unknown`` are programs of which it is not known what they run."""

    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    imports: bool = False
    problem: str = ""
    unknown: tuple[str, ...] = ()


def named_files(command: str | Sequence[str], cwd: Path, root: Path) -> NamedFiles:
    """What a line of shell, or a program with its arguments, names when it is started in ``cwd``; ``root`` is the
    project. Reads files; nothing is raised."""
    return _Search(os.path.realpath(cwd), os.path.realpath(root)).of(command)


def fingerprint(named: NamedFiles, root: Path, *, settled: bool = False) -> dict[str, str]:
    """What the files are, by their paths below ``root``, or whole for those elsewhere. With ``settled`` one that was
    written just now, and not read before, is ``BEING_WRITTEN``: it may change before it is used."""
    below = os.path.realpath(root)
    found = {_shown(path, below): _digest(path, settled) for path in named.files}
    if settled:  # one that comes and goes is there when it is started
        found |= {_shown(path, below): BEING_WRITTEN for path in named.missing if _just_changed(path)}
    return found | {_shown(path, below) + "/": _tree_digest(path) for path in named.trees}


def changed_files(accepted: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The files that are not what was accepted. One that is gone counts only where the command still names it."""
    return [path for path, digest in now.items() if digest.startswith("?") or accepted.get(path) != digest]


class _Text:
    """One text that is read: the command, or a script in ``folder``. ``words`` name programs or what they load,
    ``named`` are words of code outside quotes, which are no folders."""

    def __init__(self, text: str, folder: str, path: str = "", python: bool = False) -> None:
        self.text, self.folder = text, folder
        end, name = os.path.splitext(path)[1].lower(), os.path.basename(path)
        self.is_python = end in (".py", ".pyw") or _starts_with(text, "python") or (python and not end)
        self.is_node = end in _NODE_ENDS or _starts_with(text, "node") or _starts_with(text, "deno")
        self.is_shell = not path or end in _SHELL_ENDS or _starts_with(text, "sh") or not (end or text[:2] == "#!")
        self.words: list[str] = []
        self.named: list[str] = []
        self.programs: list[list[str]] = []
        self.trees: set[str] = set()
        if name == "package.json":
            self._package(text)
        elif name.lower() in ("makefile", "gnumakefile") or end in (".mk", ".make"):
            lines = text.replace("\\\n", " ").splitlines()
            self._shell("\n".join(line.lstrip("\t@-+") for line in lines if line.startswith("\t")))
            for line in lines:
                if not line.startswith("\t") and ("=" in line or "include" in line):
                    self.words += line.split()
        elif self.is_shell and not self.is_python and not self.is_node:
            self._shell(text)
        else:
            self._code(text)

    def _shell(self, text: str) -> None:
        for one in statements(text):
            for words in programs_of(one):
                self.programs.append(words)
                reading = reading_of(words)
                if reading is not None and reading.folders:
                    self.trees.update(words[1:])
                if not one.looks and not (reading is not None and reading.shell):
                    for word in words[1:]:
                        if re.search(r"[\s;()]", word):
                            quoted, named = code_words(word)
                            self.words += quoted
                            self.named += named
            if not one.looks:
                self.words += [word for words in one.commands for word in words]
            else:  # who looks counts, and with what variables: PATH, LD_PRELOAD
                self.words += itertools.chain.from_iterable(map(before_arguments, one.commands))
        self.words = list(dict.fromkeys(self.words))

    def _code(self, text: str) -> None:
        words, self.named = code_words(text)
        if not _EVALUATES.search(text):
            ends = _STATE_ENDS + (_KEPT_ENDS if _KEEPS.search(text) else ())
            words, self.named = ([w for w in kind if not w.lower().endswith(ends)] for kind in (words, self.named))
        self.words = [word for word in words if "*" not in word or "/" in word]
        if _CALLS.search(text):
            lines = [word for word in words if " " in word and program_name(word.partition(" ")[0]) in READINGS]
            self.programs = [
                words for line in lines[:_MOST_LINES] for one in statements(line) for words in programs_of(one)
            ]

    def _package(self, text: str) -> None:
        try:
            package = json.loads(text)
            scripts = [str(line) for line in package.get("scripts", {}).values()]
            named = json.dumps([package.get(key) for key in ("main", "module", "bin", "exports", "imports")])
        except (ValueError, AttributeError):
            self._code(text)
            return
        self._shell("\n".join(scripts))
        self.words += code_words(named)[0]


class _Search:
    def __init__(self, cwd: str, root: str) -> None:
        self._cwd, self._root, self._home = cwd, root, os.path.expanduser("~")
        self._files: set[str] = set()
        self._trees: set[str] = set()
        self._there: set[str] = set()
        self._absent: dict[str, list[str]] = {}
        self._tried: set[tuple[str, ...]] = set()
        self._unknown: set[str] = set()
        self._seen: set[str] = set()
        self._texts: list[_Text] = []
        self._bases: dict[str, None] = dict.fromkeys((cwd, root))
        self._libraries: dict[str, None] = {}
        self._entries: dict[str, frozenset[str]] = {}
        self._stemmed: dict[str, frozenset[str]] = {}
        self._readings: set[Reading] = set()
        self._room, self._globs = _MOST_READ, 0
        self._imports = self._bytecode = self._python = False

    def of(self, command: str | Sequence[str]) -> NamedFiles:
        text = command if isinstance(command, str) else shlex.join(command)
        self._python = re.search(r"\bpython|\buv\b|\bpoetry\b", text) is not None
        self._add(_Text(text, self._cwd))
        if not isinstance(command, str):  # the folders of a server may be those of PYTHONPATH
            self._texts[0].text += "\nPYTHONPATH"
        done: tuple[int, ...] = ()
        for _ in range(_MOST_ROUNDS):
            state = (len(self._texts), len(self._bases), len(self._libraries), len(self._trees))
            if state == done or len(self._files) > MOST_FILES:
                break
            done = state
            for one in list(self._texts):
                self._read(one)
            for reading in list(self._readings):
                self._find(reading)
        folders = {one.folder for one in self._texts[1:] if one.is_python} | {*self._libraries}
        folders |= {self._cwd} if any(_WHERE_IT_STARTS.search(one.text) for one in self._texts) else set()
        for folder in sorted(folders):
            self._beside(folder)
        if len(self._files) > MOST_FILES:
            return NamedFiles(problem=f"it names more than {MOST_FILES:,} files that commands may write")
        files = {path for path in self._files if not self._in_tree(path)}
        total = sum(map(_size, files))
        if total > MOST_BYTES:
            return NamedFiles(problem=f"it names more than {size(MOST_BYTES)} that commands may write")
        trees = {path for path in self._trees if not self._in_tree(os.path.dirname(path) + "/")}
        absent = {path for word, paths in self._absent.items() if word not in self._there for path in paths}
        missing_ = filter(self._counts, absent)
        found = (tuple(sorted(paths)) for paths in (files, missing_, trees, self._unknown))
        named, missing, folders_, unknown = found
        return NamedFiles(named, missing, folders_, self._imports, unknown=unknown)

    def _in_tree(self, path: str) -> bool:
        return any(path.startswith(tree + "/") for tree in self._trees)

    def _add(self, one: _Text) -> None:
        self._texts.append(one)
        self._imports = self._imports or _IMPORTS.search(one.text) is not None
        if _BYTECODE.search(one.text):
            self._bytecode = self._imports = True
        if one.is_node:
            self._readings.add(READINGS["node"])
        for words in one.programs:
            reading = reading_of(words)
            name = program_name(words[0])
            if reading is not None:
                self._readings.add(reading)
            if name == "python" and re.search(r"venv/\w+/", words[0]):
                self._readings.add(READINGS["uv"])
            if (
                one.is_shell
                and "/" not in words[0]
                and (reading is None or reading.unknown)
                and re.fullmatch(r"[\w.+-]+", name)
            ):
                self._unknown.add(name)

    def _read(self, one: _Text) -> None:
        """Takes the files that a text names."""
        bases = list(dict.fromkeys((one.folder, *self._bases)))
        is_path = _LIBRARIES.search(one.text) is not None
        for word in one.words:
            for meant in meanings(word):
                for path in self._places(meant, bases):
                    if os.path.isdir(path):
                        if word in one.trees and self._counts(os.path.realpath(path)):
                            self._trees.add(os.path.realpath(path))
                        self._enter(path, is_path, meant == ".")
                    elif os.path.isfile(path):
                        self._there.add(meant)
                        self._take(path)
                if meant == word and one.is_shell and _is_script(word) and not word.startswith("~"):
                    places = [word, *(os.path.join(base, word.lstrip("/")) for base in bases[:3])]
                    self._absent.setdefault(word, []).extend(path for path in places if path.startswith("/"))
        for word in (*one.named, *(name.replace("::", "/") + ".pm" for name in _PERLS.findall(one.text))):
            for path in self._places(word, bases):
                if os.path.isfile(path):
                    self._take(path)
        for names in map("".join, _MODULE.findall(one.text)):
            for name in re.findall(r"\w+", names.partition(" import ")[0] if " import " in names else names):
                self._module(name, dict.fromkeys((one.folder, self._cwd, self._root, *self._libraries)))

    def _enter(self, path: str, is_library: bool, is_here: bool) -> None:
        """A folder is where other words begin, and may itself be what is started."""
        folder = os.path.realpath(path)
        for name in _STARTS_FOLDER:
            if name in self._names(folder):
                self._take(os.path.join(folder, name))
        if is_here or not self._counts(folder) or _environment_of(folder + "/x") or len(self._bases) > _MOST_BASES:
            return
        self._bases[folder] = None
        if is_library and folder not in (self._root, self._cwd):
            self._libraries[folder] = None

    def _places(self, word: str, bases: Iterable[str]) -> Iterator[str]:
        """Where a word may be a file: behind a variable or a call it is the rest of a path (``$HOME/x``)."""
        if word.startswith("~"):
            yield os.path.expanduser(word)
            return
        if word.startswith("/"):
            yield word
            word, bases = word.lstrip("/"), (*bases, self._home)
        first = word.partition("/")[0]
        has_signs = any(sign in word for sign in "*?[")
        for base in bases:
            if (word, base) in self._tried:
                continue
            self._tried.add((word, base))
            if not (has_signs or first in self._stems(base) or first in (".", "..", "")):
                continue
            if has_signs and self._globs >= _MOST_GLOBS:
                self._unknown.add("further scripts")
            elif has_signs:
                import glob

                self._globs += 1
                names = glob.iglob(word, root_dir=base, recursive=not first.startswith("**"), include_hidden=True)
                yield from (os.path.join(base, name) for name in itertools.islice(names, _MOST_MATCHES))
            if first in self._names(base) or first in (".", ".."):
                yield os.path.join(base, word)
            if "/" in word and (first in self._names(base) or first in (".", "..")):  # as node leaves it out
                yield from (os.path.join(base, word + end) for end in (*_NODE_ENDS, ".json", *_LEFT_OUT))
            else:
                yield from (os.path.join(base, word + end) for end in _LEFT_OUT if word + end in self._names(base))

    def _find(self, reading: Reading) -> None:
        """Takes what a program finds by itself from where it may stand up to the project."""
        if reading.whole:
            for name in self._names(self._root) - {".git", *reading.writes}:
                path = os.path.join(self._root, name)
                (self._trees if os.path.isdir(path) and not os.path.islink(path) else self._files).add(path)
        if not reading.finds:
            return
        folders: set[str] = set()
        for start in (*self._bases, *(one.folder for one in self._texts)):
            while self._counts(start) and start not in folders and len(start) > 1:
                folders.add(start)
                start = start if start == self._root else os.path.dirname(start)
        for folder in folders:
            for name in self._names(folder):
                path = os.path.join(folder, name)
                for pattern in reading.finds:
                    if not fnmatch.fnmatchcase(name, pattern.rstrip("/")):
                        continue
                    if not pattern.endswith("/"):
                        self._take(path)
                    elif os.path.isdir(path):
                        self._take_tree(os.path.realpath(path))

    def _take_tree(self, folder: str) -> None:
        if folder in self._trees or not self._counts(folder):
            return
        import glob

        self._trees.add(folder)
        for file in glob.iglob(f"{glob.escape(folder)}/lib/python*/site-packages/*.pth"):  # installed to be edited
            for line in _text(file).splitlines():
                if line.startswith("/") and os.path.isdir(line) and self._counts(os.path.realpath(line)):
                    self._libraries[os.path.realpath(line)] = None

    def _module(self, name: str, bases: Iterable[str]) -> None:
        for base in bases:
            if ("import", name, base) in self._tried or not self._counts(base):
                continue
            self._tried.add(("import", name, base))
            if name in self._names(base):
                for path in _importable(os.path.join(base, name)):
                    self._imports = True
                    self._take(path)
            for end in _IMPORTED:
                if name + end in self._names(base):
                    self._imports = True
                    self._take(os.path.join(base, name + end))

    def _beside(self, folder: str) -> None:
        """Takes what a Python that looks into ``folder`` first can import by any name; where no module of the project
        is wanted, what stands in the place of one of Python's."""
        if not self._counts(folder):
            return
        for name in sorted(self._names(folder)):
            path, stem = os.path.join(folder, name), name.partition(".")[0]
            if not (self._imports or stem in _PYTHONS):
                continue
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
        counts = self._counts(path)
        tree = _environment_of(path) if counts else None
        if tree is not None:
            self._take_tree(tree)
            if os.path.basename(os.path.dirname(path)) not in ("bin", ".bin"):
                return  # what is started there may import what is installed to be edited
        elif counts:
            self._files.add(path)
        if not counts and not path.startswith((self._home + "/", "/tmp/", "/var/tmp/")) and not _is_script(path):
            return  # a program or a file of the system: what it names is not the project's
        if self._room <= 0:
            self._unknown.add("further scripts")
            return
        text = _text(path)  # outside of the project it may name others that count
        self._room -= len(text)
        if text:
            self._add(_Text(text, os.path.dirname(path), path, self._python))

    def _counts(self, path: str) -> bool:
        return path == self._root or path.startswith(self._root + "/") or may_be_written(path)

    def _stems(self, folder: str) -> frozenset[str]:
        """The names in a folder, with their ends and without."""
        if folder not in self._stemmed:
            names = self._names(folder)
            self._stemmed[folder] = names | {os.path.splitext(name)[0] for name in names}
        return self._stemmed[folder]

    def _names(self, folder: str) -> frozenset[str]:
        if folder not in self._entries:
            try:
                self._entries[folder] = frozenset(os.listdir(folder))
            except OSError:
                self._entries[folder] = frozenset()
        return self._entries[folder]


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:  # it went: its digest says so
        return 0


def _is_script(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in _RUNS


def _just_changed(path: str) -> bool:
    """Returns whether something came into the folder of a file, or went, so lately that it may come again."""
    try:
        return 0 <= time.time() - Path(path).parent.stat().st_ctime < SETTLED_SECONDS
    except OSError:
        return False


def _starts_with(text: str, program: str) -> bool:
    return text.startswith("#!") and program in text.partition("\n")[0]


def _text(path: str) -> str:
    """The text of a script; empty for a program, and for what cannot be read."""
    try:
        with beneath.at(Path(os.path.realpath(path))) as place:
            data, _ = place.read(_SCRIPT_BYTES)
    except OSError:
        return ""
    return "" if b"\0" in data[:1_000] else data.decode("utf-8", "replace")


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


def _digest(path: str, settled: bool) -> str:
    real = os.path.realpath(path)
    link = f"{real} " if os.path.islink(path) else ""
    if link and not may_be_written(real):
        return f"leads to {real}"
    try:
        with beneath.at(Path(real)) as place:
            # A file that is as it was is not opened: who waits for that would know when to put another in its place.
            known = _read_before.get(_stamp(place.info()))
            if known is None:
                data, info = place.read(MOST_BYTES)
                known = hashlib.blake2b(data, digest_size=20).hexdigest()
                age = time.time() - info.st_ctime
                if settled and 0 <= age < SETTLED_SECONDS:
                    return BEING_WRITTEN
                if 0 <= age < _TICK:  # the next change would have the same time
                    time.sleep(_TICK)
                    return _digest(path, settled)
                _read_before[_stamp(info)] = known
            return link + known
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
