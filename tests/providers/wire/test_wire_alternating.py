"""Chat templates that want the roles to alternate: two user messages in a row, as they follow a compaction, and a user
message after a tool's result, as it follows an interrupted turn."""

from __future__ import annotations

import json

import pytest

from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.support.every import every
from tests.support.wire import answer, body, spec, user

pytestmark = pytest.mark.quick

STRICT = ("mistral/devstral-medium", "openai/mistral-small", "openai/gemma-3-27b-it", "openai/local-model")
LENIENT = ("openai/gpt-4o", "deepseek/deepseek-chat")


def compacted(model: str) -> list[Message]:
    return [
        Message("sum", "user", [SummaryPart("What was before.", "rec")]),
        user("a", "Go on."),
        user("b", "And quickly."),
        answer("c", spec(model), TextPart("Yes.")),
        user("d", "Thanks."),
    ]


@every("model", STRICT)
def test_strict_templates_get_one_message(model: str) -> None:
    sent = body(spec(model), compacted(model))["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user"]
    assert sent[1]["content"] == "What was before.\n\nGo on.\n\nAnd quickly."
    assert sent[3]["content"] == "Thanks."


@pytest.mark.parametrize("model", LENIENT)
def test_others_get_them_as_they_are(model: str) -> None:
    sent = body(spec(model), compacted(model))["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "user", "user", "assistant", "user"]


@every("model", STRICT)
def test_what_was_sent_stays_the_same_bytes(model: str) -> None:
    messages = compacted(model)
    shorter = body(spec(model), messages[:3])["messages"]
    longer = body(spec(model), messages)["messages"]
    assert json.dumps(longer[: len(shorter)]) == json.dumps(shorter)


def test_a_picture_joins_as_a_block() -> None:
    picture = AttachmentPart("a.png", "image/png", data="AAAA")
    messages = [user("a", "Look."), Message("b", "user", [picture, TextPart("Here.")])]
    (_, sent) = body(spec("openai/local-model"), messages)["messages"]
    assert [b["type"] for b in sent["content"]] == ["text", "image_url", "text"]


@every("model", [*STRICT, *LENIENT])
@every("picture", [False, True])
def test_after_a_result_the_model_speaks_before_the_user(model: str, picture: bool) -> None:
    """A turn that was interrupted while tools ran, what the user wanted in before the next step, a picture in a
    result: all of it is a user message after one of a tool."""
    shown = [AttachmentPart("a.png", "image/png", data="AAAA")] if picture else []
    messages = [
        user("a", "Look."),
        answer("b", spec(model), ToolCallPart("c1", "read", "{}")),
        Message("c", "tool", [ToolResultPart("c1", "read", "text"), *shown]),
        user("d", "Stop. Another way."),
    ]
    roles = [m["role"] for m in body(spec(model), messages)["messages"]]
    if model in STRICT:
        assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    else:
        assert roles == ["system", "user", "assistant", "tool", "user", *(["user"] if picture else [])]
