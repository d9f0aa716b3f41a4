"""The budgets of a session: what is left of them, and whether the next call fits."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from operator import itemgetter

from agent_tui.config import BudgetConfig
from agent_tui.context.accounting.inputs import DEFAULT_RESERVE
from agent_tui.context.accounting.reports import Followed
from agent_tui.context.accounting.spending import (
    SETTINGS,
    BudgetLine,
    BudgetName,
    ExpectedCall,
    Sums,
    dollars_of,
    first_broken,
    session_totals,
    stop_text,
    unpriced_text,
)
from agent_tui.engine.conversation import Conversation
from agent_tui.errors import StoreError
from agent_tui.models.events import Notice
from agent_tui.models.usage import NO_COST, Cost
from agent_tui.store.steps import day_of

log = logging.getLogger(__name__)

_TOLERANCE = 1e-6


class SpendingBudget:
    """One a session; its subagents draw on it. What was spent on any of its branches counts; what a fork inherits was
    spent by the session it was forked from. The limits are those of the configuration, and what the user said for
    this session over them. ``run_usd`` holds for the whole run of the program, whatever sessions it goes through:
    for the calls since this one was opened, and for those of ``before``, the budget of the session it was in last."""

    def __init__(
        self,
        conversation: Conversation,
        config: BudgetConfig,
        run_usd: float | None = None,
        before: SpendingBudget | None = None,
    ) -> None:
        self.conversation = conversation
        self._config = config
        self._run_usd = run_usd if before is None else before.limit("run")
        # No call is under way while the session changes, so what was spent in the last one stays as it is.
        spent = before._run() if before is not None else None
        self._elsewhere = (spent.spent, spent.held) if spent is not None else (NO_COST, 0.0)
        self._run_from = self._turn_from = len(conversation.steps)
        self._totals = Followed(Sums())
        self._told: set[str] = set()
        self.one_by_one = asyncio.Lock()
        """Held while a call is measured against what is left and begun."""

    def begin_turn(self, *, anew: bool) -> None:
        """Begins a turn: what is spent from here on is the turn's; one that is not begun ``anew`` goes on."""
        self._turn_from = len(self.conversation.steps) if anew else self._turn_from

    def limit(self, name: BudgetName) -> float | None:
        """Returns the most that may be spent; None where no limit is set."""
        said = self.conversation.info.state.budget
        if name in said:
            return said[name]
        config = self._config
        return {"run": self._run_usd, "turn": config.turn_usd, "session": config.session_usd, "day": config.day_usd}[
            name
        ]

    def lines(self) -> list[BudgetLine]:
        """All budgets, with what was spent of them."""
        steps, limit = self.conversation.steps, self.limit
        today, held = self._today()
        lines = [
            dollars_of("turn", limit("turn"), session_totals(steps[self._turn_from :])),
            dollars_of("session", limit("session"), self._totals.follow(steps[self.conversation.inherited :]).totals()),
            BudgetLine("day", limit("day"), today, held),
        ]
        if limit("run") is not None:
            lines.insert(0, self._run())
        return lines

    def _run(self) -> BudgetLine:
        here = session_totals(self.conversation.steps[self._run_from :])
        cost, held = self._elsewhere
        return BudgetLine("run", self.limit("run"), cost + here.cost, held + here.held_usd)

    def _today(self) -> tuple[Cost, float]:
        try:
            return self.conversation.store.spending.on(day_of(time.time()))
        except StoreError as error:
            # The next call stores its step first, and says what is wrong where that fails, too.
            log.warning("What was spent today is not known: %s", error)
            return NO_COST, 0.0

    def set(self, name: BudgetName, limit: float | None) -> None:
        """Sets what the user says may be spent in this session, or in this run; None is no limit. Raises AgentError
        where it cannot be kept."""
        if name == "run":
            self._run_usd = limit
        else:
            state = self.conversation.info.state
            self.conversation.set_state(replace(state, budget={**state.budget, name: limit}))

    @property
    def limited(self) -> bool:
        return any(self.limit(name) is not None for name in SETTINGS)

    def refusal(self, call: ExpectedCall, what: str) -> str | None:
        """Why the call is not to be made, when a budget has no room for what it is expected to cost; ``what`` it is
        for."""
        broken = first_broken(self.lines(), call) if self.limited else None
        return None if broken is None else stop_text(broken, call, what)

    def longest(self, call: ExpectedCall, most: int | None) -> tuple[int | None, BudgetLine | None]:
        """The longest answer to ask for, where the model gives one of ``most`` tokens (None: nobody knows), and the
        budget for which that is less. What has no end gets one (``DEFAULT_RESERVE``)."""
        rooms = [(room, line) for line in self.lines() if (room := line.longest(call)) is not None]
        if not self.limited or not rooms:
            return most, None
        least, line = min(rooms, key=itemgetter(0))
        most = DEFAULT_RESERVE if most is None else most
        return (least, line) if least < most else (most, None)

    def has(self, usd: float) -> bool:
        """Returns whether so many dollars more are left in every budget."""
        return not self.limited or all(line.left is None or usd <= line.left + _TOLERANCE for line in self.lines())

    def unpriced(self, model: str, call: ExpectedCall) -> Notice | None:
        """Returns the notice to give, once for each model, when a budget cannot be held for it."""
        names = [name for name in SETTINGS if self.limit(name) is not None]
        if call.usd is not None or not names or model in self._told:
            return None
        self._told.add(model)
        return Notice("warning", unpriced_text(model, names), "budget_unpriced")
