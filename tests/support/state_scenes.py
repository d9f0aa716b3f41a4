"""The states a chat can be in, each as a scene: what failed, what runs, what was attached, what is empty, what is hard
to draw."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from typing import Any

from PIL import Image
from textual.pilot import Pilot

from agent_tui.context.compaction.notices import done_text
from agent_tui.context.tidy import FIXED, READ_AGAIN, TODO, DeadWeight
from agent_tui.models.events import (
    CompactionEnded,
    CompactionStarted,
    MessageAdded,
    Notice,
    PermissionAsked,
    QueueChanged,
    RetryWaiting,
    RuleOffer,
    SessionChanged,
    StepEnded,
    StepStarted,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    WaitingMessage,
)
from agent_tui.models.failure import Failure
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    user_message,
)
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.ui.app import AgentApp
from agent_tui.ui.screens.tidy import TidyPicker
from tests.support import showcase
from tests.support.fake_agent import FakeAgent

LONG_NAME = "src/" + "very_long_package_name_that_goes_on/" * 3 + "模块_日本語_🎉_module.py"
NOTHING = "The model answered nothing."
OVERLOADED = Failure("overloaded", "anthropic is overloaded (529): please try again in a while.")


def step(failure: Failure | None = None) -> Step:
    """A call of the turn."""
    made = Step("live", "turn", "m", "anthropic", "chat", "claude", status="failed" if failure else "complete")
    made.created, made.failure = showcase.NOW, failure
    return made


def picture() -> str:
    """A small picture, as a file of the type PNG in base64."""
    file = io.BytesIO()
    Image.new("RGB", (64, 48), "teal").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _show(agent: FakeAgent, *messages: Message) -> None:
    agent.conversation.path[:] = messages
    agent.conversation.own_records = []
    agent.publish(SessionChanged(agent.conversation.info, reload=True))


async def start(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Nothing said yet."""
    agent.conversation.info.title = ""
    _show(agent)


