"""What comes on standard input: messages, each a turn, or text that goes with the prompt."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_tui.cli import piped
from tests.support.cli import Cli, answers, came
from tests.support.forms import one_of
from tests.support.pixel import PIXEL_BASE64

FLAGS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "-m", "demo")


def send(cli: Cli, *messages: Any) -> Any:
    lines = b"".join((m if isinstance(m, bytes) else json.dumps(m).encode()) + b"\n" for m in messages)
    return cli.run(*FLAGS, stdin=lines)


@pytest.mark.quick
def test_each_line_is_a_turn(cli: Cli) -> None:
    cli.script(answers("First.", "Second.", "Third."))
    image = {"type": "image", "source": {"type": "base64", "data": PIXEL_BASE64}}
    outcome = send(
        cli,
        {"type": "user", "text": "one"},
        {"type": "user", "message": {"role": "user", "content": "two"}},
        {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "three"}, image]}},
    )
    ends = [line["text"] for line in outcome.lines if line["type"] == "turn_end"]
    assert (outcome.code, ends) == (0, ["First.", "Second.", "Third."])
    assert outcome.lines[-1]["type"] == "end"
    assert outcome.lines[-1]["steps"] == 3
    users = [m for m in cli.run("export", cli.newest()).json["messages"] if m["role"] == "user"]
    assert [part["type"] for part in users[2]["parts"]] == ["attachment", "text"]


@pytest.mark.forms(2)
@pytest.mark.parametrize(
    ("line", "words"),
    one_of(
        [
            (b"hello", "line 2: not JSON"),
            (b"[1]", "not a JSON object"),
            (b'{"type": "robot"}', "its type is none of"),
            (b'{"type": "user"}', '"text"'),
            (b'{"type": "user", "text": " "}', "says nothing"),
            (b"[" * 100_000, "not JSON"),
            (b'{"type": "user", "message": {"content": [{"type": "video"}]}}', "'video'"),
        ],
        3,
    ),
)
def test_a_line_that_is_no_message_is_an_error_event_and_the_run_goes_on(cli: Cli, line: bytes, words: str) -> None:
    cli.script(answers("First.", "Second."))
    outcome = send(cli, {"type": "user", "text": "one"}, line, {"type": "user", "text": "two"})
    assert outcome.code == 2
    assert words in outcome.error
    assert [entry["text"] for entry in outcome.lines if entry["type"] == "turn_end"] == ["First.", "Second."]
    error = next(entry for entry in outcome.lines if entry["type"] == "error")
    assert error["kind"] == "input" and words in error["message"]
    assert (outcome.lines[-1]["type"], outcome.lines[-1]["steps"]) == ("end", 2)


def test_a_stream_without_a_message_has_nothing_to_ask(cli: Cli) -> None:
    for stdin in ((), ({"type": "interrupt"},)):
        outcome = send(cli, *stdin)
        assert (outcome.code, outcome.lines[-1]["type"], outcome.lines[-1]["stop_reason"]) == (2, "end", "error")
        assert "No prompt" in outcome.error


@pytest.mark.quick
def test_an_interrupt_is_for_what_was_sent_before_it(cli: Cli) -> None:
    cli.script('[[step]]\nmatch = "one"\nhang = true\n' + answers("Second."))
    outcome = send(cli, {"type": "user", "text": "one"}, {"type": "interrupt"}, {"type": "user", "text": "two"})
    ends = [(entry["stop_reason"], entry["text"]) for entry in outcome.lines if entry["type"] == "turn_end"]
    assert (outcome.code, ends) == (130, [("interrupted", ""), ("end", "Second.")])


@pytest.mark.slow
def test_a_signal_between_turns_is_told(cli: Cli) -> None:
    cli.script(answers("First."))
    process = cli.start(*FLAGS, stdin=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write('{"type": "user", "text": "one"}\n')
    process.stdin.flush()
    next(line for line in process.stdout if json.loads(line)["type"] == "turn_end")
    process.send_signal(signal.SIGTERM)
    end = json.loads(process.stdout.read().splitlines()[-1])
    assert (process.wait(timeout=60), end["type"], end["stop_reason"]) == (130, "end", "interrupted")
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def test_the_first_failure_is_the_exit_code(cli: Cli) -> None:
    cli.script('[[step]]\ntext = "No."\nfinish = "refused"\n' + answers("Fine."))
    assert send(cli, {"type": "user", "text": "one"}, {"type": "user", "text": "two"}).code == 55


@pytest.mark.slow
def test_a_program_talks_while_it_listens(cli: Cli) -> None:
    cli.script(answers("First.", "Second."))
    process = cli.start(*FLAGS, stdin=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    seen: list[str] = []
    for text in ("one", "two"):
        process.stdin.write(json.dumps({"type": "user", "text": text}) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            entry = json.loads(line)
            if entry["type"] == "turn_end":
                seen.append(entry["text"])
                break
    process.stdin.close()
    rest = process.stdout.read()
    assert process.wait(timeout=60) == 0
    assert seen == ["First.", "Second."]
    assert json.loads(rest.splitlines()[-1])["type"] == "end"
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()


@pytest.mark.slow
def test_an_open_pipe_that_brings_nothing_is_not_waited_for(cli: Cli) -> None:
    cli.script(answers("Alone."))
    process = cli.start("-p", "hi", "-m", "demo", stdin=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None and process.stdin is not None
    out, err = process.stdout.read(), process.stderr.read()
    assert (process.wait(timeout=60), out) == (0, "Alone.\n")
    assert "agent-tui -p PROMPT -" in err
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


HELD = """
import os, sys
from agent_tui.cli.piped import is_held_by_pipeline
print(is_held_by_pipeline(0))
"""


@pytest.mark.parametrize(
    ("line", "held"),
    one_of(
        [
            ("cat {gate} | {check}", True),  # a command of the pipeline that has written nothing yet
            ("cat {gate} | cat | {check}", True),
            ("(cat {gate}; true) | {check}", True),
            ("set -m; cat {gate} | {check}", True),  # each pipeline a group of its own, as on a terminal
            ("mkfifo {fifo}; cat {gate} > {fifo} & {check} < {fifo}; kill $!", True),
            ("mkfifo {fifo}; exec 5<> {fifo}; {check} < {fifo}", False),  # the shell above us holds it
            ("set -m; mkfifo {fifo}; cat {gate} > {fifo} & {check} < {fifo}; kill $!", False),  # another job
            ("{check} < /dev/null", False),
        ],
        4,
    ),
)
def test_a_pipe_is_waited_for_while_a_command_of_the_pipeline_holds_it(tmp_path: Path, line: str, held: bool) -> None:
    gate, fifo, check = tmp_path / "gate", tmp_path / "fifo", tmp_path / "check.py"
    os.mkfifo(gate)
    check.write_text(HELD, "utf-8")
    # The writer opens its own input only when this test does: until then it holds its output and writes nothing.
    command = line.format(gate=gate, fifo=fifo, check=f"{sys.executable} {check}")
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == f"{held}\n"
    finally:
        os.close(os.open(gate, os.O_RDWR))  # who waits at the gate goes on, and ends
        process.stdout.close()
        process.wait(timeout=60)


@pytest.mark.quick
def test_a_process_that_has_ended_holds_nothing() -> None:
    """Only root may look what one held whose parent has not asked for it yet: it counts for nobody."""
    child = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert child.pid not in [process.pid for process in piped._processes()]
    finally:
        child.wait()


@pytest.mark.quick
def test_words_that_come_late_through_a_pipeline_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes in time; the next command of the pipeline writes at the moment that we look who holds it."""
    read, write = os.pipe()

    def held(number: int) -> bool:
        if number == read and write not in closed:
            os.write(write, b"late\n")
            os.close(write)
            closed.append(write)
        return True

    closed: list[int] = []
    monkeypatch.setattr(piped, "PATIENCE", 0.001)
    monkeypatch.setattr(piped, "is_held_by_pipeline", held)
    with os.fdopen(read, "rb") as stdin:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stdin))
        assert piped.piped_in(wait=False) == "late"


def test_a_dash_waits_for_its_end(cli: Cli) -> None:
    cli.script(came("sum up\\n\\nlate"))
    assert cli.run("-p", "sum up", "-", "-m", "demo", stdin=b"late\n").out == "Came.\n"
    assert cli.run("-p", "-", "-m", "demo", stdin=b"sum up\n\nlate\n").out == "Came.\n"
