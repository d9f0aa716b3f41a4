"""Whatever a gateway makes of a stream (how it numbers, names, repeats and leaves out), what is read is the answer,
once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.models.messages import Message, ReasoningPart, TextPart, ToolCallPart
from agent_tui.models.requests import Delta, Finished, Target, UsageReport
from agent_tui.providers.accumulate import Accumulator
from tests.providers.streams import gateways
from tests.providers.streams.gateways import Called, Part, Said, Thought
from tests.support.loopback import sse
from tests.support.recorded import assemble

pytestmark = [pytest.mark.quick, pytest.mark.versions]

NAMES = ("read", "list", "write_file")
WORDS = ("The ", "answer ", "is ", "forty-two", ".\n", "So ", "let me ", "see: ", "é✓ ", "- ", "## ", "1", "0 ")
# Long enough that what comes again is no chance, which nothing could tell from what is said twice.
words = st.lists(st.sampled_from(WORDS), min_size=2, max_size=5).map(lambda more: ("Considering", " this ", *more))
signatures = st.sampled_from([None, "Signature=="])
thoughts = st.builds(Thought, st.lists(words, min_size=1, max_size=2).map(tuple), signatures)
arguments = st.dictionaries(
    st.sampled_from(["path", "query", "n"]), st.sampled_from(["a", '"{"', "{}", "\\", 1, {"n": [1]}]), min_size=1
).map(json.dumps)


@st.composite
def answers(draw: st.DrawFn) -> list[Part]:
    parts: list[Part] = [draw(thoughts)] if draw(st.booleans()) else []
    parts += [Said(draw(words))] if draw(st.booleans()) or not parts else []
    for n in range(draw(st.integers(0, 3))):
        # Equal calls are told apart by nothing but their ids.
        written = draw(arguments)
        same = [part for part in parts if isinstance(part, Called) and part.arguments == written]
        parts += [] if same else [Called(f"call_{n}", draw(st.sampled_from(NAMES)), written)]
    return parts


def _lines(events: list[Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


EVENT_STREAM = "text/event-stream"
APIS: dict[str, tuple[str, str, str, Callable[..., list[Any]], Callable[[Any], bytes]]] = {
    "chat": ("minimax", "chat", EVENT_STREAM, gateways.chat, sse),
    "anthropic": ("anthropic", "chat", EVENT_STREAM, gateways.anthropic, sse),
    "responses": ("openai", "responses", EVENT_STREAM, gateways.responses, sse),
    "gemini": ("gemini", "chat", EVENT_STREAM, gateways.gemini, sse),
    "cohere": ("cohere_chat", "chat", EVENT_STREAM, gateways.cohere, sse),
    "ollama": ("ollama_chat", "chat", "application/x-ndjson", gateways.ollama, _lines),
}
SIGNED = {
    "anthropic": "signature",
    "gemini": "thought_signature",
    "responses": "encrypted_content",
}


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_the_answer_is_read_once_in_every_style(api: str, data: st.DataObject) -> None:
    provider, kind, content_type, render, encode = APIS[api]
    parts = data.draw(answers())

    def pick(name: str, *ways: str) -> str:
        return data.draw(st.sampled_from(ways), name)

    body = encode(render(parts, pick))
    accumulator = Accumulator(Target(provider, kind, "model", "unknown"), 200_000, names=NAMES)
    accumulator.tap.begin(content_type)
    items = []
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4), "cuts"))
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        accumulator.tap.feed(body[start:end])
        items += accumulator.pump()
    items += accumulator.finish()
    read = assemble(items, Message("m", "assistant"))
    assert accumulator.raw_error is None
    assert _plain(read) == _expected(parts, api)
    if api in SIGNED:
        stored = [(p.provider_metadata or {}).get(SIGNED[api]) for p in read.parts if isinstance(p, ReasoningPart)]
        assert stored == [part.signature for part in parts if isinstance(part, Thought)]
    ids = [part.call_id for part in read.parts if isinstance(part, ToolCallPart)]
    assert all(ids) and len(set(ids)) == len(ids)
    closed = {item.index for item in items if isinstance(item, Delta) and item.closed}
    assert closed == set(range(len(read.parts)))
    assert [item.reason for item in items if isinstance(item, Finished)] == ["tool_calls" if ids else "stop"]
    if api != "chat":
        usage = [item.usage for item in items if isinstance(item, UsageReport)][-1]
        assert (usage.input, usage.output, usage.source) == (10, 5, "provider")


def _plain(message: Message) -> list[Any]:
    found: list[Any] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            found.append((part.name, json.loads(part.arguments)))
        elif isinstance(part, (TextPart, ReasoningPart)) and (text := part.text.strip()):
            # Blanks around tags are the tags'.
            found.append((part.type, re.sub(r"\n{2,}", "\n\n", text)))
    return found


def _expected(parts: Sequence[Part], api: str) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        if isinstance(part, Called):
            found.append((part.name, json.loads(part.arguments)))
        elif isinstance(part, Said):
            found.append(("text", "".join(part.pieces).strip()))
        else:
            between = "\n\n" if api == "responses" else ""
            text = between.join(map("".join, part.paragraphs)).strip()
            found.append(("reasoning", re.sub(r"\n{2,}", "\n\n", text)))
    return found
