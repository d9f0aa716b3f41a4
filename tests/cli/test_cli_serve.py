"""``agent-tui serve`` before a page is opened: what it prints, and what it refuses in one line."""

from __future__ import annotations

import re
import signal
import socket

import pytest

from agent_tui.cli import serve
from tests.support.cli import Cli
from tests.support.forms import one_of

pytest.importorskip("textual_serve", reason="needs the serve extra")


@pytest.mark.quick
def test_without_the_extra_it_says_how_to_get_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == "textual_serve" else object())
    outcome = cli.run("serve")
    assert outcome.code == 1
    assert outcome.error == "agent-tui: agent-tui serve needs the textual-serve package: pip install 'textual-serve<2'."


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--nonsense",), "unrecognized arguments: --nonsense"),
        (("-p", "hello"), "does not take -p"),
        (("--output-format", "json"), "--output-format needs -p"),
        (("--port", "99999"), "a number from 0 to 65535"),
        (("-C", "gone"), "--cd gone: no such folder"),
    ],
)
def test_wrong_flags_are_said_before_anything_is_served(cli: Cli, flags: tuple[str, ...], words: str) -> None:
    outcome = cli.run("serve", *flags)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err


@pytest.mark.slow
def test_a_port_that_is_taken_is_one_line(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with cli.start("serve", "--port", str(taken.getsockname()[1])) as process:
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out, len(err.splitlines())) == (1, "", 1)
    assert "cannot listen on 127.0.0.1" in err


@pytest.mark.quick
@pytest.mark.parametrize(
    ("host", "address"),
    one_of(
        [
            (("--host", "0.0.0.0"), r"http://0\.0\.0\.0:\d+/[\w-]{43}/"),
            ((), r"http://127\.0\.0\.1:\d+/[\w-]{43}/"),
        ]
    ),
)
def test_it_prints_the_address_and_ends_when_it_is_told_to(cli: Cli, host: tuple[str, ...], address: str) -> None:
    with cli.start("serve", *host, "-m", "demo") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert re.fullmatch(address + "\n", line) and out == ""
    assert process.returncode == 0
    assert ("WARNING" in err and "run commands on this machine as you" in err) is bool(host)
