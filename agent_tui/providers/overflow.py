"""Every known spelling of "the input is larger than the context", and the numbers that come with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_tui.models.failure import Overflow

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
            r"input is too long",  # Bedrock
            r"input (?:token|length).{0,40}(?:exceeds|too large|too long).{0,80}(?:token|maximum|limit)",
            r"input token count.{0,40}exceeds the maximum",  # Gemini
            r"exceeds the maximum number of (?:input )?tokens",  # Gemini
            r"input tokens exceed the configured limit",  # OpenAI Responses
            r"maximum prompt length is",  # xAI
            r"too many (?:input |prompt )?tokens",  # Cohere, Bedrock
            r"too large for model with \d+ maximum context",  # Mistral
            r"prompt contains \d+ tokens.{0,80}too large",  # Mistral
            r"longer than the (?:model'?s|maximum) (?:context|input|model)",  # vLLM
            r"reduce the length of (?:the |your )?(?:messages|prompt|input|conversation)",  # OpenAI, Groq
            r"prompt (?:is )?too (?:long|large)",  # Anthropic
            r"tokens? (?:exceeds?|is greater than|over) (?:the )?(?:model |context |token |maximum )",
            r"request (?:\(\d+ tokens\) )?exceeds the (?:available )?context",  # llama.cpp
            r"current length is \d+ while limit is",  # Cerebras
            r"total number of tokens.{0,60}exceed",
            r"(?:n_ctx|num_ctx|n_prompt_tokens).{0,60}(?:exceed|too (?:small|large|long))",
            r"context the overflows|context overflow",  # LM Studio
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
    """Returns whether a provider's error text says, in any known spelling, that the input is larger than the
    context."""
    return bool(_OVERFLOW.search(text)) and not (
        _NOT_OVERFLOW.search(text) and not re.search(r"context[_ ](?:length|window)", text, re.I)
    )


LARGEST = 100_000_000
"""Tokens: larger than any context; a number above it is none."""

_N = r"\d{1,3}(?:[,_]\d{3})+|\d+"
_TEXT_LIMIT = 300
_READ_LIMIT = 20_000

_RATE = re.compile(
    r"per[- ](?:min|minute|second|hour|day|month)\b|\bt[pk]m\b|\btpd\b|\brp[md]\b|rate[ _-]?limit|quota|throttl|"
    r"too many requests|please wait",
    re.IGNORECASE,
)
"""A text that speaks of a rate is never read as a context's size, whatever else it says."""

_INEXACT = re.compile(
    r"\babout\b|\bat least\b|\bapproximately\b|\bestimated\b|~\s?\d|trying to keep|n_keep", re.IGNORECASE
)


def _row(pattern: str) -> re.Pattern[str]:
    """``{name}`` in a pattern is a number of that name."""
    return re.compile(re.sub(r"\{(\w+)\}", lambda m: f"(?P<{m[1]}>{_N})", pattern), re.IGNORECASE | re.DOTALL)


_SIZES: tuple[re.Pattern[str], ...] = tuple(
    _row(pattern)
    for pattern in (
        # The answer alone is longer than the model's longest.
        r"max_tokens\W{1,4}{output} > {max_output}, which is the maximum allowed number of output tokens",  # Anthropic
        r"max_tokens is too large\W{1,3}{output}\W.{0,40}supports at most {max_output} completion tokens",  # OpenAI
        r"integer above maximum value.{0,20}expected a value <= {max_output}, but got {output}",  # OpenAI, Volcengine
        r"maxOutputTokens value of {output} but the supported range is from 1 \(inclusive\) to {past_output} "
        r"\(exclusive\)",  # Vertex
        r"range of max_tokens (?:is|should be) \[1, ?{max_output}\]",  # DeepSeek, DashScope
        r"max_tokens.{0,40}数值范围\s*\[1, ?{max_output}\]",  # Z.ai
        r"max[_ ](?:completion_|output_|new_)?tokens\W{1,3}must be less than or equal to\W{1,3}{max_output}",  # Groq
        r"max_tokens \({output}\) exceeds model'?s maximum output tokens \({max_output}\)",  # Ollama's cloud
        r"maximum tokens you requested exceeds the model limit of {past_output}\.? try again with a maximum tokens "
        r"value that is lower",  # Bedrock
        # Input, output and window, each told.
        r"exceed context limit\W{1,3}{input} \+ {output} > {window}",  # Anthropic
        r"too large\W{1,3}{output}\. ?this model'?s maximum context length is {window} tokens and your request has "
        r"{input} input tokens",  # vLLM
        r"maximum context length is {window} tokens\W.{0,20}you requested {output} output tokens and your prompt "
        r"contains (?:at least )?{input} input tokens",  # vLLM since 0.11
        r"maximum context length of {window} tokens\. you requested a total of {total} tokens\W{1,3}{input} tokens "
        r"from the input messages and {output} tokens for the completion",  # SGLang
        r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= {window}\. given\W{1,3}{input} `?inputs`? tokens "
        r"and {output} ",  # TGI
        # Input and window.
        r"n_keep\W{1,3}{input}\s*>=\s*n_ctx\W{1,3}{window}",  # LM Studio
        r"trying to keep the first {input} tokens when .{0,160}context length of only {window} tokens",  # LM Studio
        r"n_prompt_tokens\W{1,8}{input}\b.{0,40}n_ctx\W{1,8}{window}",  # llama.cpp
        r"n_ctx\W{1,8}{window}\b.{0,40}n_prompt_tokens\W{1,8}{input}",
        r"request \({input} tokens\) exceeds the available context size \({window} tokens\)",  # llama.cpp
        r"input \({input} tokens\) is (?:longer|larger) than the (?:model'?s|max) context (?:length|size) "
        r"\({window} tokens\)",  # SGLang, Together
        r"prompt contains {input} tokens.{0,40}too large for model with {window} maximum context length",  # Mistral
        r"prompt has {input} tokens, but the configured context size is {window} tokens",
        r"prompt is too long: {input}, model maximum context length: {window}",  # Fireworks
        r"requested tokens \({input}\) exceed context window of {window}",  # llama-cpp-python
        r"input length \(?{input}(?: tokens)?\)? exceeds (?:the )?(?:model'?s )?(?:maximum )?context length (?:of )?\(?"
        r"{window}",  # SGLang, Ollama
        r"maximum context length is {window} tokens\W.{0,20}your (?:messages resulted in|request has|prompt contains) "
        r"(?:at least )?{input} (?:input )?tokens",  # OpenAI, vLLM
        # Input and its largest size.
        r"prompt is too long: {input} tokens > {max_input} maximum",  # Anthropic
        r"input token count \({input}\) exceeds the maximum number of tokens allowed \({max_input}\)",  # Gemini
        r"maximum prompt length is {max_input} but the request contains {input} tokens",  # xAI
        r"input tokens exceed the configured limit of {max_input} tokens\. your messages resulted in {input} tokens",
        r"input length \(?{input}(?: tokens)?\)? exceeds the maximum allowed (?:input )?length (?:of )?\(?{max_input}",
        r"prompt token count of {input} exceeds the limit of {max_input}",  # GitHub Copilot
        r"max input tokens\W{1,3}{max_input}, request input token count\W{1,3}{input}",  # Bedrock
        r"`?inputs`? must have less than {past_input} tokens\. given\W{1,3}{input}",  # TGI
        r"sum of prompt length \({input}(?:\.\d+)?\).{0,60}max_num_tokens \({max_input}\)",  # TensorRT-LLM
        # A size of which it is not said whether the answer is in it.
        r"exceeded model token limit\W{1,3}{window} \(requested\W{1,3}{total}\)",  # Moonshot
        r"cannot exceed {window} - received {total}",  # Cohere
        r"size limit exceeded by {excess} tokens.{0,80}limit for this model is {max_input} tokens",  # Cohere
        r"current length is {total} while limit is {window}",  # Cerebras
        # The limit alone.
        r"range of input length should be \[1, ?{max_input}\]",  # DashScope
        r"input tokens exceed the configured limit of {max_input} tokens",
        r"maximum prompt length is {max_input}",
        r"model max length exceeded, max length\W{1,2}{window}",
        r"context length (?:is only|is|of only|of) {window} tokens",
        r"maximum context length (?:is|of) {window}\b",
        r"number of tokens allowed \({max_input}\)",
    )
)

