"""A demo model that acts by what it is sent: for tests of what models do with the names that they are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_tui.models.messages import recall_id
from agent_tui.models.requests import ModelRequest
from agent_tui.providers import demo
from agent_tui.providers.demo_script import ScriptedAnswer

Act = Callable[[list[str]], tuple[str, dict[str, Any]] | str]
"""Given the names of the results that are sent, the call that is made (tool and arguments), or the last word."""


def acting(monkeypatch: pytest.MonkeyPatch, acts: list[Act]) -> list[ModelRequest]:
    """Lets the demo model do these acts, one an answer, then say that it is done; returns its requests as they come."""
    seen: list[ModelRequest] = []
    usual = demo.compose

    def compose(request: ModelRequest) -> ScriptedAnswer:
        if request.kind != "turn":
            return usual(request)
        seen.append(request)
        names = [recall_id(sent.message.id) for sent in request.messages if sent.message.role == "tool"]
        made = acts.pop(0)(names) if acts else "Done."
        if isinstance(made, str):
            return ScriptedAnswer(text=made)
        return ScriptedAnswer("I see.", "", [(made[0], json.dumps(made[1]))])

    monkeypatch.setattr(demo, "compose", compose)
    return seen


def call(name: str, **arguments: Any) -> Act:
    return lambda names: (name, arguments)


def says(text: str) -> Act:
    return lambda names: text


def tend(action: str, *places: int, **arguments: Any) -> Act:
    """A call of ``context`` about the results at these places."""

    def act(names: list[str]) -> tuple[str, dict[str, Any]]:
        return "context", {"action": action, "names": [names[place] for place in places], **arguments}

    return act
