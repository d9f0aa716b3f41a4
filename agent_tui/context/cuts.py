"""Messages that are sent shorter than they are: results cleared or clipped, attachments taken out, placeholders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeGuard

from agent_tui.context.tokens import CLEARED_RAW, cleared_raw, counted_chars
from agent_tui.models.calibration import KINDS, raw_total
from agent_tui.models.messages import (
    CLEARED_RESULT,
    RECALL_TOOL,
    SUMMARY_ID,
    AttachmentPart,
    Message,
    Part,
    SummaryPart,
    TextPart,
    cleared_text,
    find_saved_note,
    recall_id,
    without_notes,
)
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.numbers import plural

CLIP_MIN_CHARS = 400
"""A clipped result keeps at least this much, its notes included, so that the model sees what it was."""
TAIL_SHARE = 4
"""One part in this many of what is kept is the end, where a command says how it went."""


def clip_text(text: str, limit: int, recall: str = "") -> str:
    """At most ``limit`` characters of a result: its beginning, its end, how much is missing, and where the whole
    output was saved, when a tool has noted that. The notes count as well; they are never cut themselves. ``recall`` is
    the id by which the tool of that name brings it back; empty where it was not offered."""
    if len(text) <= limit:
        return text
    saved = find_saved_note(text)
    # The longest form of the note decides about the room, so that the number in it cannot change its own length.
    notes = [_clip_note(len(text), recall, len(text)), *([saved] if saved else [])]
    room = max(0, limit - sum(len(n) + 2 for n in notes))
    tail = room // TAIL_SHARE
    head = room - tail
    notes[0] = _clip_note(len(text) - room, recall, head)
    if saved and (saved in text[:head] or saved in text[len(text) - tail :]):
        notes.pop()
    pieces = [text[:head], *notes, text[len(text) - tail :] if tail else ""]
    return "\n".join(p for p in pieces if p)


def _clip_note(left_out: int, recall: str, offset: int) -> str:
    way = f"; {RECALL_TOOL} id {recall} offset {offset}" if recall else ""
    return f"[clipped: {left_out:,} more characters not sent{way}]"


def plan_clips(messages: Sequence[Message], tokens: Mapping[str, int], room: int) -> dict[str, int]:
    """Characters to keep of each result that has to be cut, so that together they fit ``room`` tokens. Only the
    largest are cut, only as far as their share of the excess asks for, and none below ``CLIP_MIN_CHARS``."""
    results = {m.id: m for m in messages if m.tool_result is not None}
    total = sum(tokens.get(i, 0) for i in results)
    clips: dict[str, int] = {}
    if total <= room:
        return clips
    # Results that fit an even share stay whole; what they leave over is shared by the larger ones.
    left = max(0, room)
    waiting = sorted(results, key=lambda i: tokens.get(i, 0))
    for position, message_id in enumerate(waiting):
        cost = tokens.get(message_id, 0)
        share = left // (len(waiting) - position)
        if cost <= share:
            left -= cost
            continue
        result = results[message_id].tool_result
        text = result.text if result is not None else ""
        chars = max(CLIP_MIN_CHARS, int(len(text) * share / max(1, cost)))
        if chars < len(text):
            clips[message_id] = chars
        left -= share
    return clips


CLEARED_SUFFIX = "#cleared"
CLIP_SUFFIX = "#clip"
CUT = (CLEARED_SUFFIX, CLIP_SUFFIX)
RECALL_SUFFIX = "+recall"
"""Behind one of the two: what is sent names the id by which ``recall`` brings the rest back."""
DROPPED_SUFFIX = "#dropped"
"""A message of the user's that was dropped and leaves ``DROPPED_MESSAGE`` in its place."""
WITHOUT_SUFFIX = "#without"
"""A message of which the user dropped the attachments with these numbers, alone or behind one of ``CUT``."""
DROPPED_MESSAGE = "[Message dropped]"
DROPPED_RAW = 4
DROPPED_ATTACHMENT = "[dropped]"
DROPPED_ATTACHMENT_RAW = 3


def whole_ids(record: CompactionRecord) -> list[str]:
    """The messages that a record is about, without those of which it means attachments alone."""
    return [i for i in record.message_ids if i not in record.attachments]


def parts_of(record: CompactionRecord) -> list[str]:
    """What a record is about: messages by their ids, and attachments as ``msg_1#2``."""
    numbered = (f"{id}#{number}" for id, numbers in record.attachments.items() for number in numbers)
    return [*whole_ids(record), *numbered]


def edited_words(record: CompactionRecord) -> str:
    """What a drop or restore is about: ``2 messages, 1 attachment``; of a summary it is a note that it carried."""
    if record.message_ids and all(id.startswith(f"{SUMMARY_ID}_") for id in record.message_ids):
        return "a note of the agent's"
    return parts_words(len(whole_ids(record)), sum(map(len, record.attachments.values())))


def parts_words(messages: int, attachments: int) -> str:
    """So many messages and attachments in words."""
    said = [plural(messages, "message")] if messages or not attachments else []
    return ", ".join([*said, plural(attachments, "attachment")] if attachments else said)


def dropped_ids(records: Sequence[CompactionRecord]) -> frozenset[str]:
    """The messages that the user dropped and did not restore, by the records in force."""
    return dropped_by([record for record in records if record.active])


def dropped_by(records: Iterable[CompactionRecord]) -> frozenset[str]:
    """The same by all of these records, in the order in which they were made."""
    gone: set[str] = set()
    for record in records:
        if record.kind == "drop":
            gone.update(whole_ids(record))
        elif record.kind == "restore":
            gone.difference_update(whole_ids(record))
    return frozenset(gone)


