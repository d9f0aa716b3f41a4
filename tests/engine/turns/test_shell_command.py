from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_tui.engine.conversation import Conversation
from agent_tui.engine.turns.subagent import run_shell
from agent_tui.errors import AgentError
from agent_tui.models.events import Event, MessageAdded, ToolOutput, ToolStarted
from agent_tui.models.messages import AttachmentPart
from agent_tui.store.store import Store
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    store = Store.open(tmp_path / "sessions.db")
    return Conversation(store, store.sessions.create("/p", "demo"))


def output(conversation: Conversation) -> str:
    (part,) = [p for p in conversation.path[-1].parts if isinstance(p, AttachmentPart)]
    assert part.text is not None
    return part.text


async def test_output_is_shown_live_and_becomes_part_of_the_conversation(
    tmp_path: Path, conversation: Conversation
) -> None:
    events: list[Event] = []
    context = make_context(tmp_path / "project")

    def publish(event: Event) -> None:
        events.append(event)
        if isinstance(event, ToolOutput):
            (context.cwd / "seen").touch()

    command = " printf 'a \\033[31mred\\n'; until [ -e seen ]; do sleep 0.01; done; exit 3 "
    await run_shell(command, context, conversation, publish)
    started, *live, added = events
    assert isinstance(started, ToolStarted) and started.name == "shell" and started.summary.startswith("! printf")
    assert "".join(e.text for e in live if isinstance(e, ToolOutput)) == "a red\n"
    assert isinstance(added, MessageAdded) and added.message is conversation.path[-1]
    assert added.message.role == "user" and added.message.text.startswith("!printf")
    assert output(conversation) == "a red\n[exit code 3]"
    reopened = Conversation(conversation.store, conversation.info)
    assert reopened.path == conversation.path


async def test_an_interrupt_ends_it_and_keeps_what_it_said(tmp_path: Path, conversation: Conversation) -> None:
    said = asyncio.Event()

    def publish(event: Event) -> None:
        if isinstance(event, ToolOutput):
            said.set()

    context = make_context(tmp_path / "project")
    task = asyncio.create_task(run_shell("echo begun; echo $$ > pid; sleep 60", context, conversation, publish))
    await said.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert output(conversation) == "begun\n[interrupted by the user]"
    pid = int((tmp_path / "project" / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


async def test_long_output_is_capped_and_saved(tmp_path: Path, conversation: Conversation) -> None:
    context = make_context(tmp_path / "project", output_limit=1_000)
    await run_shell("seq 1 5000", context, conversation, lambda event: None)
    assert len(output(conversation)) < 1_500 and "read or grep it" in output(conversation)


async def test_nothing_runs_where_it_cannot_be_kept(tmp_path: Path, conversation: Conversation) -> None:
    context = make_context(tmp_path / "project")
    with pytest.raises(AgentError, match="needs a command"):
        await run_shell("  ", context, conversation, lambda event: None)
    read_only = Conversation(conversation.store, conversation.info, read_only=True)
    with pytest.raises(AgentError, match="another window"):
        await run_shell("touch here", context, read_only, lambda event: None)
    assert not (tmp_path / "project" / "here").exists()
