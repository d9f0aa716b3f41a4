"""Every screen there is, on the showcase's conversation: each scene brings the application there from its open chat."""

from __future__ import annotations

import asyncio
import base64
import io
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection
from textual.strip import Strip

from agent_tui.engine.stops import OTHER_MODEL, STOP
from agent_tui.models.events import (
    Event,
    JobsChanged,
    PartDelta,
    PermissionAsked,
    RuleOffer,
    ServerAsked,
    StepStarted,
    StopAsked,
    ToolOutput,
    ToolStarted,
    Way,
)
from agent_tui.models.forms import Choice, FormField
from agent_tui.models.messages import AttachmentPart, Message, TextPart
from agent_tui.models.requests import Delta
from agent_tui.models.steps import CacheMiss, Step
from agent_tui.models.usage import TokenUsage
from agent_tui.ui.app import AgentApp
from agent_tui.ui.flow.paint import key
from agent_tui.ui.screens import context_cache, context_screen, sessions, work
from agent_tui.ui.screens.context_screen import ContextScreen
from tests.support import showcase
from tests.support.fake_agent import FakeAgent
from tests.support.list_scenes import LISTS
from tests.support.state_scenes import STATES

if TYPE_CHECKING:
    from agent_tui.ui.chat.view import Opened

Scene: TypeAlias = "Callable[[AgentApp, Pilot[Any], FakeAgent], Awaitable[None]]"

PATIENCE = 20.0


