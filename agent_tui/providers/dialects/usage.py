"""Token usage as providers report it, brought into one form: input with cache, output with reasoning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_tui.models.usage import ABSURD_WINDOWS, TokenUsage
from agent_tui.providers.net import finite

# Without a known window: larger than any model's.
_ABSURD_TOKENS = 20_000_000
_ABSURD_NUMBER = 1e15
# Anthropic's names for cache writes by how long they are kept.
_HOUR = "ephemeral_1h_input_tokens"
_MOST_TOLD = 8
_LONGEST = 8_000
_LIVES = ("ephemeral_5m_input_tokens", _HOUR)


def normalise(raw: Mapping[str, Any], window: int | None = None, *, hidden_calls: bool = False) -> TokenUsage | None:
    """The usage in ``raw``, which may be in the form of any provider. None when it is missing, zero, negative or over
    twice the ``window``: such a report is worth less than an estimate (``rejection`` says why).

    ``hidden_calls``: tools ran at the provider, so the numbers may add up several calls (``context`` False).
    """
    usage = _read(raw)
    if usage is None or not _possible(usage, window):
        return None
    if hidden_calls or _summed(raw):
        usage = replace(usage, context=False)
    return replace(usage, told=cache_told(raw) or None, raw=as_it_came(raw))


def reported(raw: Mapping[str, Any]) -> TokenUsage | None:
    """A report that ``normalise`` does not take, in our form all the same: it is what the bill says. None where it is
    in no form we know, or nothing can be billed by its numbers."""
    usage = _read(raw)
    if usage is None or usage.input <= 0 or usage.output < 0:
        return None
    return replace(usage, told=cache_told(raw) or None, raw=as_it_came(raw))


def as_it_came(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """A report word for word; None where there is none, or it is far longer than reports are."""
    text = json.dumps(raw, default=str)
    kept: dict[str, Any] = json.loads(text, parse_constant=str) if len(text) <= _LONGEST else {}
    return kept or None


def cache_told(raw: Mapping[str, Any]) -> dict[str, float]:
    """What a provider says of its cache beside reads and writes, under its own names: writes by how long they are kept,
    what was missed or saved, what was read by kind."""
    found: dict[str, float] = {}

    def take(name: str, value: Any) -> None:
        if (number := finite(value)) is not None and abs(number) < _ABSURD_NUMBER:
            found[name] = number

    prompts = _mapping(raw.get("prompt_tokens_details"))
    lives = _mapping(raw.get("cache_creation")) or _mapping(prompts.get("cache_creation_token_details"))
    for name in _LIVES:
        take(name, lives.get(name))
    for name in ("prompt_cache_hit_tokens", "prompt_cache_miss_tokens", "cache_discount"):
        take(name, raw.get(name))
    by_kind = (("cacheTokensDetails", "modality", "tokenCount"), ("cacheDetails", "ttl", "inputTokens"))
    for field, name, amount in by_kind:
        rows = raw.get(field)
        for row in rows[:_MOST_TOLD] if isinstance(rows, list) else ():
            entry = _mapping(row)
            take(f"{field} {str(entry.get(name) or '?')[:20]}", entry.get(amount))
    return found


def rejection(raw: Mapping[str, Any], window: int | None = None) -> str | None:
    """Why ``normalise`` does not take a report, in words for people; None when it does or there is none."""
    if not raw:
        return None
    usage = _read(raw)
    if usage is None:
        return f"it is in no form we know, with {', '.join(sorted(map(str, raw)))[:200]}"
    if _possible(usage, window):
        return None
    where = f" for a window of {window:,}" if window else ""
    return f"it says {usage.input:,} tokens of input and {usage.output:,} of output{where}"


def _possible(usage: TokenUsage, window: int | None) -> bool:
    largest = ABSURD_WINDOWS * window if window else _ABSURD_TOKENS
    return 0 < usage.input <= largest and 0 <= usage.output <= largest


def estimated(raw: Mapping[str, Any] | None, output_chars: int) -> TokenUsage:
    """What stands in for a report that did not come: the client library's own count where it made one, else four
    characters a token of the answer. Never anchors."""
    made = _read(raw) if raw else None
    if made is not None and made.input >= 0 and made.output >= 0:
        return TokenUsage(made.input, made.output, source="estimated", reasoning_source="estimated")
    return TokenUsage(0, -(-output_chars // 4), source="estimated", reasoning_source="estimated")


def _read(raw: Mapping[str, Any]) -> TokenUsage | None:
    if "promptTokenCount" in raw or "totalTokenCount" in raw:
        return _gemini(raw)
    if "inputTokens" in raw:
        return _converse(raw)
    if isinstance(raw.get("tokens"), Mapping) or "billed_units" in raw:
        return _cohere(raw)
    if "prompt_eval_count" in raw or "eval_count" in raw:
        return _ollama(raw)
    if "input_tokens_details" in raw or ("input_tokens" in raw and "total_tokens" in raw):
        return _responses(raw)
    if "input_tokens" in raw:
        return _anthropic(raw)
    if "prompt_tokens" in raw or "completion_tokens" in raw:
        return _chat(raw)
    return None


def _anthropic(raw: Mapping[str, Any]) -> TokenUsage:
    """``input_tokens`` are only those after the last cache breakpoint: reads and writes come on top."""
    read, write = _int(raw.get("cache_read_input_tokens")), _int(raw.get("cache_creation_input_tokens"))
    details, lives = _mapping(raw.get("output_tokens_details")), _mapping(raw.get("cache_creation"))
    if write is None and lives:
        write = sum(_number(lives.get(name)) for name in _LIVES)
    usage = _usage(
        _number(raw.get("input_tokens")) + (read or 0) + (write or 0),
        _number(raw.get("output_tokens")),
        _int(details.get("thinking_tokens")),
        read,
        write,
    )
    return _with_hour(usage, lives.get(_HOUR))


def _converse(raw: Mapping[str, Any]) -> TokenUsage:
    """Bedrock: as Anthropic, other names. Totals tell whether the cache is already in the input."""
    read, write = _int(raw.get("cacheReadInputTokens")), _int(raw.get("cacheWriteInputTokens"))
    fresh, output, total = (
        _number(raw.get("inputTokens")),
        _number(raw.get("outputTokens")),
        _int(raw.get("totalTokens")),
    )
    cached = (read or 0) + (write or 0)
    included = cached > 0 and total == fresh + output and fresh >= cached
    usage = _usage(fresh if included else fresh + cached, output, None, read, write)
    details = raw.get("cacheDetails")
    rows = [_mapping(row) for row in details] if isinstance(details, list) else []
    hour = sum(_number(row.get("inputTokens")) for row in rows if row.get("ttl") == "1h")
    return _with_hour(usage, hour if rows else None)


def _gemini(raw: Mapping[str, Any]) -> TokenUsage:
    """Thoughts are outside ``candidatesTokenCount`` (inside it on some Vertex versions: the total tells); prompts of
    server-side tools are outside ``promptTokenCount``; cached content is inside it."""
    prompt = _number(raw.get("promptTokenCount")) + _number(raw.get("toolUsePromptTokenCount"))
    candidates, thoughts = _number(raw.get("candidatesTokenCount")), _int(raw.get("thoughtsTokenCount"))
    total = _int(raw.get("totalTokenCount"))
    if total is not None and thoughts and total == prompt + candidates and candidates >= thoughts:
        output = candidates
    else:
        output = candidates + (thoughts or 0)
    return _usage(prompt, output, thoughts, _int(raw.get("cachedContentTokenCount")), None)


def _cohere(raw: Mapping[str, Any]) -> TokenUsage:
    """``tokens`` is the context; ``billed_units`` leaves out the prompt's framing."""
    tokens = _mapping(raw.get("tokens")) or _mapping(raw.get("billed_units"))
    return _usage(
        _number(tokens.get("input_tokens")),
        _number(tokens.get("output_tokens")),
        _int(tokens.get("reasoning_tokens")),
        _int(raw.get("cached_tokens")),
        None,
    )


