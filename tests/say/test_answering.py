"""Questions as values: what each can be answered with, and that nobody answers by accident. No face is started."""

from __future__ import annotations

from typing import Any

import pytest

from agent_tui.models.events import (
    PermissionAsked,
    PlanPresented,
    QuestionAsked,
    RuleOffer,
    ServerAsked,
    StopAsked,
    Way,
)
from agent_tui.say.answering import Answering, Reply
from agent_tui.say.asks import AskChoice, Asked, ask_of
from agent_tui.say.rules import whole_sentence
from tests.support.every import every
from tests.support.showcase import form

pytestmark = pytest.mark.quick

RULES = RuleOffer(("bash(touch *)", "bash(rm -rf tests)"))
SESSION = RuleOffer(("network(a.org)", "network(b.org)"), "session")
CALL = PermissionAsked("r", "c", "bash", "touch a && rm -rf tests", {"kind": "command", "text": "x"}, [RULES, SESSION])
PLAN = PlanPresented("p", "# Mend it")
ONE = QuestionAsked("q", "Which?", ("red", "green", "blue"))
SEVERAL = QuestionAsked("q", "Which?", ("red", "green", "blue"), True)
STOP = StopAsked("s", "Too small: $1", (Way("o", "Another amount…", asks="An amount"), Way("n", "Stop here")))
PAGE = ServerAsked("u", "trips", "url", "Pay there.", url="https://pay.example.com/1", about="pay.example.com")
EVERY: list[Asked] = [CALL, PLAN, ONE, SEVERAL, STOP, form(), PAGE]


def row(answering: Answering, key: str) -> AskChoice:
    return next(row for row in answering.rows if row.key == key)


def after(asked: Asked, *keys: str, seen: bool = True) -> tuple[Answering, Any]:
    """Chooses by keys; a word in quotes is written, ``esc`` leaves, ``enter`` and ``space`` are pressed on a key."""
    answering, came = Answering(ask_of(asked)), None
    for key in keys:
        assert not isinstance(came, Reply), "answered before"
        if key.startswith("'"):
            came = answering.say(key.strip("'"))
        elif key == "esc":
            came = answering.leave()
        elif key.startswith(("enter ", "space ")):
            act = answering.enter if key.startswith("enter") else answering.toggle
            came = act(row(answering, key[6:]))
        else:
            came = answering.choose(row(answering, key), seen)
    return answering, came


@every("asked", EVERY)
def test_choices_are_sentences_with_keys_of_their_own(asked: Asked) -> None:
    rows = Answering(ask_of(asked)).rows
    keys = [each.key for each in rows if each.key]
    assert len(set(keys)) == len(keys) and all(each.label for each in rows)
    words = [each.word for each in rows]
    assert all(words) or asked not in (CALL, PLAN, PAGE), "a word for each where there is no room"


@every("asked", EVERY)
def test_leaving_declines_and_leaves_no_step_unseen(asked: Asked) -> None:
    _, came = after(asked, "esc")
    assert isinstance(came, Reply) and not came.allows and came.choice is None


@every(
    ("keys", "allows", "offer", "text"),
    [
        (["y"], True, None, ""),
        (["n"], False, None, ""),
        (["a", "y"], True, RULES, ""),
        (["s", "y"], True, SESSION, ""),
        (["a", "n", "y"], True, None, ""),
        (["s", "esc", "n"], False, None, ""),
        (["f", "'use tox'"], False, None, "use tox"),
        (["f", "esc", "y"], True, None, ""),
    ],
)
def test_a_permission(keys: list[str], allows: bool, offer: RuleOffer | None, text: str) -> None:
    _, came = after(CALL, *keys)
    assert isinstance(came, Reply)
    assert (came.allows, came.offer, came.text) == (allows, offer, text)


def test_a_lasting_rule_takes_a_step_that_shows_it_whole() -> None:
    long = RuleOffer((f"bash({'x' * 900})",))
    answering, came = after(PermissionAsked("r", "c", "bash", "x", {}, [long]), "a")
    assert came == "step" and long.rules[0] in answering.body and answering.title == "Add this rule for this project?"
    assert "Stored for this project outside its folder" in answering.body
    assert "Not stored" in after(CALL, "s")[0].body and after(CALL, "s")[0].title.startswith("Add these 2 rules")


def test_what_was_not_seen_is_allowed_by_the_second_press_alone() -> None:
    answering, came = after(CALL, "y", seen=False)
    assert came == "unseen" and not answering.call_unseen
    assert isinstance(answering.choose(row(answering, "y"), False), Reply)
    answering, came = after(CALL, "y", "a", seen=False)
    assert came == "step" and answering.call_unseen, "another answer is no second press"
    yes = row(answering, "y")
    assert answering.choose(yes, True) == "unseen" and isinstance(answering.choose(yes, True), Reply)
    answering, _ = after(CALL, "a", seen=True)
    assert answering.choose(row(answering, "y"), False) == "unseen", "the rules are to be seen to their end, too"
    assert answering.back() and not answering.back()
    assert isinstance(after(CALL, "n", seen=False)[1], Reply), "no needs no reading"


