"""What every request begins with: small, and the same whatever the mode."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import PermissionsConfig, SandboxConfig
from agent_tui.context.prompt import SYSTEM_PROMPT
from agent_tui.engine.notes import MEANINGS, NOBODY, NOBODY_PLANS, SUBAGENT, ToldMode
from agent_tui.tools.sandbox.backends import Landlock
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from tests.benchmarks.tool_tokens import encoding
from tests.support.every import every
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick

MOST = 700
MOST_OF_A_MODE = 120


def tokens(text: str) -> int:
    counter = encoding()
    if counter is None:
        pytest.skip("no tokenizer can be had")
    return len(counter.encode(text))


def test_the_prompt_keeps_its_budget() -> None:
    assert tokens(SYSTEM_PROMPT) < MOST


@every("mode", MEANINGS)
@every("network", ["ask", "registries", "allow"])
@every("more", ["", NOBODY, NOBODY_PLANS, SUBAGENT])
def test_what_is_told_of_a_mode_keeps_its_budget(tmp_path: Path, mode: Any, network: Any, more: str) -> None:
    jail = Jail(
        SandboxConfig(), tmp_path, tmp_path / "cache", sandbox=Sandbox(Landlock(6), frozenset({"look", "work"}))
    )
    permissions = permissions_of(tmp_path, PermissionsConfig(mode), network=network)
    text = ToldMode(permissions, jail=jail).text
    assert ("sandbox: they read" in text) is (mode != "bypass")
    assert tokens(f"{text} {more}") <= MOST_OF_A_MODE + (tokens(more) if more else 0)


def test_what_is_told_of_the_place_is_what_holds_there(tmp_path: Path) -> None:
    def told(mode: Any, sandbox: Sandbox, **more: Any) -> str:
        permissions = permissions_of(tmp_path, PermissionsConfig(mode), **more)
        return ToldMode(permissions, jail=Jail(SandboxConfig(), tmp_path, tmp_path / "cache", sandbox=sandbox)).text

    held = Sandbox(Landlock(6, ports=True), frozenset({"look", "work"}))
    builds = "write only $TMPDIR and build folders that git ignores, have no network; on 127.0.0.1 each"
    assert builds in told("ask", held)
    assert "write only $TMPDIR, have no network" in told("plan", held)
    portless = Sandbox(Landlock(6), frozenset({"look", "work"}))
    assert "127.0.0.1" not in told("ask", portless) + told("auto", portless)
    assert "write only the project, added folders and $TMPDIR, have no network; on 127.0.0.1 they" in told("auto", held)
    assert "no network but package registries" in told("auto", held, network="registries")
    assert "sandbox: they" not in told("auto", Sandbox())


@every(
    "said",
    [
        "Pipes, chains, loops",
        "`python -c` are fine",
        "starts in the working directory",
        "Keep going until",
        "A subagent",
        "`background: true`, not with `&`",
    ],
)
def test_the_prompt_says_what_the_judge_and_the_tools_want(said: str) -> None:
    assert said in SYSTEM_PROMPT


def test_the_prompt_names_no_tool_that_some_models_do_not_get() -> None:
    named = set(re.findall(r"[a-z_]+", SYSTEM_PROMPT))
    assert not named & {"edit", "apply_patch"}, "a model gets one of the two"


def test_the_mode_is_not_in_the_prompt() -> None:
    assert not any(meaning in SYSTEM_PROMPT for meaning in (*MEANINGS.values(), NOBODY, NOBODY_PLANS))
