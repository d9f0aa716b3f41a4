"""The program in a real terminal: it ends when the terminal does, and with code 0 when the user leaves."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="needs a pseudo terminal")

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30.0


@dataclass
class Started:
    pid: int
    terminal: int
    home: Path
    code: int | None = None
    seen: bytes = b""

    def sent(self, texts: list[str]) -> None:
        """Reads on until these messages, and no others, have been sent."""
        end, history = time.monotonic() + PATIENCE, self.home / "state" / "history.jsonl"
        found: list[str] = []
        while found != texts:
            assert time.monotonic() < end, (found, self.seen[-2000:])
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.seen += os.read(self.terminal, 1 << 16)
            if history.exists():
                found = [json.loads(line)["text"] for line in history.read_text().splitlines()]

    def wait_for(self, text: bytes) -> None:
        """Reads what the program writes until ``text`` was in it."""
        seen, end = b"", time.monotonic() + PATIENCE
        while text not in seen:
            assert time.monotonic() < end, seen[-500:]
            if select.select([self.terminal], [], [], 1.0)[0]:
                seen += os.read(self.terminal, 1 << 16)
        self.seen += seen

    def wait_for_end(self) -> int:
        """The exit status, once the process is gone."""
        end = time.monotonic() + PATIENCE
        while self.code is None:
            assert time.monotonic() < end, "the process is still there"
            try:
                if select.select([self.terminal], [], [], 0.05)[0]:
                    os.read(self.terminal, 1 << 16)
            except (OSError, ValueError):
                time.sleep(0)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    pid, terminal = pty.fork()
    if pid == 0:
        home = {"AGENT_TUI_HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
        os.chdir(tmp_path)
        os.execve(sys.executable, [sys.executable, "-m", "agent_tui", "-m", "demo"], {**os.environ, **home})
    run = Started(pid, terminal, tmp_path)
    yield run
    if run.code is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_leaving_exits_with_zero(started: Started) -> None:
    started.wait_for(b"DEMO")
    os.write(started.terminal, b"\x04")
    assert started.wait_for_end() == 0
    os.close(started.terminal)


def test_closing_the_terminal_ends_the_process(started: Started) -> None:
    started.wait_for(b"DEMO")
    os.close(started.terminal)
    assert started.wait_for_end() == 0


def test_sigterm_ends_it_with_everything_stored(started: Started) -> None:
    started.wait_for(b"DEMO")
    os.write(started.terminal, b"unfinished")
    started.wait_for(b"unfinished"[-1:])
    os.kill(started.pid, signal.SIGTERM)
    assert started.wait_for_end() == 0
    os.close(started.terminal)


def test_a_burst_of_lines_is_sent_line_by_line(started: Started) -> None:
    started.wait_for(b"DEMO")
    os.write(started.terminal, b"/usage\rplain hello\r/model demo\rhello again?\r")
    started.sent(["/usage", "plain hello", "/model demo", "hello again?"])
    os.write(started.terminal, b"\x04")
    assert started.wait_for_end() == 0
    assert b"Unknown command" not in started.seen
    os.close(started.terminal)


def test_what_is_typed_before_the_first_frame_is_sent(started: Started) -> None:
    os.write(started.terminal, b"/usage\nearly question\nrest")
    started.sent(["/usage", "early question"])
    started.wait_for(b"DEMO")
    os.write(started.terminal, b"\x7f\x7f\x7f\x7f\x04")
    assert started.wait_for_end() == 0
    assert b"rror" not in started.seen
    os.close(started.terminal)
