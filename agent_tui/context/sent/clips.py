"""Clipping: large tool results of the newest turn are sent cut to size, with a line that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_tui.models.messages import Message
from agent_tui.models.saved_output import find_saved_note

CLIP_MIN_CHARS = 400
"""A clipped result keeps at least this much, its notes included, so that the model sees what it was."""

TAIL_SHARE = 4
"""One part in this many of what is kept is the end, where a command says how it went."""


def clip_text(text: str, limit: int) -> str:
    """At most ``limit`` characters of a result: its beginning, its end, how much is missing, and where the whole
    output was saved, when a tool has noted that. The notes count as well; they are never cut themselves."""
    if len(text) <= limit:
        return text
    saved = find_saved_note(text)
    # The longest form of the note decides about the room, so that the number in it cannot change its own length.
    notes = [f"[clipped: {len(text):,} more characters not sent]", *([saved] if saved else [])]
    room = max(0, limit - sum(len(n) + 2 for n in notes))
    tail = room // TAIL_SHARE
    head = room - tail
    notes[0] = f"[clipped: {len(text) - room:,} more characters not sent]"
    if saved and (saved in text[:head] or saved in text[len(text) - tail :]):
        notes.pop()
    pieces = [text[:head], *notes, text[len(text) - tail :] if tail else ""]
    return "\n".join(p for p in pieces if p)


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
