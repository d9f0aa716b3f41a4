"""An object that a model wrote beside JSON: in a fence, with single quotes, with a brace too many.

Only what was plainly meant is taken: the object has to be whole. One that was cut off is not completed, and where two
different objects were written nobody knows which of them was meant.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.records import dataclass

MOST_CHARS = 1_000_000
"""Characters of an object in another notation that are read."""
_FENCE = re.compile(r"\A\s*(?:`{3,}|~{3,})[\w+-]*[ \t]*\n?(.*?)\n?[ \t]*(?:`{3,}|~{3,})\s*\Z", re.DOTALL)
_MARK = r"(?:<[|｜][^<>|｜]{1,40}[|｜]>|</?(?:tool_call|function|arguments|parameters?|json)>)"
_MARKS_BEFORE = re.compile(rf"\A(?:\s*{_MARK})+", re.IGNORECASE)
_MARKS_AFTER = re.compile(rf"(?:{_MARK}\s*)+\Z", re.IGNORECASE)
"""What models' templates have around a call, and some write into the arguments."""
_CHARS_AFTER = 400
"""Characters at the end of arguments in which such marks are looked for."""
_REST = re.compile(r"[\s}\])`~;,.]*")
"""What may follow an object and says nothing: brackets too many, a fence's end, a full stop."""
_NAMES = {"true": True, "false": False, "null": None, "undefined": None}


@dataclass(slots=True, frozen=True)
class LooseObject:
    """An object, and in words what was wrong with the way it was written."""

    value: Metadata
    fault: str


def read_loose_object(text: str) -> LooseObject | None:
    """Returns the object that a text, which is not JSON, was plainly meant to be; None where that is not plain."""
    faults: list[str] = []
    inner = _MARKS_BEFORE.sub("", text.rstrip())
    inner = inner[:-_CHARS_AFTER] + _MARKS_AFTER.sub("", inner[-_CHARS_AFTER:])
    if inner != text.rstrip():
        faults.append("marks of a chat template")
    if (fenced := _FENCE.match(inner)) is not None:
        inner = fenced[1]
        faults.append("a code fence")
    inner = inner.strip()
    if not inner.startswith("{"):
        return None
    found = _first_object(inner)
    if found is None:
        found = _python_object(inner)
        faults.append("no JSON notation (quotes, commas or names)")
    if found is None:
        return None
    value, end, extra = found
    if extra:
        faults.append(extra)
    if (rest := inner[end:]) and not _REST.fullmatch(rest):
        # The same object a second time is one; anything else is not to be guessed.
        if _any_object(rest) != value:
            return None
        faults.append("the object twice")
    elif rest:
        faults.append("text after the object")
    return LooseObject(value, ", ".join(dict.fromkeys(faults))) if faults else None


def _any_object(text: str) -> Metadata | None:
    """The object that a text is, as JSON or beside it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        loose = read_loose_object(text)
        return None if loose is None else loose.value
    return value if isinstance(value, dict) else None


def _first_object(text: str) -> tuple[Metadata, int, str] | None:
    """The JSON object that a text begins with, where it ends, and what is wrong within."""
    for strict in (True, False):
        try:
            value, end = json.JSONDecoder(strict=strict).raw_decode(text)
        except (ValueError, RecursionError):
            continue
        return (value, end, "" if strict else "unescaped control characters") if isinstance(value, dict) else None
    return None


def _python_object(text: str) -> tuple[Metadata, int, str] | None:
    """An object in the notation of Python or JavaScript. Nothing of it is run: only constants are read."""
    if len(text) > MOST_CHARS:
        return None
    last = text.rfind("}")
    for end in dict.fromkeys((last + 1, len(text.rstrip("}` \n")) + 1)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of escapes that Python does not know
                value = _constant(ast.parse(_named_keys(text[:end]), mode="eval").body)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, dict):
            return value, end, ""
    return None


def _named_keys(text: str) -> str:
    """Puts keys that are bare names into quotes, outside of strings."""
    # One that is never closed goes to the end, or each quote in it would be looked at as the start of another.
    strings = r"\"(?:[^\"\\]|\\.)*(?:\"|\\?\Z)|'(?:[^'\\]|\\.)*(?:'|\\?\Z)"
    keys = re.compile(rf"({strings})|([{{,]\s*)([A-Za-z_]\w*)(\s*:)", re.DOTALL)
    return keys.sub(lambda m: m[1] or f'{m[2]}"{m[3]}"{m[4]}', text)


def _constant(node: ast.expr) -> Any:
    """Raises ValueError for what is no constant that JSON has."""
    match node:
        case ast.Constant(value=str() | bool() | int() | float() | None as constant):
            return constant
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=items):
            return [_constant(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            made: Metadata = {}
            for key, value in zip(keys, values, strict=True):
                if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                    raise ValueError("a key that is no text")
                made[key.value] = _constant(value)
            return made
        case _:
            raise ValueError("no constant")
