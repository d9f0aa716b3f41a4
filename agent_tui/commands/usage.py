"""Commands about what is used: the state of the session in short, its tokens and cost, budgets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agent_tui.commands.info import Action, Info, Row, Section
from agent_tui.commands.project import MODE_HELP
from agent_tui.commands.registry import CommandResult, Text, command
from agent_tui.commands.report import share_words
from agent_tui.commands.sessions import first_words
from agent_tui.commands.subagents import type_of
from agent_tui.context.accounting.reports import DOUBTS
from agent_tui.context.accounting.spending import (
    SETTINGS,
    BudgetLine,
    BudgetName,
    amount,
    parse_limit,
    rest_of,
    session_totals,
)
from agent_tui.context.cache_forecast import miss_sums, whole
from agent_tui.errors import OPEN_ELSEWHERE, ConfigError
from agent_tui.models.context import SessionTotals
from agent_tui.models.session import BUDGETS
from agent_tui.models.steps import MissCause, MissSum, Step, StepKind
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import money, plural, tenths_of, tokens, total_text, whole_percent
from agent_tui.tools.base import GENERAL

if TYPE_CHECKING:
    from agent_tui.context.trust import State
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Message


_LABELS: dict[BudgetName, str] = {
    "run": "Run",
    "turn": "Turn",
    "session": "Session",
    "day": "Today",
}


def _choices(agent: Agent) -> Iterable[tuple[str, str]]:
    for line in agent.budget.lines():
        if line.name != "run":
            yield f"{line.name} ", _amounts(line)


@command("budget", args="[turn|session|day AMOUNT|off]", choices=_choices)
async def budget(agent: Agent, args: str) -> CommandResult:
    """Show what is spent and left, or set a budget.

    /budget session 5 allows this session $5; /budget turn off removes a limit. A call that could exceed a budget is
    asked for a shorter answer, or not made. Lasting budgets are set in the configuration, under [budget].
    """
    name, _, wanted = args.partition(" ")
    if not args:
        return Info("Budget", [Section("", [_budget_row(line) for line in agent.budget.lines()])], "/budget", _CHANGES)
    chosen = next((one for one in _LABELS if one == name and one in BUDGETS), None)
    if chosen is None:
        return Text("Usage: /budget [turn|session|day AMOUNT|off]", error=True)
    try:
        limit = parse_limit(wanted)
    except ConfigError as error:
        return Text(str(error), error=True)
    agent.budget.set(chosen, limit)
    line = next(line for line in agent.budget.lines() if line.name == chosen)
    return Text(f"{_LABELS[chosen]}: {_amounts(line)}.")


_CHANGES = (
    Action("enter", "change", "/budget {row} {typed}", "NAME", "AMOUNT", "an amount, e.g. 5 or $0.50, or off"),
    Action("d", "no limit", "/budget {row} off", "NAME"),
)


def _budget_row(line: BudgetLine) -> Row:
    """What is spent of a budget, and what is left."""
    keys = () if line.name == "run" else ("enter", "d")
    return Row(_LABELS[line.name], _rest(line), _spent(line), key=line.name, keys=keys)


def _amounts(line: BudgetLine) -> str:
    """Spent, limit and what is left: ``$0.42 of $5.00, $4.58 left``."""
    return f"{_spent(line)}{', ' if line.limit is None else ' '}{_rest(line)}"


def _spent(line: BudgetLine) -> str:
    return amount(line, line.spent)


def _rest(line: BudgetLine) -> str:
    held = f", up to {amount(line, line.held)} pending" if line.held else ""
    if line.limit is None:
        return f"no limit ({SETTINGS[line.name]}){held}"
    return f"of {amount(line, line.limit)}, {rest_of(line)}{held}"


USED = {
    "input": "Input",
    "cache_read": "  cached",
    "cache_write": "  written",
    "cache_write_1h": "    for 1 h",
    "output": "Output",
    "reasoning": "  reasoning",
}
"""What ``/usage`` calls the fields of a usage that count tokens, in its order."""

_KINDS: dict[StepKind, str] = {
    "turn": "turns",
    "subagent": "subagents",
    "compaction": "summaries",
    "attempt": "made again",
}


def usage_sections(totals: SessionTotals, steps: Sequence[Step]) -> list[Section]:
    """What a session used and cost, as the providers reported it."""
    rows = [Row("Cost", "", money(totals.cost)), *_used(totals), Row("Calls", "", f"{totals.steps:,}")]
    if searches := sum(step.usage.searches or 0 for step in steps if step.usage is not None):
        rows.append(Row("Web searches", "at the provider, in the cost", f"{searches:,}"))
    if totals.doubted:
        why = "; ".join(dict.fromkeys(DOUBTS[step.doubt] for step in steps if step.doubt and step.believed is not None))
        words = f"counted as reported, but it looks wrong{f': {why}' if why else ''}"
        rows.append(Row("Doubtful", words, plural(totals.doubted, "report")))
    rows.append(_compacted(totals))
    if totals.unused:
        words = f"{plural(totals.unused, 'summary', 'summaries')} prepared, not used yet"
        rows.append(Row("Prepared", words, money(totals.unused_cost)))
    missed = [*sum_rows(steps)]
    return [Section("Session", rows), *([Section("Paid again: not read from the cache", missed)] if missed else [])]


def _compacted(totals: SessionTotals) -> Row:
    """``2 compactions in force, 1 undone``: what was paid for and undone is not nothing."""
    if totals.taken_back and not totals.compactions:
        return Row("Compacted", "undone", plural(totals.taken_back, "time"))
    if not totals.compactions:
        return Row("Compacted", "", "never")
    undone = f"{totals.taken_back:,} more undone" if totals.taken_back else ""
    return Row("Compacted", undone, plural(totals.compactions, "time"))


def _used(totals: SessionTotals) -> Iterator[Row]:
    for field, label in USED.items():
        count = None if totals.usage is None else getattr(totals.usage, field)
        share = ""
        if field == "cache_read":
            share = f"{'?' if totals.cached is None else whole_percent(*totals.cached)} of the input"
        if count or field != "cache_write_1h":
            yield Row(label, share, "?" if count is None else f"{count:,}")


EARLIER = 100
"""Turns that have a bar each; those before them have one together."""


def share_sections(steps: Sequence[Step], messages: Sequence[Message]) -> Iterator[Section]:
    """What each turn cost, the newest first, and, where there are several, each model and each kind of call: as bars.
    Tokens where nothing has a price, or all is free. ``messages`` are the user's."""
    calls = [step for step in steps if step.kind != "count"]
    dollars = any(step.cost.known for step in calls)
    what = "Cost" if dollars else "Tokens"
    asked = sorted(messages, key=lambda message: message.created)
    begun = [message.created for message in asked]
    turns: dict[str, list[Step]] = {}
    for step in calls:
        at = bisect_right(begun, step.created) - 1
        name = f"{at + 1}. {first_words(asked[at])}" if at >= 0 else "before the first message"
        turns.setdefault(name, []).append(step)
    newest = dict([*turns.items()][: -EARLIER - 1 : -1])
    if before := [step for name, own in turns.items() if name not in newest for step in own]:
        newest[f"{len(turns) - len(newest):,} turns before"] = before
    if newest:
        yield Section(f"{what} by turn, newest first", _bars(newest, dollars))
    by_model = _grouped(calls, lambda step: step.model_key)
    if len(by_model) > 1:
        yield Section(f"{what} by model", _bars(by_model, dollars))
    by_kind = _grouped(calls, lambda step: _KINDS.get(step.kind, step.kind))
    if len(by_kind) > 1:
        yield Section(f"{what} by kind", _bars(by_kind, dollars))
    by_type = _grouped((step for step in calls if step.kind == "subagent"), type_of)
    if any(name != GENERAL for name in by_type):
        yield Section(f"{what} by subagent type", _bars(by_type, dollars))


