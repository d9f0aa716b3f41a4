"""Plain mode without a terminal: lines are a script, read one by one as they are wanted."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.cli import Cli, Outcome
from tests.support.forms import one_of
from tests.support.scripts import step

pytestmark = pytest.mark.skipif(os.name != "posix", reason="plain mode needs POSIX")


def failing(kind: str) -> str:
    return f'[[step]]\ntext = ""\nerror = {{kind = "{kind}", message = "It is {kind}."}}\n'


def piped(cli: Cli, *lines: str, arguments: tuple[str, ...] = ("--plain", "-m", "demo")) -> Outcome:
    """A whole chat whose lines come through a pipe."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as source, os.fdopen(write, "w", encoding="utf-8") as sink:
        sink.write("".join(f"{line}\n" for line in lines))
        sink.close()
        done = cli.run(*arguments, stdin=source)
    assert not set(done.out) & {"\x1b", "\r", "\b", "\x07"}, done.out
    return done


def in_order(text: str, *parts: str) -> None:
    at = 0
    for part in parts:
        assert part in text[at:], (part, text)
        at = text.index(part, at) + len(part)


@pytest.mark.quick
def test_a_transcript_reads_as_the_talk_went(cli: Cli) -> None:
    cli.script(step("", write={"path": "a.txt", "content": "x\n"}) + step("Written.") + step("Bye."))
    done = piped(cli, "make a file", "1", "thanks")
    in_order(
        done.out,
        "You: make a file\nPermission needed: write a.txt\n",
        "Answer, 1 to 5: 1\nTool write a.txt: 1 line added, 0 removed",  # and how long it took, if that was long
        "\nAgent: Written.\n",
        "You: thanks\nAgent: Bye.\n",
    )
    assert done.code == 0 and (cli.project / "a.txt").is_file()
    assert done.err.startswith("Resume with: agent-tui --plain -r ses_")


def test_a_question_that_nobody_can_answer_any_more_is_declined(cli: Cli) -> None:
    cli.script(step("", write={"path": "a.txt", "content": "x"}) + step("Then not."))
    done = piped(cli, "make a file")
    in_order(done.out, "Permission needed", "Declined: nobody can answer any more.", "refused", "Agent: Then not.")
    assert done.code == 0 and not (cli.project / "a.txt").exists()


@pytest.mark.parametrize(("kind", "code"), one_of([("auth", 1), ("overloaded", 75)]))
def test_a_turn_that_fails_makes_the_exit_code(cli: Cli, kind: str, code: int) -> None:
    cli.config("[agent]\nretries = 1\n")
    cli.script(failing(kind) + step("Better."))
    done = piped(cli, "one", "two")
    in_order(done.out, f"Error: It is {kind}.", "You: two", "Agent: Better.")
    assert done.out.count(f"It is {kind}.") == 1
    assert done.code == code


def test_an_answer_that_breaks_off_begins_again(cli: Cli) -> None:
    error = 'error = { kind = "interrupted_stream", message = "It broke.", retry_after = 0.0 }'
    cli.script(f'[[step]]\ntext = "Hello wo"\nchunk = 4\nafter = 5\n{error}\n' + step("Hello world."))
    said = "Agent: Hello wo\nNote: Interrupted. The answer begins again.\nWarning: It broke. Retrying in 0"
    in_order(piped(cli, "hi").out, said, "Agent: Hello world.\n")


def test_what_has_to_be_mended_is_one_line(cli: Cli) -> None:
    cli.config("[ui]\nplain = 7\n")
    done = piped(cli, arguments=("--plain",))
    assert done.code == 2 and "config.toml" in done.error and "ui.plain" in done.error


@pytest.mark.quick
def test_without_a_terminal_nobody_guesses_that_lines_are_meant(cli: Cli) -> None:
    done = piped(cli, "hello", arguments=("-m", "demo"))
    assert done.code == 2 and "the chat needs a terminal" in done.error and "--plain" in done.error


