"""Scenes that need the real agent: how it is on the first day, and a session's past."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from agent_tui.models.events import CompactionEnded, TurnEnded
from tests.support.real_app import Chat, Home

RealScene: TypeAlias = "Callable[[Chat], Awaitable[None]]"
LONG = "".join(f"All of this can be told again in {n} words. " for n in range(130))


def answers(home: Home) -> None:
    """What the demo model says in them."""
    home.script("".join(f"[[step]]\ntext = {json.dumps(f'Answer {n}. {LONG}')}\nchunk = 4000\n" for n in range(8)))


async def first_start(chat: Chat) -> None:
    """Nothing is configured and nothing said."""


async def lived(chat: Chat) -> None:
    """Three turns, a compaction, a turn."""
    for number in range(3):
        await chat.say(f"question {number}")
        await chat.seen.next(TurnEnded)
    await chat.say("/compact")
    await chat.seen.next(CompactionEnded)
    await chat.say("after the compaction")
    await chat.seen.next(TurnEnded)
    await chat.look()


def looking_back(*keys: str) -> RealScene:
    """``/context``, and keys that go into the past."""

    async def scene(chat: Chat) -> None:
        await lived(chat)
        await chat.say("/context")
        await chat.until(lambda: len(chat.app.screen_stack) > 1 and chat.app.screen.query("#rows"))
        for key in keys:
            await chat.press(key)

    return scene


def saying(line: str, answer: str) -> RealScene:
    """A command as it answers on the first day; ``answer`` stands in what it says."""

    async def scene(chat: Chat) -> None:
        await chat.say(line)
        await chat.shows(answer)

    return scene


REAL: dict[str, RealScene] = {
    "first-start": first_start,
    "lived": lived,
    "now": looking_back(),
    "past": looking_back("left"),
    "past-compacted": looking_back("left", "w"),
    "first-step": looking_back("shift+left"),
    "real-doctor": saying("/doctor", "Needs attention"),
    "real-status": saying("/status", "Cost"),
    "real-models": saying("/model", "no key yet"),
    "real-usage": saying("/usage", "Nothing sent"),
}
