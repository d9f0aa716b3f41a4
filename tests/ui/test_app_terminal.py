"""The program in a real terminal: it ends when the terminal does, and with code 0 when the user leaves."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forms import one_of
from tests.support.terminal import ROOT, Terminal, in_terminal
from tests.support.waiting import running

pytest.importorskip("pty", reason="needs a pseudo terminal")


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "state").mkdir()
    with in_terminal(tmp_path, {"AGENT_TUI_HOME": str(tmp_path)}) as terminal:
        yield terminal


def sent(started: Terminal, home: Path, texts: list[str]) -> None:
    """Waits until these messages, and no others, have been sent."""
    history = home / "state" / "history.jsonl"

    def are_there() -> bool:
        lines = history.read_text().splitlines(keepends=True) if history.exists() else []
        return [json.loads(line)["text"] for line in lines if line.endswith("\n")] == texts

    started.wait_until(are_there, history.parent)


@pytest.mark.slow
def test_closing_the_terminal_ends_the_process(started: Terminal) -> None:
    started.wait_for(b"DEMO")
    started.close()
    assert started.wait_for_end() == 0


@pytest.mark.slow
def test_sigterm_ends_it_with_everything_stored(started: Terminal) -> None:
    started.wait_for(b"DEMO")
    started.type(b"unfinished")
    started.wait_for(b"unfinished"[-1:])
    os.kill(started.pid, signal.SIGTERM)
    assert started.wait_for_end() == 0


EVIL = b"\x1b[200~\x1b[m\x03!touch made\r\x1b[201~"
"""Typed as keys it would run a command."""


@pytest.mark.quick
@pytest.mark.parametrize(
    ("typed", "message"),
    one_of([(EVIL + b"?", "!touch made\n?"), (b"one\r!touch made\r?", "one\n!touch made\n?")]),
)
def test_a_paste_is_sent_by_nobody_but_the_user_and_leaving_exits_with_zero(
    started: Terminal, tmp_path: Path, typed: bytes, message: str
) -> None:
    started.wait_for(b"DEMO")
    started.type(b"say: ")
    started.wait_for(b"say:")
    started.type(typed)
    started.wait_for(b"?")
    started.type(b"\r")
    sent(started, tmp_path, [f"say: {message}"])
    assert not (tmp_path / "made").exists()
    started.type(b"\x04")
    assert started.wait_for_end() == 0


@pytest.mark.slow
def test_what_is_typed_before_the_first_frame_is_sent(started: Terminal, tmp_path: Path) -> None:
    started.type(b"/queue\n")
    sent(started, tmp_path, ["/queue"])
    started.type(b"\x04")
    assert started.wait_for_end() == 0
    assert b"rror" not in started.seen


@pytest.mark.slow
def test_a_paste_into_the_first_frame_is_a_paste(tmp_path: Path) -> None:
    with in_terminal(tmp_path, {"AGENT_TUI_HOME": str(tmp_path), "COLORTERM": "truecolor"}, size=(80, 24)) as terminal:
        terminal.wait_for(b"starting", 0)
        terminal.type(EVIL + b"?")
        terminal.wait_for(b"touch made", 0)
        terminal.wait_for(b"DEMO", 0)
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.wait_for_end() == 0
    drafts = json.loads((tmp_path / "state" / "drafts.json").read_text())
    assert list(drafts.values()) == ["!touch made\n?"] and not (tmp_path / "made").exists()


@pytest.mark.slow
@pytest.mark.parametrize("keys", [b"\xe9a", b"\x1b[1114112;1u", b"\x1b[99;1:3u", b"\x1b[48;999999;999999;0;0t"])
def test_no_byte_ends_the_chat(started: Terminal, tmp_path: Path, keys: bytes) -> None:
    started.wait_for(b"DEMO")
    started.type(keys)
    started.listen(0.2)  # it would have ended by then
    started.type(b"\x1b[1089::99;5u/queue")  # Ctrl+C on a Cyrillic keyboard
    started.listen(0.2)
    started.type(b"\r")
    sent(started, tmp_path, ["/queue"])


@pytest.mark.slow
def test_a_terminal_of_16_colours_gets_its_own_on_its_own_background(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with in_terminal(tmp_path, {"AGENT_TUI_HOME": str(tmp_path), "TERM": "xterm-16color", "COLORTERM": ""}) as terminal:
        terminal.wait_for(b"DEMO")
        for line, shown in ((b"hello", b"compaction"), (b"/context", b"of window"), (b"/theme", b"solarized-dark")):
            terminal.type(line + b"\r")
            terminal.wait_for(shown)
            terminal.type(b"\x1b")
            terminal.wait_for(b"DEMO")
        codes = {int(code or 0) for found in SGR.findall(terminal.seen) for code in found.split(b";")}
    assert 94 in codes and 1 in codes, "this draws with colours"
    assert codes <= {*range(10), *range(30, 38), 39, 49, *range(90, 98)}, "no other colours, and no background"


SGR = re.compile(rb"\x1b\[([0-9;]*)m")
MOUSE = (b"\x1b[?1000h", b"\x1b[?1002h", b"\x1b[?1003h", b"\x1b[?1006h", b"\x1b[?1015h", b"\x1b[?1016h")
"""Every way to ask a terminal for its mouse."""


@pytest.mark.slow
@pytest.mark.parametrize("taken", [True, False])
def test_the_mouse_is_left_to_the_terminal_where_the_user_wants_it(tmp_path: Path, taken: bool) -> None:
    environment = {"AGENT_TUI_HOME": str(tmp_path)} | ({} if taken else {"AGENT_TUI_UI__MOUSE": "false"})
    with in_terminal(tmp_path, environment) as terminal:
        terminal.wait_for(b"DEMO")
        terminal.type(b"\x04")
        assert terminal.wait_for_end() == 0
        assert any(sequence in terminal.seen for sequence in MOUSE) is taken


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "environment"),
    [
        (b"\n", {}),
        (b"\\\r", {}),
        (b"\x1b\r", {}),
        (b"\x1b[13;2u", {}),
        (b"\x1b[13;3u", {}),
        (b"\x1b[27;2;13~", {"TMUX": "/tmp/none,1,0"}),
        (b"\x1b[27;3;13~", {"TMUX": "/tmp/none,1,0"}),
    ],
    ids=[
        "ctrl+j",
        "backslash",
        "alt+enter",
        "shift+enter kitty",
        "alt+enter kitty",
        "shift+enter xterm",
        "alt+enter xterm",
    ],
)
def test_every_way_to_write_a_new_line(tmp_path: Path, keys: bytes, environment: dict[str, str]) -> None:
    (tmp_path / "state").mkdir()
    with in_terminal(tmp_path, {"AGENT_TUI_HOME": str(tmp_path), **environment}) as terminal:
        terminal.wait_for(b"DEMO")
        terminal.type(b"one" + keys)
        terminal.listen(0.2)  # else it is a paste
        terminal.type(b"two\r")
        sent(terminal, tmp_path, ["one\ntwo"])
        asks = b"\x1b[>4;1m" in terminal.seen
        assert asks is ("TMUX" in environment), "only those that know the question are asked"


FAILS = """
from textual.drivers.linux_driver import LinuxDriver

