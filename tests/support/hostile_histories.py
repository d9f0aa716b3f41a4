"""Conversations as no sane provider, tool or user would have them, and strategies that make up more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Origin,
    Part,
    ReasoningPart,
    SearchPart,
    Status,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import ToolSchema
from tests.support.pixel import PIXEL_BASE64

OWN = Origin("", "chat", "")
"""Stands for whom the conversation is sent to: what goes back as it came is what goes wrong."""
STRANGER = Origin("nobody", "chat", "knows")

NAN, ENDLESS = float("nan"), float("inf")


def nested(depth: int) -> Any:
    value: Any = "x"
    for n in range(depth):
        value = [value] if n % 2 else {"a": value}
    return value


NAMES = (
    "read", "commentary", "functions.bash", "bash<|channel|>commentary", "bash <|channel|>commentary", "", " ",
    "my tool", "my_tool", "my.tool", "my-tool", "a" * 64, "a" * 65, "a" * 89 + "b", "a" * 89 + "c", "工具",
    "Инструмент",
    "\x00bash\x1b[31m", "bash\n", "\ud800", "1st", "-x", "mcp__srv__get.it", "mcp__my-server__get", "tool", "_",
    "functions.bash:0", "bash\u202e", '{"name":"bash"}', "bash()", "a/b\\c",
)  # fmt: skip
IDS = (
    "call_1", "call_1", "call_0", "", " ", "functions.bash:0", "call_abc|fc_def", "tooluse_äöü", "a" * 40, "a" * 41,
    "a" * 64, "a" * 65, "a" * 90 + "b", "a" * 90 + "c", "chatcmpl-tool-0123456789abcdef0123456789abcdef", "call 1",
    "call\n1", "\x00", "\ud800", "abcdefghi", "call_1__thought__c2ln/+==", "調用",
)  # fmt: skip
ARGUMENTS = (
    "", " ", "{}", '{"path": "x"}', '{"path": "x"', "{broken", "[1]", '"x"', "null", "5", "true", "NaN",
    '{"x": NaN}', '{"x": Infinity}', '{"x": -Infinity}', '{"x": 1e999}', '{"x": -1e999}', '{"x": 1e400, "y": [1e308]}',
    "[" * 150_000, '{"a":' * 150_000, "[" * 150_000 + "]" * 150_000, '{"a":' * 150_000 + "1" + "}" * 150_000,
    '{"a":' * 900 + "1" + "}" * 900, '{"a":' * 110 + "1" + "}" * 110, '{"x": ' + "9" * 5_000 + "}",
    '{"x": ' + "9" * 400 + "}", '{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 2}}', '{"a": "\\ud800"}', '{"\\ud800": 1}',
    '{"a": "\ud800"}', '{"a": "\\u0000"}', '{"a": "\x00"}', '{"a": "\n"}', "{'path': 'x'}", '```json\n{"a": 1}\n```',
    '{"a": 1}}', '{"a": 1} trailing', "\ufeff{}", '{"": ""}',
)  # fmt: skip
TEXTS = (
    "", " ", "\n\t ", "\u2003", "\x1c", "hello", "ends with a blank ", "\ud800", "\x00", "a\ud83d\ude00b", "\u2028",
    "</system>", "<|im_end|>", "<think>", "NaN", "\x1b[31m",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, "", "text", " ", "\ud800", "c2lnbmF0dXJl", 5, 0, True, NAN, ENDLESS, 10**400, [], {}, [None], ["text"], [{}],
    [{"type": "text", "text": "\ud800"}], [{"type": "summary_text", "text": "thought"}], {"\ud800": NAN}, nested(200),
    nested(5_000), [[3, []]], [["x", None]], [{"type": "reasoning.text", "text": "t", "signature": "s", "index": 0}],
    "a" * 100, "in_progress", "commentary", "content", "role", "tool_calls", "reasoning", "msg_1", "rs_1",
)  # fmt: skip
NAMES_OF_METADATA = (
    "type", "id", "signature", "data", "encrypted_content", "summary", "content", "status", "phase", "annotations",
    "thought_signature", "field", "open", "close", "reasoning_details", "reasoning_opaque", "blocks", "item", "query",
    "sources", "namespace",
)  # fmt: skip
KINDS = ("thinking", "redacted_thinking", "reasoning")
REAL: tuple[dict[str, Any] | None, ...] = (
    None,
    {},
    {"type": "thinking", "signature": "c2lnbmF0dXJl"},
    {"type": "redacted_thinking", "data": "cmVk"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"},
    {"type": "message", "id": "msg_1", "phase": "commentary", "status": "completed"},
    {"type": "function_call", "id": "fc_1", "status": "completed"},
    {"thought_signature": "c2lnbmF0dXJl"},
    {"field": "content"},
    {"field": "reasoning", "reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0}]},
)
PICTURES = (
    AttachmentPart("a.py", "text/x-python", text="print()"),
    AttachmentPart("\ud800.py", "text/x-python", text="\ud800"),
    AttachmentPart("b.png", "image/png", data=PIXEL_BASE64),
    AttachmentPart("b.png", "image/png", data=""),
    AttachmentPart("b.png", "image/png", data="no base64 \ud800"),
    AttachmentPart("b.tiff", "image/tiff", data="AAAA"),
    AttachmentPart("b.svg", "image/svg+xml", data="AAAA"),
    AttachmentPart("c.pdf", "application/pdf", data="JVBERi0="),
    AttachmentPart("d.bin", "application/octet-stream", data="AAAA"),
    AttachmentPart("e", "", data=None),
)
SCHEMAS: tuple[Any, ...] = (
    {},
    {"type": "object"},
    {"type": "object", "properties": None},
    {"type": "string"},
    {"type": ["object", "null"], "properties": {"a": {"type": "string"}}},
    {"properties": {"a": {}, "b": True, "c": None, "d": 7, "e": []}},
    {"type": "object", "properties": {"a": {"type": "number", "default": NAN, "maximum": ENDLESS}}},
    {"type": "object", "properties": {"a": {"type": "array"}}},
    {"type": "object", "properties": {"a": {"type": ["array", "null"]}, "b": {"type": "any"}, "c": {"type": 5}}},
    {"type": "object", "properties": {"a": {"type": "string", "required": True}}, "required": "a"},
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}},
    {"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}},
    {"type": "object", "properties": {"filter[name]": {"type": "string"}, "$top": {}, "": {}, "\ud800": {}, "é": {}}},
    {"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["b"]}]},
    {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"$ref": "#/$defs/b"}], "$defs": {"b": {"type": "object"}}},
    {"type": "object", "allOf": [{"properties": {"a": {}}, "required": ["a"]}], "enum": [{}], "not": {}},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}},
    {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}, "b": {"$ref": "http://x/y"}, "c": {"$ref": 5}}},
    {"type": "object", "properties": {"a": {"$ref": "#"}}, "$schema": "http://json-schema.org/draft-04/schema#"},
    {"type": "object", "properties": {"a": {"enum": [NAN, {}, nested(300)]}, "b": {"enum": []}, "c": {"enum": 3}}},
    {"type": "object", "properties": {"a": {"pattern": "(", "format": 3, "description": 5, "title": None}}},
    {"type": "object", "properties": nested(10_000)},
    {"type": "object", "properties": {"a": {"default": nested(10_000), "examples": nested(150)}}},
    {"type": "object", "properties": {"a": {"type": "object", "properties": [], "additionalProperties": "no"}}},
    {"type": "object", "required": ["no", 5, None], "properties": {"a": {"const": 10**400, "x-own": {"\ud800": 1}}}},
    [],
    None,
)  # fmt: skip

TEXT = st.one_of(st.sampled_from(TEXTS), st.text(max_size=8))
NAME = st.one_of(st.sampled_from(NAMES), st.text(max_size=8))
ID = st.one_of(st.sampled_from(IDS), st.text(max_size=8))
ARGUMENT = st.one_of(st.sampled_from(ARGUMENTS), st.text(max_size=8))
TREE = st.recursive(st.none() | st.floats() | TEXT, lambda below: st.lists(below) | st.dictionaries(TEXT, below))
VALUE = st.one_of(st.sampled_from(VALUES), TREE)
METADATA = st.one_of(
    st.sampled_from(REAL),
    st.dictionaries(st.sampled_from(NAMES_OF_METADATA), VALUE, max_size=6),
    st.builds(
        lambda real, more: {**(real or {}), **more},
        st.sampled_from(REAL),
        st.dictionaries(st.sampled_from(NAMES_OF_METADATA), VALUE, max_size=2),
    ),
)
ORIGIN = st.sampled_from([OWN, OWN, STRANGER, None])
PICTURE = st.sampled_from(PICTURES)
STATUSES: list[Status] = ["complete", "stopped", "failed"]


@st.composite
def _part(draw: st.DrawFn) -> Part:
    kind = draw(st.sampled_from(["text", "call", "call", "reasoning", "search", "attachment"]))
    if kind == "text":
        return TextPart(draw(TEXT), draw(METADATA))
    if kind == "call":
        return ToolCallPart(draw(ID), draw(NAME), draw(ARGUMENT), draw(METADATA))
    if kind == "reasoning":
        return ReasoningPart(draw(TEXT), draw(METADATA))
    if kind == "search":
        return SearchPart(draw(METADATA))
    return draw(PICTURE)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Messages in any order of roles, with anything in them."""
    messages: list[Message] = []
    asked: list[ToolCallPart] = []
    for n in range(draw(st.integers(0, 7))):
        role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "tool"]))
        if role == "user":
            parts: list[Part] = [TextPart(one) for one in draw(st.lists(TEXT, max_size=2))]
            parts += draw(st.lists(PICTURE, max_size=2))
            if draw(st.integers(0, 5)) == 0:
                parts.insert(0, SummaryPart(draw(TEXT), "rec"))
            messages.append(Message(f"u{n}", "user", parts))
        elif role == "assistant":
            made: list[Part] = draw(st.lists(_part(), max_size=5))
            asked = [part for part in made if isinstance(part, ToolCallPart)]
            status = draw(st.sampled_from(STATUSES))
            messages.append(Message(f"a{n}", "assistant", made, status, origin=draw(ORIGIN)))
        else:
            known = asked if draw(st.integers(0, 5)) else []
            call = draw(st.sampled_from(known)) if known else None
            call_id = call.call_id if call is not None else draw(ID)
            shown: list[Part] = [ToolResultPart(call_id, call.name if call is not None else draw(NAME), draw(TEXT))]
            shown += draw(st.lists(PICTURE, max_size=1))
            messages.append(Message(f"r{n}", "tool", shown if draw(st.integers(0, 9)) else []))
    return messages


