"""Which images of a conversation go to a model that takes less than they are: the rest is told in a line."""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import replace
from typing import Any

import pytest

from agent_tui.models.messages import AttachmentPart, Message, TextPart, ToolCallPart, ToolResultPart
from agent_tui.models.requests import ModelInfo, ModelSpec, SentMessage
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import DIALECTS, images_of, resolve_target
from agent_tui.providers.dialects.claude import IMAGES as CLAUDE
from agent_tui.providers.dialects.record import OWN_IMAGES, USUAL_IMAGES, ImageLimits
from agent_tui.providers.direct import encode
from agent_tui.providers.images import sendable
from agent_tui.providers.request import build_call
from tests.support.every import every
from tests.support.model_calls import make_request

GROQ = DIALECTS["groq"].images


def png(width: int = 10, height: int = 10, size: int = 60) -> str:
    """Base64 of this many characters whose header says a size in pixels; the rest is never decoded."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", width, height) + b"\0" * 8
    text = base64.b64encode(head + b"\0" * (size * 3 // 4)).decode()
    return text[: size - size % 4] if size > 60 else text


def image(name: str, data: str | None = None, kind: str = "image/png") -> AttachmentPart:
    return AttachmentPart(name, kind, data=data or png())


def said(*parts: AttachmentPart, number: int = 0) -> SentMessage:
    message = Message(f"u{number}", "user", [*parts, TextPart("look")])
    return SentMessage(message, message.id)


def shown(items: list[SentMessage]) -> list[str]:
    """Names of the images that are sent, and the lines that stand for the others."""
    found = [p for item in items for p in item.message.parts if isinstance(p, AttachmentPart)]
    return [p.text if p.text is not None else p.name for p in found]


def test_what_fits_is_sent_as_it_is() -> None:
    items = [said(image("a.png"), image("b.png"))]
    assert sendable(items, CLAUDE) == items


@every(
    ("data", "kind", "limits", "why"),
    [
        (png(size=16_000_000), "image/png", CLAUDE, "12 MB is too large for this model"),
        (png(9_000, 200), "image/png", CLAUDE, "9,000×200 pixels are too many for this model"),
        (png(8_000, 8_000), "image/png", GROQ, "8,000×8,000 pixels are too many for this model"),
        (
            png(),
            "image/webp",
            replace(USUAL_IMAGES, types=frozenset({"image/png"})),
            "image/webp files are not supported by this model",
        ),
    ],
)
def test_one_that_is_too_large_is_told(data: str, kind: str, limits: ImageLimits, why: str) -> None:
    items = [said(image("photo.png", data, kind), image("b.png"))]
    assert shown(sendable(items, limits)) == [f"[image photo.png: {why}; not sent]", "b.png"]
    assert shown(items) == ["photo.png", "b.png"], "what is stored is not changed"
    assert shown(sendable(items, OWN_IMAGES)) == ["photo.png", "b.png"]


def test_of_too_many_the_newest_are_sent() -> None:
    items = [said(*(image(f"{n}.png") for n in range(4)), number=1), said(image("4.png"), image("5.png"), number=2)]
    lines = shown(sendable(items, GROQ))
    assert lines[0].startswith("[image 0.png: this model takes at most 5 images per request")
    assert lines[1:] == ["1.png", "2.png", "3.png", "4.png", "5.png"]


def test_together_they_keep_to_the_request() -> None:
    items = [said(image(f"{n}.png", png(size=1_000_000)), number=n) for n in range(5)]
    lines = shown(sendable(items, GROQ))
    assert [line.endswith(".png") for line in lines] == [False, False, True, True, True]
    assert "together with the newer images" in lines[0]


def test_among_many_only_smaller_ones_are_sent() -> None:
    few = [said(image("large.png", png(4_000, 3_000)), *(image(f"{n}.png") for n in range(19)))]
    assert shown(sendable(few, CLAUDE))[0] == "large.png"
    more = [*few, said(image("last.png"), number=1)]
    assert shown(sendable(more, CLAUDE))[0] == (
        "[image large.png: 4,000×3,000 pixels are too many for this model in a request with more than "
        "20 images; not sent]"
    )


@pytest.mark.slow
def test_a_growing_conversation_seldom_begins_differently() -> None:
    """What a provider has in its cache is only lost when a tenth of the images goes at once."""
    items: list[SentMessage] = []
    before: list[str] = []
    rewritten = 0
    for number in range(300):
        items.append(said(image(f"{number}.png"), number=number))
        now = shown(sendable(items, CLAUDE))
        assert now == shown(sendable(list(items), CLAUDE)), "the same conversation gives the same bytes"
        assert sum(line.endswith(".png") for line in now) <= 100
        rewritten += now[: len(before)] != before
        before = now
    assert rewritten <= 21


CASES = [
    ("anthropic/claude-sonnet-4-6", "chat"),
    ("openai/gpt-5", "responses"),
    ("openai/gpt-4o", "chat"),
    ("gemini/gemini-2.5-pro", "chat"),
    ("groq/llama-4-scout", "chat"),
    ("cohere/command-a-vision", "chat"),
]


@pytest.mark.slow
@every(("model", "api"), CASES)
def test_every_body_says_what_was_left_out(model: str, api: Any) -> None:
    spec = ModelSpec("m", model, api=api)
    target = resolve_target(spec)
    info = ModelInfo(spec, target, Limits(200_000, None, 64_000, "config"), Prices(), False, True)
    size = images_of(target).size or 0
    call = ToolCallPart("c1", "read", '{"path": "b"}')
    messages = [
        Message("u", "user", [image("photo.png", png(size=size + 400)), TextPart("look")]),
        Message("a", "assistant", [TextPart("I read"), call]),
        Message("t", "tool", [ToolResultPart("c1", "read", "read"), image("tool.png", png(size=size + 400))]),
        Message("u2", "user", [TextPart("and now?"), image("small.png")]),
    ]
    request = make_request(spec, messages=messages)
    body = json.dumps(encode(build_call(request, info), replace(spec, api_base="http://x/v1"), "k").body)
    for name in ("photo.png", "tool.png"):
        assert f"[image {name}: " in body
    assert body.count("too large for this model; not sent]") == 2
    assert len(body) < size
    assert png() in body


def test_claude_takes_no_more_where_others_serve_it() -> None:
    limits = images_of(resolve_target(ModelSpec("m", "openrouter/anthropic/claude-sonnet-4.5")))
    assert (limits.many, limits.many_side, limits.side) == (20, 2_000, 8_000)
    assert images_of(resolve_target(ModelSpec("m", "bedrock/anthropic.claude-sonnet-4-5-v1:0"))).count == 20
    assert images_of(resolve_target(ModelSpec("m", "unheard-of/model"))) == USUAL_IMAGES


def test_limits_of_the_records_make_sense() -> None:
    for name, dialect in DIALECTS.items():
        limits = dialect.images
        assert {"image/png", "image/jpeg"} <= limits.types, f"{name}: what is scaled is stored as one of these"
        assert limits.size is None or limits.size >= 1_000_000
        assert limits.size is None or limits.total is None or limits.size <= limits.total, name
        assert (limits.many is None) == (limits.many_side is None), name
