"""Bodies of chat completions and of the Responses API: nearly the arguments themselves."""

from __future__ import annotations

from agent_tui.models.messages import Metadata
from agent_tui.providers.catalog.model_versions import is_openai_reasoning
from agent_tui.providers.dialects import Dialect
from agent_tui.providers.direct.body import Fields

_REFUSED_BY_REASONING = frozenset(
    {"temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias"}
)


def chat_body(fields: Fields, model: str, dialect: Dialect) -> Metadata:
    """A body of ``/chat/completions``."""
    rest = dict(fields.rest)
    if dialect.openai and is_openai_reasoning(model):
        rest = _for_reasoning(rest)
    needs_thoughts = dialect.needs_thoughts and (rest.get("thinking") or {}).get("type") == "enabled"
    body: Metadata = {
        "model": model,
        "messages": [_message(message, dialect, needs_thoughts) for message in fields.messages],
        "stream": True,
    }
    if not dialect.no_usage_option:
        body["stream_options"] = {"include_usage": True}
    if fields.tools and not dialect.no_tools:
        body["tools"] = fields.tools
    return {**body, **rest, **fields.extra_body}


def responses_body(fields: Fields, model: str, dialect: Dialect) -> Metadata:
    """A body of ``/responses``."""
    body: Metadata = {"model": model, "stream": True}
    if fields.tools:
        body["tools"] = fields.tools
    rest = _for_reasoning(fields.rest) if dialect.openai and is_openai_reasoning(model) else fields.rest
    return {**body, **rest, **fields.extra_body}


def _for_reasoning(rest: Metadata) -> Metadata:
    """Without what OpenAI's reasoning models refuse (platform.openai.com/docs/guides/latest-model), and with their
    name for the most tokens of an answer."""
    kept = {name: value for name, value in rest.items() if name not in _REFUSED_BY_REASONING}
    if "max_tokens" in kept:
        kept["max_completion_tokens"] = kept.pop("max_tokens")
    return kept


def _message(message: Metadata, dialect: Dialect, needs_thoughts: bool) -> Metadata:
    made = {name: value for name, value in message.items() if name not in dialect.drops and value is not None}
    marker = made.pop("cache_control", None)
    if marker is not None and isinstance(made.get("content"), list):
        # Where messages take no marker of their own, the last block of one does.
        made["content"] = [*made["content"][:-1], {**made["content"][-1], "cache_control": marker}]
    if needs_thoughts and made["role"] == "assistant" and "reasoning_content" not in made:
        # Refused without: "Missing reasoning_content field in the assistant message".
        made["reasoning_content"] = " "
    return made
