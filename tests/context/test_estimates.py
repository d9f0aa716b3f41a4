"""From text, images and files to tokens."""

from __future__ import annotations

import base64
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.tokens import (
    CLEARED_RAW,
    FAMILIES,
    INTERRUPTED_RAW,
    O200K,
    Family,
    attachment_tokens,
    char_tokens,
    cleared_raw,
    estimate_fixed,
    estimate_message,
    family_of,
    family_seen,
    image_tokens,
    message_text_for_count,
    pdf_pages,
    round_up,
)
from agent_tui.models.calibration import text_content
from agent_tui.models.messages import (
    CLEARED_RESULT,
    INTERRUPTED_RESULT,
    AttachmentPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    cleared_text,
    recall_id,
)
from agent_tui.models.requests import ModelInfo, ModelSpec, Target
from agent_tui.models.steps import FixedPart
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import resolve_target, sees
from agent_tui.providers.dialects.conversation import attachment_text
from agent_tui.text.numbers import largest_remainder
from tests.support.every import every
from tests.support.tokens import count_tokens

pytestmark = pytest.mark.quick

PLAIN = Family("plain", O200K, 0, 0, 0, assistant=0, call=0)


def test_the_single_rounding_of_the_document() -> None:
    assert round_up(10 / 4 * 1.2) == 3
    message = Message("m", "user", [TextPart("x" * 10)])
    assert estimate_message(message, Family("p", O200K, 0, 0, 0, char_factor=1.2)).tokens == 3


def test_negative_counts_are_bugs() -> None:
    with pytest.raises(ValueError, match="Invalid token count"):
        round_up(-1)
    with pytest.raises(ValueError, match="Invalid token count"):
        estimate_message(Message("m", "user", [TextPart("x")], raw_tokens=-3), PLAIN)
    with pytest.raises(ValueError, match="Invalid token count"):
        estimate_fixed(FixedPart("system", "s", "s", 4, "f", -1), PLAIN)


def test_the_character_rule() -> None:
    assert char_tokens("abcd") == 1.0
    assert char_tokens("日本") == pytest.approx(2.6)
    assert char_tokens("abcd日") == pytest.approx(2.3)
    llama = family_of(Target("ollama_chat", "chat", "llama3.1:8b", "unknown"))
    code = family_of(Target("x", "chat", "qwen3-coder-480b", "unknown"))
    assert (llama.char_factor, code.char_factor) == (1.1, 0.9)


def test_placeholders_are_counted_right() -> None:
    assert count_tokens(CLEARED_RESULT) == CLEARED_RAW
    assert count_tokens(INTERRUPTED_RESULT) == INTERRUPTED_RAW
    for size in (1, 999, 1_000, 99_999, 1_000_000):
        for name in ("m", "msg_1", "msg_2"):
            assert count_tokens(cleared_text(recall_id(name), "x" * size)) == cleared_raw("x" * size)


def test_what_is_counted_of_a_message() -> None:
    call = ToolCallPart("c", "read", '{"path": "a"}')
    message = Message("m", "assistant", [ReasoningPart("secret"), TextPart("hello"), call])
    assert message_text_for_count(message) == 'hello\nread {"path": "a"}'
    assert message_text_for_count(Message("t", "tool", [ToolResultPart("c", "read", "out")])) == "out"


def test_family_factor_and_overheads() -> None:
    claude = FAMILIES["claude"]
    factor = claude.beginning.tokens(text_content(None, 1_000)) / 1_000
    assert factor == pytest.approx(1.21, abs=0.04), "as it is recorded"
    message = Message("m", "tool", [ToolResultPart("c", "t", "x")], raw_tokens=1_000)
    assert estimate_message(message, claude, True).tokens == round_up(1_000 * factor + 12)
    assert estimate_message(message, claude, False).tokens == round_up(1_000 * factor + 47)
    assert not estimate_message(message, claude).approximate
    message.raw_tokens = None
    assert estimate_message(message, claude).approximate


