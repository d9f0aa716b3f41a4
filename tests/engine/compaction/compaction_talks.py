"""A whole agent in a small window: talk that fills it, and summaries that are none."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agent_tui.config import ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.models.events import (
    CompactionEnded,
    CompactionStarted,
    Notice,
    TurnEnded,
)
from tests.support.agents import Recorder, TokenCounter, parts_for, running
from tests.support.compaction_world import assert_valid

WINDOW = "window = 8000\nmax_output = 2000\n"


def summary_script(step: str) -> str:
    return f'{WINDOW}[[step]]\nkind = "compaction"\nrepeat = 0\n{step}\n'


def opened(
    folder: Path, script: str = WINDOW, *, auto: bool = True, resume: str | None = None, models: str = ""
) -> AbstractAsyncContextManager[tuple[Agent, Recorder]]:
    settings = Settings(permissions=PermissionsConfig(mode="auto"), context=ContextConfig(auto_compact=auto))
    if models:
        settings.models = {
            "large": ModelConfig(model="demo", context_window=16_000),
            "small": ModelConfig(model="demo", context_window=6_000, max_output=1_500),
            "blind": ModelConfig(model="demo", context_window=0),
        }
        settings.default_model = models
    parts = parts_for(
        folder / "home", folder / "p", script=script, settings=settings, counter=TokenCounter(), resume=resume
    )
    return running(parts)


async def turn(agent: Agent, seen: Recorder, text: str) -> TurnEnded:
    agent.turns.submit(text)
    await agent.turns.join()
    await agent.context.ready()
    assert_valid(agent.conversation.view())
    return seen.last_end


async def fill(agent: Agent, seen: Recorder, share: float = 1.0) -> int:
    """Talks until the next input is above ``share`` of the limit; returns it."""
    await agent.context.ready()
    number = 0
    while (usage := agent.context.usage()).total <= share * (usage.limit or 0):
        number += 1
        await turn(agent, seen, f"{number}: tell me a lot")
    assert not seen.of(CompactionStarted)
    return usage.total


def outcomes(seen: Recorder) -> list[str]:
    return [e.outcome for e in seen.of(CompactionEnded)]


def codes(seen: Recorder) -> list[str]:
    return [n.code for n in seen.of(Notice)]


def shown(seen: Recorder) -> list[str]:
    """The lines a user reads, on the screen and of a run without one: what a turn failed of only where no line said
    it."""
    lines: list[str] = []
    for event in seen.events:
        match event:
            case Notice(_, text, _) | CompactionEnded(_, text, _, False):
                lines.append(text)
            case TurnEnded(_, failure, _) if failure is not None and failure.message not in lines:
                lines.append(failure.message)
    return lines


def times(seen: Recorder, why: str) -> int:
    return sum(line.count(why) for line in shown(seen))


BAD_SUMMARIES = {
    "refused by the provider": ('error = { kind = "auth", message = "No key." }', "No key"),
    "empty": ('text = ""', "empty"),
    "cut off": ('text = "## Goal\\nTo"\nfinish = "length"', "cut off"),
    "a line": ('text = "I talked with the user."', "none of the 7 headings"),
    "a refusal": ('text = "I cannot help with that."\nfinish = "refused"', "refused to summarise"),
    "a tool call": ('tool_calls = [{ name = "list", arguments = {} }]', "tool"),
}
