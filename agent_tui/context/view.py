"""Builds what would be sent: the stored conversation with its compactions applied, always valid for a provider.

Valid means: each tool call has exactly one result, directly after the message that made it; there is no result
without its call; nothing is empty and nothing is still streaming.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from operator import is_

from agent_tui.context.cuts import DROPPED_SUFFIX, cut_states, dropped_by, dropped_ids, placeholder, treated, with_parts
from agent_tui.context.tokens import INTERRUPTED_RAW
from agent_tui.models.messages import (
    INTERRUPTED_RESULT,
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import SentMessage
from agent_tui.models.search import is_paused
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.strict_json import json_or

GONE_SUFFIX = "#gone"
"""A message that was dropped, where what is sent is compared with what was."""
ASKED_SUFFIX = "#asked"
ASKED = "[see the summary]"
ASKED_RAW = 5
TRIMMED_SUFFIX = "#trimmed"
INTERRUPTED_SUFFIX = "#interrupted"


DROP_ID, RESTORE_ID = "drop", "back"
"""How the ids of the records of these two kinds begin: steps tell them apart by that alone."""
EDIT_IDS = (f"{DROP_ID}_", f"{RESTORE_ID}_")


def build_view(
    path: Sequence[Message], records: Sequence[CompactionRecord], summaries: Mapping[str, Message]
) -> list[SentMessage]:
    """The messages of the next request, oldest first. ``path`` is root to head; stored messages are not changed.

    Each summary in force stands in the place of its messages; active prune records clear or clip tool results, and what
    the user dropped is not in it. Pure: equal arguments give equal views, so ids and keys may be compared between
    calls.
    """
    return without(_whole(path, records, summaries), dropped_ids(records))


def _whole(
    path: Sequence[Message], records: Sequence[CompactionRecord], summaries: Mapping[str, Message]
) -> list[SentMessage]:
    """The view with what the user dropped."""
    replaced = _replaced(path, records, summaries)
    states = cut_states([r for r in records if r.active])
    if not replaced:
        return _valid([m for m in path if m.status != "streaming"], states)
    entries: list[Message] = []
    placed: set[str] = set()
    for message in path:
        if (summary := replaced.get(message.id)) is not None:
            if summary.id not in placed:
                entries.append(summary)
                placed.add(summary.id)
        elif message.status != "streaming":
            entries.append(message)
    return list(_asked(_valid(entries, states)))


def _asked(view: Iterable[SentMessage]) -> Iterator[SentMessage]:
    """The view with a word of the user's before each answer that would stand behind another one: what was restored may
    have been said between messages that a summary stands for, and many models refuse that."""
    before: Message | None = None
    for item in view:
        message = item.message
        if message.role == "assistant" and before is not None and _is_last_word(before):
            key = f"{message.id}{ASKED_SUFFIX}"
            yield SentMessage(Message(key, "user", [TextPart(ASKED)], raw_tokens=ASKED_RAW), key)
        yield item
        before = message


def without_dropped(
    path: Sequence[Message], records: Sequence[CompactionRecord], but: Set[str] = frozenset()
) -> list[Message]:
    """The conversation without what the user dropped of it; what went without its call or its text has the placeholder
    that is sent. Messages of ``but`` stay as a whole."""
    active = [record for record in records if record.active]
    gone = dropped_by(active) - but
    if not gone and not any(record.attachments for record in active):
        return list(path)
    states, kept, calls_gone = cut_states([r for r in active if r.kind != "prune"]), list[Message](), False
    for message in path:
        if message.role == "assistant":
            calls_gone = message.id in gone
        if message.id in gone and (message.role != "tool" or calls_gone):
            continue
        state = "" if message.id in but else states.get(message.id, "")
        kept.append(treated(message, state) if state else message)
    return kept


def drop_states(view: Sequence[SentMessage], gone: Set[str]) -> dict[str, str]:
    """How the messages of a view are sent without these, by id: not at all, or as a placeholder. Results go with the
    answer that made their calls; one that was dropped alone has its placeholder already (``cut_states``). Where an
    answer would stand at the beginning, or behind another one, what the user asked before it leaves the placeholder:
    many models refuse that."""
    states: dict[str, str] = {}
    before: Message | None = None
    asked = ""
    calls_gone = False
    for item in view if gone else ():
        message = item.message
        if message.role == "assistant":
            calls_gone = message.id in gone
        if calls_gone if message.role != "user" else message.id in gone:
            states[message.id] = GONE_SUFFIX
            asked = message.id if message.role == "user" else asked
            continue
        if message.role == "assistant" and asked and (before is None or _is_last_word(before)):
            states[asked] = DROPPED_SUFFIX
        if message.role != "tool":
            asked = ""
        before = message
    return states


def without(view: Sequence[SentMessage], gone: Set[str]) -> list[SentMessage]:
    """The view without these messages."""
    states = drop_states(view, gone)
    if not states:
        return list(view)
    kept = (item for item in view if states.get(item.message.id) != GONE_SUFFIX)
    return [dropped_message(item) if item.message.id in states else item for item in kept]


def _is_last_word(message: Message) -> bool:
    return message.role == "assistant" and not message.tool_calls


def dropped_message(item: SentMessage) -> SentMessage:
    """What stands in the place of a message of the user's that had to leave something."""
    stored = item.stored or item.message
    return SentMessage(placeholder(stored), stored.id + DROPPED_SUFFIX, stored)


