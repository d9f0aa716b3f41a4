"""Which messages an edit is about: what the ids name, what goes with them, and what cannot go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_tui.context.cuts import CLEARED_SUFFIX, DROPPED_SUFFIX, dropped_attachments, dropped_ids, parts_of
from agent_tui.context.tidy import units_of
from agent_tui.engine.conversation import Conversation
from agent_tui.errors import AgentError
from agent_tui.models.messages import TOLD, Message, attachments_of, recall_id
from agent_tui.text.clean import one_line

SHOWN = 60
"""Characters of a message that tell which it is."""


class EditTargets:
    """The messages of the conversation in force, and their attachments, by the ids that people write; ``in_turn`` says
    whether the model is at work on it."""

    def __init__(self, conversation: Callable[[], Conversation], in_turn: Callable[[], bool]) -> None:
        self._conversation = conversation
        self._in_turn = in_turn

    def range(self, first: str, last: str) -> list[str]:
        """The ids of all messages from one to another, both included. Raises AgentError."""
        path = self._conversation().path
        places = sorted(path.index(self.named(each)) for each in (first, last))
        return [message.id for message in path[places[0] : places[1] + 1]]

    def ends_of_fold(self, first: str, last: str) -> tuple[str, str]:
        """The messages with these ids, short or long, or of what is left between them. Raises AgentError."""
        conversation = self._conversation()
        named = {i: each for each in conversation.summaries for i in (each, recall_id(each))}
        ends = named.get(first) or self.named(first).id, named.get(last) or self.named(last).id
        gone = dropped_ids(conversation.records)
        if gone.isdisjoint(ends):
            return ends
        stands = {r.summary_id: r.message_ids for r in conversation.records if r.kind == "summary"}
        ids = [message.id for message in conversation.path]
        places = [ids.index(each) for end in ends for each in stands.get(end, [end]) if each in ids]
        if not (left := [each for each in ids[min(places) : max(places) + 1] if each not in gone]):
            raise AgentError("Nothing to fold: every message in that range is dropped.")
        return left[0], left[-1]

    def message_ids(self, ids: Sequence[str]) -> set[str]:
        """The whole ids of messages, or of those whose parts are named. Raises AgentError for what there is not."""
        whole = {message.id for message in self._conversation().path}
        heads = (id.partition("#")[0] for id in ids)
        return {head if head in whole else self.named(head).id for head in heads}

    def named(self, id: str) -> Message:
        """The message of the conversation with an id, short or long. Raises AgentError."""
        conversation, id = self._conversation(), id.partition("#")[0]
        found = [m for m in conversation.path if id in (m.id, recall_id(m.id)) or _is_result_of(m, id)]
        if len(found) == 1:
            return found[0]
        shown = one_line(id, SHOWN)
        if found:
            raise AgentError(f"Several messages have the id {shown}: {', '.join(m.id for m in found)}.")
        if any(id in (each, recall_id(each)) for each in conversation.summaries):
            raise AgentError(f"{shown} is a summary. Run /compact undo to send the original messages again.")
        if any(id in (each, recall_id(each)) for each in conversation.messages):
            raise AgentError(f"{shown} is on another branch. Run /rewind to go there.")
        raise AgentError(f"No such message: {shown}.")

    def _parts_named(self, ids: Sequence[str]) -> tuple[set[str], dict[str, set[int]]]:
        """The messages that these ids name, and the attachments of messages (``ID#2``) by number. Raises AgentError."""
        by_id = {message.id: message for message in self._conversation().path}
        named, attachments = set[str](), dict[str, set[int]]()
        for each in ids:
            message = by_id.get(each) or self.named(each)
            number = each.rpartition("#")[2] if "#" in each else ""
            if not number.isdecimal():
                named.add(message.id)
                continue
            has = attachments_of(message)
            if len(number) > 4 or not 1 <= int(number) <= len(has):
                there = {0: "no attachment", 1: "1 attachment, #1"}.get(len(has), f"attachments #1 to #{len(has)}")
                raise AgentError(f"{label(message)} has {there}.")
            attachments.setdefault(message.id, set()).add(int(number))
        return named, attachments

    def droppable(self, ids: Sequence[str]) -> list[str]:
        """The ids of all that goes with these messages and attachments, in their order. A result goes alone, and the
        last one that is left with its call. Raises AgentError where one cannot go, or nothing is left to go."""
        conversation, in_turn = self._conversation(), self._in_turn()
        path, pinned = conversation.path, conversation.info.state.pinned_messages
        named, attachments = self._parts_named(ids)
        gone = dropped_ids(conversation.records)
        sent = {item.message.id: item.key for item in conversation.view() if not item.key.endswith(DROPPED_SUFFIX)}
        asked = next((m for m in reversed(path) if m.role == "user"), None)
        open_calls = {call.call_id for call in conversation.open_calls()} if in_turn else set[str]()
        wanted: list[str] = []
        for unit in units_of(path):
            mine = [m for m in unit if m.id in named or m.id in attachments]
            if not mine:
                continue
            first = unit[0]
            if first.status == "streaming" or any(call.call_id in open_calls for call in first.tool_calls):
                raise AgentError(f"{label(first)} is still running its tools. Drop it when they have finished.")
            if in_turn and first is asked:
                raise AgentError("Your newest message is being answered. Drop it after this turn.")
            left = [m.id for m in unit[1:] if m.id in sent and m.id not in gone]
            whole = first.id in named or (bool(left) and named.issuperset(left))
            if whole and (kept := next((m for m in unit if m.id in pinned), None)) is not None:
                raise AgentError(f"{label(kept)} is pinned. Run /pin {recall_id(kept.id)} to unpin it first.")
            if whole:
                wanted += [m.id for m in unit] if first.id in sent else []
                continue
            for message in mine:
                key = sent.get(message.id, CLEARED_SUFFIX)
                if CLEARED_SUFFIX in key:
                    continue
                if message.id in named:
                    wanted.append(message.id)
                else:
                    wanted += self._attachments_left(message, attachments[message.id])
        if not wanted:
            raise AgentError("Nothing to drop: already dropped, or replaced by a summary.")
        return wanted

    def _attachments_left(self, message: Message, numbers: set[int]) -> list[str]:
        """Those of a message's attachments that are still sent. Raises AgentError where one is not the user's."""
        has = attachments_of(message)
        if any(has[number - 1].name in TOLD for number in numbers):
            raise AgentError("Notes to the model can only be dropped with their message.")
        gone = dropped_attachments(r for r in self._conversation().records if r.active).get(message.id, [])
        return [f"{message.id}#{number}" for number in sorted(numbers.difference(gone))]

    def restorable(self, ids: Sequence[str]) -> list[str]:
        """The ids of all that comes back with these: with an answer the results of its calls, and with a result its
        call. Raises AgentError where nothing does."""
        named, attachments = self._parts_named(ids)
        dropped, back = self.dropped(), set[str]()
        for unit in units_of(self._conversation().path):
            ids_of, first = {message.id for message in unit}, unit[0].id
            if first in named:
                back |= ids_of
            elif mine := ids_of & named:
                back |= {first, *mine}
        # A message brings back its attachments where it is sent itself.
        whole = named.difference(dropped)
        back |= {f"{id}#{number}" for id, numbers in attachments.items() for number in numbers}
        wanted = [each for each in dropped if each in back or ("#" in each and each.partition("#")[0] in whole)]
        if wanted:
            return wanted
        raise AgentError("Nothing to restore.")

    def dropped(self) -> list[str]:
        """What is dropped of the conversation and what waits for that, in its order; attachments as ``msg_1#2``."""
        conversation = self._conversation()
        active = [record for record in conversation.records if record.active]
        gone, parts = dropped_ids(active), dropped_attachments(active)
        waiting = set(marks_of(conversation))
        found: list[str] = []
        for message in conversation.path:
            numbers = range(1, len(attachments_of(message)) + 1) if message.role != "assistant" else ()
            found += [message.id] if message.id in gone or message.id in waiting else []
            for number in numbers:
                each = f"{message.id}#{number}"
                found += [each] if number in parts.get(message.id, ()) or each in waiting else []
        return found


def marks_of(conversation: Conversation) -> dict[str, float]:
    """What of the conversation is dropped once that is cheap, with the time at which that was asked for."""
    if not (waiting := conversation.info.state.drops_waiting):
        return {}
    there, done = {message.id for message in conversation.path}, dict[str, float]()
    for record in conversation.every_record:
        if record.reason == "edit" and record.kind in ("drop", "prune"):
            # What is marked and dropped since was carried out when the program was killed.
            done.update(dict.fromkeys(parts_of(record), record.created))
    return {
        each: asked
        for each, asked in waiting.items()
        if each.partition("#")[0] in there and asked > done.get(each, 0.0)
    }


def _is_result_of(message: Message, call_id: str) -> bool:
    result = message.tool_result
    return result is not None and result.call_id == call_id


def label(message: Message) -> str:
    """How a message is called in a sentence."""
    words = one_line(message.text.strip(), SHOWN)
    return f"“{words}”" if words else f"Message {recall_id(message.id)}"
