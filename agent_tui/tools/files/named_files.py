"""The files that a command of the project or of the user runs in places where the model's commands may write:
what is started outside the sandbox is then what somebody saw.

The words of the command, and of the scripts that it names, are those of ``command_words``. What lies beside a Python
script is imported before what is installed, so it counts, and so does all of an environment of packages. Of what lies
elsewhere, such as an installed server, only whole paths to code are followed.
"""
# ruff: noqa: PTH111, PTH112, PTH113, PTH118, PTH119, PTH120, PTH122, PTH208  (thousands of paths a look)

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_tui.pipes.programs import may_be_written
from agent_tui.text.numbers import size
from agent_tui.tools.files import beneath
from agent_tui.tools.files.command_words import (
    CODE_ENDS,
    FINDS,
    INTERPRETERS,
    LANGUAGES,
    meanings,
    rules_of,
    substituted,
    words_of,
)
from agent_tui.tools.files.fingerprints import MOST_BYTES, TICK, NamedFiles, stamp_of

MOST_FILES = 2_000
"""That a command may name: of more it is not known what runs."""

_SCRIPT_BYTES, _BYTES_ELSEWHERE, _MOST_BASES = 200_000, 64_000, 12
_MOST_LOOKED_UP = 40_000
"""Names that words and patterns are compared with."""
_STATE = (
    ".md",
    ".rst",
    ".html",
    ".log",
    ".jsonl",
    ".csv",
    ".tsv",
    ".db",
    ".sqlite",
    ".sqlite3",
    ".lock",
    ".pid",
    ".tmp",
)
_CONFIGURED = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf")
"""Ends of files in which programs keep what they did, and from which they are told something: a script does not run
them, and of the latter a program may when the command itself names them."""
_IMPORTED = (".py", ".pyc", ".so")
_SHADOWS = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
_NAME = r"[\w:.-]+"
_STARTS_FOLDER = {"__main__.py", "package.json", *(f"index{end}" for end in LANGUAGES["node"].ends)}
_BYTECODE = re.compile(
    r"\benv\s+-|\bPYTHONPYCACHEPREFIX\b|\bpython[\d.]*\s+(?:-\w+\s+)*-\w*[EI]|#!.*python.*\s-\w*[EI]"
)
"""Python may read bytecode that lies in the project, whatever its environment says."""


def named_files(command: str | Sequence[str], cwd: Path, root: Path) -> NamedFiles:
    """What a line of shell, or a program with its arguments, names when it is started in ``cwd``; ``root`` is the
    project. Reads files; nothing is raised."""
    text = command if isinstance(command, str) else shlex.join(command)
    return _Search(os.path.realpath(cwd), os.path.realpath(root)).of(text)


def with_environment(environ: Mapping[str, str], *words: str) -> list[str]:
    """A program with its arguments behind what it is given in its environment, as a shell has them."""
    return [*(re.sub(r"\W", "_", name) + f"={value}" for name, value in environ.items()), *words]


