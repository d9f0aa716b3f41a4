"""The file that hooks find the conversation in."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from agent_tui.engine.transcript import NAME, HookTranscript
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.providers.secrets import Redactor

pytestmark = pytest.mark.quick

KEY = "sk-proj-zQ8xKpLm2vTbYw4RsN7d"
TALK = [
    Message("m1", "user", [TextPart("Write it"), AttachmentPart("a.py", "text/x-python", text="x = 1")], created=1.5),
    Message(
        "m2",
        "assistant",
        [
            ReasoningPart("Hm"),
            TextPart("So."),
            ToolCallPart("c1", "write", '{"path": "a.txt", "content": "one"}'),
            ToolCallPart("c2", "mcp_call", '{"name": "mcp__docs__add", "arguments": {"a": 1}}'),
            ToolCallPart("c3", "bash", "{"),
        ],
        parent_id="m1",
    ),
    Message("m3", "tool", [ToolResultPart("c1", "write", f"the key is {KEY}")], parent_id="m2"),
    Message("m4", "assistant", [TextPart("Done \ud800.")], parent_id="m3"),
]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_conversation_is_told_as_claude_code_tells_it(tmp_path: Path) -> None:
    path = HookTranscript().update(tmp_path / "s", "ses_1", Path("/work"), TALK, Redactor())
    first, second, third, fourth = lines(path)
    assert (first["type"], first["uuid"], first["parentUuid"], first["sessionId"]) == ("user", "m1", None, "ses_1")
    assert first["timestamp"] == "1970-01-01T00:00:01.500Z" and first["cwd"] == "/work"
    assert [block["text"] for block in first["message"]["content"]] == ["Write it", "x = 1"]
    assert second["parentUuid"] == "m1" and second["message"]["role"] == "assistant"
    assert [block["type"] for block in second["message"]["content"]] == ["thinking", "text", *["tool_use"] * 3]
    assert [(b["name"], b["input"]) for b in second["message"]["content"][2:]] == [
        ("Write", {"file_path": "/work/a.txt", "content": "one"}),
        ("mcp__docs__add", {"a": 1}),
        ("Bash", {"arguments": "{"}),
    ]
    (result,) = third["message"]["content"]
    assert (third["type"], result["tool_use_id"], result["is_error"]) == ("user", "c1", False)
    assert KEY not in path.read_text() and "the key is [secret]" in result["content"]
    assert fourth["message"]["content"][0]["text"].startswith("Done ")


def test_what_is_new_is_added_and_nothing_is_told_twice(tmp_path: Path) -> None:
    transcript = HookTranscript()

    def update(*ids: str) -> Path:
        told = [message for message in TALK if message.id in ids]
        return transcript.update(tmp_path / "s", "ses_1", tmp_path, told, Redactor())

    path = update("m1")
    inode, begun = path.stat().st_ino, path.read_bytes()
    assert update("m1", "m2") == path and path.stat().st_ino == inode and path.read_bytes().startswith(begun)
    stamp = path.stat().st_mtime_ns
    update("m1", "m2")
    assert path.stat().st_mtime_ns == stamp
    update("m1", "m4")  # after a rewind: the branch that was left stays
    assert [line["uuid"] for line in lines(path)] == ["m1", "m2", "m4"]
    path.unlink()
    update("m1", "m2")  # somebody removed it
    assert [line["uuid"] for line in lines(path)] == ["m1", "m2"]
    other = transcript.update(tmp_path / "t", "ses_2", tmp_path, [], Redactor())
    assert other != path and lines(other) == [], "a session without a message has an empty one"


def test_nobody_else_reads_it_and_no_link_is_followed(tmp_path: Path) -> None:
    path = HookTranscript().update(tmp_path / "s", "ses_1", tmp_path, TALK, Redactor())
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / NAME).symlink_to(path)
    before = path.read_bytes()
    with pytest.raises(OSError):
        HookTranscript().update(tmp_path / "t", "ses_2", tmp_path, [], Redactor())
    assert path.read_bytes() == before
