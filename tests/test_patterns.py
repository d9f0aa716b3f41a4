"""Regular expressions mean the same on every Python that the program runs on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]

import agent_tui

POSSESSIVE = re.compile(r"[*+?}]\+")


def patterns(source: str) -> Iterator[str]:
    """The strings of a source that may be patterns with a possessive quantifier."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and POSSESSIVE.search(node.value):
            yield node.value


def repeats_a_group(pattern: str) -> bool:
    """Whether anything but a single character is repeated and kept."""
    try:
        todo = [_parser.parse(pattern, re.VERBOSE if "\n" in pattern else 0)]
    except re.error:
        return False  # words of people
    while todo:
        for operator, argument in todo.pop():
            parts = [argument, *argument] if isinstance(argument, tuple) else [argument]
            inner = [part for part in parts if isinstance(part, _parser.SubPattern)]
            inner += [branch for part in parts if isinstance(part, list) for branch in part if hasattr(branch, "data")]
            if operator is _constants.POSSESSIVE_REPEAT and any(len(part) != 1 for part in inner):
                return True
            todo += inner
    return False


def test_no_group_is_repeated_possessively() -> None:
    """Python 3.11 goes back into such a group before 3.11.5, which Debian 12 does not have: an atomic group holds."""
    assert repeats_a_group("(?:ab?c)*+") and repeats_a_group("x(?:y(?:ab)?+|z)") and not repeats_a_group(r"[a-z]++\d*+")
    files = Path(agent_tui.__file__).parent.rglob("*.py")
    found = [(path.name, text) for path in files for text in patterns(path.read_text("utf-8")) if repeats_a_group(text)]
    assert found == []
