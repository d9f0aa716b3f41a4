"""Arguments that are plainly an object though they are not JSON: taken, with what was wrong; the rest is refused."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.errors import ToolError
from agent_tui.tools.arguments import parse_arguments, read_arguments
from agent_tui.tools.loose_json import read_loose_object
from tests.support.every import every

pytestmark = pytest.mark.quick

GOOD = {"path": "a.py", "limit": 3}
TEXT = json.dumps(GOOD)


@every(
    ("raw", "value"),
    [
        (TEXT + "}", GOOD),
        (TEXT + "}}\n", GOOD),
        (TEXT + "]", GOOD),
        (f"```json\n{TEXT}\n```", GOOD),
        (f"```\n{TEXT}```", GOOD),
        (f"~~~json\n{TEXT}\n~~~\n", GOOD),
        (TEXT + "\n```", GOOD),
        (TEXT + "<|call|>", GOOD),
        (f"<tool_call>{TEXT}</tool_call>", GOOD),
        (TEXT + TEXT, GOOD),
        (f"{TEXT}\n{TEXT}", GOOD),
        ("{'path': 'a.py', 'limit': 3}", GOOD),
        ("{'path': 'a.py', 'limit': 3}}", GOOD),
        ("```json\n{'path': 'a.py', 'limit': 3,}\n```", GOOD),
        ('{"path": "a.py", "limit": 3,}', GOOD),
        ('{path: "a.py", limit: 3}', GOOD),
        ("{'all': True, 'none': None, 'off': false, 'list': [1, -2.5,]}",
         {"all": True, "none": None, "off": False, "list": [1, -2.5]}),
        ("{'old': \"it's\", 'new': 'say \"hi\"'}", {"old": "it's", "new": 'say "hi"'}),
        ("{'code': 'if {a: 1}, b: 2'}", {"code": "if {a: 1}, b: 2"}),
        ('{"content": "a\nb\tc"}', {"content": "a\nb\tc"}),
        ('{"content": "<function>}}</tool_call>"}}', {"content": "<function>}}</tool_call>"}),
    ],
)  # fmt: skip
def test_what_is_plainly_meant_is_read_and_said(raw: str, value: dict[str, object]) -> None:
    read, fault = read_arguments(raw)
    assert read == value and fault
    assert parse_arguments(raw) == value


@every(
    "raw",
    [
        '{"path": "a.py"',  # cut off: what is missing may be what matters
        '{"command": "rm -rf build',
        '{"path": "a.py"} {"path": "b.py"}',
        '{"path": "a.py"} and then some words',
        "{'path': open('x')}",
        "{'a': f'{1}'}",
        "{**{}}",
        "{1: 2}",
        "[1, 2]}",
        "words",
        "{'a': " + "[" * 5_000 + "]" * 5_000 + "}",
    ],
)
def test_what_is_not_plain_is_refused(raw: str) -> None:
    with pytest.raises(ToolError):
        parse_arguments(raw)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=4), st.sampled_from(["", "}", " }}", "\n```", "<|call|>"]))
def test_whatever_an_object_holds_it_is_read_as_it_was_written(value: dict[str, object], after: str) -> None:
    """Marks, braces and quotes inside of strings are content."""
    raw = json.dumps(value)
    assert parse_arguments(raw) == value
    loose = read_loose_object(raw + after)
    assert loose is None or loose.value == value
    python = read_loose_object(repr(value))
    assert python is None or python.value == value


@every(
    "text",
    ['{"content": "' + 'a\\"' * 60_000, "{" + "'a\\" * 60_000, "{'a': 1}" + "</json> " * 40_000 + "y"],
)
def test_an_object_that_is_not_whole_is_given_up_at_once(text: str) -> None:
    begun = time.process_time()
    assert read_loose_object(text) is None
    assert time.process_time() - begun < 4
