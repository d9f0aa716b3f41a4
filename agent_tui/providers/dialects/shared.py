"""Parts that the dialects share. For their bodies: what of old reasoning goes back, how much thinking is asked for. For
their streams: an answer as ordered parts, numbers of usage."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from agent_tui.models.messages import Metadata, Part, SearchPart, TextPart, ToolCallPart
from agent_tui.models.requests import Effort
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.parts import Event
from agent_tui.records import dataclass


@dataclass(slots=True, frozen=True)
class ReplayStatus:
    """``resent``: goes into the next request. ``counted``: share of it (0–1) in the next input. ``reason``: display."""

    resent: bool
    counted: float
    reason: str


@dataclass(slots=True)
class ReplayPlan:
    """The rule applied to one conversation. ``thinking_off`` is the note for the user when this step has to run
    without thinking, because its open tool loop lost the blocks that the provider insists on."""

    thinking_off: str | None = None
    parts: dict[str, dict[int, ReplayStatus]] = field(default_factory=dict)
    messages: dict[str, ReplayStatus] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    searches: dict[str, tuple[int, ...]] = field(default_factory=dict)  # Parts that go back of each answer.

    def status(self, message_id: str, part_index: int) -> ReplayStatus | None:
        """Of one reasoning part; None where there is none or the message is not in the view."""
        return self.parts.get(message_id, {}).get(part_index)

    def message_status(self, message_id: str) -> ReplayStatus | None:
        """Of all reasoning of an answer, also when it has tokens but no part. None for what is not in the view."""
        return self.messages.get(message_id)

    def counted(self, message_id: str) -> float:
        """Share of the reasoning tokens of that answer's step that the next input contains."""
        status = self.messages.get(message_id)
        return status.counted if status else 0.0

    def same_origin(self, message_id: str) -> bool:
        """Returns whether provider metadata of that answer may be sent."""
        return message_id in self.messages and message_id not in self.foreign

    def resent(self, message_id: str, part_index: int) -> bool:
        status = self.status(message_id, part_index)
        return status.resent if status is not None else part_index in self.searches.get(message_id, ())

    def treatment(self, message_id: str) -> tuple[bool, tuple[int, ...]]:
        """Returns what of an answer goes out: whether the provider's metadata do, which thoughts and which searches.
        Equal answers that are treated alike are the same on the wire."""
        kept = tuple(n for n, status in self.parts.get(message_id, {}).items() if status.resent)
        return message_id not in self.foreign, (*kept, *self.searches.get(message_id, ()))


def is_spoken(part: Part) -> bool:
    """Returns whether a part goes out as an item that reasoning may stand before. A text without a character does not:
    the reasoning before it would stand alone."""
    return bool(part.text) if isinstance(part, TextPart) else isinstance(part, (ToolCallPart, SearchPart))


# Tokens of thinking that are asked for where a provider wants a number.
BUDGETS: dict[Effort, int] = {"off": 0, "low": 2_048, "medium": 8_192, "high": 24_576}
# The smallest budget that is accepted.
MIN_BUDGET = 1_024
_LADDER = (MIN_BUDGET, 2_048, 4_096, 8_192, 16_384, 24_576)
LEAST_KEPT, MOST_KEPT = 512, 4_096
"""Tokens of the output that thinking leaves for the answer: a quarter of it within these bounds."""

_RESERVE_SHARE, _RESERVE_MOST = 0.25, 32_000
"""The reserve for the answer: what is asked for as output when the window is nearly full, less a margin."""


@dataclass(slots=True, frozen=True)
class Thinking:
    """Arguments for LiteLLM, whether thinking is off, and what the user should be told."""

    kwargs: Metadata = field(default_factory=dict)
    off: bool = False
    notes: tuple[str, ...] = ()


def budget_below(effort: Effort, max_output: int | None, window: int | None = None) -> int:
    """Thinking tokens for ``effort`` that leave at least a quarter of the output, or ``MOST_KEPT``, for the answer; 0
    when there is no room.

    One of ``_LADDER``, and chosen by the output that is still asked for when the ``window`` is nearly full, not by
    what is free now: the messages are lost from the cache whenever the budget is another one.
    """
    want = BUDGETS[effort]
    if max_output is None:
        return want

    def room(output: int) -> int:
        return output - max(LEAST_KEPT, min(output // 4, MOST_KEPT))

    full = max_output
    if window:
        reserve = min(int(window * _RESERVE_SHARE), _RESERVE_MOST)
        full = min(max_output, reserve - max(reserve // 16, window // 200))
    fitting = [step for step in _LADDER if step <= min(want, room(full))]
    return max(fitting, default=MIN_BUDGET if room(max_output) >= MIN_BUDGET else 0)


NO_ROOM = "Thinking is off: the maximum output leaves no room for it."


def with_budget(tokens: int) -> Thinking:
    if not tokens:
        return Thinking(off=True, notes=(NO_ROOM,))
    return Thinking({"thinking": {"type": "enabled", "budget_tokens": tokens}})


_DIGITS = 100


def parse_event(text: str) -> Event | None:
    """Returns the JSON object that a text is; None for any other text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = _parsed(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # A number of thousands of digits; what stands beside it may be right.
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < _DIGITS else 0)


ABSURD_NUMBER = 1e15
HOUR_WRITES = "ephemeral_1h_input_tokens"
WRITES = ("ephemeral_5m_input_tokens", HOUR_WRITES)
"""Names of cache writes by how long they are kept."""


def usage_of(prompt: int, output: int, reasoning: int | None, read: int | None, write: int | None) -> TokenUsage:
    """Details that are impossible are dropped rather than believed."""

    def possible(part: int | None, whole: int) -> int | None:
        return part if part is not None and 0 <= part <= whole else None

    read = possible(read, prompt)
    return TokenUsage(prompt, output, possible(reasoning, output), read, possible(write, prompt - (read or 0)))


def with_hour(usage: TokenUsage, hour: Any) -> TokenUsage:
    """Returns the usage with how much of what was written to the cache is kept for an hour; unchanged where ``hour``
    cannot be that."""
    count = integer(hour)
    if count is None or not 0 <= count <= (usage.cache_write or 0):
        return usage
    return replace(usage, cache_write_1h=count)


_COUNT = re.compile(r"\d{1,15}(?:\.0*)?")


def mapping(value: Any) -> Mapping[str, Any]:
    if value is None or isinstance(value, dict):
        return value or {}
    return value if isinstance(value, Mapping) else {}


def finite(value: object) -> float | None:
    """A number as a float that can be calculated with; None for anything else, NaN and infinities."""
    try:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def integer(value: Any) -> int | None:
    """A count, also as text or with a fraction of 0; None for anything else."""
    found = finite(float(value) if isinstance(value, str) and _COUNT.fullmatch(value) else value)
    # Nothing is counted in such numbers, and adding them up would make them worse.
    return int(found) if found is not None and abs(found) < ABSURD_NUMBER else None


def number(value: Any) -> int:
    return integer(value) or 0


def first(*values: Any) -> int | None:
    return next((found for value in values if (found := integer(value)) is not None), None)
