"""The levels of thinking that are offered are those that make a difference to the model."""

from __future__ import annotations

import pytest

from agent_tui.engine.control.efforts import levels
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest, ModelSpec
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog.targets import resolve_target


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
    assert found[f"{wanted}*"].endswith("it cannot be switched off")
    assert offered("openai/gpt-5", "high")["off"] == "as little as it can: it cannot be switched off"
    assert offered("openai/gpt-5.1", "high")["off"] == "does not think"


@pytest.mark.parametrize(("wanted", "names"), [("medium", ["off", "medium*"]), ("off", ["off*", "low"])])
def test_a_switch_has_two_levels(wanted: Effort, names: list[str]) -> None:
    assert list(offered("deepseek/deepseek-v4-flash", wanted)) == names


def test_a_model_without_levels_has_one() -> None:
    assert offered("groq/llama-3.3-70b", "medium", reasoning=False) == {
        "medium*": "the only one: this model takes no level"
    }
