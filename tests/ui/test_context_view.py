"""The context screen at the sizes people have: enough rows, every word whole, the bookkeeping where there is room."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.color import Color

from agent_tui.commands.report import ContextReport
from agent_tui.models.context import Accuracy, Calculation, ContextUsage
from agent_tui.models.rows import DRAWN_ROWS, FIXED_ROWS, MESSAGE_ROWS
from agent_tui.models.usage import Prices
from agent_tui.ui.screens.context_head import LEAST, fitting, headline, in_lines
from agent_tui.ui.screens.context_lines import RowLine
from agent_tui.ui.screens.context_rows import Columns, columns, headings
from agent_tui.ui.screens.context_view import TALL, ContextView, Words
from agent_tui.ui.theme import load_themes
from tests.support.app import shown
from tests.support.every import every
from tests.support.usages import sample_usage

SIZES = [(60, 20), (80, 24), (120, 40), (200, 50)]
REASON = "not resent: left out earlier, and resending it would rewrite the provider's cache"
EDITED = "edited; the old text and the change are sent until the next compaction"
THEMES = load_themes(Path("/nonexistent")).themes


class Alone(App[None]):
    """The view without the application around it: it needs nothing else."""

    def __init__(self, moment: ContextReport, theme: str = "agent-dark") -> None:
        super().__init__()
        self.view = ContextView(moment)
        for known in THEMES.values():
            self.register_theme(known)
        self.theme = theme

    def compose(self) -> ComposeResult:
        yield self.view


def telling() -> ContextUsage:
    """A usage with all there is to say about it, in its longest words."""
    usage = sample_usage()
    usage.rows[2].detail = EDITED
    usage.rows[-1].children[4].replay = REASON
    usage.calculation = Calculation(1_182_000, 112_100, 11_000, 12_345, -4_321, 98_765, output_estimated=True)
    usage.accuracy = Accuracy(-12_345, -12.3, 2.1, 1_234, 1.02, 4_567)
    usage.why = "Does not compact: the next input of 84,200 is 83,800 below the limit of 168,000. And more."
    return usage


@dataclass
class Drawn:
    """What stood on the screen: its text, its rows and columns, and where the bookkeeping was."""

    text: str
    rows: list[RowLine]
    columns: Columns
    place: str


async def drawn(moment: ContextReport, size: tuple[int, int], theme: str = "agent-dark") -> Drawn:
    app = Alone(moment, theme)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.view.rebuild()
        await pilot.pause()
        words, rows = app.view.query_one(Words), app.view.rows.region
        place = "below" if words.region.y >= rows.bottom else "over"
        place = f"{place}, whole" if words.has_class("-below") else place
        return Drawn(shown(app), app.view.rows.shown, app.view.rows.columns, place if words.display else "")


def breakdown(screen: str) -> list[str]:
    return [line for line in screen.splitlines() if "■" in line]


@pytest.mark.forms(1)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("changed", [False, True], ids=["live", "step"])
async def test_enough_rows_are_seen_and_no_word_is_cut(size: tuple[int, int], changed: bool) -> None:
    prices = Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6)
    moment = ContextReport(telling(), prices=prices, read_only="This session is open elsewhere.")
    moment.usage.held = "automatic compaction is off"
    if changed:
        moment = replace(moment, before=sample_usage(), title="Step 12 of 40 · 3 min ago · Esc: live again")
    seen = await drawn(moment, size)
    assert "…" not in seen.text and len(breakdown(seen.text)) >= 8
    read = " ".join(" ".join(line.split()) for line in seen.text.split("\n"))
    for said in headline(moment):
        if said.swatch and size[0] < 100:
            continue  # Where there is no room for it, the rows below say it.
        assert said.text.replace("  ", " ") in read
    assert not changed or moment.title in read
    assert "session $0.42" in read or "Session" in read
    assert seen.place == ("below, whole" if size[1] >= TALL else "below")


@pytest.mark.forms(1)
@pytest.mark.parametrize("size", [(80, 30), (119, 40), (100, 60)])
async def test_the_bookkeeping_stands_below_where_it_is_high_enough(size: tuple[int, int]) -> None:
    seen = await drawn(ContextReport(sample_usage()), size)
    assert seen.place == "below, whole"


@pytest.mark.forms(1)
@pytest.mark.parametrize("size", SIZES)
async def test_reasons_are_wrapped_and_not_cut(size: tuple[int, int]) -> None:
    seen = await drawn(ContextReport(telling()), size)
    lines = seen.rows
    for text, label in ((EDITED, "Memory (2)"), (REASON, "Reasoning")):
        place = next(i for i, line in enumerate(lines) if line.label == label)
        notes = [line.label for line in lines[place + 1 :]]
        wanted, told = text, ""
        while notes and told != wanted and wanted.startswith(told):
            told = f"{told} {notes.pop(0)}".strip()
        if told != wanted:
            assert len(text) <= seen.columns.note - 2, "it stands at the end of its line"


@pytest.mark.quick
async def test_what_was_said_is_whole_however_long_it_is() -> None:
    app = Alone(ContextReport(sample_usage()))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        app.view.say("Cannot write into " + "/a-long-folder" * 9 + ": there is no room left on the device")
        await pilot.pause()
        screen = "".join(line.strip() for line in shown(app).splitlines()[-5:])
        assert "/a-long-folder" * 9 in screen.replace("\n", "") and "no room left on the device" in screen
        app.view.rows.move_to(3)
        await pilot.pause()
        assert "Esc close" in shown(app)


@pytest.mark.forms(1)
@pytest.mark.parametrize("size", [(20, 5), (1, 1), (40, 9), (120, 12)])
async def test_small_screens_still_show_rows(size: tuple[int, int]) -> None:
    seen = await drawn(ContextReport(telling()), size)
    assert size == (1, 1) or "Mess" in seen.text


@given(st.integers(10, 240), st.booleans(), st.booleans())
@pytest.mark.quick
def test_columns_fill_the_width_and_no_more(width: int, compared: bool, shares: bool) -> None:
    cells = columns(width, compared, shares)
    assert cells.label >= 10 and len(headings(cells)) <= max(width, 20)
    unread = headings(cells, read=False)
    assert "last request" not in unread and headings(cells).replace("last request", " " * 12).rstrip() == unread
    if width >= 58:
        assert compared == bool(cells.change) and shares == bool(cells.share)


@given(st.text(alphabet="ab 日· .,", max_size=300), st.integers(1, 90))
@pytest.mark.quick
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    lines = in_lines(text, width)
    assert all(cell_len(line) <= max(width, LEAST) for line in lines)
    assert "".join("".join(lines).replace("·", "").split()) == "".join(text.replace("·", "").split())


@pytest.mark.quick
@every("name", sorted(THEMES))
def test_what_fills_the_window_is_told_apart_in_every_theme(name: str) -> None:
    theme = THEMES[name]
    kinds = [k for k in DRAWN_ROWS if k.id in ("messages", "tool_results", "reasoning", "tools", "free", "reserve")]
    colors = [theme.variables[kind.variable] for kind in kinds]
    assert len(set(colors)) == len(colors)
    if not theme.ansi:
        parsed = [Color.parse(color).rgb for color in colors]
        for i, one in enumerate(parsed):
            for two in parsed[i + 1 :]:
                assert sum(abs(a - b) for a, b in zip(one, two, strict=True)) > 60, (name, one, two)


async def test_sixteen_colours_are_told_apart_by_their_pattern_too() -> None:
    seen = await drawn(ContextReport(sample_usage()), (80, 24), "ansi")
    bar = next(line for line in seen.text.splitlines() if "┊" in line)
    patterns = {MESSAGE_ROWS["tool_results"].pattern, MESSAGE_ROWS["reasoning"].pattern, FIXED_ROWS["tools"].pattern}
    assert patterns <= set(bar) and len(set(bar.strip())) >= 8


@pytest.mark.quick
def test_what_is_not_drawn_by_itself_has_the_colour_of_the_messages() -> None:
    kinds: list[Any] = [kind for kind in MESSAGE_ROWS.values() if kind.drawn]
    assert {kind.variable for kind in kinds} == {"context-messages"}


@pytest.mark.quick
def test_what_does_not_fit_is_said_shorter_or_not_at_all_and_never_cut() -> None:
    cold = "next input: expected uncached (idle for 6 min 2 s, and what was kept is gone): ~$1.51 instead of ~$0.15"
    text = f"demo · 11.0 % of the window · {cold} · derived"
    assert fitting(text, 9, 58) == in_lines(text, 58)
    short = "next input: expected uncached: ~$1.51 instead of ~$0.15"
    assert fitting(text, 2, 58) == ["demo · 11.0 % of the window", short]
    assert fitting(text, 1, 58) == ["demo · 11.0 % of the window · derived"]
    assert fitting(text, 0, 58) == []
