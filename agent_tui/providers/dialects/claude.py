"""The facts of the Claude models wherever they are served: their prompt cache, their images, their schemas."""

from __future__ import annotations

import re
from types import MappingProxyType

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

CACHING = Caching(
    "markers",
    life=300.0,
    # The table "what invalidates the cache": another choice of tools, way of thinking or effort and images that are
    # added or removed cost the messages. Of effort the page says that it may cost more, by model.
    # .../structured-outputs: another format invalidates the whole conversation's cache.
    loses=MappingProxyType({"thinking": "messages", "tool choice": "messages", "images": "messages", "schema": "all"}),
    look_back=20,
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
