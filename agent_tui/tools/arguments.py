"""Tool arguments: the model's raw JSON text to a checked dataclass, with error texts a model can act on."""

from __future__ import annotations

import dataclasses
import json
import re
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata, ToolCallPart
from agent_tui.text.clean import printable_line
from agent_tui.text.strict_json import json_or, read_json, strict
from agent_tui.tools.loose_json import read_loose_object

T = TypeVar("T")

TEXT: Metadata = {"type": "string"}
NUMBER: Metadata = {"type": "number"}
INTEGER: Metadata = {"type": "integer"}
FLAG: Metadata = {"type": "boolean"}


def parameters(properties: Metadata, *required: str) -> Metadata:
    """The JSON Schema of an object, as models are sent it."""
    schema: Metadata = {"type": "object", "properties": properties}
    return schema | {"required": list(required)} if required else schema


def described(schema: Metadata, description: str) -> Metadata:
    return schema | {"description": description}


def listed(items: Metadata) -> Metadata:
    return {"type": "array", "items": items}


def parse_arguments(raw: str) -> Metadata:
    """The arguments of a tool call, {} for an empty text. Raises ToolError for anything but an object."""
    return read_arguments(raw)[0]


def read_arguments(raw: str) -> tuple[Metadata, str]:
    """The arguments of a tool call, and what was wrong with the way they were written; nothing where they are JSON. An
    object that is plainly meant is taken. Raises ToolError for anything else."""
    if not raw.strip():
        return {}, ""
    try:
        value = read_json(raw)
    except json.JSONDecodeError as error:
        if (loose := read_loose_object(raw)) is not None:
            return strict(loose.value), loose.fault
        raise ToolError(
            f"The arguments are not valid JSON: {error.msg} at character {error.pos}. Send one JSON object."
        ) from None
    except ValueError as error:
        raise ToolError(f"The arguments are not usable JSON: {error}. Send one JSON object.") from None
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return read_arguments(value)  # an object in quotes: written twice as JSON
    if not isinstance(value, dict):
        raise ToolError(f"The arguments must be one JSON object, not {_kind(value)}.")
    return value, ""


def validate(cls: type[T], arguments: Metadata, tool: str) -> T:
    """``arguments`` as the dataclass ``cls``. Raises ToolError naming each wrong argument and what was expected.

    What a model plainly meant is taken: null for an argument that may be left out, numbers, booleans and lists in
    quotes, one object where a list of them is asked for. Arguments it does not know are passed over
    (``unknown_arguments`` tells of them).
    """
    from pydantic import ValidationError

    try:
        checked: T = _adapter(cls).validate_python(_fitted(cls, arguments))
    except ValidationError as error:
        lines = [f"{_where(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False, include_input=False)[:5]]
        names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
        unknown = [repr(name)[:60] for name in arguments if name not in names][:3]
        hint = f" There is no argument {', '.join(unknown)}." if unknown else ""
        raise ToolError(
            f"{tool}: wrong arguments. {'; '.join(lines)}.{hint} It takes: {', '.join(names) or 'none'}."
        ) from None
    return checked


def unknown_arguments(parameters: Metadata, arguments: Metadata) -> list[str]:
    """The names in ``arguments``, at any depth, that the schema ``parameters`` does not know. Where a list of objects
    may be written flat (its own name is missing or empty), their names are known one level up too."""
    known = _properties(parameters)
    for name, schema in list(known.items()):
        if not arguments.get(name) and isinstance(schema, dict):
            known |= _properties(schema.get("items"))
    if not known:
        return []
    found: list[str] = []
    for name, value in arguments.items():
        if name not in known:
            found.append(name)
            continue
        items = known[name].get("items") if isinstance(known[name], dict) else None
        if not isinstance(items, dict) or not _properties(items):
            continue
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, dict):
                found += [f"{name}.{n}" for n in unknown_arguments(items, entry)]
    return list(dict.fromkeys(found))


def _properties(schema: Any) -> Metadata:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return dict(found) if isinstance(found, dict) else {}


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


_NOTHING = ("", "null", "none")
"""What models write in quotes where they mean null."""


def _fitted(cls: type[Any], value: Any) -> Any:
    """An object for the dataclass ``cls``, with what was plainly meant in the place of what was written."""
    if not isinstance(value, dict):
        return value
    fitted: Metadata = {}
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if field.name not in value:
            continue
        hint, given = hints[field.name], value[field.name]
        kinds = set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}
        optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if isinstance(given, str) and str not in kinds:
            given = None if optional and given.strip().lower() in _NOTHING else _unquoted(given, kinds)
        if given is None and optional and NoneType not in kinds:
            continue
        if given == "" and isinstance(field.default, str):
            continue  # where a text has a default, an empty one is none
        if isinstance(given, int) and not isinstance(given, bool) and str in kinds and not kinds & {int, float}:
            given = str(given)
        element = next((get_args(k)[0] for k in kinds if get_origin(k) is list), None)
        if element is not None and isinstance(given, dict):
            given = [given]
        if dataclasses.is_dataclass(element) and isinstance(given, list):
            given = [_fitted(cast(type[Any], element), _unquoted(entry, {dict})) for entry in given]
        fitted[field.name] = given
    return fitted


def _unquoted(value: Any, kinds: set[Any]) -> Any:
    """Models sometimes send a list or an object as a string of JSON. Numbers and booleans in quotes are pydantic's."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{") and any(get_origin(k) or k is dict for k in kinds):
        return json_or(value, value)
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


LABEL_CHARS = 60


_SUBJECTS = (
    *("command", "cmd", "pattern", "path", "file_path", "filePath", "target_file", "file", "filename", "uri", "url"),
    *("query", "description", "task", "prompt", "question", "name"),
)
"""Arguments that say what a call is about, by all agents' names, the most telling first."""
_NAMED = re.compile(rf'"({"|".join(_SUBJECTS)})"\s*:\s*"((?:[^"\\]|\\.)*)')
_PATCHED = re.compile(r"\*\*\* (?:Add|Update|Delete) File: ([^\n\\]+)")
_READ = 4_000
"""Characters of arguments that are no object, or have it deeper, in which it is looked for."""


def call_summary(name: str, arguments: str) -> str:
    """A call in one line, before the tool has said what it will do, or where it never does: its name and what it is
    about, also where the arguments are cut off, wrong or for a tool that nobody knows."""
    given = data if isinstance(data := json_or(arguments, None), dict) else {}
    for subject in _SUBJECTS:
        value = given.get(subject)
        if isinstance(value, str) and value:
            path = given.get("path")
            where = f" in {path}" if subject == "pattern" and isinstance(path, str) and path not in ("", ".") else ""
            return f"{name} {value}{where}"
    begin = arguments[:_READ]
    if (patched := _PATCHED.search(begin)) is not None:
        return f"{name} {patched[1].strip()}"
    found = dict(reversed([(match[1], match[2]) for match in _NAMED.finditer(begin) if match[2]]))
    if (best := next((one for one in _SUBJECTS if one in found), None)) is not None:
        return f"{name} {_unescaped(found[best])}"
    if isinstance(action := given.get("action"), str) and action:
        others = (each for key, value in given.items() if key != "action" for each in _listed(value))
        return f"{name} {' '.join([action, *(each for each in others if isinstance(each, str) and each)])[:200]}"
    text = arguments.strip()
    return name if text in ("", "{}") else f"{name} {text[:200]}"


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [value]


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def short_summary(call: ToolCallPart) -> str:
    """The same within a row."""
    return printable_line(call_summary(call.name, call.arguments), LABEL_CHARS)
