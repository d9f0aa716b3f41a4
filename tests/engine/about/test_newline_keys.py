"""What is told of the keys for a new line, terminal by terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_tui.engine.newline_keys import BY_PROGRAM, BY_TERM, BY_VARIABLE, new_line_keys
from tests.support.every import every

pytestmark = pytest.mark.quick


@every(
    "environment",
    [
        {},
        {"TERM": "xterm-256color"},
        {"TERM": "screen-256color", "STY": "1.a"},
        {"TMUX": "/tmp/x,1,0"},
        *({"TERM_PROGRAM": name} for name in BY_PROGRAM),
        *({"TERM": name} for name in BY_TERM),
        *({name: "1"} for name in BY_VARIABLE),
    ],
)
def test_what_works_everywhere_is_told_everywhere(environment: dict[str, str]) -> None:
    first, *more = new_line_keys(environment, lambda _: "")
    assert first[0] == "new line" and first[1].startswith("Ctrl+J, and \\ before Enter")
    for key in ("Shift+Enter", "Alt+Enter"):
        assert (key in first[1]) is not any(key in what for what, _ in more)
    assert all("\n" not in detail and len(detail) < LONGEST for _, detail in (first, *more))


@every(
    ("environment", "shift", "alt"),
    [
        ({"TERM": "xterm-kitty"}, True, True),
        ({"TERM": "foot-extra"}, True, True),
        ({"TERM_PROGRAM": "WezTerm", "TERM": "xterm-256color"}, False, False),
        ({"TERM_PROGRAM": "Apple_Terminal", "TERM": "xterm-256color"}, False, False),
        ({"WT_SESSION": "x", "TERM": "xterm-256color"}, False, False),
        ({"LC_TERMINAL": "iTerm2", "TERM": "xterm-256color"}, True, False),
        ({"XTERM_VERSION": "XTerm(379)", "TERM": "xterm"}, True, True),
        ({"TERM": "screen.xterm-256color"}, False, True),
    ],
)
def test_what_needs_a_setting_is_told_with_it(environment: dict[str, str], shift: bool, alt: bool) -> None:
    works = new_line_keys(environment)[0][1]
    assert ("Shift+Enter" in works) is shift
    assert ("Alt+Enter" in works) is alt


LONGEST = 160
"""Characters that ``/doctor`` shows."""


def options(**given: str) -> Callable[[str], str]:
    return lambda name: given.get(name.replace("-", "_"), "")


def test_tmux_is_asked_for_its_settings() -> None:
    inside = {"TMUX": "/tmp/x,1,0", "TERM_PROGRAM": "tmux"}

    def shift(**given: str) -> str:
        return dict(new_line_keys(inside, options(**given)))["  Shift+Enter"]

    off = shift(extended_keys="off", terminal_features="xterm*:clipboard")
    assert "set -s extended-keys on and set -as terminal-features '*:extkeys'" in off
    half = shift(extended_keys="on", terminal_features="xterm*:clipboard")
    assert "set -s" not in half and "extkeys" in half
    assert ".tmux.conf" not in shift(extended_keys="on", client_termfeatures="extkeys")
    assert "3.2 or newer" in shift()