class ViewBuilder:
    """Builds the views of one growing conversation; what was settled at the last build is taken over.

    Everything before the last answer is settled: only after it results may still come in. The views are equal to
    those of ``build_view``.
    """

    def __init__(self) -> None:
        self._path: list[Message] = []
        self._sent: list[SentMessage] = []
        self._records: list[tuple[str, bool]] = []

    def build(
        self, path: Sequence[Message], records: Sequence[CompactionRecord], summaries: Mapping[str, Message]
    ) -> list[SentMessage]:
        """See ``build_view``."""
        whole, gone = self._whole(path, records, summaries), dropped_ids(records)
        return without(whole, gone) if gone else whole

    def _whole(
        self, path: Sequence[Message], records: Sequence[CompactionRecord], summaries: Mapping[str, Message]
    ) -> list[SentMessage]:
        known = [(r.id, r.active) for r in records]
        settled = len(self._path)
        if known != self._records or not all(map(is_, self._path, path)) or settled > len(path):
            self._path, self._sent, self._records, settled = [], [], known, 0
        if records and _replaced(path, records, summaries):
            self._path, self._sent = [], []
            return _whole(path, records, summaries)
        states = cut_states([r for r in records if r.active])
        tail = path[settled:]
        last = max((i for i, m in enumerate(tail) if m.role == "assistant" and m.status != "streaming"), default=0)
        closed = _valid(list(tail[:last]), states)
        rest = _valid([m for m in tail[last:] if m.status != "streaming"], states)
        if all(m.status != "streaming" for m in tail[:last]) and all(_settled(item) for item in closed):
            self._path.extend(tail[:last])
            self._sent.extend(closed)
            return self._sent + rest
        return _whole(path, records, summaries)


def summaries_in_force(
    path: Sequence[Message], records: Sequence[CompactionRecord], summaries: Mapping[str, Message]
) -> list[CompactionRecord]:
    """The summary records in force on this path, the newest first: active ones whose messages are all on it, but for
    those of which a newer one replaces a message as well."""
    candidates = [
        r for r in records if r.kind == "summary" and r.active and r.message_ids and r.summary_id in summaries
    ]
    if not candidates:
        return []
    on_path, taken, found = {m.id for m in path}, set[str](), list[CompactionRecord]()
    for _, record in sorted(enumerate(candidates), key=lambda pair: (pair[1].created, pair[0]), reverse=True):
        if on_path.issuperset(record.message_ids) and taken.isdisjoint(record.message_ids):
            taken.update(record.message_ids)
            found.append(record)
    return found


