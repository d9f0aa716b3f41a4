"""Which environment variables hold a provider's key, and which providers need none.

Names as LiteLLM and the providers' own documentation use them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from agent_tui.models.requests import ModelSpec

DUMMY_KEY = "no-key"
"""Sent to local servers, which ignore it; LiteLLM insists on some value."""

KEY_VARIABLES: dict[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "azure": ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
    "azure_ai": ("AZURE_AI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "codestral": ("CODESTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "cohere_chat": ("COHERE_API_KEY", "CO_API_KEY"),
    "moonshot": ("MOONSHOT_API_KEY",),
    "zai": ("ZAI_API_KEY",),
    "minimax": ("MINIMAX_API_KEY",),
    "dashscope": ("DASHSCOPE_API_KEY",),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
    "cerebras": ("CEREBRAS_API_KEY",),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "deepinfra": ("DEEPINFRA_API_KEY",),
    "nvidia_nim": ("NVIDIA_NIM_API_KEY",),
    "sambanova": ("SAMBANOVA_API_KEY",),
    "huggingface": ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
    "vercel_ai_gateway": ("VERCEL_AI_GATEWAY_API_KEY",),
    "novita": ("NOVITA_API_KEY",),
    "nebius": ("NEBIUS_API_KEY",),
    "meta_llama": ("LLAMA_API_KEY",),
    "ai21": ("AI21_API_KEY",),
    "replicate": ("REPLICATE_API_KEY",),
    "wandb": ("WANDB_API_KEY",),
}

LOCAL_PROVIDERS = frozenset(
    {"ollama", "ollama_chat", "lm_studio", "llamafile", "hosted_vllm", "vllm", "docker_model_runner", "lemonade"}
)
"""Servers people run themselves: no key needed."""

OPENAI_COMPATIBLE = frozenset({"openai", "custom_openai", "openai_like", "litellm_proxy"})
"""Providers whose name only says which language a server speaks."""


@dataclass(slots=True, frozen=True)
class Key:
    """The key to use. ``value`` None: LiteLLM finds credentials by itself (AWS, Google). ``missing`` names the
    environment variable to set when a key is needed and there is none."""

    value: str | None = None
    missing: str | None = None


def is_loopback(url: str | None) -> bool:
    """Whether a URL points at this machine."""
    host = (urlsplit(url).hostname or "") if url else ""
    return host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")


def needs_no_key(spec: ModelSpec, provider: str) -> bool:
    """Whether a model is served by a program of the user's own, which must not be sent a provider's key."""
    if spec.api_key_env:
        return False
    return provider in LOCAL_PROVIDERS or (provider in OPENAI_COMPATIBLE and is_loopback(spec.api_base))


def resolve_key(spec: ModelSpec, provider: str) -> Key:
    """The key for a model: from the keyring, from the variable the configuration names, or from the usual ones."""
    if spec.api_key:
        return Key(spec.api_key)
    configured = spec.extra.get("api_key")
    if isinstance(configured, str) and configured:
        return Key(configured)
    if spec.api_key_env:
        value = os.environ.get(spec.api_key_env)
        return Key(value) if value else Key(missing=spec.api_key_env)
    if provider in LOCAL_PROVIDERS:
        return Key(os.environ.get(f"{provider.upper()}_API_KEY") or DUMMY_KEY)
    if provider in OPENAI_COMPATIBLE and is_loopback(spec.api_base):
        return Key(DUMMY_KEY)
    names = KEY_VARIABLES.get(provider, ())
    for name in names:
        if value := os.environ.get(name):
            return Key(value)
    if names:
        return Key(missing=names[0])
    return Key(os.environ.get(f"{provider.upper()}_API_KEY"))


def missing_key_line(provider: str, variable: str) -> str:
    """The one line for a missing key, naming both ways to give it."""
    return f"No API key for {provider}: set {variable}, or run `agent-tui auth set {provider}`."
