"""What a compaction is expected to cost: the call that writes its summary, and the requests after it."""

from __future__ import annotations

import math
import statistics

from agent_tui.context.accounting.spending import ExpectedCall, priced_call
from agent_tui.context.compaction.plan import CompactionPlan, message_tokens
from agent_tui.context.compaction.summary import render_message
from agent_tui.context.tokens import char_tokens, counted_chars
from agent_tui.models.context import ContextUsage
from agent_tui.models.rows import MESSAGES
from agent_tui.models.usage import Prices
from agent_tui.records import dataclass
from agent_tui.text.numbers import money, tokens

RECENT = 10
"""The newest summaries say how long one is."""

REQUEST = 500
"""Tokens that a request for a summary has beside what it is about."""


def expected_read(usage: ContextUsage) -> int:
    """Tokens of the next request that are in the cache now."""
    known = usage.forecast.read if usage.forecast is not None else usage.expected_read
    return min(usage.total, known or 0)


def summary_call(plan: CompactionPlan, usage: ContextUsage, prices: Prices, hour: bool = False) -> ExpectedCall:
    """The call that writes the plan's summary, in the form that stands apart from the conversation: nothing of it is in
    a cache. A plan that needs no model costs nothing."""
    if plan.summary is None or not plan.summary.needs_model:
        return ExpectedCall(0.0, 0, 0, 0)
    sizes, length = message_tokens(usage), REQUEST + char_tokens(plan.summary.previous or "")
    for message in plan.summary.fresh:
        # Long ones are clipped, and thoughts left out.
        shown = len(render_message(message)) / max(1, counted_chars(message))
        length += sizes.get(message.id, 0) * min(1.0, shown)
    return priced_call(prices, round(length), 0, expected_length(plan), hour)


def expected_length(plan: CompactionPlan) -> int:
    """Tokens that a plan's summary is expected to have: the median of the session's newest ones, and while there is
    none as many as it may have."""
    most = plan.summary.tokens if plan.summary is not None else 0
    made = [step.counted.output for step in plan.inputs.steps if step.kind == "compaction" and step.counted is not None]
    return min(most, round(statistics.median(made[-RECENT:]))) if made else most


def _about(usd: float) -> str:
    said = money(usd)
    return said if said.startswith("<") else f"~{said}"


@dataclass(slots=True, frozen=True)
class PlanPrice:
    """Dollars that a plan is expected to cost: ``call`` for the summary; ``anew`` more (or, below 0, less) for the next
    request, as what is behind the change is read anew; ``saved`` by each later step. None where no price is
    known. ``behind``: tokens that are read anew."""

    call: float | None
    anew: float | None
    saved: float | None
    behind: int

    @property
    def pays_after(self) -> int | None:
        """Requests after which what is read anew is saved again, 0 where nothing is paid; None where that is not known,
        or never."""
        if not self.behind:
            return 0
        if self.anew is None or self.saved is None:
            return None
        if self.anew <= 0:
            return 0
        return math.ceil(self.anew / self.saved) if self.saved > 0 else None

    def line(self) -> str:
        """``~$0.02 for the summary · ~30.2k behind it are read anew, $0.01 more · each later step $0.003 less``; what
        does not apply is left out."""
        parts = [f"{_about(self.call)} for the summary"] if self.call else []
        if self.behind:
            more = "" if not self.anew or self.anew < 0 else f", {_about(self.anew)} more"
            parts.append(f"{tokens(self.behind, True)} tokens after it are no longer cached{more}")
        if self.saved and self.saved > 0:
            parts.append(f"each later step {_about(self.saved)} less")
        return " · ".join(parts)


def plan_price(plan: CompactionPlan, usage: ContextUsage, prices: Prices, call: float | None, hour: bool) -> PlanPrice:
    """Returns the price of a plan that does something. ``usage`` is the calculator's answer as things are, ``call`` the
    expected price of the summary."""
    after = usage.total if plan.expected_after is None else plan.expected_after
    costs, read = message_tokens(usage), expected_read(usage)
    changed = {*plan.pruning.cleared, *plan.pruning.clips}
    changed.update(() if plan.summary is None else plan.summary.goes(plan.inputs.view))
    before = sum(row.tokens for row in usage.rows if row.id != MESSAGES.id)
    for item in plan.inputs.view:
        if item.message.id in changed:
            break
        before += costs.get(item.message.id, 0)

    def more(then: int, now: int) -> float | None:
        first = priced_call(prices, after, min(after, then), 0, hour).usd
        second = priced_call(prices, usage.total, min(usage.total, now), 0, hour).usd
        return None if first is None or second is None else first - second

    later = more(after, usage.total)
    behind = max(0, after - before) if read > before else 0
    return PlanPrice(call, more(min(read, before), read), None if later is None else -later, behind)
