"""The tools a model is sent are those it is trained on, and change with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import ModelConfig, PermissionsConfig, Settings, ToolsConfig
from agent_tui.models.requests import Counter, ModelInfo, ModelSpec, Target
from agent_tui.providers.demo import DemoProvider
from tests.support.agents import parts_for, running

pytestmark = pytest.mark.quick


class TwoMakers(DemoProvider):
    """The demo under two names: one of a family that is trained on patches."""

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        info = await super().describe(spec)
        model, family = ("gpt-5-codex", "gpt") if spec.key == "other" else ("claude-sonnet-4-6", "claude")
        return replace(info, target=Target("demo", "demo", model, family))


def make(counter: Counter) -> TwoMakers:
    return TwoMakers(counter, None, pace=0.0)


async def test_another_model_gets_its_own_way_to_change_files(tmp_path: Path) -> None:
    settings = Settings(
        models={"other": ModelConfig("demo"), "one": ModelConfig("demo")},
        default_model="one",
        permissions=PermissionsConfig(mode="auto"),
    )
    async with running(parts_for(tmp_path / "h", tmp_path / "p", provider=make, settings=settings)) as (agent, _):
        await agent.context.ready()
        names = [row[0] for row in agent.project.tools()]
        assert "edit" in names and "apply_patch" not in names
        before = agent.runtime.request_prefix.fingerprint
        await agent.models.switch("other")
        names = [row[0] for row in agent.project.tools()]
        assert "apply_patch" in names and "edit" not in names and "write" in names
        assert agent.runtime.request_prefix.fingerprint != before, "another beginning: nothing of it is in a cache"
        await agent.models.switch("one")
        assert "edit" in [row[0] for row in agent.project.tools()]
        assert agent.runtime.request_prefix.fingerprint == before


async def test_who_switches_edit_off_gets_no_patches_either(tmp_path: Path) -> None:
    for disabled, expected in (["edit"], set()), (["apply_patch"], {"edit"}):
        settings = Settings(models={"other": ModelConfig("demo")}, default_model="other")
        settings = replace(settings, tools=ToolsConfig(disabled=disabled))
        home = tmp_path / disabled[0]
        async with running(parts_for(home, tmp_path / "p", provider=make, settings=settings)) as (agent, _):
            await agent.context.ready()
            sent = {row[0] for row in agent.project.tools() if row[1] == "builtin"}
            assert sent & {"edit", "apply_patch"} == expected
