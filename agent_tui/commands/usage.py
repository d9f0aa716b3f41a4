"""Commands about what is used: the state of the session in short, its tokens and cost, budgets."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agent_tui.commands.registry import CommandResult, Text, command
from agent_tui.context.accounting.reports import DOUBTS
from agent_tui.context.accounting.spending import SETTINGS, BudgetLine, BudgetName, amount, rest_of
from agent_tui.context.cache_forecast import miss_sums, whole
from agent_tui.context.compaction.regret import sum_of
from agent_tui.errors import OPEN_ELSEWHERE
from agent_tui.models.context import SessionTotals
from agent_tui.models.session import BUDGETS
from agent_tui.models.steps import MissCause, MissSum, Step, StepKind
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import interval, money, plural, share_in, tokens, whole_percent

if TYPE_CHECKING:
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
    A call that could break a budget is asked for a shorter answer, or not made. The lasting ones are in the
    configuration, under [budget].
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
    held = f" and up to {amount(line, line.held)} held back" if line.held else ""
    if line.limit is None:
        return f"{spent}{held}, no limit ({SETTINGS[line.name]})"
    return f"{spent}{held} of {amount(line, line.limit)}, {rest_of(line)}"


USED = {
    "input": "Input",
    "cache_read": "  cached",
    "cache_write": "  written",
    "cache_write_1h": "    for 1 h",
    "output": "Output",
    "reasoning": "  reasoning",
}
"""What ``/usage`` calls the fields of a usage that count tokens, in its order."""

_KINDS: tuple[tuple[StepKind, str], ...] = (("turn", "turns"), ("subagent", "subagents"), ("compaction", "summaries"))


def usage_text(totals: SessionTotals, steps: Sequence[Step]) -> str:
    """Returns the text of ``/usage``: what a session used and cost, as the providers reported it."""
    rows = [*_used(totals), ("Cost", money(totals.cost)), *_by_kind(totals)]
    if totals.doubted:
        why = "; ".join(dict.fromkeys(DOUBTS[step.doubt] for step in steps if step.doubt and step.believed is not None))
        words = f"{plural(totals.doubted, 'report')}  not believed, but counted as reported"
        rows.append(("Doubted", f"{words}: {why}" if why else words))
    rows += [
        *sum_rows(steps),
        ("Calls", plural(totals.steps, "step")),
        ("Compacted", _compacted(totals)),
    ]
    if totals.unused:
        words = f"{plural(totals.unused, 'summary', 'summaries')} prepared, not used so far"
        rows.append(("Prepared", f"{money(totals.unused_cost)}  {words}"))
    return "\n".join(_figure(name, value) for name, value in rows)


def _compacted(totals: SessionTotals) -> str:
    """``2 compactions in force, 1 taken back``: what was paid for and undone is not nothing."""
    if totals.taken_back and not totals.compactions:
        return f"{plural(totals.taken_back, 'compaction')}  taken back"
    if not totals.compactions:
        return "nothing"
    undone = f", {totals.taken_back:,} taken back" if totals.taken_back else ""
    return f"{plural(totals.compactions, 'compaction')}  in force{undone}"


def _used(totals: SessionTotals) -> Iterator[tuple[str, str]]:
    for field, label in USED.items():
        count = None if totals.usage is None else getattr(totals.usage, field)
        value = "not reported" if count is None else f"{count:,}"
        if field == "cache_read":
            value += f"  ({'?' if totals.cached is None else whole_percent(*totals.cached)})"
        if count or field != "cache_write_1h":
            yield label, value


def _figure(name: str, value: str) -> str:
    """A row of figures; what is said of one stands behind the column."""
    number, _, said = value.partition("  ")
    return f"{name:<12}{number:>14}  {said}".rstrip()


def _by_kind(totals: SessionTotals) -> list[tuple[str, str]]:
    """Returns the cost of each kind of call, where there was more than one; exact counts are free."""
    found = [(f"  {label}", money(totals.by_kind[kind].cost)) for kind, label in _KINDS if kind in totals.by_kind]
    return found if len(found) > 1 else []


CAUSES: dict[MissCause, str] = {
    "ours": "by us",
    "expired": "expired",
    "unknown": "provider",
}
"""The causes of a miss, as they are shown."""


def sum_rows(steps: Sequence[Step]) -> Iterator[tuple[str, str]]:
    """Name and value of the misses of a session: all, then by cause. None where there was no miss."""
    sums = miss_sums(steps)
    if not sums:
        return
    yield "Missed", _sum_words(whole(sums.values()))
    for cause, one in sums.items():
        yield f"  {CAUSES[cause]}", _sum_words(one)


def _sum_words(one: MissSum) -> str:
    return f"{money(one.cost):>14}  {tokens(one.tokens, False)} tokens paid anew in {plural(one.count, 'call')}"


STATUS_WIDTH = 64
"""Columns of a long value of ``/status``: with its name and the frame, 80."""


@command("status")
async def status(agent: Agent, args: str) -> CommandResult:
    """Shows session, model, folder, permissions and context in short."""
    usage, spec = agent.context.usage(), agent.models.spec
    window = usage.window
    where = "unknown window"
    if window is not None:
        part = share_in(usage.total, window, usage.approximate)
        used = interval(usage.total, usage.spread, usage.approximate)
        where = f"{used} of {tokens(window, False)} ({part} of the window)"
    if usage.window_origin.startswith("learned"):
        where += f", window {usage.window_origin}"
    rows = [
        ("Session", f"{one_line(agent.conversation.info.title, 80) or 'untitled'}  ({agent.conversation.info.id})"),
        ("Model", f"{spec.key}  ({spec.model})" if spec.key != spec.model else spec.key),
        ("Thinking", "no levels" if agent.models.levels()[0].only else agent.models.effort),
        ("Folder", f"{agent.cwd}{'' if agent.project.trusted else '  (not trusted: /trust)'}"),
        ("Branch", agent.project.branch or "none"),
        ("Mode", agent.mode.now),
        *(
            ("" if index else "Sandbox", line)
            for index, line in enumerate(_narrow(await agent.project.sandbox_lines()))
        ),
        ("Context", f"{where}, {usage.basis}"),
        ("Messages", f"{len(agent.conversation.path):,}"),
        ("Cost", money(usage.session.cost)),
    ]
    if agent.conversation.read_only:
        rows.append(("State", f"read-only: {OPEN_ELSEWHERE}"))
    return Text("\n".join(f"{name:<9} {value}" for name, value in rows))


def _narrow(lines: Iterable[str]) -> Iterator[str]:
    """Lines that fit beside the names on 80 columns; what goes on is indented."""
    for line in lines:
        yield from textwrap.wrap(line, STATUS_WIDTH, subsequent_indent="  ", break_on_hyphens=False)


@command("usage", aliases=("cost",))
async def usage(agent: Agent, args: str) -> CommandResult:
    """Shows tokens and cost of this session."""
    totals = agent.context.usage().session
    if not totals.steps and not agent.conversation.steps:
        return Text("Nothing was sent in this session yet, and nothing spent.")
    text = usage_text(totals, agent.conversation.steps)
    if back := sum_of(agent.compaction.came_back().values() if agent.conversation.own_records else ()):
        said = f"{plural(back.calls, 'call')}, {tokens(back.tokens, True)} tokens, after compactions"
        text += f"\n{_figure('Came back', f'{money(back.usd)}  {said}')}"
    return Text(text)
