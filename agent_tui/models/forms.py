"""Forms that the user is asked to fill in: flat, with a few kinds of fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal

from agent_tui.models.messages import Metadata
from agent_tui.records import dataclass
from agent_tui.text.clean import asked_words, plain_line

FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices"]

MOST_TEXT = 20_000
"""Characters of an answer."""

_TYPES: dict[FieldKind, str] = {
    "text": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "choice": "string",
    "choices": "array",
}
_YES, _NO = ("yes", "y", "true", "on", "1"), ("no", "n", "false", "off", "0")


@dataclass(slots=True, frozen=True)
class Choice:
    """One of the values that a field takes, and its label."""

    value: str
    label: str


@dataclass(slots=True, frozen=True)
class FormField:
    """``name`` is the server's own; nothing is hidden in the other words. ``least`` and ``most`` bound a
    number, the length of a text, or how many are chosen. ``format`` is what a text has to be, such as ``email``."""

    name: str
    title: str
    kind: FieldKind = "text"
    about: str = ""
    required: bool = False
    choices: tuple[Choice, ...] = ()
    least: float | None = None
    most: float | None = None
    format: str = ""
    default: Any = None

    @property
    def wants(self) -> str:
        """What is to be written, in a word or two."""
        words = {"integer": "a whole number", "number": "a number", "boolean": "yes or no", "choices": "several"}
        what = self.format or words.get(self.kind, "")
        least, most = (None if bound is None else f"{bound:g}" for bound in (self.least, self.most))
        bounds = f"{least} to {most}" if least and most else f"at least {least}" if least else f"at most {most}"
        if least is None and most is None:
            return what
        unit = " characters" if self.kind == "text" else ""
        return f"{what}, {bounds}{unit}".lstrip(", ")

    def read(self, text: str) -> Any:
        """The value that somebody wrote. Raises ValueError, which says what is wrong, for what is none."""
        text = text.strip()
        value: Any = text
        if self.kind == "boolean":
            if text.lower() not in (*_YES, *_NO):
                raise ValueError("answer yes or no")
            value = text.lower() in _YES
        elif self.kind in ("number", "integer"):
            try:
                value = int(text) if self.kind == "integer" or re.fullmatch(r"[+-]?\d+", text) else float(text)
            except ValueError:
                raise ValueError(f"{text[:40]!r} is not {self.wants}") from None
        elif self.kind == "choice":
            value = self._chosen(text)
        elif self.kind == "choices":
            value = [self._chosen(word.strip()) for word in text.split(",") if word.strip()]
        self.check(value)
        return value

    def _chosen(self, text: str) -> str:
        if text.isdecimal() and len(text) < 4 and 1 <= int(text) <= len(self.choices):
            return self.choices[int(text) - 1].value
        found = next((c for c in self.choices if text.casefold() in (c.value.casefold(), c.label.casefold())), None)
        if found is None:
            raise ValueError(f"{text[:40]!r} is none of the choices")
        return found.value

    def check(self, value: Any) -> None:
        """Raises ValueError where the field does not take a value."""
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        several = self.kind == "choices" and isinstance(value, list)
        kinds = {
            "boolean": isinstance(value, bool),
            "number": number and abs(value) < float("inf"),
            "integer": isinstance(value, int) and not isinstance(value, bool),
            "choices": several,
        }
        if not kinds.get(self.kind, isinstance(value, str)):
            raise ValueError(f"is not {self.wants}" if self.wants else "is no text")
        known = {choice.value for choice in self.choices}
        chosen = value if several else [value] if self.kind == "choice" else []
        if not all(isinstance(one, str) and one in known for one in chosen) or len(set(chosen)) < len(chosen):
            raise ValueError("is none of the choices")
        size = value if number else len(value) if isinstance(value, (str, list)) else 0
        if isinstance(value, str) and len(value) > MOST_TEXT:
            raise ValueError(f"is longer than {MOST_TEXT:,} characters")
        if (self.least is not None and size < self.least) or (self.most is not None and size > self.most):
            raise ValueError(f"must be {self.wants}")
        if isinstance(value, str) and not _is_of_format(value, self.format):
            raise ValueError(f"is no {self.format}")

    def shown(self, value: Any) -> str:
        """A value in words; empty where there is none."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "no"
        labels = {choice.value: choice.label for choice in self.choices}
        if isinstance(value, list):
            return ", ".join(labels.get(one, str(one)) for one in value)
        return labels.get(value) or asked_words(value, 200, line=True)

    def written(self, value: Any) -> str:
        """A value as it may be typed; empty where there is none."""
        return "" if value is None else plain_line(self.shown(value) if isinstance(value, bool) else value, 200)

    def schema(self) -> Metadata:
        """The field as JSON Schema, made anew of what is understood of it."""
        told: Metadata = {"type": _TYPES[self.kind], "title": self.title}
        names = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}
        for name, bound in zip(names.get(self.kind, ("minimum", "maximum")), (self.least, self.most), strict=True):
            if bound is not None:
                told[name] = int(bound) if bound == int(bound) else bound
        options = [{"const": choice.value, "title": choice.label} for choice in self.choices]
        if self.kind == "choice":
            told["oneOf"] = options
        elif self.kind == "choices":
            told["items"] = {"anyOf": options}
        for name, value in (("description", self.about), ("format", self.format), ("default", self.default)):
            if value not in ("", None):
                told[name] = value
        return told


def form_schema(fields: Sequence[FormField]) -> Metadata:
    """A form as JSON Schema."""
    required = [each.name for each in fields if each.required]
    return {"type": "object", "properties": {each.name: each.schema() for each in fields}, "required": required}


def defaults(fields: Sequence[FormField]) -> Metadata:
    """The values that a form begins with."""
    return {each.name: each.default for each in fields if each.default is not None}


def problem_of(fields: Sequence[FormField], values: Metadata) -> str:
    """The first thing that is wrong with the values of a form, in a line; empty where they can be sent."""
    known = {each.name: each for each in fields}
    if strange := next((name for name in values if name not in known), None):
        return f"The form has no field {plain_line(strange, 60)}."
    for each in fields:
        if (value := values.get(each.name)) is None:
            if each.required:
                return f"{each.title} is required."
            continue
        try:
            each.check(value)
        except ValueError as error:
            return f"{each.title}: {error}."
    return ""


FORMATS = ("email", "uri", "date", "date-time")


def _is_of_format(text: str, form: str) -> bool:
    if form == "email":
        return re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None
    if form == "uri":
        return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S+$", text) is not None
    try:
        if form == "date":
            date.fromisoformat(text)
        elif form == "date-time":
            datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
