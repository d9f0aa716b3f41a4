"""Finds every program that agent-tui starts by itself, and makes the environment they get: nothing that a command of
the model may have put there is found, loaded or read. Imports next to nothing, as ``start`` does.
"""
# ruff: noqa: PTH111, PTH113, PTH115, PTH118, PTH120  (dots and links count one by one)

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_MOST_LINKS = 40
_written: set[str] = set()


def keep_out_of(folders: Iterable[Path]) -> None:
    """Says that commands may write in these folders: as long as this process lives no program is taken from there.
    Where the project is the whole machine no place of it is better than another."""
    _written.update({os.path.realpath(folder) for folder in folders} - {"/"})


def may_be_written(path: str | os.PathLike[str]) -> bool:
    """Returns whether a command may have put there what an absolute path leads to, or a link on its way: it lies where
    commands write, or where everybody may. What is not absolute depends on where we stand."""
    return _leads_over(os.fspath(path), _written)


def _leads_over(path: str, folders: Iterable[str]) -> bool:
    try:
        return any(_is_open(place, folders) for place in _way(path))
    except (OSError, ValueError):
        return True


def _is_unsafe(path: str) -> bool:
    """The same of a place for programs, which may be looked for before the project is known: it is where we stand."""
    try:
        here = {os.path.realpath(".")} - {"/"}
    except OSError:  # it was removed
        here = set()
    return _leads_over(path, {*_written, *here})


def _way(path: str) -> Iterator[str]:
    """Every place that is passed on the way to a file, those that links lead over too. Raises OSError for what cannot
    be followed, ValueError for what is not absolute."""
    if not path.startswith("/"):
        raise ValueError("not an absolute path")
    todo, at, links = path.split("/"), "/", 0
    while todo:
        name = todo.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)
            continue
        here = os.path.join(at, name)
        yield here
        if not stat.S_ISLNK(os.lstat(here).st_mode):
            at = here
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError("too many links")
        target = os.readlink(here)
        todo[:0] = target.split("/")
        if target.startswith("/"):
            at = "/"


def _is_open(place: str, folders: Iterable[str]) -> bool:
    info = os.lstat(place)
    if _anyone_writes(info):
        return True
    return any(_is_within(place, folder) for folder in folders) and (
        info.st_uid == os.geteuid() or os.access(place, os.W_OK)
    )


def _anyone_writes(info: os.stat_result) -> bool:
    # Where a folder is sticky others can still add to it, and the sandbox gives commands /tmp.
    return bool(info.st_mode & stat.S_IWOTH) and not stat.S_ISLNK(info.st_mode)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def safe_path(environ: Mapping[str, str] = os.environ) -> str:
    """The folders of PATH in which no command of the model can put a program; those of the system where none is."""
    entries = (environ.get("PATH") or os.defpath).split(os.pathsep)
    return os.pathsep.join(e for e in dict.fromkeys(entries) if e and not _is_unsafe(e)) or os.defpath


def find_program(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The absolute path of a program that the user's PATH, or an absolute ``name``, leads to; None where there is none
    that no command can have put there or changed."""
    if "/" in name:
        candidates = [os.path.expanduser(name)]
    else:
        candidates = [f"{folder}/{name}" for folder in (environ.get("PATH") or os.defpath).split(os.pathsep) if folder]
    return next((one for one in candidates if name and _is_program(one) and not _is_unsafe(one)), None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def why_not_found(name: str, environ: Mapping[str, str] = os.environ) -> str:
    """One line for the user on a program that ``find_program`` does not find."""
    entries = (environ.get("PATH") or os.defpath).split(os.pathsep)
    places = [name] if "/" in name else [os.path.join(entry or ".", name) for entry in entries]
    there = next((place for place in places if _is_program(os.path.expanduser(place))), None)
    if there is None:
        return f"{name} is not installed, or not on PATH"
    return f"{name} is not started: commands may write where it is found ({there})"


_FOLDERS = (
    r"PYTHON(?:PATH|HOME|STARTUP|PLATLIBDIR|USERBASE|PYCACHEPREFIX)|NODE_PATH|PERL5?LIB|RUBYLIB|GEM_(?:PATH|HOME)"
    r"|BUNDLE_GEMFILE|(?:LD|DYLD)_\w*PATH|CLASSPATH|LUA_C?PATH\w*|PHPRC|PHP_INI_SCAN_DIR|BASH_ENV|ENV|ZDOTDIR|CDPATH"
    r"|FPATH|GCONV_PATH|LOCPATH|NLSPATH|TERMINFO\w*|OPENSSL_(?:CONF|MODULES|ENGINES)|GIT_(?:DIR|WORK_TREE|COMMON_DIR"
    r"|INDEX_FILE|OBJECT_DIRECTORY|EXEC_PATH|TEMPLATE_DIR|CONFIG|CONFIG_(?:GLOBAL|SYSTEM)|ASKPASS|SSH)|SSH_ASKPASS"
)
"""Variables that are lists of places in which loaders, interpreters, shells and git find what they run."""

_WORDS = (
    r"(?:LD|DYLD)_\w+|PYTHON(?:BREAKPOINT|WARNINGS|EXECUTABLE)|NODE_\w+|PERL5(?:OPT|DB)|RUBYOPT|LUA_INIT\w*"
    r"|(?:_?JAVA|JDK_JAVA|JAVA_TOOL)_OPTIONS|DOTNET_STARTUP_HOOKS|GIT_(?:CONFIG_\w+|EXTERNAL_DIFF|PAGER|EDITOR"
    r"|SEQUENCE_EDITOR|SSH_COMMAND|PROXY_COMMAND)|PAGER|EDITOR|VISUAL|BROWSER|LESSOPEN|LESSCLOSE"
)
"""Variables that are options or commands, in which such places stand."""

_BY_NAME = r"(?:^|\s)(?:-r|--require|--import|--(?:experimental-)?loader)\b|:\w+\."
"""Of options, what loads a module by its name, which is looked for where we stand."""


def program_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """``environ`` for a program that agent-tui starts by itself: of PATH and of what says what is loaded it has what no
    command can have written."""
    kept: dict[str, str] = {}
    for name, value in environ.items():
        if re.fullmatch(_FOLDERS, name):
            value = os.pathsep.join(part for part in value.split(os.pathsep) if part and not _leads_in(part))
        elif re.fullmatch(_WORDS, name) and (re.search(_BY_NAME, value) or any(map(_leads_in, _paths(value)))):
            value = ""
        if value or not environ[name]:
            kept[name] = value
    return {**kept, "PATH": safe_path(environ)}


def _paths(value: str) -> Iterator[str]:
    """What in options or a command may be a path."""
    for word in re.split(r"[\s=,;@:\"']+", value):
        path = re.sub(r"^-+[A-Za-z]+(?=/)", "", word)
        if "/" in path or path.startswith("."):
            yield path


def _leads_in(path: str) -> bool:
    """Returns whether a path is, or could come to be, where commands write: it depends on where we stand, or who may
    write in the nearest folder there is may make the rest."""
    while path.startswith("/") and len(path) > 1 and not os.path.lexists(path):
        path = os.path.dirname(path)
    return may_be_written(path)
