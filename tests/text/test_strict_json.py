"""JSON of others is read with one error and written without any."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.text.strict_json import DEEPEST, DEEPEST_WHOLE, is_strict, names_twice, read_json, strict, write_json
from tests.support.every import every

pytestmark = pytest.mark.quick


def nested(depth: int) -> Any:
    value: Any = 1
    for n in range(depth):
        value = [value] if n % 2 else {"a": value}
    return value


def text_of(depth: int) -> str:
    return "[" * depth + "]" * depth


@every(
    "text",
    [
        *("", " ", "{", "nothing", "NaN", "[NaN]", "-Infinity", '{"x": 1e999}', "[-1e999]", "9" * 5_000, "9" * 400),
        *(text_of(DEEPEST + 1), text_of(900), text_of(150_000), "[" * 150_000, '{"a":' * 150_000),
        *(b"\xff\xfe\x00", b"\xc3\x28"),
    ],
)
def test_what_is_no_strict_json_is_one_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        read_json(text)


def test_what_is_strict_json_is_read_as_it_is() -> None:
    for text in ("null", '{"a": [1, 2.5, true, "x"]}', text_of(DEEPEST), str(2**1_000), '"\\ud83d\\ude00"'):
        assert read_json(text) == json.loads(text)
    assert read_json('{"a": "\\ud800"}') == {"a": "\ud800"}, "a file's content is checked where it is written"


def test_a_value_that_json_can_say_is_the_same_value() -> None:
    values: tuple[Any, ...] = (None, {"a": [1, 2.5, "é"]}, nested(DEEPEST), "", {}, [])
    for value in values:
        assert strict(value) is value and is_strict(value)


@every(
    ("value", "said"),
    [
        ({"x": math.nan, "y": [math.inf, -math.inf]}, {"x": None, "y": [None, None]}),
        ("\ud800", "\ufffd"),
        ({"\udc00": "\ud83d\ude00"}, {"\ufffd": "😀"}),
        ({1: (2, 3)}, {"1": [2, 3]}),
        (b"x", "b'x'"),
        ([2**1_100, 1], [None, 1]),
    ],
)
def test_something_else_stands_for_what_json_cannot_say(value: Any, said: Any) -> None:
    assert strict(value) == said and json.loads(write_json(value)) == said


@pytest.mark.parametrize("depth", [DEEPEST_WHOLE + 1, 900, 150_000])
def test_nothing_is_too_deep_to_be_written(depth: int) -> None:
    assert is_strict(json.loads(write_json(nested(depth))), DEEPEST_WHOLE)
    assert is_strict(strict(nested(depth))) and not is_strict(nested(depth))


def test_a_name_that_stands_twice_is_noticed() -> None:
    assert names_twice('{"a": {"b": 1, "b": 2}}') and not names_twice('{"a": {"b": 1}, "b": [{"a": 1}]}')


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("\ud800") | st.binary(),
    lambda below: st.lists(below) | st.dictionaries(st.text() | st.integers() | st.just("\udfff"), below),
)


@given(VALUES)
def test_whatever_is_written_can_be_read(value: Any) -> None:
    made = strict(value)
    assert is_strict(made) and strict(made) is made
    assert json.loads(write_json(value)) == made
