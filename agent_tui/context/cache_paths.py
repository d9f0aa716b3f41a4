"""Holds what all steps of a session sent, as one tree of messages, and finds where two requests begin to differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from agent_tui.context.anchor import common_prefix
from agent_tui.context.cuts import CLEARED_SUFFIX, CLIP_SUFFIX
from agent_tui.context.view import DROP_ID, EDIT_IDS
from agent_tui.models.rows import FIXED_ROWS, RowId
from agent_tui.models.steps import FixedPart, Sent, Step
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line

ROOT = 0


@dataclass(slots=True, frozen=True)
class SentMessages:
    """The messages of a request as its body has them: keys and digests, see ``models.steps.Sent``. The
    first ``same`` of them are those of the request that was given before to whoever made this."""

    keys: Sequence[str]
    digests: Sequence[str]
    same: int = 0


class _Node(NamedTuple):
    """A message as it was sent; ``depth`` counts from the root, itself included."""

    parent: int
    depth: int
    key: str
    digest: str
    made_by: str


class SentPaths:
    """A tree whose nodes are messages as they were sent; a step is the node at which it ends.

    Nodes are numbers, ``ROOT`` stands for no message. Adding a step costs what is new in it.
    """

    def __init__(self) -> None:
        self._nodes = [_Node(ROOT, 0, "", "", "")]
        self._next: dict[tuple[int, str], int] = {}
        self._ends: dict[str, int] = {}
        self._first: dict[str, str] = {}
        self._lost: set[str] = set()
        self._last = ROOT

    def take(self, steps: Sequence[Step]) -> None:
        """Adds the steps that are not here yet; they are looked for at the end."""
        new: list[Step] = []
        for step in reversed(steps):
            if step.id in self._ends or step.id in self._lost:
                break
            new.append(step)
        for step in reversed(new):
            if step.sent is not None:
                self._add(step.id, step.sent)
            else:
                self._lost.add(step.id)

    def _add(self, step_id: str, sent: Sent) -> None:
        """A step as it is stored. Where what it is a difference to is not here, as in a copy of a part of the session,
        nothing is known of it."""
        start = ROOT
        if sent.base:
            base = self._ends.get(sent.base)
            if base is None or self.depth(base) < sent.kept:
                self._lost.add(step_id)
                return
            start = self.ancestor(base, sent.kept)
        self._ends[step_id] = self._grow(start, sent.keys, sent.digests, step_id)

    def record(self, step_id: str, messages: SentMessages, settings: dict[str, str], marks: list[int]) -> Sent:
        """Adds what a step sends, and returns how it is stored with it."""
        self._lost.discard(step_id)
        depth = min(messages.same, self.depth(self._last))
        node = self.ancestor(self._last, depth)
        while depth < len(messages.digests) and (found := self._next.get((node, messages.digests[depth]))) is not None:
            node, depth = found, depth + 1
        while self._nodes[node].made_by == step_id:
            # Sent once more, changed: it is no difference to itself.
            node, depth = self._nodes[node].parent, depth - 1
        keys, digests = list(messages.keys[depth:]), list(messages.digests[depth:])
        self._ends.pop(step_id, None)
        self._last = self._ends[step_id] = self._grow(node, keys, digests, step_id)
        return Sent(settings, self._nodes[node].made_by, depth, keys, digests, marks)

    @contextmanager
    def ahead(self, step_id: str, messages: SentMessages) -> Iterator[None]:
        """Adds what a step would send and has not sent yet: it is here inside the ``with`` block only."""
        length, depth = len(self._nodes), min(messages.same, self.depth(self._last))
        start = self.ancestor(self._last, depth)
        self._ends[step_id] = self._grow(start, messages.keys[depth:], messages.digests[depth:], step_id)
        try:
            yield
        finally:
            del self._ends[step_id]
            for node in self._nodes[length:]:
                del self._next[node.parent, node.digest]
                if self._first.get(_message_id(node.key)) == step_id:
                    del self._first[_message_id(node.key)]
            del self._nodes[length:]

    def _grow(self, node: int, keys: Sequence[str], digests: Sequence[str], by: str) -> int:
        for key, digest in zip(keys, digests, strict=True):
            found = self._next.get((node, digest))
            if found is None:
                found = self._next[node, digest] = len(self._nodes)
                self._nodes.append(_Node(node, self._nodes[node].depth + 1, key, digest, by))
                self._first.setdefault(_message_id(key), by)
            node = found
        return node

    def end(self, step: Step) -> int | None:
        """Returns the node at which a step ends; None where what it sent is not known."""
        return self._ends.get(step.id)

    def depth(self, node: int) -> int:
        """Returns how many messages lead to a node, itself included."""
        return self._nodes[node].depth

    def ancestor(self, node: int, depth: int) -> int:
        """The node at a depth on the way to another."""
        while self._nodes[node].depth > depth:
            node = self._nodes[node].parent
        return node

    def shared(self, one: int, other: int) -> int:
        """Returns how many messages the ways to two nodes begin with in common."""
        depth = min(self.depth(one), self.depth(other))
        one, other = self.ancestor(one, depth), self.ancestor(other, depth)
        while one != other:
            one, other = self._nodes[one].parent, self._nodes[other].parent
        return self.depth(one)

    def messages(self, node: int) -> SentMessages:
        """All messages on the way to a node."""
        nodes = self._way(node)
        return SentMessages([n.key for n in nodes], [n.digest for n in nodes])

    def key(self, node: int) -> str:
        """The key of the message at a node."""
        return self._nodes[node].key

    def first_sent_by(self, node: int) -> str:
        """The id of the step that was the first to send the message at a node, wherever and in whichever form."""
        return self._first[_message_id(self._nodes[node].key)]

    def digests(self, node: int, start: int = 0) -> list[str]:
        """The digests of the messages on the way to a node, from the ``start``-th on."""
        return [each.digest for each in self._way(node, start)]

    def _way(self, node: int, start: int = 0) -> list[_Node]:
        found: list[_Node] = []
        while self.depth(node) > start:
            found.append(self._nodes[node])
            node = self._nodes[node].parent
        return found[::-1]


def _message_id(key: str) -> str:
    return key.partition("#")[0]


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
    paths: SentPaths, before: int, after: int, step_id: str, summaries: Collection[str] = ()
) -> Difference | None:
    """The first message in which two ways differ, of which the step goes the later one; None where that goes on from
    the earlier one. A mere beginning of that one differs by what comes in the place of the rest. ``summaries`` are the
    ids of messages that stand for compacted ones."""
    index = paths.shared(before, after)
    if index == paths.depth(before):
        return None
    old = paths.key(paths.ancestor(before, index + 1))
    if index == paths.depth(after):
        return Difference("message", old, index, REWOUND)
    place, last = paths.ancestor(after, index + 1), paths.key(before)
    words = _message_words(old, paths.key(place), last, summaries)
    if words == UNDONE and _message_id(last) not in map(_message_id, paths.messages(after).keys):
        # An undo takes no message away: this went back past the compaction, or to where it holds.
        words = BRANCH if paths.key(place) in summaries else REWOUND
    elif words == REWOUND and paths.first_sent_by(place) != step_id:
        # It has been there before.
        words = BRANCH
    return Difference("message", paths.key(place), index, words)


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
    if _message_id(old) == _message_id(new):
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
    return _message_id(key).partition("_")[2]


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
