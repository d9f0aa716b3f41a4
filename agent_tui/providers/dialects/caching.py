"""What providers say of their prompt caches: what is kept, how long for sure, and what makes it useless.

Only what is documented stands here. Where nothing is said of how long an entry lives, ``life`` and ``gone`` are None,
and nobody may call it expired.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Keeping = Literal["markers", "automatic"]
Reach = Literal["all", "messages"]
"""What is lost when a setting changes: everything, or the messages while system prompt and tools stay."""

MINUTES_5, HOUR = 300.0, 3_600.0
LOOK_BACK = 20
"""Content blocks in which Anthropic looks for what it has kept, from a marker backwards; the marked one is the first
(platform.claude.com/docs/en/build-with-claude/prompt-caching)."""

_NOTHING: Mapping[str, Reach] = MappingProxyType({})


@dataclass(slots=True, frozen=True)
class Caching:
    """How one provider caches prompts.

    ``keeping``: ``markers``, up to the places that a request marks; ``automatic``, whatever was sent. ``minimum``:
    tokens below which nothing is kept; reads come in multiples of ``unit``. ``life``: seconds that an entry is kept
    after its last use, known to the second; ``gone``: seconds after which it is gone for sure, where only that is
    known. ``loses``: what a changed setting makes useless, by its name in ``models.cache.Sent``; of the others it is
    not said. ``zero_unsaid``: no number in the usage means that nothing was read, once the provider has named one.
    """

    keeping: Keeping = "automatic"
    minimum: int = 1_024
    unit: int = 1
    life: float | None = None
    gone: float | None = None
    loses: Mapping[str, Reach] = field(default_factory=lambda: _NOTHING)
    zero_unsaid: bool = False


UNSAID = Caching(minimum=0)
"""Providers that say nothing of a cache, and servers of the user's own: they keep what a slot or free memory holds,
and give it up when another request needs the room."""

CLAUDE = Caching(
    "markers",
    life=MINUTES_5,
    # The table "what invalidates the cache": another choice of tools or way of thinking leaves tools and system.
    # .../structured-outputs: another format invalidates the whole conversation's cache.
    loses=MappingProxyType({"thinking": "messages", "tool choice": "messages", "schema": "all"}),
)
"""platform.claude.com/docs/en/build-with-claude/prompt-caching; docs.aws.amazon.com/bedrock/latest/userguide/
prompt-caching.html: five minutes from the last use, an hour where asked for."""

OPENAI = Caching(
    unit=128,
    gone=HOUR,
    loses=MappingProxyType({"schema": "all"}),
)
"""developers.openai.com/api/docs/guides/prompt-caching: from 1 024 tokens on, in steps of 128; cleared after 5 to 10
minutes without use, always within an hour; the schema is a prefix to the system message. Azure says the same
(learn.microsoft.com/azure/ai-foundry/openai/how-to/prompt-caching)."""

OPENAI_LONG = Caching(unit=128, gone=24 * HOUR, loses=OPENAI.loses)
"""The same where the request asks for 24 hours, or may be 24 hours unasked (newer models)."""

DEEPSEEK = Caching(minimum=64, unit=64)
"""api-docs.deepseek.com/guides/kv_cache: in units of 64 tokens; cleared after "a few hours to a few days"."""

GEMINI = Caching(minimum=1_024, zero_unsaid=True)
"""ai.google.dev/gemini-api/docs/caching, implicit caching: by itself, without any promise, from 1 024 to 4 096 tokens
on by model; how long is not said. A usage without the number of cached tokens has none."""

GROQ = Caching(minimum=128, gone=2 * HOUR)
"""console.groq.com/docs/prompt-caching: gone after two hours without use."""

_CLAUDE_MINIMA: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"opus-4[-.][5-9]|haiku-4|mythos|fable"), 4_096),
    (re.compile(r"sonnet-4[-.][6-9]|haiku"), 2_048),
)
"""The table of the shortest prompts of the same page; others: 1 024."""

_LONG_KEPT = re.compile(r"gpt-(?:4\.1$|5)(?!-(?:mini|nano))")
"""OpenAI's models that can keep entries for 24 hours (the same page, extended retention)."""


def claude_minimum(model: str) -> int:
    """Tokens below which nothing of a Claude model's prompt is kept."""
    name = model.lower()
    return next((minimum for pattern, minimum in _CLAUDE_MINIMA if pattern.search(name)), CLAUDE.minimum)


def keeps_long(model: str) -> bool:
    """Whether an OpenAI model may keep what it has read for longer than an hour."""
    return _LONG_KEPT.search(model.lower()) is not None