_REQUESTED = _row(r"maximum context length is {window} tokens[.,] however,? you requested (?:about )?{total} tokens")
_ITEM = re.compile(rf"(?P<count>{_N}) (?:tokens )?(?:in|of|for) (?:the |your )?(?P<what>[a-z ]+)", re.IGNORECASE)
_LIST = re.compile(r"\s*\(([^)]{1,200})\)")


def sizes(text: str) -> Overflow | None:
    """Returns the sizes that a provider's refusal states; None when it states none, or none that can be believed."""
    text = " ".join(text[:_READ_LIMIT].split())
    if _RATE.search(text):
        return None
    found = _itemised(text)
    if found is None and (match := next((m for pattern in _SIZES if (m := pattern.search(text))), None)):
        numbers = {name: _number(value) for name, value in match.groupdict().items() if value is not None}
        found = _overflow(numbers, match[0])
    return found if found is not None and _makes_sense(found) else None


def _itemised(text: str) -> Overflow | None:
    """OpenAI's form and its likes: ``requested 130000 tokens (120000 in the messages, 10000 in the completion)``. What
    is not the completion (messages, functions, tool input) is input."""
    match = _REQUESTED.search(text)
    if match is None:
        return None
    numbers = {"window": _number(match["window"]), "total": _number(match["total"])}
    end = match.end()
    if (listed := _LIST.match(text, end)) is not None:
        items = [(_number(m["count"]), m["what"].lower()) for m in _ITEM.finditer(listed[1])]
        answers = [count for count, what in items if "completion" in what or "output" in what]
        if len(answers) < len(items):
            numbers |= {"input": sum(count for count, _ in items) - sum(answers), "output": sum(answers)}
            end = listed.end()
    if numbers.get("output") == 0:
        del numbers["output"]
    return _overflow(numbers, text[match.start() : end])


def _overflow(numbers: Mapping[str, int], passage: str) -> Overflow:
    sizes: dict[str, Any] = dict(numbers)
    for name in ("output", "input"):
        if (past := sizes.pop(f"past_{name}", None)) is not None:
            sizes[f"max_{name}"] = past - 1
    if (excess := sizes.pop("excess", None)) is not None:
        sizes["input"] = sizes["max_input"] + excess
    return Overflow(**sizes, exact=not _INEXACT.search(passage), text=passage[:_TEXT_LIMIT])


def _makes_sense(found: Overflow) -> bool:
    """Returns whether the sizes are sizes, and a request of them would be refused."""
    numbers = (found.input, found.total, found.window, found.max_input, found.max_output)
    if any(n is not None and not 0 < n <= LARGEST for n in numbers) or not 0 <= (found.output or 0) <= LARGEST:
        return False
    pairs = ((found.output, found.max_output), (found.input, found.max_input))
    if any(asked is not None and most is not None and asked <= most for asked, most in pairs):
        return False
    if found.window is None:
        return True
    largest = max((found.input or 0) + (found.output or 0), found.total or 0)
    # Some count "at least", up to the last token that fits.
    return not largest or largest >= found.window


def _number(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", ""))
