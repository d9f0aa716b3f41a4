"""The bookkeeping of the context: how its number was made, line by line as on a receipt, how well such numbers were
met so far, what the session used, and whether all of it adds up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from agent_tui.commands.report import ContextReport, ReportRow, row_notes, shown, total_mark
from agent_tui.commands.subagents import SHOWN, subagents_of, subagents_text
from agent_tui.context.accounting.next_input import calculation_text
from agent_tui.context.compaction.summary import sizes_text
from agent_tui.models.context import ContextUsage
from agent_tui.models.rows import FREE, RESERVE
from agent_tui.models.steps import CompactionRecord
from agent_tui.records import dataclass
from agent_tui.text.clean import cut, one_line
from agent_tui.text.numbers import factor, grouped, money, percent, plural, share, tokens, whole_percent

CHILDREN_SHOWN = 40
"""Children of a row in the plain text; the JSON has all."""


Tone = Literal["plain", "good", "bad", "warning", "quiet"]


@dataclass(slots=True, frozen=True)
class BookkeepingLine:
    """One line of the bookkeeping: how the number was made, and whether it holds."""

    name: str
    text: str
    tone: Tone = "plain"


def entries(report: ContextReport) -> list[BookkeepingLine]:
    """Returns all of it as lines of text: how the number was made and how well such numbers were met so far, the
    session's sums, the proof, and why it compacts or not; none where there are no numbers."""
    if report.problem:
        return []
    usage = report.usage
    proof, holds = _proof(report)
    used = subagents_of(report.steps)
    made = [
        BookkeepingLine("Calculation", calculation_text(usage)),
        BookkeepingLine("Accuracy", accuracy_line(usage)),
        BookkeepingLine("Session", session_line(usage, report.records)),
        *([BookkeepingLine("Subagents", subagents_text(used))] if used else []),
        BookkeepingLine("Proof", proof, "good" if holds else "bad"),
    ]
    made += [BookkeepingLine("Compaction", _decision(usage))] if usage.why else []
    return made + _warnings(report)


def panel(report: ContextReport) -> list[BookkeepingLine]:
    """Returns what of it is to be seen without asking: what was used, what keeps it from compacting, and what is
    wrong."""
    if report.problem:
        return []
    usage = report.usage
    shown = [BookkeepingLine("Session", session_line(usage, report.records))]
    if used := subagents_of(report.steps):
        lines = [one.line() for one in used[:SHOWN]] + [f"and {len(used) - SHOWN} more: w"] * (len(used) > SHOWN)
        shown += [BookkeepingLine("" if at else "Subagents", line) for at, line in enumerate(lines)]
    if usage.why and (usage.held or usage.would_compact or usage.limit is None):
        shown.append(BookkeepingLine("Compaction", _decision(usage)))
    if not adds_up(usage):
        shown.append(BookkeepingLine("Proof", _proof(report)[0], "bad"))
    return shown + _warnings(report)


def fold(report: ContextReport) -> BookkeepingLine:
    """The same in one line, for where there is no room for more."""
    usage, session = report.usage, report.usage.session
    parts = [f"session {money(session.cost)}"]
    if session.compactions:
        parts.append(plural(session.compactions, "compaction"))
    if used := subagents_of(report.steps):
        parts.append(plural(len(used), "subagent"))
    parts += [usage.held] if usage.held else []
    if usage.warnings:
        parts.append(f"{plural(len(usage.warnings), 'warning')}: w")
    parts += ["read-only"] if report.read_only else []
    if not adds_up(usage):
        return BookkeepingLine("", f"the rows do not add up to {usage.total:,}: w", "bad")
    wrong = bool(usage.warnings or report.read_only)
    return BookkeepingLine("", " · ".join(parts), "warning" if wrong else "quiet")


def _proof(report: ContextReport) -> tuple[str, bool]:
    usage = report.usage
    return proof_line(usage, usage.total if report.trigger is None else report.trigger, adds_up(usage))


def _decision(usage: ContextUsage) -> str:
    return one_line(usage.why.partition(". ")[0].rstrip(".") + ".", 400)