def active_prune_ids(records: Sequence[CompactionRecord]) -> list[str]:
    """Ids of the records in force that change how messages are sent, or whether; a step stores them so that later
    changes can be told apart."""
    return [r.id for r in records if r.kind != "summary" and r.active]


def _replaced(
    path: Sequence[Message], records: Sequence[CompactionRecord], summaries: Mapping[str, Message]
) -> dict[str, Message]:
    """The summary that stands for each message that one in force replaces."""
    force = summaries_in_force(path, records, summaries)
    return {i: summaries[r.summary_id] for r in force if r.summary_id is not None for i in r.message_ids}


def _valid(entries: list[Message], states: dict[str, str]) -> list[SentMessage]:
    sent: list[SentMessage] = []
    for index, message in enumerate(entries):
        role = message.role
        if role == "tool":
            continue
        if role == "user":
            if _user_content(message):
                sent.append(_sent(message, states.get(message.id, "")))
            continue
        calls = [p for p in message.parts if p.type == "tool_call"]
        results = _take_results(entries, index, calls) if calls else []
        answer = message
        if calls and message.status != "complete":
            answer, results = _without_unfinished(message, calls, results)
            calls = answer.tool_calls
        if not calls and not _text(answer):
            continue
        if answer is message:
            sent.append(SentMessage(message, message.id))
        else:
            sent.append(SentMessage(answer, message.id + TRIMMED_SUFFIX, message))
        for number, (call, result) in enumerate(zip(calls, results, strict=True)):
            sent.append(_sent_result(message, number, call, result, states))
    return sent


def _take_results(entries: list[Message], index: int, calls: list[ToolCallPart]) -> list[Message | None]:
    """The stored result of each call, looked for up to the next assistant message; each is used once."""
    waiting: dict[str, list[Message]] = {}
    for position in range(index + 1, len(entries)):
        candidate = entries[position]
        if candidate.role == "assistant":
            break
        if candidate.role == "tool":
            for part in candidate.parts:
                if part.type == "tool_result":
                    waiting.setdefault(part.call_id, []).append(candidate)
                    break
    return [waiting[c.call_id].pop(0) if waiting.get(c.call_id) else None for c in calls]


def _sent_result(
    message: Message, number: int, call: ToolCallPart, result: Message | None, states: dict[str, str]
) -> SentMessage:
    if result is None:
        key = f"{message.id}{INTERRUPTED_SUFFIX}{number}"
        part = ToolResultPart(call.call_id, call.name, INTERRUPTED_RESULT, is_error=True)
        return SentMessage(Message(key, "tool", [part], parent_id=message.id, raw_tokens=INTERRUPTED_RAW), key)
    return _sent(result, states.get(result.id, ""))


def _sent(message: Message, state: str) -> SentMessage:
    sent = treated(message, state) if state else message
    return SentMessage(message, message.id) if sent is message else SentMessage(sent, message.id + state, message)


def _without_unfinished(
    message: Message, calls: list[ToolCallPart], results: list[Message | None]
) -> tuple[Message, list[Message | None]]:
    """A cut-off answer without the calls it never finished writing: no result, and no JSON object as arguments."""
    keep = [r is not None or isinstance(json_or(c.arguments, None), dict) for c, r in zip(calls, results, strict=True)]
    if all(keep):
        return message, results
    unfinished = {id(c) for c, k in zip(calls, keep, strict=True) if not k}
    parts = [p for p in message.parts if id(p) not in unfinished]
    return with_parts(message, parts), [r for r, k in zip(results, keep, strict=True) if k]


def _text(message: Message) -> bool:
    return is_paused(message) or any(p.type == "text" and p.text.strip() for p in message.parts)


def _settled(item: SentMessage) -> bool:
    """Returns whether a message as it is sent need not wait for the count of the stored one."""
    return item.stored is None or item.message.raw_tokens is not None


def _user_content(message: Message) -> bool:
    return any(
        p.type == "attachment" or ((p.type == "text" or p.type == "summary") and p.text.strip()) for p in message.parts
    )
