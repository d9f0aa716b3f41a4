"""Every attribute has one owner: an object's state is changed by its own methods, from no other module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import agent_tui
from tests.support.every import every

PACKAGE = Path(agent_tui.__file__).parent

VALUES = frozenset({"message", "step", "request", "part", "call", "record", "info", "summary"})
"""What a plain value of ``agent_tui.models`` is called where it is filled in: a message, a step, a request, …"""


def fields_of(tree: ast.AST) -> set[str]:
    """The fields of all dataclasses."""
    return {
        node.target.id
        for found in ast.walk(tree)
        if isinstance(found, ast.ClassDef) and any("dataclass" in ast.unparse(d) for d in found.decorator_list)
        for node in found.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


@cache
def model_fields() -> set[str]:
    return set().union(*(fields_of(ast.parse(f.read_text("utf-8"))) for f in (PACKAGE / "models").rglob("*.py")))


@cache
def tree_of(source: str) -> ast.Module:
    return ast.parse(source)


def writes(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Every attribute that is assigned, added to or deleted on anything but ``self``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            if not own:
                yield node


def name_of(node: ast.expr) -> str:
    """What the written object is called: ``step`` for ``step`` and for ``result.step``."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def strangers(source: str, models: set[str]) -> list[str]:
    """The writes of a module to what is neither a value nor a dataclass of its own."""
    tree = tree_of(source)
    own = fields_of(tree)
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in writes(tree)
        if node.attr not in own and not (node.attr in models and name_of(node.value).removeprefix("_") in VALUES)
    ]


def by_setattr(source: str) -> list[str]:
    calls = (n for n in ast.walk(tree_of(source)) if isinstance(n, ast.Call))
    return [f"{n.lineno}: {ast.unparse(n)}" for n in calls if name_of(n.func) in ("setattr", "__setattr__")]


FILES = {f"{f.relative_to(PACKAGE)}": f.read_text("utf-8") for f in sorted((PACKAGE / "engine").rglob("*.py"))}


def test_no_attribute_is_written_from_outside() -> None:
    wrong = {name: strangers(source, model_fields()) + by_setattr(source) for name, source in FILES.items()}
    assert {name: found for name, found in wrong.items() if found} == {}


@every(
    ("source", "found"),
    [
        ("runtime.info = x", True),
        ("self._runtime.replay = rule", True),
        ("self.toolbox.jail, y = x, 1", True),
        ("parts.trusted |= True", True),
        ("del agent.runtime", True),
        ("self.runtime = x", False),
        ("result.step.usage = usage", False),
        ("message.parts[0:0] = changes", False),
    ],
)
def test_the_rule_knows_a_stranger(source: str, found: bool) -> None:
    assert bool(strangers(source, model_fields())) is found


@pytest.mark.slow
def test_no_class_of_the_engine_inherits_another_one() -> None:
    """State that is shared by inheritance has no owner."""
    trees = map(tree_of, FILES.values())
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    names = {c.name for c in classes}
    assert [c.name for c in classes if any(name_of(base) in names for base in c.bases)] == []


@pytest.mark.slow
def test_what_became_of_a_call_is_written_in_one_place() -> None:
    outcome = {"usage", "believed", "cost_usd", "status", "failure", "finish_reason"}
    wrote = {
        name
        for name, source in FILES.items()
        for node in writes(tree_of(source))
        if node.attr in outcome and name_of(node.value) == "step"
    }
    assert wrote - {"engine/calls.py", "engine/cache_forecast.py"} == {"engine/model_call.py"}, "a count is no call"
    streams = {name for name, source in FILES.items() if "provider.stream(" in source}
    assert streams == {"engine/model_call.py"}
