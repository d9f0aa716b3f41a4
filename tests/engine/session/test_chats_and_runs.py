"""What ``-p`` began is no chat: ``-c`` in a chat passes it by until a chat has opened it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import parts_for, running

pytestmark = pytest.mark.quick


async def said(folder: Path, text: str, *, chat: bool, resume: str | None = None) -> str:
    """Sends a message in the session that ``-c`` or ``--resume`` finds; returns that session's id."""
    parts = parts_for(folder / "home", folder / "project", resume=resume, continue_newest=True)
    parts.is_chat = chat
    async with running(parts) as (agent, _):
        agent.turns.submit(text)
        await agent.turns.join()
        return agent.conversation.info.id


async def test_a_chat_is_continued_across_runs_and_a_run_across_chats(tmp_path: Path) -> None:
    first = await said(tmp_path, "a chat", chat=True)
    parts = parts_for(tmp_path / "home", tmp_path / "project")
    parts.is_chat = False
    async with running(parts) as (agent, _):
        agent.turns.submit("a run")
        await agent.turns.join()
        run = agent.conversation.info.id
    assert await said(tmp_path, "the next of the chat", chat=True) == first != run
    assert await said(tmp_path, "of whatever was last", chat=False) == first


async def test_a_run_that_a_chat_opens_is_a_chat_from_then_on(tmp_path: Path) -> None:
    run = await said(tmp_path, "a run", chat=False)
    assert await said(tmp_path, "more of it", chat=False) == run
    assert await said(tmp_path, "a chat", chat=True) != run
    assert await said(tmp_path, "what did it find?", chat=True, resume=run) == run
    assert await said(tmp_path, "and now?", chat=True) == run
