"""The calculator's answer in words: the lines of the context screen, and the whole of it as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_tui.commands.cache_words import sum_rows
from agent_tui.commands.usage_words import child_shares, estimated, facts, in_words, row_notes, total_mark
from agent_tui.context.accounting.next_input import calculation_text
from agent_tui.context.accounting.usage import window_shares
from agent_tui.models.context import ContextRow, ContextUsage, SessionTotals
from agent_tui.models.rows import FREE, RESERVE
from agent_tui.models.steps import CompactionRecord, Step, StepKind
from agent_tui.models.usage import Prices
from agent_tui.text.clean import cut, one_line
from agent_tui.text.numbers import factor, grouped, money, percent, plural, share, tokens, whole_percent

CHILDREN_SHOWN = 40
"""Children of a row in the plain text; the JSON has all."""


Tone = Literal["plain", "good", "bad", "warning"]


@dataclass(slots=True, frozen=True)
class Entry:
    """One line of the bookkeeping: how the number was made, and whether it holds."""

    name: str
    text: str
    tone: Tone = "plain"


def context_text(
    usage: ContextUsage, records: Sequence[CompactionRecord] = (), prices: Prices | None = None, *, ahead: bool = True
) -> str:
    """All numbers of the context screen as plain text; ``ahead`` as for ``facts``."""
    lines = [
        in_words(usage),
        facts(usage, prices=prices, ahead=ahead),
        "",
        f"{'':<44} {'tokens':>12} {'of window':>10}".rstrip(),
    ]
    shares = window_shares(usage)
    for index, row in enumerate(usage.rows):
        if row.tokens or row.children or row.deferred_tokens:
            lines += _row(row, 0, None if shares is None else shares.rows[index])
    if shares is not None:
        mark = total_mark(usage)
        reserve = _numbers(RESERVE.label, 0, "", usage.reserve or 0, shares.reserve)
        if usage.over:
            lines += [reserve, _numbers("Over the limit", 0, mark, -usage.over, -shares.over)]
        else:
            lines += [_numbers(FREE.label, 0, mark, usage.free or 0, shares.free), reserve]
    entries = bookkeeping(usage, usage.total, records)
    return "\n".join([*lines, "", *(f"{entry.name:<12} {entry.text}" for entry in entries)])


def bookkeeping(usage: ContextUsage, trigger: int, records: Sequence[CompactionRecord] = ()) -> list[Entry]:
    """How the number was made and how well such numbers were met so far, the session's sums, the proof, and why it
    compacts or does not. ``trigger`` is the compactor's own total."""
    proof, holds = proof_line(usage, trigger, adds_up(usage))
    entries = [
        Entry("Calculation", calculation_text(usage)),
        Entry("Accuracy", accuracy_line(usage)),
        Entry("Session", session_line(usage, records)),
        Entry("Proof", proof, "good" if holds else "bad"),
    ]
    if usage.why:
        entries.append(Entry("Compaction", one_line(usage.why.partition(". ")[0].rstrip(".") + ".", 400)))
    return entries + [Entry("Warning", one_line(warning, 400), "warning") for warning in usage.warnings]


def folded(usage: ContextUsage, holds: bool) -> Entry:
    """The bookkeeping where there is no room for it: proof, limit and why, in one line. ``holds``: the proof does."""
    parts = [f"✓ adds up to {usage.total:,}" if holds else f"✗ does not add up to {usage.total:,}"]
    if usage.limit is None:
        parts.append("no limit: unknown window")
    else:
        parts.append(f"limit {usage.limit:,}")
        away = abs(usage.total - usage.limit)
        side = "over" if usage.total > usage.limit else "below"
        parts.append(f"{away:,} {side}{', compacts' if usage.would_compact else ''}")
    if usage.held and not usage.would_compact:
        parts.append(usage.held)
    if usage.warnings:
        parts.append(plural(len(usage.warnings), "warning"))
    return Entry("", " · ".join(parts), "good" if holds else "bad")


def _row(row: ContextRow, depth: int, tenths: int | None) -> Iterator[str]:
    line = _numbers(one_line(row.label, 200), depth, "~" if estimated(row) else "", row.tokens, tenths)
    yield f"{line}  {', '.join(row_notes(row))}"
    shares = child_shares(row, tenths)
    for child, part in list(zip(row.children, shares, strict=True))[-CHILDREN_SHOWN:]:
        yield from _row(child, depth + 1, part)
    earlier = row.children[:-CHILDREN_SHOWN]
    if earlier:
        rest = None if tenths is None else sum(part or 0 for part in shares[: len(earlier)])
        mark = "~" if any(estimated(child) for child in earlier) else ""
        yield _numbers(f"{len(earlier):,} earlier ones", depth + 1, mark, sum(child.tokens for child in earlier), rest)


