"""Tool calls that a model wrote into its answer as text, because its server's template knows none or it forgot how.

Each family of models has a notation that it was trained on; where a server does not read it, it arrives as text. Calls
between the marks of such a notation are taken wherever they stand outside of code; an object in a fence, or a bare one,
only where it ends the answer: before that it is an example. Names must be those of tools that were offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

from agent_tui.records import dataclass
from agent_tui.tools.loose_json import read_loose_object

MOST_CALLS = 32
"""Calls of one answer; a model that writes more repeats itself."""
MOST_CHARS = 200_000
"""Characters of an answer that are looked at, from its end."""
MOST_MARKS = 200
"""Marks of an answer, outside of code, that are looked at: one with more of them is about such marks."""

_NAME = r"[A-Za-z_][\w.-]{0,100}"
_OPEN = re.compile(
    r"<(?:tool_calls?|function_calls?|tool_use|toolcall|tools?)>\s*(?=[\[{])"
    r"|\[TOOL_CALLS\]\s*(?=[\[{])|<\|(?:python_tag|tool_calls?)\|>\s*(?=[\[{])|functools\s*(?=\[)",
    re.IGNORECASE,
)
_CLOSE = re.compile(
    r"\s*(?:</(?:tool_calls?|function_calls?|tool_use|toolcall|tools?)>|\[/TOOL_CALLS\]|<\|[\w/▁]{1,40}\|>"
    r"|<｜[\w/▁]{1,40}｜>)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"<(?:\||｜)tool(?:_|▁)call(?:_|▁)begin(?:\||｜)>\s*(?:function<｜tool▁sep｜>)?\s*(?P<a>{_NAME})(?::\d+)?\s*"
    rf"(?:<(?:\||｜)tool(?:_call_argument_begin|▁sep)(?:\||｜)>)?\s*(?:```(?:json)?\s*)?(?=\{{)"
    rf"|\[TOOL_CALLS\](?P<b>{_NAME})\[ARGS\]\s*(?=\{{)"
    rf"|to=(?P<c>functions\.{_NAME})[^{{}}]{{0,60}}<\|message\|>\s*(?=\{{)"
)
_FUNCTION = re.compile(
    rf"<function=(?P<a>{_NAME})>|<(?:\w+:)?invoke\s+name=[\"'](?P<b>{_NAME})[\"']>"
    rf"|<tool_call>\s*(?P<c>{_NAME})\s*(?=<arg_key>|</tool_call>|\Z)"
)
_PARAMETER = re.compile(
    rf"<parameter=(?P<a>{_NAME})>|<(?:\w+:)?parameter\s+name=[\"'](?P<b>{_NAME})[\"'][^<>]{{0,100}}>"
    rf"|<arg_key>\s*(?P<c>{_NAME})\s*</arg_key>\s*<arg_value>"
)
_ENDS = MappingProxyType(
    {
        "a": (re.compile(r"</function>"), re.compile(r"</parameter>")),
        "b": (re.compile(r"</(?:\w+:)?invoke>"), re.compile(r"</(?:\w+:)?parameter>")),
        "c": (re.compile(r"</tool_call>"), re.compile(r"</arg_value>")),
    }
)
"""What ends a call and a parameter of each notation. They are looked for by themselves, so that what is never ended
takes no longer than what is."""
_WRAPPERS = re.compile(
    r"\s{0,4}</?(?:\w+:)?(?:tool_calls?|function_calls?)>\s{0,4}|<\|[\w▁]*tool_calls_section[\w▁]*\|>"
)
_REACT = re.compile(rf"^Action:[ \t]*(?P<name>{_NAME})[ \t]*\nAction Input:\s*(?=\{{)", re.MULTILINE)
_CODE = re.compile(r"^(`{3,20}|~{3,20})[^\n]*\n.*?(?:^\1[`~]*[ \t]*$|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_FENCED_END = re.compile(r"^(`{3,20}|~{3,20})[^\n]*\n(?P<in>(?:(?!^\1).)*?)\n?^\1[ \t]*\Z", re.DOTALL | re.MULTILINE)
_INVENTED = re.compile(r"\s*(?:<tool_(?:response|result)s?>|Observation:|\[TOOL_RESULTS\])", re.IGNORECASE)
"""What some models go on with: the result that they expect."""


@dataclass(slots=True, frozen=True)
class TextCall:
    """A call as the model wrote it: the tool's ``name`` and its ``arguments`` as JSON."""

    name: str
    arguments: str


@dataclass(slots=True, frozen=True)
class WrittenCalls:
    """The calls in an answer, in their order, and the ``text`` around them."""

    calls: tuple[TextCall, ...]
    text: str


def find_text_calls(text: str, is_tool: Callable[[str], bool]) -> WrittenCalls | None:
    """Returns the calls that an answer has as text; None where it has none. ``is_tool`` knows the names of the tools
    that the model was offered."""
    looked_at, before = text[-MOST_CHARS:], text[:-MOST_CHARS]
    if not any(sign in looked_at for sign in "{<"):
        return None
    taken = [*_marked(looked_at, is_tool)]
    if not taken:
        taken = [*_at_the_end(looked_at, is_tool)]
    if not taken:
        return None
    rest, at = [before], 0
    for start, end, _ in taken:
        rest.append(looked_at[at:start])
        at = end
    if not _INVENTED.match(looked_at, at):
        rest.append(looked_at[at:])
    calls = [call for _, _, calls in taken for call in calls][:MOST_CALLS]
    return WrittenCalls(tuple(calls), _WRAPPERS.sub("\n", "".join(rest)).strip())


