"""What stands on the terminal once the screen is gone: the way back."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from agent_tui.cli import called_as, parse_options
from agent_tui.models.messages import Message, TextPart
from agent_tui.ui.chat.leaving import way_back
from tests.support.cli import environment
from tests.support.fake_agent import FakeAgent
from tests.support.forms import one_of
from tests.support.terminal import in_terminal


@pytest.mark.quick
def test_there_is_a_way_back_where_there_is_something_to_go_back_to(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [Message("u", "user", [TextPart("hello")])])
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
    with in_terminal(tmp_path, environment({"AGENT_TUI_HOME": str(tmp_path / "home")})) as terminal:
        terminal.wait_for(b"DEMO")
        if asked:
            terminal.type(b"hello\r")
            terminal.wait_for(b"Answer")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.wait_for_end() == 0
        after = terminal.seen.rpartition(b"\x1b[?1049l")[2].decode()
    assert (re.search(r"agent-tui --resume ses_\w+", after) is not None) is asked