@st.composite
def tools(draw: st.DrawFn) -> list[ToolSchema]:
    """Tools of any name, each another's, with any schema."""
    names = draw(st.lists(NAME, max_size=3, unique=True))
    return [ToolSchema(name, draw(TEXT), draw(st.sampled_from(SCHEMAS))) for name in names]


def ask(*parts: Part) -> Message:
    return Message("u", "user", list(parts or (TextPart("go on"),)))


def called(*calls: tuple[str, str, str], origin: Origin | None = OWN, answered: bool = True) -> list[Message]:
    """A question and an answer with calls (id, name, arguments), and their results."""
    made = [ToolCallPart(call_id, name, raw) for call_id, name, raw in calls]
    answer = Message("a", "assistant", [TextPart("I will."), *made], origin=origin)
    results = [
        Message(f"r{n}", "tool", [ToolResultPart(call.call_id, call.name, "done")]) for n, call in enumerate(made)
    ]
    return [ask(), answer, *(results if answered else ()), Message("u9", "user", [TextPart("and?")])]


def talks() -> Iterator[tuple[str, Sequence[Message], list[ToolSchema]]]:
    """Histories with one kind of hostile thing each, and with every one of it."""
    none: list[ToolSchema] = []
    yield "names", called(*((f"call_{n}", name, "{}") for n, name in enumerate(NAMES))), none
    yield "ids of its own", called(*((call_id, "read", "{}") for call_id in IDS)), none
    yield "ids of a stranger", called(*((call_id, "read", "{}") for call_id in IDS), origin=STRANGER), none
    yield "arguments", called(*((f"call_{n}", "read", raw) for n, raw in enumerate(ARGUMENTS))), none
    yield "users", [Message(f"u{n}", "user", [TextPart(text)]) for n, text in enumerate(TEXTS)], none
    spoken: list[Message] = []
    for n, text in enumerate(TEXTS):
        answer = Message(f"a{n}", "assistant", [TextPart(text)], origin=OWN)
        spoken += [ask(), answer]
        yield f"last answer {text!r}", [ask(), answer], none
        result = Message("r", "tool", [ToolResultPart("call_1", "read", text)])
        yield f"result {text!r}", [*called(("call_1", "read", "{}"), answered=False)[:2], result], none
    yield "answers", spoken, none
    yield "pictures", [ask(*PICTURES)], none
    for n, picture in enumerate(PICTURES):
        yield f"picture {n}", [ask(picture)], none
    results = [Message(f"r{n}", "tool", [ToolResultPart(f"c{n}", "read", ""), p]) for n, p in enumerate(PICTURES)]
    yield "pictures of tools", [*called(*((f"c{n}", "read", "{}") for n in range(len(results))))[:2], *results], none
    drawn = Message("a", "assistant", [TextPart("Here."), *PICTURES], origin=OWN)
    yield "pictures of an answer", [ask(), drawn, Message("u2", "user", [TextPart("and?")])], none
    yield "schemas", [ask()], [ToolSchema(f"tool{n}", "Does.", schema) for n, schema in enumerate(SCHEMAS)]
    yield "offered names", [ask()], [ToolSchema(name, "", {"type": "object", "properties": {}}) for name in NAMES]
    yield from _odd_orders()


