from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.models.codec import dumps, from_dict, to_dict
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import ModelSpec
from agent_tui.models.steps import CompactionRecord, FixedPart, Step
from agent_tui.models.usage import TokenUsage
from agent_tui.store.export_data import session_row, to_json
from agent_tui.store.store import Store

pytestmark = pytest.mark.quick

HOSTILE = "<script>alert(1)</script> & \x1b]0;title\x07\x1b[31m\x00\ud800\u202e\x9b0m"
SIGNATURE = {"anthropic": {"signature": "c2ln\ud800", "index": 0}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "sessions.db") as opened:
        yield opened


@pytest.fixture
def session_id(store: Store) -> str:
    info = store.sessions.create("/p/<b>", "sonnet")
    info.title = "Title " + HOSTILE
    messages = [
        Message("a", "user", [AttachmentPart("x.png", "image/png", data="aGk="), TextPart("hello " + HOSTILE)]),
        Message(
            "b",
            "assistant",
            [
                ReasoningPart("thinking " + HOSTILE, SIGNATURE, "prefix"),
                ReasoningPart("", {"redacted": "data"}),
                TextPart("# answer"),
                ToolCallPart("c1", "read", '{"path": "```"}', {"thought": "x"}),
            ],
            parent_id="a",
            step_id="s1",
        ),
        Message("c", "tool", [ToolResultPart("c1", "read", "out\n````\nput " + HOSTILE, True)], parent_id="b"),
        Message("d", "assistant", [TextPart("left behind")], "stopped", "c"),
    ]
    for message in messages:
        store.messages.add(info.id, message)
    usage = TokenUsage(1000, 50, 20, 900, None)
    step = Step("s1", "turn", "sonnet", "anthropic", "messages", "claude-sonnet-4-6", "b", "complete", usage=usage)
    step.estimated_input, step.actual_input, step.fixed = 990, 1000, (FixedPart("system", "", "base", 4, "f", 1),)
    store.steps.add(info.id, step)
    store.steps.add(info.id, Step("s2", "turn", "sonnet", "anthropic", "messages", "claude-sonnet-4-6"))
    record = CompactionRecord("r1", "o1", "summary", ["a"], summary_id="sum", files=["app.py"])
    store.compactions.commit(info.id, [record], Message("sum", "user", [SummaryPart("Goal", "r1")]), None)
    info.head_id = "c"
    store.sessions.save(info)
    return info.id


def test_the_export_is_complete(store: Store, session_id: str) -> None:
    export = json.loads(to_json(store.export(session_id)))
    assert export["session"]["id"] == session_id
    messages = {**store.messages.all(session_id), **store.messages.summaries(session_id)}
    told = {m["id"]: m for m in export["messages"]}
    assert {key: from_dict(Message, m) for key, m in told.items()} == messages
    assert [key for key, m in told.items() if m["on_path"]] == ["a", "b", "c"]
    assert [key for key, m in told.items() if not m["in_tree"]] == ["sum"]
    assert told["b"]["parts"][0]["provider_metadata"] == SIGNATURE
    assert {p["type"] for m in told.values() for p in m["parts"]} == {
        "text",
        "reasoning",
        "tool_call",
        "tool_result",
        "attachment",
        "summary",
    }
    assert [from_dict(CompactionRecord, r) for r in export["compactions"]] == store.compactions.all(session_id)


def test_steps_use_the_words_of_the_fixed_interface(store: Store, session_id: str) -> None:
    first, second = store.export(session_id)["steps"]
    assert first["usage"] == {
        "input_tokens": 1000,
        "output_tokens": 50,
        "reasoning_tokens": 20,
        "cache_read_tokens": 900,
        "cache_write_tokens": None,
        "source": "provider",
        "reasoning_source": "provider",
        "output_source": "provider",
        "context": True,
        "cache_write_1h_tokens": None,
        "web_searches": None,
        "service_tier": None,
        "cache_told": None,
        "raw": None,
    }
    assert first["believed"] is None
    assert (first["kind"], first["model"], first["message_id"]) == ("turn", "claude-sonnet-4-6", "b")
    assert (first["estimated_input_tokens"], first["actual_input_tokens"]) == (990, 1000)
    assert first["fixed"] == [to_dict(part) for part in store.steps.all(session_id)[0].fixed]
    assert (second["usage"], second["estimated_input_tokens"], second["message_id"]) == (None, None, None)


def test_a_session_row_has_the_fields_scripts_read(store: Store, session_id: str) -> None:
    (info,) = store.sessions.all()
    row = session_row(info)
    assert list(row) == ["id", "title", "project", "model", "created", "updated", "messages"]
    assert (row["id"], row["project"], row["model"], row["messages"]) == (session_id, "/p/<b>", "sonnet", 3)


def test_a_key_is_never_written() -> None:
    assert "sk-secret" not in dumps(ModelSpec("sonnet", "anthropic/claude-sonnet-4-6", api_key="sk-secret"))
