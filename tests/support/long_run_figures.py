"""The models of long runs at full context, and what is held against each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import quantiles
from typing import Any, Literal

from tests.support.true_provider import Model

WARM_UP = 20
"""Steps after which estimates are held to their bounds."""

SMALLEST_HELD, MOST_BELOW = 8_192, 150
"""From this window on 1 % of it is what the 95th percentile may be off; below it, this many tokens."""


LEARNED = 2
"""Times as much for models that count a number times what o200k_base does: no model of their name does, so that all of
it has to be learned, against what is known of their family."""


LENIENT = ("qwen", "llama", "deepseek", "gpt")
"""Names of models whose chat templates take roles in any order; those of others may not."""


@dataclass(slots=True, frozen=True)
class Flavour:
    """A model as it is configured (``name``, ``path`` of the address, ``api``) and as its provider has it. ``keeps``
    False: the provider drops thinking after a user turn, and with it what it had cached of the turn. ``vocabulary``: a
    real one that it counts with."""

    dialect: str
    name: str
    model: Model
    path: str = ""
    api: Literal["auto", "chat", "responses"] = "auto"
    keeps: bool = True
    vocabulary: Callable[[str], int] | None = None

    def called(self, name: str) -> Flavour:
        """The same server with a model of another name; local ones have a template of their own."""
        strict = self.model.templates and not name.startswith(LENIENT)
        model = replace(self.model, name=name, alternates=strict)
        return replace(self, name=f"{self.name.rpartition('/')[0]}/{name}", model=model)


FLAVOURS = {
    "claude-4.5": Flavour(
        "anthropic",
        "anthropic/claude-sonnet-4-5",
        Model("claude-sonnet-4-5", 0, 64_000, 1.30, summarised=True),
        keeps=False,
    ),
    "claude-4.6": Flavour(
        "anthropic", "anthropic/claude-sonnet-4-6", Model("claude-sonnet-4-6", 0, 128_000, 1.30, summarised=True)
    ),
    "claude-5.1": Flavour(
        "anthropic",
        "anthropic/claude-fable-5-1",
        Model("claude-fable-5-1", 0, 128_000, 1.25, summarised=True, details=True),
    ),
    "openai-chat": Flavour(
        "chat", "openai/gpt-5-mini", Model("gpt-5-mini", 0, 128_000, 1.0, details=True), "/v1", "chat"
    ),
    "vllm": Flavour(
        "chat", "hosted_vllm/qwen3-coder", Model("qwen3-coder", 0, 1_000_000, 1.10, templates=True), "/v1", keeps=False
    ),
    "responses": Flavour(
        "responses", "openai/responses/gpt-5", Model("gpt-5", 0, 128_000, 1.0, details=True), "/v1", keeps=False
    ),
    "gemini": Flavour(
        "gemini",
        "gemini/gemini-3-pro-preview",
        Model("gemini-3-pro-preview", 0, 65_536, 1.02, details=True),
        keeps=False,
    ),
}


@dataclass(slots=True)
class Outcome:
    """What one run showed. Lists hold a line for each fault: turn, and what was seen."""

    flavour: Flavour
    window: int
    seed: int
    turns: int = 0
    steps: int = 0
    dead: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cut: int = 0
    wrong_rows: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Requests whose input did not fit."""
    overflows: list[str] = field(default_factory=list)
    """Requests whose input did not fit together with the answer that was asked for; a shorter one did."""
    invalid: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    errors: list[tuple[int, int, int]] = field(default_factory=list)
    spreads: list[int] = field(default_factory=list)
    """What each of them was said to be at most, 95 times of 100."""
    told: list[dict[str, Any]] = field(default_factory=list)
    """What each step was estimated from and what its server counted, for ``reports_again.py``."""
    other: set[int] = field(default_factory=set)
    """The steps that the model was asked which is switched to: figures are told of them apart."""
    fullest: float = 0.0
    """The largest input, as a share of the window."""
    lies: int = 0
    doubted: list[str] = field(default_factory=list)
    """True reports that were not believed."""
    checked: int = 0
    """Automatic compactions of which the server said how long the request was without them."""
    compacted_off: list[int] = field(default_factory=list)
    """Errors of those that were not within the interval."""
    events: dict[int, str] = field(default_factory=dict)
    """What happened before which turn."""
    refusals: int = 0
    """How many of ``refused`` could not be foreseen."""
    unthinking: list[str] = field(default_factory=list)
    may_think: int = 0
    compactions: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    rewrites: list[str] = field(default_factory=list)
    input: int = 0
    cached: int = 0

    def tokens_off(self, other: bool = False) -> list[int]:
        """Absolute errors after the warm-up; those of the model that is switched to are few, and all of them count."""
        kept = self.errors if other else self.errors[WARM_UP:]
        return [abs(e) for _, step, e in kept if (step in self.other) == other]

    def percentile(self, share: int, other: bool = False) -> float:
        found = self.tokens_off(other)
        if len(found) < 2:
            return float(found[0]) if found else 0.0
        return quantiles(found, n=100, method="inclusive")[share - 1]

    def inside(self, other: bool = False) -> float:
        """The share of the steps whose input was within the interval that was shown before them."""
        told = zip(self.errors, self.spreads, strict=True)
        held = [abs(e) <= s for (_, step, e), s in told if (step in self.other) == other]
        return sum(held) / len(held) if held else 1.0

    @property
    def spread(self) -> float:
        """The half of their width on average, of the model of the session."""
        told = [s for (_, step, _), s in zip(self.errors, self.spreads, strict=True) if step not in self.other]
        return sum(told) / len(told) if told else 0.0

    @property
    def thinking_share(self) -> float:
        return 1 - len(self.unthinking) / self.may_think if self.may_think else 1.0

    def faults(self) -> list[str]:
        """Every expectation that was not met, in words."""
        p95 = self.percentile(95)
        found = [f"dead turn {line}" for line in self.dead]
        found += [f"failed turn {line}" for line in self.failed]
        found += [f"wrong row {line}" for line in self.wrong_rows]
        found += [f"needless compaction {line}" for line in self.needless]
        found += [f"invalid request {line}" for line in self.invalid]
        found += [f"shown is not sent {line}" for line in self.differs]
        if len(self.refused) > self.refusals:
            found += [f"refused for its size {line}" for line in self.refused]
        if self.flavour.keeps:
            found += [f"cache rewritten {line}" for line in self.rewrites]
        held = min(300, self.window / 100) if self.window >= SMALLEST_HELD else MOST_BELOW
        held *= LEARNED if self.flavour.model.factor != 1.0 else 1
        if p95 > (held if self.flavour.vocabulary is None else self.window / 100):
            worst = sorted(self.errors[WARM_UP:], key=lambda e: -abs(e[2]))[:9]
            told = [(turn, step, off, self.events.get(turn, "")) for turn, step, off in worst]
            found.append(f"p95 {p95:.0f} tokens, {100 * p95 / self.window:.2f} % of the window; worst {told}")
        if self.thinking_share < 0.99:
            found.append(f"thinking {100 * self.thinking_share:.1f} %: {self.unthinking[:3]}")
        return found

    def row(self) -> dict[str, Any]:
        """One line of the table."""
        return {
            "model": self.flavour.name,
            "window": self.window,
            "seed": self.seed,
            "turns": self.turns,
            "steps": self.steps,
            "dead": len(self.dead),
            "failed": len(self.failed),
            "cut": self.cut,
            "wrong_rows": len(self.wrong_rows),
            "refused": len(self.refused),
            "overflows": len(self.overflows),
            "needless": len(self.needless),
            "invalid": len(self.invalid),
            "rewrites": len(self.rewrites),
            "differs": len(self.differs),
            "lies": self.lies,
            "doubted": len(self.doubted),
            "checked": self.checked,
            "checked_outside": len(self.compacted_off),
            "fullest_percent": round(100 * self.fullest),
            "p50": round(self.percentile(50)),
            "p95": round(self.percentile(95)),
            "p95_percent": round(100 * self.percentile(95) / self.window, 2),
            "inside_percent": round(100 * self.inside(), 1),
            "spread": round(self.spread),
            "other_steps": len(self.other),
            "other_p95_percent": round(100 * self.percentile(95, other=True) / self.window, 2),
            "other_inside_percent": round(100 * self.inside(other=True), 1),
            "thinking_percent": round(100 * self.thinking_share, 1),
            "cached_percent": round(100 * self.cached / self.input, 1) if self.input else 0.0,
            **{name: self.compactions.get(name, 0) for name in ("prune", "clip", "summary", "drop", "not_done")},
        }
