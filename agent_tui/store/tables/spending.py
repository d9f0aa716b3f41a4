"""What each model call of this machine cost, by the day it was made: the sum of a day over all sessions.

The rows outlive their sessions: what was deleted has been paid for.
"""

from __future__ import annotations

import time

from agent_tui.models.money import Cost
from agent_tui.models.steps import Step
from agent_tui.store.tables.base import Tables
from agent_tui.store.tables.database import Database

NOT_COUNTED = ("subagent", "count")
"""Kinds of steps without a row: a subagent's call has one in its own session, a count is free."""


def day_of(moment: float) -> str:
    """The local day of a time in seconds since the epoch: ``2026-11-21``; empty for what is no time."""
    try:
        return time.strftime("%Y-%m-%d", time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return ""


class SpendingTables(Tables):
    """``_bills`` is the database that keeps the rows, which a store that is thrown away shares with the others."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._bills = database

    def spent_on(self, day: str) -> tuple[Cost, float]:
        """What the calls of a day cost, of all sessions and processes, and the dollars that calls under way, or that
        never said what they cost, were expected to cost beyond that."""
        row = self._bills.one(
            "SELECT COALESCE(SUM(usd), 0), COALESCE(SUM(unpriced), 0), COALESCE(SUM(held), 0) FROM spending "
            "WHERE day = ?",
            (day,),
        )
        known, unpriced, held = row or (0.0, 0, 0.0)
        return Cost(float(known), int(unpriced)), float(held)

    def _put_spending(self, step: Step) -> None:
        if step.kind in NOT_COUNTED:
            return
        cost = step.cost
        with self._bills.writing():
            self._bills.run(
                "INSERT INTO spending (step_id, day, usd, unpriced, held) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (step_id) DO UPDATE SET usd = excluded.usd, unpriced = excluded.unpriced, "
                "held = excluded.held",
                (step.id, day_of(step.created), cost.known, cost.unpriced, step.held_usd),
            )
