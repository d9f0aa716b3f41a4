"""What MCP servers ask as lines of text."""

from __future__ import annotations

import io
from typing import Any

import pytest

from agent_tui.models.events import ServerAction, ServerAsked
from agent_tui.plain.line_writer import LineWriter
from agent_tui.plain.questions import AskLines
from agent_tui.say.answering import Reply
from agent_tui.say.asks import ask_of
from tests.support.showcase import form

pytestmark = pytest.mark.quick

FIELDS = form().fields


class Asked:
    """A question of a server, what was said of it and what was answered."""

    def __init__(self, asked: ServerAsked) -> None:
        self._out = io.StringIO()
        self.answers: list[tuple[ServerAction, dict[str, Any]]] = []
        self.question = AskLines(ask_of(asked), LineWriter(self._out), self._take)
        self.question.put()

    def _take(self, reply: Reply) -> None:
        action: ServerAction = (reply.choice.action or "cancel") if reply.choice is not None else "cancel"
        self.answers.append((action, dict(reply.values or {}) if action == "accept" else {}))

    @property
    def said(self) -> str:
        return self._out.getvalue()

    def type(self, *lines: str) -> str:
        for line in lines[:-1]:
            assert self.question.take(line) == "again", line
        return self.question.take(lines[-1])


def test_a_form_is_filled_in_line_by_line_and_sent_once_it_was_shown() -> None:
    asked = Asked(form())
    assert "trips asks for input" in asked.said and "1. Fill in the form" in asked.said
    asked.type("1")
    assert asked.question.prompt == "City (at least 2 characters): "
    asked.type("", "R", "Rome", "", "yes")
    assert "an answer is required here" in asked.said and "must be at least 2 characters" in asked.said
    assert asked.question.prompt == "Seat (an empty line keeps Window): "
    asked.type("2", "1, dinner")
    assert "  Meals: Breakfast, Dinner" in asked.said and not asked.answers
    assert asked.type("1") == "answered"
    values = {"city": "Rome", "days": 3, "train": True, "seat": "aisle", "meals": ["b", "d"]}
    assert asked.answers == [("accept", values)]


def test_a_form_can_be_filled_in_again_and_declined() -> None:
    asked = Asked(form())
    assert asked.type("yes", "Rome", "", "", "", "", "a", "Oslo", "9", "", "", "", "s") == "answered"
    assert asked.answers[0][1]["city"] == "Oslo" and asked.answers[0][1]["days"] == 9
    asked = Asked(form())
    assert asked.type("no") == "answered" and asked.answers == [("decline", {})]
    asked = Asked(form())
    assert asked.type("c") == "answered" and asked.answers == [("cancel", {})]
    asked.question.give_up()
    assert asked.answers[-1] == ("cancel", {})


@pytest.mark.parametrize(
    "question",
    [
        ServerAsked("s", "trips", "url", "Pay there.", url="https://pay.example.com/1", about="pay.example.com"),
        ServerAsked("s", "trips", "form", "Go on?"),
    ],
    ids=lambda asked: asked.kind,
)
def test_what_has_no_fields_is_one_answer(question: ServerAsked) -> None:
    asked = Asked(question)
    for words in (question.text, question.url, question.about):
        assert words in asked.said
    assert asked.type("y") == "answered" and asked.answers == [("accept", {})]


def test_a_servers_text_cannot_pass_for_ours() -> None:
    asked = Asked(ServerAsked("s", "x\x1b[31m", "form", "a\nQuestion: b\x07", FIELDS[:1]))
    assert "\x1b" not in asked.said and "\x07" not in asked.said
    assert all(not line.startswith("Question: b") for line in asked.said.splitlines())
