"""What a step is remembered to have sent is what was on the wire: equal digests are equal bytes, in every dialect."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from agent_tui.context.cuts import CLEARED_SUFFIX, cleared_message, clipped_message
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Metadata,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import Effort, ModelRequest, ModelSpec, SentMessage
from agent_tui.providers.catalog import is_direct
from agent_tui.providers.dialects.litellm import arguments
from agent_tui.providers.direct import encode
from agent_tui.providers.pieces import PieceMaker, Pieces
from agent_tui.providers.reasoning import decide
from agent_tui.providers.request import build_call
from tests.providers.direct.test_oracle import MODELS, RESPONSES
from tests.support import recorded, wire
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.pixel import PIXEL_BASE64
from tests.support.recorded import info_for

GATEWAYS = ("bedrock/anthropic.claude-sonnet-4-5", "vertex_ai/gemini-2.5-pro", "together_ai/some")
SPECS = [
    *(wire.spec(name) for name in (*MODELS, *GATEWAYS)),
    *(wire.spec(name, api="responses") for name in RESPONSES),
]
IDS = [f"{spec.model}-{spec.api}" for spec in SPECS]

Change = Callable[[list[Message]], None]


def words(n: int) -> str:
    """A text that tells which message it is of, at both ends."""
    return f"<{n}< some words of a message >{n}>"


def conversation(spec: ModelSpec) -> list[Message]:
    made: Metadata = {"type": "thinking", "signature": "sig", "encrypted_content": "enc", "id": "rs_1"}
    found = [
        wire.user("u0", words(0)),
        wire.answer(
            "a1",
            spec,
            ReasoningPart("hm", made),
            TextPart(words(1)),
            wire.call("call_1", "a"),
            wire.call("call_2", "b"),
        ),
        wire.result("call_1", words(2) + " and more" * 60),
        wire.result("call_2", words(3)),
        wire.answer("a4", spec, TextPart(words(4)), wire.call("call_3", "c")),
        wire.result("call_3", words(5)),
        wire.answer("a6", spec, ReasoningPart("so", {**made, "id": "rs_2"}), TextPart(words(6))),
        wire.user("u7", words(7)),
        wire.answer("a8", spec, TextPart(words(8))),
        wire.user("u9", words(9)),
    ]
    found[3].parts.append(AttachmentPart("dot.png", "image/png", data=PIXEL_BASE64))
    found[7].parts.append(AttachmentPart("b.txt", "text/plain", text="file"))
    return found


def request(spec: ModelSpec, messages: list[Message], effort: Effort = "medium") -> ModelRequest:
    return recorded.request_for(spec, messages, effort=effort, tools=[wire.TOOL])


def pieces(made: ModelRequest, maker: PieceMaker | None = None) -> Pieces:
    info = info_for(made.spec)
    return (maker or PieceMaker()).pieces(made, info, *decide(made, info))


def body(made: ModelRequest) -> dict[str, Any]:
    info = info_for(made.spec)
    call = build_call(made, info)
    if not is_direct(made.spec, info.target):
        return arguments(call, made.spec)[1]
    return encode(call, made.spec, "k").body


def said(made: ModelRequest) -> str:
    """The conversation as it is on the wire, without cache markers."""
    sent = body(made)
    found = next(sent[name] for name in ("messages", "contents", "input") if name in sent)
    return json.dumps(unmarked(found), ensure_ascii=False)


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(v) for v in value] if isinstance(value, list) else value


def same_begin(one: Any, other: Any) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def changes() -> Iterator[tuple[str, Change]]:
    """What may become of a conversation, whether it is seen on the wire or not."""

    def of(n: int, change: Callable[[Message], None]) -> Change:
        return lambda messages: change(messages[n])

    def text(message: Message) -> None:
        for part in message.parts:
            if isinstance(part, (TextPart, ToolResultPart)):
                part.text = part.text.replace("some", "other")

    def hidden(message: Message) -> None:
        message.raw_tokens, message.created, message.note = 77, 5.0, "note"
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                part.display, part.seconds, part.is_error = {"lines": 3}, 2.0, True

    def renamed(message: Message) -> None:
        message.id += "_again"

    def metadata(message: Message) -> None:
        for part in message.parts:
            part.provider_metadata = {**(part.provider_metadata or {}), "signature": "other", "id": "x_9"}

    def thought(message: Message) -> None:
        for part in message.parts:
            if isinstance(part, ReasoningPart):
                part.text += "!"

    def unthought(message: Message) -> None:
        message.parts = [part for part in message.parts if not isinstance(part, ReasoningPart)]

    def elsewhere(message: Message) -> None:
        if message.origin is not None:
            message.origin = replace(message.origin, model="another")

    def arguments(message: Message) -> None:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                part.arguments = part.arguments.replace("path", "paths")

    def attached(message: Message) -> None:
        message.parts.append(AttachmentPart("c.txt", "text/plain", text="more"))

    for n in range(10):
        for change in (text, hidden, renamed, metadata, thought, unthought, elsewhere, arguments, attached):
            yield f"{change.__name__} {n}", of(n, change)
    yield "nothing", lambda messages: None


@pytest.mark.slow
@pytest.mark.parametrize("spec", one_of(SPECS, 6), ids=IDS)
def test_digests_are_the_same_exactly_as_far_as_the_bytes_are(spec: ModelSpec) -> None:
    first = conversation(spec)
    before, known = said(request(spec, first)), pieces(request(spec, first)).digests
    seen = set()
    for name, change in changes():
        messages = copy.deepcopy(first)
        change(messages)
        made = request(spec, messages)
        after, now = said(made), pieces(made).digests
        kept = same_begin(known, now)
        if kept == len(known):
            assert after == before, name
            continue
        seen.add(name.split()[0])
        at = same_begin(before, after)
        assert after != before, name
        begin = before.find(f">{kept - 1}>") if kept else 0
        end = before.find(f"<{kept + 1}<") if kept + 1 < len(known) else len(before)
        # Where pictures of results are shown after them, they stand behind what follows.
        assert begin <= at and (at <= end or "attached" in name), (name, kept, before[at - 40 : at + 40])
    assert {"text", "arguments", "attached"} <= seen and "hidden" not in seen and "renamed" not in seen


@pytest.mark.slow
@every("spec", SPECS)
def test_how_a_message_is_treated_is_in_its_digest(spec: ModelSpec) -> None:
    first = request(spec, conversation(spec))
    known = pieces(first).digests
    result = first.messages[2].message
    cleared = SentMessage(cleared_message(result), result.id + CLEARED_SUFFIX, result)
    clipped = SentMessage(clipped_message(result, 200), f"{result.id}#clip200", result)
    for item in (cleared, clipped):
        made = replace(first, messages=[*first.messages[:2], item, *first.messages[3:]])
        now = pieces(made).digests
        assert [a == b for a, b in zip(known, now, strict=True)] == [n != 2 for n in range(len(known))]
        assert said(made) != said(first)


@pytest.mark.slow
@every("spec", SPECS)
def test_settings_are_the_same_exactly_where_the_rest_of_the_body_is(spec: ModelSpec) -> None:
    plain = [wire.user("u", "hi")]
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    with_extra = replace(spec, extra={**spec.extra, "logit_bias": {"1": 2}, "temperature": 0.5})
    efforts: tuple[Effort, ...] = ("off", "low", "medium", "high")
    requests = [request(spec, plain, effort) for effort in efforts]
    requests.append(replace(requests[2], output_schema=schema, output_due=True))
    requests.append(replace(requests[2], max_output=9_000))
    requests.append(replace(requests[2], spec=with_extra))
    for one in requests:
        for other in requests:
            same = pieces(one).settings == pieces(other).settings
            assert same == (beside(body(one)) == beside(body(other)))


def beside(sent: dict[str, Any]) -> dict[str, Any]:
    """A body without the conversation, and without what only says how long an answer may be and how it is sampled."""
    aside = {"messages", "contents", "input", "max_tokens", "max_output_tokens", "max_completion_tokens", "temperature"}
    found = {k: v for k, v in sent.items() if k not in aside}
    for name in ("generationConfig", "options"):
        inner = {
            k: v for k, v in found.get(name, {}).items() if k not in ("maxOutputTokens", "num_predict", "temperature")
        }
        found[name] = inner
    return found


@every("spec", SPECS)
def test_a_longer_conversation_has_the_pieces_of_a_new_one(spec: ModelSpec) -> None:
    maker, messages = PieceMaker(), conversation(spec)
    whole = request(spec, messages)
    found = pieces(replace(whole, messages=whole.messages[:8]), maker)
    longer = pieces(whole, maker)
    assert longer.digests == pieces(whole).digests and longer.digests[:8] == found.digests


@every("version", ["4-5", "4-6"])
@every("name", ["anthropic/claude-sonnet-", "openrouter/anthropic/claude-sonnet-"])
@every("summary", [False, True])
def test_markers_are_known_where_the_request_has_them(name: str, version: str, summary: bool) -> None:
    spec = wire.spec(name + (version.replace("-", ".") if "openrouter" in name else version))
    messages = conversation(spec)
    # A picture of a result would be shown, and marked, as a message of its own; a file is the last block of its own.
    for message in messages:
        message.parts = [part for part in message.parts if not isinstance(part, AttachmentPart)]
    if summary:
        messages[0] = Message("s", "user", [SummaryPart(words(0), "r")])
    for count in (1, 4, 6, 8, 10):
        made = request(spec, messages[:count])
        sent = body(made)
        system = sent["system"] if "system" in sent else sent["messages"][0]["content"]
        assert "cache_control" in system[-1]
        marked = [b for m in sent["messages"] if m["role"] != "system" for b in m["content"] if "cache_control" in b]
        found = [n for block in marked for n in range(count) if f"<{n}<" in json.dumps(block)]
        assert pieces(made).marks == [0, *(n + 1 for n in found)]


def test_no_credential_is_kept() -> None:
    spec = wire.spec("bedrock/anthropic.claude-sonnet-4-5", extra={**wire.AWS, "aws_secret_access_key": "hush"})
    assert "hush" not in json.dumps(pieces(request(spec, [wire.user("u", "hi")])).settings)
