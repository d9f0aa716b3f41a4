"""The facts known of OpenAI, of Azure, and of the GPT models wherever they are served. How they are spoken to is in
``chat`` and ``responses``."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType

from agent_tui.models.requests import Effort
from agent_tui.providers.dialects.chat import WIRE as CHAT
from agent_tui.providers.dialects.record import (
    BOUNDS,
    HOUR,
    SHAPE,
    Caching,
    Dialect,
    ImageLimits,
    ModelFamily,
    RetentionRule,
    Schemas,
    Source,
    Subset,
    WebSearch,
)

_LATER = Caching(
    "ends",
    sure=1_800.0,
    loses=MappingProxyType({"schema": "all"}),
    source=Source("developers.openai.com/api/docs/guides/prompt-caching", "2026-11-22"),
)
"""GPT-5.6 and later: kept is what ends at a breakpoint, for 30 minutes at least. Unasked that is the newest message of
the user or a tool, and a later request looks for it at up to 20 earlier ones; no other beginning is found, and nothing
is rounded. What is written costs 1.25 times what is sent (LiteLLM's table has that price). Effort "may" change what the
model is told, so it is no fact here."""
_CACHING = Caching(
    gone=HOUR,
    loses=MappingProxyType({"schema": "all"}),
    longer=(re.compile(r"gpt-(?:4\.1$|5)(?!-(?:mini|nano))"), 24 * HOUR),
    later_models=re.compile(r"gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)(?!\d)"),
    later=_LATER,
    source=Source("developers.openai.com/api/docs/guides/prompt-caching", "2026-11-22"),
)
"""From 1 024 tokens on, in steps of 128; cleared after 5 to 10 minutes without use, always within an hour, or after 24
where the request asks for it or the model may keep it unasked (extended retention); the schema is a prefix to the
system message. Azure says the same (learn.microsoft.com/azure/ai-foundry/openai/how-to/prompt-caching)."""

# 20 MB an image, 500 images, 50 MB of images a request.
_IMAGES = ImageLimits(
    20_000_000,
    None,
    count=500,
    total=45_000_000,
    source=Source("platform.openai.com/docs/guides/images-vision", "2026-11-21"),
)

STRICT = Subset(
    SHAPE | (BOUNDS & {"pattern", "format", "minimum", "maximum", "multipleOf", "minItems", "maxItems"}),
    complete=True,
)
"""OpenAI's strict mode (structured outputs, supported schemas); others took it over."""
HAS_SCHEMAS = (
    r"(?:^|[/.])(?:gpt-4o(?!-2024-05-13|-audio|-realtime|-search)|gpt-4\.1|gpt-(?:[5-9]|\d\d)|o1(?!-mini|-preview)|o[34])"
    r"(?!\d)"
)
"""From gpt-4o-2024-08-06 on."""
_SCHEMAS = Schemas(
    "always",
    STRICT,
    re.compile(HAS_SCHEMAS),
    loose=True,
    source=Source("platform.openai.com/docs/guides/structured-outputs", "2026-11-21"),
)

GPT_OSS = ModelFamily("gpt-oss", re.compile(r"gpt-oss"), thinking="levels", think_tags=False, patches=re.compile(""))
GPT = ModelFamily(
    "gpt",
    re.compile(r"(?:^|[^a-z])(?:chat)?gpt|(?:^|[^a-z0-9])o[134](?:$|[^a-z0-9])|codex|davinci"),
    think_tags=False,
    cache="key",
    # Since GPT-4.1 the guides teach the format; OpenAI's coding agent gives these models no other.
    patches=re.compile(r"gpt-(?:4\.1|[5-9])|codex|(?:^|[^a-z0-9])o[34](?:$|[^a-z0-9])"),
    source=Source("platform.openai.com/docs/guides, prompting guides", "2026-11-21"),
)
RETENTION = (RetentionRule("gpt chat", (0.0, 0.0), "gpt", api="chat"),)

RECORDS = (
    Dialect(
        "openai",
        CHAT,
        "https://api.openai.com/v1",
        "/v1",
        base_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        openai=True,
        counts=True,
        think_tags=True,
        keys=("OPENAI_API_KEY",),
        key_begins=("sk-proj-", "sk-svcacct-", "sk-admin-"),
        default_model="gpt-5",
        search=WebSearch(
            MappingProxyType({"type": "web_search"}),
            price=0.01,
            tokens=300,
            api="responses",
            include=("web_search_call.action.sources",),
            source=Source("developers.openai.com/api/docs/guides/tools-web-search", "2026-11-27"),
        ),
        compatible=True,
        thinking="effort",
        call_ids="openai",
        cache="key",
        schemas=_SCHEMAS,
        images=_IMAGES,
        caching=_CACHING,
    ),
    Dialect(
        "azure",
        CHAT,
        base_variables=("AZURE_API_BASE",),
        auth="api-key",
        openai=True,
        deployments=True,
        keys=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        responses_hosts=(".azure.com", ".azure.us", ".azure.cn"),
        plain_names=True,
        thinking="effort",
        call_ids="openai",
        cache="key",
        schemas=_SCHEMAS,
        images=replace(
            _IMAGES,
            count=50,
            source=Source("learn.microsoft.com/azure/ai-services/openai/quotas-limits", "2026-11-21"),
        ),
        caching=_CACHING,
    ),
)


_ALWAYS_THINKS = re.compile(r"codex|-pro|gpt-oss")


def effort_word(model: str, effort: Effort) -> str:
    """OpenAI's word for it. Off is ``none`` from GPT-5.1 on, ``minimal`` for GPT-5, ``low`` where it cannot be off."""
    if effort != "off":
        return effort
    name = model.lower()
    match = re.search(r"gpt-(\d+)(?:\.(\d+))?", name)
    if match is None or _ALWAYS_THINKS.search(name):
        return "low"
    return "none" if (int(match[1]), int(match[2] or 0)) >= (5, 1) else "minimal"