def test_shares_sum_to_the_message() -> None:
    call = ToolCallPart("c", "read", '{"path": "app.py"}')
    message = Message("m", "assistant", [TextPart("some words"), call], raw_tokens=13)
    made = estimate_message(message, FAMILIES["gpt"])
    assert [k for k, _ in made.shares] == ["assistant", "tool_calls"]
    assert sum(t for _, t in made.shares) == made.tokens == 13 + 4 + 10


def test_families_by_name() -> None:
    def name(model: str, family: str = "unknown", provider: str = "x") -> Family:
        return family_of(Target(provider, "chat", model, family))

    assert name("gpt-5.4-nano", "gpt") == FAMILIES["gpt-5.2"]
    assert name("gpt-5-nano", "gpt") == FAMILIES["gpt"]
    assert name("gemini-2.5-flash", "gemini", "vertex_ai") == FAMILIES["gemini-vertex"]
    assert name("gemini-2.5-flash", "gemini", "gemini") == FAMILIES["gemini"]
    assert name("something-new") == FAMILIES["unknown"]


def png(width: int, height: int) -> str:
    return base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)).decode()


def test_images_by_each_documented_rule() -> None:
    assert image_tokens(1_000, 750, "claude") == 1_000
    assert image_tokens(8_000, 8_000, "claude") == 1_600
    assert image_tokens(384, 384, "gemini") == 258
    assert image_tokens(1_000, 700, "gemini") == 516
    assert image_tokens(1_024, 1_024, "gpt") == 765
    part = AttachmentPart("a.png", "image/png", data=png(1_000, 750))
    assert attachment_tokens(part, "claude") == 1_000
    made = estimate_message(Message("m", "user", [part, TextPart("look")], raw_tokens=1), FAMILIES["claude"])
    assert made.rough and made.tokens == 1_003  # the image, a word, the message
    broken = AttachmentPart("b.png", "image/png", data="!!!")
    assert attachment_tokens(broken, "gpt") == 765


def test_pdf_pages() -> None:
    document = base64.b64encode(b"%PDF /Type /Pages /Type /Page x /Type/Page /Page").decode()
    assert pdf_pages(document) == 2
    assert attachment_tokens(AttachmentPart("a.pdf", "application/pdf", data=document), "gemini") == 516


@every("provider", ["openai", "anthropic", "gemini", "ollama", "cohere"])
@every(("images", "files"), [(None, True), (None, False), (False, True)])
def test_what_is_told_in_a_line_is_counted_as_a_line(provider: str, images: bool | None, files: bool) -> None:
    spec = ModelSpec("m", f"{provider}/m")
    info = ModelInfo(spec, resolve_target(spec), Limits(), Prices(), images=images, files=files)
    document = base64.b64encode(b"%PDF /Type /Page " * 40).decode()
    for name, kind, data in (
        ("a.png", "image/png", png(1_000, 750)),
        ("a.pdf", "application/pdf", document),
        ("a.mp3", "audio/mpeg", document),
    ):
        part = AttachmentPart(name, kind, data=data)
        told = attachment_text(part, sees(info)) is not None
        assert told == (kind.startswith("audio") or images is False or (kind == "application/pdf" and not files)) or (
            provider in ("ollama", "cohere") and kind == "application/pdf"
        )
        made = estimate_message(Message("m", "user", [part]), family_seen(info))
        assert (made.tokens < 40) == told


@given(st.integers(0, 10**7), st.lists(st.floats(0, 1e9), min_size=1, max_size=30))
def test_largest_remainder_sums_exactly(total: int, weights: list[float]) -> None:
    parts = largest_remainder(total, weights)
    assert sum(parts) == total and all(p >= 0 for p in parts)
    whole = sum(weights)
    if whole > 0:
        for part, weight in zip(parts, weights, strict=True):
            assert math.isclose(part, total * weight / whole, abs_tol=1.01, rel_tol=1e-9)
