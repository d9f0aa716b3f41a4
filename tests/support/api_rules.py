"""What APIs ask of a request's body that their published schemas do not say, or that nobody has a schema of: strict
JSON, names and ids, every call answered at once, who speaks after whom, nothing empty. From the refusals that users of
many programs reported."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Body = Mapping[str, Any]
Rule = Callable[[Body], Iterator[str]]

DEEPEST = 100
"""Levels of nesting that readers of JSON take (protobuf 100, serde_json 128)."""
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
GOOGLE_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
COHERE_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
PLAIN_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
OPENAI_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
FREE_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,40}|[!-~]+__thought__[!-~]+")
"""LiteLLM has Gemini's signature in its ids."""
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def read_strictly(content: bytes) -> Body:
    """A body as the strictest reader takes it. Raises ValueError for anything else."""

    def number(text: str) -> float:
        if not math.isfinite(value := float(text)):
            raise ValueError(f"{text} is no number")
        return value

    def constant(text: str) -> None:
        raise ValueError(f"{text} is no JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(made := dict(pairs)) != len(pairs):
            raise ValueError("a name stands twice")
        return made

    text = content.decode("utf-8")
    body: Body = json.loads(
        text, parse_float=number, parse_int=lambda digits: int(number(digits)), parse_constant=constant,
        object_pairs_hook=unique,
    )  # fmt: skip
    level: list[Any] = [body]
    for _ in range(DEEPEST):
        for value in level:
            for said in (value,) if isinstance(value, str) else value if isinstance(value, dict) else ():
                said.encode()  # half of a pair of surrogates cannot be
        level = [
            one
            for value in level
            if isinstance(value, (dict, list))
            for one in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return body
    raise ValueError("nested too deeply")


def problems(kind: str, content: bytes, ids: re.Pattern[str] = FREE_ID, claude: bool = False) -> list[str]:
    """Why an API of this kind (``chat``, ``responses``, ``anthropic``, …) would refuse a body. ``claude``: it goes to a
    model of Anthropic's."""
    try:
        body = read_strictly(content)
    except (ValueError, RecursionError) as error:
        return [f"no strict JSON: {error!r}"]
    return [one for one in _RULES[kind](body, ids) if claude or not one.startswith(_OF_CLAUDE)]


def _arguments(text: Any) -> Iterator[str]:
    try:
        if not isinstance(text, str):
            yield "arguments are no text"
        elif not isinstance(read_strictly(text.encode()), dict):
            yield f"arguments are no object: {text[:80]}"
    except (ValueError, RecursionError) as error:
        yield f"arguments are no strict JSON: {error!r} {text[:80]!r}"


def _named(names: Sequence[Any], offered: Sequence[Any], form: re.Pattern[str]) -> Iterator[str]:
    for name in (*names, *offered):
        if not isinstance(name, str) or form.fullmatch(name) is None:
            yield f"a tool's name is {name!r}"
    if len(set(offered)) != len(offered):
        yield f"two tools of one name: {offered}"


def _answered(turns: Sequence[tuple[str, Any]], form: re.Pattern[str]) -> Iterator[str]:
    """``turns``: ``("calls", ids)``, ``("result", id)`` and ``("other", None)`` in their order."""
    waiting: list[str] = []
    seen: set[str] = set()
    for what, given in turns:
        if what == "result":
            if given not in waiting:
                yield f"a result without its call: {given!r}"
            else:
                waiting.remove(given)
            continue
        if waiting:
            yield f"calls without results: {waiting}"
        waiting = list(given or ())
        for one in waiting:
            if not isinstance(one, str) or form.fullmatch(one) is None:
                yield f"a call's id is {one!r}"
            if one in seen:
                yield f"a call's id stands twice: {one!r}"
            seen.add(one)
    if waiting:
        yield f"calls without results at the end: {waiting}"


def _chat(body: Body, ids: re.Pattern[str], names: re.Pattern[str] = NAME) -> Iterator[str]:
    messages = body["messages"]
    yield from _calls(body, ids, names, merging=False)
    said = [message for message in messages if message["role"] != "system"]
    if not said or said[0]["role"] != "user":
        yield f"it begins with {said[0]['role'] if said else 'nothing'}"
    for message in messages:
        role, content = message["role"], message.get("content")
        if role not in ("system", "user", "assistant", "tool"):
            yield f"a role is {role!r}"
        if role != "assistant" and not content:
            yield f"nothing in a message of {role}"
        if role == "assistant" and content is None and not message.get("tool_calls"):
            yield "neither content nor calls"
        for block in content if isinstance(content, list) else ():
            kind = block["type"]
            if kind not in ("text", "image_url", "file", "thinking"):
                yield f"a block of type {kind!r}"
            if kind == "text" and not block["text"]:
                yield "an empty block of text"
            if kind in ("image_url", "file") and role != "user":
                yield f"{kind} of {role}"
            if kind == "image_url":
                yield from _picture(*block["image_url"]["url"].removeprefix("data:").split(";base64,"))
        if content == [] or (isinstance(message.get("name"), str) and not message["name"]):
            yield "something is empty"


def _calls(body: Body, ids: re.Pattern[str], names: re.Pattern[str] = NAME, merging: bool = True) -> Iterator[str]:
    """Calls and tools in the chat form; all that can be said of what LiteLLM makes another body of (``merging``:
    neighbouring answers become one)."""
    messages = body["messages"]
    turns: list[tuple[str, Any]] = []
    calls: list[Any] = []
    before = ""
    for message in messages:
        made = message.get("tool_calls")
        if made == []:
            yield "an empty list of calls"
        if message["role"] == "tool":
            turns.append(("result", message["tool_call_id"]))
        elif before == message["role"] == "assistant" and merging:
            turns[-1][1].extend(call["id"] for call in made or ())
        else:
            turns.append(("calls", [call["id"] for call in made or ()]))
        before = message["role"]
        for call in made or ():
            calls.append(call["function"]["name"])
            yield from _arguments(call["function"]["arguments"])
    tools = body.get("tools") or ()
    offered = [tool["function"]["name"] for tool in tools if "function" in tool]
    yield from _named(calls + [m["name"] for m in messages if "name" in m], offered, names)
    yield from _answered(turns, ids)
    for tool in tools:
        if "function" in tool:
            yield from _schema(tool["function"]["parameters"])


def _mistral(body: Body, ids: re.Pattern[str]) -> Iterator[str]:
    yield from _chat(body, SHORT_ID)
    for message in body["messages"]:
        if message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield "an answer with neither content nor calls"
    roles = [message["role"] for message in body["messages"]]
    for pair in pairwise(roles):
        if pair in (("user", "user"), ("tool", "user"), ("assistant", "assistant")):
            yield f"{pair[1]} behind {pair[0]}"


def _ollama(body: Body, ids: re.Pattern[str]) -> Iterator[str]:
    for message in body["messages"]:
        if not isinstance(message["content"], str):
            yield "content is no text"
        if message["role"] not in ("system", "user", "assistant", "tool"):
            yield f"a role is {message['role']!r}"
        for call in message.get("tool_calls") or ():
            if not isinstance(call["function"]["arguments"], dict):
                yield "arguments are no object"
        for picture in message.get("images") or ():
            yield from _picture("image/png", picture)
    said = [message for message in body["messages"] if message["role"] != "system"]
    if not said or said[0]["role"] != "user":
        yield "it does not begin with the user"
    turns = [
        ("result", m["tool_call_id"])
        if m["role"] == "tool"
        else ("calls", [c["id"] for c in m.get("tool_calls") or ()])
        for m in body["messages"]
    ]
    yield from _answered(turns, ids)
    calls = [call["function"]["name"] for m in body["messages"] for call in m.get("tool_calls") or ()]
    results = [m["tool_name"] for m in body["messages"] if "tool_name" in m]
    yield from _named(calls + results, [tool["function"]["name"] for tool in body.get("tools") or ()], NAME)


def _cohere(body: Body, ids: re.Pattern[str]) -> Iterator[str]:
    yield from _chat(body, ids, COHERE_NAME)
    for message in body["messages"]:
        if message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield "an answer with neither content nor calls"


def _responses(body: Body, ids: re.Pattern[str]) -> Iterator[str]:
    items = body["input"]
    turns: list[tuple[str, Any]] = []
    names = [item["name"] for item in items if item.get("type") == "function_call"]
    own = [item["id"] for item in items if item.get("id")]
    if not items or items[0].get("role") != "user":
        yield "it does not begin with the user"
    if len(set(own)) != len(own):
        yield f"duplicate item: {own}"
    yield from (f"an item's id is {one!r}" for one in own if PLAIN_ID.fullmatch(str(one)) is None)
    for item, following in zip(items, [*items[1:], {}], strict=True):
        kind = item.get("type", "message")
        if kind == "function_call":
            yield from _arguments(item["arguments"])
            if turns and turns[-1][0] == "calls":
                turns[-1][1].append(item["call_id"])
            else:
                turns.append(("calls", [item["call_id"]]))
        elif kind == "function_call_output":
            turns.append(("result", item["call_id"]))
            if not item["output"]:
                yield "an empty output"
        elif kind == "reasoning":
            if following.get("type") not in ("reasoning", "message", "function_call", "web_search_call"):
                yield "a reasoning item without its required following item"
        elif not item.get("content") and kind == "message":
            yield "an empty message"
    yield from _answered(turns, PLAIN_ID)
    yield from _named(names, [tool["name"] for tool in body.get("tools") or () if tool["type"] == "function"], NAME)
    for tool in body.get("tools") or ():
        if tool["type"] == "function":
            yield from _schema(tool["parameters"])


def _anthropic(body: Body, ids: re.Pattern[str]) -> Iterator[str]:
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    if not roles or roles[0] != "user":
        yield "first message must use the user role"
    if any(one == other for one, other in pairwise(roles)) or not {*roles} <= {"user", "assistant"}:
        yield f"roles must alternate: {roles}"
    turns: list[tuple[str, Any]] = []
    names: list[str] = []
    for message in messages:
        blocks, role = message["content"], message["role"]
        if not blocks:
            yield "an empty message"
            continue
        kinds = [block["type"] for block in blocks]
        if role == "assistant" and kinds[-1] in ("thinking", "redacted_thinking"):
            yield "The final block in an assistant message cannot be `thinking`"
        if "tool_result" in kinds[kinds.count("tool_result") :]:
            yield "a result behind something else"
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if role == "assistant":
            turns.append(("calls", [block["id"] for block in calls]))
        else:
            turns += [("result", block["tool_use_id"]) for block in blocks if block["type"] == "tool_result"]
        names += [block["name"] for block in calls]
        for block in blocks:
            yield from _claude_block(block, role)
    yield from _answered(turns, PLAIN_ID)
    last = messages[-1]["content"][-1] if messages and messages[-1]["content"] else {}
    if messages and messages[-1]["role"] == "assistant" and last.get("text", "") != last.get("text", "").rstrip():
        yield "final assistant content cannot end with trailing whitespace"
    for block in body.get("system") or ():
        yield from _claude_block(block, "system")
    yield from _named(names, [tool["name"] for tool in body.get("tools") or ()], NAME)
    for tool in body.get("tools") or ():
        if "input_schema" in tool:
            yield from _schema(tool["input_schema"])


def _claude_block(block: Mapping[str, Any], role: str) -> Iterator[str]:
    kind = block["type"]
    allowed = {
        "assistant": ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result"),
        "user": ("text", "image", "document", "tool_result", "compaction"),
        "system": ("text",),
    }
    if kind not in allowed[role]:
        yield f"a block {kind!r} of {role}"
    if kind == "text" and not block["text"].strip():
        yield "text content blocks must contain non-whitespace text"
    if kind == "thinking" and not (isinstance(block["signature"], str) and block["signature"]):
        yield "a thinking block without a signature"
    if kind == "redacted_thinking" and not (isinstance(block["data"], str) and block["data"]):
        yield "a redacted block without data"
    if kind == "tool_use" and not isinstance(block["input"], dict):
        yield "input is no object"
    if kind in ("image", "document"):
        yield from _picture(block["source"]["media_type"], block["source"]["data"])
    if kind == "tool_result":
        for one in block["content"]:
            yield from _claude_block(one, "user")


def _gemini(body: Body, ids: re.Pattern[str]) -> Iterator[str]:
    contents = body["contents"]
    roles = [content["role"] for content in contents]
    if not roles or roles[0] != "user" or not {*roles} <= {"user", "model"}:
        yield f"roles: {roles}"
    names: list[str] = []
    calls: list[str] = []
    for content in contents:
        if not content["parts"]:
            yield "no parts"
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        if answers and len(answers) != len(content["parts"]):
            yield "results beside something else"
        if [answer["name"] for answer in answers] != calls:
            yield f"calls {calls} are answered with {answers}"
        made = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        calls = [call["name"] for call in made]
        names += calls + [answer["name"] for answer in answers]
        for part in content["parts"]:
            signature = part.get("thoughtSignature", "")
            if not isinstance(signature, str) or not signature.isascii() or not signature.isprintable():
                yield f"a signature is {signature!r:.60}"
            if picture := part.get("inlineData"):
                yield from _picture(picture["mimeType"], picture["data"])
        for call in made:
            if not isinstance(call["args"], dict):
                yield "args are no object"
    if calls:
        yield f"calls without results: {calls}"
    declared = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]
    yield from _named(names, [one["name"] for one in declared], GOOGLE_NAME)
    for one in declared:
        if (schema := one.get("parameters") or one.get("parametersJsonSchema")) is not None:
            yield from _schema(schema)


def _picture(media_type: str, data: str) -> Iterator[str]:
    if media_type not in IMAGES and media_type != "application/pdf":
        yield f"a picture of type {media_type!r}"
    if not data:
        yield "a picture without data"
    yield from _base64(data)


def _base64(data: Any) -> Iterator[str]:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError):
        yield f"no base64: {data!r:.60}"


