"""Regular expressions mean the same on every Python that the program runs on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]

import pytest

from tests.support.sources import matching

POSSESSIVE = re.compile(r"[*+?}]\+")
IN_SOURCE = re.compile(r"""[*+?}](["']\s*\w?["'])?\+""")
"""The same in a file, where one string may be written as two."""


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


@pytest.mark.slow
def test_no_group_is_repeated_possessively() -> None:
    """Python 3.11 goes back into such a group before 3.11.5, which Debian 12 does not have: an atomic group holds."""
    assert repeats_a_group("(?:ab?c)*+") and repeats_a_group("x(?:y(?:ab)?+|z)") and not repeats_a_group(r"[a-z]++\d*+")
    files = matching(IN_SOURCE)
    assert files
    found = [(file, text) for file, source in files.items() for text in patterns(source) if repeats_a_group(text)]
    assert found == []
