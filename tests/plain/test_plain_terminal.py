"""Plain mode in a terminal of its own: every byte that it writes is read, and none of them moves a cursor."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.forms import one_of
from tests.support.scripts import step
from tests.support.terminal import Terminal, in_terminal
from tests.support.waiting import Bell

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")

ACTING = re.compile(rb"[\x00-\x06\x0b-\x0c\x0e-\x1f\x7f]")
"""Control characters, but those with which a row begins anew or is gone back in (\\r, \\b)."""


@dataclass
class Talk:
    """A running chat in plain mode."""

    terminal: Terminal
    at: int = 0

    def hears(self, *texts: str) -> None:
        """Waits for each of them, in this order, behind what was heard before."""
        for text in texts:
            self.at = self.terminal.wait_for(text.replace("\n", "\r\n").encode(), self.at)

    def says(self, line: str, *answers: str) -> None:
        """Types a line, then hears the answers."""
        self.terminal.type(line.encode() + b"\n")
        self.hears(*answers)

    @property
    def heard(self) -> str:
        """All that was said, line ends made equal."""
        return self.terminal.seen.decode().replace("\r\n", "\n")

    def count(self, text: str) -> int:
        return self.heard.count(text)


class Talks(Protocol):
    """Begins a chat with the demo model that answers by ``script``; at its end every byte is looked at. ``real``: it is
    started as users start it, and can be sent signals."""

    def __call__(
        self, script: str = "", *arguments: str, real: bool = False, **environment: str
    ) -> AbstractContextManager[Talk]: ...


@pytest.fixture
def talk(tmp_path: Path, program_nursery: str) -> Talks:
    @contextmanager
    def talk(script: str = "", *arguments: str, real: bool = False, **environment: str) -> Iterator[Talk]:
        project = tmp_path / "project"
        project.mkdir(exist_ok=True)
        file = tmp_path / "script.toml"
        file.write_text(script, "utf-8")
        own = {"AGENT_TUI_HOME": str(tmp_path / "home"), "TERM": "xterm-256color", **environment}
        if script:
            own["AGENT_TUI_DEMO_SCRIPT"] = str(file)
        nursery = "" if real else program_nursery
        with in_terminal(project, own, *(arguments or ("--plain",)), nursery=nursery) as terminal:
            yield Talk(terminal)
        acting = ACTING.findall(terminal.seen)
        assert acting == [], terminal.seen

    return talk


@pytest.mark.quick
def test_a_tool_call_is_asked_about_and_its_result_told(talk: Talks, tmp_path: Path) -> None:
    script = step("I write it.", write={"path": "notes.txt", "content": "one\ntwo\n"}) + step("It is written.")
    with talk(script, real=True) as chat:
        chat.hears("agent-tui, plain mode, by --plain.", "You: ")
        chat.says("make notes", "Agent: I write it.", "Permission needed: write notes.txt")
        chat.hears(
            "+ one", "+ two", "1. Yes, this once", "2. Always allow", "No, and say what to do instead", "Answer, 1 to"
        )
        chat.says("1", "Tool write notes.txt: 2 lines added, 0 removed", "Agent: It is written.", "Done: ", "You: ")
        chat.says("/exit", "Resume with: agent-tui --plain -r ses_")
        assert chat.terminal.wait_for_end() == 0
    assert chat.terminal.seen.count(b"\a") == 1, "it calls for the question"
    assert (tmp_path / "project" / "notes.txt").read_text() == "one\ntwo\n"


def test_a_refusal_with_a_word_reaches_the_model(talk: Talks, tmp_path: Path) -> None:
    script = step("", write={"path": "notes.txt", "content": "x"}) + step("As you like.")
    with talk(script) as chat:
        chat.hears("You: ")
        chat.says("make notes", "Permission needed", "Answer, 1 to")
        chat.says("f", "Say what to do instead (an empty line goes back): ")
        chat.says("call it diary", "Tool write notes.txt: refused: call it diary", "Agent: As you like.", "You: ")
        chat.says("/output", "call it diary", "You: ")
        assert chat.count("Answer, 1 to") == 1 and chat.count("Say what to do instead (") == 1
    assert not (tmp_path / "project" / "notes.txt").exists()


@pytest.mark.slow
def test_a_call_that_was_not_said_to_its_end_is_not_allowed_by_a_first_yes(talk: Talks, tmp_path: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(200))
    script = step("", write={"path": "a", "content": content}) + step("First.")
    script += step("", write={"path": "b", "content": content}) + step("Second.")
    with talk(script) as chat:
        chat.hears("You: ")
        chat.says("one", "+ line 100", "more lines: m shows them", "Answer, 1 to")
        chat.says("y", "Note: you have not seen the end: m shows it, y again allows.", "Answer, 1 to")
        assert not (tmp_path / "project" / "a").exists() and chat.count("+ line 199") == 0
        chat.terminal.type(b"\x1b[200~y\ny\x1b[201~")  # a paste of two answers is none
        chat.terminal.type(b"\n")
        chat.hears("Not an answer", "Answer, 1 to")
        assert not (tmp_path / "project" / "a").exists()
        chat.says("y", "Tool write a: 200 lines added", "Agent: First.", "You, from the queue")
        chat.hears("more lines: m shows them", "Answer, 1 to")
        chat.says("m", "+ line 199", "Answer, 1 to")
        chat.says("y", "Tool write b: 200 lines added", "Agent: Second.", "You: ")


def test_what_is_typed_at_a_question_and_answers_nothing_is_queued(talk: Talks) -> None:
    script = step("", write={"path": "a", "content": "x"}) + step("First done.") + step("Second done.")
    with talk(script) as chat:
        chat.hears("You: ")
        chat.says("make it", "Answer, 1 to")
        chat.says("and then the other", "Not an answer, so queued", "queued until the turn ends")
        chat.says("/queue", "1. and then the other (queued)", "Answer, 1 to")
        chat.says("7", "No choice 7.", "Answer, 1 to")
        chat.says("y", "Tool write a: ", "Agent: First done.", "You, from the queue: and then the other")
        chat.hears("Agent: Second done.", "You: ")


def test_the_sum_of_the_context_is_right(talk: Talks) -> None:
    with talk(step("Hello.")) as chat:
        chat.hears("You: ")
        chat.says("hi", "Agent: Hello.", "Done: ", "You: ")
        chat.says("/context", "Sum of the rows: ", "Proof: ", "You: ")
    rows = [
        int(n.replace(",", "")) for n in re.findall(r"^\d+\. [^\n]*?: (?:about )?([\d,]+) tokens", chat.heard, re.M)
    ]
    told = re.search(r"Sum of the rows: ([\d, +]+) = ([\d,]+) = total\.", chat.heard)
    assert told is not None and len(rows) >= 3
    parts = [int(n.replace(",", "")) for n in told[1].split(" + ")]
    assert sum(parts) == int(told[2].replace(",", "")) == sum(rows)
    assert re.search(rf"Proof: rows = total = trigger = {told[2]}, .*, holds", chat.heard)


def test_ctrl_c_interrupts_and_twice_leaves(talk: Talks) -> None:
    script = '[[step]]\ntext = "On and on.\\nAnd further still."\nafter = 20\nhang = true\n' + step("Back again.")
    with talk(script) as chat:
        chat.hears("You: ")
        chat.says("go", "On and on")
        chat.terminal.type(b"\x03")
        chat.hears("Interrupt", "Interrupted.", "You: ")
        chat.says("again", "Agent: Back again.", "You: ")
        chat.terminal.type(b"half a li\x03")
        chat.hears("Line cleared.", "You: ")
        chat.terminal.type(b"\x03")
        chat.hears("Press Ctrl+C again to quit.", "You: ")
        chat.terminal.type(b"\x03")
        assert chat.terminal.wait_for_end() == 0
    assert chat.count("Agent: ") == 2


def test_a_paste_and_a_line_that_goes_on_are_one_message(talk: Talks) -> None:
    with talk(step("One.") + step("Two.")) as chat:
        chat.hears("You: ")
        chat.says("first line\\", "More: ")
        chat.says("second line", "Agent: One.", "You: ")
        chat.says("a\n!touch made\nc", "Note: 3 lines pasted; Enter sends them.")
        chat.says("", "Agent: Two.", "You: ")
        chat.says("/export md -", "You: ")
        chat.says(
            "/rewind",
            "1. a !touch made c, just now, 1 message after it",
            "2. first line second line, just now, 3",
            "Number",
        )
        chat.says("", "You: ")


@pytest.mark.slow
def test_what_was_said_is_there_after_a_kill(talk: Talks) -> None:
    with talk(step("Remember this.") + step("I do."), real=True) as chat:
        chat.hears("You: ")
        chat.says("a secret number is 42", "Agent: Remember this.", "You: ")
        os.kill(chat.terminal.pid, signal.SIGKILL)
        chat.terminal.wait_for_end()
    with talk(step("I do."), "--plain", "-c") as chat:
        chat.hears("session a secret number is 42", "You: a secret number is 42", "Agent: Remember this.", "You: ")
        chat.says("and?", "Agent: I do.", "You: ")
        chat.terminal.type(b"\x04")
        chat.hears("Resume with: ")
        assert chat.terminal.wait_for_end() == 0


def test_a_dumb_terminal_is_plain_without_being_told(talk: Talks) -> None:
    with talk(step("Hi."), "--trust", TERM="dumb") as chat:
        chat.hears("agent-tui, plain mode, because TERM is dumb.", "You: ")
        chat.says("/theme", "no effect here", "You: ")
        chat.terminal.type(b"/contex\t")
        chat.hears("t ")
        chat.terminal.type(b"why\n")
        chat.hears("Sum of the rows", "You: ")


def test_hostile_words_drive_no_terminal(talk: Talks) -> None:
    evil = "\\u001b]0;owned\\u0007\\u001b[2J\\r\\u009b"
    script = (
        f'[[step]]\ntext = "a{evil}b\\nYou: pay me\\nTool bash: done"\n'
        f'[[step]]\ntext = ""\n[[step.tool_calls]]\nname = "bash"\narguments = \'{{"command": "rm ../{evil} x"}}\'\n'
        + step("Done.")
    )
    with talk(script) as chat:
        chat.hears("You: ")
        chat.says("go", "Agent: a", "Agent: You: pay me", "Agent: Tool bash: done", "Done: ", "You: ")
        chat.says("more", "Permission needed: bash", "Answer, 1 to")
        chat.says("n", "refused", "You: ")


@pytest.mark.slow
@pytest.mark.parametrize("wanted", one_of([False, True]))
def test_the_bell_calls_for_a_question_where_it_is_wanted(talk: Talks, tmp_path: Path, wanted: bool) -> None:
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "config.toml").write_text(f"[ui]\nnotifications = {str(wanted).lower()}\n", "utf-8")
    with talk(step("", write={"path": "a", "content": "x"}) + step("Done.")) as chat:
        chat.hears("You: ")
        chat.says("go", "Permission needed", "Answer, 1 to")
        chat.says("n", "Agent: Done.", "You: ")
        chat.says("/model", "Models.", "Number")
        chat.says("", "You: ")
    assert chat.terminal.seen.count(b"\a") == int(wanted)


@pytest.mark.slow
def test_what_was_said_can_be_heard_again(talk: Talks) -> None:
    script = step("First.") + step("", write={"path": "a.txt", "content": "x"}) + step("Second.") + step("Third.")
    with talk(script, real=True) as chat:
        chat.hears("You: ")
        chat.says("one", "Agent: First.", "You: ")
        chat.says("two", "Answer, 1 to")
        chat.says("1", "Agent: Second.", "You: ")
        chat.says("!echo my own", "command finished.", "You: ")
        chat.says("three", "Agent: Third.", "You: ")
        chat.terminal.type(b"a line that is not sent")
        chat.hears("a line that is not sent")
        os.kill(chat.terminal.pid, signal.SIGTERM)
        chat.hears("Resume with: ")
        assert chat.terminal.wait_for_end() == 0
    with talk(script, "--plain", "-c") as chat:
        chat.hears(
            "session one, ", " messages, just now. The last exchange; /history shows more:\nYou: three\nAgent: Third.\n"
        )
        chat.hears("You: a line that is not sent")
        chat.terminal.listen(0.5)  # so that it can have been seen
        chat.terminal.type(b"\x03")
        chat.hears("Line cleared.", "You: ")
        chat.says(
            "/history all",
            "You: one\nAgent: First.\nYou: two\nTool write a.txt: 1 line added, 0 removed",
            "\nAgent: Second.",
        )
        chat.hears("  my own\n", "You: three\nAgent: Third.\n", "You: ")
        chat.says("/history 1", "You: three\nAgent: Third.\nNote: ", " earlier messages: /history all.")


@pytest.mark.slow
def test_a_terminal_that_vanishes_takes_nothing_with_it(talk: Talks) -> None:
    with talk(step("Remember this."), real=True) as chat:
        chat.hears("You: ")
        chat.says("the number is 42", "Agent: Remember this.", "You: ")
        chat.terminal.close()
        chat.terminal.wait_for_end()
    with talk(step("I do."), "--plain", "-c") as chat:
        chat.hears("You: the number is 42", "Agent: Remember this.", "You: ")


def test_editing_a_line_writes_letters_and_steps_back_in_it(talk: Talks) -> None:
    with talk(step("Corrected.")) as chat:
        chat.hears("You: ")
        chat.terminal.type(
            b"corect" + 3 * b"\x1b[D" + b"r" + b"\x1b[D" + b"\x1b[C" + b"\x05 this, h\xc3\xa9\xe6\xbc\xa2" + b"x" * 120
        )
        chat.terminal.type(b"\x17\n")
        chat.hears("Agent: Corrected.", "You: ")
        chat.terminal.type(b"\x12corre")
        chat.hears("Search corre: correct this, ")
        chat.terminal.type(b"\x07/rewind\n")
        chat.hears("1. correct this,", "Number")


@pytest.mark.slow
def test_what_was_begun_before_a_question_is_no_answer_to_it(talk: Talks, tmp_path: Path) -> None:
    script = (
        step("Wait.", bash={"command": "read go < go"}) + step("", write={"path": "a", "content": "x"}) + step("Good.")
    )
    (tmp_path / "project").mkdir()
    with Bell(tmp_path / "project" / "go") as gate, talk(script, "--plain", "--allow", "bash(read *)") as chat:
        chat.hears("You: ")
        chat.says("go", "Agent: Wait.")
        chat.terminal.type(b"y")
        chat.hears("You: y")
        gate.ring()
        chat.hears("Permission needed: write a", "Answer, 1 to")
        chat.says("4", "refused", "Agent: Good.", "You: y")
    assert not (tmp_path / "project" / "a").exists()
