"""What is written to the terminal for one frame: what moved is moved, what stays is left alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from agent_tui.ui.screen_buffer import ScreenBuffer, can_scroll_regions
from tests.support.every import every
from tests.support.forms import examples
from tests.support.screen_model import ScreenModel
from tests.ui.drawn import NO_WRAP

pytestmark = pytest.mark.quick

TEXTS = st.sampled_from(["", "a", "bb", "ccc", "dddd", "漢", "\x1b[1me\x1b[0m", "f" * 12, "g" * 12, "h" * 12])
WIDTH = 14


@st.composite
def screens(draw: st.DrawFn) -> list[dict[int, str]]:
    """Rows of one or two parts; the next screen is often the last one, moved."""
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        text = draw(TEXTS)
        size = cell_len(re.sub(r"\x1b\[\d*m", "", text))
        cut = draw(st.sampled_from([WIDTH, WIDTH - 1]))
        rows.append({0: text + " " * (cut - size)} | ({cut: draw(st.sampled_from("│█"))} if cut < WIDTH else {}))
    return rows


def drawn(buffer: ScreenBuffer, changes: dict[int, dict[int, str]], whole: dict[int, bool]) -> str:
    """What is sent for a frame, which it is."""
    frame = buffer.frame(changes, whole)
    buffer.sent(frame)
    return frame.text


def shown(rows: list[dict[int, str]]) -> ScreenModel:
    model = ScreenModel(WIDTH, len(rows))
    model.feed(NO_WRAP)
    for y, row in enumerate(rows):
        model.feed("".join(f"\x1b[{y + 1};{x + 1}H{text}" for x, text in row.items()))
    return model


@settings(max_examples=examples(80, 300), deadline=None)
@given(screens(), st.lists(st.tuples(st.integers(-5, 5), screens()), max_size=6), st.booleans())
def test_any_rows_become_any_others(
    first: list[dict[int, str]], later: list[tuple[int, list[dict[int, str]]]], regions: bool
) -> None:
    """Moved by some rows, with some of the rows of another screen, what stays left out."""
    height = len(first)
    buffer, model = ScreenBuffer(regions), ScreenModel(WIDTH, height)
    model.feed(NO_WRAP)
    buffer.fit(WIDTH, height)
    rows = first
    model.feed(drawn(buffer, dict(enumerate(rows)), dict.fromkeys(range(height), True)))
    assert model.rows == shown(rows).rows
    for by, other in later:
        moved = [rows[y + by] if 0 <= y + by < height else other[y % len(other)] for y in range(height)]
        changes = {y: row for y, row in enumerate(moved) if row != rows[y]}
        whole = {y: list(row) != list(rows[y]) for y, row in changes.items()}
        parts = {
            y: row if whole[y] else {x: text for x, text in row.items() if text != rows[y][x]}
            for y, row in changes.items()
        }
        rows = moved
        model.feed(drawn(buffer, parts, whole))
        assert model.rows == shown(rows).rows
        assert regions or not model.moves
    assert drawn(buffer, dict(enumerate(rows)), dict.fromkeys(range(height), True)) == ""


def lines(first: int, height: int = 10) -> dict[int, dict[int, str]]:
    return {y: {0: f"line {first + y}, which is as long as the screen is wide", 50: "│"} for y in range(height)}


@every("by", [1, 3, -1, -2])
def test_what_only_moved_is_moved(by: int) -> None:
    buffer, whole = ScreenBuffer(True), dict.fromkeys(range(10), True)
    buffer.fit(51, 10)
    drawn(buffer, lines(100), whole)
    sent = drawn(buffer, lines(100 + by), whole)
    assert sent.count("line") == abs(by)
    drawn(buffer, lines(100), whole)
    without = ScreenBuffer(False)
    without.fit(51, 10)
    drawn(without, lines(100), whole)
    assert drawn(without, lines(100 + by), whole).count("line") == 10


def test_a_terminal_without_scroll_regions_is_known() -> None:
    assert can_scroll_regions("xterm-256color") and can_scroll_regions("linux") and can_scroll_regions("screen")
    assert not can_scroll_regions("dumb") and not can_scroll_regions("")
