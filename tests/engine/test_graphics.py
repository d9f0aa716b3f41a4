"""Where pictures are shown, and what is said where they are not."""

from __future__ import annotations

import pytest

from agent_tui.engine.about.pictures import Graphics, graphics

KITTY = {"TERM": "xterm-kitty"}
TMUX = {"TERM": "tmux-256color", "TMUX": "/tmp/tmux-0/default,1,0"}


def silent() -> str:
    raise AssertionError("tmux was asked")


@pytest.mark.parametrize(
    ("environment", "shows"),
    [
        (KITTY, "ask"),
        ({"TERM": "xterm-ghostty"}, "ask"),
        ({"TERM": "xterm-256color"}, False),
        # A terminal that was started from kitty inherits this, and is none.
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, False),
        ({"TERM": "screen.xterm-kitty", "STY": "1.pts"}, False),
        ({**KITTY, "NO_COLOR": "1"}, False),
        ({}, False),
    ],
)
def test_only_terminals_that_are_known_to_have_placeholders_are_asked(
    environment: dict[str, str], shows: bool | str
) -> None:
    assert graphics("auto", environment, silent).shows == shows


def test_the_setting_wins() -> None:
    assert graphics("off", KITTY, silent).shows is False
    assert graphics("kitty", {"TERM": "xterm-256color"}, silent).shows is True


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("xterm-kitty|kitty(0.28.1)|on|256,RGB,title", Graphics(True, "shown, through tmux", in_tmux=True)),
        ("xterm-kitty|kitty(0.35.0)|1|RGB", Graphics(True, "shown, through tmux", in_tmux=True)),
        ("xterm-ghostty||all|256,RGB", Graphics(True, "shown, through tmux", in_tmux=True)),
        ("xterm-256color|ghostty 1.1.3|on|256", Graphics(True, "shown, through tmux", in_tmux=True, few_colors=True)),
    ],
)
def test_tmux_hands_them_on_where_it_may_and_the_terminal_around_it_can(answer: str, expected: Graphics) -> None:
    assert graphics("auto", TMUX, lambda: f"{answer}\n") == expected


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("xterm-kitty|kitty(0.28.1)|off|RGB", "set -g allow-passthrough on"),
        ("xterm-kitty|kitty(0.28.1)|0|RGB", "set -g allow-passthrough on"),
        ("xterm-kitty|kitty(0.28.1)||RGB", "from 3.3 on"),
        ("xterm-kitty|kitty(0.26.5)|on|RGB", '[ui] images = "kitty"'),
        ("xterm-kitty||on|RGB", '[ui] images = "kitty"'),
        ("xterm-256color|XTerm(379)|on|RGB", '[ui] images = "kitty"'),
        ("", "as one line"),
    ],
)
def test_where_tmux_does_not_it_is_said_what_to_set(answer: str, said: str) -> None:
    found = graphics("auto", TMUX, lambda: answer)
    assert found.shows is False and said in found.detail


def test_where_tmux_may_hand_on_the_setting_is_enough() -> None:
    assert graphics("kitty", TMUX, lambda: "xterm-256color|XTerm(379)|on|256").shows is True
    assert graphics("kitty", TMUX, lambda: "xterm-kitty|kitty(0.35.0)|off|RGB").shows is False
