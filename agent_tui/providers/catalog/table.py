"""LiteLLM's table of models, read from its file: looking a model up needs no import of LiteLLM (3–6 s, 165 MB)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from agent_tui.models.requests import Target
from agent_tui.providers.dialects import dialect_of, has_record
from agent_tui.providers.litellm.private import PROVIDERS_FILE, TABLE_FILE, data_file

_DATED = re.compile(r"(?:[-@]\d{4}-\d{2}-\d{2}|[-@]\d{8}|[-@]\d{4}|-latest|:[a-z0-9.\-]+|-v\d+:\d+)$", re.IGNORECASE)
_REGION = re.compile(r"^(?:us|us-gov|eu|apac|ap|global|jp|au|ca)\.")
_VENDOR = re.compile(r"^(?:anthropic|meta|amazon|mistral|deepseek|qwen|openai|moonshotai?|zai|google|cohere|minimax)\.")


@cache
def table() -> dict[str, dict[str, Any]]:
    """Model name → its entry; empty when this LiteLLM keeps the table elsewhere (limits are then unknown)."""
    return {k: v for k, v in data_file(TABLE_FILE).items() if isinstance(v, dict) and k != "sample_spec"}


def is_provider(name: str) -> bool:
    """Whether a provider has a record here or is known to LiteLLM; enough to spot a misspelt one."""
    return has_record(name) or name in _named_providers()


@cache
def _named_providers() -> frozenset[str]:
    named = data_file(PROVIDERS_FILE).get("providers")
    return frozenset(named if isinstance(named, dict) else ())


def entry(name: str, target: Target) -> tuple[dict[str, Any] | None, bool]:
    """The table's entry of a model, and whether it was found under exactly this name. A dated or tagged name without
    an entry of its own, or a gateway's name for a known model, gets the plain name's entry, as a guess."""
    found = _exact(name, target, target.model)
    if found is not None:
        return found, True
    for shorter in _shorter_names(target.model):
        found = _exact("", target, shorter)
        if found is None and "/" in target.model:
            # A gateway's name for another provider's model: openrouter/openai/gpt-5.
            found = table().get(shorter.rsplit("/", 1)[-1])
        if found is not None:
            return found, False
    dialect = dialect_of(target.provider)
    if dialect.compatible or dialect.local:
        # Whoever runs the server decides how much of the model's context there is.
        return None, False
    return namesake(target.model), False


def namesake(model: str) -> dict[str, Any] | None:
    """What other providers' entries for a model of this name agree on: the middle one of their limits, the flags of
    any. None where no other provider has it."""
    others = _by_bare_name().get(_bare_name(model), ())
    windows = sorted(n for e in others if isinstance(n := e.get("max_input_tokens"), int) and n > 0)
    if not windows:
        return None
    outputs = sorted(n for e in others if isinstance(n := e.get("max_output_tokens"), int) and n > 0)
    flags = {name: True for name in ("supports_reasoning", "supports_vision") if any(e.get(name) for e in others)}
    limits = {"max_input_tokens": _middle(windows), "max_output_tokens": _middle(outputs) if outputs else None}
    return {**limits, **flags}


def _middle(values: list[int]) -> int:
    return values[(len(values) - 1) // 2]


@cache
def _by_bare_name() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for name, values in table().items():
        if values.get("mode") in ("chat", "responses"):
            found.setdefault(_bare_name(name), []).append(values)
    return found


def _bare_name(name: str) -> str:
    """``claude-haiku-4-5`` of ``openrouter/anthropic/claude-haiku-4.5`` and ``us.anthropic.claude-haiku-4-5-v1:0``."""
    bare = name.rsplit("/", 1)[-1].lower()
    bare = _VENDOR.sub("", _REGION.sub("", bare))
    return re.sub(r"-v\d+:\d+$|[@:].*$", "", bare).replace(".", "-")


def _shorter_names(model: str) -> Iterator[str]:
    """The name, then without dates and tags at its end, one after the other."""
    yield model
    while (shorter := _DATED.sub("", model)) not in ("", model):
        yield shorter
        model = shorter


def _exact(name: str, target: Target, model: str) -> dict[str, Any] | None:
    entries = table()
    for candidate in (name, f"{target.provider}/{model}"):
        if candidate in entries and "/" in candidate:
            return entries[candidate]
    plain = entries.get(model)
    if plain is not None and str(plain.get("litellm_provider", "")).split("-")[0].startswith(target.provider):
        return plain
    if plain is not None and dialect_of(target.provider).plain_names:
        return plain
    return None
