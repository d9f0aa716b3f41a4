"""A permission asked in lines: words answer nothing, and rules are confirmed in a step of their own."""

from __future__ import annotations

import io

import pytest

from agent_tui.commands.questions import PermissionDialog, permission_choices
from agent_tui.models.events import PermissionAsked, RuleOffer
from agent_tui.plain.line_writer import LineWriter
from agent_tui.plain.questions import Asking, PermissionQuestion

RULES = RuleOffer(("bash(touch *)", "bash(rm -rf tests)"))
SESSION = RuleOffer(("network(a.org)", "network(b.org)"), "session")
ASKED = PermissionAsked("r", "c", "bash", "touch a && rm -rf tests", {"kind": "command", "text": "x"}, [RULES, SESSION])


async def unedited(text: str, name: str) -> str | None:
    return None


def heard(
    *lines: str, asked: PermissionAsked = ASKED
) -> tuple[list[tuple[bool, RuleOffer | None, str]], list[str], str]:
    """What was answered, what each line was, and what was said."""
    out, answers = io.StringIO(), list[tuple[bool, RuleOffer | None, str]]()
    writer = LineWriter(out)
    ahead: list[str] = []
    asking = Asking(writer, unedited, lambda: ahead.append("read"), lambda: None, lambda: None)
    asking.put_back(PermissionQuestion(asked, writer, lambda *said: answers.append(said)))
    taken = [asking.take(line) for line in lines if asking.front is not None]
    assert len(ahead) == 1 + taken.count("step"), "what was typed before a step is no answer to it"
    return answers, list(taken), out.getvalue()


@pytest.mark.parametrize(
    "line",
    [
        "also",
        "yes please do",
        "no wait",
        "always",
        "a b",
        "1 more thing",
        "yep",
        "n o",
        "fix it",
        "y.",
        "10x",
        "stop",
        "ok",
    ],
)
def test_words_are_a_message(line: str) -> None:
    answers, taken, _ = heard(line)
    assert not answers and taken == ["other"]


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["y"], (True, None, "")),
        (["yes"], (True, None, "")),
        (["1"], (True, None, "")),
        (["n"], (False, None, "")),
        (["a"], None),
        (["a", "a"], None),
        (["a", "also"], None),
        (["a", "y"], (True, RULES, "")),
        (["2", "1"], (True, RULES, "")),
        (["a", "n", "y"], (True, None, "")),
        (["s", "2", "n"], (False, None, "")),
        (["s", "yes"], (True, SESSION, "")),
        (["f", "use tox"], (False, None, "use tox")),
        (["", "9"], None),
    ],
)
def test_what_lines_answer(lines: list[str], answer: tuple[bool, RuleOffer | None, str] | None) -> None:
    assert heard(*lines)[0] == ([answer] if answer else [])


def test_the_second_step_shows_the_rules_whole_and_where_they_will_stand() -> None:
    long = RuleOffer((f"bash({'x' * 900})",))
    said = heard("a", asked=PermissionAsked("r", "c", "bash", "x", {}, [long]))[2]
    assert long.rules[0] in said.replace("\n", "") and "Stored for this project outside its folder" in said
    assert "Not stored" in heard("s")[2]


def test_a_dialog_goes_back_to_where_it_was_and_begins_anew() -> None:
    dialog = PermissionDialog(ASKED)
    first = dialog.choices
    assert [choice.key for choice in first] == ["y", "a", "s", "n", "f"]
    assert dialog.choose(first[1], False) is None and dialog.warned(first[1]) and dialog.offer is None
    assert dialog.choose(first[0], False) is None and dialog.warned(first[0]), "another answer is no second press"
    assert dialog.choose(first[1], True) is None and dialog.offer == RULES
    assert dialog.choose(dialog.choices[0], False) is None, "the rules are to be seen to their end, too"
    assert dialog.back() and not dialog.back() and dialog.choices == first
    labels = [choice.label for choice in permission_choices(ASKED)]
    assert labels[1] == "Always allow bash(touch *) and bash(rm -rf tests) in this project…"
    assert labels[2] == "Allow a.org and b.org for this session…"
