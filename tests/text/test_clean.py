"""Text of others: what each way of cleaning keeps and what it never lets through."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.text import clean
from agent_tui.text.cells import fit, shorten

pytestmark = pytest.mark.quick

HOSTILE = st.text(st.sampled_from("a b\n\t\r\x1b[]31m\x07\x00\x9b\x7f\x85\u2028\u202e\u2066\u200f\ufeff\ud800é漢"))
ANY = st.one_of(HOSTILE, st.text())


def acts(text: str) -> list[str]:
    return [c for c in text if (unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t") or c in "\u202e\u2066"]


@given(ANY)
def test_nothing_shown_can_act_on_a_terminal(text: str) -> None:
    for shown in (
        clean.clean(text),
        clean.one_line(text),
        clean.clean_line(text),
        clean.visible(text),
        clean.spelled(text),
        clean.plain(text, 100),
        clean.printable(text),
        clean.drawable(clean.newlines(text)),
        clean.drawable_output(text),
    ):
        assert acts(shown) == []


@given(ANY)
def test_what_stands_on_one_line_has_one(text: str) -> None:
    for line in (
        clean.one_line(text, 30),
        clean.clean_line(text),
        clean.printable_line(text, 30),
        clean.plain_line(text, 30),
        clean.pictured_line(text),
        clean.spelled(text, line=True),
    ):
        assert len(line.splitlines()) <= 1
    assert all(len(f(text, 30)) <= 30 for f in (clean.one_line, clean.printable_line, clean.plain_line))


@given(ANY)
def test_the_transcript_keeps_every_place_and_the_wire_every_sign(text: str) -> None:
    assert len(clean.drawable(text)) == len(text) == len(clean.pictured(text))
    sent = clean.encodable(text)
    sent.encode("utf-8")
    if not any(0xD800 <= ord(c) < 0xE000 for c in text):
        assert sent == text


def test_programs_output_is_what_a_terminal_would_have_left() -> None:
    assert clean.program_output("\x1b[31mred\x1b[0m\n10 %\r20 %\r\ndone") == "red\n20 %\ndone"
    assert clean.program_output("\x1b]0;title\x07text") == "text"


def test_a_name_with_a_line_break_does_not_look_like_two() -> None:
    assert clean.clean_line("a\nb") == clean.pictured_line("a\nb") == "a␊b"


@given(ANY, st.integers(2, 40))
def test_cut_text_says_so(text: str, limit: int) -> None:
    short = clean.cut(text, limit)
    assert len(short) <= limit
    assert short == text if len(text) <= limit else short.endswith("…")


@given(st.text("a漢é ", max_size=30), st.integers(1, 20))
def test_cells_are_filled_exactly(text: str, width: int) -> None:
    from rich.cells import cell_len

    assert cell_len(fit(text, width)) == cell_len(fit(text, width, right=True)) == width
    assert cell_len(shorten(text, width)) <= width
