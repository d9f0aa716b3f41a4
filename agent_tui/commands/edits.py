"""Edits of the context in words: what ``/context drop ID`` and ``agent-tui context drop ID`` have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_tui.context.compaction.plan import message_tokens
from agent_tui.context.cuts import DROPPED_ATTACHMENT, DROPPED_MESSAGE, parts_words
from agent_tui.errors import OPEN_ELSEWHERE, ConfigError
from agent_tui.models.messages import TOLD, attachments_of, recall_id, summary_text
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, tokens

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.engine.edits import Dropped
    from agent_tui.models.context import ContextUsage
    from agent_tui.models.messages import Message

EDITS = {
    "drop": "stop sending messages, attachments (ID#1) or tool results",
    "fold": "replace a range with a summary that the model writes",
    "restore": "send dropped messages again",
    "pin": "keep messages word for word in every compaction",
    "unpin": "unpin messages",
    "undo": "undo the newest edit",
}
"""What can be done to the context by hand."""
IDS = "a message, ID#1 for its first attachment, or a range ID..ID; `agent-tui context --rows` lists them"


class NotFoldedError(ConfigError):
    """The model gave no summary for a fold: nothing has changed. Where events are shown, it was said."""


RANGE = ".."
SHOWN = 60
FLAGS = {"drop": "--yes and --later", "fold": "--yes"}
"""What ``/context`` takes behind the ids."""


def ids_of(edit: str, words: Sequence[str], flags: Sequence[str] = ()) -> list[str]:
    """The words without ``flags``. Raises AgentError for a flag that there is not."""
    ids = [word for word in words if word not in flags]
    if unknown := next((word for word in ids if word.startswith("-")), None):
        known = f"{edit} takes {FLAGS[edit]}" if edit in FLAGS else f"{edit} takes only ids"
        raise ConfigError(f"Unknown flag {one_line(unknown, SHOWN)}: {known}.")
    return ids


async def from_shell(agent: Agent, edit: str, words: Sequence[str], *, dry: bool = False, later: bool = False) -> str:
    """Does an edit from outside the chat, or with ``dry`` says what it would do. Raises AgentError, also where there is
    no session, or the chat that has it open can do it."""
    if not agent.conversation.path:
        raise ConfigError("Nothing to edit: no session here yet.")
    if dry:
        return await told(agent, edit, words)
    if agent.conversation.read_only:
        there = one_line(" ".join(["/context", edit, *words]), 2 * SHOWN)
        raise ConfigError(f"This session is {OPEN_ELSEWHERE}: run {there} there.")
    return await edited(agent, edit, words, later=later)


def named(agent: Agent, words: Sequence[str]) -> list[str]:
    """The ids that are meant: short or long ones, and all between two (``ID..ID``). Raises AgentError."""
    ids: list[str] = []
    for word in words:
        first, between, last = word.partition(RANGE)
        if between and not (first and last):
            raise ConfigError(f"A range is two ids: 123456{RANGE}654321, not {one_line(word, SHOWN)}.")
        ids += agent.edits.range(first, last) if between else [first]
    if not ids:
        raise ConfigError("No message ids given. Run /context rows or `agent-tui context --rows` to list them.")
    return ids


async def told(agent: Agent, edit: str, words: Sequence[str]) -> str:
    """The line before a drop or a fold: what it would do, and its price. Raises AgentError."""
    if edit == "fold":
        return (await agent.edits.plan_fold(*_ends(words))).line
    return agent.edits.plan(named(agent, words)).line


def _ends(words: Sequence[str]) -> tuple[str, str]:
    ids = [each for word in words for each in word.split(RANGE)]
    if not 1 <= len(ids) <= 2 or not all(ids):
        raise ConfigError(f"fold takes one message, or one range: 123456{RANGE}654321.")
    return ids[0], ids[-1]


async def edited(agent: Agent, edit: str, words: Sequence[str], *, later: bool = False) -> str:
    """Does one of ``EDITS``; returns the line for the user. Raises AgentError."""
    if edit == "undo":
        if words:
            raise ConfigError("undo takes no ids: it undoes the newest edit. Run restore ID for a dropped message.")
        return await agent.edits.undo()
    if edit == "fold":
        made = len(agent.conversation.own_records)
        line = await agent.edits.fold(*_ends(words))
        if len(agent.conversation.own_records) == made:
            raise NotFoldedError(line)
        return line
    ids = named(agent, words)
    match edit:
        case "drop":
            return await agent.edits.drop(ids, later=later)
        case "restore":
            return await agent.edits.restore(ids)
        case "pin" | "unpin":
            return "\n".join(_pinned(agent, ids, unpin=edit == "unpin"))
    raise ConfigError(f"Unknown edit: {edit}. Choose from {', '.join(EDITS)}.")


def _pinned(agent: Agent, ids: Sequence[str], *, unpin: bool) -> Iterator[str]:
    for each in ids:
        message = agent.pins.message(each)
        if message is None:
            raise ConfigError(f"No such message: {one_line(each, SHOWN)}.")
        yield agent.pins.unpin_message(message) if unpin else agent.pins.pin_message(message)


def message_lines(agent: Agent, usage: ContextUsage, most: int | None = None) -> list[str]:
    """The messages that are sent, the newest ``most`` of them, each with its id and size."""
    costs = message_tokens(usage)
    sent = [item.message for item in agent.conversation.view()]
    shown = sent if most is None else sent[-most:]
    leaves = (leaf for row in usage.rows for leaf in row.leaves())
    sizes = {leaf.part_id: leaf.tokens for leaf in leaves if leaf.attachment is not None}
    lines = ["Messages by id:"] if shown else []
    for message in shown:
        lines.append(_message(message, costs.get(message.id, 0)))
        for number, part in enumerate(attachments_of(message), 1):
            if part.name not in TOLD and part.text != DROPPED_ATTACHMENT:
                lines.append("  " + _attachment(message, number, sizes.get(f"{message.id}#{number}", 0)))
    if hidden := len(sent) - len(shown):
        lines.insert(1, f"  and {plural(hidden, 'earlier one', 'earlier ones')}: agent-tui context --rows")
    return lines


def message_words(message: Message) -> str:
    """Returns the words that tell which message it is."""
    result, calls = message.tool_result, " ".join(call.name for call in message.tool_calls)
    words = f"result of {result.name}" if result is not None else message.text or f"calls {calls}"
    return one_line(summary_text(message) if any(part.type == "summary" for part in message.parts) else words, 200)


def _message(message: Message, size: int) -> str:
    words = message_words(message)
    who = {"user": "you", "assistant": "model", "tool": "tool"}[message.role]
    who = "summary" if any(part.type == "summary" for part in message.parts) else who
    if words == DROPPED_MESSAGE:
        words += ", placeholder"
    return f"  {recall_id(message.id)} {who}: {one_line(words, SHOWN)}: {tokens(size, True, full=True)} tokens"


def _attachment(message: Message, number: int, size: int) -> str:
    name = one_line(attachments_of(message)[number - 1].name, SHOWN)
    return f"  {recall_id(message.id)}#{number} attachment: {name}: {tokens(size, True, full=True)} tokens"


def _gone(each: Dropped) -> str:
    if each.attachment is None:
        return _message(each.message, each.tokens)
    return _attachment(each.message, each.attachment, each.tokens)


def dropped_lines(agent: Agent) -> list[str]:
    """What is dropped, with the ids by which it is restored; empty where nothing is."""
    dropped = agent.edits.dropped()
    gone = [_gone(each) for each in dropped if not each.waiting]
    waiting = [_gone(each) for each in dropped if each.waiting]
    parts = sum(each.attachment is not None for each in dropped if not each.waiting)
    lines = [f"Dropped: {parts_words(len(gone) - parts, parts)}, not sent.", *gone] if gone else []
    return [*lines, "Will be dropped once the cache is cold:", *waiting] if waiting else lines
