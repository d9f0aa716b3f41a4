"""A light terminal gets the light theme: told by its answer to a question, or by a variable; and nobody types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.ui.first_frame import told_by_environment
from agent_tui.ui.terminal.answers import QUERY, hears_background, is_light
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.terminal import in_terminal

LIGHT_ANSWERS = (
    "\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
    "\x1b]11;rgb:fd/f6/e3\x07",
    "\x1b]11;rgba:ffff/fafa/f0f0/ffff\x1b\\",
)
DARK_ANSWER = "\x1b]11;rgb:0000/2b2b/3636\x07"


@every("answer", [*LIGHT_ANSWERS, DARK_ANSWER])
def test_an_answer_is_heard(answer: str) -> None:
    heard: list[bool] = []
    hears_background(heard.append)(answer)
    assert heard == [answer != DARK_ANSWER]


@every(
    "answer",
    ["\x1b]11;rgb:zz/zz/zz\x07", "\x1b]11;rgb:/\x07", "\x1b]11;rgb:12345/1/1\x07", "\x1b]11;?\x07", "\x1b[?1;2c"],
)
def test_an_answer_that_says_nothing_is_not(answer: str) -> None:
    hears_background(lambda light: pytest.fail("it says nothing"))(answer)


def test_light_is_what_is_bright_to_the_eye() -> None:
    assert is_light("0000/ffff/0000") and not is_light("0000/0000/ffff") and is_light("8/8/8") and not is_light("7/7/7")


@every(
    ("value", "light"),
    [("0;15", True), ("0;default;15", True), ("0;7", True), ("15;0", False), ("7;8", False), ("12;8", False)]
    + [(text, None) for text in ("", "default;default", "15", "x;99", "0;-1") if text != "15"],
)  # fmt: skip
def test_the_variable_tells_by_its_last_colour(value: str, light: bool | None) -> None:
    assert told_by_environment({"COLORFGBG": value}) == light


PAPER, INK = b"48;2;251;250;247", b"48;2;15;19;24"
"""The backgrounds of the light and the dark theme."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "variable", "background", "other"),
    one_of(
        [
            (LIGHT_ANSWERS[0], "", PAPER, None),
            (LIGHT_ANSWERS[1], "15;0", PAPER, None),
            (DARK_ANSWER, "", INK, PAPER),
            ("", "0;15", PAPER, INK),
            ("", "", INK, PAPER),
        ]
    ),
)
def test_the_terminal_is_believed(
    tmp_path: Path, answer: str, variable: str, background: bytes, other: bytes | None
) -> None:
    (tmp_path / "state").mkdir()
    environment = {"AGENT_TUI_HOME": str(tmp_path), "COLORTERM": "truecolor", "COLORFGBG": variable}
    with in_terminal(tmp_path, environment) as terminal:
        terminal.wait_for(QUERY.encode())
        if answer:
            terminal.type(answer.encode())
        terminal.wait_for(b"DEMO")
        terminal.type(b"xyz")
        terminal.wait_for(b"z")
        if background not in terminal.seen:
            terminal.wait_for(background)
        assert other is None or other not in terminal.seen
        assert b"rgb" not in terminal.seen.replace(QUERY.encode(), b"")
        terminal.type(b"\x15\x04")
        assert terminal.wait_for_end() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "label"), [(LIGHT_ANSWERS[0], b"35;49m DEMO"), (DARK_ANSWER, b"33;49m DEMO")])
def test_so_it_is_with_16_colours(tmp_path: Path, answer: str, label: bytes) -> None:
    environment = {"AGENT_TUI_HOME": str(tmp_path), "TERM": "xterm-16color", "COLORTERM": "", "COLORFGBG": ""}
    with in_terminal(tmp_path, environment) as terminal:
        terminal.wait_for(QUERY.encode())
        terminal.type(answer.encode())
        terminal.wait_for(label)
        terminal.type(b"\x04")
        assert terminal.wait_for_end() == 0


@pytest.mark.slow
def test_who_named_a_theme_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "theme").write_text("nord\n")
    with in_terminal(tmp_path, {"AGENT_TUI_HOME": str(tmp_path), "COLORFGBG": "0;15"}) as terminal:
        terminal.wait_for(b"DEMO")
        terminal.type(b"\x04")
        assert terminal.wait_for_end() == 0
        assert QUERY.encode() not in terminal.seen
