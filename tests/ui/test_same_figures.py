"""The screen, the plain text, the JSON, the status line and /usage show the same figures for the same usage."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.commands.bookkeeping import report_text, session_line
from agent_tui.commands.info import Info
from agent_tui.commands.report import ContextReport, estimated, total_mark
from agent_tui.commands.report_json import context_json
from agent_tui.commands.usage import usage as usage_command
from agent_tui.context.accounting.spending import expected_call, priced_call
from agent_tui.models.context import ContextRow, ContextUsage, SessionTotals
from agent_tui.models.usage import Cost, Prices, TokenUsage
from agent_tui.text.numbers import grouped, money, share, tokens, whole_percent
from agent_tui.ui.screens.context_head import headline
from agent_tui.ui.screens.context_lines import flatten
from agent_tui.ui.screens.context_rows import row_cost
from agent_tui.ui.screens.context_screen import ContextScreen
from tests.support.app import running
from tests.support.every import every
from tests.support.fake_agent import FakeAgent
from tests.support.usages import row, sample_usage

TOP = ("system", "environment", "memory", "skills", "tools", "documents", "messages")
LINE = re.compile(
    r"(?P<label>row [\d.]+|Free|Reserve|Over the limit) +(?:[●◐○] +)?"
    r"(?P<tokens>~?−?[\d,]+)(?: +(?P<share><?−?[\d.]+ %))?"
)

Figures = dict[str, tuple[str, str]]
"""By label: the number and the share as they are shown; no share is empty."""


def random_usage(seed: int) -> ContextUsage:
    """Numbers that add up at every level, of any size; sometimes over the limit, sometimes without a window."""
    dice = random.Random(seed)

    def tree(name: str, label: str, depth: int) -> ContextRow:
        number = dice.choice((0, 0, 2, 3, 5)) if depth < 3 else 0
        children = [tree("message", f"{label}.{i}", depth + 1) for i in range(number)]
        size = sum(c.tokens for c in children) if children else dice.choice((1, 7, dice.randint(1, 60_000)))
        return row(name, size, label, children=children, basis=dice.choice(("derived", "estimated", "measured")))

    rows = [tree(name, f"row {i}", 0) for i, name in enumerate(TOP)]
    total = sum(r.tokens for r in rows)
    reserve = dice.randint(1, 32_000)
    limit = max(1, total + dice.choice((dice.randint(0, 200_000), -dice.randint(0, total // 2), 0)))
    known = seed % 5 != 0
    read = dice.randint(0, 900_000)
    return replace(
        sample_usage(),
        rows=rows,
        total=total,
        window=limit + reserve if known else None,
        limit=limit if known else None,
        reserve=reserve if known else None,
        free=max(0, limit - total) if known else None,
        over=max(0, total - limit) if known else None,
        session=SessionTotals(
            TokenUsage(900_000, 38_000, 9_000, read, 5),
            dice.choice((Cost(), Cost(0.00421), Cost(12.5), Cost(0.0087, 3), Cost(0.0, 2))),
            1,
            31,
        ),
    )


def keys(rows: list[ContextRow], start: str = "") -> Iterator[str]:
    """Names by which the screen opens every row."""
    met = Counter[str]()
    for r in rows:
        met[r.id] += 1
        key = f"{start}/{r.id}" if start else r.id
        key += f"#{met[r.id]}" if met[r.id] > 1 else ""
        yield key
        yield from keys(r.children, key)


def from_lines(text: str) -> Figures:
    return {m["label"]: (m["tokens"], m["share"] or "") for m in map(LINE.search, text.splitlines()) if m}


def from_rows(usage: ContextUsage) -> Figures:
    lines = flatten(usage, set(keys(usage.rows)))
    mark = total_mark(usage)
    found: Figures = {}
    for line in lines:
        rough = mark if line.row is None and line.kind != "reserve" else "~" if line.row and estimated(line.row) else ""
        found[line.label] = (f"{rough}{grouped(line.tokens or 0)}", share(line.tenths, bool(line.tokens)))
    return found


def from_json(usage: ContextUsage) -> Figures:
    data = json.loads(json.dumps(context_json(ContextReport(usage))))
    found: Figures = {}

    def walk(rows: list[dict[str, Any]]) -> None:
        for r in rows:
            part = "" if r["share"] is None else share(round(10 * r["share"]), bool(r["tokens"]))
            found[r["label"]] = (("~" if r["basis"] == "estimated" else "") + grouped(r["tokens"]), part)
            walk(r["children"])

    walk(data["rows"])
    if (shares := data["shares"]) is not None:
        rest = (("Free", "free", 1), ("Reserve", "reserve", 1), ("Over the limit", "over", -1))
        for label, name, sign in rest:
            if label == "Reserve" or (label == "Free") == (not data["over"]):
                mark = "~" if data["basis"] == "estimated" and label != "Reserve" else ""
                part = share(sign * round(10 * shares[name]), bool(data[name]))
                found[label] = (mark + grouped(sign * data[name]), part)
    return found


def total_share(usage: ContextUsage) -> str:
    """The share of the window that all of it takes, as it is printed."""
    found = re.search(r"(<?[\d.]+ %) of the window", ContextReport(usage).facts())
    assert found is not None
    return found[1]


def tenths(shown: str) -> int:
    return 0 if shown.startswith("<") else round(10 * float(shown.replace("−", "-").removesuffix(" %")))


@given(st.integers(0, 10**6))
def test_text_json_and_screen_agree(seed: int) -> None:
    usage = random_usage(seed)
    plain = from_lines(report_text(ContextReport(usage)))
    assert plain == from_json(usage) == from_rows(usage)

    def adds_up(parent: str, rows: list[ContextRow]) -> None:
        if rows:
            assert sum(tenths(plain[r.label][1]) for r in rows) == tenths(parent)
        for r in rows:
            adds_up(plain[r.label][1], r.children)

    if usage.window is None:
        assert {part for _, part in plain.values()} == {""}
    else:
        total = total_share(usage)
        adds_up(total, usage.rows)
        rest = [tenths(plain[label][1]) for label in ("Free", "Reserve", "Over the limit") if label in plain]
        assert tenths(total) + sum(rest) == 1_000


@given(st.integers(0, 10**6), st.integers(0, 1), st.sampled_from(["", "automatic compaction is off"]))
def test_the_first_line_says_what_the_rows_say(seed: int, flying: int, held: str) -> None:
    usage = replace(random_usage(seed), held=held, would_compact=not held)
    data = context_json(ContextReport(usage))
    first = report_text(ContextReport(usage)).splitlines()[0]
    assert first == ContextReport(usage).in_words()
    rough = usage.approximate
    assert first.startswith(f"{tokens(data['total'], rough)} ")
    if data["window"] is not None:
        assert f" of {tokens(data['window'], False)} used." in first
        room = tokens(data["free"], rough) if data["free"] else "At the limit:"
        where = f"{tokens(data['over'], rough)} over the limit:" if data["over"] else room
        assert where in first and (not held or held in first)
        assert ("Compaction in" in first) == (not held and data["free"] > 0)
    else:
        assert "unknown window" in first
    kinds = [r for r in data["rows"] if r["id"] != "messages" or not r["children"]]
    kinds += next(r["children"] for r in data["rows"] if r["id"] == "messages")
    most = max(kinds, key=lambda r: r["tokens"])
    if most["tokens"]:
        part = f"{whole_percent(most['tokens'], data['total'])} of what is used"
        if data["window"] is not None:
            part = f"{share(round(10 * most['share']), True)} of the window"
        assert f"{part}." in first
    in_flight = headline(ContextReport(usage, in_flight=700 * flying))[0].text
    assert tokens(data["total"] + 700 * flying, False) in in_flight


@every("read", [None, 0, 42_100, 84_200])
def test_what_is_expected_is_told_from_what_was(read: int | None) -> None:
    usage = replace(sample_usage(), expected_read=read)
    line = ContextReport(usage, prices=Prices(3e-6, 15e-6, 0.3e-6)).facts()
    said = dict(part.split(": ", 1) for part in line.split(" · ") if ": " in part)
    assert said["next input"].startswith("expected ~$")
    assert ("cached" in said["next input"]) == (read is not None) == ("last request" not in said)
    assert session_line(usage, []).count("cached") == 1


@given(st.integers(0, 10**6), st.floats(0, 1), st.sampled_from((None, 3.75e-6)))
def test_what_a_request_is_expected_to_cost_is_what_budgets_hold_back_for_it(
    seed: int, part: float, write: float | None
) -> None:
    prices = Prices(3e-6, 15e-6, 0.3e-6, write)
    usage = random_usage(seed)
    usage = replace(usage, expected_read=int(part * usage.total))
    call = expected_call(usage, prices, [], most=0)
    assert f"next input: expected ~{money(call.usd)}, " in ContextReport(usage, prices=prices).facts()
    costs = [row_cost(r, prices, usage.total) for r in usage.rows]
    whole = priced_call(replace(prices, cache_write=None), usage.total, 0, 0)
    assert sum(cost or 0.0 for cost in costs) == pytest.approx(whole.usd)


@pytest.mark.forms(1)
@pytest.mark.parametrize("seed", [1, 5, 7, 12])
async def test_what_is_drawn_is_what_is_printed(seed: int, tmp_path: Path) -> None:
    usage = random_usage(seed)
    printed = from_lines(report_text(ContextReport(usage)))
    async with running(tmp_path, FakeAgent(tmp_path, usage=usage), size=(120, len(printed) + 60)) as run:
        status = run.shown()
        run.app.open_screen("context")
        await run.screen(ContextScreen)
        screen = run.app.screen
        assert isinstance(screen, ContextScreen)
        screen.view.opened = set(keys(usage.rows))
        screen.view.rebuild()
        await run.until(lambda: from_lines(run.shown()) == printed)
        if usage.window is not None:
            total = total_share(usage)
            assert f"{total} of the window" in run.shown() and total in status


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
async def test_the_session_is_summed_up_alike(seed: int, tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, usage=random_usage(seed))
    answer = await usage_command(agent, "")
    assert isinstance(answer, Info)
    line = session_line(agent.usage, [])
    cost = line.split(" · ")[-2]
    cached = next(part for part in line.split(" · ") if part.endswith("cached")).removesuffix(" cached")
    assert cached.endswith(" of the input") and cost in answer.text and cached in answer.text
