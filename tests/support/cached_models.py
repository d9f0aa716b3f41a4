"""The dialects of the cache runs: two models of a provider each, and how its cache reads and how long it lives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.support.long_run_figures import Flavour
from tests.support.true_provider import Model

MINUTE = 60.0
LIFE, HOUR = 5 * MINUTE, 60 * MINUTE


@dataclass(slots=True, frozen=True)
class Kept:
    """One dialect of the benchmark: a model, another one of the same provider, how its cache reads and how long it is
    documented to live; ``schema``: whether a schema goes with every request; ``forgets``: the provider leaves out old
    thinking when the user speaks, and with it what it has kept of that turn."""

    flavour: Flavour
    other: Flavour
    unit: int = 128
    life: float | None = None
    schema: bool = False
    forgets: bool = False


def _kept(dialect: str, prefix: str, one: Model, other: str, path: str = "", api: Any = "auto", **more: Any) -> Kept:
    models = (one, replace(one, name=other))
    flavours = [Flavour(dialect, f"{prefix}{model.name}", model, path, api) for model in models]
    return Kept(flavours[0], flavours[1], **more)


CLAUDE = Model("claude-sonnet-4-6", 0, 128_000, 1.30, summarised=True)
OLD_CLAUDE = replace(CLAUDE, name="claude-sonnet-4-5")
GPT = Model("gpt-5-mini", 0, 64_000, 1.0, details=True)
GEMINI = Model("gemini-3-pro-preview", 0, 64_000, 1.02, details=True)
DEEPSEEK = Model("deepseek-chat", 0, 8_192, 1.0, hits=True, thinks=False)
QWEN = Model("qwen3-coder", 0, 64_000, 1.10, templates=True)
KEPT = {
    "anthropic": _kept("anthropic", "anthropic/", CLAUDE, "claude-opus-4-6", unit=1, life=LIFE, schema=True),
    "old claude": _kept("anthropic", "anthropic/", OLD_CLAUDE, "claude-haiku-4-5", unit=1, life=LIFE, forgets=True),
    "openai chat": _kept("chat", "azure/", GPT, "gpt-5-nano", "", "chat", life=HOUR, schema=True),
    "responses": _kept("responses", "azure/", GPT, "gpt-5-nano", "", "responses", life=HOUR, schema=True, forgets=True),
    "gemini": _kept("gemini", "gemini/", GEMINI, "gemini-3-flash-preview", unit=1, forgets=True),
    "deepseek": _kept("chat", "deepseek/", DEEPSEEK, "deepseek-v3", unit=64),
    "vllm": _kept("chat", "hosted_vllm/", QWEN, "qwen3-other", "/v1", unit=16, forgets=True),
}
"""``azure`` stands for OpenAI: on loopback ``openai/`` would be a server of the user's own, whose cache is its own."""


def plan_of(kinds: Sequence[str], turns: int, first: int = 5, every: int = 6) -> dict[int, str]:
    """What is done before which turn: all kinds in order, again and again."""
    found: dict[int, str] = {}
    for number, turn in enumerate(range(first, turns + 1, every)):
        found[turn] = kinds[number % len(kinds)]
    return found


def kinds_of(name: str, servers: bool = True) -> list[str]:
    """Everything that is done to the cache of one dialect, in an order in which each can be told from the others."""
    kept = KEPT[name]
    kinds = ["tool went", "expired", "memory", "pruned", "dropped", "tool came", "waited", "rewound", "compacted"]
    kinds += ["undone"]
    kinds += ["model", "model back", "evicted"]
    if not kept.flavour.model.templates and kept.flavour.model.thinks:
        # Local servers are not told how hard to think.
        kinds += ["thinking", "thinking back"]
    if kept.schema:
        kinds += ["schema", "schema off"]
    if servers:
        kinds += ["server came", "server went"]
    return kinds