class _Search:
    def __init__(self, cwd: str, root: str) -> None:
        self._cwd, self._root = cwd, root
        self._values = {"PWD": cwd, "CLAUDE_PROJECT_DIR": root, "HOME": os.path.expanduser("~")}
        self._files: set[str] = set()
        self._bytes = 0
        self._trees: set[str] = set()
        self._missing: set[str] = set()
        self._libraries: dict[str, None] = {}
        self._modules: dict[tuple[str, str, str], None] = {}
        self._called: set[str] = set()
        self._todo: list[tuple[str, str, tuple[str, ...]]] = []
        self._rules: dict[tuple[str, str, tuple[str, ...]], None] = {}
        self._scripts: set[str] = set()
        self._seen: set[str] = set()
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._folders: dict[str, tuple[str, str | None]] = {}
        self._room = _MOST_LOOKED_UP
        self._entries: dict[str, frozenset[str]] = {}
        self._starts: dict[str, None] = {}
        self._imports = self._bytecode = False

    def of(self, text: str) -> NamedFiles:
        self._follow(text, "shell", (self._cwd, self._root))
        done = (-1, -1, -1)
        while done != (now := (len(self._seen), len(self._libraries), len(self._called))):
            done = now
            while self._todo and len(self._files) <= MOST_FILES and self._bytes <= MOST_BYTES and self._room > 0:
                self._read(*self._todo.pop())
            self._todo += self._rules  # more of them may be called
            for wanted in list(self._modules):
                self._find(*wanted)
        for folder in {os.path.dirname(path) for path in self._scripts}:
            self._beside(folder, True)
        for folder in {*self._libraries, *self._starts}:
            self._beside(folder, self._imports and folder in self._starts)
        if len(self._files) > MOST_FILES:
            return NamedFiles(problem=f"it names more than {MOST_FILES:,} files that commands may write")
        if self._room <= 0:
            return NamedFiles(problem="its patterns may mean more files than can be looked up")
        if self._bytes > MOST_BYTES:
            return NamedFiles(problem=f"it names more than {size(MOST_BYTES)} that commands may write")
        files, missing, trees = (tuple(sorted(paths)) for paths in (self._files, self._missing, self._trees))
        return NamedFiles(files, missing, trees, self._imports or bool(self._scripts), stamps=self._stamps)

    def _read(self, path: str, language: str, bases: tuple[str, ...]) -> None:
        """Follows a script."""
        counts, folder, name = self._counts(path), os.path.dirname(path), os.path.basename(path)
        text, self._stamps[path] = _read(path, _SCRIPT_BYTES if counts else _BYTES_ELSEWHERE)
        if name in (*FINDS["make"].split(), "package.json"):
            self._rules[path, language, bases] = None
            if name == "package.json":
                self._libraries[os.path.join(folder, "node_modules/.bin")] = None
            text = self._called_lines(*rules_of(text, _json(text, "scripts") if name == "package.json" else {}))
            language = "shell"
        elif text.startswith("#!"):
            names = re.findall(r"[a-z]+", text.partition("\n")[0])
            language = next((INTERPRETERS[one] for one in reversed(names) if one in INTERPRETERS), language)
        end = os.path.splitext(path)[1].lower()
        language = "" if end in _CONFIGURED and name != "package.json" else CODE_ENDS.get(end, language)
        if language == "python":
            self._scripts.add(path)
        self._follow(text, language, (folder, *bases), path)

    def _called_lines(self, rest: str, rules: Mapping[str, tuple[str, str]]) -> str:
        """The lines of rules whose names are called by what was read so far, or by those; of all where none is."""
        found: dict[str, str] = {}
        while more := {name for name in rules if re.sub("^(?:pre|post)(?=.)", "", name) in self._called} - found.keys():
            found |= {name: rules[name][1] for name in sorted(more)}
            self._called.update(re.findall(_NAME, " ".join(rules[name][0] for name in more)))
        return "\n".join([rest, *(found.values() or (lines for _, lines in rules.values()))])

    def _follow(self, text: str, language: str, bases: tuple[str, ...], path: str = "") -> None:
        """Takes what a text names: of the command, or of the script at ``path``."""
        words = words_of(text, language)
        values = {**words.assigned, **self._values}
        named = [(role, substituted(word, values), of) for role, word, of in words.words]
        if path and not self._counts(path):
            self._follow_elsewhere(named, language, bases)
            return
        self._called.update(re.findall(_NAME, re.sub(r"\btst?\b", "test", text)))
        self._bytecode = self._bytecode or _BYTECODE.search(text) is not None
        self._imports = self._imports or words.imports
        for role, word, _ in named:
            if role == "goes" and len(bases) < _MOST_BASES and (gone := word.lstrip("\0/" if "\0" in word else "")):
                there = (os.path.normpath(os.path.join(base, gone)) for base in bases)
                bases = tuple(dict.fromkeys((*bases, *filter(self._is_folder, there))))
        self._starts.update(dict.fromkeys(bases[bool(path) :] if words.starts else ()))
        finds = {file for name in words.programs & FINDS.keys() for file in FINDS[name].split()}
        for folder in dict.fromkeys(above for base in bases for above in self._up(base)) if finds else ():
            self._libraries.update(dict.fromkeys(f"{folder}/{file[:-1]}" for file in finds if file.endswith("/")))
            for file in sorted(finds & self._names(folder)):
                self._take(f"{folder}/{file}", "shell", (folder,))
        for role, word, of in named:
            if role == "module":
                self._modules[word, of, bases[0]] = None
            elif role == "library":
                folders = (os.path.realpath(at) for at in self._places(word, bases) if os.path.isdir(at))
                self._libraries.update(dict.fromkeys(at for at in folders if self._counts(at) and at != self._root))
            elif role == "runs" and not of and "/" not in word:
                self._modules[word, "", ""] = None  # a program on PATH
            elif role in ("runs", "given", "names") or (role == "looks" and words.evaluates):
                any_name = words.evaluates or (role == "given" and not path)
                self._take_word(word, of, bases, role == "runs", any_name, not path)

    def _follow_elsewhere(self, named: Iterable[tuple[str, str, str]], language: str, bases: tuple[str, ...]) -> None:
        """What no command wrote may name much that it does not run: of it only whole paths to code count, and of a
        shell what it runs."""
        for role, word, of in named:
            follows = role == "runs" if language == "shell" else role == "names" and word.startswith(("/", "~"))
            if follows and "\0" not in word and os.path.splitext(word)[1] in CODE_ENDS:
                self._take_word(word, of, bases, False, False, False)

    def _take_word(
        self, word: str, language: str, bases: tuple[str, ...], runs: bool, any_name: bool, configured: bool
    ) -> None:
        """Takes the files that a word may mean: where it does not run, those known as code; with ``any_name`` all but
        data, with ``configured`` what programs are told by, too."""
        there = False
        for path in self._places(word, bases, runs, runs or configured or language in ("shell", "make")):
            if os.path.isdir(path):
                self._enter(path) if runs else None
            elif os.path.isfile(path):
                there, end = True, os.path.splitext(path)[1].lower()
                told = end in _CONFIGURED or os.path.basename(path).startswith(".env")
                code = end in CODE_ENDS or os.access(path, os.X_OK)
                if runs or code or (any_name and end not in _STATE and (configured or not told)):
                    self._take(path, language, bases)
        if not there and word[:1] not in ("~", "\0") and (runs or os.path.splitext(word)[1] in CODE_ENDS):
            places = [os.path.join(base, word) for base in bases[:3]] if not {"\n", "\0"} & {*word} else []
            self._missing.update(path for path in places if self._counts(path))

    def _places(self, word: str, bases: Iterable[str], runs: bool = True, matches: bool = True) -> Iterator[str]:
        """The paths that a word may mean. What begins with something unknown is the rest of a path; what is unknown in
        a word that runs may be anything. Signs of a pattern are such where it ``matches``: of a shell."""
        for one in meanings(word):
            one = re.sub(r"^\0/", "", one)
            one = one if "\0" in one else os.path.expanduser(one)
            if not one.strip("\0./") or ("\0" in one and not runs):
                continue
            first = one.partition("/")[0]
            self._room -= 1
            for base in bases if first else ("/",):
                if first in self._names(base) or first in ("", ".", ".."):
                    yield os.path.join(base, one)
                if matches and first and re.search(r"[*?[\0]", one):
                    yield from self._matches(base, one.replace("\0", "*").split("/"))

    def _matches(self, base: str, parts: Sequence[str]) -> list[str]:
        places = [base]
        for part in parts:
            found = list[str]()
            for at in places if self._room > 0 else ():
                self._room -= len(self._names(at)) + 10
                names = fnmatch.filter(self._names(at), part) if re.search(r"[*?[]", part) else [part]
                found += [f"{at}/{name}" for name in sorted(names) if name[:1] != "." or part[:1] == "."]
            places = found
        return places

    def _enter(self, folder: str) -> None:
        """Takes what starts a folder that is run, or loaded by its name."""
        for name in _STARTS_FOLDER & self._names(folder):
            path = os.path.join(folder, name)
            self._take(path, "", ())
            main = _json(_read(path, _SCRIPT_BYTES)[0], "main") if name == "package.json" else None
            if isinstance(main, str):
                self._modules[f"./{main}", "node", folder] = None

    def _find(self, name: str, language: str, folder: str) -> None:
        """Takes the files of a module, or of a program on a path in the project."""
        ends = ("", *LANGUAGES[language].ends) if language else ("",)
        if language == "python":
            name, ends = name.split(".")[0], _IMPORTED
        path = name if name.startswith(".") else name.replace(LANGUAGES[language].separator, "/")
        here = [folder] * bool(language) + [*self._starts] * (language == "python")
        for place in (*here, *self._libraries):
            target = os.path.normpath(os.path.join(place, path))
            names, last = self._names(os.path.dirname(target)), os.path.basename(target)
            is_package = bool(language) and last in names and os.path.isdir(target)
            files = [target + end for end in ends if last + end in names and not last.endswith(_CONFIGURED)]
            if not self._counts(target):
                continue
            if language == "python":
                files += _importable(target) if is_package else ()
                self._imports = self._imports or bool(files)
            elif is_package:
                self._enter(target)
            for file in files:
                if os.path.isfile(file):
                    self._take(file, language, (place,))
        for above in self._up(folder) if language == "node" and path[:1] not in (".", "/") else ():
            if self._is_folder(os.path.join(above, "node_modules")) and self._is_folder(f"{above}/node_modules/{path}"):
                self._trees.add(os.path.join(above, "node_modules"))

    def _up(self, folder: str) -> Iterator[str]:
        """A folder and those above it, as far as they are the project's."""
        while self._counts(folder):
            yield folder
            if folder in (self._root, "/"):
                return
            folder = os.path.dirname(folder)

    def _beside(self, folder: str, all_of_it: bool) -> None:
        """Takes what a Python that looks into ``folder`` first can import: all, or what stands for a module of its
        own."""
        if not self._counts(folder):
            return
        for name in sorted(self._names(folder)):
            path, stem = os.path.join(folder, name), name.partition(".")[0]
            if name.endswith(_IMPORTED) and (all_of_it or stem in _SHADOWS):
                self._take(path, "python", ())
            elif (all_of_it or name in _SHADOWS) and os.path.isdir(path):
                for end in _IMPORTED:
                    if os.path.isfile(f"{path}/__init__{end}"):
                        self._take(f"{path}/__init__{end}", "python", ())
        if self._bytecode and all_of_it:
            cached = os.path.join(folder, "__pycache__")
            for name in self._names(cached):
                self._add(os.path.join(cached, name))

    def _take(self, path: str, language: str, bases: tuple[str, ...]) -> None:
        folder, name = os.path.split(path)
        if folder not in self._folders:
            real = os.path.realpath(folder)
            self._folders[folder] = real, _environment_of(real)
        real, tree = self._folders[folder]
        path = os.path.join(real, name)
        if path in self._seen or len(self._files) > MOST_FILES:
            return
        self._seen.add(path)
        counts = self._counts(path)
        if counts and tree is not None:
            self._trees.add(tree)
            return
        if counts:
            self._add(path)
        self._todo.append((path, language, bases))  # what lies elsewhere may name others that count

    def _add(self, path: str) -> None:
        if path not in self._files:
            self._files.add(path)
            with contextlib.suppress(OSError):  # it is being replaced
                self._bytes += os.lstat(path).st_size

    def _is_folder(self, path: str) -> bool:
        return os.path.basename(path) in self._names(os.path.dirname(path)) and os.path.isdir(path)

    def _counts(self, path: str) -> bool:
        return path == self._root or path.startswith(self._root + "/") or may_be_written(path)

    def _names(self, folder: str) -> frozenset[str]:
        if folder not in self._entries:
            try:
                self._entries[folder] = frozenset(os.listdir(folder))
            except (OSError, ValueError):
                self._entries[folder] = frozenset()
        return self._entries[folder]


