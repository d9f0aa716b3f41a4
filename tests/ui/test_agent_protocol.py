"""The agents that stand behind the screen are what it asks for. The attributes are for the type checker alone."""

from __future__ import annotations

import inspect

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.ui.agent_protocol import ChatAgent

METHODS = sorted(name for name, _ in inspect.getmembers(ChatAgent, inspect.isfunction) if not name.startswith("_"))


@pytest.mark.parametrize("name", METHODS)
def test_the_agent_answers_as_the_screen_asks(name: str) -> None:
    asked, found = getattr(ChatAgent, name), getattr(Agent, name)
    assert inspect.iscoroutinefunction(found) == inspect.iscoroutinefunction(asked)
    given = inspect.signature(found).parameters
    assert list(given)[: len(inspect.signature(asked).parameters)] == list(inspect.signature(asked).parameters)
