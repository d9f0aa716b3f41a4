"""What every request begins with: small, and the same whatever the mode."""

from __future__ import annotations

import re

import pytest

from agent_tui.context.project.prompt import SYSTEM_PROMPT
from agent_tui.engine.project.told_mode import MEANINGS, NOBODY, NOBODY_PLANS, SUBAGENT
from tests.benchmarks.tool_tokens import encoding

MOST = 700
MOST_OF_A_MODE = 80


def tokens(text: str) -> int:
    counter = encoding()
    if counter is None:
        pytest.skip("no tokenizer can be had")
    return len(counter.encode(text))


def test_the_prompt_keeps_its_budget() -> None:
    assert tokens(SYSTEM_PROMPT) < MOST


@pytest.mark.parametrize("mode", MEANINGS)
@pytest.mark.parametrize("more", ["", NOBODY, NOBODY_PLANS, SUBAGENT])
def test_what_is_told_of_a_mode_keeps_its_budget(mode: str, more: str) -> None:
    assert tokens(f"Permission mode: {mode}. {MEANINGS[mode]} {more}") <= MOST_OF_A_MODE + (tokens(more) if more else 0)


@pytest.mark.parametrize(
    "said",
    [
        "One plain command per call",
        "git commit -F",
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
