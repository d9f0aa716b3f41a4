"""What the demo model says of the conversation and its numbers is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agent_tui.commands.past_words import past_json, past_view
from agent_tui.models.messages import Message
from tests.support.agents import parts_for, running

EXAMPLE = re.compile(r"^```json\n(\{.*\})\n```$", re.M)


@pytest.mark.slow
async def test_an_example_has_the_numbers_that_context_had_for_the_question(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path)) as (agent, _):
        await agent.context.ready()
        seen = 0
        for number in range(12):
            agent.turns.submit(f"question {number}")
            await agent.turns.join()
            if (found := EXAMPLE.search(agent.conversation.path[-1].text)) is None:
                continue
            seen += 1
            then = past_json(past_view(agent.context.history(), agent.context.history().count, None, set()))["context"]
            assert json.loads(found[1]) == {name: then[name] for name in ("total", "limit", "would_compact")}
        assert seen


async def test_only_the_users_own_words_are_quoted(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path)) as (agent, _):
        agent.turns.submit("only this")
        await agent.turns.join()
        (answer,) = [m for m in agent.conversation.path if m.role == "assistant"]
    assert "You wrote **2 words**" in answer.text
    assert "'only this'" in thoughts(answer) and "permission mode" not in thoughts(answer)


def thoughts(message: Message) -> str:
    return "".join(part.text for part in message.parts if part.type == "reasoning")
