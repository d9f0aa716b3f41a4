"""The agent of the screen's tests stands for the real one: what it offers, the real one offers in the same way."""

from __future__ import annotations

import inspect
from pathlib import Path

from agent_tui.engine.agent import Agent
from tests.support.agents import parts_for
from tests.support.fake_agent import FakeAgent

OWN = {
    "answer",
    "background",
    "called",
    "calls",
    "exact",
    "lost",
    "moving",
    "others",
    "outputs",
    "own_commands",
    "publish",
    "queued",
    "queued_attachments",
    "resources",
    "usage",
}
"""What only tests use of the fake."""


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def parameters(function: object) -> list[tuple[str, str, bool]]:
    """Name, kind and whether it can be left out of every parameter. Coroutines are another kind of function."""
    assert callable(function)
    found = inspect.signature(function).parameters.values()
    made = [(p.name, p.kind.description, p.default is not inspect.Parameter.empty) for p in found]
    return [("async", "", False), *made] if inspect.iscoroutinefunction(function) else made


def test_whatever_the_fake_offers_is_the_real_agents(tmp_path: Path) -> None:
    parts = parts_for(tmp_path / "home", tmp_path / "project")
    real, fake = Agent(parts), FakeAgent(tmp_path)
    try:
        offered = public(fake) - OWN
        assert offered - public(real) - public(type(real)) == set(), "the real agent has no such thing"
        methods = {name for name in offered if inspect.isfunction(getattr(FakeAgent, name, None))}
        assert methods, "there is something to compare"
        for name in sorted(methods):
            assert parameters(getattr(FakeAgent, name)) == parameters(getattr(Agent, name)), name
        values = {name for name in offered - methods if inspect.isfunction(getattr(Agent, name, None))}
        assert values == set(), "a value in the fake, a method of the real one"
    finally:
        parts.store.close()
