"""The budgets of a session, and of a subagent in it: what is left of them, and whether the next call fits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from agent_tui.config import BudgetConfig
from agent_tui.context.accounting.inputs import DEFAULT_RESERVE
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
    tokens_of,
    unpriced_text,
)
from agent_tui.context.incremental import Followed
from agent_tui.engine.conversation import Conversation
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.events import Notice
from agent_tui.models.steps import Step
from agent_tui.models.usage import NO_COST, Cost
from agent_tui.store.steps import day_of

log = logging.getLogger(__name__)


class OverBudgetError(AgentError):
    """Another process has taken of the day's budget what was there a moment ago."""


class SpendingBudget:
    """One a session. What was spent on any of its branches counts; what a fork inherits was
    spent by the session it was forked from. The limits are those of the configuration, and what the user said for
    this session over them. ``run_usd`` holds for the whole run of the program, whatever sessions it goes through:
    for the calls since this one was opened, and for those of ``before``, the budget of the session it was in last.
    That of a subagent is ``within`` another one."""

    def __init__(
        self,
        conversation: Conversation,
        config: BudgetConfig,
        run_usd: float | None = None,
        before: SpendingBudget | None = None,
        within: SpendingBudget | None = None,
        subagent: tuple[str, float | None] = ("", None),
    ) -> None:
        self.conversation = conversation
        self._config = config
        self._run_usd = run_usd if before is None else before.limit("run")
        # No call is under way while the session changes, so what was spent in the last one stays as it is.
        spent = before._run() if before is not None else None
        self._elsewhere = (spent.spent, spent.held) if spent is not None else (NO_COST, 0.0)
        self._run_from = self._turn_from = len(conversation.steps)
        self._totals = Followed(Sums())
        self._told: set[str] = set() if within is None else within._told
        self.one_by_one: asyncio.Lock = asyncio.Lock() if within is None else within.one_by_one
        """Held while a call is measured against what is left and begun."""
        self._given_back: asyncio.Event = asyncio.Event() if within is None else within._given_back
        self._within, self._subagent_usd = within, subagent[1]
        self._subagents: set[str] = set()
        self._include(subagent[0])

    def of_subagent(self, agent_id: str, usd: float | None) -> SpendingBudget:
        """Returns the budget of a subagent: this one, and at most ``usd`` by itself and by those it starts."""
        return SpendingBudget(self.conversation, self._config, within=self, subagent=(agent_id, usd))

    def _include(self, agent_id: str) -> None:
        """The calls of this subagent count in the budget of one."""
        self._subagents.add(agent_id)
        if self._within is not None:
            self._within._include(agent_id)

    @property
    def _own(self) -> list[Step]:
        """The calls of the subagent, and of those it started."""
        return [s for s in self.conversation.steps if s.agent is not None and s.agent.id in self._subagents]

    def begin_turn(self, *, anew: bool) -> None:
        """Begins a turn: what is spent from here on is the turn's; one that is not begun ``anew`` goes on."""
        self._turn_from = len(self.conversation.steps) if anew else self._turn_from
        if self.limit("day") is not None:
            try:
                self.conversation.store.settle()
            except StoreError as error:
                log.warning("What killed programs hold of the day stays: %s", error)

    def limit(self, name: BudgetName) -> float | None:
        """Returns the most that may be spent; None where no limit is set."""
        if self._within is not None:
            return self._subagent_usd if name == "subagent" else self._within.limit(name)
        said = self.conversation.info.state.budget
        if name in said:
            return said[name]
        config = self._config
        return {
            "run": self._run_usd,
            "turn": config.turn_usd,
            "session": config.session_usd,
            "day": config.day_usd,
            "tokens": config.session_tokens,
            "subagent": None,
        }[name]

    def lines(self) -> list[BudgetLine]:
        """All budgets, with what was spent of them."""
        if self._within is not None:
            own = dollars_of("subagent", self._subagent_usd, session_totals(self._own))
            return [own, *self._within.lines()]
        steps, limit = self.conversation.steps, self.limit
        whole = self._totals.follow(steps[self.conversation.inherited :]).totals()
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
        # A call that waits may fit now.
        self.gave_back()

    @property
    def limited(self) -> bool:
        return any(self.limit(name) is not None for name in SETTINGS)

    async def room_for(self, call: ExpectedCall, what: str) -> str | None:
        """Why the call is not to be made, when it could break a budget; ``what`` it is for. Where only what is held
        back for calls under way stands in its way, they are waited for."""
        while self.limited:
            self._given_back.clear()
            lines = self.lines()
            if first_broken(lines, call) is None:
                break
            if (broken := first_broken(self._later(lines), call)) is not None:
                return stop_text(broken, call, what)
            await self._given_back.wait()
        return None

    def _later(self, lines: Sequence[BudgetLine]) -> list[BudgetLine]:
        """``lines`` without what is held back for this session's calls that run."""
        if self._within is not None:
            return [_given_back(lines[0], self._own), *self._within._later(lines[1:])]
        since: dict[BudgetName, int] = {"turn": self._turn_from, "run": self._run_from}
        return [_given_back(line, self.conversation.steps[since.get(line.name, 0) :]) for line in lines]

    def longest(self, call: ExpectedCall, most: int | None) -> tuple[int | None, BudgetLine | None]:
        """The longest answer to ask for, where the model gives one of ``most`` tokens (None: nobody knows), and the
        budget for which that is less. What has no end gets one (``DEFAULT_RESERVE``): held back for one call, all that
        is left would keep every other one waiting."""
        rooms = [(room, line) for line in self.lines() if (room := line.longest(call)) is not None]
        if not self.limited or not rooms:
            return most, None
        least, line = min(rooms, key=itemgetter(0))
        most = DEFAULT_RESERVE if most is None else most
        return (least, line) if least < most else (most, None)

    def require(self, step: Step) -> None:
        """Raises OverBudgetError where not all that the call may cost is left."""
        if self.limited and not all(line.takes(step) for line in self.lines()):
            raise OverBudgetError

    @property
    def overdrawn(self) -> bool:
        """More is spent or held back than a budget has."""
        return self.limited and any((line.left or 0.0) < -1e-6 for line in self.lines())

    def gave_back(self) -> None:
        """A call has ended: what was held back for it, and not used, is there again."""
        self._given_back.set()

    def unpriced(self, model: str, call: ExpectedCall) -> Notice | None:
        """Returns the notice to give, once for each model, when a budget in dollars cannot be held for it."""
        names = [name for name in SETTINGS if name != "tokens" and self.limit(name) is not None]
        if call.usd is not None or not names or model in self._told:
            return None
        self._told.add(model)
        return Notice("warning", unpriced_text(model, names), "budget_unpriced")


def _given_back(line: BudgetLine, steps: Sequence[Step]) -> BudgetLine:
    """``line`` without the dollars, or tokens, that are held back for those of ``steps`` that run."""
    running = [step for step in steps if step.status == "running"]
    return replace(line, held=line.held - sum(s.held_tokens if line.name == "tokens" else s.held_usd for s in running))
