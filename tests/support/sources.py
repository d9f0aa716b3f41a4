"""The program's own files, for tests that look through them: read once, and parsed only where something may be found.

To parse a file takes a hundred times as long as to search it for a word."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import agent_tui

PACKAGE = Path(agent_tui.__file__).parent


@cache
def product() -> dict[str, str]:
    """The text of every file of the program, by its path in the package."""
    return {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def words(file: str) -> frozenset[str]:
    """All names that stand in a file of the program, and the words of its texts."""
    return frozenset(re.findall(r"\w+", product()[file]))


def with_any(*looked_for: str) -> dict[str, str]:
    """The files that have one of these words, whole."""
    return {file: text for file, text in product().items() if not words(file).isdisjoint(looked_for)}


def matching(pattern: re.Pattern[str]) -> dict[str, str]:
    """The files in which something looks so."""
    return {file: text for file, text in product().items() if pattern.search(text)}