def _grouped(steps: Iterable[Step], name_of: Callable[[Step], str]) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(name_of(step), []).append(step)
    return found


def _bars(groups: Mapping[str, Sequence[Step]], dollars: bool) -> list[Row]:
    sums = {name: session_totals(steps) for name, steps in groups.items()}
    sizes = {name: one.cost.known if dollars else float(_both(one)) for name, one in sums.items()}
    most = max(sizes.values()) or 1.0
    rows = []
    for name, one in sums.items():
        value = money(one.cost) if dollars else tokens(_both(one), False)
        rows.append(Row(one_line(name, 200), _flow(one), value, bar=sizes[name] / most))
    return rows


def _both(totals: SessionTotals) -> int:
    return totals.usage.input + totals.usage.output if totals.usage is not None else 0


def _flow(totals: SessionTotals) -> str:
    """``81 % cached · 3 calls · 45.2k in · 2.1k out``."""
    cached = [f"{whole_percent(*totals.cached)} cached"] if totals.cached is not None else []
    usage = totals.usage
    flow = [] if usage is None else [f"{tokens(usage.input, False)} in", f"{tokens(usage.output, False)} out"]
    return " · ".join([*cached, plural(totals.steps, "call"), *flow])


CAUSES: dict[MissCause, str] = {
    "ours": "by us",
    "expired": "expired",
    "unknown": "provider",
}
"""The causes of a miss, as they are shown."""


