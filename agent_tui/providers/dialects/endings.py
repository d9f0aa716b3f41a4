"""What each reason means with which an answer is said to have ended.

One table for all APIs: gateways hand the words of the provider behind them on in their own form, so that any of them
may arrive by any API. No word has two meanings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from agent_tui.models.requests import FinishReason
from agent_tui.records import dataclass

Ending = Literal[FinishReason, "overflow", "broken", "rejected"]
"""``overflow``: the window is full. ``broken``: the provider failed over the answer, or cannot read what the model
wrote. ``rejected``: the request is at fault, however often it is sent. ``unknown``: nobody knows the word."""

_CHAT: dict[str, Ending] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "completed": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refused",
    "refusal": "refused",
    "error": "broken",
    # vLLM and SGLang, where the request was ended from outside.
    "abort": "broken",
    "aborted": "broken",
    "cancelled": "broken",
    "repetition": "broken",
    # Mistral: input and answer fill the context of the model.
    "model_length": "overflow",
    # Z.ai.
    "sensitive": "refused",
    "network_error": "broken",
    # DeepSeek.
    "insufficient_system_resource": "broken",
}
_RESPONSES: dict[str, Ending] = {"max_output_tokens": "length", "failed": "broken"}
_ANTHROPIC: dict[str, Ending] = {
    "pause_turn": "paused",
    "compaction": "stop",
    "tool_use": "tool_calls",
    "model_context_window_exceeded": "overflow",
}
_BEDROCK: dict[str, Ending] = {
    "guardrail_intervened": "refused",
    "content_filtered": "refused",
    "malformed_model_output": "broken",
    "malformed_tool_use": "broken",
}
_GEMINI: dict[str, Ending] = {
    "safety": "refused",
    "recitation": "refused",
    "language": "refused",
    "blocklist": "refused",
    "prohibited_content": "refused",
    "spii": "refused",
    "model_armor": "refused",
    "jailbreak": "refused",
    "image_safety": "refused",
    "image_prohibited_content": "refused",
    "image_recitation": "refused",
    "malformed_function_call": "broken",
    "malformed_response": "broken",
    "unexpected_tool_call": "broken",
    "too_many_tool_calls": "broken",
    "no_image": "broken",
    # It will be missing next time, too.
    "missing_thought_signature": "rejected",
    "other": "unknown",
    "image_other": "unknown",
    "finish_reason_unspecified": "unknown",
}
_COHERE: dict[str, Ending] = {
    "tool_call": "tool_calls",
    "timeout": "broken",
    "error_toxic": "refused",
    "error_limit": "overflow",
    "user_cancel": "broken",
}
_OLLAMA: dict[str, Ending] = {"load": "broken", "unload": "broken"}
"""The model was only loaded or unloaded: that is no answer."""


def _together(tables: Iterable[Mapping[str, Ending]]) -> Mapping[str, Ending]:
    found: dict[str, Ending] = {}
    for table in tables:
        for word, ending in table.items():
            if found.setdefault(word, ending) != ending:
                raise ValueError(f"{word} ends an answer in two ways")
    return MappingProxyType(found)


ENDINGS = _together((_CHAT, _RESPONSES, _ANTHROPIC, _BEDROCK, _GEMINI, _COHERE, _OLLAMA))

_NO_REASON = frozenset({"", "none", "null", "false"})

GRAVE: frozenset[Ending] = frozenset({"overflow", "broken", "rejected", "refused"})
"""What stands beside another reason and says more than that."""


def ending_of(reason: Any) -> Ending | None:
    """Returns what a reason means; None for what is none: several servers send an empty one with each piece."""
    word = re.sub(r"[\s-]+", "_", str(reason if reason is not None else "").strip().lower())
    return None if word in _NO_REASON else ENDINGS.get(word, "unknown")


@dataclass(slots=True, frozen=True)
class BadEnd:
    """An end that leaves no answer to go on with; ``words`` are the provider's for it."""

    ending: Ending
    words: str