_OF_CLAUDE = "Property keys should match pattern"
_AT_THE_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not", "const", "if"})


def _schema(schema: Any) -> Iterator[str]:
    """OpenAI and Anthropic refuse the whole request over one tool whose schema is none."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(schema["properties"], dict):
        yield f"a tool's schema is no object's: {schema!r:.200}"
        return
    if found := _AT_THE_TOP & schema.keys():
        yield f"a tool's schema has {found} at the top"
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield f"JSON schema is invalid: {error.message[:200]}"
    waiting: list[Any] = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if isinstance(place := one.get("$ref"), str) and not _leads(schema, place):
                yield f"a reference leads nowhere: {place}"
            if one.get("type") == "array" and "items" not in one and "prefixItems" not in one:
                yield "array schema missing items"
            if isinstance(one.get("properties"), dict):
                names = [name for name in one["properties"] if PROPERTY.fullmatch(name) is None]
                yield from (f"{_OF_CLAUDE}: {name!r}" for name in names)
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _leads(schema: Any, place: str) -> bool:
    if not place.startswith("#"):
        return False
    for step in place.removeprefix("#").removeprefix("/").split("/") if place != "#" else ():
        if not isinstance(schema, dict) or step.replace("~1", "/").replace("~0", "~") not in schema:
            return False
        schema = schema[step.replace("~1", "/").replace("~0", "~")]
    return isinstance(schema, dict)


_RULES: Mapping[str, Callable[[Body, re.Pattern[str]], Iterator[str]]] = {
    "calls": _calls,
    "chat": _chat,
    "mistral": _mistral,
    "cohere": _cohere,
    "ollama": _ollama,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