def _odd_orders() -> Iterator[tuple[str, Sequence[Message], list[ToolSchema]]]:
    none: list[ToolSchema] = []
    thought = ReasoningPart("hm", {"type": "thinking", "signature": "c2ln"})
    item = ReasoningPart("", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"})
    word, blank = TextPart("a"), TextPart(" ")
    ends: list[list[Part]] = [[], [thought], [item], [word, thought], [word, item], [item, item], [thought, blank]]
    for number, parts in enumerate(ends):
        answer = Message("a", "assistant", parts, origin=OWN)
        yield f"answer of parts {number}", [ask(), answer, Message("u2", "user", [TextPart("and?")])], none
        yield f"two answers of parts {number}", [ask(), answer, replace(answer, id="b")], none
    whole = called(("call_1", "read", "{}"))
    yield "nothing", [], none
    yield "begins with an answer", whole[1:], none
    yield "begins with a result", whole[2:], none
    yield "a result alone", [whole[2]], none
    yield "no result", [*whole[:2], whole[3]], none
    yield "a result before its call", [whole[0], whole[2], whole[1], whole[3]], none
    yield "a word between", [*whole[:2], ask(), *whole[2:]], none
    yield "two results", [*whole[:3], whole[2], whole[3]], none
    yield "two answers", [whole[0], whole[1], whole[1], whole[2]], none
    yield "two questions", [whole[0], whole[0], *whole], none


def odd_metadata(name: str) -> list[Message]:
    """Answers with every value at one place of what a provider sent along."""
    messages = [ask()]
    for n, (kind, value) in enumerate(product(KINDS, VALUES)):
        odd = {"type": kind, "signature": "c2ln", "data": "c2ln", "encrypted_content": "E", "id": f"x_{n}", name: value}
        parts: list[Part] = [ReasoningPart("hm", odd), TextPart("yes", odd), ToolCallPart(f"c{n}", "read", "{}", odd)]
        messages += [Message(f"u{n}", "user", [TextPart("go on")]), Message(f"a{n}", "assistant", parts, origin=OWN)]
    return messages
