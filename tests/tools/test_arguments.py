"""What models write for arguments, and what becomes of it: one boundary for every tool."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.arguments import parse_arguments, unknown_arguments, validate
from agent_tui.tools.base import OwnContext, ToolContext
from agent_tui.tools.builtin.edit import EditTool
from agent_tui.tools.registry import builtin_tools
from tests.support.every import every
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick


@dataclass(slots=True)
class Inner:
    text: str
    often: bool = False


@dataclass(slots=True)
class Outer:
    name: str
    count: int = 3
    share: float | None = None
    word: str | None = None
    where: str = "."
    quiet: bool = False
    inner: list[Inner] = field(default_factory=list)


@every(
    ("given", "name", "expected"),
    [
        (None, "count", 3),
        ("null", "count", 3),
        ("", "count", 3),
        ("7", "count", 7),
        (" 7 ", "count", 7),
        (7.0, "count", 7),
        ("true", "quiet", True),
        ("false", "quiet", False),
        (None, "quiet", False),
        ("2.5", "share", 2.5),
        ("null", "share", None),
        (None, "word", None),
        ("null", "word", "null"),  # a text may say that
        ("", "word", ""),
        ("", "where", "."),
        (None, "where", "."),
        (5, "word", "5"),
        (None, "inner", []),
        ({"text": "a", "often": None}, "inner", [Inner("a")]),
        ('[{"text": "a", "often": "true"}]', "inner", [Inner("a", True)]),
        (['{"text": "a"}'], "inner", [Inner("a")]),
        ("null", "inner", []),
    ],
)
def test_what_was_plainly_meant_is_taken(given: Any, name: str, expected: Any) -> None:
    assert getattr(validate(Outer, {"name": "n", name: given}, "tool"), name) == expected


@every("given", [{"count": "many"}, {"count": 1.5}, {"quiet": "maybe"}, {"inner": "a"}, {"name": None}, {"name": True}])
def test_what_is_not_plain_is_an_error_that_says_what_is_taken(given: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match=r"tool: wrong arguments.*It takes: name, count, share"):
        validate(Outer, {"name": "n", **given}, "tool")


CALLS: dict[str, dict[str, Any]] = {
    "read": {"path": "a"}, "write": {"path": "b", "content": "c"}, "list": {}, "glob": {"pattern": "*"},
    "apply_patch": {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
    "edit": {"path": "a", "edits": [{"old_string": "x", "new_string": "y", "replace_all": None}]},
    "grep": {"pattern": "x"}, "bash": {"command": "true"}, "fetch": {"url": "https://example.org/"},
    "todo": {"items": []}, "subagent": {"description": "d", "prompt": "p"}, "jobs": {},
    "ask": {"question": "which?", "choices": ["a", "b"]}, "present_plan": {"plan": "1. do it"},
    "recall": {"query": "port"}, "context": {"action": "status"},
}  # fmt: skip
"""A call of every tool, with what it needs alone."""


def in_a_conversation(folder: Path) -> ToolContext:
    """The context of a call in a project with a file ``a``."""
    context = make_context(folder / "project")
    (context.root / "a").write_text("x\n")
    return replace(context, own=cast(OwnContext, SimpleNamespace(asks=lambda action: "", expected=lambda *given: "")))


@every("tool", builtin_tools())
def test_every_argument_that_may_be_left_out_may_be_null(tool: Any, tmp_path: Path) -> None:
    context = in_a_conversation(tmp_path)
    needed = CALLS[tool.schema.name]
    optional = set(tool.schema.parameters["properties"]) - set(tool.schema.parameters.get("required", []))
    with_nulls: dict[str, Any] = {**dict.fromkeys(optional), **needed}
    assert tool.intent(with_nulls, context) == tool.intent(needed, context)


HARD: list[Any] = [
    None, "", " ", [], {}, True, 0, -1, 1.5, float("inf"), float("nan"), 10**30, "\0", "\ud800", "a\0b", "x" * 5_000,
    "/x" * 3_000, [None], [{}], ["a"], [[]], {"a": 1}, "~", "~nobody/x", "/dev/zero", ".", "\n", "\u202e", "null", "[]",
    "{}", "1e999",
]  # fmt: skip


NONE: list[dict[str, Any]] = [{}, {"edits": None}, {"edits": []}]


@every("tool", builtin_tools())
def test_whatever_is_sent_as_an_argument_is_judged_or_refused_in_words(tool: Any, tmp_path: Path) -> None:
    context = in_a_conversation(tmp_path)
    for name in tool.schema.parameters["properties"]:
        for value in HARD:
            with contextlib.suppress(ToolError):
                tool.intent({**CALLS[tool.schema.name], name: value}, context).summary.encode()


def test_an_edit_written_flat_beside_an_empty_list_is_taken(tmp_path: Path) -> None:
    context = in_a_conversation(tmp_path)
    flat = {"path": "a", "old_string": "x", "new_string": "y"}
    for more in NONE:
        assert EditTool().intent({**flat, **more}, context) == EditTool().intent(flat, context)


def test_unknown_arguments_are_named_at_every_depth() -> None:
    schema = EditTool().schema.parameters
    right = {"path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}
    assert unknown_arguments(schema, right) == []
    for more in NONE:
        assert unknown_arguments(schema, {"path": "a", **more, "old_string": "x", "new_string": "y"}) == []
    wrong = {**right, "explanation": "because", "edits": [{"old_string": "x", "new_string": "y", "line": 3}]}
    assert set(unknown_arguments(schema, wrong)) == {"explanation", "edits.line"}
    assert unknown_arguments(schema, {**right, "replace_all": True}) == ["replace_all"]


def test_arguments_written_twice_as_json_are_read() -> None:
    assert parse_arguments(json.dumps(json.dumps({"path": "a"}))) == {"path": "a"}
    with pytest.raises(ToolError, match="one JSON object"):
        parse_arguments('"text"')


def test_the_example_has_a_field_of_each_kind() -> None:
    assert {str(f.type) for f in fields(Outer)} >= {"str", "int", "float | None", "str | None", "bool", "list[Inner]"}