async def failed(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """A turn whose request failed: the line, and the message that has no answer."""
    asked = user_message("And now write the changelog, please.")
    answer = Message("broken", "assistant", status="failed", note=OVERLOADED.message)
    agent.conversation.path.append(asked)
    agent.publish(MessageAdded(asked))
    agent.publish(TurnStarted())
    agent.publish(StepStarted(step(), Message("broken", "assistant", status="streaming")))
    agent.publish(StepEnded(step(failure=OVERLOADED), answer))
    waits = WaitingMessage(asked.id, asked.text, "unanswered", OVERLOADED.message)
    agent.waiting.listed = [waits, WaitingMessage("w2", "Then the documentation.", "failed", "The project is gone.")]
    agent.publish(TurnEnded("error", OVERLOADED))
    agent.publish(QueueChanged(agent.waiting.listed, True))


async def failed_queue(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The dialog of what waits, with a message of each kind."""
    kinds = ("unanswered", "failed", "held", "steer", "queued")
    agent.waiting.listed = [
        WaitingMessage(f"w{n}", f"Message number {n}, which is {kind} 日本語 and " + "goes on " * n * 3, kind, why)  # type: ignore[arg-type]
        for n, (kind, why) in enumerate(zip(kinds, (OVERLOADED.message, "No network.", "", "", ""), strict=True))
    ]
    agent.publish(QueueChanged(agent.waiting.listed))
    app.open_screen("queue")


async def tidy(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """What of a context could go."""
    found = [
        DeadWeight(("m1", "m2"), "read src/greeting/日本語.py, read tests/test_greeting.py", READ_AGAIN, 12_400),
        DeadWeight(("m3", "m4"), "bash python -m pytest -q", FIXED, 3_100),
        DeadWeight(("m5", "m6"), "todo", TODO, 240),
    ]
    app.push_screen(TidyPicker(agent, found))


async def retry(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.publish(TurnStarted())
    agent.publish(RetryWaiting(8.0, 2, 5, OVERLOADED))


async def compacting(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.publish(TurnStarted())
    agent.publish(CompactionStarted(171_200, "auto"))


async def compacted(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The lines of compactions: a summary, one without a model, one undone, one that was not worth it, a prune, a
    failure."""
    agent.store.kept["sum_2"] = replace(agent.store.kept["sum_1"], id="sum_2")
    record = CompactionRecord("cmp_2", "op_2", "summary", ["a", "b"], summary_id="sum_2")
    record.before_tokens, record.after_tokens, record.before_spread, record.after_spread = 171_200, 24_100, 400, 900
    agent.publish(CompactionEnded("done", done_text(record), [record]))
    agent.publish(CompactionEnded("undone", "Compaction undone 24.1k ± 0.9k → 84.2k", [replace(record, active=False)]))
    agent.publish(CompactionEnded("not_worth_it", "Compaction not worth it: it would free ~1.2k. Nothing changed."))
    agent.publish(CompactionEnded("failed", f"Compaction failed: {OVERLOADED.message} Nothing was changed."))
    cut = replace(record, id="cmp_4", left_out=12, summary_id=None)
    agent.publish(CompactionEnded("done", done_text(cut, "the summary was empty"), [cut]))
    prune = CompactionRecord("cmp_3", "op_3", "prune", ["x"], before_tokens=84_200, after_tokens=60_000)
    agent.publish(CompactionEnded("done", done_text(prune), [prune]))


async def notices(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.publish(Notice("info", "AGENTS.md has changed; the next request tells the model."))
    agent.publish(Notice("warning", "80 % of the limit: 134.4k of 168k tokens. It compacts at 168k."))
    agent.publish(
        Notice("error", f"MCP server github cannot be reached: connection refused at {'https://x.example/' * 9}")
    )
    agent.publish(Notice("info", "Two\nlines."))


async def running(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Commands and a subagent that run, one that waits, one with a picture of progress."""
    build = "cargo build --release --workspace --all-features && cargo test 日本語"
    calls = [
        ToolCallPart("r1", "bash", json.dumps({"command": build})),
        ToolCallPart("r2", "subagent", '{"task": "Find where the greeting is made"}'),
        ToolCallPart("r3", "edit", json.dumps({"path": LONG_NAME})),
    ]
    agent.publish(TurnStarted())
    answer = Message("go", "assistant", [TextPart("Three things at once."), *calls])
    agent.publish(StepStarted(step(), Message("go", "assistant", status="streaming")))
    agent.publish(StepEnded(step(), answer))
    agent.publish(ToolStarted("r1", "bash", build))
    compiled = "".join(f"   Compiling crate-{n} v0.{n}.0 (/project/crates/{n})\n" for n in range(9))
    agent.publish(ToolOutput("r1", compiled))
    agent.publish(ToolOutput("r1", "    Building [=====>      ] 41/98\r    Building [======>     ] 57/98"))
    agent.publish(ToolStarted("r2", "subagent", "subagent Find where the greeting is made"))
    agent.publish(ToolOutput("r2", "grep greet in src\n"))
    display = {"kind": "diff", "text": showcase.DIFF, "path": LONG_NAME}
    allowed = [RuleOffer((f"edit({LONG_NAME})",))]
    agent.publish(PermissionAsked("p3", "r3", "edit", f"edit {LONG_NAME}", display, allowed, "Edits ask in this mode."))


async def results(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Tool results of each kind: empty, failed, refused, interrupted, very long names."""
    calls = [
        ToolCallPart(f"c{n}", name, arguments)
        for n, (name, arguments) in enumerate(
            [
                ("bash", '{"command": "true"}'),
                ("bash", '{"command": "make"}'),
                ("edit", '{"path": "src/greet.py"}'),
                ("read", json.dumps({"path": LONG_NAME})),
                ("grep", '{"pattern": "日本語のとても長い検索パターン", "path": "src"}'),
                ("subagent", '{"task": "Read the docs and tell what they say of greetings"}'),
            ]
        )
    ]
    made = [
        ToolResultPart("c0", "bash", "", seconds=0.01),
        ToolResultPart("c1", "bash", "make: *** No targets.  Stop.\n", is_error=True, seconds=61.0),
        ToolResultPart("c2", "edit", "The user refused this call. They said: not there", is_error=True),
        ToolResultPart("c3", "read", "1\tx = 1\n", seconds=0.2),
        ToolResultPart("c4", "grep", "[interrupted]", is_error=True),
        ToolResultPart("c5", "subagent", "They say nothing.", seconds=12.0),
    ]
    _show(
        agent,
        user_message("Try everything."),
        Message("m1", "assistant", [ReasoningPart("Hm.", seconds=3.2), *calls]),
        *(Message(f"t{n}", "tool", [part]) for n, part in enumerate(made)),
        Message("m2", "assistant", [ReasoningPart("", {"signature": "x"}, seconds=75.0)], note=NOTHING),
        user_message("Again?"),
        Message("m3", "assistant", [TextPart("I was about to")], status="stopped"),
        user_message("And once more."),
        Message("m4", "assistant", [], status="failed", note=OVERLOADED.message),
    )


async def attached(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Files, a picture and a paste that went with messages; and a paste in the prompt."""
    shot = AttachmentPart("日本語 screenshot.png", "image/png", data=picture())
    code = AttachmentPart("src/greet.py", "text/x-python", text="x\n", path="/project/src/greet.py")
    name = AttachmentPart(LONG_NAME, "text/x-python", text="x\n", path=f"/project/{LONG_NAME}")
    pasted = user_message("Look at this:\n" + "line\n" * 30)
    part = pasted.parts[0]
    assert isinstance(part, TextPart)
    part.pasted = [[14, len(part.text)]]
    _show(
        agent,
        user_message("What is on it? @src/greet.py", attachments=[shot, code, name]),
        Message("m1", "assistant", [TextPart("A greeting.")]),
        pasted,
        Message("m2", "assistant", [TextPart("Thirty lines.")]),
        user_message("!git status"),
    )
    app.view.prompt.insert_text(app.view.prompt.placeholders.collapse("pasted\n" * 40))


async def wide(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Text whose signs are wider than a cell, and words that are longer than the screen."""
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    said = "日本語の**とても長い**段落。" * 12
    table = f"| 名前 | emoji | text |\n|---|---|---|\n| 日本 | {family} | a |\n| é | 🇩🇪 | {'long ' * 30}|"
    code, link = "日本語" * 50, "https://example.com/" + "path/" * 60
    _show(
        agent,
        user_message("日本語の文章はどこで折り返されますか。" * 6 + f" {family} é 🇩🇪 " + "w" * 230),
        Message("m1", "assistant", [TextPart(f"{said}\n\n{table}\n\n```\n{code}\n```\n\n- {link}")]),
    )
    agent.conversation.info.title = f"日本語のセッション {family}"
    agent.publish(SessionChanged(agent.conversation.info))


STATES = {
    "start": start,
    "failed": failed,
    "failed-queue": failed_queue,
    "tidy": tidy,
    "retry": retry,
    "compacting": compacting,
    "compacted": compacted,
    "notices": notices,
    "running": running,
    "results": results,
    "attached": attached,
    "wide": wide,
}