def _ollama(raw: Mapping[str, Any]) -> TokenUsage:
    return _usage(_number(raw.get("prompt_eval_count")), _number(raw.get("eval_count")), None, None, None)


def _responses(raw: Mapping[str, Any]) -> TokenUsage:
    inputs, outputs = _mapping(raw.get("input_tokens_details")), _mapping(raw.get("output_tokens_details"))
    return _openai(
        _number(raw.get("input_tokens")),
        _number(raw.get("output_tokens")),
        _int(raw.get("total_tokens")),
        _int(outputs.get("reasoning_tokens")),
        _int(inputs.get("cached_tokens")),
        _int(inputs.get("cache_write_tokens")),
    )


def _chat(raw: Mapping[str, Any]) -> TokenUsage:
    prompts, completions = _mapping(raw.get("prompt_tokens_details")), _mapping(raw.get("completion_tokens_details"))
    read = _first(
        prompts.get("cached_tokens"),
        raw.get("cache_read_input_tokens"),
        raw.get("prompt_cache_hit_tokens"),
        raw.get("cached_tokens"),
    )
    write = _first(
        prompts.get("cache_write_tokens"),
        prompts.get("cache_creation_tokens"),
        raw.get("cache_creation_input_tokens"),
    )
    usage = _openai(
        _number(raw.get("prompt_tokens")),
        _number(raw.get("completion_tokens")),
        _int(raw.get("total_tokens")),
        _first(completions.get("reasoning_tokens"), raw.get("reasoning_tokens")),
        read,
        write,
    )
    lives = _mapping(prompts.get("cache_creation_token_details")) or _mapping(raw.get("cache_creation"))
    return _with_hour(usage, lives.get(_HOUR))


