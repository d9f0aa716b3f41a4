"""The facts of the Claude models wherever they are served: their prompt cache, their images, their schemas. Then the
markers that say up to where a prompt is cached."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType

from agent_tui.models.messages import Metadata, ReasoningPart
from agent_tui.providers.dialects.conversation import text_in
from agent_tui.providers.dialects.outgoing import CacheMarks
from agent_tui.providers.dialects.record import (
    BUT_BOUNDS,
    MEBI,
    ONE_OF,
    SHAPE,
    Caching,
    ImageLimits,
    Schemas,
    Source,
    Subset,
)
from agent_tui.text.clean import encodable

CACHING = Caching(
    "markers",
    life=300.0,
    # The table "what invalidates the cache": another choice of tools, way of thinking or effort and images that are
    # added or removed cost the messages. Of effort the page says that it may cost more, by model.
    # .../structured-outputs: another format invalidates the whole conversation's cache.
    loses=MappingProxyType({"thinking": "messages", "tool choice": "messages", "images": "messages", "schema": "all"}),
    # "Minimum cacheable prompt length": 1 024 but for these. Bedrock has its own for two of them
    # (platform.claude.com/docs/en/about-claude/models/migration-guide; docs.litellm.ai/docs/completion/prompt_caching).
    minima=(
        (re.compile(r"anthropic\.claude-opus-4-7|opus-4[-.][56]|haiku-4"), 4_096),
        (re.compile(r"opus-4[-.]7|mythos-preview|haiku-3|3(?:[-.]5)?-haiku"), 2_048),
        (re.compile(r"anthropic\.claude-fable"), 1_024),
        (re.compile(r"(?:opus|fable|mythos)-5|(?:sonnet|haiku)-5[-.]5"), 512),
    ),
    source=Source("platform.claude.com/docs/en/build-with-claude/prompt-caching", "2026-11-22"),
)
"""Five minutes from the last use, an hour where asked for; the same at Bedrock
(docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html)."""

IMAGES = ImageLimits(
    5 * MEBI,
    8_000,
    count=100,
    many=20,
    many_side=2_000,
    # 32 MB a request.
    total=28_000_000,
    source=Source("docs.claude.com/en/docs/build-with-claude/vision", "2026-11-21"),
)
"""5 MB an image (the refusal counts the base64 text against 5 242 880)."""

CLOSED = Subset(SHAPE, BUT_BOUNDS, ONE_OF, closes=True)
"""JSON Schema limitations of the page on structured outputs."""
HAS_SCHEMAS = r"claude-(?:[a-z]+-(?:4[-.](?:[5-9]|1\d)(?!\d)|[5-9](?!\d)|[1-9]\d(?!\d)))"
"""Claude 4.5 and newer."""
SCHEMAS = Schemas(
    "always",
    CLOSED,
    re.compile(HAS_SCHEMAS),
    source=Source("docs.claude.com/en/docs/build-with-claude/structured-outputs", "2026-11-21"),
)

MARKER = {"type": "ephemeral"}
_MOST_IN_MESSAGES = 3
"""Anthropic's API takes four markers; one is for tools and system prompt."""


def marker(marks: CacheMarks) -> Metadata:
    """What is put where a prompt may be cached up to. Five minutes are meant where nothing is said; all markers say the
    same: one for an hour may not follow one for less (platform.claude.com/docs/en/build-with-claude/prompt-caching)."""
    return {"cache_control": dict(MARKER) if marks.ttl in (None, "5m") else {**MARKER, "ttl": marks.ttl}}


def mark_fixed(system: list[Metadata], tools: list[Metadata], marks: CacheMarks) -> None:
    """Marks tools and system prompt together: behind the blocks that are the same all session long, documents come
    after them."""
    place, blocks = (marks.stable - 1, system) if system and marks.stable else (-1, tools)
    if blocks:
        blocks[place] = {**blocks[place], **marker(marks)}


def thinking_block(part: ReasoningPart) -> Metadata | None:
    """The block as it came; None for one without what the provider checks."""
    metadata = part.provider_metadata or {}
    if metadata.get("type") == "redacted_thinking":
        data = text_in(metadata, "data")
        return {"type": "redacted_thinking", "data": data} if data else None
    signature = text_in(metadata, "signature")
    return {"type": "thinking", "thinking": encodable(part.text), "signature": signature} if signature else None


def marked_places(roles: Sequence[str], starts_with_summary: bool, forgets: bool, sent_before: int = 0) -> list[int]:
    """The messages of a conversation that are marked, by index, ascending; system prompts are not among ``roles``.
    ``sent_before`` as in ``ModelRequest``, of the messages as they are here.

    What the request before wrote ends at the input that the newest answer answered. It is marked again at that very
    place: Anthropic looks back only 20 blocks from a marker, and an answer with many calls and their
    results has more. ``forgets``: the provider leaves out earlier thinking when the user speaks, so what was written
    since then fits no longer; the user message that began the turn of the newest answer is where the rest ends. It
    stays marked through the whole turn, which keeps it alive. The summary of what was compacted takes a marker that
    is left. ``sent_before`` takes the place of the newest answer where the request before was that of another one.
    """
    end = sent_before or next((n for n in reversed(range(len(roles))) if roles[n] == "assistant"), -1)
    # Behind an answer the next input is still to come: it takes the first marker along.
    newest = None if sent_before and roles[-1] == "assistant" else _input_before(roles, len(roles))
    wanted = [newest, _input_before(roles, end)]
    if forgets:
        wanted.append(_input_before(roles, end, ("user",)))
    if starts_with_summary:
        wanted.append(0)
    places = [place for place in dict.fromkeys(wanted) if place is not None]
    return sorted(places[:_MOST_IN_MESSAGES])


def _input_before(roles: Sequence[str], end: int, of: tuple[str, ...] = ("user", "tool")) -> int | None:
    return next((n for n in reversed(range(end)) if roles[n] in of), None)