def _numbers(label: str, depth: int, mark: str, count: int, tenths: int | None) -> str:
    return f"{cut('  ' * depth + label, 44):<44} {mark + grouped(count):>12} {share(tenths, bool(count)):>10}"


def adds_up(usage: ContextUsage) -> bool:
    """Whether rows add up to the total, children to their parents, and everything to the window."""
    if sum(row.tokens for row in usage.rows) != usage.total:
        return False
    parents = [row for row in usage.rows if row.children]
    while parents:
        row = parents.pop()
        if sum([child.tokens for child in row.children]) != row.tokens:
            return False
        parents += [child for child in row.children if child.children]
    if usage.window is None or usage.free is None or usage.reserve is None:
        return True
    return usage.total + usage.free + usage.reserve - (usage.over or 0) == usage.window


def accuracy_line(usage: ContextUsage) -> str:
    a = usage.accuracy
    if not a.calls:
        return f"no call to compare with yet · estimates × {factor(a.ratio)}"
    last = "?"
    if a.last_error_percent is not None:
        sign = f" ({a.last_error_tokens:+,})".replace("-", "−") if a.last_error_tokens is not None else ""
        last = percent(a.last_error_percent, signed=True) + sign
    median = percent(a.median_error_percent)
    return f"last {last} · median {median} over {plural(a.calls, 'call')} · estimates × {factor(a.ratio)}"


def session_line(usage: ContextUsage, records: Sequence[CompactionRecord]) -> str:
    s = usage.session
    used = s.usage
    read, wrote = (None, None) if used is None else (used.input, used.output)
    parts = [f"in {tokens(read, False)}", f"out {tokens(wrote, False)}"]
    if used is not None and used.reasoning is not None:
        parts.append(f"reasoning {tokens(used.reasoning, False)}")
    if s.cached is not None:
        parts.append(f"cached so far {whole_percent(*s.cached)}")
    parts.append(money(s.cost))
    if s.doubted:
        parts.append(f"{plural(s.doubted, 'report')} not believed")
    newest = max((r for r in records if r.active), key=lambda r: r.created, default=None)
    if s.compactions:
        change = ""
        if newest is not None and newest.before_tokens is not None and newest.after_tokens is not None:
            change = f" ({tokens(newest.before_tokens, newest.before_estimated)} → {tokens(newest.after_tokens, True)})"
        parts.append(f"{plural(s.compactions, 'compaction')} in force{change}")
    return " · ".join(parts)


def proof_line(usage: ContextUsage, trigger: int, sound: bool) -> tuple[str, bool]:
    """The identities with their numbers, and whether they hold. ``sound``: every level of the rows adds up. Rows that
    had to be scaled prove nothing by adding up, so the line says so and does not hold."""
    rows = sum(row.tokens for row in usage.rows)
    holds = rows == usage.total == trigger and sound and not usage.misfit
    signs = ("=" if rows == usage.total else "≠", "=" if usage.total == trigger else "≠")
    text = f"rows {rows:,} {signs[0]} total {usage.total:,} {signs[1]} trigger {trigger:,}"
    if rows == usage.total == trigger:
        text = f"rows = total = trigger = {rows:,}"
    if usage.window is not None and usage.free is not None and usage.reserve is not None:
        over = usage.over or 0
        whole = usage.total + usage.free + usage.reserve - over
        sign = "=" if whole == usage.window else "≠"
        minus = " − over" if over else ""
        text += f" · + free + reserve{minus} {sign} {usage.window:,}"
    if usage.misfit:
        text += f" · rows scaled: {abs(usage.misfit):,} tokens of the provider's counts are not in them"
    return f"{text} {'✓' if holds else '✗'}", holds


USED = {
    "input": "Input",
    "cache_read": "  cached",
    "cache_write": "  written",
    "cache_write_1h": "  for an hour",
    "output": "Output",
    "reasoning": "  reasoning",
}
"""What ``/usage`` calls the fields of a usage that count tokens, in its order."""

_KINDS: tuple[tuple[StepKind, str], ...] = (("turn", "turns"), ("subagent", "subagents"), ("compaction", "summaries"))


def usage_text(totals: SessionTotals, steps: Sequence[Step]) -> str:
    """What a session used and cost, as ``/usage`` shows it: as the providers reported it."""
    rows = [*_used(totals), ("Cost", money(totals.cost)), *_by_kind(totals)]
    if totals.doubted:
        rows.append(("Doubted", f"{plural(totals.doubted, 'report')}  not believed, and counted here as it came"))
    rows += [
        *sum_rows(steps),
        ("Calls", plural(totals.steps, "step")),
        ("Compacted", plural(totals.compactions, "time")),
    ]
    return "\n".join(_figure(name, value) for name, value in rows)


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
    """What each kind of call cost, where there was more than one; exact counts are free."""
    found = [(f"  {label}", money(totals.by_kind[kind].cost)) for kind, label in _KINDS if kind in totals.by_kind]
    return found if len(found) > 1 else []