def _openai(
    prompt: int, completion: int, total: int | None, reasoning: int | None, read: int | None, write: int | None
) -> TokenUsage:
    """OpenAI's form. The total tells what a dialect leaves out: a rest of exactly the reasoning is output (xAI), any
    other rest is input that was read from the cache (gateways). Without a total, impossible parts tell."""
    thought, cached = reasoning or 0, (read or 0) + (write or 0)
    rest = total - prompt - completion if total is not None else 0
    if rest > 0 and rest == thought:
        completion += thought
    elif rest > thought > 0 and rest - thought == cached:
        completion, prompt = completion + thought, prompt + cached
    elif rest > 0:
        prompt += rest
    else:
        if thought > completion:
            completion += thought
        if cached > prompt > 0:
            prompt += cached
    return _usage(prompt, completion, reasoning, read, write)


def _usage(prompt: int, output: int, reasoning: int | None, read: int | None, write: int | None) -> TokenUsage:
    """Details that are impossible are dropped rather than believed."""
    if reasoning is not None and not 0 <= reasoning <= output:
        reasoning = None
    if read is not None and not 0 <= read <= prompt:
        read = None
    if write is not None and not 0 <= write <= prompt - (read or 0):
        write = None
    return TokenUsage(prompt, output, reasoning, read, write)


def _summed(raw: Mapping[str, Any]) -> bool:
    """Whether the report itself says that tools ran at the provider, or that it adds up several rounds."""
    for name in ("server_tool_use", "server_tool_use_details", "server_side_tool_usage_details"):
        if any(_number(count) > 0 for count in _mapping(raw.get(name)).values()):
            return True
    rounds = raw.get("iterations")
    if isinstance(rounds, list) and len(rounds) > 1:
        return True
    names = ("toolUsePromptTokenCount", "num_sources_used", "num_server_side_tools_used", "num_search_queries")
    return any(_number(raw.get(name)) > 0 for name in names)


def _with_hour(usage: TokenUsage, hour: Any) -> TokenUsage:
    """How much of what was written to the cache is kept for an hour."""
    count = _int(hour)
    if count is None or not 0 <= count <= (usage.cache_write or 0):
        return usage
    return replace(usage, cache_write_1h=count)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _int(value: Any) -> int | None:
    number = finite(value)
    # Nothing is counted in such numbers, and adding them up would make them worse.
    return int(number) if number is not None and abs(number) < _ABSURD_NUMBER else None


def _number(value: Any) -> int:
    return _int(value) or 0


def _first(*values: Any) -> int | None:
    return next((number for value in values if (number := _int(value)) is not None), None)
