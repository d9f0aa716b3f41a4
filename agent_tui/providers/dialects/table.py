"""Providers without a language of their own, a row each: servers that speak OpenAI's, and what only LiteLLM can talk
to. Adding a provider is a row here and a recording."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from agent_tui.providers.dialects.chat import WIRE as CHAT
from agent_tui.providers.dialects.claude import HAS_SCHEMAS as CLAUDES
from agent_tui.providers.dialects.gemini import HAS_SCHEMAS as GEMINIS
from agent_tui.providers.dialects.gemini import OPEN
from agent_tui.providers.dialects.openai import HAS_SCHEMAS as GPTS
from agent_tui.providers.dialects.openai import STRICT
from agent_tui.providers.dialects.record import (
    HOUR,
    MEBI,
    OWN_IMAGES,
    OWN_SCHEMAS,
    Caching,
    Dialect,
    EffortStyle,
    ImageLimits,
    ModelFamily,
    RetentionRule,
    Schemas,
    Source,
    WebSearch,
    variable,
)

_GROKS = r"grok-(?:[4-9]|\d\d)(?!\d)"
"""With tools: "only for the Grok 4 family"."""

FAMILIES = (
    ModelFamily("glm", re.compile(r"(?:^|[^a-z])glm|zai-org|z-ai")),
    ModelFamily("kimi", re.compile(r"kimi|moonshot")),
    ModelFamily("deepseek", re.compile(r"deepseek")),
    ModelFamily(
        "mistral",
        re.compile(r"mi[sx]tral|magistral|codestral|devstral|ministral|pixtral"),
        alternates=True,
        call_ids="short",
    ),
)
RETENTION = (
    RetentionRule("grok 4.3 responses", (1.0, 1.0), model=re.compile(r"grok-4\.3"), api="responses"),
    RetentionRule("grok responses", (1.0, 0.0), model=re.compile("grok"), api="responses"),
    RetentionRule("grok 3", (0.0, 0.0), model=re.compile("grok-3")),
    RetentionRule("grok", (1.0, 0.0), model=re.compile("grok")),
    RetentionRule("deepseek", (0.95, 0.0), "deepseek"),
    RetentionRule("glm", (1.0, 1.0), "glm"),
)

_local = partial(
    Dialect,
    wire=CHAT,
    host_path="/v1",
    think_tags=True,
    local=True,
    # One model in the memory of one machine: a second request waits for the first, or halves its speed.
    batches=False,
    schemas=OWN_SCHEMAS,
    images=OWN_IMAGES,
    # "Unsupported chat content part type: 'file'" (github.com/vllm-project/vllm 57774, read 2026-11-22); llama.cpp:
    # "unsupported content[].type".
    no_files=True,
)
"""A server people run themselves."""
_language = partial(Dialect, wire=CHAT, think_tags=True, compatible=True, schemas=OWN_SCHEMAS)
"""A name that only says which language a server speaks."""
_VLLM = _local("hosted_vllm", batches=True, base="http://127.0.0.1:8000/v1", base_variables=("HOSTED_VLLM_API_BASE",))


def _hosted(
    name: str,
    base: str,
    host_path: str = "",
    default_model: str | None = None,
    thinking: EffortStyle | None = None,
    think_tags: bool = False,
) -> Dialect:
    """A service that speaks OpenAI's language, whose key and address are in variables with its name."""
    key, address = variable(name, "KEY"), variable(name, "BASE")
    record = Dialect(name, CHAT, base, host_path, base_variables=(address,), keys=(key,), think_tags=think_tags)
    return replace(record, default_model=default_model, thinking=thinking)


def _litellm(name: str, *keys: str, default_model: str | None = None, begins: str = "") -> Dialect:
    return Dialect(name, keys=keys, key_begins=(begins,) if begins else (), default_model=default_model)


