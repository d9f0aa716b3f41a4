"""Finds every program that agent-tui starts by itself, and makes the environment they get: nothing that a command of
the model may have put there is found, loaded or read. Imports next to nothing, as ``start`` does.
"""
# ruff: noqa: PTH111, PTH113, PTH115, PTH118, PTH120  (dots and links count one by one)

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

_MOST_LINKS = 40
_SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp")
"""Where everybody keeps files, commands in a sandbox too."""

MOUNTS = "/proc/self/mountinfo"

_written: set[str] = set()
_spared: set[str] = set()
_held = False


def keep_out_of(folders: Iterable[Path], spared: Iterable[Path] = (), held: bool | None = None) -> None:
    """Says that commands may write in these folders, but for ``spared`` places: as long as this process lives no
    program is taken from there. Where the project is the whole machine no place of it is better than another. ``held``
    says whether a sandbox keeps them out of all others, those that everybody may write in too."""
    global _held
    _written.update({os.path.realpath(folder) for folder in folders} - {"/"})
    _spared.update(map(os.fspath, spared))
    _held = _held if held is None else held


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
    if any(_is_within(place, folder) for folder in _SHARED):
        return True
    spared = any(_is_within(place, one) or _is_within(one, place) for one in _spared)
    if not spared and any(_is_within(place, folder) for folder in folders):
        return info.st_uid == os.geteuid() or os.access(place, os.W_OK)
    return not _held and _is_anyones(place, info) and not _is_on_drive(place)


def _is_anyones(place: str, info: os.stat_result) -> bool:
    """Returns whether others than the user and root may have put or changed what is there: a file that all may write,
    or anything of somebody else's in a folder where all may."""
    if info.st_mode & stat.S_IWOTH and not stat.S_ISLNK(info.st_mode) and not stat.S_ISDIR(info.st_mode):
        return True
    return info.st_uid not in (0, os.geteuid()) and bool(os.lstat(os.path.dirname(place)).st_mode & stat.S_IWOTH)


def _is_on_drive(place: str) -> bool:
    """Returns whether a place lies on a drive of Windows, in WSL: mode and owner that a file has there are those of the
    mount, and whoever is on this machine is the one user of Windows."""
    on = [drive for mount, drive in _drives() if _is_within(place, mount)]
    return on[-1] if on else False


@cache
def _drives() -> list[tuple[str, bool]]:
    """Where something is mounted, the places further down last, and whether it is a drive of Windows. Only root mounts
    one: WSL 1 calls it by its type, WSL 2 by what its server is asked for."""
    with suppress(OSError):
        found = [(place, re.match(r"drvfs |9p .*\baname=drvfs[;,]", what) is not None) for place, what in mounts()]
        return sorted(found, key=lambda each: len(each[0]))
    return []


def mounts() -> list[tuple[str, str]]:
    """Where something is mounted now, and what: its type, then what it is of and how. Raises OSError."""
    found: list[tuple[str, str]] = []
    for line in filter(None, os.fsdecode(Path(MOUNTS).read_bytes()).split("\n")):
        ours, _, theirs = line.partition(" - ")
        found.append((re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), ours.split(" ")[4]), theirs))
    return found


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

_LISTS = rf"{_FOLDERS}|\w*(?:PATH|(?<!PRO)FILES?)|R_PROFILE(?:_USER)?"
"""Those of which an entry is a place where we stand, although it has no slash."""

_TELL = (
    r"HOME|PWD|OLDPWD|_|INIT_CWD|\w*PROJECT_(?:DIR|ROOT)|GITHUB_WORKSPACE|WORKSPACE|VIRTUAL_ENV(?:_PROMPT)?|CONDA_\w+"
    r"|UV_PROJECT_ENVIRONMENT|TMPDIR|TMP|TEMP|TMUX|STY|XAUTHORITY|ICEAUTHORITY|KRB5CCNAME|SSH_\w*(?:SOCK|CONNECTION)"
    r"|GPG_AGENT_INFO|DBUS_\w+|DISPLAY|WAYLAND_DISPLAY|XDG_RUNTIME_DIR"
)
"""Variables that say where somebody is or whom to ask, from which nothing is run."""

_BY_NAME = r"(?:^|\s)(?:-r|--require|--import|--(?:experimental-)?loader)\b|:\w+\."
"""Of options, what loads a module by its name, which is looked for where we stand."""