def test_compaction_is_told_and_taken_back(cli: Cli) -> None:
    long = "word " * 900
    cli.script("window = 9000\nmax_output = 500\n" + step(f"First. {long}") + step(f"Second. {long}") + step("Third."))
    done = piped(cli, "one", "two", "three", "/compact", "/compact undo", "/context")
    in_order(done.out, "You: /compact\nNote: compacting ", " tokens…", "\nCompacted: ", "You: /compact undo\nNote: ")
    in_order(done.out, "You: /context\n", "Sum of the rows: ", " = total.", "Proof: rows = total = trigger = ", "holds")
    assert done.code == 0


def test_another_session_is_chosen_by_its_number(cli: Cli) -> None:
    cli.script(step("Blue it is.") + step("Again."))
    piped(cli, "my colour is blue")
    done = piped(cli, "/resume", "1", "and?", arguments=("--plain", "-m", "demo"))
    in_order(
        done.out, "1. my colour is blue, 2 messages", "Number, 1 to 1", "Agent: Blue it is.", "You: and?", "Agent: "
    )
    assert len(cli.run("sessions", "--json").json) == 1
    found = piped(cli, "/resume blue it is", "1", arguments=("--plain", "-m", "demo"))
    in_order(found.out, "There the model said: Blue it is.", "Agent: ")


@pytest.mark.slow
def test_a_message_is_taken_back_and_the_files_with_it(cli: Cli) -> None:
    cli.script(step("", write={"path": "a.txt", "content": "x"}) + step("Done."))
    done = piped(cli, "make a file", "1", "/rewind", "1", "2", "/status")
    in_order(done.out, "1. make a file, just now, 3 messages after it", "2. Go there and restore the files", "Note: ")
    assert "Your message was: make a file" in done.out
    assert not (cli.project / "a.txt").exists()


def test_the_tree_of_branches_is_told_and_every_leaf_is_a_number(cli: Cli) -> None:
    cli.script("".join(step(f"Answer {n}.") for n in range(6)))
    there = ("/rewind", "1", "1")  # before the newest message
    done = piped(cli, "one", "two", *there, "three", *there, "four", "/rewind", "3", "1", "/rewind back", "/rewind")
    in_order(
        done.out,
        "The newest is first; 2 branches are listed below the message sent instead.\n",
        "1. four, just now, 1 message after it\n",
        "Branch: three, just now, 2 messages, about ",
        "Branch: two, just now, 2 messages, about ",
        "4. one, just now, 3 messages after it\nNumber, 1 to 4",
        "Branch of 2 messages, about ",
        "forked after 2 messages.",
        "1. Go there\n2. Continue in a copy that ends there",
        "Note: 2 messages moved to a branch, 2 messages restored from the other branch.",
        "You: /rewind back\n",
        "/rewind back undoes this.",
        "1. four, just now, 1 message after it\n",
    )


@pytest.mark.slow
def test_a_long_list_is_said_in_parts_and_every_number_counts(cli: Cli) -> None:
    cli.script("".join(step(f"Answer {n}.") for n in range(30)))
    done = piped(cli, *(f"message {n}" for n in range(1, 25)), "/rewind", "m", "24", "")
    in_order(done.out, "20. message 5,", "… 4 more rows: m shows them\nNumber, 1 to 24, m for more; an empty line")
    in_order(done.out, "21. message 4,", "24. message 1,", "\nNumber, 1 to 24; an empty line", "Moves 48 messages")


def test_a_plan_and_a_question_are_answered_by_numbers_and_words(cli: Cli) -> None:
    cli.script(
        step("", ask={"question": "Which?", "choices": ["red", "green"], "several": True})
        + step("", ask={"question": "And?", "choices": ["a", "b"]})
        + step("", present_plan={"plan": "# Plan\n1. x"})
        + step("Done.")
    )
    done = piped(cli, "/permissions plan", "go", "1, 2", "neither of them", "4", "5", "smaller steps")
    in_order(done.out, "Question: Which?", "red; green", "Question: And?", "neither of them", "Plan: ", "smaller steps")
    assert "Error: An editor needs a terminal" in done.out and "Traceback" not in done.err
    sent = json.dumps(cli.run("export", cli.newest()).json)
    assert "neither of them" in sent and "smaller steps" in sent and '"mode": "plan"' not in done.err


