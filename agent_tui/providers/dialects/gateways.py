"""What is known of providers that only LiteLLM can talk to."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from agent_tui.providers.dialects import image_limits as takes
from agent_tui.providers.dialects.record import Dialect

_BEDROCK = Dialect(
    "bedrock",
    "gateway",
    credentials_elsewhere=True,
    call_ids="plain",
    cache="markers",
    merging=True,
    thinking_blocks=True,
    guessed_reasoning=True,
    images=takes.BEDROCK,
)
_VERTEX = Dialect(
    "vertex_ai",
    "gateway",
    credentials_elsewhere=True,
    needs_package="google-auth; for Claude google-cloud-aiplatform",
    call_ids="plain",
    cache="markers",
    merging=True,
    thinking_blocks=True,
    own_signatures=True,
    # Vertex counts the thoughts of 2.5 in a tool loop, and not what wraps a tool's result.
    retains=MappingProxyType({"gemini 2.5": (1.0, 0.0)}),
    framing=MappingProxyType({"gemini": "gemini-vertex"}),
    images=takes.VERTEX,
)


def _plain(name: str, *keys: str) -> Dialect:
    return Dialect(name, "gateway", keys=keys)


GATEWAYS = (
    _BEDROCK,
    _VERTEX,
    replace(_VERTEX, name="vertex_ai_beta"),
    Dialect(
        "azure_ai",
        "gateway",
        keys=("AZURE_AI_API_KEY",),
        call_ids="plain",
        cache="markers",
        merging=True,
        thinking_blocks=True,
    ),
    Dialect("sagemaker", "gateway", credentials_elsewhere=True),
    Dialect("sagemaker_chat", "gateway", credentials_elsewhere=True),
    Dialect("codestral", "gateway", keys=("CODESTRAL_API_KEY",), call_ids="short"),
    Dialect("docker_model_runner", "gateway", local=True),
    Dialect("lemonade", "gateway", local=True),
    _plain("together_ai", "TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"),
    _plain("fireworks_ai", "FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
    _plain("cerebras", "CEREBRAS_API_KEY"),
    _plain("deepinfra", "DEEPINFRA_API_KEY"),
    _plain("nvidia_nim", "NVIDIA_NIM_API_KEY"),
    _plain("sambanova", "SAMBANOVA_API_KEY"),
    _plain("huggingface", "HF_TOKEN", "HUGGINGFACE_API_KEY"),
    _plain("vercel_ai_gateway", "VERCEL_AI_GATEWAY_API_KEY"),
    _plain("novita", "NOVITA_API_KEY"),
    _plain("nebius", "NEBIUS_API_KEY"),
    _plain("meta_llama", "LLAMA_API_KEY"),
    _plain("ai21", "AI21_API_KEY"),
    _plain("replicate", "REPLICATE_API_KEY"),
    _plain("wandb", "WANDB_API_KEY"),
)
