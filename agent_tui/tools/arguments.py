"""Tool arguments: the model's raw JSON text to a checked dataclass, with error texts a model can act on."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, TypeVar

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata

T = TypeVar("T")


def parse_arguments(raw: str) -> Metadata:
    """The arguments object of a tool call. Empty text is an empty object; raises ToolError for anything but an
    object."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except json.JSONDecodeError as error:
        raise ToolError(
            f"The arguments are not valid JSON: {error.msg} at character {error.pos}. Send one JSON object."
        ) from None
    except (RecursionError, ValueError):
        raise ToolError("The arguments are not usable JSON (nested too deeply or a number too long).") from None
    if not isinstance(value, dict):
        raise ToolError(f"The arguments must be one JSON object, not {_kind(value)}.")
    return value


def validate(cls: type[T], arguments: Metadata, tool: str) -> T:
    """``arguments`` as the dataclass ``cls``. Raises ToolError naming each wrong argument and what was expected."""
    names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    unknown = [name for name in arguments if name not in names]
    if unknown:
        raise ToolError(f"{tool}: unknown argument {unknown[0]!r}; it takes: {', '.join(names) or 'none'}.")
    from pydantic import ValidationError

    try:
        checked: T = _adapter(cls).validate_python({k: _unpacked(v) for k, v in arguments.items()})
    except ValidationError as error:
        lines = [f"{_where(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False, include_input=False)[:5]]
        raise ToolError(f"{tool}: wrong arguments. " + "; ".join(lines)) from None
    return checked


def reject_surrogates(text: str, tool: str, name: str) -> None:
    """Raises ToolError when ``text`` cannot be written as UTF-8: half of an escaped pair, as models do emit."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{tool}: {name} has half of a surrogate pair at character {error.start}; send the whole character."
        ) from None


_adapters: dict[type[Any], Any] = {}


def _adapter(cls: type[Any]) -> Any:
    if cls not in _adapters:
        from pydantic import TypeAdapter

        _adapters[cls] = TypeAdapter(cls)
    return _adapters[cls]


def _unpacked(value: Any) -> Any:
    """Models sometimes send a list as a string of JSON."""
    if isinstance(value, str) and value.startswith("[{") and value.endswith("}]"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _where(location: tuple[int | str, ...]) -> str:
    text = ""
    for item in location:
        text += f"[{item}]" if isinstance(item, int) else f".{item}" if text else item
    return text or "arguments"


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return {list: "a list", str: "a string", bool: "a boolean"}.get(type(value), "a number")