@every(
    ("keys", "mode", "text"),
    [
        (["y"], "ask", ""),
        (["e"], "accept-edits", ""),
        (["a"], "auto", ""),
        (["n"], None, ""),
        (["f", "'tests'"], None, "tests"),
    ],
)
def test_a_plan(keys: list[str], mode: str | None, text: str) -> None:
    _, came = after(PLAN, *keys)
    assert isinstance(came, Reply)
    assert (came.choice and came.choice.mode, came.text, came.plan) == (mode, text, PLAN.plan)


def test_a_plan_is_edited_and_an_emptied_one_is_as_it_was() -> None:
    answering, came = after(PLAN, "c")
    assert came == "edit" and answering.edited("# Other") and answering.plan == "# Other"
    assert not answering.edited(" \n") and answering.plan == "# Other"


@every(
    ("asked", "keys", "chosen", "text"),
    [
        (ONE, ["2"], ("green",), ""),
        (ONE, ["o", "''", "'pink'"], (), "pink"),
        (SEVERAL, ["1", "3", "s"], ("red", "blue"), ""),
        (SEVERAL, ["space 1", "space 2", "space 1", "enter 3"], ("green",), ""),
        (SEVERAL, ["enter 2"], ("green",), ""),
        (SEVERAL, ["s", "2", "s"], ("green",), ""),
        (SEVERAL, ["3", "o", "'dark'"], ("blue",), "dark"),
    ],
)
def test_a_choice(asked: QuestionAsked, keys: list[str], chosen: tuple[str, ...], text: str) -> None:
    _, came = after(asked, *keys)
    assert isinstance(came, Reply)
    assert (came.chosen, came.text) == (chosen, text)


GIVEN = {"days": 3, "train": False, "seat": "window"}


@every(
    ("keys", "values"),
    [
        (["1", "'Rome'", "s"], {**GIVEN, "city": "Rome"}),
        (["s", "1", "'Rome'", "3", "s"], {**GIVEN, "city": "Rome", "train": True}),
        (["1", "'R'", "'Rome'", "4", "2", "s"], {**GIVEN, "city": "Rome", "seat": "aisle"}),
        (["1", "'Rome'", "4", "esc", "s"], {**GIVEN, "city": "Rome"}),
        (["1", "'Rome'", "5", "1", "space 2", "1", "b", "s"], {**GIVEN, "city": "Rome", "meals": ["d"]}),
        (["1", "'Rome'", "2", "''", "s"], {"city": "Rome", "train": False, "seat": "window"}),
    ],
)
def test_a_form(keys: list[str], values: dict[str, Any]) -> None:
    _, came = after(form(), *keys)
    assert isinstance(came, Reply) and came.choice is not None
    assert came.choice.action == "accept" and came.values == values


def test_what_is_missing_or_wrong_in_a_form_is_said_and_nothing_is_sent() -> None:
    answering, came = after(form(), "s")
    assert came == "stay" and answering.problem == "City is required." and answering.at == 0
    answering, came = after(form(), "2", "'99'")
    assert came == "words" and answering.problem == "Days: must be a whole number, 1 to 30"


def test_an_address_is_opened_only_by_the_answer_that_says_so() -> None:
    opens = {key: after(PAGE, key)[1].choice.opens for key in "yon"}
    assert opens == {"y": True, "o": False, "n": False}


def test_a_stop_stays_open_to_be_answered_again() -> None:
    answering, came = after(STOP, "o", "'0.001'")
    assert isinstance(came, Reply) and came.text == "0.001" and came.choice is not None and came.choice.key == "o"
    again = answering.say("0.5")
    assert isinstance(again, Reply) and again.text == "0.5"
    assert answering.leave() is None and isinstance(answering.leave(), Reply)


@every(
    ("rules", "lasts", "label"),
    [
        (["bash(git push *)"], "project", "Yes, and don't ask again for `git push *` in this project…"),
        (["bash(a *)", "bash(b)"], "project", "Yes, and don't ask again for `a *` and `b` in this project…"),
        ([f"bash(r{n})" for n in range(10)], "session", "Yes, and don't ask again for these 10 rules this session…"),
        (["edit(./a.py)"], "project", "Yes, and don't ask again for changes to a.py in this project…"),
        (["edit(./**)"], "session", "Yes, and don't ask again for all edits in the project this session…"),
        (["mcp(trips)"], "session", "Yes, and don't ask again for all tools of the MCP server trips this session…"),
    ],
)
def test_an_answer_with_rules_is_a_sentence_that_fits_a_row(rules: list[str], lasts: Any, label: str) -> None:
    offer = RuleOffer(tuple(rules), lasts)
    answering, _ = after(PermissionAsked("r", "c", rules[0].partition("(")[0], "x", {}, [offer]))
    lasting = answering.rows[1]
    assert lasting.label == label and all(rule in whole_sentence(offer) for rule in rules)
    answering.choose(lasting)
    assert all(rule in answering.body for rule in rules)


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
    answering, _ = after(PermissionAsked("r", "c", "edit", "edit a.py", {}, [RuleOffer((rule,))]), "a")
    lines = answering.body.split("\n")
    assert lines[0] == f"{rule}: {words}" and lines[-1] == "Allowed with it: edit a.py"
