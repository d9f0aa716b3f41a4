"""The pictures of the README and of docs/, made from the program: ``python -m tests.pictures`` draws them anew.

Each is a scene, drawn as SVG with what stands on it in its description; ``tests/ui/test_doc_pictures.py`` compares that
with the screens of today. ``--png FOLDER`` makes PNG of them as well, to be looked at, where
cairosvg or rsvg-convert is installed."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from agent_tui.context.accounting.spending import session_totals
from agent_tui.models.context import SessionTotals
from agent_tui.models.events import ContextChanged, SessionChanged, TurnEnded
from agent_tui.models.messages import Message, ReasoningPart, TextPart, ToolCallPart, ToolResultPart, user_message
from agent_tui.models.requests import ModelInfo, ModelSpec
from agent_tui.models.session import Branch, FilesMoved
from agent_tui.models.usage import Prices
from agent_tui.ui.app import AgentApp
from tests.support import showcase
from tests.support.app import Clock, shown
from tests.support.fake_agent import FakeAgent
from tests.support.real_app import Chat, make_home
from tests.support.scenes import SCENES, Scene, opening, saying, showcase_app, stage, stop_the_clock, strips_of
from tests.support.scripts import step
from tests.support.svg import Colors, drawing, to_png

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
RENEW = "python -m tests.pictures"
SIZE = (100, 30)
LARGEST = 150_000
"""Bytes of a picture."""


def task() -> list[Message]:
    """A task from the question to the answer, as much of it as one screen holds."""
    thought = ReasoningPart("The test wants a comma, and names come with blanks around them.", seconds=3.0)
    calls = [
        ToolCallPart("c1", "edit", '{"path": "src/greet.py"}'),
        ToolCallPart("c2", "bash", '{"command": "python -m pytest -q"}'),
    ]
    display = {"kind": "diff", "text": showcase.DIFF, "path": "src/greet.py"}
    tested = "....                                     [100%]\n4 passed in 0.12s\n"
    return [
        user_message("Why does the greeting test fail? Please fix it."),
        Message("m1", "assistant", [thought, TextPart("Names come with blanks around them. I strip them."), *calls]),
        Message("t1", "tool", [ToolResultPart("c1", "edit", "Edited.", display=display)]),
        Message("t2", "tool", [ToolResultPart("c2", "bash", tested, seconds=1.4)]),
        Message("m2", "assistant", [TextPart("Fixed: `greet` strips the name and says *Hello*. All four tests pass.")]),
    ]


def said(minutes: int, *texts: str) -> list[Message]:
    """Messages of the user's, so many minutes ago, each with an answer."""
    made = []
    for text in texts:
        made += [user_message(text), Message(f"answer to {text}", "assistant", [TextPart("Done.")])]
    for message in made:
        message.created = showcase.NOW - 60 * minutes
    return made


