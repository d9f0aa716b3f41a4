"""The schema of a tool's arguments as every API takes it. Servers write schemas of older drafts, of none, or with what
only one API knows, and most APIs refuse the whole request over one of them (Anthropic: "It must match JSON Schema draft
2020-12"; OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level",
"array schema missing items"). What a tool takes is checked by the tool: here nothing has to be kept that is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.text.strict_json import strict

_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_TABLES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset({"items", "contains", "not", "if", "then", "else", "propertyNames"})
_SWITCHES = frozenset({"additionalProperties", "unevaluatedProperties", "unevaluatedItems"})
"""Schemas that are often a plain yes or no."""
_NOT_AT_THE_TOP = ("allOf", "anyOf", "oneOf", "$ref", "enum", "const", "not", "if", "then", "else")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_pattern(value: Any) -> bool:
    try:
        return isinstance(value, str) and re.compile(value) is not None
    except (re.error, RecursionError, OverflowError):
        return False


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


_FITS: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        **dict.fromkeys(("title", "description", "format", "$comment", "$ref"), _is_text),
        **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
        **dict.fromkeys(("minContains", "maxContains", "minProperties", "maxProperties"), _is_count),
        **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_flag),
        "multipleOf": lambda value: _is_number(value) and value > 0,
        "pattern": _is_pattern,
        "required": _are_names,
        "enum": lambda value: isinstance(value, list) and bool(value),
        "examples": lambda value: isinstance(value, list),
        "dependentRequired": lambda value: isinstance(value, dict) and all(map(_are_names, value.values())),
    }
)
"""What a keyword's value has to be; one that is not here, and holds no schema, may have any."""
_GONE = frozenset({"dependencies", "contentSchema"})
"""Of older drafts, or seldom read: left out, as is what begins with ``$`` and names other documents."""


_NOTHING = object()


def sound_schema(schema: Any, names: re.Pattern[str] | None = None) -> Metadata:
    """A tool's schema as every API takes it; equal to what it was where that was so already. ``names``: what a
    property may be called; of others only the description tells."""
    try:
        text = json.dumps(schema, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return _of_root(strict(schema), names)
    return _remembered(text, names)


@lru_cache(maxsize=512)
def _remembered(text: str, names: re.Pattern[str] | None) -> Metadata:
    return _of_root(strict(json.loads(text)), names)


def _of_root(schema: Any, names: re.Pattern[str] | None) -> Metadata:
    made = _sound(schema, names) if isinstance(schema, dict) else {}
    made = _without_dead_references(made, made)
    said = {keyword: made.pop(keyword) for keyword in _NOT_AT_THE_TOP if keyword in made}
    all_of = [*said.get("allOf", ()), *([{"$ref": said["$ref"]}] if "$ref" in said else ())]
    one_of = [*said.get("anyOf", ()), *said.get("oneOf", ())]
    made["type"] = "object"
    made.setdefault("properties", {})
    for variant in (*all_of, *one_of):
        found = _at(made, variant["$ref"]) if "$ref" in variant else variant
        if not isinstance(found, dict):
            continue
        made["properties"] = {**(found.get("properties") or {}), **made["properties"]}
        if variant in all_of and (required := [*made.get("required", ()), *found.get("required", ())]):
            made["required"] = list(dict.fromkeys(required))
    if all_of or one_of:
        # What a variant forbids would forbid another's properties.
        made.pop("additionalProperties", None)
        made.pop("unevaluatedProperties", None)
    return made


def _sound(schema: Metadata, names: re.Pattern[str] | None) -> Metadata:
    """One schema in words of draft 2020-12, what says nothing there left out. ``schema`` is strict JSON, so it is not
    deep."""
    made: Metadata = {}
    for keyword, value in schema.items():
        if keyword == "items" and isinstance(value, list):
            keyword = "prefixItems"  # of drafts before 2020-12
        if keyword.startswith("exclusive") and value is True:
            value = schema.get(keyword.removeprefix("exclusive").lower())  # of draft 4
        if (sound := _value(keyword, value, names)) is not _NOTHING:
            made[keyword] = sound
    if "array" in _kinds(made) and not made.keys() & {"items", "prefixItems"}:
        made["items"] = {}
    _name_properties(made, names)
    return made


def _value(keyword: str, value: Any, names: re.Pattern[str] | None) -> Any:
    """What a keyword says, sound; _NOTHING where it says nothing."""
    if keyword == "type":
        kinds = [kind for kind in (value if isinstance(value, list) else [value]) if kind in _TYPES]
        if isinstance(value, list):
            return list(dict.fromkeys(kinds)) or _NOTHING
        return kinds[0] if kinds else _NOTHING
    if keyword in _TABLES:
        return _table(value, names) if isinstance(value, dict) else _NOTHING
    if keyword in _LISTS:
        variants = value if isinstance(value, list) else []
        return [_sound(one, names) for one in variants if isinstance(one, dict)] or _NOTHING
    if keyword in _SINGLE or keyword in _SWITCHES:
        if isinstance(value, dict):
            return _sound(value, names)
        return value if keyword in _SWITCHES and isinstance(value, bool) else _NOTHING
    if keyword in _GONE or (keyword.startswith("$") and keyword not in _FITS):
        return _NOTHING
    return value if _FITS.get(keyword, _is_said)(value) else _NOTHING


def _is_said(value: Any) -> bool:
    return True


def _kinds(schema: Metadata) -> tuple[str, ...]:
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


def _table(value: Metadata, names: re.Pattern[str] | None) -> Metadata:
    return {
        name: _sound(one, names) if isinstance(one, dict) else {} for name, one in value.items() if one is not False
    }


def _name_properties(made: Metadata, names: re.Pattern[str] | None) -> None:
    """Takes out the properties that an API has no name for, and tells of them."""
    properties = made.get("properties")
    unfit = [name for name in properties or () if names is not None and names.fullmatch(name) is None]
    if not properties or not unfit:
        return
    made["properties"] = {name: one for name, one in properties.items() if name not in unfit}
    told = "; ".join(f"{name!r} ({properties[name].get('description') or 'no description'})" for name in unfit)
    made["description"] = " ".join(filter(None, [made.get("description"), f"It takes further properties: {told}."]))
    made.pop("additionalProperties", None)
    if "required" in made:
        made["required"] = [name for name in made["required"] if name not in unfit]


def _without_dead_references(schema: Metadata, root: Metadata) -> Metadata:
    """The same without references that lead nowhere, or to nothing but each other."""
    made: Metadata = {}
    for keyword, value in schema.items():
        if keyword in _TABLES:
            made[keyword] = {name: _without_dead_references(one, root) for name, one in value.items()}
        elif keyword in _LISTS:
            made[keyword] = [_without_dead_references(one, root) for one in value]
        elif keyword in _SINGLE or (keyword in _SWITCHES and isinstance(value, dict)):
            made[keyword] = _without_dead_references(value, root)
        elif keyword != "$ref" or _leads(value, root):
            made[keyword] = value
    return made


def _leads(place: str, root: Metadata) -> bool:
    passed: set[str] = set()
    while place not in passed:
        passed.add(place)
        found = _at(root, place)
        if not isinstance(found, dict):
            return False
        if found.keys() != {"$ref"}:
            return True
        place = found["$ref"]
    return False


def _at(root: Metadata, place: str) -> Any:
    """What a reference within the schema leads to; None for any other."""
    if place == "#":
        return root
    if not place.startswith("#/"):
        return None
    found: Any = root
    for step in place[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found
