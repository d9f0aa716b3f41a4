"""The forms of MCP servers, read from what the servers say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_tui.models.forms import FORMATS, Choice, FieldKind, FormField
from agent_tui.text.clean import asked_words, plain_line

MOST_FIELDS, MOST_CHOICES = 40, 200

_KINDS: Mapping[object, FieldKind] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "array": "choices",
}


class BadForm(ValueError):
    """A form that cannot be shown; the text says why."""


def fields_of(schema: object) -> tuple[FormField, ...]:
    """The fields of a form as its server describes them. Raises BadForm."""
    properties = schema.get("properties", {}) if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict):
        raise BadForm("it has no fields")
    if len(properties) > MOST_FIELDS:
        raise BadForm(f"it has more than {MOST_FIELDS} fields")
    required = schema.get("required")
    needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    if strange := next((name for name in needed if name not in properties), None):
        raise BadForm(f"it needs {plain_line(strange, 60)}, which is none of its fields")
    return tuple(_field(str(name), described, name in needed) for name, described in properties.items())


def _field(name: str, described: object, required: bool) -> FormField:
    title = asked_words(name, 60, line=True) or "?"
    if not isinstance(described, dict):
        raise BadForm(f"its field {title} is not described")
    kind = _KINDS.get(described.get("type") if isinstance(described.get("type"), str) else "")
    if kind is None:
        raise BadForm(f"its field {title} is of type {plain_line(described.get('type'), 40)}")
    items = described.get("items")
    choices = _choices(items if kind == "choices" and isinstance(items, dict) else described, title)
    if kind == "text" and choices:
        kind = "choice"
    elif kind == "choices" and not choices:
        raise BadForm(f"its field {title} is a list without choices")
    elif kind not in ("choice", "choices"):
        choices = ()
    names = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}
    least, most = (_number(described.get(key)) for key in names.get(kind, ("minimum", "maximum")))
    if kind in ("choice", "boolean"):
        least = most = None
    if least is not None and most is not None and least > most:
        raise BadForm(f"its field {title} has no value between {least:g} and {most:g}")
    form = described.get("format") if kind == "text" else ""
    made = FormField(
        name,
        asked_words(described.get("title") or name, 60, line=True) or title,
        kind,
        asked_words(described.get("description") or "", 500),
        required,
        choices,
        least,
        most,
        form if isinstance(form, str) and form in FORMATS else "",
    )
    default = described.get("default")
    try:
        if default is not None:
            made.check(default)
    except ValueError:
        default = None  # a server's default that its own field does not take
    return FormField(name, made.title, kind, made.about, required, choices, least, most, made.format, default)


def _choices(described: Mapping[str, Any], title: str) -> tuple[Choice, ...]:
    """The values that a field takes, by ``enum`` with or without names, or by ``oneOf`` and ``anyOf``."""
    found = described.get("oneOf") or described.get("anyOf")
    names = described.get("enumNames")
    if isinstance(found, list):
        pairs = [(one.get("const"), one.get("title")) for one in found if isinstance(one, dict)]
    elif isinstance(found := described.get("enum"), list):
        labels = names if isinstance(names, list) and len(names) == len(found) else found
        pairs = list(zip(found, labels, strict=True))
    else:
        return ()
    if len(pairs) > MOST_CHOICES:
        raise BadForm(f"its field {title} has more than {MOST_CHOICES} choices")
    told = {
        value: asked_words(label or value, 100, line=True) or "?" for value, label in pairs if isinstance(value, str)
    }
    if not told or len(told) < len(pairs):
        raise BadForm(f"its field {title} has choices that are no texts, or the same twice")
    return tuple(Choice(value, label) for value, label in told.items())


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
        return None
    return float(value)
