"""``agent-tui doctor`` asks the terminal how it shows pictures, and leaves it as it was."""

from __future__ import annotations

import os
import pty
import sys
import termios
from concurrent.futures import ThreadPoolExecutor

import pytest

from agent_tui.engine import graphics as asking
from agent_tui.engine.graphics import ATTRIBUTES

pytestmark = pytest.mark.quick

ENVIRONMENT = {"TERM": "xterm-kitty"}


def terminal_of_ours(monkeypatch: pytest.MonkeyPatch) -> int:
    """Gives the program a terminal; its other side."""
    ours, theirs = pty.openpty()
    monkeypatch.setattr(sys, "stdin", os.fdopen(os.dup(theirs), "r"))
    monkeypatch.setattr(sys, "stdout", os.fdopen(theirs, "w"))
    return ours


def test_its_answer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of_ours(monkeypatch)
    before = termios.tcgetattr(sys.stdin.fileno())

    def answer() -> None:
        seen = b""
        while not seen.endswith(ATTRIBUTES.encode()):
            seen += os.read(terminal, 1_000)
        os.write(terminal, b"\x1bP>|kitty(0.40)\x1b\\\x1b_Gi=31;OK\x1b\\\x1b[?62;c")

    with ThreadPoolExecutor(1) as beside:
        answered = beside.submit(answer)
        found = asking.ask_terminal("auto", ENVIRONMENT)
        answered.result()
    assert found.way == "inline" and "kitty(0.40)" in found.detail
    assert termios.tcgetattr(sys.stdin.fileno()) == before


def test_one_that_says_nothing_is_waited_for_no_longer_than_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal_of_ours(monkeypatch)
    monkeypatch.setattr(asking, "PATIENCE", 0.0)
    assert asking.ask_terminal("auto", ENVIRONMENT).way == "blocks"


def test_nothing_is_asked_where_the_output_goes_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr(sys, "stdout", os.fdopen(writer, "w"))
    assert asking.ask_terminal("auto", ENVIRONMENT).way == "blocks"
    os.set_blocking(reader, False)
    with pytest.raises(BlockingIOError):
        os.read(reader, 10)


def test_in_the_background_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of_ours(monkeypatch)
    monkeypatch.setattr(os, "tcgetpgrp", lambda descriptor: os.getpgrp() + 1)
    assert asking.ask_terminal("auto", ENVIRONMENT).way == "blocks"
    os.set_blocking(terminal, False)
    with pytest.raises(BlockingIOError):
        os.read(terminal, 10)
