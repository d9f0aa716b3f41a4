"""A conversation of very many turns, in the chat as it is shipped, and what the program holds meanwhile.

Each turn is four messages: a question, a call of a tool, its result, an answer in Markdown. The window is small, so
that it compacts again and again.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.models.events import CompactionEnded, Event, TurnEnded
from agent_tui.models.steps import FixedPart
from agent_tui.options import Options
from agent_tui.ui.transcript import Transcript
from tests.support.real_app import Chat, Home
from tests.support.waiting import PATIENCE

WINDOW = 24_000

ANSWER = """## Answer {turn}

Line {turn} of the file says what **part {turn}** does, with `code_{turn}` in it and a [link](https://example.org/{turn})
that goes on for a while, so that it wraps at the edge of the screen, which is usual.

- item one of {turn}
- item two of {turn}

```python
def part_{turn}(x: int) -> int:
    return x + {turn}
```
"""


@dataclass(slots=True)
class Held:
    """What the program holds after so many turns. ``memory`` is the process's resident memory in bytes; ``things`` are
    numbers of what must not grow with the conversation."""

    turns: int
    messages: int
    compactions: int
    memory: int
    things: dict[str, int] = field(default_factory=dict)


def script(turns: int, window: int) -> str:
    """What the demo model does: in each turn it reads a line of a file, then answers."""
    lines = [f"window = {window}", f"max_output = {window // 12}"]
    for turn in range(turns):
        arguments = json.dumps({"path": "parts.txt", "offset": turn % 500 + 1, "limit": 20})
        match = json.dumps(f"Question {turn}:")
        lines += ["[[step]]", f"match = {match}", f"reasoning = {json.dumps(f'Let me look at line {turn} first.')}"]
        lines += ["[[step.tool_calls]]", 'name = "read"', f"arguments = {json.dumps(arguments)}"]
        lines += ["[[step]]", f"match = {match}", f"text = {json.dumps(ANSWER.format(turn=turn))}", "chunk = 60"]
    return "\n".join(lines) + "\n"


LASTING = {
    "MessagePump._process_messages",
    "Timer._run_timer",
    "App.run_test.<locals>.run_app",
    "WorkerClient._look_after",
}
"""Tasks that last as long as the application, by what they run."""


class Soak:
    """A chat that is asked one question after the other."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._ended = asyncio.Event()
        self.turns = 0
        self.compactions = 0
        self.problems: list[str] = []
        agent = chat.app.chat.holder.agent
        assert agent is not None
        self.agent = agent
        agent.subscribe(self._heard)

    def _heard(self, event: Event) -> None:
        if isinstance(event, TurnEnded):
            if event.stop_reason != "end":
                self.problems.append(f"turn {self.turns}: {event.stop_reason} {event.failure}")
            self._ended.set()
        elif isinstance(event, CompactionEnded) and event.outcome == "done":
            self.compactions += 1

    async def turn(self) -> None:
        """One turn, until it is over and drawn."""
        self._ended.clear()
        self.agent.turns.submit(f"Question {self.turns}: what does part {self.turns} do, and what follows from it?")
        async with asyncio.timeout(PATIENCE):
            await self._ended.wait()
        # What was heard for the tests' own sake is not the program's to hold.
        self._chat.seen.events.clear()
        self._chat.seen.at = 0
        self.turns += 1
        await self._chat.pilot.pause()

    async def held(self) -> Held:
        """What is held now, when nothing is left to do."""
        await self._chat.pilot.pause()
        # Such as a summary that is prepared beside the turns. One that never ends stays, and is counted.
        others = [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__qualname__", "") not in LASTING]
        if others := [task for task in others if task is not asyncio.current_task()]:
            await asyncio.wait(others, timeout=PATIENCE)
        gc.collect()
        transcript = self._chat.app.query_one(Transcript)
        things = {
            "tasks": len(asyncio.all_tasks()),
            # Without the event loop's own pool, which grows to a fixed number when work comes together.
            "threads": sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate()),
            "files": len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0,
            "widgets": sum(1 for _ in self._chat.app.screen.walk_children()),
            "timers": sum(len(widget._timers) for widget in self._chat.app.screen.walk_children()),
            "fixed parts": sum(type(thing) is FixedPart for thing in gc.get_objects()),
            "laid out lines": transcript.document._kept_lines,
        }
        return Held(self.turns, len(self.agent.conversation.path), self.compactions, resident(), things)


def resident() -> int:
    """Bytes of memory of this process that are in use (Linux)."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def grown(before: Counter[str], after: Counter[str], least: int) -> dict[str, int]:
    """Types of which there are so many more objects."""
    return {name: count for name, count in (after - before).most_common() if count >= least}


def kinds() -> Counter[str]:
    """How many objects there are of each type."""
    return Counter(type(thing).__qualname__ for thing in gc.get_objects())


@asynccontextmanager
async def soaking(home: Home, turns: int, window: int = WINDOW) -> AsyncIterator[Soak]:
    """A chat in which so many turns can be made."""
    (home.project / "parts.txt").write_text("".join(f"part {n} of the whole\n" for n in range(600)), "utf-8")
    home.script(script(turns, window))
    async with home.chat(Options(model="demo"), size=(120, 40)) as chat:
        yield Soak(chat)
