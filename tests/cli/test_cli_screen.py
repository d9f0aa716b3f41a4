"""The chat in a terminal of its own: what is wrong leaves the screen and is said in one line."""

from __future__ import annotations

import os
import re
import sys

import pytest

from tests.support.cli import Cli
from tests.support.forms import one_of

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")

_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<>=]*[a-zA-Z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[()=>78A-Z])")


def on_a_terminal(cli: Cli, *arguments: str) -> tuple[int, str]:
    """Exit code of the chat, and what stands below the screen it has left."""
    master, slave = pty.openpty()
    cli.env["TERM"] = "xterm-256color"
    process = cli.start(*arguments, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    shown = b""
    while True:
        try:
            data = os.read(master, 65_536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(master)
    after = shown.decode("utf-8", "replace").rpartition("\x1b[?1049l")[2]
    return process.wait(timeout=60), _SEQUENCE.sub("", after).strip()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "darwin", reason="a closed terminal is reported differently")
@pytest.mark.parametrize(
    ("config", "arguments", "code", "words"),
    one_of(
        [
            (
                "[context]\nauto_compat = true\n",
                (),
                2,
                "unknown key context.auto_compat; allowed here: agent_edits, auto_compact",
            ),
            ("[ui\n", (), 2, "not valid TOML"),
            ("", ("--resume", "ses_gone"), 2, "no such session: 'ses_gone'"),
            ("", ("-m", "gone"), 2, "Unknown model 'gone'"),
            ("", ("--add-dir", "gone"), 2, "--add-dir gone: no such folder"),
        ]
    ),
)
def test_what_is_wrong_is_said_after_the_screen_is_left(
    cli: Cli, config: str, arguments: tuple[str, ...], code: int, words: str
) -> None:
    cli.config(config)
    left, line = on_a_terminal(cli, *arguments)
    assert left == code
    assert words in line
    assert len(line.splitlines()) == 1
    assert line.startswith("agent-tui: ")
