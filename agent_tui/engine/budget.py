"""The limits on what may be spent: the budgets of a session, its subagents and its summaries, asked before every
call."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from agent_tui.config import BudgetConfig
from agent_tui.context.accounting.spending import (
    SETTINGS,
    BudgetLine,
    BudgetName,
    ExpectedCall,
    dollars_of,
    first_broken,
    session_totals,
    stop_text,
    tokens_of,
    unpriced_text,
)
from agent_tui.context.incremental import FollowedTotals
from agent_tui.engine.conversation import Conversation
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.events import Notice
from agent_tui.models.usage import NO_COST, Cost
from agent_tui.store.steps import day_of

log = logging.getLogger(__name__)


class SpendingBudget:
    """One a session, shared with its subagents. What was spent on any of its branches counts; what a fork inherits was
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
        self._conversation = conversation
        self._config = config
        self._run_usd = run_usd
        # No call is under way while the session changes, so what was spent in the last one stays as it is.
        self._elsewhere = NO_COST, 0.0
        if before is not None:
            run = before._run()
            self._elsewhere = run.spent, run.held
        self._run_from = self._turn_from = len(conversation.steps)
        self._totals = FollowedTotals()
        self._told: set[str] = set()

    @property
    def conversation(self) -> Conversation:
        return self._conversation

    def begin_turn(self) -> None:
        """Begins a turn: what is spent from here on is the turn's."""
        self._turn_from = len(self._conversation.steps)

    def limit(self, name: BudgetName) -> float | None:
        """Returns the most that may be spent; None where no limit is set."""
        said = self._conversation.info.state.budget
        if name in said:
            return said[name]
        config = self._config
        return {
            "run": self._run_usd,
            "turn": config.turn_usd,
            "session": config.session_usd,
            "day": config.day_usd,
            "tokens": config.session_tokens,
        }[name]

    def lines(self) -> list[BudgetLine]:
        """All budgets, with what was spent of them."""
        steps, limit = self._conversation.steps, self.limit
        whole = self._totals.follow(steps[self._conversation.inherited :], ())
        today, held = self._today()
        lines = [
            dollars_of("turn", limit("turn"), session_totals(steps[self._turn_from :])),
            dollars_of("session", limit("session"), whole),
            BudgetLine("day", limit("day"), today, held),
            tokens_of(limit("tokens"), whole),
        ]
        if limit("run") is not None:
            lines.insert(0, self._run())
        return lines

    def _run(self) -> BudgetLine:
        here = session_totals(self._conversation.steps[self._run_from :])
        cost, held = self._elsewhere
        return BudgetLine("run", self.limit("run"), cost + here.cost, held + here.held_usd)

    def _today(self) -> tuple[Cost, float]:
        try:
            return self._conversation.store.spending.on(day_of(time.time()))
        except StoreError as error:
            # The next call stores its step first, and says what is wrong where that fails, too.
            log.warning("What was spent today is not known: %s", error)
            return NO_COST, 0.0

    def set(self, name: BudgetName, limit: float | None) -> None:
        """Sets what the user says may be spent in this session; None is no limit. Raises AgentError where it cannot be
        kept."""
        if name == "run":
            raise AgentError("The budget of a run is set by --budget alone.")
        conversation = self._conversation
        said = {**conversation.info.state.budget, name: limit}
        conversation.set_state(replace(conversation.info.state, budget=said))

    def refusal(self, call: ExpectedCall, what: str) -> str | None:
        """Why the call is not to be made, when it would break a budget."""
        if all(self.limit(name) is None for name in SETTINGS):
            return None
        broken = first_broken(self.lines(), call)
        return None if broken is None else stop_text(broken, call, what)

    def unpriced(self, model: str, call: ExpectedCall) -> Notice | None:
        """Returns the notice to give, once for each model, when a budget in dollars cannot be held for it."""
        names = [name for name in SETTINGS if name != "tokens" and self.limit(name) is not None]
        if call.usd is not None or not names or model in self._told:
            return None
        self._told.add(model)
        return Notice("warning", unpriced_text(model, names), "budget_unpriced")