def fails(self):
    raise OSError(5, "Input/output error")

LinuxDriver.disable_input = LinuxDriver.stop_application_mode = fails
"""


@pytest.mark.slow
def test_the_process_ends_also_where_leaving_the_screen_fails(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAILS)
    environment = {"AGENT_TUI_HOME": str(tmp_path / "home"), "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with in_terminal(tmp_path, environment) as terminal:
        terminal.wait_for(b"DEMO")
        terminal.type(b"\x04")
        terminal.wait_for_end()


DEAF = """
import importlib.abc, sys

class Breaks(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "agent_tui.logs":
            sys.meta_path.remove(self)
            from agent_tui.terminal_input import TerminalReader

            def fails(self, data):
                if data:
                    raise ValueError("no byte is understood")
                return []

            TerminalReader.feed = fails

sys.meta_path.insert(0, Breaks())
"""


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--plain",)])
def test_a_fault_that_does_not_end_ends_the_program_with_its_code(tmp_path: Path, flags: tuple[str, ...]) -> None:
    (tmp_path / "sitecustomize.py").write_text(DEAF)
    environment = {"AGENT_TUI_HOME": str(tmp_path / "home"), "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with in_terminal(tmp_path, environment, *flags) as terminal:
        before = terminal.modes()
        terminal.wait_for(b"DEMO", 0)
        while running(terminal.pid):
            terminal.type(b"x")
            terminal.listen(0.02)
        assert b"Internal error: ValueError: no byte is understood" in terminal.seen
        assert terminal.wait_for_end() == 1
        assert terminal.modes() == before
