"""The calculator's answer in words: the lines of the context screen, and the whole of it as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_tui.context.accounting.shares import row_shares, window_shares
from agent_tui.context.accounting.why import calculation_text
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import FREE, RESERVE
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.clean import cut, one_line
from agent_tui.text.numbers import factor, grouped, money, percent, plural, share, share_in, tokens, whole_percent

CHILDREN_SHOWN = 40
"""Children of a row in the plain text; the JSON has all."""


def context_text(usage: ContextUsage, records: Sequence[CompactionRecord] = ()) -> str:
    """All numbers of the context screen as plain text."""
    size, part, basis = header(usage, 0)
    lines = [f"{one_line(usage.model, 80)}  {size}  {part}".rstrip() + f"  {basis}", subtitle(usage), ""]
    shares = window_shares(usage)
    for index, row in enumerate(usage.rows):
        if row.tokens or row.children or row.deferred_tokens:
            lines += _row(row, 0, None if shares is None else shares.rows[index])
    if shares is not None:
        rest = [(FREE.label, usage.free or 0, shares.free), (RESERVE.label, usage.reserve or 0, shares.reserve)]
        if usage.over:
            rest = [rest[1], ("Over the limit", -usage.over, -shares.over)]
        lines += [_numbers(name, 0, grouped(count), part) for name, count, part in rest]
    entries = [
        ("Calculation", calculation_text(usage)),
        ("Accuracy", accuracy_line(usage)),
        ("Session", session_line(usage, records)),
        ("Proof", proof_line(usage, usage.total, adds_up(usage))[0]),
        ("Compaction", usage.why),
        *(("Warning", one_line(warning, 400)) for warning in usage.warnings),
    ]
    return "\n".join([*lines, "", *(f"{name:<12} {value}" for name, value in entries if value)])


def _row(row: ContextRow, depth: int, tenths: int | None) -> Iterator[str]:
    rough = row.approximate or row.basis == "estimated"
    line = _numbers(one_line(row.label, 200), depth, f"{'~' if rough else ''}{grouped(row.tokens)}", tenths)
    notes: list[str] = [row.basis]
    if row.estimated_tokens and row.basis != "estimated":
        notes.append(f"{row.estimated_tokens:,} estimated")
    if row.deferred_tokens:
        notes.append(f"{row.deferred_tokens:,} deferred")
    if row.cached_tokens is not None and row.tokens:
        read = f"{row.cached_tokens:,} cached" if row.cached_tokens else "not cached"
        notes.append("cached" if row.cached else read)
    if row.replay:
        notes.append(one_line(row.replay, 80))
    yield f"{line}  {', '.join(notes)}"
    shares: list[int | None] = [None] * len(row.children)
    if tenths is not None:
        shares = [*row_shares(tenths, row.children)]
    for child, part in list(zip(row.children, shares, strict=True))[-CHILDREN_SHOWN:]:
        yield from _row(child, depth + 1, part)
    earlier = row.children[:-CHILDREN_SHOWN]
    if earlier:
        rest = None if tenths is None else sum(part or 0 for part in shares[: len(earlier)])
        tokens_left = grouped(sum(child.tokens for child in earlier))
        yield _numbers(f"{len(earlier):,} earlier ones", depth + 1, tokens_left, rest)


def _numbers(label: str, depth: int, count: str, tenths: int | None) -> str:
    return f"{cut('  ' * depth + label, 44):<44} {count:>12} {share(tenths):>8}"


def adds_up(usage: ContextUsage) -> bool:
    """Whether rows add up to the total, children to their parents, and everything to the window."""
    if sum(row.tokens for row in usage.rows) != usage.total:
        return False
    if any(not _row_adds_up(row) for row in usage.rows):
        return False
    if usage.window is None or usage.free is None or usage.reserve is None:
        return True
    return usage.total + usage.free + usage.reserve - (usage.over or 0) == usage.window


def _row_adds_up(row: ContextRow) -> bool:
    if not row.children:
        return True
    return sum(c.tokens for c in row.children) == row.tokens and all(_row_adds_up(c) for c in row.children)


def accuracy_line(usage: ContextUsage) -> str:
    a = usage.accuracy
    if not a.calls:
        return f"no verified call yet · ratio {factor(a.ratio)}"
    last = "?"
    if a.last_error_percent is not None:
        sign = f" ({a.last_error_tokens:+,})".replace("-", "−") if a.last_error_tokens is not None else ""
        last = percent(a.last_error_percent, signed=True) + sign
    median = percent(a.median_error_percent)
    return f"last {last} · median {median} over {plural(a.calls, 'call')} · ratio {factor(a.ratio)}"


def session_line(usage: ContextUsage, records: Sequence[CompactionRecord]) -> str:
    s = usage.session
    parts = [f"in {tokens(s.input_tokens, False)}", f"out {tokens(s.output_tokens, False)}"]
    if s.reasoning_tokens is not None:
        parts.append(f"reasoning {tokens(s.reasoning_tokens, False)}")
    if s.cache_read_tokens is not None and s.input_tokens:
        parts.append(f"cached {whole_percent(s.cache_read_tokens, s.input_tokens)}")
    parts.append(money(s.cost))
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
        text += f" · rows scaled: the measured parts are off by {abs(usage.misfit):,}"
    return f"{text} {'✓' if holds else '✗'}", holds


def subtitle(usage: ContextUsage, request: str = "") -> str:
    """When it will be compacted and how long that is; ``request`` says what the next request costs."""
    if usage.limit is None:
        return "unknown window: never compacted automatically; set context_window for this model"
    parts = [f"compacts at {tokens(usage.limit, False)}"]
    if usage.over:
        parts = [f"over the limit of {tokens(usage.limit, False)} by {usage.over:,}"]
    elif usage.turns_left is not None:
        parts.append(f"about {plural(usage.turns_left, 'turn')} left")
    if usage.window_origin.startswith("learned"):
        parts.append(f"window {usage.window_origin}")
    if usage.pending:
        parts.append("still counting…")
    parts += [request] if request else []
    return " · ".join(parts)


def header(usage: ContextUsage, in_flight: int) -> tuple[str, str, str]:
    """Tokens of the window, percentage, and how they were made."""
    rough = in_flight > 0 or usage.approximate
    total = usage.total + in_flight
    size = f"{tokens(total, rough)} / {tokens(usage.window, False) if usage.window else 'unknown'}"
    part = share_in(total, usage.window, rough) if usage.window else ""
    basis: str = usage.basis
    if in_flight:
        basis = f"{tokens(in_flight, True)} in flight"
    elif usage.estimated_tokens and usage.basis != "estimated":
        basis = f"{usage.basis}, {tokens(usage.estimated_tokens, True)} estimated"
    return size, part, basis
