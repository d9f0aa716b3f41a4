"""A permission asked in lines: words answer nothing, and rules are confirmed in a step of their own."""

from __future__ import annotations

import io
from typing import Any

import pytest

from agent_tui.commands.questions import PermissionAnswer, PermissionDialog, permission_choices
from agent_tui.models.events import PermissionAsked, RuleOffer
from agent_tui.plain.line_writer import LineWriter
from agent_tui.plain.questions import Asking, PermissionQuestion
from tests.support.every import every

pytestmark = pytest.mark.quick

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


@every(
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


@every(
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
    assert dialog.choose(first[0], False) is None and dialog.warned(first[0])
    assert dialog.choose(first[1], False) is None and dialog.offer == RULES, "that only leads to the rules"
    yes = dialog.choices[0]
    assert dialog.call_unseen and dialog.choose(yes, True) is None and dialog.warned(yes)
    assert dialog.choose(yes, True) == PermissionAnswer(True, RULES)
    assert dialog.back() and not dialog.call_unseen
    assert dialog.choose(first[1], True) is None and not dialog.call_unseen
    assert dialog.choose(yes, False) is None, "the rules are to be seen to their end, too"
    assert dialog.back() and not dialog.back() and dialog.choices == first
    labels = [choice.label for choice in permission_choices(ASKED)]
    assert labels[1] == "Always allow bash(touch *) and bash(rm -rf tests) in this project…"
    assert labels[2] == "Allow a.org and b.org for this session…"


@every(
    ("rules", "lasts", "label"),
    [
        (["bash(a *)", "bash(b)"], "project", "Always allow bash(a *) and bash(b) in this project…"),
        ([f"bash(r{n})" for n in range(10)], "project", "Always allow these 10 rules in this project…"),
        ([f"bash(r{n})" for n in range(10)], "session", "Allow these 10 rules for this session…"),
        (["bash(a *)", f"bash({'x' * 60})"], "session", "Allow these 2 rules for this session…"),
    ],
)
def test_an_answer_with_rules_is_a_sentence_that_fits_a_row(rules: list[str], lasts: Any, label: str) -> None:
    asked = PermissionAsked("r", "c", "bash", "bash x", {}, [RuleOffer(tuple(rules), lasts)])
    assert permission_choices(asked)[1].label == label
    assert all(rule in permission_choices(asked, most=1_000_000)[1].label for rule in rules), "who has no second step"
    dialog = PermissionDialog(asked)
    dialog.choose(dialog.choices[1], True)
    assert all(rule in dialog.text for rule in rules)


@every(
    ("rule", "words"),
    [
        ("edit(./**)", "all edits in the project"),
        ("edit(./src/**)", "edits in src"),
        ("edit(a.py)", "changes to this file"),
        ("bash(git commit *)", 'commands that begin with "git commit"'),
        ("bash(make)", "exactly this command"),
        ("bash(ls \\*)", "exactly this command"),
        ("bash(a * b)", "commands of this form, with anything for each *"),
        ("fetch(a.org)", "fetching from this host"),
        ("network(a.org)", "connections to a.org"),
        ("network(registries)", "package registries"),
        ("mcp(trips)", "all tools of the MCP server trips"),
        ("mcp(trips.plan)", "this tool of the MCP server"),
    ],
)
def test_the_second_step_says_what_a_rule_means_and_which_call_goes_with_it(rule: str, words: str) -> None:
    dialog = PermissionDialog(PermissionAsked("r", "c", "edit", "edit a.py", {}, [RuleOffer((rule,))]))
    dialog.choose(dialog.choices[1], True)
    lines = dialog.text.split("\n")
    assert lines[0] == f"{rule}: {words}" and lines[-1] == "Allowed with it: edit a.py"
