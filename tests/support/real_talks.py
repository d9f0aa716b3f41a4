"""Our requests, sent to servers that are not ours, and what came of each."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from agent_tui.models.failure import Failure
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    user_message,
)
from agent_tui.models.requests import Failed, ModelRequest, ModelSpec, StreamItem, UsageReport
from agent_tui.models.usage import TokenUsage
from agent_tui.providers import calling
from agent_tui.providers.direct import Connections, encode
from agent_tui.providers.request import build_call
from tests.support import oracle, recorded, wire
from tests.support.pixel import PIXEL_BASE64

WORDS = "Grüße, 世界 \U0001f680 \ud800 \x00 \u2028 <|im_end|>"


def odd_talks(spec: ModelSpec) -> Iterator[tuple[str, list[Message]]]:
    """What a conversation holds on bad days."""
    calls = [wire.call(f"call_{n}", f"{n}.py") for n in range(12)]
    many = [wire.user("u", "all"), wire.answer("a", spec, *calls)]
    yield "many calls", [*many, *(wire.result(f"call_{n}", str(n)) for n in range(12))]
    yield "unanswered calls", [*many, wire.result("call_3", "three"), wire.user("u2", "stop")]
    failed = Message("r", "tool", [ToolResultPart("call_0", "read", "no such file", is_error=True)])
    yield "a failed tool", [wire.user("u", "read"), wire.answer("a", spec, calls[0]), failed]
    yield "nothing found", [wire.user("u", "read"), wire.answer("a", spec, calls[0]), wire.result("call_0", "")]
    broken = ToolCallPart("call 0/ü", "read", '{"path": "a')
    yield (
        "a call that is no JSON",
        [wire.user("u", "read"), wire.answer("a", spec, broken), wire.result("call 0/ü", "it is no JSON")],
    )
    yield "any character", [wire.user("u", WORDS), wire.answer("a", spec, TextPart(WORDS)), wire.user("u2", WORDS)]
    yield "empty texts", [wire.user("u", " "), wire.answer("a", spec, TextPart("")), wire.user("u2", "")]
    cut = wire.answer("a", spec, ReasoningPart("I was about"))
    yield "cut off in thought", [wire.user("u", "think"), cut, wire.user("u2", "go on")]
    picture = AttachmentPart("dot.png", "image/png", data=PIXEL_BASE64)
    yield "pictures alone", [user_message("", attachments=[picture, picture])]
    yield "a file of another kind", [user_message("hear", attachments=[AttachmentPart("a.wav", "audio/wav", data="")])]


def requests(spec: ModelSpec) -> Iterator[tuple[str, ModelRequest]]:
    """A wide set of requests for one model, each with a name."""
    yield from oracle.matrix(spec)
    for name, messages in odd_talks(spec):
        yield name, recorded.request_for(spec, messages, tools=[wire.TOOL])
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    plain = recorded.request_for(spec, [user_message("how many?")], tools=[])
    yield "held to a schema", replace(plain, output_schema={**schema, "additionalProperties": False})


def body_of(request: ModelRequest, images: bool | None = True, reasoning: bool | None = True) -> dict[str, Any]:
    info = replace(recorded.info_for(request.spec, reasoning=reasoning), images=images)
    return encode(build_call(request, info), request.spec, "k").body


@dataclass(frozen=True, slots=True)
class Came:
    """What came of a request: its usage as we read it, and why there was no answer."""

    usage: TokenUsage | None
    failure: Failure | None
    items: list[StreamItem]


async def send(
    request: ModelRequest, connections: Connections, *, images: bool | None = False, reasoning: bool | None = True
) -> Came:
    """Sends a request as the product does, by no way but the direct one."""

    items: list[StreamItem] = []
    info = replace(recorded.info_for(request.spec, reasoning=reasoning), images=images)
    await calling.run(request, info, items.append, connections)
    last = items[-1]
    usage = [item.usage for item in items if isinstance(item, UsageReport)]
    return Came(usage[-1] if usage else None, last.failure if isinstance(last, Failed) else None, items)


def asked(url: str, body: dict[str, Any], key: str = "") -> Any:
    """The JSON that a server answers."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    with urllib.request.urlopen(urllib.request.Request(url, content, headers), timeout=60) as response:
        return json.load(response)


def counted(url: str, body: dict[str, Any], key: str = "") -> int:
    """Tokens of a chat request by llama.cpp's own count: its template, then its tokenizer."""
    prompt = asked(f"{url}/apply-template", {k: body[k] for k in ("messages", "tools") if k in body}, key)["prompt"]
    tokens = asked(f"{url}/tokenize", {"content": prompt, "add_special": True, "parse_special": True}, key)
    return len(tokens["tokens"])
