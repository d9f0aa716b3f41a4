"""What an answer "always" allows: the program with its subcommand where that is a thing of its own, else this very
command. Never an interpreter, a shell or a program that starts others as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from agent_tui.tools.word_sets import word_set

_WHOLE = word_set(
    "pytest py.test mypy pyright ruff black isort flake8 pylint bandit eslint prettier tsc jest vitest mocha "
    "tox nox rspec rubocop phpunit phpstan golangci-lint shellcheck stylelint biome standard clippy mkdir touch tree"
)
_CODE_TOOLS = _WHOLE | word_set("unittest doctest")
_RUNNERS = word_set("npx bunx uvx")
_ONE: dict[str, frozenset[str]] = {
    "git": word_set(
        "add commit checkout switch restore stash merge fetch pull push tag branch cherry-pick revert mv rm apply"
    ),
    "npm": word_set("test t ls outdated"),
    "pnpm": word_set("test ls outdated"),
    "yarn": word_set("test list outdated"),
    "cargo": word_set("build test check clippy fmt doc bench run tree"),
    "go": word_set("build test vet fmt list doc version"),
    "pip": word_set("list show freeze check"),
    "pip3": word_set("list show freeze check"),
    "docker": word_set("ps images logs inspect version"),
    "podman": word_set("ps images logs inspect version"),
    "kubectl": word_set("get describe logs version"),
    "dotnet": word_set("build test"),
    "mvn": word_set("test compile verify package"),
    "swift": word_set("build test"),
    "zig": word_set("build test"),
    "mix": word_set("test compile format"),
    "rake": word_set("test spec"),
}
_TWO: dict[str, frozenset[tuple[str, str]]] = {
    "gh": frozenset(
        (first, second)
        for first, seconds in {
            "pr": "view list diff checks status",
            "issue": "view list status",
            "run": "view list",
            "release": "view list",
            "repo": "view list",
            "workflow": "view list",
        }.items()
        for second in seconds.split()
    ),
    "go": frozenset({("mod", "tidy"), ("mod", "verify"), ("mod", "graph")}),
}
_SCRIPTS = word_set("npm pnpm yarn bun")
_BEHIND_RUN = {"uv": "run", "poetry": "run", "pipenv": "run", "hatch": "run", "bundle": "exec", "pdm": "run"}
_OWN = re.compile(r"(?:\./)?(?:\.?venv/bin|env/bin|node_modules/\.bin)/\w[\w-]*")
_PYTHON = re.compile(r"(?:[\w./-]+/)?python[\d.]*")
_PLAIN = re.compile(r"[A-Za-z0-9@_][\w.@/:-]*")


def prefix(line: Sequence[str]) -> list[str]:
    """The words at the start of a command line that name what was asked about; empty where only the whole command
    does."""
    name, rest = line[0], list(line[1:])
    if _OWN.fullmatch(name) and PurePosixPath(name).name in _WHOLE:
        return [name]
    if "/" in name or not all(_PLAIN.fullmatch(word) for word in rest[:1]):
        return [name] if name in _WHOLE else _module(line)
    if name in _WHOLE:
        return [name]
    first = rest[0] if rest else ""
    second = rest[1] if len(rest) > 1 and _PLAIN.fullmatch(rest[1]) else ""
    if first in _ONE.get(name, ()):
        return [name, first]
    if (first, second) in _TWO.get(name, ()):
        return [name, first, second]
    if name in _SCRIPTS and first == "run" and second:
        return [name, first, second]
    if name in _RUNNERS and first in _CODE_TOOLS:
        return [name, first]
    if _BEHIND_RUN.get(name) == first and second in _CODE_TOOLS:
        return [name, first, second]
    return []


def _module(line: Sequence[str]) -> list[str]:
    """``python -m pytest``, with the interpreter as it was named; ``python -m coverage run -m pytest`` too."""
    if not _PYTHON.fullmatch(line[0]) or list(line[1:2]) != ["-m"] or len(line) < 3:
        return []
    if line[2] == "coverage":
        behind = list(line[3:5]) == ["run", "-m"] and len(line) > 5 and line[5] in _CODE_TOOLS
        return list(line[:6]) if behind else []
    return list(line[:3]) if line[2] in _CODE_TOOLS else []