_OPTIONS = r"NODE_OPTIONS|RUBYOPT|PERL5\w+|PYTHONWARNINGS|PYTHONBREAKPOINT"
_LOADED = rf"{_FOLDERS}|{_OPTIONS}|(?:LD|DYLD)_\w+|LUA_INIT\w*|\w*JAVA\w*_OPTIONS|DOTNET_STARTUP_HOOKS|GIT_\w+"
"""Variables by which something is run that nobody named."""


def program_environment(environ: Mapping[str, str] = os.environ, given: Collection[str] = ()) -> dict[str, str]:
    """``environ`` for a program that agent-tui starts by itself: without what names a place in which commands may have
    written, but for what tells where somebody is. Those that the user ``given`` for this program may name such places,
    as far as nothing is loaded from there by itself."""
    kept: dict[str, str] = {}
    theirs = {name for name in given if not re.fullmatch(_LOADED, name)}
    # Of git's settings the one that says in which folders it works at all.
    theirs |= {name.replace("KEY", "VALUE") for name, value in environ.items() if value == "safe.directory"}
    for name, value in environ.items():
        if name in theirs or re.fullmatch(_TELL, name):
            pass
        elif re.fullmatch(_LISTS, name):
            value = os.pathsep.join(part for part in value.split(os.pathsep) if part and not _leads_in(part))
        elif _names_place(name, value):
            value = ""
        if value or not environ[name]:
            kept[name] = value
    return {**whole_git_config(environ, kept), "PATH": safe_path(environ)}


def _names_place(name: str, value: str) -> bool:
    loaded = re.fullmatch(_LOADED, name) is not None
    by_name = re.fullmatch(_OPTIONS, name) is not None and re.search(_BY_NAME, value) is not None
    return by_name or any(map(_leads_in, _paths(value, loaded)))


def whole_git_config(environ: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """``kept`` of ``environ``, with git's configuration in variables in whole pairs: of one that lacks half, or is
    miscounted, git says that it is bogus, and does nothing at all."""
    pairs = [(f"GIT_CONFIG_KEY_{at}", f"GIT_CONFIG_VALUE_{at}") for at in range(_count(environ))]
    there = [(kept[key], kept[value]) for key, value in pairs if key in kept and value in kept]
    return with_git_config({name: v for name, v in kept.items() if not re.fullmatch(_NUMBERED, name)}, there)


_NUMBERED = r"GIT_CONFIG_(?:COUNT|(?:KEY|VALUE)_\d+)"


def with_git_config(environ: Mapping[str, str], pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """``environ`` in which git is told of these keys and values too."""
    if not pairs:
        return dict(environ)
    start = _count(environ)
    made = {**environ, "GIT_CONFIG_COUNT": str(start + len(pairs))}
    for at, (key, value) in enumerate(pairs, start):
        made |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return made


def _count(environ: Mapping[str, str]) -> int:
    count = environ.get("GIT_CONFIG_COUNT", "0")
    return int(count) if re.fullmatch(r"[0-9]{1,3}", count) else 0


_MOST_PIECES = 60
"""Of a value, counted with what is between them, that are tried as one path."""


def _paths(value: str, loaded: bool) -> Iterator[str]:
    """What in a variable may be a path: what is absolute, begins in the home or where we stand, or is there; where
    it is ``loaded``, whatever has a slash."""
    if value.startswith("."):
        yield value
    pieces = re.split(r"([\s=,;@:\"'|()`]+)", value)
    for at in range(0, len(pieces), 2):
        path = os.path.expanduser(re.sub(r"^-+[A-Za-z]+(?=[/.~])", "", pieces[at]))
        if path.startswith("/") or ("/" in path and (loaded or path.startswith(".") or os.path.lexists(path))):
            yield path
        if not path.startswith("/"):
            continue
        # A name may have blanks and the like in it: as far as there are such folders.
        for upto in range(at + 2, min(len(pieces), at + _MOST_PIECES), 2):
            path += pieces[upto - 1] + pieces[upto]
            if os.path.lexists(os.path.dirname(path)):
                yield path


def _leads_in(path: str) -> bool:
    """Returns whether a path is, or could come to be, where commands write: it depends on where we stand, or who may
    write in the nearest folder there is may make the rest."""
    while path.startswith("/") and len(path) > 1 and not os.path.lexists(path):
        path = os.path.dirname(path)
    return may_be_written(path)
