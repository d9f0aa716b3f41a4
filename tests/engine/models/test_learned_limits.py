"""Limits that a refusal tells of: which are believed, how long, and of which model at which server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.context.accounting.reports import outgrown_text
from agent_tui.engine.accepted import larger_window, outgrown
from agent_tui.engine.models import learn, with_learned
from agent_tui.models.failure import Failure, Overflow
from agent_tui.models.requests import (
    ModelInfo,
    ModelSpec,
    Target,
)
from agent_tui.models.steps import Doubt, Step
from agent_tui.models.usage import Limits, Prices, TokenUsage
from agent_tui.store.store import Store
from tests.support.compaction_world import TARGET
from tests.support.forms import examples

pytestmark = pytest.mark.quick

INFO = ModelInfo(
    ModelSpec("m", "openai/m", api_base="http://127.0.0.1:1", context_window=131_072),
    TARGET,
    Limits(131_072, None, 32_000, "config"),
    Prices(),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "sessions.db") as opened:
        yield opened


@pytest.mark.parametrize(
    ("overflow", "wanted"),
    [
        (Overflow(window=32_768), (32_768, None, 32_000)),
        (Overflow(input=40_000, max_input=32_768), (32_768, None, 32_000)),
        (Overflow(window=16_384), (16_384, None, 16_384)),
        (Overflow(max_output=8_192), (131_072, None, 8_192)),
        # Too small to be one, larger than known, the same but for a token.
        (Overflow(window=512), None),
        (Overflow(window=200_000), None),
        (Overflow(window=131_071), None),
        (Overflow(max_output=16), None),
        (Overflow(max_output=64_000), None),
        (Overflow(input=200_000), None),
    ],
)
def test_which_limits_are_learned(
    store: Store, overflow: Overflow, wanted: tuple[int | None, int | None, int | None] | None
) -> None:
    learned = learn(store, INFO, overflow)
    found = with_learned(store, INFO)
    if wanted is None:
        assert learned is None
        assert found == INFO
        return
    assert learned is not None
    assert (found.limits.window, found.limits.max_input, found.limits.max_output) == wanted
    assert found.limits == learned.limits
    assert "learned from the server on " in (found.limits.origin + found.limits.output_origin)


def test_a_largest_input_is_one_where_the_window_is_split(store: Store) -> None:
    split = replace(INFO, limits=Limits(400_000, 272_000, 128_000, "table"), spec=ModelSpec("gpt", "azure/gpt-5"))
    learned = learn(store, split, Overflow(input=200_000, max_input=128_000))
    assert learned is not None
    assert (learned.limits.window, learned.limits.max_input, learned.limits.source) == (400_000, 128_000, "learned")


def test_a_window_below_what_was_accepted_is_not_learned(store: Store) -> None:
    step = Step("s", "turn", "m", TARGET.provider, TARGET.api, TARGET.model, status="complete")
    step.usage = TokenUsage(60_000, 10)
    assert learn(store, INFO, Overflow(window=32_768), [step]) is None
    assert learn(store, INFO, Overflow(window=65_536), [step]) is not None


def test_a_server_that_was_started_anew_with_less_is_believed_the_second_time(store: Store) -> None:
    overflow = Overflow(input=40_000, window=32_768)

    def step(number: int, accepted: int | None = None) -> Step:
        made = Step(f"s{number}", "turn", "m", TARGET.provider, TARGET.api, TARGET.model, status="complete")
        made.usage = None if accepted is None else TokenUsage(accepted, 10)
        if accepted is None:
            made.status, made.failure = "failed", Failure("context_overflow", "Too long.", overflow=overflow)
        return made

    steps = [step(1, 60_000), step(2)]
    assert learn(store, INFO, overflow, steps) is None, "it took more before"
    assert learn(store, INFO, overflow, [*steps, step(3, 50_000), step(4)]) is None, "and after that"
    learned = learn(store, INFO, overflow, [*steps, step(3, 20_000), step(4)])
    assert learned is not None and learned.limits.window == 32_768


def test_a_server_that_keeps_as_much_as_was_its_largest_report_has_that_as_its_window(store: Store) -> None:
    step = Step("s", "turn", "m", TARGET.provider, TARGET.api, TARGET.model, status="complete")
    step.usage = TokenUsage(16_000, 10)
    learned = learn(store, INFO, Overflow(window=16_000), [step])
    assert learned is not None and learned.limits.window == 16_000


def test_a_window_that_a_server_is_seen_to_exceed_is_forgotten(store: Store) -> None:
    learned = learn(store, INFO, Overflow(window=16_000))
    assert learned is not None
    step = Step("s", "turn", "m", TARGET.provider, TARGET.api, TARGET.model, status="complete")
    for reported, doubt in ((16_010, None), (60_000, "summed")):
        step.usage, step.doubt = TokenUsage(reported, 10), doubt  # type: ignore[assignment]
        assert outgrown(store, learned, step) is None and with_learned(store, INFO).limits.window == 16_000
    step.usage, step.doubt = TokenUsage(30_000, 10), None
    found = outgrown(store, learned, step)
    assert found is not None and found.silent, "its server is asked again"
    assert (found.limits.window, found.limits.source, found.limits.learned) == (131_072, "config", ())
    assert with_learned(store, INFO) == INFO and outgrown(store, found, step) is None
    assert outgrown_text(step, learned.limits, found.limits) == (
        "The server read 30,000 tokens, more than the window learned from it (16,000). Forgot that window."
    )


def taken(tokens: int, output: int = 10, **more: Any) -> Step:
    made = Step("s", "turn", "m", TARGET.provider, TARGET.api, TARGET.model, status="complete")
    made.usage = TokenUsage(tokens, output, more.pop("reasoning", None), **more)
    return made


CLAUDE = ModelInfo(
    ModelSpec("c", "anthropic/claude-unknown-9"),
    Target("anthropic", "messages", "claude-unknown-9", "claude"),
    Limits(200_000, None, 32_000, "assumed"),
    Prices(),
)
GPT = replace(
    CLAUDE,
    spec=ModelSpec("g", "openai/gpt-5"),
    target=Target("openai", "chat", "gpt-5", "gpt"),
    limits=Limits(400_000, 272_000, 128_000, "table"),
)


@pytest.mark.parametrize(
    ("info", "step", "window", "max_input", "max_output"),
    [
        (CLAUDE, taken(212_868), 1_000_000, None, 32_000),
        (INFO, taken(140_000), 262_144, None, 32_000),
        # The configuration wins over what a table says, and what was taken wins over both.
        (replace(CLAUDE, spec=replace(CLAUDE.spec, model="anthropic/claude-opus-4-6", context_window=100_000),
                 target=replace(CLAUDE.target, model="claude-opus-4-6"),
                 limits=Limits(100_000, None, 32_000, "config")), taken(120_000), 1_000_000, None, 32_000),
        (replace(INFO, limits=Limits(8_192, None, None, "server")), taken(9_000), 16_384, None, None),
        # The answer is in the window, too.
        (replace(INFO, limits=Limits(8_192, None, None, "server")), taken(8_000, 800), 16_384, None, None),
        (GPT, taken(280_000), 400_000, None, 128_000),
        (GPT, taken(1_000, 130_000), 400_000, 272_000, 130_000),
        (GPT, taken(1_000, 130_000, reasoning=9_000), None, None, None),
        (replace(GPT, spec=replace(GPT.spec, max_output=128_000)), taken(1_000, 130_000), None, None, None),
        # As good as the window, nothing answered, several rounds, an estimate.
        (CLAUDE, taken(200_050), None, None, None),
        (CLAUDE, taken(250_000, 0), None, None, None),
        (CLAUDE, taken(250_000, context=False), None, None, None),
        (CLAUDE, taken(250_000, source="estimated"), None, None, None),
        # It cuts off what is beyond the window that every request tells it, and may count before.
        (replace(INFO, target=replace(TARGET, provider="ollama"), limits=Limits(8_192, None, None, "chosen")),
         taken(9_000), None, None, None),
        (replace(CLAUDE, limits=Limits()), taken(250_000), None, None, None),
    ],
)  # fmt: skip
def test_what_was_taken_is_the_least_that_a_model_has(
    store: Store, info: ModelInfo, step: Step, window: int | None, max_input: int | None, max_output: int | None
) -> None:
    found = outgrown(store, info, step)
    if window is None:
        assert found is None and store.learned.limits() == []
        return
    assert found is not None and outgrown_text(step, info.limits, found.limits)
    assert (found.limits.window, found.limits.max_input, found.limits.max_output) == (window, max_input, max_output)
    again = with_learned(store, info)
    assert replace(again.limits, learned_at=None) == replace(found.limits, learned_at=None), "the next session has it"
    assert outgrown(store, found, step) is None, "once is enough"
    assert store.learned.forget_all() == 1 and with_learned(store, info) == info


def test_a_doubted_report_raises_nothing(store: Store) -> None:
    step = taken(212_868)
    for doubt in get_args(Doubt):
        step.doubt = doubt
        assert outgrown(store, CLAUDE, step) is None
    step.doubt, step.status = None, "failed"
    assert outgrown(store, CLAUDE, step) is None


def test_a_window_that_was_raised_is_raised_again_refused_and_out_of_date(store: Store) -> None:
    local = replace(INFO, spec=replace(INFO.spec, context_window=None), limits=Limits(8_192, None, None, "server"))
    first = outgrown(store, local, taken(9_000))
    assert first is not None and first.limits.origin.startswith("assumed, as the server took 9,010 tokens on ")
    second = outgrown(store, first, taken(20_000))
    assert second is not None and second.limits.window == 32_768
    refused = learn(store, second, Overflow(window=24_576), [taken(20_000)])
    assert refused is not None and (refused.limits.window, refused.limits.source) == (24_576, "learned")
    assert with_learned(store, local).limits.window == 24_576
    # It says another window now: it was started anew.
    other = replace(local, limits=Limits(4_096, None, None, "server"))
    assert with_learned(store, other) == other and store.learned.limits() == []


@settings(max_examples=examples(10, 500))
@given(st.integers(1, 3_000_000), st.sampled_from([INFO, CLAUDE, GPT]))
def test_a_larger_window_has_room_for_an_answer_beside_what_was_taken(tokens: int, info: ModelInfo) -> None:
    window = larger_window(info, tokens)
    assert window - min(32_000, window // 4) >= tokens


def test_two_refusals_add_up(store: Store) -> None:
    first = learn(store, INFO, Overflow(window=65_536))
    assert first is not None
    second = learn(store, first, Overflow(max_output=4_096))
    assert second is not None
    limits = with_learned(store, INFO).limits
    assert (limits.window, limits.max_output, limits.learned) == (65_536, 4_096, ("window", "max_output"))


@pytest.mark.parametrize(
    "changed",
    [
        replace(INFO, spec=replace(INFO.spec, context_window=65_536), limits=Limits(65_536, None, 32_000, "config")),
        replace(INFO, spec=replace(INFO.spec, max_output=8_192)),
        replace(INFO, limits=Limits(40_960, None, None, "server")),
    ],
)
def test_it_is_forgotten_when_something_else_is_known(store: Store, changed: ModelInfo) -> None:
    learn(store, INFO, Overflow(window=32_768))
    assert with_learned(store, changed) == changed
    assert store.learned.limits() == []
    assert with_learned(store, INFO) == INFO


def test_a_server_that_cannot_be_asked_forgets_nothing(store: Store) -> None:
    local = replace(INFO, spec=ModelSpec("l", "ollama/l"), limits=Limits(40_960, None, None, "server"))
    learn(store, local, Overflow(window=8_192))
    away = with_learned(store, replace(local, limits=Limits()))
    assert (away.limits.window, away.limits.source) == (8_192, "learned")
    assert with_learned(store, local).limits.window == 8_192


def test_it_belongs_to_a_model_at_a_server_and_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as opened:
        session = opened.sessions.create("/p", "m").id
        learn(opened, INFO, Overflow(window=32_768, text="context length is 32768 tokens"))
    with Store.open(path) as opened:
        assert with_learned(opened, INFO).limits.window == 32_768
        (row,) = opened.learned.limits()
        assert (row.model, row.server, row.window, row.text) == (
            "openai/m",
            "http://127.0.0.1:1",
            32_768,
            "context length is 32768 tokens",
        )
        elsewhere = replace(INFO, spec=replace(INFO.spec, api_base="http://127.0.0.1:2"))
        assert with_learned(opened, elsewhere) == elsewhere
        assert opened.learned.forget_all() == 1
        assert with_learned(opened, INFO) == INFO
        assert opened.sessions.get(session).id == session
