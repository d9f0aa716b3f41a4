"""What stands on the terminal once the screen is gone: the conversation where that is wanted, and the way back."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from agent_tui.cli import called_as, parse_options
from agent_tui.models.messages import TOLD_MODE, AttachmentPart, Message, TextPart, ToolCallPart, ToolResultPart
from agent_tui.ui.chat.leaving import MOST_LINES, scrollback, way_back
from tests.support.cli import environment
from tests.support.fake_agent import FakeAgent
from tests.support.forms import one_of
from tests.support.terminal import in_terminal

HOSTILE = "a\x1b[2J\x1b]0;title\x07b\x9b31mc\u202ed"


def user(text: str, *more: AttachmentPart) -> Message:
    return Message(f"u{text[:8]}", "user", [*more, TextPart(text)])


def answer(*parts: TextPart | ToolCallPart) -> Message:
    return Message("a", "assistant", list(parts))


@pytest.mark.quick
def test_the_conversation_is_left_as_text_of_the_terminals_width(tmp_path: Path) -> None:
    code = "```python\n    indented = 1\n" + "x" * 45 + "\n```"
    agent = FakeAgent(
        tmp_path,
        [
            user("a question", AttachmentPart(TOLD_MODE, "text/plain", "mode"), AttachmentPart("a.py", "text/plain")),
            answer(TextPart("words " * 12), ToolCallPart("c", "read", '{"limit": 3, "path": "a.py"}')),
            Message("t", "tool", [ToolResultPart("c", "read", "no such file\nat all", is_error=True)]),
            answer(TextPart(code), TextPart("漢" * 25)),
        ],
    )
    lines = scrollback(agent, 40)
    assert "mode" not in "\n".join(lines)
    assert lines[:3] == ["[attached: a.py]", "", "> a question"]
    assert "• read a.py" in lines and "  failed: no such file at all" in lines
    assert "    indented = 1" in lines and "x" * 40 in lines and "x" * 5 in lines
    assert "漢" * 20 in lines and "漢" * 5 in lines
    assert sum(line.count("words") for line in lines) == 12


@pytest.mark.quick
def test_nothing_in_it_acts_and_it_has_an_end(tmp_path: Path) -> None:
    hostile = [
        user(HOSTILE, AttachmentPart(HOSTILE, "text/plain")),
        answer(TextPart(f"```\n{HOSTILE}\n```"), ToolCallPart("c", HOSTILE, f'{{"path": "{HOSTILE}"}}')),
        Message("t", "tool", [ToolResultPart("c", "x", HOSTILE, is_error=True)]),
    ]
    text = "\n".join(scrollback(FakeAgent(tmp_path, hostile), 80))
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text) is None
    many = [user(f"line {number}\n" * 30) for number in range(1_000)]
    lines = scrollback(FakeAgent(tmp_path, many), 80)
    assert len(lines) == MOST_LINES + 1
    assert "export" in lines[0] and lines[-1] == "  line 999"


@pytest.mark.quick
def test_there_is_a_way_back_where_there_is_something_to_go_back_to(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [user("hello")])
    again = called_as(parse_options(["-C", "a b", "-m", "demo"]))
    assert way_back(agent, again) == [
        f"Resume this session with: agent-tui -C 'a b' --resume {agent.conversation.info.id}"
    ]
    agent.conversation.read_only = True
    assert way_back(agent, again) == []
    assert way_back(FakeAgent(tmp_path), again) == []


@pytest.mark.slow
@pytest.mark.parametrize("asked", one_of([False, True]))
def test_whoever_is_ended_is_told_the_way_back_too(tmp_path: Path, asked: bool) -> None:
    pytest.importorskip("pty", reason="needs a pseudo terminal")
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(f"[ui]\nscrollback = {str(asked).lower()}\n")
    with in_terminal(tmp_path, environment({"AGENT_TUI_HOME": str(home)})) as terminal:
        terminal.wait_for(b"DEMO")
        if asked:
            terminal.type(b"hello\r")
            terminal.wait_for(b"Answer")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.wait_for_end() == 0
        after = terminal.seen.rpartition(b"\x1b[?1049l")[2].decode()
    assert ("> hello" in after) is asked
    assert (re.search(r"agent-tui --resume ses_\w+", after) is not None) is asked
