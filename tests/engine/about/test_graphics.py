"""How pictures are shown in which terminal, and what is said where it could be better."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_tui.engine.graphics import QUESTION, REPLY, Graphics, Replies, Way, graphics
from agent_tui.engine.tmux import ask_tmux
from tests.support.every import every
from tests.support.starting import use_programs_in

pytestmark = pytest.mark.quick

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
        pytest.param(KITTY, "\x1b_Gi=31;OK\x1b\\\x1b[?62;c", "inline", id="kitty 0.28"),
        pytest.param(KITTY, "\x1bP>|kitty(0.26)\x1b\\\x1b_Gi=31;ENO:no\x1b\\\x1b[?62;c", "blocks", id="kitty 0.26"),
        pytest.param({"TERM": "xterm-ghostty"}, "\x1b_Gi=31;OK\x1b\\\x1b[?62;22c", "inline", id="Ghostty"),
        # What was started from a terminal inherits its variables, and is another one.
        pytest.param({**XTERM, "KITTY_WINDOW_ID": "1"}, "\x1b[?64;1c", "blocks", id="started from kitty"),
    ],
)
def test_what_a_terminal_says_decides(environment: dict[str, str], text: str, way: Way) -> None:
    found = graphics("auto", environment, silent, answered(text))
    assert (found.way, found.question) == (way, "")


def test_only_kitty_and_ghostty_are_asked() -> None:
    """Konsole says yes to it and shows nothing, and others might print it."""
    for term in ("xterm-256color", "foot", "alacritty"):
        assert graphics("auto", {"TERM": term}, silent).question == ""
    assert graphics("auto", KITTY, silent).question == QUESTION


@every(
    "environment",
    [{"TERM": "linux"}, {"TERM": "dumb"}, {}, {"TERM": "screen.xterm-kitty", "STY": "1.pts"}, {"TERM": "screen"}],
)
def test_who_would_print_a_question_is_asked_nothing(environment: dict[str, str]) -> None:
    found = graphics("auto", environment, silent)
    assert (found.way, found.question) == ("blocks", "")


def test_the_setting_wins() -> None:
    assert graphics("off", KITTY, silent) == Graphics("line", 'a line in the conversation: [ui] images = "off"')
    assert graphics("auto", {**KITTY, "NO_COLOR": "1"}, silent).way == "line"
    assert graphics("kitty", XTERM, silent).way == "inline"


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
    assert graphics("kitty", TMUX, lambda: "xterm-256color|XTerm(379)|on|256").way == "inline"
    found = graphics("kitty", TMUX, lambda: "xterm-256color|XTerm(379)|off|256")
    assert found.way == "blocks" and "allow-passthrough" in found.detail


@every("acting", ["\x9b31m", "\n", "\x00", "\u202e", "\u200b"])
def test_what_a_terminal_calls_itself_is_harmless_words(acting: str) -> None:
    named = f"My{acting}Term"
    by_answer = graphics("auto", KITTY, silent, answered(f"\x1bP>|{named}\x1b\\\x1b[?64;1c"))
    by_tmux = graphics("auto", TMUX, lambda: f"xterm|{named} 3.5|on|RGB")
    by_variable = graphics("auto", {**XTERM, "TERM_PROGRAM": f"{named}.app"}, silent)
    for found in (by_answer, by_tmux, by_variable):
        assert found.detail.isprintable() and "Term" in found.detail


def test_all_that_tmux_knows_of_a_terminal_is_looked_at() -> None:
    features = "256,bpaste,ccolour,clipboard,cstyle,extkeys,focus,hyperlinks,ignorefkeys,margins,mouse,osc7,RGB"
    assert not graphics("kitty", TMUX, lambda: f"xterm-kitty|kitty(0.40.0)|on|{features}").few_colors


@pytest.mark.skipif(os.name != "posix", reason="needs a script")
def test_tmux_leaves_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tmux"
    program.write_text(f"#!/bin/sh\necho said $*\necho $$ $* >> {tmp_path}/asked\n")
    program.chmod(0o755)
    use_programs_in(monkeypatch, tmp_path)
    assert ask_tmux("show", "this") == "said show this"
    asked = [line.partition(" ") for line in (tmp_path / "asked").read_text().splitlines()]
    assert [words for _, _, words in asked] == ["show this"]
    for child, _, _ in asked:
        with pytest.raises(ChildProcessError):
            os.waitpid(int(child), os.WNOHANG)