def test_a_command_is_no_answer_to_a_question(cli: Cli) -> None:
    cli.script(step("", ask={"question": "Which?", "choices": ["red", "green"]}) + step("Done."))
    done = piped(cli, "go", "/queue", "2")
    in_order(done.out, "Question: Which?", "The queue is empty.", "green", "Done.")
    assert "/queue" not in json.dumps(cli.run("export", cli.newest()).json)


PARTS = (
    ("/context rows", "Sum of the rows"),
    ("/context row 1", "tokens, "),
    ("/context row 99", "No such row: 99"),
    ("/context step 1", "Step 1 of 1"),
    ("/context cache", "Input "),
    ("/context exact", "xact count"),
    ("/context export", "Written to "),
    ("/context export 1", "Written to "),
    ("/context stats", "oken"),
    ("/context nonsense", "Usage: /context [rows | row"),
)
"""Ways to ask for the context, and what is answered."""


def test_every_part_of_the_context_can_be_asked_for(cli: Cli) -> None:
    cli.script(step("Hello."))
    out = piped(cli, "hi", *(line for line, _ in PARTS)).out
    answers = {line: out.partition(f"You: {line}\n")[2].partition("You: ")[0] for line, _ in PARTS}
    assert [(line, answers[line]) for line, said in PARTS if said not in answers[line]] == []


@pytest.mark.quick
def test_every_command_answers(cli: Cli) -> None:
    from agent_tui.commands.registry import load

    silent = {"exit", "init", "compact", "clear", "model", "resume", "rewind"}
    names = [name for name in load() if name not in silent]
    done = piped(cli, *(f"/{name}" for name in names))
    for name in names:
        answer = done.out.partition(f"You: /{name}\n")[2].partition("You: ")[0]
        assert answer.strip(), name


def test_help_names_each_command_once_and_none_does_what_needs_a_screen(cli: Cli) -> None:
    from agent_tui.commands.registry import load
    from agent_tui.plain.commands import INSTEAD

    done = piped(cli, "/help", "/help queue", "/help picture")
    listed = done.out.partition("You: /help queue")[0]
    assert [name for name in load() if len(re.findall(rf"(?m)^  /{name}\b", listed)) != 1] == []
    assert "screen of its own" not in done.out and "Tab on the prompt" not in done.out
    in_order(
        done.out, "You: /help queue\n/queue [drop | send] [N]: List queued", f"/picture [name]: {INSTEAD['picture']}"
    )


def test_ctrl_c_ends_a_script_that_waits(cli: Cli) -> None:
    process = cli.start("--plain", "-m", "demo", stdin=-1)
    assert process.stdout is not None
    heard = ""
    while "You: " not in heard:
        heard += process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, "before its input ends, too"


@pytest.mark.slow
def test_a_file_takes_the_talk_and_what_is_kept_is_the_whole(cli: Cli, tmp_path: Path) -> None:
    cli.script(step("Hello."))
    lines = tmp_path / "lines"
    lines.write_text("hi\n")
    with lines.open() as given, (tmp_path / "out").open("w") as out:
        assert cli.start("--plain", "-m", "demo", stdin=given, stdout=out).wait(60) == 0
    assert "You: hi\nAgent: Hello.\nDone: " in (tmp_path / "out").read_text()


@pytest.mark.slow
def test_a_reader_that_goes_ends_the_talk(cli: Cli) -> None:
    process = cli.fork("--plain", "-m", "demo", stdin=-1)
    assert process.stdout is not None and process.stdin is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write("hello\n" * 3)
    process.stdin.close()
    assert process.wait(60) == 141
    assert process.stderr is not None and "Traceback" not in process.stderr.read()


@pytest.mark.slow
def test_a_command_of_the_users_own_is_heard_once_and_sent(cli: Cli) -> None:
    cli.script(step("I saw it."))
    done = piped(cli, "!echo first; sleep 0; echo second; exit 3", "what was it?")
    in_order(done.out, "  first\n  second\n", "[exit code 3]", "Note: command finished.", "Agent: I saw it.")
    assert done.out.count("  second\n") == 1 and done.code == 0
    assert "second" in json.dumps(cli.run("export", cli.newest()).json["messages"])


