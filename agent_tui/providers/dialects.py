"""What is known of each provider, one frozen record each; the algorithms read the records and name no provider.

A provider with a wire of its own is called directly. Every other one that LiteLLM knows is called through it.
Adding an OpenAI-compatible provider is one record here and one recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Wire = Literal["chat", "anthropic", "gemini", "cohere", "ollama", "gateway"]
Counting = Literal["messages", "generate", "responses"]
Auth = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"]

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True, frozen=True)
class Dialect:
    """How to talk to one provider. ``name`` is LiteLLM's name of it.

    ``wire``: the form of the body where the Responses API is not used; ``gateway``: only LiteLLM knows it.
    ``base``: the provider's own address, None where the user's configuration has to say it. ``host_path``: the path
    that a configured address without one gets. ``base_variables``: environment variables that hold an address.
    ``no_usage_option``: refuses ``stream_options``, usage comes unasked. ``no_tools``: takes no tools.
    ``openai``: serves OpenAI's own models, whose reasoning ones take other fields. ``needs_thoughts``: with thinking
    on, every earlier answer has to have a field for its thoughts. ``deployments``: models are reached under names of
    the user's own (Azure). ``drops``: fields of a message that it refuses. ``counting``: its endpoint for
    exact counts; ``responses`` counts only what goes to the Responses API. ``think_tags``: models of
    the user's own are served, which may write their thoughts into the text.
    ``pins_context``: every request says with which context the model is to be loaded.
    """

    name: str
    wire: Wire = "chat"
    base: str | None = None
    host_path: str = ""
    base_variables: tuple[str, ...] = ()
    auth: Auth = "bearer"
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    no_usage_option: bool = False
    no_tools: bool = False
    openai: bool = False
    needs_thoughts: bool = False
    deployments: bool = False
    counting: Counting | None = None
    think_tags: bool = False
    pins_context: bool = False
    drops: tuple[str, ...] = ()

    @property
    def direct(self) -> bool:
        return self.wire != "gateway"


_RECORDS = (
    Dialect(
        "anthropic",
        "anthropic",
        "https://api.anthropic.com",
        base_variables=("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        auth="x-api-key",
        headers={"anthropic-version": "2023-06-01"},
        counting="messages",
    ),
    Dialect(
        "openai",
        base="https://api.openai.com/v1",
        host_path="/v1",
        base_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        openai=True,
        counting="responses",
        think_tags=True,
    ),
    Dialect("azure", base_variables=("AZURE_API_BASE",), auth="api-key", openai=True, deployments=True),
    Dialect(
        "gemini",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "/v1beta",
        base_variables=("GEMINI_API_BASE",),
        auth="x-goog-api-key",
        counting="generate",
    ),
    Dialect(
        "openrouter",
        base="https://openrouter.ai/api/v1",
        host_path="/api/v1",
        base_variables=("OPENROUTER_API_BASE",),
        headers={"x-title": "agent-tui"},
    ),
    Dialect("deepseek", base="https://api.deepseek.com", base_variables=("DEEPSEEK_API_BASE",), needs_thoughts=True),
    Dialect("xai", base="https://api.x.ai/v1", host_path="/v1", base_variables=("XAI_API_BASE",)),
    Dialect(
        "groq",
        base="https://api.groq.com/openai/v1",
        host_path="/openai/v1",
        base_variables=("GROQ_API_BASE",),
        think_tags=True,
    ),
    Dialect(
        "mistral",
        base="https://api.mistral.ai/v1",
        host_path="/v1",
        base_variables=("MISTRAL_API_BASE",),
        no_usage_option=True,
        drops=("reasoning_content", "reasoning"),
    ),
    Dialect("moonshot", base="https://api.moonshot.ai/v1", host_path="/v1", base_variables=("MOONSHOT_API_BASE",)),
    Dialect("zai", base="https://api.z.ai/api/paas/v4", host_path="/api/paas/v4", base_variables=("ZAI_API_BASE",)),
    Dialect(
        "perplexity",
        base="https://api.perplexity.ai",
        base_variables=("PERPLEXITY_API_BASE", "PERPLEXITYAI_API_BASE"),
        no_usage_option=True,
        no_tools=True,
        think_tags=True,
    ),
    Dialect("cohere", "cohere", "https://api.cohere.com/v2", base_variables=("COHERE_API_BASE",)),
    Dialect("cohere_chat", "cohere", "https://api.cohere.com/v2", base_variables=("COHERE_API_BASE",)),
    Dialect(
        "minimax",
        base="https://api.minimax.io/v1",
        host_path="/v1",
        base_variables=("MINIMAX_API_BASE",),
        think_tags=True,
    ),
    Dialect(
        "dashscope",
        base="https://dashscope.aliyuncs.com/compatible-mode/v1",
        base_variables=("DASHSCOPE_API_BASE",),
        think_tags=True,
    ),
    Dialect(
        "ollama",
        "ollama",
        "http://127.0.0.1:11434",
        base_variables=("OLLAMA_API_BASE", "OLLAMA_HOST"),
        think_tags=True,
        pins_context=True,
    ),
    Dialect(
        "ollama_chat",
        "ollama",
        "http://127.0.0.1:11434",
        base_variables=("OLLAMA_API_BASE", "OLLAMA_HOST"),
        think_tags=True,
        pins_context=True,
    ),
    Dialect(
        "lm_studio",
        base="http://127.0.0.1:1234/v1",
        host_path="/v1",
        base_variables=("LM_STUDIO_API_BASE",),
        think_tags=True,
    ),
    Dialect(
        "llamafile",
        base="http://127.0.0.1:8080/v1",
        host_path="/v1",
        base_variables=("LLAMAFILE_API_BASE",),
        think_tags=True,
    ),
    Dialect(
        "hosted_vllm",
        base="http://127.0.0.1:8000/v1",
        host_path="/v1",
        base_variables=("HOSTED_VLLM_API_BASE",),
        think_tags=True,
    ),
    Dialect("vllm", base="http://127.0.0.1:8000/v1", host_path="/v1", think_tags=True),
    Dialect("custom_openai", think_tags=True),
    Dialect("openai_like", think_tags=True),
    Dialect("litellm_proxy", base_variables=("LITELLM_PROXY_API_BASE",), think_tags=True),
)
DIALECTS: Mapping[str, Dialect] = MappingProxyType({record.name: record for record in _RECORDS})


def dialect_of(provider: str) -> Dialect:
    """The record of a provider; of one that has none, what sends it through LiteLLM."""
    return DIALECTS.get(provider) or Dialect(provider, "gateway")