def _warnings(report: ContextReport) -> list[BookkeepingLine]:
    said = [BookkeepingLine("Warning", one_line(warning, 400), "warning") for warning in report.usage.warnings]
    return said + ([BookkeepingLine("Read-only", report.read_only, "warning")] if report.read_only else [])


def why(usage: ContextUsage) -> str:
    """Why it compacts, or does not, without the formula, which stands elsewhere."""
    formula = calculation_text(usage)
    return usage.why.replace(f" {formula[:1].upper()}{formula[1:]}.", "")


Term = tuple[str, int, int, str]
"""A line of a sum: its sign, tokens, by how much they may be off, and what they are."""


def terms(usage: ContextUsage) -> list[Term]:
    """Returns the lines that add up to the total; the last is the total. Terms of nothing are left out. Where nothing
    was measured the rows are the lines."""
    c, by = usage.calculation, usage.calculation.spreads
    if c.last_input is None:
        lines = [("+", row.tokens, 0, one_line(row.label, 60)) for row in usage.rows if row.tokens]
    else:
        answer = "last output, estimated (not reported)" if c.output_estimated else "last output"
        changed = "−" if c.fixed_delta < 0 else "+"
        made: list[Term] = [
            ("−", c.dropped_reasoning, by.dropped_reasoning, "reasoning no longer sent"),
            ("−", c.removed, by.removed, "removed from the conversation"),
            (changed, abs(c.fixed_delta), by.fixed_delta, "changed in prompt, tools and files"),
            ("+", c.new_messages, by.new_messages, "new messages"),
        ]
        lines = [
            ("", c.last_input, 0, "last input, as reported"),
            ("+", c.last_output or 0, by.last_output, answer),
            *(term for term in made if term[1] or term[2]),
        ]
    return [*lines, ("=", usage.total, usage.spread, "the next input")]


def limit_terms(usage: ContextUsage) -> list[Term]:
    """Returns the lines from the window to what is left before the limit; none for an unknown window."""
    if usage.window is None or usage.limit is None or usage.reserve is None:
        return []
    away = usage.limit - usage.total
    origin = f" ({one_line(usage.window_origin, 60)})" if usage.window_origin else ""
    return [
        ("", usage.window, 0, f"window{origin}"),
        ("−", usage.reserve, 0, "reserve for the answer"),
        ("=", usage.limit, 0, "the limit"),
        ("−", usage.total, usage.spread, "the next input"),
        ("=", away, usage.spread, "left until it compacts" if away >= 0 else "over the limit"),
    ]


def column(lines: Sequence[Term]) -> Iterator[str]:
    """The lines of a sum below each other, with a rule above each result."""
    numbers = [(sign, grouped(count), f"± {grouped(spread)}" if spread else "") for sign, count, spread, _ in lines]
    width = max((len(count) for _, count, _ in numbers), default=0)
    off = max((len(around) for *_, around in numbers), default=0)
    for (sign, count, around), (*_, text) in zip(numbers, lines, strict=True):
        if sign == "=":
            yield "─" * (width + 2)
        gap = f" {around:<{off}}" if off else ""
        yield f"{sign:<2}{count:>{width}}{gap}  {text}".rstrip()


def receipt(report: ContextReport) -> str:
    """How the number was made, and whether it holds, for reading."""
    usage = report.usage
    proof = _proof(report)[0]
    how = [] if usage.calculation.last_input is not None else ["Nothing measured yet: the whole number is an estimate."]
    blocks = [("How this number is calculated", [*column(terms(usage)), *how])]
    if limit := limit_terms(usage):
        blocks.append(("The limit", list(column(limit))))
    reason = why(usage) if usage.anchor_step is None else _decision(usage)
    blocks.append(("Why it compacts or not", [one_line(reason, 2_000)] if usage.why else []))
    blocks.append(("Accuracy so far", accuracy_line(usage).split(" · ")))
    blocks.append(("The session so far", [session_line(usage, report.records)]))
    blocks.append(("Its subagents, the newest first", [one.line() for one in subagents_of(report.steps)]))
    blocks.append(("Does it add up?", [proof]))
    blocks += [(entry.name, [entry.text]) for entry in _warnings(report)]
    return "\n\n".join("\n".join([f"# {name}", *lines]) for name, lines in blocks if lines)