def test_a_command_of_the_models_is_not_the_users_however_it_begins(cli: Cli) -> None:
    cli.script(step("", bash={"command": "! test -e nothing"}) + step("Done.") + step("Fine."))
    done = piped(cli, "go", "y", "and now")
    in_order(done.out, "Tool bash", "Agent: Done.", "Agent: Fine.")
    assert "the command has ended" not in done.out


def test_a_file_called_as_what_a_command_printed_is_attached(cli: Cli) -> None:
    cli.script(step("Read."))
    (cli.project / "output").write_text("of a build\n")
    done = piped(cli, "look at @output", "/history")
    assert done.out.count("attached: output") == 2 and "of a build" not in done.out


def test_what_others_wrote_looks_like_nothing_of_the_programs(cli: Cli) -> None:
    spoof = "Permission needed: bash ~5 → 6"
    skill = cli.project / ".agents" / "skills" / "greet" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(f"---\nname: greet\ndescription: Greets.\n---\n{spoof}\n")
    cli.script(step(bash={"command": f"echo '{spoof}'", "background": True}) + step(jobs={"id": "b1", "wait": 60}))
    done = piped(cli, "go", "y", "/jobs output b1", "/trust show")
    output, trust = done.out.partition("/jobs output b1")[2].split("You: /trust show")
    for said in (output, trust):
        told = [each for each in said.splitlines() if "Permission needed" in each]
        assert told and all(each.startswith("  ") and "~5 → 6" in each for each in told)


def test_a_command_that_sends_a_message_is_answered(cli: Cli) -> None:
    cli.script(step("I looked around.") + step("Bye."))
    done = piped(cli, "/init", "thanks")
    in_order(done.out, "You: /init\n", "Agent: I looked around.", "You: thanks\n", "Agent: Bye.")


@pytest.mark.quick
def test_what_was_not_said_to_its_end_is_allowed_by_the_second_answer(cli: Cli) -> None:
    long = "".join(f"line {number}\n" for number in range(200))
    cli.script(step("", write={"path": "a.txt", "content": long}) * 2 + step("Done."))
    done = piped(cli, "go", "y", "n", "a", "y", "y")
    in_order(
        done.out, "Answer, 1 to 5: y\nNote: you have not seen the end: m shows it, y again allows.", "a.txt: refused",
        "Answer, 1 to 5: a\n", "Note: you have not seen the end of the call, y again allows.", "200 lines added",
    )  # fmt: skip


@pytest.mark.slow
def test_dead_weight_is_a_numbered_list(cli: Cli) -> None:
    (cli.project / "a.txt").write_text("a line of a file\n" * 200)
    look, aside = step(read={"path": "a.txt"}), step(list={"path": "."})
    cli.script(look * 2 + aside + look + step("Read."))
    done = piped(cli, "/tidy", "go", "/tidy", "/tidy drop 1", "/tidy all", "/tidy")
    in_order(
        done.out, "Nothing to tidy", "Agent: Read.", "2 calls to drop:", "1. read a.txt: ~", "read again later",
        "2. read a.txt", "Drops 4 messages", "Run /tidy drop 1", "Dropped 2 messages", "Dropped 2 messages",
        "Nothing to tidy",
    )  # fmt: skip


def test_a_brief_is_read_out_and_the_new_session_names_the_old_one(cli: Cli) -> None:
    cli.script(step("Understood.") + step("It goes on."))
    done = piped(cli, "Never touch the vendor folder.", "/handoff Write the migration", "go")
    in_order(
        done.out,
        "Agent: Understood.",
        "Handed off from “Never touch the vendor folder.”: /resume ses_",
        "Review the brief and send it.",
        "The brief: Write the migration",
        "## Instructions and constraints\n- Never touch the vendor folder.",
        "You: go\nAgent: ",
    )
    assert done.code == 0
