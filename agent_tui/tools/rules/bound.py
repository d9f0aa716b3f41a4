"""What a rule that lets a command run outside the sandbox is bound to: a folder, the configuration that programs read
there before anything else, and the words it was given for."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_tui.tools.git.repository import find_repository

MAX_BYTES = 1_000_000
"""Of a larger file its size and time count."""

_NAMES = re.compile(
    r"\..*(rc|env)(\.\w+)?|\.[\w-]+-versions?|\.git(modules|attributes)|[a-z.]*(make|docker|container|compose|rake|gem|just|task|proc|vagrant|brew|pod|jenkins|earth|pip)file(\.\w+)?"
    r"|.*\.(toml|cfg|ini|json[5c]?|ya?ml|mk|mak|xml|props|targets|tf|nix|gradle|kts|sbt|cabal|csproj|sln|gemspec"
    r"|podspec|bazel|cmake)"
    r"|.*\.(config|conf|setup)\.[cm]?[jt]s|(setup|conftest|noxfile|tasks|fabfile|wscript|sconstruct|manage)(\.py)?"
    r"|(build|mix)\.(rs|zig|exs|xml)|(requirements|constraints)[\w.-]*\.(txt|in)|cmakelists\.txt|mvnw|gradlew|package\.\w+",
    re.IGNORECASE,
)
"""Files at the top of a project in which build tools, package managers and their kind find what to start. What these
files lead to, further down, is not followed."""

_BELOW = (
    ".cargo/config",
    ".cargo/config.toml",
    ".yarn/plugins",
    ".yarn/releases",
    ".mvn/maven.config",
    ".mvn/jvm.config",
)
_BRANCHES = re.compile(rb'^\[branch "[^\n]*\n(?:[ \t][^\n]*\n?)*', re.MULTILINE)
"""Which branch follows which: ``git push -u`` writes it, and it starts nothing."""

Configuration = Mapping[str, object]
"""By name, what tells whether a file is still the same."""


def configuration(root: Path) -> Configuration:
    """That of the project in ``root``, as it is now."""
    try:
        names = [entry.name for entry in os.scandir(root) if _NAMES.fullmatch(entry.name) and not entry.is_dir()]
    except OSError:
        names = []
    found = {name: _state(root / name) for name in (*names, *_BELOW)}
    repository = find_repository(root)
    if repository is not None:
        found |= {f".git/{name}": _state(repository.common / name) for name in ("config", "config.worktree")}
        found[".git"] = (str(repository.own), str(repository.common))
    return {name: state for name, state in found.items() if state is not None}


def changed(before: Configuration, now: Configuration, of_git: bool) -> str:
    """The name of a file that is not as it was; empty where all are. ``of_git``: of those that git reads."""
    names = sorted(name for name in {*before, *now} if name.startswith(".git") or not of_git)
    return next((name for name in names if before.get(name) != now.get(name)), "")


def _state(path: Path) -> object:
    """None where there is nothing; of a folder that it is there."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return stat.S_IFMT(found.st_mode)
        if found.st_size > MAX_BYTES:
            return found.st_size, found.st_mtime_ns
        data = path.read_bytes()
    except OSError as problem:
        return None if isinstance(problem, FileNotFoundError) else "unreadable"
    # Keyed anew in every process: nobody finds another text with the same value.
    return hash(_BRANCHES.sub(b"", data) if path.name == "config" else data)


def same_repository(one: Path, other: Path) -> bool:
    """Whether git means the same repository in two folders, links not followed."""
    return find_repository(one) == find_repository(other)


_PLAIN_OPTIONS = re.compile(
    r"-[aAhlnquvwy]|-vv+|--(all|amend|base|body|check|comments|cov|coverage|draft|fill|follow-tags|force|frozen|head|help"
    r"|json|label|lf|limit|locked|namespace|no-edit|no-fail-fast|quiet|release|state|title|verbose|version|watch|web"
    r"|workspace|yes)|--(cov|json|limit|maxfail|state|tb|watch)=[\w,.-]*"
)
_ELSEWHERE = re.compile(
    r"(-C|--(prefix|manifest-path|git-dir|work-tree|cwd|directory|project|project-directory|chdir|dir|root))(=.*)?|-C.+"
)
_ADDRESS = re.compile(r".*://.*|git\+.*|[\w.-]+@[\w.-]+:.*|.*::.*|[\w.-]+:[\w.-]+:.*|--")


def uncovered(pattern: str, words: Sequence[str]) -> str:
    """The first of ``words`` that a rule was not meant for where nothing holds what runs: another folder; where a star
    stands for it, an option that may have a program start another, or an address. Empty where the rule covers all."""
    fixed = _fixed(pattern)
    for at, word in enumerate(words):
        message = words[0] == "git" and re.fullmatch(r"-[aq]*m", word)
        option = re.match(r"-|\.?[A-Z]\w*=", word) and not _PLAIN_OPTIONS.fullmatch(word) and not message
        if _ELSEWHERE.fullmatch(word) or (at >= fixed and (option or _ADDRESS.fullmatch(word))):
            return word
    return ""


def uncovered_address(pattern: str, words: Sequence[str]) -> str:
    """The same of a command that is held, but for the network: where it would reach is part of what was asked."""
    return next((word for word in words[_fixed(pattern) :] if _ADDRESS.fullmatch(word)), "")


def has_star(pattern: str) -> bool:
    """Whether a pattern stands for more than one command."""
    return _STAR.search(pattern) is not None


_STAR = re.compile(r"(?<!\\)\*")


def _fixed(pattern: str) -> int:
    """How many words a pattern begins with that have no star in them; without any, all there may be."""
    star = _STAR.search(pattern)
    return 1_000_000 if star is None else len(pattern[: star.start()].split())
