"""Forms of MCP servers: what is understood of their schemas, and which answers they take."""

from __future__ import annotations

from typing import Any

import pytest

from agent_tui.models.forms import defaults, form_schema, problem_of
from agent_tui.tools.mcp.forms import MOST_CHOICES, MOST_FIELDS, BadForm, fields_of
from tests.support.every import every

pytestmark = pytest.mark.quick

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your\x1b[31m name", "minLength": 2, "maxLength": 5},
        "mail": {"type": "string", "format": "email"},
        "age": {"type": "integer", "minimum": 18, "default": 21},
        "share": {"type": "number", "maximum": 1},
        "news": {"type": "boolean", "default": True},
        "seat": {"type": "string", "enum": ["w", "a"], "enumNames": ["Window", "Aisle"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu", "we"]}, "minItems": 1},
        "when": {"type": "string", "format": "date"},
    },
    "required": ["name", "days"],
}


def test_every_kind_of_field_is_read_from_words() -> None:
    fields = {each.name: each for each in fields_of(SCHEMA)}
    assert fields["name"].title == "Your␛[31m name"
    words = {"name": "Anna", "mail": "a@b.c", "age": "33", "share": "0.5", "news": "no", "seat": "2", "size": "large"}
    read = {name: fields[name].read(text) for name, text in words.items()}
    assert read == {"name": "Anna", "mail": "a@b.c", "age": 33, "share": 0.5, "news": False, "seat": "a", "size": "l"}
    assert fields["days"].read("mo, 3") == ["mo", "we"] and fields["when"].read("2026-11-27") == "2026-11-27"
    assert fields["seat"].shown("a") == "Aisle" and fields["days"].shown(["mo", "we"]) == "mo, we"
    assert fields["news"].shown(True) == "yes" and fields["age"].shown(None) == ""
    assert defaults(fields_of(SCHEMA)) == {"age": 21, "news": True}


@every(
    ("name", "text"),
    [
        ("name", "A"),
        ("name", "Annabel"),
        ("mail", "nobody"),
        ("age", "17"),
        ("age", "twenty"),
        ("age", "20.5"),
        ("share", "inf"),
        ("share", "nan"),
        ("share", "2"),
        ("news", "perhaps"),
        ("seat", "3"),
        ("days", ""),
        ("days", "mo, mo"),
        ("when", "tomorrow"),
    ],
)
def test_what_a_field_does_not_take_is_said(name: str, text: str) -> None:
    (field,) = (each for each in fields_of(SCHEMA) if each.name == name)
    with pytest.raises(ValueError, match=r"\w"):
        field.read(text)


@every(
    ("values", "problem"),
    [
        ({"name": "Anna", "days": ["mo"]}, ""),
        ({"name": "Anna", "days": ["mo"], "age": 40, "share": 1, "news": False}, ""),
        ({"days": ["mo"]}, "Your␛[31m name is required."),
        ({"name": 7, "days": ["mo"]}, "Your␛[31m name: is not"),
        ({"name": "Anna", "days": "mo"}, "days: is not several"),
        ({"name": "Anna", "days": ["su"]}, "days: is none of the choices"),
        ({"name": "Anna", "days": [["mo"]]}, "days: is none of the choices"),
        ({"name": "Anna", "days": ["mo"], "age": True}, "age: is not"),
        ({"name": "Anna", "days": ["mo"], "more": 1}, "The form has no field more."),
    ],
)
def test_values_of_programs_are_held_against_the_form(values: dict[str, Any], problem: str) -> None:
    said = problem_of(fields_of(SCHEMA), values)
    assert said.startswith(problem) and bool(said) == bool(problem)


def test_the_schema_that_programs_get_describes_the_same_form() -> None:
    fields = fields_of(SCHEMA)
    assert fields_of(form_schema(fields)) == fields


@every(
    "schema",
    [
        None,
        [],
        {"properties": []},
        {"properties": {"a": 1}},
        {"properties": {"a": {}}},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {"type": ["string", "null"]}}},
        {"properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"a": {"type": "string", "enum": [1, 2]}}},
        {"properties": {"a": {"type": "string", "enum": ["x", "x"]}}},
        {"properties": {"a": {"type": "string", "enum": [str(n) for n in range(MOST_CHOICES + 1)]}}},
        {"properties": {"a": {"type": "integer", "minimum": 5, "maximum": 4}}},
        {"properties": {}, "required": ["b"]},
        {"properties": {str(n): {"type": "string"} for n in range(MOST_FIELDS + 1)}},
    ],
)
def test_a_form_that_cannot_be_shown_says_why(schema: object) -> None:
    with pytest.raises(BadForm, match=r"\w"):
        fields_of(schema)


def test_a_default_that_lies_is_left_out() -> None:
    (field,) = fields_of({"properties": {"a": {"type": "integer", "default": "seven", "minimum": "no"}}})
    assert field.default is None and field.least is None
