"""A call as one HTTP request: address, headers and body, as the provider's record says."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelSpec, Target
from agent_tui.providers.dialects import Dialect, dialect_of
from agent_tui.providers.direct.address import url_of
from agent_tui.providers.direct.anthropic import messages_body
from agent_tui.providers.direct.body import Fields
from agent_tui.providers.direct.chat import chat_body, responses_body
from agent_tui.providers.direct.cohere import cohere_body
from agent_tui.providers.direct.gemini import generate_body
from agent_tui.providers.direct.ollama import ollama_body
from agent_tui.providers.wire.request import WireCall

USER_AGENT = "agent-tui"

_FOR_LITELLM = frozenset(
    {"organization", "project", "tenant_id", "client_id", "client_secret", "allowed_openai_params", "base_model"}
    | {"additional_drop_params", "custom_llm_provider", "fallbacks", "mock_response", "ssl_verify", "headers"}
)
_FOR_LITELLM_STARTS = ("aws_", "azure_", "vertex_", "watsonx_", "litellm_", "oci_", "input_cost_", "output_cost_")
"""Arguments of LiteLLM's calls that are no fields of a body (docs.litellm.ai, input params and provider pages)."""


@dataclass(slots=True, frozen=True)
class HttpCall:
    """One request. The key is in ``headers``: never log them."""

    url: str
    headers: dict[str, str]
    body: Metadata

    @property
    def content(self) -> bytes:
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def is_direct(spec: ModelSpec, target: Target) -> bool:
    """Whether a model is called without LiteLLM. One whose ``extra`` speaks to that library is not: in a body its
    credentials would be told to the server as a field."""
    return spec.via != "litellm" and not any(map(is_for_litellm, spec.extra)) and dialect_of(target.provider).direct


def is_for_litellm(name: str) -> bool:
    """Whether an argument speaks to that library: it is no field of a body, and may be a credential."""
    return name in _FOR_LITELLM or name.startswith(_FOR_LITELLM_STARTS)


def encode(wire: WireCall, spec: ModelSpec, target: Target, key: str | None) -> HttpCall:
    """The request of a call. Raises NoAddressError."""
    dialect = dialect_of(target.provider)
    fields = Fields.of(wire.kwargs)
    headers = {"user-agent": USER_AGENT, "accept": "text/event-stream, application/json", **dialect.headers}
    headers |= _authorization(dialect, key)
    headers |= {name.lower(): value for name, value in fields.extra_headers.items()}
    return HttpCall(url_of(spec, target, dialect), headers, body_of(fields, target, dialect))


def body_of(fields: Fields, target: Target, dialect: Dialect) -> Metadata:
    """The body of a call to a provider that is called directly."""
    match dialect.wire:
        case _ if target.api == "responses":
            return responses_body(fields, target.model, dialect)
        case "anthropic":
            return messages_body(fields, target.model)
        case "gemini":
            return generate_body(fields, target.model)
        case "ollama":
            return ollama_body(fields, target.model)
        case "cohere":
            return cohere_body(fields, target.model)
        case _:
            return chat_body(fields, target.model, dialect)


def _authorization(dialect: Dialect, key: str | None) -> dict[str, str]:
    if not key:
        return {}
    return {"authorization": f"Bearer {key}"} if dialect.auth == "bearer" else {dialect.auth: key}
