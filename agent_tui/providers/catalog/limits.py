"""What is known about a model before it is called: limits, prices, abilities."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from agent_tui.models.requests import ModelInfo, ModelSpec, Target
from agent_tui.models.usage import Limits, LimitSource, Prices
from agent_tui.providers.catalog.called import missing_key_line
from agent_tui.providers.catalog.keys import resolve_key
from agent_tui.providers.catalog.model_versions import is_openai_reasoning
from agent_tui.providers.catalog.prices import prices_of
from agent_tui.providers.catalog.table import entry, is_provider, table
from agent_tui.providers.catalog.targets import resolve_target
from agent_tui.providers.dialects import dialect_of

SHARED_WINDOWS = frozenset({128_000, 400_000, 1_050_000})
"""Context windows of OpenAI's GPT-5 and later models (platform.openai.com/docs/models). The table's
``max_input_tokens`` is sometimes the window and sometimes the window less the 128k output."""

_SPLIT_WINDOW = re.compile(r"(?:^|[/.-])(?:gpt-[5-9]|gpt-chat-latest|chat-latest|codex)")
_SPLIT_OUTPUT = 128_000

_ASSUMED: tuple[tuple[re.Pattern[str], Limits], ...] = (
    (re.compile("claude"), Limits(200_000, None, 32_000, "assumed")),
    (re.compile("gemini"), Limits(1_048_576, None, 65_536, "assumed")),
)
"""Unlisted models of two families whose members all have at least this (docs.claude.com, ai.google.dev/models)."""

_RENTED = re.compile(r"[:-]cloud$")
"""Models that Ollama does not run itself but hands on (docs.ollama.com/cloud)."""


def describe(spec: ModelSpec, server: Limits | None = None) -> ModelInfo:
    """Everything known without a call. ``server`` are limits that a running local server told. Reads LiteLLM's table
    from its file; never raises for unknown models, ``problem`` says what is wrong."""
    target = resolve_target(spec)
    found, exact = entry(spec.model, target)
    limits = with_config(spec, server or table_limits(target, found, exact))
    reasoning = _flag(found, "supports_reasoning")
    if reasoning is None and is_openai_reasoning(target.model):
        reasoning = True
    return ModelInfo(
        spec,
        target,
        limits,
        _prices(found, exact, spec, target),
        reasoning,
        _flag(found, "supports_vision"),
        problem(spec, target),
    )


def table_limits(target: Target, found: dict[str, Any] | None, exact: bool) -> Limits:
    """Limits as the table has them, without its traps: ``max_input_tokens`` is the window, except for families where
    window = input + output; ``max_tokens`` is never read."""
    if dialect_of(target.provider).pins_context:
        return Limits()
    if found is None:
        name = target.model.lower()
        return next((limits for pattern, limits in _ASSUMED if pattern.search(name)), Limits())
    source: LimitSource = "table" if exact else "assumed"
    most_in, most_out = _tokens(found.get("max_input_tokens")), _tokens(found.get("max_output_tokens"))
    if most_in is None:
        return Limits(None, None, most_out, "unknown" if most_out is None else source)
    window, max_input = most_in, None
    if _SPLIT_WINDOW.search(target.model.lower()):
        window, max_input = split_window(most_in, most_out)
    if most_out is not None:
        most_out = min(most_out, window)
    return Limits(window, max_input, most_out, source)


def split_window(most_in: int, most_out: int | None) -> tuple[int, int | None]:
    """Window and largest input of a GPT-5-like model from the table's two numbers, either of which may be meant."""
    if most_out is not None and most_in + most_out in SHARED_WINDOWS:
        return most_in + most_out, most_in
    if most_in in SHARED_WINDOWS and most_in > 128_000:
        return most_in, most_in - _SPLIT_OUTPUT
    return most_in, None


def with_config(spec: ModelSpec, limits: Limits) -> Limits:
    """Limits with what the configuration says on top: it wins."""
    if spec.context_window is None and spec.max_output is None:
        return limits
    window = spec.context_window or limits.window
    max_input = None if spec.context_window is not None else limits.max_input
    max_output = spec.max_output if spec.max_output is not None else limits.max_output
    if max_output is not None and window is not None:
        max_output = min(max_output, window)
    source: LimitSource = "config" if spec.context_window is not None else limits.source
    return dataclasses.replace(limits, window=window, max_input=max_input, max_output=max_output, source=source)


def problem(spec: ModelSpec, target: Target) -> str | None:
    """Why a model cannot be called as configured: one line, or None."""
    prefix, slash, _ = spec.model.partition("/")
    if not slash and spec.model not in table() and spec.api_base is None:
        return f"Unknown model {spec.model!r}: write it with its provider, for example openai/{spec.model}."
    if slash and not is_provider(prefix):
        return f"Unknown provider {prefix!r} in model {spec.model!r}: use a LiteLLM name such as openai/gpt-5."
    key = resolve_key(spec, target.provider)
    return missing_key_line(spec, target.provider, key.missing) if key.missing else None


def is_local(spec: ModelSpec, target: Target) -> bool:
    """Whether limits are better asked of the running server than looked up: a server people run themselves, or an
    address of their own for a model that no table has. A provider's own API is never asked: it could not tell."""
    dialect = dialect_of(target.provider)
    if dialect.local:
        return True
    own = dialect.compatible and spec.api_base is not None
    return own and entry(spec.model, target)[0] is None


def _prices(found: dict[str, Any] | None, exact: bool, spec: ModelSpec, target: Target) -> Prices:
    """What the user says comes first; a server people run themselves sends no bill."""
    if spec.prices:
        return Prices.per_million(spec.prices)
    if dialect_of(target.provider).local and not _RENTED.search(target.model):
        return Prices(0.0, 0.0)
    if found is None or not exact:
        return Prices()
    service = spec.extra.get("service_tier")
    return prices_of(found, service if isinstance(service, str) else None)


def _tokens(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return number if number > 0 else None


def _flag(found: dict[str, Any] | None, name: str) -> bool | None:
    value = found.get(name) if found else None
    return bool(value) if value is not None else None
