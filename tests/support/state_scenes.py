"""The states a chat can be in, each as a scene: what failed, what runs, what was attached, what is empty, what is hard
to draw."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image
from textual.pilot import Pilot

from agent_tui.models.branches import Branch, FilesMoved
from agent_tui.models.events import (
    CompactionEnded,
    CompactionStarted,
    MessageAdded,
    Notice,
    PermissionAsked,
    QueueChanged,
    RetryWaiting,
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
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.ui.app import AgentApp
from tests.support import showcase
from tests.support.fake_agent import FakeAgent

LONG_NAME = "src/" + "very_long_package_name_that_goes_on/" * 3 + "模块_日本語_🎉_module.py"
OVERLOADED = Failure("overloaded", "anthropic is overloaded (529): please try again in a while.")


def step(failure: Failure | None = None) -> Step:
    """A call of the turn."""
    made = Step("live", "turn_2", "m", "anthropic", "chat", "claude", status="failed" if failure else "complete")
    made.created, made.failure = showcase.NOW, failure
    return made


def picture() -> str:
    """A small picture, as a file of the type PNG in base64."""
    file = io.BytesIO()
    Image.new("RGB", (64, 48), "teal").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _show(agent: FakeAgent, *messages: Message) -> None:
    agent.messages[:] = messages
    agent.records = []
    agent.publish(SessionChanged(agent.info, reload=True))


async def start(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Nothing said yet."""
    agent.info.title = ""
    _show(agent)