def _marked(text: str, is_tool: Callable[[str], bool]) -> Iterator[tuple[int, int, list[TextCall]]]:
    """The calls between marks, outside of code: where each begins and ends."""
    code = [(match.start(), match.end()) for match in _CODE.finditer(text)]
    at = looked_at = 0
    ahead = [match for pattern in (_OPEN, _NAMED, _FUNCTION) if (match := pattern.search(text)) is not None]
    while looked_at < MOST_MARKS:
        found = [match if match.start() >= at else match.re.search(text, at) for match in ahead]
        ahead = [match for match in found if match is not None]
        if not ahead:
            return
        match = min(ahead, key=lambda match: (match.start(), -match.end()))
        if (after := next((end for begin, end in code if begin <= match.start() < end), None)) is not None:
            at = after
            continue
        looked_at += 1
        known = match.lastgroup is None or is_tool(_plain(match[match.lastgroup]))
        calls, end = _read(match, text) if known else ([], 0)
        if calls and all(is_tool(call.name) for call in calls):
            yield match.start(), end, calls
            at = end
        else:
            at = match.start() + 1


def _read(match: re.Match[str], text: str) -> tuple[list[TextCall], int]:
    if match.re is _FUNCTION:
        return _read_function(match, text)
    value, end = _object_at(text, match.end())
    if match.re is _NAMED:
        name = match["a"] or match["b"] or match["c"]
        if not isinstance(value, dict):
            return [], 0
        fence = re.compile(r"\s*```").match(text, end)
        return [TextCall(_plain(name), json.dumps(value))], _after_close(text, fence.end() if fence else end)
    return calls_of(value), _after_close(text, end)


def _read_function(match: re.Match[str], text: str) -> tuple[list[TextCall], int]:
    kind = match.lastgroup or ""
    name, (end_of_call, end_of_value) = _plain(match[kind]), _ENDS[kind]
    closed = end_of_call.search(text, match.end())
    inner, end = text[match.end() : closed.start() if closed else None], closed.end() if closed else len(text)
    values, at = dict[str, str](), 0
    while (parameter := _PARAMETER.search(inner, at)) is not None:
        if (last := end_of_value.search(inner, parameter.end())) is None:
            break
        values[parameter[parameter.lastgroup or ""]] = inner[parameter.end() : last.start()].strip("\n")
        at = last.end()
    if not values and inner.strip().startswith("{"):
        value, _ = _object_at(inner.strip(), 0)
        return ([TextCall(name, json.dumps(value))], end) if isinstance(value, dict) else ([], 0)
    if (not values and inner.strip()) or (kind == "c" and inner[at:].strip()):
        return [], 0
    return [TextCall(name, json.dumps(values))], _after_close(text, end)


def _after_close(text: str, at: int) -> int:
    while (close := _CLOSE.match(text, at)) is not None and not _NAMED.match(text, close.start()):
        at = close.end()
    return at


def _at_the_end(text: str, is_tool: Callable[[str], bool]) -> Iterator[tuple[int, int, list[TextCall]]]:
    """A call that the answer ends with: an object in a fence, a bare one, or what a prompt for agents asks for."""
    stripped = text.rstrip()
    if (react := [*_REACT.finditer(stripped)][-1:]) and isinstance(
        value := _object_at(stripped, react[0].end())[0], dict
    ):
        call = TextCall(_plain(react[0]["name"]), json.dumps(value))
        if is_tool(call.name):
            yield react[0].start(), len(text), [call]
        return
    fenced = _FENCED_END.search(stripped)
    if fenced is not None:
        start, inner = fenced.start(), fenced["in"]
    elif stripped.lstrip()[:1] in ("{", "["):
        start, inner = len(stripped) - len(stripped.lstrip()), stripped.lstrip()
    else:
        return
    value, end = _object_at(inner.strip(), 0)
    if inner.strip()[end:].strip(" \n}]`"):
        return
    calls = calls_of(value)
    if calls and all(is_tool(call.name) for call in calls):
        yield start, len(text), calls


def _object_at(text: str, at: int) -> tuple[Any, int]:
    """The JSON value at a place of a text, and where it ends; an object may be written loosely, to the end of its
    line or mark."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, at)
    except (ValueError, RecursionError):
        close = re.compile(r"</?[A-Za-z_|｜]|\n```|\Z").search(text, at)
        end = close.start() if close is not None else len(text)
        loose = read_loose_object(text[at:end])
        return (None, at) if loose is None else (loose.value, end)


_NAME_KEYS, _ARGUMENT_KEYS = (
    ("name", "tool", "tool_name", "function", "action"),
    (
        "arguments",
        "parameters",
        "args",
        "input",
        "action_input",
        "tool_input",
    ),
)


def calls_of(value: Any) -> list[TextCall]:
    """The calls that a JSON value is: an object that names a tool and its arguments, or a list of such."""
    if isinstance(value, list):
        made = [calls_of(item) for item in value[: MOST_CALLS + 1]]
        return [call for calls in made for call in calls] if made and all(made) else []
    if not isinstance(value, dict):
        return []
    if isinstance(inner := value.get("tool_calls"), list):
        return calls_of(inner)
    if isinstance(inner := value.get("function"), dict):
        return calls_of(inner)
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    arguments: Any = next((value[key] for key in _ARGUMENT_KEYS if key in value), None)
    if isinstance(arguments, str):
        arguments = _object_at(arguments.strip(), 0)[0] if arguments.strip() else {}
    if name is None or not isinstance(arguments, dict):
        return []
    return [TextCall(_plain(name), json.dumps(arguments))]


def _plain(name: str) -> str:
    return name.strip().removeprefix("functions.").removeprefix("tools.")
