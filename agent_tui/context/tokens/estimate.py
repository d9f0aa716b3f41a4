"""What cannot be measured is estimated here: from text to tokens, message by message.

The worker counts ``message_text_for_count`` with o200k_base and stores the number as ``Message.raw_tokens``; the
family's factor and overheads are applied when reading, with one rounding up per message. Until a count arrives the
character rule stands in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from agent_tui.context.tokens.families import Family
from agent_tui.context.tokens.media import attachment_tokens
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Part,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.rows import MESSAGE_ROWS, MessageRowId
from agent_tui.models.steps import FixedPart
from agent_tui.text.numbers import largest_remainder

ASCII_TOKENS = 0.25
OTHER_TOKENS = 1.3
"""Tokens a character, ASCII and other: the fallback rule of the token-counting document (and of gemini-cli)."""

CLEARED_RAW = 7
INTERRUPTED_RAW = 4
"""o200k_base counts of ``CLEARED_RESULT`` and ``INTERRUPTED_RESULT``."""


@dataclass(slots=True, frozen=True)
class MessageEstimate:
    """What one message costs without its reasoning: ``tokens`` is the sum of ``shares``.

    ``approximate``: not counted yet, the character rule stands in. ``rough``: an image or file is in it. ``exact`` is
    the estimate before it was rounded up; ``media`` is the part of it that is no text.
    """

    tokens: int
    shares: tuple[tuple[MessageRowId, int], ...]
    approximate: bool = False
    rough: bool = False
    exact: float = 0.0
    media: float = 0.0


def text_of_part(part: Part) -> str:
    """The text of a part that counts as input. Reasoning is not here: the replay rule says whether it costs."""
    match part:
        case TextPart() | SummaryPart() | ToolResultPart():
            return part.text
        case ToolCallPart():
            return f"{part.name} {part.arguments}"
        case AttachmentPart():
            return part.text or ""
        case ReasoningPart():
            return ""


def message_text_for_count(message: Message) -> str:
    """The text whose o200k_base count is the message's ``raw_tokens``."""
    return "\n".join(t for t in map(text_of_part, message.parts) if t)


def counted_chars(message: Message) -> int:
    """Length of the text that counts, in characters."""
    return sum(len(text_of_part(p)) for p in message.parts)


def char_tokens(text: str) -> float:
    """Tokens by the character rule, unrounded."""
    if text.isascii():
        return len(text) * ASCII_TOKENS
    plain = len(text.encode("ascii", "ignore"))
    return plain * ASCII_TOKENS + (len(text) - plain) * OTHER_TOKENS


def round_up(tokens: float) -> int:
    """The single rounding of an estimate. Raises ValueError for a negative count: that is a bug somewhere."""
    if tokens < 0:
        raise ValueError(f"Invalid token count: {tokens}")
    return math.ceil(tokens - 1e-9)


def estimate_message(message: Message, family: Family, first_result: bool = True) -> MessageEstimate:
    """What the message costs as input of a model of this family, its reasoning left out.

    ``first_result``: for a tool message, whether it is the first result after its answer. Raises ValueError when the
    stored count is negative.
    """
    weights: list[tuple[MessageRowId, float]] = []
    rough_tokens = 0.0
    for part in message.parts:
        if isinstance(part, AttachmentPart) and part.text is None:
            tokens = attachment_tokens(part, family.name)
            rough_tokens += tokens
            weights.append(("attachments", tokens))
    raw, approximate = message.raw_tokens, False
    texts = [(kind_of(message, p), t) for p in message.parts if (t := text_of_part(p))]
    chars = sum(len(t) for _, t in texts)
    if raw is None:
        body = sum(char_tokens(t) for _, t in texts) * family.char_factor
        approximate = bool(texts)
    elif raw < 0:
        raise ValueError(f"Invalid token count: {raw} for message {message.id}")
    else:
        body = raw * family.kappa
    weights.extend((kind, body * len(text) / chars) for kind, text in texts)
    overheads = overhead_of(message, family, first_result)
    weights.extend(overheads)
    exact = body + rough_tokens + sum(o for _, o in overheads)
    total = round_up(exact)
    return MessageEstimate(total, spread(total, weights), approximate, bool(rough_tokens), exact, rough_tokens)


def overhead_of(message: Message, family: Family, first_result: bool) -> list[tuple[MessageRowId, float]]:
    """What the chat template adds around the message, by kind."""
    if message.role == "tool":
        return [("tool_results", family.first_result if first_result else family.further_result)]
    if message.role == "user":
        kind: MessageRowId = "summary" if any(isinstance(p, SummaryPart) for p in message.parts) else "user"
        return [(kind, family.user)]
    added: list[tuple[MessageRowId, float]] = [("assistant", family.assistant)]
    calls = len(message.tool_calls)
    if calls:
        added.append(("tool_calls", family.call * calls))
    return added


def kind_of(message: Message, part: Part) -> MessageRowId:
    """The child of ``messages`` a part is shown under."""
    match part:
        case TextPart():
            return "assistant" if message.role == "assistant" else "user"
        case ReasoningPart():
            return "reasoning"
        case ToolCallPart():
            return "tool_calls"
        case ToolResultPart():
            return "tool_results"
        case AttachmentPart():
            return "attachments"
        case SummaryPart():
            return "summary"


def estimate_fixed(part: FixedPart, family: Family) -> tuple[float, bool]:
    """Tokens of an ephemeral part, unrounded, and whether the character rule had to stand in."""
    if part.raw_tokens is not None:
        if part.raw_tokens < 0:
            raise ValueError(f"Invalid token count: {part.raw_tokens} for {part.label}")
        return part.raw_tokens * family.kappa, False
    plain = part.chars if part.ascii_chars is None else part.ascii_chars
    return (plain * ASCII_TOKENS + (part.chars - plain) * OTHER_TOKENS) * family.char_factor, part.chars > 0


def spread(total: int, weights: Iterable[tuple[MessageRowId, float]]) -> tuple[tuple[MessageRowId, int], ...]:
    """``total`` split over the kinds in proportion, summing exactly to it."""
    sums: dict[MessageRowId, float] = {}
    for kind, weight in weights:
        sums[kind] = sums.get(kind, 0.0) + weight
    if len(sums) == 1:
        return ((next(iter(sums)), total),)
    kinds = [k for k in MESSAGE_ROWS if k in sums]
    return tuple(zip(kinds, largest_remainder(total, [sums[k] for k in kinds]), strict=True))
