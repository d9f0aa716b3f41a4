"""A user with fast and careless fingers at a chat in plain mode: keys, pastes and signals at random moments."""

from __future__ import annotations

import json
import os
import random
import re
import select
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from tests.support.scripts import step
from tests.support.terminal import Terminal, in_terminal
from tests.support.waiting import PATIENCE, opened, running

SCRIPT = (
    step("Fine.")
    + '[[step]]\ntext = "One sentence. Another one. And then a third. Done."\ndelay = 0.03\nchunk = 5\n'
    + step("", write={"path": "a.txt", "content": "x"})
    + '[[step]]\ntext = "On and on."\nafter = 4\nhang = true\n'
    + step("", bash={"command": "sleep 30"})
) * 12
MARK = re.compile(r"w\d+w")
ENDINGS = ("leave", "interrupt", "exit", "TERM", "HUP", "QUIT", "close", "worker", "KILL")

CODES = {"KILL": (-signal.SIGKILL,), "interrupt": (0, 130, -signal.SIGINT)}
"""Ctrl+C may come when all is over and the interpreter goes."""


class Storm:
    """One chat from its first key to its end."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._sent: list[str] = []
        self.ending = ENDINGS[seed % len(ENDINGS)]
        self._home = folder / "home"

    def run(self) -> None:
        project = self._folder / "project"
        project.mkdir()
        script = self._folder / "script.toml"
        script.write_text(SCRIPT, "utf-8")
        own = {"AGENT_TUI_HOME": str(self._home), "AGENT_TUI_DEMO_SCRIPT": str(script), "TERM": "dumb"}
        with in_terminal(project, own, "--plain", "--trust") as terminal:
            before = terminal.modes()
            terminal.wait_for(self._random.choice((b"You: ", b"You: ", b"plain mode")))
            for _ in range(self._random.randrange(3, 14)):
                self._act(terminal)
            children = _descendants(terminal.pid)
            code = self._end(terminal)
            assert code in CODES.get(self.ending, (0, 130)), code
            if self.ending not in ("close", "KILL"):
                assert terminal.modes() == before
            _gone(children)
            if self.ending not in ("leave", "interrupt", "exit", "worker"):  # what was not read yet when the end came
                shown = set(MARK.findall(re.sub("[\r\n]", "", terminal.seen.decode())))
                self._sent = [mark for mark in self._sent if mark in shown]
            if b"Enter sends them" in terminal.seen and b"Line cleared" in terminal.seen:
                self._sent = []  # on a busy machine lines come at once, and what is not sent yet can be dropped
        self._look()

    def _wait(self, terminal: Terminal, *choices: float) -> None:
        terminal.listen(self._random.choice(choices))

    def _mark(self) -> str:
        mark = f"w{len(self._sent)}w"
        self._sent.append(mark)
        return mark

    def _send_pasted(self, terminal: Terminal) -> None:
        """Sends what came at once and waits for Enter: Ctrl+C would drop it."""
        self._wait(terminal, 0.2)
        terminal.type(b"\r")
        self._wait(terminal, 0.2)

    def _act(self, terminal: Terminal) -> None:
        pick = self._random.randrange(12)
        if pick < 3:
            terminal.type(f"say {self._mark()}\r".encode())
        elif pick == 3:  # sent before it, so it is sent
            terminal.type(f"{self._mark()}\r\x03".encode())
        elif pick == 4:
            terminal.type(b"pasted\rand more\rof it\r")  # it waits for Enter, and Ctrl+C drops it
        elif pick == 5:
            self._send_pasted(terminal)
            terminal.type(b"dropped\x03")
        elif pick == 6:
            terminal.type(self._random.choice((b"1\r", b"n\r", b"\r", b"/queue\r", b"/context\r")))
        elif pick == 7:
            terminal.type(self._random.choice((b"\x1b[A\x15", b"\x12say\x07", b"/con\t\x15", b"\x1b[D\x1b[C")))
        elif pick == 8:
            terminal.resize(self._random.randrange(20, 120))
        elif pick == 9:
            terminal.type(b"!echo hi\r")
        elif pick == 10:
            terminal.type(b"\x1a\x13\x11")
        else:
            self._send_pasted(terminal)
            terminal.type(b"\x03" + f"{self._mark()}\r".encode())
        if pick < 5 or pick > 10:
            self._wait(terminal, 0.2)  # else what comes next is of the same paste
        self._wait(terminal, 0, 0, 0.001, 0.01, 0.06, 0.3)

    def _end(self, terminal: Terminal) -> int:
        if self.ending in ("leave", "exit"):
            # A question of the program's own, or one that asks for words, may take the command; a paste takes keys.
            while running(terminal.pid):
                self._send_pasted(terminal)
                terminal.type(b"\x15\x04" if self.ending == "leave" else b"/exit\r")
                self._wait(terminal, 0.5)
                terminal.type(b"\x04")
        elif self.ending == "interrupt":
            self._send_pasted(terminal)
            terminal.type(b"\x15")
            while running(terminal.pid):
                terminal.type(b"\x03")
                terminal.listen(0.1)
        elif self.ending == "close":
            terminal.close()
        elif self.ending == "worker":
            for child in _descendants(terminal.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self._wait(terminal, 0, 0.05, 0.3)
            terminal.type(b"\x15\x04")
        else:
            os.kill(terminal.pid, getattr(signal, f"SIG{self.ending}"))
        return terminal.wait_for_end()

    def _look(self) -> None:
        """Whatever was sent is somewhere."""
        kept = ""
        for file in self._home.rglob("sessions.db"):
            with closing(sqlite3.connect(file)) as database:
                for table in ("message", "part", "waiting"):
                    kept += str(database.execute(f"SELECT * FROM {table}").fetchall())
        for file in self._home.rglob("drafts.json"):
            kept += json.dumps(json.loads(file.read_text("utf-8")))
        if self.ending != "KILL":
            lost = sorted(set(self._sent) - set(MARK.findall(kept)))
            assert lost == [], lost


def _descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    found = parents.get(pid, [])
    return found + [each for child in found for each in _descendants(child)]


def _gone(pids: list[int]) -> None:
    for descriptor in opened(pids):
        with closing(os.fdopen(descriptor, "rb", buffering=0)):
            assert select.select([descriptor], [], [], PATIENCE)[0], "a process is left"
