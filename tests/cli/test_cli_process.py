"""The program as a process: signals, pipes that close, streams that are missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.forms import one_of
from tests.support.loopback import Loopback, Reply, chat_events, sse
from tests.support.waiting import PATIENCE

RUN = ("-p", "hi", "-m", "demo")
SLOW = """
[[step]]
text = "Once upon a time there was a very long answer that does not end by itself."
chunk = 4
after = 20
hang = true
"""


@pytest.mark.quick
@pytest.mark.parametrize("number", one_of([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]))
def test_a_signal_while_streaming_ends_the_turn_with_valid_output(cli: Cli, number: signal.Signals) -> None:
    cli.script(SLOW)
    process = cli.start("-p", "tell", "-m", "demo", "--output-format", "stream-json")
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(json.loads(line))
        if lines[-1]["type"] == "text":
            process.send_signal(number)
            break
    rest, _ = process.communicate(timeout=60)
    lines += [json.loads(line) for line in rest.splitlines()]
    assert process.returncode == 130
    assert (lines[-1]["type"], lines[-1]["stop_reason"]) == ("end", "interrupted")
    (session,) = cli.run("sessions", "--json").json
    exported = cli.run("export", session["id"]).json
    assert exported["messages"][1]["status"] == "stopped"


@pytest.mark.parametrize("number", one_of([signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]))
def test_a_signal_before_anything_is_sent_is_an_interrupt_too(cli: Cli, number: signal.Signals) -> None:
    process = cli.start("-p", "tell", "-", "-m", "demo", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("x" * 300_000)  # more than a pipe holds: this returns once it is being read
    process.stdin.flush()
    process.send_signal(number)
    out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in errors


@pytest.mark.slow
def test_json_is_printed_when_interrupted(cli: Cli) -> None:
    with Loopback() as server:
        server.serve("/chat/completions", Reply(sse(chat_events(["Once"], finish=None, done=False)), hang=True))
        cli.config(f'[models.slow]\nmodel = "openai/x"\napi = "chat"\napi_base = "{server.url}"\n')
        cli.setenv("OPENAI_API_KEY", "k")
        process = cli.start("-p", "tell", "-m", "slow", "--output-format", "json")
        server.wait_for_requests(1, PATIENCE)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert json.loads(out)["stop_reason"] == "interrupted"


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_run(cli: Cli) -> None:
    cli.script('[[step]]\ntext = "%s"\nchunk = 40\n' % ("word " * 20_000))
    process = cli.start("-p", "tell", "-m", "demo", "--no-final")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


def test_a_list_nobody_reads_ends_quietly(cli: Cli) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = cli.start("completions", "bash", stdout=writer)
    os.close(writer)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (141, "")


def without(cli: Cli, streams: tuple[int, ...], *arguments: str) -> tuple[int, str]:
    def close() -> None:
        for number in streams:
            os.close(number)

    process = cli.start(*arguments, stdin=None, stdout=None, preexec_fn=close)
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors and "Exception ignored" not in errors
    return process.returncode, errors


@pytest.mark.slow
@pytest.mark.parametrize("arguments", one_of([(RUN,), (("--version",),), (("sessions",),)]))
def test_standard_input_may_be_missing(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert without(cli, (0,), *arguments)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("arguments", one_of([(RUN,), (("config", "path"),), (("--version",),), (("doctor",),)]))
@pytest.mark.parametrize("streams", one_of([((1,),), ((0, 1),)]))
def test_an_answer_that_nobody_gets_is_an_error(cli: Cli, arguments: tuple[str, ...], streams: tuple[int, ...]) -> None:
    code, errors = without(cli, streams, *arguments)
    assert code == 1
    assert "standard output: closed" in errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", one_of([(RUN,), (("config", "path"),), (("--version",),)]))
def test_a_full_disk_behind_the_output_is_an_error(cli: Cli, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        process = cli.start(*arguments, stdin=None, stdout=full)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors == "agent-tui: standard output: No space left on device\n"