async def failed(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """A turn whose request failed: the line, and the message that has no answer."""
    asked = user_message("And now write the changelog, please.")
    answer = Message("broken", "assistant", status="failed", note=OVERLOADED.message)
    agent.messages.append(asked)
    agent.publish(MessageAdded(asked))
    agent.publish(TurnStarted("turn_2"))
    agent.publish(StepStarted(step(), Message("broken", "assistant", status="streaming")))
    agent.publish(StepEnded(step(failure=OVERLOADED), answer))
    waits = WaitingMessage(asked.id, asked.text, "unanswered", OVERLOADED.message)
    agent.waiting = [waits, WaitingMessage("w2", "Then the documentation.", "failed", "The project is gone.")]
    agent.publish(TurnEnded("error", OVERLOADED))
    agent.publish(QueueChanged(agent.waiting, True))


async def failed_queue(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The dialog of what waits, with a message of each kind."""
    kinds = ("unanswered", "failed", "held", "steer", "queued")
    agent.waiting = [
        WaitingMessage(f"w{n}", f"Message number {n}, which is {kind} 日本語 and " + "goes on " * n * 3, kind, why)  # type: ignore[arg-type]
        for n, (kind, why) in enumerate(zip(kinds, (OVERLOADED.message, "No network.", "", "", ""), strict=True))
    ]
    agent.publish(QueueChanged(agent.waiting))
    app.open_screen("queue")


async def retry(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.publish(TurnStarted("turn_2"))
    agent.publish(RetryWaiting(8.0, 2, 5, OVERLOADED))


async def compacting(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.publish(TurnStarted("turn_2"))
    agent.publish(CompactionStarted(171_200, "auto"))


async def compacted(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """The lines of compactions: a summary, one undone, one that was not worth it, a prune, a failure."""
    agent.store.kept["sum_2"] = agent.store.kept["sum_1"]
    record = CompactionRecord("cmp_2", "op_2", "summary", ["a", "b"], summary_id="sum_2")
    done = "~171.2k → ~24.1k · kept 6 messages · 8 s · $0.02 · /compact undo"
    agent.publish(CompactionEnded("done", done, [record]))
    agent.publish(CompactionEnded("undone", "The compaction is undone: 84.2k tokens again."))
    agent.publish(CompactionEnded("not_worth_it", "Not compacted: it would free ~1.2k of 84.2k tokens."))
    agent.publish(CompactionEnded("failed", f"Compaction failed: {OVERLOADED.message} Nothing was changed."))
    prune = CompactionRecord("cmp_3", "op_3", "prune", ["x"], before_tokens=84_200, after_tokens=60_000)
    agent.publish(CompactionEnded("done", "Cleared 1 old tool result: 84.2k → ~60k", [prune]))


async def notices(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.publish(Notice("info", "AGENTS.md has changed; the next request tells the model."))
    agent.publish(Notice("warning", "80 % of the limit: 134.4k of 168k tokens. It compacts at 168k."))
    agent.publish(
        Notice("error", f"MCP server github cannot be reached: connection refused at {'https://x.example/' * 9}")
    )
    agent.publish(Notice("info", "Two\nlines."))


async def running(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Commands and a subagent that run, one that waits, one with a picture of progress."""
    calls = [
        ToolCallPart(
            "r1", "bash", '{"command": "cargo build --release --workspace --all-features && cargo test 日本語"}'
        ),
        ToolCallPart("r2", "subagent", '{"task": "Find where the greeting is made"}'),
        ToolCallPart("r3", "edit", '{"path": "%s"}' % LONG_NAME),
    ]
    agent.publish(TurnStarted("turn_2"))
    answer = Message("go", "assistant", [TextPart("Three things at once."), *calls])
    agent.publish(StepStarted(step(), Message("go", "assistant", status="streaming")))
    agent.publish(StepEnded(step(), answer))
    agent.publish(ToolStarted("r1", "bash", "cargo build --release --workspace --all-features && cargo test 日本語"))
    agent.publish(
        ToolOutput("r1", "".join(f"   Compiling crate-{n} v0.{n}.0 (/project/crates/{n})\n" for n in range(9)))
    )
    agent.publish(ToolOutput("r1", "    Building [=====>      ] 41/98\r    Building [======>     ] 57/98"))
    agent.publish(ToolStarted("r2", "subagent", "subagent Find where the greeting is made"))
    agent.publish(ToolOutput("r2", "grep greet in src\n"))
    agent.publish(
        PermissionAsked(
            "p3",
            "r3",
            "edit",
            f"edit {LONG_NAME}",
            {"kind": "diff", "text": showcase.DIFF, "path": LONG_NAME},
            [f"edit({LONG_NAME})"],
            "Edits ask in this mode.",
        )
    )


async def results(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Tool results of each kind: empty, failed, refused, interrupted, very long names."""
    calls = [
        ToolCallPart(f"c{n}", name, arguments)
        for n, (name, arguments) in enumerate(
            [
                ("bash", '{"command": "true"}'),
                ("bash", '{"command": "make"}'),
                ("edit", '{"path": "src/greet.py"}'),
                ("read", '{"path": "%s"}' % LONG_NAME),
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
        Message(
            "m2", "assistant", [ReasoningPart("", {"signature": "x"}, seconds=75.0)], note="The model answered nothing."
        ),
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
    app.stage.prompt.insert_text(app.stage.prompt.placeholders.collapse("pasted\n" * 40))


async def wide(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Text whose signs are wider than a cell, and words that are longer than the screen."""
    _show(
        agent,
        user_message("日本語の文章はどこで折り返されますか。" * 6 + " 👩‍👩‍👧‍👦 é 🇩🇪 " + "w" * 230),
        Message("m1", "assistant", [TextPart(
            "日本語の**とても長い**段落。" * 12 + "\n\n| 名前 | emoji | text |\n|---|---|---|\n| 日本 | 👩‍👩‍👧‍👦 | a |\n| é | 🇩🇪 | "
            + "long " * 30 + "|\n\n```\n" + "日本語" * 50 + "\n```\n\n- " + "https://example.com/" + "path/" * 60
        )]),
    )  # fmt: skip
    agent.info.title = "日本語のセッション 👩‍👩‍👧‍👦"
    agent.publish(SessionChanged(agent.info))


async def rewind_tree(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Branches of branches."""

    def said(text: str, minutes: int) -> list[Message]:
        pair = [user_message(text), Message(f"answer {text}", "assistant", [TextPart("yes")])]
        for message in pair:
            message.created = showcase.NOW - 60 * minutes
        return pair

    path = [
        *said("write a parser 日本語", 3_000),
        *said("use a dataclass " + "and more words " * 9, 9),
        *said("now the tests", 1),
    ]
    one, two, inner = [*said("use a tuple", 20), *said("with a name", 18)], said("use a dict", 25), said("typed", 22)
    agent.messages = path
    agent.others = [
        Branch(one[-1].id, path[1].id, one, 2, 3_100),
        Branch(two[-1].id, path[1].id, two, 2, 420),
        Branch(inner[-1].id, two[0].id, inner, 3, 80, under=two[-1].id, depth=1),
    ]
    agent.moving = FilesMoved([agent.root / "src" / "a.py"], [f"{agent.root}/b.py: changed since by others"])
    app.open_screen("rewind")
    await pilot.pause()
    await pilot.press("tab")


async def found(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Hits of a search over all that was said."""
    said = "Where does the parser keep its states? " * 4 + "In the 日本語 table."
    agent.store.said = {info.id: said for info in agent.store.listed}
    app.open_screen("sessions", "parser states")


async def nothing_found(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    app.open_screen("sessions", "no such words anywhere")


async def no_sessions(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.store.listed = []
    app.open_screen("sessions")


async def many_sessions(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.store.listed = [
        SessionInfo(f"ses_{n}", "/project" if n % 3 else "/elsewhere/a-very-long-name-of-a-project", title=f"Session {n} 日本 " + "word " * (n % 30), model="openrouter/anthropic/claude-sonnet-4.6-thinking", messages=n * 17, updated=showcase.NOW - n * 40_000)
        for n in range(300)
    ]  # fmt: skip
    app.open_screen("sessions")
    await pilot.pause()
    await pilot.press("ctrl+a", "down", "down")


STATES = {
    "start": start,
    "failed": failed,
    "failed-queue": failed_queue,
    "retry": retry,
    "compacting": compacting,
    "compacted": compacted,
    "notices": notices,
    "running": running,
    "results": results,
    "attached": attached,
    "wide": wide,
    "rewind-tree": rewind_tree,
    "found": found,
    "nothing-found": nothing_found,
    "no-sessions": no_sessions,
    "many-sessions": many_sessions,
}
