"""The levels of thinking that are offered are those that make a difference to the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.commands import registry
from agent_tui.commands.registry import Text
from agent_tui.config import ModelConfig, Settings
from agent_tui.engine.models import EFFORTS, levels, setting_problem
from agent_tui.models.events import Notice
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest, ModelSpec
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import resolve_target
from tests.support.agents import parts_for, running
from tests.support.every import every


def offered(model: str, wanted: Effort, reasoning: bool | None = True) -> dict[str, str]:
    """The names of the levels with their words; the one in force has a star."""
    spec = ModelSpec(model, model)
    info = ModelInfo(spec, resolve_target(spec), Limits(), Prices(), reasoning)
    found = levels(ModelRequest("r", spec, "s", [], [], [], 64_000, wanted), info, wanted)
    return {choice.effort + "*" * choice.current: choice.words for choice in found}


def test_a_model_with_budgets_says_how_much_each_is() -> None:
    found = offered("anthropic/claude-sonnet-4-5", "medium")
    assert list(found) == ["off", "low", "medium*", "high"]
    assert found["off"] == "does not think"
    assert found["low"] == "thinks up to 2k tokens a step"


@pytest.mark.parametrize("wanted", ["off", "low"])
def test_what_cannot_be_switched_off_says_so(wanted: Effort) -> None:
    found = offered("openai/o3", wanted)
    assert list(found) == [f"{wanted}*", "medium", "high"]
    assert found[f"{wanted}*"].endswith("it cannot be turned off")
    assert offered("openai/gpt-5", "high")["off"] == "as little as possible: it cannot be turned off"
    assert offered("openai/gpt-5.1", "high")["off"] == "does not think"


@pytest.mark.parametrize(("wanted", "names"), [("medium", ["off", "medium*"]), ("off", ["off*", "low"])])
def test_a_switch_has_two_levels(wanted: Effort, names: list[str]) -> None:
    assert list(offered("deepseek/deepseek-v4-flash", wanted)) == names


def test_a_model_without_levels_has_one() -> None:
    assert offered("groq/llama-3.3-70b", "medium", reasoning=False) == {
        "medium*": "groq/llama-3.3-70b has no levels of thinking"
    }
    (words,) = offered("openai/mine", "off", reasoning=None).values()
    assert words == "openai/mine is not known to think, so no level is set"


@every("model", ["anthropic/claude-sonnet-4-5", "openai/o3", "openai/gpt-5", "deepseek/deepseek-v4-flash"])
def test_every_name_is_one_of_a_level_and_says_what_it_is_for_the_model(model: str) -> None:
    spec = ModelSpec(model, model)
    info = ModelInfo(spec, resolve_target(spec), Limits(), Prices(), True)
    for wanted in EFFORTS:
        found = levels(ModelRequest("r", spec, "s", [], [], [], 64_000, wanted), info, wanted)
        assert sorted(name for level in found for name in level.names) == sorted(EFFORTS)
        (current,) = (level for level in found if level.current)
        assert current.effort == wanted and not current.only
        told, problem = (
            current.told(wanted),
            setting_problem(replace(info, spec=replace(spec, reasoning_effort=wanted))),
        )
        if wanted == "off":
            assert (told == "off") == (problem is None) == ("turned off" not in told and "same as low" not in told)
        else:
            assert problem is None and told.startswith(f"{wanted} (")


async def test_a_level_that_the_model_has_not_is_one_line_and_not_taken(tmp_path: Path) -> None:
    """Typed, chosen, completed or configured: what there is not, is not offered and not kept."""
    settings = Settings(default_model="plain", models={"plain": ModelConfig("demo", reasoning_effort="high")})
    async with running(parts_for(tmp_path / "home", tmp_path / "p", settings=settings)) as (agent, seen):
        await agent.context.ready()
        (warned,) = [n.text for n in seen.of(Notice) if n.code == "thinking_setting"]
        assert warned == 'models.plain.reasoning_effort = "high" changes nothing: plain has no levels of thinking.'
        for line, error in (("/thinking", False), ("/thinking off", True), ("/thinking high", True)):
            said = await registry.run(agent, line)
            assert isinstance(said, Text) and said.error is error
            assert said.text.startswith("plain has no levels of thinking: ") and "\n" not in said.text
        assert agent.conversation.info.state.thinking is None and registry.complete(agent, "/thinking ") == []
        await agent.sessions.clear()
        await agent.context.ready()
        assert len([n for n in seen.of(Notice) if n.code == "thinking_setting"]) == 1, "told once"