def dropped_attachments(records: Iterable[CompactionRecord]) -> dict[str, list[int]]:
    """The numbers of the attachments that were dropped from messages, and not restored, by all of these records."""
    gone: dict[str, set[int]] = {}
    for record in records:
        for message_id, numbers in record.attachments.items():
            if record.kind == "drop":
                gone.setdefault(message_id, set()).update(numbers)
            else:
                gone.get(message_id, set[int]()).difference_update(numbers)
    return {message_id: sorted(numbers) for message_id, numbers in gone.items() if numbers}


def placeholder(message: Message) -> Message:
    return replace(message, parts=[TextPart(DROPPED_MESSAGE)], raw_tokens=DROPPED_RAW, counts=None)


def treated(message: Message, state: str) -> Message:
    """The message as it is sent in one of the states of ``cut_states`` or ``drop_states``; one that a clip would not
    make shorter stays itself."""
    state, _, numbers = state.partition(WITHOUT_SUFFIX)
    if numbers:
        message = _without_attachments(message, {int(number) for number in numbers.split(",")})
    recall = recall_id(message.id) if state.endswith(RECALL_SUFFIX) else ""
    state = state.removesuffix(RECALL_SUFFIX)
    if state == DROPPED_SUFFIX:
        return placeholder(message)
    if state.startswith(CLEARED_SUFFIX):
        return cleared_message(message, recall)
    if state.startswith(CLIP_SUFFIX):
        return clipped_message(message, int(state.removeprefix(CLIP_SUFFIX)), recall)
    return message


def _without_attachments(message: Message, numbers: Set[int]) -> Message:
    """The message with a placeholder under the name of each of these attachments, counted from 1; a summary without
    these of the model's notes."""
    if any(isinstance(part, SummaryPart) for part in message.parts):
        carried = (replace(p, text=without_notes(p.text, numbers)) if _is_pinned(p) else p for p in message.parts)
        return with_parts(message, [part for part in carried if not _is_pinned(part) or part.text])
    seen, kept, parts = 0, list[Part](), list[Part]()
    for part in message.parts:
        seen += isinstance(part, AttachmentPart)
        if isinstance(part, AttachmentPart) and seen in numbers:
            parts.append(AttachmentPart(part.name, "text/plain", text=DROPPED_ATTACHMENT))
        else:
            parts.append(part)
            kept.append(part)
    left, gone = with_parts(message, kept), len(parts) - len(kept)
    counts = left.counts
    if counts is not None:
        at = KINDS.index("symbols")
        counts = (*counts[:at], counts[at] + gone * DROPPED_ATTACHMENT_RAW, *counts[at + 1 :])
    raw = left.raw_tokens if counted_chars(left) else 0
    return replace(
        left, parts=parts, counts=counts, raw_tokens=None if raw is None else raw + gone * DROPPED_ATTACHMENT_RAW
    )


def _is_pinned(part: Part) -> TypeGuard[SummaryPart]:
    return isinstance(part, SummaryPart) and part.pinned


def cleared_message(message: Message, recall: str = "") -> Message:
    """The tool message with its result replaced by the placeholder, which says how ``recall`` brings it back where that
    was offered; attachments go with it."""
    result = message.tool_result
    if result is None:
        return message
    text = cleared_text(recall, result.text) if recall else CLEARED_RESULT
    raw = cleared_raw(result.text) if recall else CLEARED_RAW
    return replace(message, parts=[replace(result, text=text, display=None)], raw_tokens=raw, counts=None)


def clipped_message(message: Message, limit: int, recall: str = "") -> Message:
    """The tool message with its result cut to ``limit`` characters, notes included. Shorter ones stay."""
    result = message.tool_result
    if result is None or len(result.text) <= limit:
        return message
    text = clip_text(result.text, max(0, limit), recall)
    if len(text) >= len(result.text):
        return message
    parts: list[Part] = [replace(p, text=text) if p is result else p for p in message.parts]
    return with_parts(message, parts)


def cut_states(records: Sequence[CompactionRecord]) -> dict[str, str]:
    """How these records have messages sent that stay, by id: the suffix of the key under which they are. Results are
    cleared or clipped by a compaction, or were dropped without their call; others lost attachments."""
    cleared: dict[str, str] = {}
    clips: dict[str, tuple[int, str]] = {}
    for record in records:
        if record.kind != "prune":
            continue
        named = RECALL_SUFFIX if record.recall else ""
        for message_id in record.message_ids:
            if message_id not in record.clips:
                cleared.setdefault(message_id, CLEARED_SUFFIX + named)
        for message_id, limit in record.clips.items():
            if message_id not in clips or limit < clips[message_id][0]:
                clips[message_id] = limit, named
    states = {**{i: f"{CLIP_SUFFIX}{limit}{named}" for i, (limit, named) in clips.items()}, **cleared}
    states.update(dict.fromkeys(dropped_by(records), CLEARED_SUFFIX))
    for message_id, numbers in dropped_attachments(records).items():
        state = states.get(message_id, "")
        if not state.startswith(CLEARED_SUFFIX):
            states[message_id] = f"{state}{WITHOUT_SUFFIX}{','.join(map(str, numbers))}"
    return states


def with_parts(message: Message, parts: list[Part]) -> Message:
    """A copy with other parts; its raw count is taken over in proportion to the characters that are left."""
    changed = replace(message, parts=parts, raw_tokens=None, counts=None)
    before, after = counted_chars(message), counted_chars(changed)
    if message.counts is not None and before:
        changed.counts = tuple(min(count, -(-count * after // before)) for count in message.counts)
        changed.raw_tokens = raw_total(changed.counts)
    elif message.raw_tokens is not None and before:
        changed.raw_tokens = min(message.raw_tokens, -(-message.raw_tokens * after // before))
    return changed