async def _until(pilot: Pilot[Any], what: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not what():
            await pilot.pause()
            await asyncio.sleep(0)


def strips_of(app: AgentApp) -> list[Strip]:
    """The lines of the screen on top."""
    return app.screen._compositor.render_strips()


def opening(name: Opened, *keys: str, data: str = "") -> Scene:
    """A screen by its name, and keys that are pressed on it."""

    async def scene(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
        app.open_screen(name, data)
        await _until(pilot, lambda: len(app.screen_stack) > 1 and app.screen.query("#rows"))
        await pilot.pause()
        await pilot.press(*keys)

    return scene


async def asks_key(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The question for a key that a model lacks."""
    app.open_screen("key", "openai/gpt-6-sol")
    await _until(pilot, lambda: len(app.screen_stack) > 1 and app.screen.query("#key"))
    await pilot.pause()


def saying(text: str) -> Scene:
    """A slash command whose answer stands in the transcript."""

    async def scene(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
        app.prompt.set_text(text)
        await pilot.press("enter")
        await _until(pilot, lambda: app.prompt.is_empty)

    return scene


async def chat(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The conversation, as it is loaded."""


async def picture(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """What was attached, as large as it is, in coarse blocks."""
    from PIL import Image

    out = io.BytesIO()
    Image.linear_gradient("L").save(out, "PNG")
    part = AttachmentPart("gradient.png", "image/png", data=base64.b64encode(out.getvalue()).decode())
    app.transcript.add_message(Message("msg_picture", "user", [TextPart("What is this?"), part]))
    app.open_screen("picture")
    await _until(pilot, lambda: any("▀" in segment.text for strip in strips_of(app) for segment in strip))


async def chat_opened(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Tool output and reasoning open, from the top."""
    await pilot.press("ctrl+o", "ctrl+t", "ctrl+home")


async def streaming(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """An answer on its way: thought, half a text, a command that runs."""
    agent.turns.busy = True
    agent.publish(StepStarted(calls()[0], Message("live", "assistant", status="streaming")))
    for delta in (
        Delta(0, "reasoning", "The changelog is missing. I look at how the others are written, then add a line."),
        Delta(0, "reasoning", "", closed=True),
        Delta(1, "text", "Now the changelog. The last entries are written in the *present tense*, so\n\n```toml\na = "),
        Delta(2, "tool_call", '{"command": "git log --oneline -5"}', call_id="c7", name="bash"),
    ):
        agent.publish(PartDelta("live", delta))
    agent.publish(ToolStarted("c7", "bash", "git log --oneline -5"))
    agent.publish(ToolOutput("c7", "39e72ba Bring four tests to what is shown now\n77dddd6 Sort the judge's files\n"))


async def selected(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """All of the transcript selected, over prose, code and a diff; and half of what is typed."""
    await pilot.press("ctrl+o", "ctrl+t")
    app.prompt.set_text("typed and half of it selected")
    await pilot.press(*["shift+left"] * 16)
    transcript = app.transcript
    last = key(len(transcript.document.entries), 0, 0)
    app.screen.selections = {transcript: Selection(Offset(0, 0), Offset(1 << 30, last))}


def long_question(lines: int = 60) -> PermissionAsked:
    """A permission for a diff of so many changed lines."""
    changed = "".join(f"-    {n}: 'old word {n}',\n+    {n}: 'new word {n}',\n" for n in range(lines // 2))
    diff = f"--- a/src/words.py\n+++ b/src/words.py\n@@ -1,{lines} +1,{lines} @@\n{changed}"
    display = {"kind": "diff", "text": diff, "path": "src/words.py"}
    return PermissionAsked(
        "req_2", "c8", "edit", "edit src/words.py", display, [RuleOffer(("edit(src/**)",))], "Edits ask here."
    )


def command_question() -> PermissionAsked:
    """A permission for a command that would run outside the sandbox."""
    command = 'git push origin main && for f in *.py; do echo "pushed $f" | tee -a log.txt; done'
    offers = [RuleOffer(("bash(git push *)",)), RuleOffer(("network(github.com)",), "session")]
    reason = "git push sends commits to github.com · runs outside the sandbox, with your rights"
    return PermissionAsked("p2", "c2", "bash", command, {"kind": "command", "text": command}, offers, reason)


def stopped(question: str, *ways: Way) -> Scene:
    """The question after a turn that stopped."""
    return publishing(StopAsked("ask_1", question, (*ways, OTHER_MODEL, STOP)))


def publishing(event: Event) -> Scene:
    async def scene(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
        agent.publish(event)

    return scene


_TRIP = (
    FormField("city", "City", "text", "Where the train goes.", required=True),
    FormField("days", "Days", "integer", default=3),
    FormField(
        "seat", "Seat", "choice", default="window", choices=(Choice("window", "Window"), Choice("aisle", "Aisle"))
    ),
)
_PAGE = "https://pay.example.com/start?id=1"


async def jobs(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.background.known = showcase.background()
    agent.publish(JobsChanged(2))
    await opening("jobs", "down")(app, pilot, agent)


async def find(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    await pilot.press("ctrl+f")
    await _until(pilot, lambda: app.screen.query("FindBar Input"))
    await pilot.press(*"greet", "enter")


async def find_none(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    await pilot.press("ctrl+f")
    await _until(pilot, lambda: app.screen.query("FindBar Input"))
    await pilot.press(*"zebra", "enter")


async def job_output(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """What a command in the background has said."""
    await jobs(app, pilot, agent)
    agent.background.outputs = {id: f"line of {id}\n" * 60 for id in agent.background.known}
    await pilot.press("enter")


async def completions(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    await pilot.press(*"/co")


async def queue(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.turns.busy = True
    for text in ("Then write the changelog line.", "And look whether the docs name the old greeting anywhere."):
        agent.turns.submit(text)
    agent.turns.steer("Leave the tests as they are.")
    app.view.phase("Working")


async def context_open(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    await opening("context")(app, pilot, agent)
    screen = app.screen
    assert isinstance(screen, ContextScreen)
    screen.view.opened |= {s.key for s in screen.view.rows.shown} | {"compactions"}
    screen.view.rebuild()


async def timeline(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The context of a session with many steps behind it."""
    showcase.course(agent)
    await opening("context")(app, pilot, agent)


async def usage(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """What a session of six turns and two models has cost."""
    showcase.course(agent)
    showcase.turns(agent)
    await saying("/usage")(app, pilot, agent)


async def cache(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The calls of a session and what each read from the cache."""
    agent.conversation.steps.extend(calls())
    await opening("context", "c")(app, pilot, agent)
    await _until(pilot, lambda: len(app.screen_stack) > 2 and app.screen.query("#rows"))


async def text(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Something to read: how the number of the context was made."""
    await opening("context", "w")(app, pilot, agent)
    await _until(pilot, lambda: len(app.screen_stack) > 2 and app.screen.query("#rows"))


def calls() -> list[Step]:
    """Calls whose cache held, was lost by us, ran out, and was lost nobody knows why."""
    misses = (
        None,
        CacheMiss("ours", "tools changed: MCP server github added", 90_000, 0, 0.31),
        CacheMiss("expired", "idle for 6 min", 91_000, 1_000, None),
        CacheMiss("unknown", "", 92_000, 0, 0.25),
    )
    made = []
    for number, miss in enumerate(misses):
        step = Step(f"s{number}", "turn", "m", "anthropic", "chat", "claude", status="complete", created=showcase.NOW)
        step.usage = TokenUsage(100_000, 10, cache_read=miss.read if miss else 90_000, cache_write=1_024)
        step.expected_read, step.miss, step.cache_life = (miss.expected if miss else 90_000), miss, 300.0
        made.append(step)
    return made


def stop_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Screens that say how old something is count from the showcase's time."""
    stopped = SimpleNamespace(time=lambda: showcase.NOW, monotonic=time.monotonic, sleep=time.sleep)
    for screen in (sessions, context_screen, work, context_cache):
        monkeypatch.setattr(screen, "time", stopped)


SCENES: dict[str, Scene] = {
    "chat": chat,
    "opened": chat_opened,
    "streaming": streaming,
    "queue": queue,
    "selected": selected,
    "completions": completions,
    "permission": publishing(showcase.question()),
    "permission-long": publishing(long_question()),
    "permission-command": publishing(command_question()),
    "plan": publishing(showcase.plan()),
    "stopped-budget": stopped(
        "The session's budget of $0.50 is too small: $0.42 spent, the next call may take $0.21",
        Way("y", "Raise it to $2.00 and continue"),
        Way("o", "Another amount…", asks="An amount, e.g. $2.00, or off"),
    ),
    "stopped-key": stopped(
        "Anthropic refused the key",
        Way("k", "Enter a key and keep it in the system's keyring", asks="The key for Anthropic", secret=True),
        Way("s", "Enter a key for this run only", asks="The key for Anthropic", secret=True),
        Way("t", "Try again"),
    ),
    "stopped-model": stopped(
        "Anthropic does not know anthropic/claude-sonet-5-5",
        Way("y", "Continue with anthropic/claude-sonnet-5-5"),
        Way("t", "Try again"),
    ),
    "stopped-full": stopped(
        "The context is full: ~201k of 200k tokens",
        Way("c", "Compact now and continue"),
        Way("d", "Drop the result of bash (~41k tokens) and continue"),
    ),
    "question": publishing(showcase.choice()),
    "server-form": publishing(ServerAsked("srv_1", "trips", "form", "Where do you want to go?", _TRIP)),
    "server-address": publishing(
        ServerAsked("srv_1", "trips", "url", "Pay for the tickets there.", url=_PAGE, about="pay.example.com")
    ),
    "context": opening("context"),
    "context-open": context_open,
    "timeline": timeline,
    "cache": cache,
    "text": text,
    "usage": usage,
    "status": saying("/status"),
    "doctor": saying("/doctor"),
    "thinking": saying("/thinking"),
    "model": opening("models"),
    "model-search": opening("models", data="opus"),
    "key": asks_key,
    "theme": opening("themes"),
    "resume": opening("sessions", "down"),
    "rewind": opening("rewind"),
    "help": opening("help"),
    "palette": opening("palette"),
    "history": opening("history"),
    "jobs": jobs,
    "find": find,
    "find-none": find_none,
    "several": publishing(showcase.choice(True)),
    "job-output": job_output,
    "picture": picture,
    "mcp": saying("/mcp"),
    "permissions": saying("/permissions"),
    "budget": saying("/budget"),
    "tools": saying("/tools"),
    "skills": saying("/skills"),
    "compact-preview": opening("compact", data="preview"),
    "unknown": saying("/nosuchcommand"),
    "jobs-none": opening("jobs"),
    "queue-none": opening("queue"),
    "cache-none": opening("context", "c"),
    "palette-none": opening("palette", *"zzzz"),
    **STATES,
    **LISTS,
}


async def stage(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent, scene: Scene) -> None:
    """Waits for the chat and plays a scene to its end."""
    await asyncio.wait_for(app.opened.wait(), PATIENCE)
    await pilot.pause()
    await scene(app, pilot, agent)
    for _ in range(3):
        await pilot.pause()


def showcase_app(home: Path, clock: Callable[[], float], **ui: Any) -> tuple[AgentApp, FakeAgent]:
    """The application on the showcase's conversation, with settings of ``[ui]``."""
    from agent_tui.config import Settings

    agent = showcase.agent(home)
    settings = Settings()
    for name, value in ui.items():
        setattr(settings.ui, name, value)

    async def factory() -> FakeAgent:
        return agent

    return AgentApp(factory, settings, agent.paths, agent.root, clock=clock), agent
