"""The providers that are called directly, one record each. Every other one that LiteLLM knows is called through it;
what is known of those is in ``gateways``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from agent_tui.providers.dialects import image_limits as takes
from agent_tui.providers.dialects import schemas
from agent_tui.providers.dialects.gateways import GATEWAYS
from agent_tui.providers.dialects.record import Dialect

_COHERE = Dialect(
    "cohere",
    "cohere",
    "https://api.cohere.com/v2",
    base_variables=("COHERE_API_BASE",),
    keys=("COHERE_API_KEY", "CO_API_KEY"),
    bare_thoughts=True,
    json_lines=True,
    images=takes.COHERE,
)

_OLLAMA = Dialect(
    "ollama",
    "ollama",
    "http://127.0.0.1:11434",
    base_variables=("OLLAMA_API_BASE", "OLLAMA_HOST"),
    think_tags=True,
    pins_context=True,
    local=True,
    thinking="think",
    guessed_reasoning=True,
    schemas=schemas.GRAMMAR,
    images=takes.NONE,
)

_VLLM = Dialect(
    "hosted_vllm",
    base="http://127.0.0.1:8000/v1",
    host_path="/v1",
    base_variables=("HOSTED_VLLM_API_BASE",),
    think_tags=True,
    local=True,
    schemas=schemas.GRAMMAR,
    images=takes.NONE,
)

_RECORDS = (
    Dialect(
        "anthropic",
        "anthropic",
        "https://api.anthropic.com",
        base_variables=("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        auth="x-api-key",
        headers={"anthropic-version": "2023-06-01"},
        counting="messages",
        keys=("ANTHROPIC_API_KEY",),
        call_ids="plain",
        cache="markers",
        merging=True,
        thinking_blocks=True,
        drops_unfit=True,
        guessed_reasoning=True,
        schemas=schemas.CLAUDE,
        images=takes.CLAUDE,
    ),
    Dialect(
        "openai",
        base="https://api.openai.com/v1",
        host_path="/v1",
        base_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        openai=True,
        counting="responses",
        think_tags=True,
        keys=("OPENAI_API_KEY",),
        compatible=True,
        thinking="effort",
        call_ids="plain",
        raw_arguments=True,
        cache="key",
        schemas=schemas.OPENAI,
        images=takes.OPENAI,
    ),
    Dialect(
        "azure",
        base_variables=("AZURE_API_BASE",),
        auth="api-key",
        openai=True,
        deployments=True,
        keys=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        responses_hosts=(".azure.com", ".azure.us", ".azure.cn"),
        plain_names=True,
        thinking="effort",
        call_ids="plain",
        raw_arguments=True,
        cache="key",
        schemas=schemas.OPENAI,
        images=takes.AZURE,
    ),
    Dialect(
        "gemini",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "/v1beta",
        base_variables=("GEMINI_API_BASE",),
        auth="x-goog-api-key",
        counting="generate",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        cache="markers",
        merging=True,
        thinking_blocks=True,
        own_signatures=True,
        schemas=schemas.GEMINI,
        images=takes.GEMINI,
    ),
    Dialect(
        "openrouter",
        base="https://openrouter.ai/api/v1",
        host_path="/api/v1",
        base_variables=("OPENROUTER_API_BASE",),
        headers={"x-title": "agent-tui"},
        keys=("OPENROUTER_API_KEY",),
        thinking="object",
        cache="markers",
        usage_field=True,
        retains=MappingProxyType({"grok": (0.0, 0.0), "gpt chat": (1.0, 0.0)}),
        schemas=schemas.ROUTER,
    ),
    Dialect(
        "deepseek",
        base="https://api.deepseek.com",
        base_variables=("DEEPSEEK_API_BASE",),
        needs_thoughts=True,
        keys=("DEEPSEEK_API_KEY",),
        thinking="switch",
    ),
    Dialect(
        "xai",
        base="https://api.x.ai/v1",
        host_path="/v1",
        base_variables=("XAI_API_BASE",),
        keys=("XAI_API_KEY",),
        thinking="grok",
        schemas=schemas.GROK,
        images=takes.XAI,
    ),
    Dialect(
        "groq",
        base="https://api.groq.com/openai/v1",
        host_path="/openai/v1",
        base_variables=("GROQ_API_BASE",),
        think_tags=True,
        keys=("GROQ_API_KEY",),
        thinking="levels",
        schemas=schemas.GROQ,
        images=takes.GROQ,
    ),
    Dialect(
        "mistral",
        base="https://api.mistral.ai/v1",
        host_path="/v1",
        base_variables=("MISTRAL_API_BASE",),
        no_usage_option=True,
        drops=("reasoning_content", "reasoning"),
        keys=("MISTRAL_API_KEY",),
        call_ids="short",
        thoughts_past_litellm=True,
        guessed_reasoning=True,
        schemas=schemas.MISTRAL,
        images=takes.MISTRAL,
    ),
    Dialect(
        "moonshot",
        base="https://api.moonshot.ai/v1",
        host_path="/v1",
        base_variables=("MOONSHOT_API_BASE",),
        keys=("MOONSHOT_API_KEY",),
        thinking="extra switch",
    ),
    Dialect(
        "zai",
        base="https://api.z.ai/api/paas/v4",
        host_path="/api/paas/v4",
        base_variables=("ZAI_API_BASE",),
        keys=("ZAI_API_KEY",),
        thinking="extra switch",
    ),
    Dialect(
        "perplexity",
        base="https://api.perplexity.ai",
        base_variables=("PERPLEXITY_API_BASE", "PERPLEXITYAI_API_BASE"),
        no_usage_option=True,
        no_tools=True,
        think_tags=True,
        keys=("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
        schemas=schemas.SEARCH,
    ),
    _COHERE,
    replace(_COHERE, name="cohere_chat"),
    Dialect(
        "minimax",
        base="https://api.minimax.io/v1",
        host_path="/v1",
        base_variables=("MINIMAX_API_BASE",),
        think_tags=True,
        keys=("MINIMAX_API_KEY",),
    ),
    Dialect(
        "dashscope",
        base="https://dashscope.aliyuncs.com/compatible-mode/v1",
        base_variables=("DASHSCOPE_API_BASE",),
        think_tags=True,
        keys=("DASHSCOPE_API_KEY",),
    ),
    _OLLAMA,
    replace(_OLLAMA, name="ollama_chat", named_results=True),
    Dialect(
        "lm_studio",
        base="http://127.0.0.1:1234/v1",
        host_path="/v1",
        base_variables=("LM_STUDIO_API_BASE",),
        think_tags=True,
        local=True,
        schemas=schemas.GRAMMAR,
        images=takes.NONE,
    ),
    Dialect(
        "llamafile",
        base="http://127.0.0.1:8080/v1",
        host_path="/v1",
        base_variables=("LLAMAFILE_API_BASE",),
        think_tags=True,
        local=True,
        shared_port=True,
        schemas=schemas.GRAMMAR,
        images=takes.NONE,
    ),
    _VLLM,
    replace(_VLLM, name="vllm", base_variables=()),
    Dialect(
        "custom_openai",
        think_tags=True,
        compatible=True,
        plain_names=True,
        schemas=schemas.GRAMMAR,
    ),
    Dialect(
        "openai_like",
        think_tags=True,
        compatible=True,
        schemas=schemas.GRAMMAR,
    ),
    Dialect(
        "litellm_proxy",
        base_variables=("LITELLM_PROXY_API_BASE",),
        think_tags=True,
        compatible=True,
        plain_names=True,
        schemas=schemas.GRAMMAR,
    ),
)
DIALECTS: Mapping[str, Dialect] = MappingProxyType({record.name: record for record in (*_RECORDS, *GATEWAYS)})


def dialect_of(provider: str) -> Dialect:
    """The record of a provider; of one that has none, what sends it through LiteLLM."""
    return DIALECTS.get(provider) or Dialect(provider, "gateway")


def has_record(provider: str) -> bool:
    """Whether anything is known of a provider by this name."""
    return provider in DIALECTS