def sum_rows(steps: Sequence[Step]) -> Iterator[Row]:
    """The misses of a session: all, then by cause. None where there was no miss."""
    sums = miss_sums(steps)
    if not sums:
        return
    yield _missed("All", whole(sums.values()))
    for cause, one in sums.items():
        yield _missed(f"  {CAUSES[cause]}", one)


def _missed(name: str, one: MissSum) -> Row:
    return Row(name, f"{tokens(one.tokens, False)} tokens in {plural(one.count, 'call')}", money(one.cost))


@command("status")
async def status(agent: Agent, args: str) -> CommandResult:
    """Show session, model, folder and permissions."""
    usage, spec, info = agent.context.usage(), agent.models.spec, agent.conversation.info
    window = usage.window
    where = "unknown window"
    if window is not None:
        part = share_words(usage.total, tenths_of(usage.total, window), usage.approximate)
        used = total_text(usage)
        where = f"{used} of {tokens(window, False)} ({part})"
    if usage.window_origin.startswith("learned"):
        where += f", window {usage.window_origin}"
    session = [
        Row("Title", one_line(info.title, 200) or "untitled"),
        Row("ID", info.id),
        Row("Messages", f"{len(agent.conversation.path):,}"),
        Row("Cost", money(usage.session.cost)),
    ]
    if agent.conversation.read_only:
        session.append(Row("State", f"read-only: {OPEN_ELSEWHERE}"))
    model = [
        Row("Model", f"{spec.key} ({spec.model})" if spec.key != spec.model else spec.key),
        Row("Thinking", "no levels" if agent.models.levels()[0].only else agent.models.effort),
        Row("Context", f"{where}, {usage.basis}"),
    ]
    project = [
        Row("Folder", f"{agent.cwd}{_trust_words(agent.project.trust_state)}"),
        Row("Branch", agent.project.branch or "none"),
        Row("Mode", f"{agent.mode.now}: {MODE_HELP[agent.mode.now]}"),
    ]
    held = [Row("" if n else "Sandbox", line) for n, line in enumerate(await agent.project.sandbox_lines())]
    return Info("Status", [Section("Session", session), Section("Model", model), Section("Project", [*project, *held])])


@command("usage", aliases=("cost",))
async def usage(agent: Agent, args: str) -> CommandResult:
    """Show tokens and cost, by turn and by model."""
    conversation, totals = agent.conversation, agent.context.usage().session
    steps = conversation.steps[conversation.inherited :]
    if not totals.steps and not steps:
        return Info("Usage", [Section("", [Row(text="Nothing sent or spent yet.")])])
    first, *others = usage_sections(totals, steps)
    asked = [message for message in conversation.messages.values() if message.role == "user"]
    return Info("Usage", [first, *share_sections(steps, asked), *others])


def _trust_words(state: State) -> str:
    return {"trusted": "", "changed": " (something of it waits: /trust)"}.get(state, " (not trusted: /trust)")
