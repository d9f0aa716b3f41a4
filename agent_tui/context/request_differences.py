"""Where two requests begin to differ, in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from agent_tui.context.anchor import common_prefix
from agent_tui.context.cuts import CLEARED_SUFFIX, CLIP_SUFFIX
from agent_tui.context.sent_lists import SentLists, SentMessages, is_same_message, message_id
from agent_tui.context.view import DROP_ID, EDIT_IDS
from agent_tui.models.rows import FIXED_ROWS, RowId
from agent_tui.models.steps import FixedPart, Step
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line


@dataclass(slots=True, frozen=True)
class SentHistory:
    """What the ``steps`` of a session sent. ``expected`` is a step that is not sent yet, with what it would send."""

    lists: SentLists
    steps: Sequence[Step]
    expected: tuple[Step, SentMessages] | None = None

    def of(self, step: Step) -> SentMessages | None:
        """What a step sent; None where that is not known."""
        if self.expected is not None and step.id == self.expected[0].id:
            return self.expected[1]
        found = self.lists.of(step, self.steps) if step.sent is not None else None
        return found if found is not None and (found.digests or not found.keys) else None

    def was_sent(self, key: str, step: Step) -> bool:
        """Returns whether another step sent a message, wherever and in whichever form."""
        others = (other.sent_keys for other in self.steps if other.id != step.id and other.sent_keys is not None)
        return any(is_same_message(key, each) for sent in others for each in sent.keys)


Where = Literal["setting", "fixed", "message"]

SERVER, MODEL, THINKING, SCHEMA, CHOICE, CACHE_KEY, OTHERS, TTL, IMAGES, PROGRAM = (
    "server", "model", "thinking", "schema", "tool choice", "cache key", "others", "cache ttl", "images", "program"
)  # fmt: skip
"""Names of the settings of a request (``models.steps.Sent.settings``). Another ``cache ttl`` makes nothing useless."""

_SETTINGS = {
    MODEL: "model switched",
    SERVER: "server changed",
    THINKING: "thinking switched",
    SCHEMA: "answer schema changed",
    CHOICE: "tool choice changed",
    CACHE_KEY: "cache key of another session",
    OTHERS: "request settings changed",
    IMAGES: "images added or removed",
}
_MOST_NAMED = 3


@dataclass(slots=True, frozen=True)
class Difference:
    """The first place where a request differs from an earlier one, in the order in which providers read it: the
    settings that change everything, tools, system prompt, other settings, messages.

    ``name`` is the setting, the row or the message's key, ``index`` how many fixed parts or messages are the same
    before it. ``what`` says it in words.
    """

    where: Where
    name: str
    index: int
    what: str


def sent_fixed(step: Step) -> list[FixedPart]:
    """The fixed parts that went with a step, in the order on the wire."""
    return on_wire(step.fixed)


def on_wire(fixed: Sequence[FixedPart]) -> list[FixedPart]:
    """Those of the fixed parts that are sent, in the order on the wire: what waits for the user's next message is in
    that message, and deferred tools are not sent."""
    sent = [part for part in fixed if part.change != "waiting" and part.deferred_tokens is None and part.chars]
    return sorted(sent, key=lambda part: FIXED_ROWS[part.row].sent)


def differing_settings(before: Step, after: Step) -> list[str]:
    """Names of the settings in which two steps differ; of steps that did not store any only the model is known."""
    old = before.sent.settings if before.sent is not None else {}
    new = after.sent.settings if after.sent is not None else {}
    names = [name for name in _SETTINGS if name in old.keys() | new.keys() and old.get(name) != new.get(name)]
    if IMAGES in names and old.get(PROGRAM) != new.get(PROGRAM):
        # An older program did not count them.
        names.remove(IMAGES)
    if MODEL not in names and model_of(before) != model_of(after):
        names.insert(0, MODEL)
    return names


def model_of(step: Step) -> tuple[str, str, str]:
    """Returns the provider, API and model of a step: where one of them is another, so is the cache in any case."""
    return step.provider, step.api, step.model


def same_fixed(before: Sequence[FixedPart], after: Sequence[FixedPart]) -> int:
    """Returns how many parts two lists begin with in common."""
    return common_prefix([part.fingerprint for part in before], [part.fingerprint for part in after])


def fixed_difference(before: Sequence[FixedPart], after: Sequence[FixedPart]) -> Difference | None:
    """The first difference of two lists of parts in the order on the wire, with all of its row."""
    index = same_fixed(before, after)
    if index == len(before) == len(after):
        return None
    rows = [parts[index].row for parts in (before, after) if index < len(parts)]
    row = min(rows, key=lambda r: FIXED_ROWS[r].sent)
    return Difference("fixed", row, index, _row_words(row, before, after))


def fixed_words(before: Sequence[FixedPart], after: Sequence[FixedPart]) -> str:
    """All that differs of two lists of parts in the order on the wire, row by row; empty where nothing does. The first
    row breaks the cache alone, yet what the user did last may be in another."""
    rows = sorted(FIXED_ROWS, key=lambda row: FIXED_ROWS[row].sent)
    apart = (([p for p in before if p.row == row], [p for p in after if p.row == row]) for row in rows)
    return named([found.what for pair in apart if (found := fixed_difference(*pair)) is not None])


def setting_difference(name: str, before: Step, after: Step) -> Difference:
    """A setting that differs."""
    what = _SETTINGS[name]
    if name == MODEL and before.model_key != after.model_key:
        what = f"{what}: {one_line(before.model_key, 40)} → {one_line(after.model_key, 40)}"
    return Difference("setting", name, 0, what)


def message_difference(
    history: SentHistory, before: SentMessages, after: SentMessages, step: Step, summaries: Collection[str] = ()
) -> Difference | None:
    """The first message in which what a ``step`` sent differs from what was sent before; None where it goes on from
    that. A mere beginning of it differs by what comes in the place of the rest. ``summaries`` are the ids of messages
    that stand for compacted ones."""
    index = before.shared(after)
    if index == len(before.keys):
        return None
    old = before.keys[index]
    if index == len(after.keys):
        return Difference("message", old, index, REWOUND)
    new, last = after.keys[index], before.keys[-1]
    words = _message_words(old, new, last, summaries)
    if words == UNDONE and message_id(last) not in map(message_id, after.keys):
        # An undo takes no message away: this went back past the compaction, or to where it holds.
        words = BRANCH if new in summaries else REWOUND
    elif words == REWOUND and history.was_sent(new, step):
        # It has been there before.
        words = BRANCH
    return Difference("message", new, index, words)


REWOUND, BRANCH, UNDONE, COMPACTED = "rewound", "branch switched", "compaction undone", "compacted"
OTHERWISE = "reasoning or images sent differently"


def edit_words(then: Sequence[str], now: Sequence[str]) -> str:
    """What the user did to the conversation by hand between two steps with these records in force (their ids say what
    they are); empty where that is nothing."""
    edits, before = [i for i in now if i.startswith(EDIT_IDS)], {i for i in then if i.startswith(EDIT_IDS)}
    new = [i for i in edits if i not in before]
    if any(i.startswith(DROP_ID) for i in new):
        return "you dropped part of the context"
    return "you restored part of the context" if new else "you undid an edit" if before.difference(edits) else ""


def _message_words(old: str, new: str, last: str, summaries: Collection[str]) -> str:
    """``last`` is the newest message that was sent before."""
    if new in summaries:
        # Ids sort by the time they were made: an older summary has come back.
        came_back = (old in summaries and new < old) or _made(new) < _made(last)
        return UNDONE if came_back else COMPACTED
    if old in summaries:
        return UNDONE
    if message_id(old) == message_id(new):
        if CLEARED_SUFFIX in new:
            return "old results cleared"
        if CLIP_SUFFIX in new:
            return "a long result cut"
        if CLEARED_SUFFIX in old or CLIP_SUFFIX in old:
            return UNDONE
        return OTHERWISE
    return REWOUND


def _made(key: str) -> str:
    """When the message of a key was made, as its id says."""
    return message_id(key).partition("_")[2]


def _row_words(row: RowId, before: Sequence[FixedPart], after: Sequence[FixedPart]) -> str:
    old = {(p.group, p.label): p for p in before if p.row == row}
    new = {(p.group, p.label): p for p in after if p.row == row}
    if row == "tools":
        return f"tools changed: {_tool_words(old, new)}"
    came = [f"{_name(key)} added" for key in new if key not in old]
    went = [f"{_name(key)} removed" for key in old if key not in new]
    edited = [f"{_name(key)} edited" for key in new if key in old and old[key].fingerprint != new[key].fingerprint]
    words = named([*edited, *came, *went]) or "order changed"
    label = FIXED_ROWS[row].label
    if row in ("memory", "documents"):
        return words
    return f"{label} changed" if len(new) <= 1 and len(old) <= 1 else f"{label} changed: {words}"


def _tool_words(old: dict[tuple[str, str], FixedPart], new: dict[tuple[str, str], FixedPart]) -> str:
    """Whole servers by their names, other tools by theirs."""
    groups = {group for group, _ in (*old, *new)}
    words: list[str] = []
    for group in sorted(groups, key=lambda g: (g == "builtin", g)):
        before = {label: p.fingerprint for (g, label), p in old.items() if g == group}
        after = {label: p.fingerprint for (g, label), p in new.items() if g == group}
        if before == after:
            continue
        server = group.removeprefix("mcp:") if group.startswith("mcp:") else ""
        if server and not (before and after):
            words.append(f"MCP server {one_line(server, 40)} {'added' if after else 'removed'}")
            continue
        if server:
            words.append(f"MCP server {one_line(server, 40)} changed")
            continue
        words += [f"{one_line(label, 40)} added" for label in after if label not in before]
        words += [f"{one_line(label, 40)} removed" for label in before if label not in after]
        words += [f"{one_line(n, 40)} edited" for n in after if n in before and before[n] != after[n]]
    return named(words) or "order changed"


def _name(key: tuple[str, str]) -> str:
    return one_line(key[1] or key[0], 60)


def named(words: Sequence[str]) -> str:
    """The first few of what differs, and how many more there are."""
    more = len(words) - _MOST_NAMED
    return ", ".join(words[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
