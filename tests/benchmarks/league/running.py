"""One agent's way through the conversation, and what came of it."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.league import conversation
from tests.benchmarks.league.conversation import (
    COMPACTED,
    FACTS,
    FILES,
    FIRST_WORD,
    OWN_COMMAND,
    READS,
    RESTARTED,
    SHORT,
    STOPPED,
    USERS_COMMAND,
)
from tests.benchmarks.league.driving import Hung, Pane, Server, say
from tests.benchmarks.league.rivals import Place, Rival, Shown

START_SECONDS, TURN_SECONDS, ASK_SECONDS = 60.0, 90.0, 20.0
PAUSE = 0.4
"""Seconds between a text and Enter: many agents take what comes at once for a paste."""


@dataclass(slots=True)
class Row:
    """What an agent said before a request, and what the server counted in it."""

    scene: str
    true: int
    shown: int | None = None
    percent: float | None = None
    low: int | None = None
    high: int | None = None
    said: str = ""
    why: str = ""


@dataclass(slots=True)
class Result:
    """Everything measured of one agent. ``missing``: why something was not, by its name; ``date``: of the numbers,
    ``timed``: of the times."""

    name: str
    date: str = ""
    timed: str = ""
    rows: list[Row] = field(default_factory=list)
    asking: int | None = None
    asked_requests: int | None = None
    headless: int | None = None
    side_tokens: int = 0
    kept: dict[str, list[str]] = field(default_factory=dict)
    summary_input: int | None = None
    summary_cached: float | None = None
    times: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def surroundings(rival: Rival, place: Place) -> dict[str, str]:
    """All of an agent's environment: nothing of this one."""
    return {
        "HOME": str(place.home),
        "PATH": f"{place.node}:/usr/local/bin:/usr/bin:/bin",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        **rival.environment(place),
    }


def read_result(data: dict[str, Any]) -> Result:
    """A result as ``dataclasses.asdict`` wrote it."""
    return Result(**{**data, "rows": [Row(**row) for row in data["rows"]]})


class Talk:
    """The agent in its terminal and the server that it talks to."""

    def __init__(self, rival: Rival, place: Place, server: Server, result: Result) -> None:
        self.rival, self.place, self.server, self.result = rival, place, server, result
        self.pane = Pane(rival.name)
        self.first = len(server.seen())

    def start(self, *more: str) -> None:
        self.pane.start(
            [*self.rival.command(self.place), *more], surroundings(self.rival, self.place), self.place.project
        )
        self.pane.wait(self.rival.ready, START_SECONDS, "its prompt")
        self.pane.settle(1.5, 10)

    def stop(self) -> None:
        self.pane.press(*self.rival.leave)
        try:
            self.pane.wait(r"\[ended with", 8)
        except Hung:
            say(f"{self.rival.title}: did not end by its keys and was ended")
        self.pane.close()

    def enter(self, text: str) -> None:
        (self.pane.paste if "\n" in text else self.pane.type)(text)
        end = re.escape(text[-8:])
        with suppress(Hung):  # what was typed may be folded into a line of its own
            self.pane.wait(end, 5)
        time.sleep(PAUSE)
        self.pane.press("Enter")

    def _quiet(self, since: int, calm: float = 4.0, longest: float = 60.0) -> None:
        """Waits until no request came for a while."""
        end, number, at = time.monotonic() + longest, since, time.monotonic()
        while time.monotonic() < end and time.monotonic() - at < calm:
            time.sleep(0.2)
            if (now := len(self.server.seen())) != number:
                number, at = now, time.monotonic()

    def _requested(self, wanted: Callable[[dict[str, Any]], bool], since: int, what: str) -> dict[str, Any]:
        """The request that follows on Enter, which is pressed once more where none comes: a slow agent took it for a
        part of what was typed, or saw it while it was busy. Raises Hung."""
        try:
            return self.server.wait(wanted, since, TURN_SECONDS / 4, what)
        except Hung:
            self.pane.press("Enter")
            return self.server.wait(wanted, since, TURN_SECONDS, what)

    def turn(self, part: str) -> int:
        """Says a part's message and waits until it is answered; the tokens that the server counted in its first
        request beside the message itself, of which no agent can know before."""
        since = len(self.server.seen())
        self.enter(conversation.message(part))

        def comes(step: int) -> Callable[[dict[str, Any]], bool]:
            return lambda one: one["kind"] == "turn" and one["part"] == part and one["step"] >= step

        first = self._requested(comes(0), since, f"the request for {part}")
        results = len(conversation.acts(part))
        self.server.wait(comes(results), since, TURN_SECONDS, f"the request for {part} after {results} tool results")
        self.pane.settle(1.2, 8)
        return int(first["input"] - first["own"])

    def ask(self) -> Shown | None:
        """What the agent says of its context now."""
        if self.rival.ask:
            self.enter(self.rival.ask)
        end = time.monotonic() + ASK_SECONDS
        shown = None
        while shown is None and time.monotonic() < end:
            screen = self.pane.settle(1.0, 6)
            if self.rival.ask:  # an earlier answer may still stand above the newest message
                screen = screen[max((mark.end() for mark in conversation.MARK.finditer(screen)), default=0) :]
            shown = self.rival.read(screen)
        if self.rival.close:
            self.pane.press(*self.rival.close)
            time.sleep(PAUSE)
        return shown

    def headless(self) -> int:
        """By how much the conversation grows by a turn after a process of its own was asked about it."""
        before = self.turn("again-3")
        self.stop()
        command = [*self.rival.command(self.place), *self.rival.headless]
        around = surroundings(self.rival, self.place)
        subprocess.run(
            command, env=around, cwd=self.place.project, capture_output=True, check=True, timeout=TURN_SECONDS
        )
        self.start(*self.rival.again)
        return self.turn("again-4") - before

    def measure(self, scene: str, part: str) -> int:
        """A row: asks, says the part, compares."""
        shown = self.ask()
        row = Row(scene, self.turn(part))
        if shown is None:
            row.why = "the agent says no number"
        else:
            row.shown, row.percent, row.low, row.high = shown.tokens, shown.percent, shown.low, shown.high
            row.said = shown.text
        self.result.rows.append(row)
        return row.true

    def own_command(self) -> None:
        """The user runs a command whose output becomes part of the conversation, with no request."""
        self.pane.type(USERS_COMMAND[0])
        time.sleep(PAUSE)
        self.enter(USERS_COMMAND[1:])
        self.pane.settle(2.0, 10)
        if self.rival.shell_left:
            self.pane.press(*self.rival.shell_left)
            time.sleep(1.5)  # Escape and what follows at once are one key to many
        self.measure(OWN_COMMAND, "command-1")

    def stopped(self) -> None:
        """The user stops an answer while it streams: its usage never comes."""
        self.enter(conversation.message("stream-0"))
        self.pane.wait(FIRST_WORD, TURN_SECONDS)
        time.sleep(4.0)
        self.pane.press(*self.rival.stop)
        self.pane.settle(1.5, 8)
        self.pane.press("C-u")  # some put the message back to be written anew
        self.measure(STOPPED, "stopped-1")

    def compact(self) -> list[dict[str, Any]]:
        """Compacts, with a summary that names nothing; returns the requests for it."""
        since = len(self.server.seen())
        self.server.tell(summing=True)
        try:
            self.enter(self.rival.compact)
            self._requested(lambda one: one["kind"] == "summary", since, "the request for a summary")
            self._quiet(since)
            self.pane.settle(2.0, 12)
        finally:
            self.server.tell(summing=False)
        return [one for one in self.server.seen()[since:] if one["kind"] == "summary"]

    def compaction(self) -> None:
        """Compacts and counts what of the facts is still sent after it."""
        largest = max(self.compact(), key=lambda one: one["input"])
        self.result.summary_input = largest["input"]
        self.result.summary_cached = largest["read"] / largest["input"]
        since = len(self.server.seen())
        self.measure(COMPACTED, "after-1")
        found = next(one for one in self.server.seen()[since:] if one["part"] == "after-1" and one["kind"] == "turn")
        kinds = dict.fromkeys(fact.kind for fact in FACTS)
        self.result.kept = {
            kind: [fact.found for fact in FACTS if fact.kind == kind and fact.found in found["facts"]] for kind in kinds
        }


