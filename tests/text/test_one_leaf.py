"""Text and numbers are written in ``agent_tui.text`` and nowhere else, or they disagree again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import agent_tui
from agent_tui.text import cells, clean, numbers
from tests.support.every import every

pytestmark = pytest.mark.quick

PACKAGE = Path(agent_tui.__file__).parent
LEAF = PACKAGE / "text"

LIKE = re.compile(
    r"clean\w*|one_line|line_of|sanitize\w*|(?:ellipsis|ellipsize|truncate)\w*|pluralize\w*|(?:kilo|mega)bytes|uptime"
    r"|(?:human|format|pretty|fmt)_?(?:tokens?|costs?|money|dollars|bytes|sizes?|seconds|durations?|times?|percent\w*|ages?|counts?)"
)
"""Names that such functions had, or would have."""

FLOAT = re.compile(r"[.,]\d*[.\d]+[eEfFgG%]|%$")
"""A format for a number with digits after the point."""


ESTIMATE = re.compile(
    r"\b(?:usage|expected|plan|before|after|now|seen)\.(?:total|over|free)\b|estimated|deferred_tokens|expected_after"
    r"|new_messages|fixed_delta|dropped_reasoning|in_flight"
)
"""Token counts that are estimates, or may be: ``tokens`` writes them, which has to be told whether they are."""

MARKED = frozenset(
    {
        "commands/bookkeeping.py",
        "commands/context_texts.py",
        "commands/report.py",
        "context/accounting/next_input.py",
    }
)
"""Here a column, or the formula, says of each number how it is known."""

PRICE = re.compile("cost|price|dollar|usd|budget|spent")
"""What stands behind a ``$`` that is money; a path in JSON begins with one, too."""


def public(module: object) -> set[str]:
    return {name for name, value in vars(module).items() if callable(value) and value.__module__ == module.__name__}  # type: ignore[attr-defined]


NAMES = {name for module in (clean, numbers, cells) for name in public(module) if not name.startswith("_")}


EVERYDAY = {
    "age",
    "cut",
    "factor",
    "fit",
    "grouped",
    "plain",
    "printable",
    "share",
    "size",
    "spelled",
    "tokens",
    "visible",
}
"""Names that a private helper may have for something else."""


def taken(name: str) -> bool:
    bare = name.lstrip("_")
    return LIKE.fullmatch(bare) is not None or bare in (NAMES if bare == name else NAMES - EVERYDAY)


def faults(source: str) -> Iterator[tuple[int, str]]:
    """(line, what is wrong): functions of the leaf defined anew, numbers formatted, plurals and control characters
    handled by hand."""
    tree = ast.parse(source)
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and taken(statement.name):
            yield statement.lineno, f"{statement.name} is a function of agent_tui.text"
    for node in ast.walk(tree):
        match node:
            case ast.FormattedValue(format_spec=ast.JoinedStr(values=[*_, ast.Constant(value=str(spec))])) if (
                FLOAT.search(spec)
            ):
                yield node.lineno, f"a number is formatted here ({spec})"
            case ast.FormattedValue(
                value=number, format_spec=ast.JoinedStr(values=[*_, ast.Constant(value=str(spec))])
            ) if "," in spec and ESTIMATE.search(ast.unparse(number)):
                yield node.lineno, "an estimate is written here"
            case ast.JoinedStr(values=[*_]) if any(
                isinstance(text, ast.Constant)
                and str(text.value).endswith("~")
                and isinstance(number, ast.FormattedValue)
                and isinstance(number.value, ast.Call)
                and ast.unparse(number.value.func) in ("tokens", "grouped", "share_in")
                for text, number in pairwise(node.values)
            ):
                yield node.lineno, "the mark of an estimate is written here"
            case ast.JoinedStr(values=values) if any(
                isinstance(text, ast.Constant)
                and str(text.value).endswith("$")
                and isinstance(number, ast.FormattedValue)
                and PRICE.search(ast.unparse(number.value))
                for text, number in pairwise(values)
            ):
                yield node.lineno, "money is written here"
            case ast.Call(
                func=ast.Name(id="tokens"), args=[ast.Attribute(attr="total"), ast.Attribute(attr="approximate")]
            ):
                yield node.lineno, "a total is written without how sure it is"
            case ast.IfExp(body=ast.Constant(value=one), orelse=ast.Constant(value=other)) if {one, other} == {"", "s"}:
                yield node.lineno, "a plural is made here"
            case ast.GeneratorExp() | ast.ListComp() if any(
                isinstance(inner, ast.Attribute) and inner.attr == "isprintable" for inner in ast.walk(node)
            ) or any(isinstance(inner, ast.Attribute) and inner.attr == "category" for inner in ast.walk(node)):
                yield node.lineno, "characters are left out here"


@pytest.mark.slow
def test_text_and_numbers_are_written_in_one_place() -> None:
    found: list[tuple[str, int, str]] = []
    paths = [path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(LEAF)]
    assert len(paths) > 100
    for path in paths:
        name = path.relative_to(PACKAGE).as_posix()
        marks = name in MARKED or name.startswith("ui/screens/context")
        found += [(name, *f) for f in faults(path.read_text("utf-8")) if not (marks and "estimate" in f[1])]
    assert found == []


@every(
    "line",
    [
        "def clean(text): ...",
        "def _one_line(text): ...",
        "def format_tokens(count): ...",
        "def human_bytes(count): ...",
        'x = f"{n / 1000:.1f}k"',
        'x = f"{part:.1%}"',
        'x = f"{value:,.3g} MB"',
        'x = f"${cost}"',
        'x = f"the next input is {usage.total:,} tokens"',
        'x = f"~{tokens(call.read, False)}"',
        "x = tokens(usage.total, usage.approximate)",
        'x = f"{n} line{"s" if n != 1 else ""}"'.replace('"s"', "'s'").replace('""', "''"),
        'x = "".join(c for c in text if c.isprintable())',
    ],
)
def test_the_walk_finds_what_it_looks_for(line: str) -> None:
    assert len(list(faults(line))) == 1


def test_the_walk_leaves_alone_what_is_no_number_for_people() -> None:
    assert not list(faults('x = f"{n:,} {name:<12} {code:04X} {label:>{width}}"\n'))


def test_the_leaf_knows_nothing_of_the_product() -> None:
    for path in LEAF.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                room = (node.module or "").split(".")[:2]
                assert room[0] != "agent_tui" or room[1:] == ["text"], path.name
