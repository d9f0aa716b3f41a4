"""The line that is typed: what a terminal that knows letters, backspace and line feed shows of it."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from agent_tui.plain.line import InputRow, LineEditor, meaning_of
from tests.support.every import every
from tests.support.forms import examples

pytestmark = pytest.mark.quick


class Paper:
    """A terminal that can do nothing but letters, \\b and \\n; a letter in two cells is followed by an empty one."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[list[str]] = [[]]
        self.at = 0

    def take(self, text: str) -> None:
        for letter in text:
            row = self.rows[-1]
            if letter == "\n":
                self.rows.append([])
                self.at = 0
            elif letter == "\b":
                assert self.at > 0, "before the first cell"
                self.at -= 1
            else:
                size = cell_len(letter)
                assert letter.isprintable() and size
                row += [" "] * (self.at + size - len(row))
                row[self.at : self.at + size] = [letter, *[""] * (size - 1)]
                self.at += size
                assert self.at < self.width, "in the last cell"

    @property
    def shown(self) -> str:
        return "".join(self.rows[-1]).rstrip(" ")


NAMES = ["left", "right", "up", "down", "home", "end", "back", "delete", "undo", "paste", "swap", "search", "cancel"]
NAMES += ["word left", "word right", "word back", "word delete", "cut left", "cut right"]
PRESSED = st.one_of(st.text("ab cé漢\u3000\u00a0\u200d\u202e", min_size=1, max_size=30), st.sampled_from(NAMES))


def press(line: LineEditor, key: str) -> None:
    """A key, or letters."""
    if key in NAMES:
        line.press(key)
    else:
        line.insert(key)


@settings(max_examples=examples(120, 3_000), deadline=None)
@given(
    st.lists(PRESSED, max_size=40), st.sampled_from([18, 24, 60]), st.sampled_from(["", "You: ", "Answer, 1 to 5: "])
)
def test_what_stands_on_the_paper_is_the_line(keys: list[str], width: int, prompt: str) -> None:
    out, paper, line = (
        io.StringIO(),
        Paper(width),
        LineEditor(["an earlier line", "one that is longer than a row of the paper"]),
    )
    row = InputRow(out, lambda: width)
    for key in ["", *keys]:
        press(line, key)
        out.seek(out.truncate(0))
        row.show(prompt, line.text, line.at)
        paper.take(out.getvalue())
        lead = "".join(paper.rows[-1][: paper.at])
        assert seen(prompt + line.text[: line.at]).endswith(lead.removeprefix(prompt)), "the cursor is where letters go"
        assert seen(prompt + line.text).find(paper.shown) >= 0 or not paper.shown
    row.leave(prompt, line.text)
    out.seek(out.truncate(0))
    row.show(prompt, line.text, len(line.text))
    below = Paper(width)
    below.take(out.getvalue())
    joined = "".join("".join(r) for r in below.rows)
    assert re.sub(r"\s", "", joined) == re.sub(r"\s", "", seen(prompt + line.text))


def seen(text: str) -> str:
    """The text with a blank for all that cannot be seen."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


@every(
    ("sequence", "meaning"),
    [
        ("\x03", ("", "interrupt")),
        ("\x1b[99;5u", ("", "interrupt")),
        ("\x1b[100;5u", ("", "leave")),
        ("\x1b[13u", ("", "enter")),
        ("\x1b[127u", ("", "back")),
        ("\x1b[9u", ("", "tab")),
        ("\x1b[98;3u", ("", "word left")),
        ("\x1b[1;5D", ("", "word left")),
        ("\x1bb", ("", "word left")),
        ("\x1b[3~", ("", "delete")),
        ("\x1bOH", ("", "home")),
        ("\x1b[97;1;97u", ("a", "")),
        ("\x1b[0;1;28450:233u", ("漢é", "")),
        ("\x1b[57441u", ("", "")),
        ("\x1b[1089;5u", ("", "")),
        ("\x1b[200z", ("", "")),
    ],
)
def test_a_key_writes_or_has_a_name(sequence: str, meaning: tuple[str, str]) -> None:
    assert meaning_of(sequence) == meaning


@every(
    ("pressed", "text"),
    [
        (["one two", "word back"], "one "),
        (["one two", "cut left", "x", "paste"], "xone two"),
        (["one two", "home", "cut right", "paste", "paste"], "one twoone two"),
        (["ab", "swap"], "ba"),
        (["ab", "left", "delete", "undo"], "ab"),
        (["mine", "up", "up", "down", "down"], "mine"),
        (["up"], "the newest\nof two rows"),
        (["mine", "up", "!", "up", "?", "down"], "the newest\nof two rows!"),
        (["mine", "up", "!", "up", "?", "down", "down"], "mine"),
        (["mine", "up", "!", "down", "+", "up", "up", "down", "down"], "mine+"),
        (["search", "old"], "the oldest"),
        (["mine", "search", "old", "cancel"], "mine"),
        (["search", "e", "search", "end", "!"], "the oldest!"),
        (["e\u0301x", "left", "left", "delete"], "x"),
        (["up", "home", "word right", "word right", "delete"], "the newestof two rows"),
        (["up", "word left", "word left", "word left", "back"], "the newestof two rows"),
    ],
)
def test_keys_do_what_they_do_in_a_shell(pressed: list[str], text: str) -> None:
    line = LineEditor(["the oldest", "the newest\nof two rows"])
    for key in pressed:
        press(line, key)
    assert line.text == text
