"""Messages as rows: the label, weight and group of each, added up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from agent_tui.context.cuts import DROPPED_ATTACHMENT
from agent_tui.context.tokens import Family, attachment_tokens, char_tokens, kind_of
from agent_tui.models.context import ContextRow
from agent_tui.models.messages import (
    NOTES_INTRODUCTION,
    PINNED_INTRODUCTION,
    TOLD,
    AttachmentPart,
    Message,
    SummaryPart,
    ToolCallPart,
    attachments_of,
)
from agent_tui.models.requests import SentMessage
from agent_tui.models.rows import MESSAGE_ROWS, NOTES, MessageRowId, RowKind
from agent_tui.models.search import search_calls
from agent_tui.records import dataclass
from agent_tui.text.clean import printable_line
from agent_tui.text.numbers import largest_remainder
from agent_tui.tools.arguments import LABEL_CHARS, short_summary


def message_label(message: Message, kind: MessageRowId, calls_before: Mapping[str, ToolCallPart]) -> str:
    """The name of the row of a kind of a message; a tool result is named after the call that it answers, one of those
    of the answer before it, by their ids."""
    if kind == "tool_calls":
        calls = message.tool_calls
        return short_summary(calls[0]) + (f" +{len(calls) - 1}" if len(calls) > 1 else "")
    result = message.tool_result
    if kind == "tool_results" and (searches := search_calls(message.parts)):
        return short_summary(searches[0][0]) + (f" +{len(searches) - 1}" if len(searches) > 1 else "")
    if result is not None:
        call = calls_before.get(result.call_id)
        return (short_summary(call) if call is not None else "") or result.name or "tool result"
    if kind == "reasoning":
        return printable_line(message.reasoning, LABEL_CHARS) or "reasoning"
    if kind in ("summary", "pinned"):
        parts = (p for p in message.parts if isinstance(p, SummaryPart) and p.pinned == (kind == "pinned"))
        said = "".join(p.text for p in parts).removeprefix(PINNED_INTRODUCTION).removeprefix(NOTES_INTRODUCTION)
        return printable_line(said, LABEL_CHARS)
    # Answers begin with a heading often; its signs say nothing in a row.
    text = message.text.lstrip("# \n") if message.role == "assistant" else message.text
    return printable_line(text, LABEL_CHARS) or "(no text)"


def calls_before(view: Sequence[SentMessage], index: int) -> dict[str, ToolCallPart]:
    """The calls that the results around ``index`` answer: they stand directly after the message that made them."""
    while index and view[index].message.role == "tool":
        index -= 1
    return {call.call_id: call for call in view[index].message.tool_calls}


ANSWER_OFF = 5.0
"""Standard deviation, in tokens, of what an answer and each of its calls take of an output beside what was learned of
that: in runs with all events turns that close are off by 10 to 20 tokens that no text tells of."""

SHARE_OFF = 0.05
"""Standard deviation of the share that a provider keeps of reasoning, where it is neither all nor nothing."""

TAKEN_OVER = 0.03
"""Standard deviation of a shortened text, as a share of it: its counts are those of the whole, in proportion."""


def covered(tokens: int, read: int | None) -> bool | None:
    """The flag of a row: whether it was read whole. None where nothing is known, or there is nothing to read."""
    return None if read is None or not tokens else read == tokens


def total_read(reads: Sequence[int | None]) -> int | None:
    """The sum over rows; None as soon as one is not known."""
    known = [r for r in reads if r is not None]
    return sum(known) if known and len(known) == len(reads) else None


@dataclass(slots=True)
class _OfKind:
    """The rows of one kind, and their sums."""

    rows: list[ContextRow] = field(default_factory=list)
    tokens: int = 0
    estimated: int = 0
    """In a measured group of one kind only the split is an estimate, not the sum."""
    cached: int | None = 0
    """What the provider read from its cache; None where that is not known."""
    approximate: bool = False

    def add(self, other: _OfKind) -> None:
        self.rows += other.rows
        self.tokens += other.tokens
        self.estimated += other.estimated
        self.cached = None if self.cached is None or other.cached is None else self.cached + other.cached
        self.approximate |= other.approximate


@dataclass(slots=True)
class Tally:
    """The rows of the messages before ``end`` of a view by kind, and their sums."""

    end: int = 0
    kinds: defaultdict[MessageRowId, _OfKind] = field(default_factory=lambda: defaultdict(_OfKind))
    total: int = 0
    calls: Mapping[str, ToolCallPart] = field(default_factory=dict)
    """The calls of the answer that the newest result belongs to: looked for once for all of its results."""

    def copy(self) -> Tally:
        kinds = defaultdict(_OfKind, {kind: replace(of, rows=list(of.rows)) for kind, of in self.kinds.items()})
        return replace(self, kinds=kinds)

    def add(self, kind: MessageRowId, row: ContextRow, estimated: int) -> None:
        self.kinds[kind].add(_OfKind([row], row.tokens, estimated, row.cached_tokens, row.approximate))
        self.total += row.tokens

    def kind_rows(self) -> list[ContextRow]:
        """The children of ``messages``: one row a kind, its messages below it in their order."""
        return [_kind_row(named, self.kinds[kind]) for kind, named in MESSAGE_ROWS.items() if kind in self.kinds]


def _kind_row(named: RowKind, of: _OfKind) -> ContextRow:
    if named.id == NOTES.id and all(row.label in TOLD for row in of.rows):
        named = NOTES
    estimated = min(of.estimated, of.tokens)
    return ContextRow(
        id=named.id,
        label=named.label,
        tokens=of.tokens,
        basis="estimated" if estimated == of.tokens and of.tokens else "derived",
        estimated_tokens=estimated,
        children=of.rows,
        cached=covered(of.tokens, of.cached),
        cached_tokens=of.cached,
        approximate=of.approximate,
    )


def rows_of(
    message: Message, kind: MessageRowId, share: int, calls: Mapping[str, ToolCallPart], family: Family
) -> Iterator[tuple[str, int | None, int]]:
    """What a kind of a message is shown as, with its tokens: each attachment has a row, by its number, and so has each
    text of a hook."""
    if kind not in ("attachments", "hooks"):
        yield message_label(message, kind, calls), None, share
        return
    attached = enumerate(attachments_of(message), 1)
    parts = [(n, part, _attachment_weight(part, family)) for n, part in attached if kind_of(message, part) == kind]
    sizes = [share] if len(parts) == 1 else largest_remainder(share, [weight for _, _, weight in parts])
    for (number, part, _), size in zip(parts, sizes, strict=True):
        gone = ", dropped" if part.text == DROPPED_ATTACHMENT else ""
        yield printable_line(part.name, LABEL_CHARS) + gone, number, size


def _attachment_weight(part: AttachmentPart, family: Family) -> float:
    """Returns roughly what an attachment costs, above 0: by this several of one message share what they cost."""
    if part.text is not None:
        return char_tokens(part.text) + 1
    return attachment_tokens(part, family.name) if family.media.takes(part) else char_tokens(part.unread)
