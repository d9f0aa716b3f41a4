"""How pictures are shown in which terminal, and what is said where it could be better."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from agent_tui.config import Images
from agent_tui.engine.terminal import (
    ATTRIBUTES,
    DRAWS,
    LIMITS,
    NAME,
    PLACEHOLDERS,
    REPLY,
    Graphics,
    Replies,
    Way,
    ask_tmux,
    graphics,
    redraw_tmux,
)
from tests.support.every import every
from tests.support.starting import use_programs_in

KITTY = {"TERM": "xterm-kitty"}
XTERM = {"TERM": "xterm-256color"}
TMUX = {"TERM": "tmux-256color", "TMUX": "/tmp/tmux-0/default,1,0"}


def silent() -> str:
    raise AssertionError("tmux was asked")


def answered(text: str) -> Replies:
    replies = Replies()
    for reply in REPLY.finditer(text):
        replies.take(reply)
    return replies


@every(
    ("environment", "text", "way"),
    [
        pytest.param(KITTY, "\x1b_Gi=31;OK\x1b\\\x1b_Gi=32;OK\x1b\\\x1b[?62;c", "inline", id="kitty 0.28"),
        pytest.param(KITTY, "\x1bP>|kitty(0.26.5)\x1b\\\x1b_Gi=32;OK\x1b\\\x1b[?62;c", "kitty", id="kitty 0.26"),
        pytest.param({"TERM": "xterm-ghostty"}, "\x1b_Gi=31;OK\x1b\\\x1b[?62;22c", "inline", id="Ghostty"),
        pytest.param(XTERM, "\x1bP>|XTerm(379)\x1b\\\x1b[?64;1;2;6;22;28c", "blocks", id="xterm"),
        pytest.param(XTERM, "\x1bP>|XTerm(379)\x1b\\\x1b[?63;1;2;4;6;9;22c", "sixel", id="xterm as a VT340"),
        pytest.param(XTERM, "\x1b[6;19;10t\x1b[?63;1;2;3;4;6;7c", "sixel", id="mlterm"),
        pytest.param(XTERM, "\x1bP>|Konsole 22.12.3\x1b\\\x1b[?62;1;4c", "sixel", id="Konsole"),
        pytest.param(XTERM, "\x1bP>|WezTerm 20240203\x1b\\\x1b[?65;4;6;18;22c", "iterm2", id="WezTerm"),
        pytest.param(XTERM, "\x1bP>|iTerm2 3.5.0\x1b\\\x1b[?62;4c", "iterm2", id="iTerm2, over ssh"),
        pytest.param({**XTERM, "LC_TERMINAL": "iTerm2"}, "\x1b[?62;4c", "iterm2", id="an iTerm2 without a name"),
        # What was started from a terminal inherits its variables, and is another one.
        pytest.param({**XTERM, "LC_TERMINAL": "iTerm2"}, "\x1bP>|XTerm(379)\x1b\\\x1b[?64;1c", "blocks", id="in it"),
        pytest.param({**XTERM, "KITTY_WINDOW_ID": "1"}, "\x1b[?64;1c", "blocks", id="started from kitty"),
        pytest.param(XTERM, "\x1b[?4c", "blocks", id="a kind of terminal is no attribute"),
    ],
)
def test_what_a_terminal_says_decides(environment: dict[str, str], text: str, way: Way) -> None:
    found = graphics("auto", environment, silent, answered(text))
    assert found.way == way
    assert found.question == (LIMITS if way == "sixel" else "")
    assert graphics("auto", environment, silent, answered(text * 2)).question == ""


def test_only_kitty_is_asked_in_its_own_way() -> None:
    """Konsole says yes to it and shows nothing, and others might print it."""
    for term in ("xterm-256color", "foot", "alacritty"):
        question = graphics("auto", {"TERM": term}, silent).question
        assert ATTRIBUTES in question and NAME in question and PLACEHOLDERS not in question and DRAWS not in question
    assert PLACEHOLDERS in graphics("auto", KITTY, silent).question
    assert graphics("auto", {**XTERM, "TERM_PROGRAM": "Apple_Terminal"}, silent).question == ATTRIBUTES


@every(
    "environment",
    [{"TERM": "linux"}, {"TERM": "dumb"}, {}, {"TERM": "screen.xterm-kitty", "STY": "1.pts"}, {"TERM": "screen"}],
)
def test_who_would_print_a_question_is_asked_nothing(environment: dict[str, str]) -> None:
    found = graphics("auto", environment, silent)
    assert (found.way, found.question) == ("blocks", "")


def test_iterm2_is_known_before_it_answers() -> None:
    assert graphics("auto", {**XTERM, "TERM_PROGRAM": "iTerm.app", "LC_TERMINAL": "iTerm2"}, silent).way == "iterm2"
    assert graphics("auto", {**XTERM, "TERM_PROGRAM": "WezTerm"}, silent).way == "iterm2"


def test_the_setting_wins() -> None:
    assert graphics("off", KITTY, silent) == Graphics("line", 'a line in the conversation: [ui] images = "off"')
    assert graphics("auto", {**KITTY, "NO_COLOR": "1"}, silent).way == "line"
    wanted: tuple[tuple[Images, Way], ...] = (("kitty", "inline"), ("iterm2", "iterm2"), ("sixel", "sixel"))
    for setting, way in wanted:
        assert graphics(setting, XTERM, silent).way == way
        assert graphics(setting, XTERM, silent, answered("\x1b[?64;1c")).way == way


def test_what_sixels_may_be_is_believed_where_it_makes_sense() -> None:
    replies = answered("\x1b[6;18;9t\x1b[?1;0;1024S\x1b[?2;0;480;312S\x1b[?63;4c")
    assert (replies.cell, replies.colors, replies.largest) == ((9, 18), 1024, (480, 312))
    replies = answered("\x1b[6;0;900t\x1b[?1;3S\x1b[?2;3S\x1b[?2;0;0;0S\x1b[?1;0;1S\x1b[?1;3;0S")
    assert (replies.cell, replies.colors, replies.largest) == (None, None, None)


@every(
    ("answer", "expected"),
    [
        ("xterm-kitty|kitty(0.28.1)|on|256,RGB,title", (False,)),
        ("xterm-kitty|kitty(0.35.0)|1|RGB", (False,)),
        ("xterm-ghostty||all|256,RGB", (False,)),
        ("xterm-256color|ghostty 1.1.3|on|256", (True,)),
    ],
)
def test_tmux_hands_them_on_where_it_may_and_the_terminal_around_it_can(answer: str, expected: tuple[bool]) -> None:
    found = graphics("auto", TMUX, lambda: f"{answer}\n")
    assert (found.way, found.wrapped, found.few_colors) == ("inline", True, *expected)


def test_tmux_hands_on_iterm2s_protocol() -> None:
    found = graphics("auto", TMUX, lambda: "xterm-256color|iTerm2 3.5.0|on|256,RGB")
    assert (found.way, found.wrapped) == ("iterm2", True)
    found = graphics("auto", TMUX, lambda: "xterm-256color|iTerm2 3.5.0|off|256,RGB")
    assert found.way == "blocks" and "allow-passthrough" in found.detail


def test_tmux_draws_sixels_where_it_and_the_terminal_around_it_can() -> None:
    def around() -> str:
        return "xterm-256color|XTerm(379)|off|256,RGB,sixel,title"

    asked = graphics("auto", TMUX, around)
    assert (asked.way, asked.question) == ("blocks", ATTRIBUTES)
    found = graphics("auto", TMUX, around, answered("\x1b[?1;2;4c"))
    assert (found.way, found.wrapped, found.question) == ("sixel", False, LIMITS)
    assert graphics("auto", TMUX, around, answered("\x1b[?1;2c")).way == "blocks"
    # It says so of itself where the terminal around it cannot, and would draw a box of crosses.
    without = graphics("auto", TMUX, lambda: "xterm-256color|foo|on|256,RGB", answered("\x1b[?1;2;4c"))
    assert without.way == "blocks"


@every(
    ("answer", "said"),
    [
        ("xterm-kitty|kitty(0.28.1)|off|RGB", "set -g allow-passthrough on"),
        ("xterm-kitty|kitty(0.28.1)|0|RGB", "set -g allow-passthrough on"),
        ("xterm-kitty|kitty(0.28.1)||RGB", "from 3.3"),
        ("xterm-kitty|kitty(0.26.5)|on|RGB", "[ui] images"),
        ("xterm-kitty||on|RGB", "[ui] images"),
        ("xterm-256color|XTerm(379)|on|RGB", "[ui] images"),
        ("", "coarse blocks"),
    ],
)
def test_where_tmux_does_not_it_is_said_what_to_set(answer: str, said: str) -> None:
    found = graphics("auto", TMUX, lambda: answer)
    assert found.way == "blocks" and said in found.detail


def test_where_tmux_may_hand_on_the_setting_is_enough() -> None:
    wanted: tuple[tuple[Images, Way], ...] = (("kitty", "inline"), ("iterm2", "iterm2"), ("sixel", "sixel"))
    for setting, way in wanted:
        assert graphics(setting, TMUX, lambda: "xterm-256color|XTerm(379)|on|256").way == way
        found = graphics(setting, TMUX, lambda: "xterm-256color|XTerm(379)|off|256")
        assert found.way == "blocks" and "allow-passthrough" in found.detail


@every("acting", ["\x9b31m", "\n", "\x00", "\u202e", "\u200b"])
def test_what_a_terminal_calls_itself_is_harmless_words(acting: str) -> None:
    named = f"My{acting}Term"
    by_answer = graphics("auto", XTERM, silent, answered(f"\x1bP>|{named}\x1b\\\x1b[?64;1c"))
    by_tmux = graphics("auto", TMUX, lambda: f"xterm|iTerm2{acting} 3.5|on|RGB")
    by_variable = graphics("auto", {**XTERM, "TERM_PROGRAM": f"iTerm{acting}.app"}, silent)
    for found in (by_answer, by_tmux, by_variable):
        assert found.detail.isprintable() and "Term" in found.detail


def test_all_that_tmux_knows_of_a_terminal_is_looked_at() -> None:
    features = "256,bpaste,ccolour,clipboard,cstyle,extkeys,focus,hyperlinks,ignorefkeys,margins,mouse,osc7,RGB"
    assert not graphics("kitty", TMUX, lambda: f"xterm-kitty|kitty(0.40.0)|on|{features}").few_colors


@pytest.mark.skipif(os.name != "posix", reason="needs a script")
def test_tmux_is_waited_for_in_a_thread_and_leaves_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tmux"
    program.write_text(f"#!/bin/sh\necho said $*\necho $$ $* >> {tmp_path}/asked\n")
    program.chmod(0o755)
    use_programs_in(monkeypatch, tmp_path)
    assert ask_tmux("show", "this") == "said show this"
    redraw_tmux()
    for thread in threading.enumerate():
        if thread.name == "tmux":
            thread.join()
    asked = [line.partition(" ") for line in (tmp_path / "asked").read_text().splitlines()]
    assert [words for _, _, words in asked] == ["show this", "refresh-client"]
    for child, _, _ in asked:
        with pytest.raises(ChildProcessError):
            os.waitpid(int(child), os.WNOHANG)
