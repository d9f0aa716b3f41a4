"""The command about budgets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent_tui.commands.registry import command
from agent_tui.commands.result import CommandResult, Text
from agent_tui.context.accounting.spending import SETTINGS, BudgetLine, BudgetName, amount, rest_of
from agent_tui.models.session import BUDGETS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.engine.agent import Agent

_LABELS: dict[BudgetName, str] = {
    "run": "Run",
    "turn": "Turn",
    "session": "Session",
    "day": "Today",
    "tokens": "Tokens",
}


_NUMBER = r"((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)"
"""Commas stand between thousands alone: taken for nothing, one that was meant as a point would make it ten times as
much and more."""
_DOLLARS = rf"\$?{_NUMBER}"
_TOKENS = rf"{_NUMBER}[km]?"
_FACTORS = {"k": 1_000, "m": 1_000_000}


def _choices(agent: Agent) -> Iterable[tuple[str, str]]:
    for line in agent.budget.lines():
        if line.name != "run":
            yield f"{line.name} ", _amounts(line)


@command("budget", args="[turn|session|day|tokens AMOUNT|off]", choices=_choices)
async def budget(agent: Agent, args: str) -> CommandResult:
    """Shows what may be spent and what is left, or sets it for this session.

    /budget session 5 allows this session $5, /budget tokens 500k so many tokens, /budget turn off takes a limit away.
    A call that would break a budget is not made. The lasting ones are in the configuration, under [budget].
    """
    name, _, wanted = args.partition(" ")
    if not args:
        return Text("\n".join(f"{_LABELS[line.name]:<9} {_amounts(line)}" for line in agent.budget.lines()))
    chosen = next((one for one in _LABELS if one == name and one in BUDGETS), None)
    limit = _limit(wanted, chosen == "tokens")
    if chosen is None or limit == 0:
        return Text("/budget takes nothing, or turn, session, day or tokens with an amount or off.", error=True)
    agent.budget.set(chosen, limit)
    line = next(line for line in agent.budget.lines() if line.name == chosen)
    return Text(f"{_LABELS[chosen]}: {_amounts(line)}.")


def _limit(text: str, counts_tokens: bool) -> float | None:
    """The amount that was typed, None for none (``off``); 0 where it is no amount."""
    text = text.strip().lower()
    if text in ("off", "none"):
        return None
    amount_of = re.fullmatch(_TOKENS if counts_tokens else _DOLLARS, text)
    if amount_of is None:
        return 0
    number = float(amount_of[1].replace(",", "")) * _FACTORS.get(text[-1], 1)
    if counts_tokens:
        number = int(number)
    return number if number < float("inf") else 0


def _amounts(line: BudgetLine) -> str:
    """Spent, limit and what is left: ``$0.42 of $5.00, $4.58 left``."""
    spent = amount(line, line.tokens if line.name == "tokens" else line.spent)
    held = f" and ~{amount(line, line.held)} held back" if line.held else ""
    if line.limit is None:
        return f"{spent}{held}, no limit ({SETTINGS[line.name]})"
    return f"{spent}{held} of {amount(line, line.limit)}, {rest_of(line)}"