RECORDS = (
    replace(
        _hosted("openrouter", "https://openrouter.ai/api/v1", "/api/v1", "anthropic/claude-sonnet-4.5", "object"),
        headers={"x-title": "agent-tui"},
        key_begins=("sk-or-",),
        # Its report says what all of a call has cost.
        search=WebSearch(
            MappingProxyType({"type": "openrouter:web_search"}),
            source=Source("openrouter.ai/docs/guides/features/server-tools/web-search", "2026-11-27"),
        ),
        cache="markers",
        usage_field=True,
        retains=MappingProxyType({"grok": (0.0, 0.0), "gpt chat": (1.0, 0.0)}),
        # It passes a schema on where the model's maker has them.
        schemas=Schemas(
            "always",
            STRICT,
            re.compile(rf"{GPTS}|{CLAUDES}|{GEMINIS}|{_GROKS}"),
            source=Source("openrouter.ai/docs/features/structured-outputs", "2026-11-21"),
        ),
    ),
    replace(
        _hosted("mistral", "https://api.mistral.ai/v1", "/v1", "mistral-medium-latest"),
        no_usage_option=True,
        drops=("reasoning_content", "reasoning"),
        call_ids="short",
        thoughts_past_litellm=True,
        guessed_reasoning=True,
        # Nothing is said of tools.
        schemas=Schemas(
            "without tools", STRICT, source=Source("docs.mistral.ai/capabilities/structured_output", "2026-11-21")
        ),
        # 10 MB an image, 8 images.
        images=ImageLimits(
            10_000_000,
            None,
            count=8,
            total=45_000_000,
            source=Source("docs.mistral.ai/capabilities/vision", "2026-11-21"),
        ),
    ),
    replace(
        _hosted("deepseek", "https://api.deepseek.com", "", "deepseek-chat", "switch"),
        needs_thoughts=True,
        # In units of 64 tokens; cleared after "a few hours to a few days".
        caching=Caching(minimum=64, source=Source("api-docs.deepseek.com/guides/kv_cache", "2026-11-21")),
    ),
    replace(
        _hosted("xai", "https://api.x.ai/v1", "/v1", "grok-4", "grok"),
        key_begins=("xai-",),
        search=WebSearch(
            MappingProxyType({"type": "web_search"}),
            price=0.005,
            api="responses",
            source=Source("docs.x.ai/developers/pricing", "2026-11-27"),
        ),
        schemas=Schemas(
            "always",
            STRICT,
            re.compile(_GROKS),
            source=Source("docs.x.ai/docs/guides/structured-outputs", "2026-11-21"),
        ),
        # 20 MiB, no limit of their number, JPEG and PNG only.
        images=ImageLimits(
            20 * MEBI,
            None,
            count=None,
            total=45_000_000,
            types=frozenset({"image/png", "image/jpeg"}),
            source=Source("docs.x.ai/docs/guides/image-understanding", "2026-11-21"),
        ),
    ),
    replace(
        _hosted("groq", "https://api.groq.com/openai/v1", "/openai/v1", "openai/gpt-oss-120b", "levels", True),
        key_begins=("gsk_",),
        # Not with tool use.
        schemas=Schemas(
            "without tools",
            STRICT,
            loose=True,
            source=Source("console.groq.com/docs/structured-outputs", "2026-11-21"),
        ),
        # 4 MB a request with base64 images, 33 177 600 pixels, 5 images.
        images=ImageLimits(
            3_600_000,
            None,
            33_177_600,
            5,
            total=3_600_000,
            source=Source("console.groq.com/docs/vision", "2026-11-21"),
        ),
        # Gone after two hours without use.
        caching=Caching(
            minimum=128, gone=2 * HOUR, source=Source("console.groq.com/docs/prompt-caching", "2026-11-21")
        ),
    ),
    _hosted("zai", "https://api.z.ai/api/paas/v4", "/api/paas/v4", "glm-4.7", "extra switch"),
    _hosted("moonshot", "https://api.moonshot.ai/v1", "/v1", "kimi-k2.5", "extra switch"),
    replace(
        _hosted("perplexity", "https://api.perplexity.ai", think_tags=True),
        base_variables=("PERPLEXITY_API_BASE", "PERPLEXITYAI_API_BASE"),
        no_usage_option=True,
        no_tools=True,
        keys=("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
        key_begins=("pplx-",),
        schemas=Schemas(
            "without tools", OPEN, source=Source("docs.perplexity.ai/guides/structured-outputs", "2026-11-21")
        ),
    ),
    _hosted("minimax", "https://api.minimax.io/v1", "/v1", think_tags=True),
    _hosted("dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1", think_tags=True),
    _local("lm_studio", base="http://127.0.0.1:1234/v1", base_variables=("LM_STUDIO_API_BASE",), title="LM Studio"),
    _local(
        "llamafile",
        base="http://127.0.0.1:8080/v1",
        base_variables=("LLAMAFILE_API_BASE",),
        title="llama.cpp",
        shared_port=True,
    ),
    _VLLM,
    replace(_VLLM, name="vllm", base_variables=()),
    _language("custom_openai", plain_names=True),
    _language("openai_like"),
    _language("litellm_proxy", base_variables=("LITELLM_PROXY_API_BASE",), plain_names=True),
    # Only LiteLLM can talk to those.
    Dialect(
        "azure_ai",
        keys=("AZURE_AI_API_KEY",),
        call_ids="plain",
        cache="markers",
        merging=True,
        thinking_blocks=True,
    ),
    Dialect("sagemaker", credentials_elsewhere=True),
    Dialect("sagemaker_chat", credentials_elsewhere=True),
    Dialect("codestral", keys=("CODESTRAL_API_KEY",), call_ids="short"),
    Dialect("docker_model_runner", local=True, batches=False),
    Dialect("lemonade", local=True, batches=False),
    _litellm("together_ai", "TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"),
    _litellm("fireworks_ai", "FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", begins="fw_"),
    _litellm("cerebras", "CEREBRAS_API_KEY", default_model="gpt-oss-120b", begins="csk-"),
    _litellm("deepinfra", "DEEPINFRA_API_KEY"),
    _litellm("nvidia_nim", "NVIDIA_NIM_API_KEY", begins="nvapi-"),
    _litellm("sambanova", "SAMBANOVA_API_KEY"),
    _litellm("huggingface", "HF_TOKEN", "HUGGINGFACE_API_KEY", begins="hf_"),
    _litellm("vercel_ai_gateway", "VERCEL_AI_GATEWAY_API_KEY"),
    _litellm("novita", "NOVITA_API_KEY"),
    _litellm("nebius", "NEBIUS_API_KEY"),
    _litellm("meta_llama", "LLAMA_API_KEY"),
    _litellm("ai21", "AI21_API_KEY"),
    _litellm("replicate", "REPLICATE_API_KEY", begins="r8_"),
    _litellm("wandb", "WANDB_API_KEY"),
)
