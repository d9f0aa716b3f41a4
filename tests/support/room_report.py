"""What a run of many tests prints: a line for each room when it is through, and at the end one that says what was not
tried on this machine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import pytest

FEW = 3
"""Rooms; a run of fewer prints a letter for each test, as pytest does."""


def room_of(nodeid: str) -> str:
    """The folder of ``tests`` that a test is in; of those that lie in none, ``the repository``."""
    parts = PurePosixPath(nodeid.partition("::")[0]).parts
    return parts[1] if len(parts) > 2 else "the repository"


@dataclass
class Room:
    """How the tests of a folder went. ``seconds`` are those of its tests added up, whichever ran beside another."""

    tests: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def line(self, name: str) -> str:
        """What is printed of it."""
        counts = "  ".join(
            f"{self.counts[kind]:,} {kind}" for kind in ("passed", "failed", "skipped") if self.counts[kind]
        )
        return f"{name:<16} {counts:<32} {self.seconds:6.1f} s"


class RoomReport:
    """A plugin of pytest, where the results come together."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self._rooms: dict[str, Room] = {}
        self._skipped: Counter[str] = Counter()
        self._begun = time.monotonic()

    @property
    def _shown(self) -> bool:
        return len(self._rooms) >= FEW and self._terminal.verbosity <= 0

    def _expect(self, nodeids: Sequence[str]) -> None:
        for nodeid in nodeids:
            self._rooms.setdefault(room_of(nodeid), Room()).tests.add(nodeid)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Where one process runs the tests."""
        self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        """Where several do; each has found the same."""
        if not self._rooms:
            self._expect(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No letter for a test that passed or was skipped, as its room has a line."""
        if self._shown and report.outcome != "failed" and not hasattr(report, "wasxfail"):
            return (report.outcome if report.when == "call" or report.skipped else "", "", "")
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts it, and prints the line of a room whose last test this was."""
        name = room_of(report.nodeid)
        room = self._rooms.setdefault(name, Room())
        room.seconds += report.duration
        if report.when == "call" or report.outcome != "passed":
            room.counts[report.outcome] += 1
        if report.skipped and isinstance(report.longrepr, tuple):
            self._skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1
        if report.when != "teardown" or report.nodeid in room.ended:
            return
        room.ended.add(report.nodeid)
        if self._shown and len(room.ended) == len(room.tests):
            self._terminal.ensure_newline()
            self._terminal.write_line(room.line(name))

    def pytest_terminal_summary(self) -> None:
        """Says what was not tried."""
        if self._shown and self._skipped:
            reasons = "; ".join(f"{reason} ({count})" for reason, count in self._skipped.most_common())
            self._terminal.write_line(f"Not tried here: {reasons}")