def add_up(agent: FakeAgent) -> None:
    """Has the session's sums be those of its calls."""
    for call in agent.conversation.steps:
        assert call.usage is not None
        read = call.usage.cache_read or 0
        call.usage = replace(call.usage, cache_write=call.usage.input - read, reasoning=call.usage.output // 4)
    spent = session_totals(agent.conversation.steps, agent.conversation.own_records)
    agent.usage = replace(agent.usage, session=spent)
    agent.publish(ContextChanged(agent.usage))


async def start(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """An empty chat with the demo model, of somebody who is new here."""
    agent.store.listed = []
    agent.usage = replace(agent.usage, window=16_000, limit=14_000, total=1_640, session=SessionTotals())
    agent.publish(ContextChanged(agent.usage))
    await SCENES["start"](app, pilot, agent)


async def context(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """A session with many steps and a compaction behind it."""
    showcase.course(agent)
    there = {message.id for message in agent.conversation.path}
    steps = [f"m{number}" for number in range(26)]
    agent.conversation.path += [Message(id, "assistant", [TextPart("")]) for id in steps if id not in there]
    add_up(agent)
    await opening("context")(app, pilot, agent)


async def permission(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The edit is asked about."""
    message = agent.conversation.path[1]
    agent.conversation.path[1:] = [replace(message, parts=message.parts[:2])]
    agent.publish(SessionChanged(agent.conversation.info, reload=True))
    await pilot.pause()
    await SCENES["permission"](app, pilot, agent)


async def rewind(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """A conversation that forked twice."""
    first = said(50, "Write a parser for the configuration")
    one = said(31, "Use a dictionary", "Report the line of an error")
    two = said(24, "Use a dataclass, without defaults")
    path = [*first, *said(20, "Use a dataclass"), *said(9, "Now the tests"), *said(2, "And the documentation")]
    agent.conversation.path = path
    agent.branches.others = [
        Branch(one[-1].id, first[-1].id, one, 4, 3_100),
        Branch(two[-1].id, first[-1].id, two, 2, 1_240),
    ]
    agent.moving = FilesMoved([agent.root / "src" / "config.py"], [])
    app.open_screen("rewind")
    await pilot.pause()
    await pilot.press("tab")


async def usage(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The same session by turn and by model: its sums are those of its calls."""
    showcase.course(agent)
    showcase.turns(agent)
    asked = ["Fix the greeting", "Why does the test fail?", "Write the changelog", "Read the docs for the old greeting"]
    for message, text in zip(agent.conversation.messages.values(), asked, strict=True):
        message.parts = [TextPart(text)]
    for call in agent.conversation.steps:
        call.model_key = "haiku" if call.model_key == "haiku" else "sonnet"
        call.cost_usd = 0.01 if call.cost_usd is None else call.cost_usd
    add_up(agent)
    await saying("/usage")(app, pilot, agent)


async def models(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The list of models; the one of this machine costs nothing."""
    described = agent.models.describe

    async def describe(key: str) -> ModelInfo:
        info = await described(key)
        own = replace(info, limits=replace(info.limits, window=32_768), prices=Prices(0.0, 0.0, 0.0, 0.0))
        return own if key == "local" else info

    agent.models.describe = describe  # type: ignore[method-assign]
    await SCENES["model"](app, pilot, agent)


async def compaction(chat: Chat) -> None:
    """What a compaction of a short conversation would do."""
    for asked in ("Write the importer as docs/plan.md says. Never push to main.", "Now the tests", "And the changelog"):
        chat.app.prompt.set_text(asked)
        await chat.press("enter")
        await chat.seen.next(TurnEnded)
    chat.app.open_screen("compact", "preview")
    await chat.until(lambda: len(chat.app.screen_stack) > 1)
    await chat.shows("/compact undo")


DONE = """The importer is done, and the changelog has a line for it.

1. `src/importer.py` reads each row, checks it and writes it; all of a file is one transaction.
2. `src/errors.py` names line and column of a row that is wrong. The others are written.
3. `tests/test_importer.py` has 14 cases: quotes, empty columns, other encodings, a file of 200 MB.

What I left as it was:

- the command line, which takes the same flags as before
- the format of dates, as docs/plan.md has it

How it was checked:

- `python -m pytest -q`: 14 passed
- by hand, with the three files in `examples/`

Nothing is pushed: you asked for that.

```
- Import rows from a CSV file; wrong ones name line and column.
```
"""
IMPORTER = "".join(
    step(text) + "chunk = 4000\n"
    for text in (
        "The importer reads each row, checks it and writes it in one transaction. " * 220,
        "A row that is wrong names its line and column; the others are written. " * 220,
        DONE,
    )
)

PICTURES: dict[str, tuple[str, Scene]] = {
    "start": ("The first screen", start),
    "context": ("The context screen: a timeline of the steps, and what the next request is made of", context),
    "chat": ("A question, an edit with its diff, a test run, an answer", SCENES["chat"]),
    "permission": ("A question before an edit, with its diff", permission),
    "rewind": ("The messages and branches of a session", rewind),
    "usage": ("What a session cost", usage),
    "models": ("The choice of a model", models),
}
REAL: dict[str, tuple[str, Callable[[Chat], Awaitable[None]]]] = {
    "compaction": ("The preview of a compaction", compaction),
}
"""Of the real agent with the demo model: numbers differ a little from machine to machine."""
COMPACTED = ("context", "usage")
"""Scenes of a session with a compaction behind it."""
TITLES = {name: title for name, (title, _) in (*PICTURES.items(), *REAL.items())}


async def looked_at(name: str, see: Callable[[AgentApp], str]) -> str:
    """What ``see`` finds on the screen that a picture is of."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as monkeypatch,
    ):
        stop_the_clock(monkeypatch)
        if name in REAL:
            home = make_home(Path(folder), monkeypatch)
            home.configure('[ui]\ntheme = "agent-dark"\n')
            home.script(IMPORTER)
            async with home.chat(size=SIZE) as chat:
                await REAL[name][1](chat)
                return see(chat.app)
        app, agent = showcase_app(Path(folder), Clock(), theme="agent-dark")
        agent.conversation.path[:] = task()
        if name not in COMPACTED:
            agent.conversation.own_records = []
        if name != "start":
            agent.models.spec = ModelSpec("sonnet", "anthropic/claude-sonnet-4-6")
            assert agent.models.info is not None
            agent.models.info = replace(agent.models.info, spec=agent.models.spec)
        async with app.run_test(size=SIZE) as pilot:
            await stage(app, pilot, agent, PICTURES[name][1])
            assert not app.net.errors, app.net.errors
            return see(app)


def words(app: AgentApp) -> str:
    """What stands on the screen, as the description of a picture has it."""
    return "\n".join(line.rstrip() for line in shown(app).split("\n"))


def picture(app: AgentApp, title: str) -> str:
    """The screen as SVG."""
    shown(app)
    return drawing(strips_of(app), Colors(app.ansi_theme), title)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(TITLES), help=", ".join(TITLES))
    parser.add_argument("--png", type=Path, metavar="FOLDER")
    wanted = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name in wanted.names:
        title = TITLES[name]
        svg = asyncio.run(looked_at(name, lambda app, title=title: picture(app, title)))  # type: ignore[misc]
        (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(f"docs/pictures/{name}.svg: {len(svg.encode()):,} bytes")
        if wanted.png:
            wanted.png.mkdir(parents=True, exist_ok=True)
            looked = wanted.png / f"{name}.svg"
            looked.write_text(svg, encoding="utf-8")
            to_png(looked)


if __name__ == "__main__":
    main()
