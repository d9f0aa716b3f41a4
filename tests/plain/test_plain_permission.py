"""A permission asked in lines: words answer nothing, and rules are confirmed in a step of their own."""

from __future__ import annotations

import io

import pytest

from agent_tui.models.events import PermissionAsked, RuleOffer
from agent_tui.plain.line_writer import LineWriter
from agent_tui.plain.questions import Asking, AskLines
from agent_tui.say.asks import ask_of
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
    asking.put_back(
        AskLines(ask_of(asked), writer, lambda reply: answers.append((reply.allows, reply.offer, reply.text)))
    )
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