def adds_up(usage: ContextUsage) -> bool:
    """Returns whether rows add up to the total, children to their parents, and everything to the window."""
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
    held = f" · within the ± {a.inside:,} of {a.intervals:,}" if a.intervals else ""
    last = "?"
    if a.last_error_percent is not None:
        sign = f" ({a.last_error_tokens:+,})".replace("-", "−") if a.last_error_tokens is not None else ""
        last = percent(a.last_error_percent, signed=True) + sign
    median = percent(a.median_error_percent)
    return f"last {last} · median {median} over {plural(a.calls, 'call')}{held} · estimates × {factor(a.ratio)}"


def session_line(usage: ContextUsage, records: Sequence[CompactionRecord]) -> str:
    s = usage.session
    used = s.usage
    read, wrote = (None, None) if used is None else (used.input, used.output)
    # A fork counts none of the calls of the session that it continues.
    called = used is not None or s.by_kind
    parts = [f"in {tokens(read, False)}", f"out {tokens(wrote, False)}"] if called else ["no calls yet"]
    if used is not None and used.reasoning is not None:
        parts.append(f"reasoning {tokens(used.reasoning, False)}")
    if s.cached is not None:
        parts.append(f"{whole_percent(*s.cached)} of the input cached")
    parts.append(money(s.cost))
    if s.doubted:
        parts.append(f"{plural(s.doubted, 'doubtful report')}")
    newest = max((r for r in records if r.active and r.compacts), key=lambda r: r.created, default=None)
    if s.compactions:
        change = f" ({size})" if newest is not None and (size := sizes_text(newest)) else ""
        change += f", {s.taken_back:,} undone" if s.taken_back else ""
        parts.append(f"{plural(s.compactions, 'compaction')}{change}")
    elif s.taken_back:
        parts.append(f"{plural(s.taken_back, 'compaction')}, undone")
    return " · ".join(parts)


def proof_line(usage: ContextUsage, trigger: int, sound: bool) -> tuple[str, bool]:
    """The identities with their numbers, and whether they hold. ``sound``: every level of the rows adds up."""
    rows = sum(row.tokens for row in usage.rows)
    holds = rows == usage.total == trigger and sound
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
    return f"{text} {'✓' if holds else '✗'}", holds


def report_text(report: ContextReport, course: Sequence[str] = ()) -> str:
    """All numbers of the context screen as plain text; ``course`` says how the session came there."""
    usage, shares = report.usage, report.shares
    lines = [report.in_words(), *course, report.facts(), *report.changes(), ""]
    lines.append(f"{'':<44} {'tokens':>12} {'of window':>10}")
    for row in sorted(report.rows(), key=lambda row: -row.row.tokens):
        if shown(row.row):
            lines += _lines(row)
    if shares is not None:
        mark = total_mark(usage)
        reserve = _numbers(RESERVE.label, 0, "", usage.reserve or 0, shares.reserve)
        if usage.over:
            lines += [reserve, _numbers("Over the limit", 0, mark, -usage.over, -shares.over)]
        else:
            lines += [_numbers(FREE.label, 0, mark, usage.free or 0, shares.free), reserve]
    return "\n".join([*lines, "", *(f"{entry.name:<12} {entry.text}" for entry in entries(report))])


def _lines(part: ReportRow) -> Iterator[str]:
    row, depth = part.row, part.depth
    numbers = _numbers(one_line(row.label, 200), depth, part.mark, row.tokens, part.tenths)
    yield f"{numbers}  {', '.join(row_notes(row))}"
    below = part.below()
    for child in below[-CHILDREN_SHOWN:]:
        yield from _lines(child)
    if earlier := below[:-CHILDREN_SHOWN]:
        rest = None if part.tenths is None else sum(child.tenths or 0 for child in earlier)
        mark = "~" if any(child.mark for child in earlier) else ""
        count = sum(child.row.tokens for child in earlier)
        yield _numbers(f"{len(earlier):,} earlier", depth + 1, mark, count, rest)


def _numbers(label: str, depth: int, mark: str, count: int, tenths: int | None) -> str:
    return f"{cut('  ' * depth + label, 44):<44} {mark + grouped(count):>12} {share(tenths, bool(count)):>10}"
