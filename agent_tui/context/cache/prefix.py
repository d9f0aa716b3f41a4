"""Two requests compared as a prompt cache compares them: where they begin to differ, and why, in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_tui.context.cache.paths import SentPaths
from agent_tui.context.sent.view import CLEARED_SUFFIX, CLIP_SUFFIX
from agent_tui.models.rows import FIXED_ROWS, RowId
from agent_tui.models.steps import FixedPart, Step
from agent_tui.text.clean import one_line

Where = Literal["setting", "fixed", "message"]

SERVER, MODEL, THINKING, SCHEMA, CHOICE, CACHE_KEY, OTHERS, TTL = (
    "server", "model", "thinking", "schema", "tool choice", "cache key", "others", "cache ttl"
)  # fmt: skip
"""Names of the settings of a request (``models.cache.Sent.settings``). Another ``cache ttl`` makes nothing useless."""

_SETTINGS = {
    MODEL: "model switched",
    SERVER: "server changed",
    THINKING: "thinking switched",
    SCHEMA: "answer schema changed",
    CHOICE: "tool choice changed",
    CACHE_KEY: "another session's cache key",
    OTHERS: "request settings changed",
}
_MOST_NAMED = 3


@dataclass(slots=True, frozen=True)
class Difference:
    """Where a request differs first from an earlier one, in the order in which providers read it: the settings that
    change everything, tools, system prompt, other settings, messages.

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
    if MODEL not in names and model_of(before) != model_of(after):
        names.insert(0, MODEL)
    return names


def model_of(step: Step) -> tuple[str, str, str]:
    """What makes another cache in any case."""
    return step.provider, step.api, step.model


def same_fixed(before: Sequence[FixedPart], after: Sequence[FixedPart]) -> int:
    """How many parts two lists begin with in common."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one.fingerprint != other.fingerprint:
            break
        count += 1
    return count


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
    return _named([found.what for pair in apart if (found := fixed_difference(*pair)) is not None])


def setting_difference(name: str, before: Step, after: Step) -> Difference:
    """A setting that differs."""
    what = _SETTINGS[name]
    if name == MODEL and before.model_key != after.model_key:
        what = f"{what}: {one_line(before.model_key, 40)} → {one_line(after.model_key, 40)}"
    return Difference("setting", name, 0, what)


def message_difference(paths: SentPaths, before: int, after: int, summaries: Collection[str] = ()) -> Difference | None:
    """The first message in which two ways differ; None where the later one goes on from the earlier one. A mere
    beginning of that one differs by what comes in the place of the rest. ``summaries`` are the ids of messages that
    stand for compacted ones."""
    index = paths.shared(before, after)
    if index == paths.depth(before):
        return None
    old = paths.key(paths.ancestor(before, index + 1))
    if index == paths.depth(after):
        return Difference("message", old, index, "rewound")
    new = paths.key(paths.ancestor(after, index + 1))
    return Difference("message", new, index, _message_words(old, new, summaries))


def _message_words(old: str, new: str, summaries: Collection[str]) -> str:
    if new in summaries:
        # Ids sort by the time they were made: an older summary has come back.
        return "compaction undone" if old in summaries and new < old else "compacted"
    if old in summaries:
        return "compaction undone"
    if old.partition("#")[0] == new.partition("#")[0]:
        if CLEARED_SUFFIX in new:
            return "old results cleared"
        if CLIP_SUFFIX in new:
            return "a long result cut"
        if CLEARED_SUFFIX in old or CLIP_SUFFIX in old:
            return "compaction undone"
        return "reasoning or images sent otherwise"
    return "rewound"


def _row_words(row: RowId, before: Sequence[FixedPart], after: Sequence[FixedPart]) -> str:
    old = {(p.group, p.label): p for p in before if p.row == row}
    new = {(p.group, p.label): p for p in after if p.row == row}
    if row == "tools":
        return f"tools changed: {_tool_words(old, new)}"
    came = [f"{_name(key)} came" for key in new if key not in old]
    went = [f"{_name(key)} went" for key in old if key not in new]
    edited = [f"{_name(key)} edited" for key in new if key in old and old[key].fingerprint != new[key].fingerprint]
    named = _named([*edited, *came, *went]) or "order changed"
    label = FIXED_ROWS[row].label
    if row in ("memory", "documents"):
        return named
    return f"{label} changed" if len(new) <= 1 and len(old) <= 1 else f"{label} changed: {named}"


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
            words.append(f"MCP server {one_line(server, 40)} {'came' if after else 'went'}")
            continue
        if server:
            words.append(f"MCP server {one_line(server, 40)} changed")
            continue
        words += [f"{one_line(label, 40)} came" for label in after if label not in before]
        words += [f"{one_line(label, 40)} went" for label in before if label not in after]
        words += [f"{one_line(n, 40)} edited" for n in after if n in before and before[n] != after[n]]
    return _named(words) or "order changed"


def _name(key: tuple[str, str]) -> str:
    return one_line(key[1] or key[0], 60)


def _named(words: Sequence[str]) -> str:
    more = len(words) - _MOST_NAMED
    return ", ".join(words[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