@contextmanager
def step(result: Result, name: str) -> Iterator[None]:
    """A part of the way; what goes wrong in it is noted as not measured, with the reason."""
    try:
        yield
    except (Hung, OSError, ValueError, StopIteration, subprocess.SubprocessError) as error:
        result.missing[name] = str(error)
        say(f"{result.name}: {name}: {error}")


def converse(rival: Rival, place: Place, server: Server) -> Result:
    """Runs the whole conversation."""
    result = Result(rival.name)
    begun = time.monotonic()
    talk = Talk(rival, place, server, result)
    try:
        with step(result, SHORT):
            talk.start()
            talk.turn("talk-1")
            talk.turn("talk-2")
            talk.measure(SHORT, "talk-3")
        if SHORT not in result.missing:
            _longer(talk, result)
    finally:
        talk.pane.close()
    result.side_tokens = sum(one["input"] for one in server.seen()[talk.first :] if one["kind"] == "side")
    result.seconds = time.monotonic() - begun
    return result


def _longer(talk: Talk, result: Result) -> None:
    with step(result, FILES):
        for part in READS:
            talk.turn(part)
        talk.measure(FILES, "files-4")
    with step(result, OWN_COMMAND):
        talk.own_command()
    with step(result, STOPPED):
        talk.stopped()
    restart: int | None = None
    with step(result, RESTARTED):
        talk.stop()
        talk.start(*talk.rival.again)
        before = result.rows[-1].true if result.rows else 0
        restart = talk.measure(RESTARTED, "again-1") - before
    with step(result, "asking"):
        before, quiet = talk.result.rows[-1].true, talk.turn("again-2")
        since = len(talk.server.seen())
        talk.ask()
        result.asked_requests = sum(one["kind"] != "count" for one in talk.server.seen()[since:])
        result.asking = (talk.turn("again-3") - quiet) - (quiet - before)
    if talk.rival.headless and restart is not None:
        with step(result, "asking without a screen"):
            result.headless = talk.headless() + (result.asking or 0) - restart
    with step(result, COMPACTED):
        talk.compaction()