_texts: dict[str, tuple[str, tuple[int, ...]]] = {}
"""What was read, and which file it was."""


def _read(path: str, most: int) -> tuple[str, tuple[int, ...]]:
    """The text of a script, empty for a program and for what cannot be read; and which file it was."""
    try:
        known = _texts.get(path)
        if known is not None and known[1] == stamp_of(os.lstat(os.path.realpath(path))):
            return known
        with beneath.at(Path(os.path.realpath(path))) as place:
            data, info = place.read(most)
    except OSError:
        return "", ()
    found = "" if b"\0" in data[:1_000] else data.decode("utf-8", "replace"), stamp_of(info)
    if len(_texts) > MOST_FILES:
        _texts.clear()
    if time.time() - info.st_ctime > TICK:  # the next change has another time
        _texts[path] = found
    return found


def _json(text: str, key: str) -> Any:
    try:
        return json.loads(text).get(key) or {}
    except (ValueError, AttributeError):
        return {}


def _importable(folder: str) -> Iterator[str]:
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "node_modules", ".git"))
        yield from (os.path.join(at, name) for name in sorted(names) if name.endswith(_IMPORTED))


def _environment_of(folder: str) -> str | None:
    """The environment of packages that a folder is in."""
    parts = (Path(folder), *Path(folder).parents)
    modules = next((str(folder) for folder in reversed(parts) if folder.name == "node_modules"), None)
    return modules or next((str(folder) for folder in parts if (folder / "pyvenv.cfg").is_file()), None)
