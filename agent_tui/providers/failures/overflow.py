"""Every known spelling of "the input is larger than the context"."""

from __future__ import annotations

import re

_OVERFLOW = re.compile(
    "|".join(
        (
            r"maximum context length",  # OpenAI, vLLM, DeepSeek, OpenRouter
            r"context[_ ]length[_ ]exceeded",  # OpenAI's code
            r"context[_ ]window[_ ]?(?:is )?exceeded|contextwindowexceeded",
            r"model_context_window_exceeded",  # Anthropic's stop reason
            r"exceeds? the (?:model'?s )?(?:maximum )?context (?:window|length|limit|size)",
            r"exceeds? (?:the )?(?:available|allowed|maximum|max) context",  # llama.cpp
            r"exceeds? (?:the )?(?:model'?s )?context (?:window|length|size|limit)",
            r"context (?:window|length|size|limit) (?:has been |was |is )?exceeded",
            r"(?:input|prompt)(?: length)?.{0,80}exceed.{0,40}context",  # Anthropic, with max_tokens
            r"prompt is too long",  # Anthropic
            r"input is too long",  # Bedrock
            r"input (?:token|length).{0,40}(?:exceeds|too large|too long).{0,80}(?:token|maximum|limit)",
            r"input token count.{0,40}exceeds the maximum",  # Gemini
            r"exceeds the maximum number of (?:input )?tokens",  # Gemini
            r"input tokens exceed the configured limit",  # OpenAI Responses
            r"your input exceeds the context window",  # OpenAI Responses
            r"maximum prompt length is",  # xAI
            r"too many (?:input |prompt )?tokens",  # Cohere, Bedrock
            r"too large for model with \d+ maximum context",  # Mistral
            r"prompt contains \d+ tokens.{0,80}too large",  # Mistral
            r"longer than the (?:model'?s|maximum) (?:context|input|model)",  # vLLM
            r"reduce the length of (?:the |your )?(?:messages|prompt|input|conversation)",  # OpenAI, Groq
            r"prompt (?:is )?too (?:long|large).{0,40}(?:context|token|model)?",
            r"tokens? (?:exceeds?|is greater than|over) (?:the )?(?:model |context |token |maximum )",
            r"request (?:\(\d+ tokens\) )?exceeds the (?:available )?context",  # llama.cpp
            r"current length is \d+ while limit is",  # Cerebras
            r"total number of tokens.{0,60}exceed",
            r"(?:n_ctx|num_ctx|n_prompt_tokens).{0,60}(?:exceed|too (?:small|large|long))",
            r"trying to keep the first \d+ tokens when context the overflows",  # LM Studio
            r"context the overflows|context overflow",
            r"tokens to keep from the initial prompt is greater than the context length",  # LM Studio
            r"input length \d+ exceeds",
            r"max_tokens.{0,20}(?:plus|\+).{0,40}(?:exceed|context)",
            r"`inputs` tokens \+ `max_new_tokens` must be",  # TGI
            r"range of input length should be",  # DashScope
            r"token limit exceeded|exceeded model token limit",  # Moonshot
            r"max_tokens must be at least 1, got -\d",  # vLLM: what is left of the window
            r"prompt exceeds max(?:imum)? (?:context )?length",  # Z.ai
            r"number of input tokens exceeds maximum length",  # Bedrock, Nova
            r"超过.{0,12}(?:长度|上下文|token)",  # zai and other Chinese gateways
        )
    ),
    re.IGNORECASE | re.DOTALL,
)
_NOT_OVERFLOW = re.compile(
    r"string_above_max_length|invalid 'user'|tokens per (?:min|day|hour)|\btpm\b|\btpd\b|rate.?limit|throttl|"
    r"per-minute|please wait",
    re.I,
)


def is_overflow(text: str) -> bool:
    """Whether a provider's error text says, in any known spelling, that the input is larger than the context."""
    return bool(_OVERFLOW.search(text)) and not (
        _NOT_OVERFLOW.search(text) and not re.search(r"context[_ ](?:length|window)", text, re.I)
    )
