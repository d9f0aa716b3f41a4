"""Dead weight in the context: what there is of it, in words, and dropped by number."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from agent_tui.commands.context import LATER
from agent_tui.commands.registry import CommandResult, OpenScreen, Text, command
from agent_tui.context.compaction.plan import message_tokens
from agent_tui.errors import ConfigError
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, tokens

if TYPE_CHECKING:
    from agent_tui.context.tidy import DeadWeight
    from agent_tui.engine.agent import Agent

NOTHING = "Nothing to tidy."
SHOWN = 120
_LISTED: WeakKeyDictionary[Agent, list[Sequence[str]]] = WeakKeyDictionary()
"""What was listed last, by the messages of each: its numbers are what the user goes by."""
MOST_NAMED = 5
"""Calls that are named of what was dropped."""


def _choices(agent: Agent) -> Iterable[tuple[str, str]]:
    return (("drop ", "drop these numbers of the list"), ("all", "drop everything in the list"))


@command("tidy", args="[drop N … | all]", choices=_choices)
async def tidy(agent: Agent, args: str) -> CommandResult:
    """List what is sent but useless, to drop it.

    Found without a model: files read again later, older todo lists, failed attempts that worked later, repeated
    results, and large ones never mentioned since. In plain mode, tidy drop 1 3 drops by number and tidy all drops
    everything; add --later to wait until that costs nothing. /context undo undoes it.
    """
    what, *numbers = [word for word in args.split() if word != LATER] or [""]
    if what not in ("", "drop", "all") or bool(numbers) != (what == "drop"):
        return Text("Usage: /tidy [drop N … | all]", error=True)
    found = await dead_weight_in(agent)
    if not found:
        return Text(NOTHING)
    if not what:
        return OpenScreen("tidy")
    ticked = found if what == "all" else _numbered(found, _LISTED.get(agent), numbers)
    return Text(await drop_all(agent, ticked, later=LATER in args.split()))


async def dead_weight_in(agent: Agent) -> list[DeadWeight]:
    """What of the conversation could go, the largest first."""
    from agent_tui.context.tidy import dead_weight

    conversation = agent.conversation
    state, sizes = conversation.info.state, message_tokens(agent.context.usage())
    kept = frozenset((*state.pinned_messages, *state.drops_waiting))
    return await asyncio.to_thread(dead_weight, list(conversation.path), list(conversation.view()), sizes, kept)


def ids_of(ticked: Iterable[DeadWeight]) -> list[str]:
    return [message_id for one in ticked for message_id in one.message_ids]


async def drop_all(agent: Agent, ticked: Sequence[DeadWeight], *, later: bool = False) -> str:
    """Drops these; returns the line for the user, which names them. Raises AgentError."""
    said = await agent.edits.drop(ids_of(ticked), later=later)
    named = [one_line(one.what, SHOWN) for one in ticked[:MOST_NAMED]]
    more = [f"{len(ticked) - MOST_NAMED:,} more"] if len(ticked) > MOST_NAMED else []
    return f"{said} Calls: {'; '.join([*named, *more])}. /context undo restores them."


def tidy_lines(agent: Agent, found: Sequence[DeadWeight]) -> list[str]:
    """The list as plain mode says it, with what dropping all of it would bring and cost."""
    if not found:
        return [NOTHING]
    _LISTED[agent] = [one.message_ids for one in found]
    lines = [
        f"{number}. {one_line(one.what, SHOWN)}: {tokens(one.tokens, True)} tokens, {one.why}"
        for number, one in enumerate(found, 1)
    ]
    ways = f"Run /tidy drop 1 for the first, /tidy all for everything; add {LATER} to wait until that costs nothing."
    return [f"{plural(len(found), 'call')} to drop:", *lines, agent.edits.plan(ids_of(found)).line, ways]


def _numbered(
    found: Sequence[DeadWeight], listed: Sequence[Sequence[str]] | None, words: Sequence[str]
) -> list[DeadWeight]:
    """Those of what is found now that had these numbers in the list that was told last. Raises ConfigError."""
    now = {tuple(one.message_ids): one for one in found}
    shown = list(now) if listed is None else list(map(tuple, listed))
    chosen: list[DeadWeight] = []
    for word in dict.fromkeys(words):
        if not (word.isdecimal() and len(word) < 6 and 1 <= int(word) <= len(shown)):
            raise ConfigError(f"No such number: {one_line(word, 20)}. The list has 1 to {len(shown)}.")
        if (one := now.get(shown[int(word) - 1])) is None:
            raise ConfigError(f"Cannot drop {word} any more. Run /tidy for a new list.")
        chosen.append(one)
    return chosen
