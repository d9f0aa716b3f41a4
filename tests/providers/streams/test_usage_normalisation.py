"""Every known trap in providers' usage reports, fed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from agent_tui.models.usage import TokenUsage
from agent_tui.providers.accumulate import as_it_came, estimated, normalise, rejection, reported
from tests.support.every import every


@pytest.mark.quick
@every(
    ("raw", "expected"),
    [
        pytest.param(
            {
                "input_tokens": 3,
                "output_tokens": 110,
                "cache_read_input_tokens": 3733,
                "cache_creation_input_tokens": 4564,
            },
            TokenUsage(8300, 110, None, 3733, 4564),
            id="anthropic: input excludes cache",
        ),
        pytest.param(
            {"input_tokens": 102, "output_tokens": 630, "output_tokens_details": {"thinking_tokens": 179}},
            TokenUsage(102, 630, 179, None, None),
            id="anthropic: thinking is part of the output",
        ),
        pytest.param(
            {
                "prompt_tokens": 390,
                "completion_tokens": 26,
                "total_tokens": 493,
                "completion_tokens_details": {"reasoning_tokens": 77},
            },
            TokenUsage(390, 103, 77),
            id="xai: output excludes reasoning",
        ),
        pytest.param(
            {"prompt_tokens": 686, "completion_tokens": 16, "total_tokens": 7806},
            TokenUsage(7790, 16),
            id="gateway: prompt without the cached tokens, total tells",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1000}},
            TokenUsage(1010, 5, None, 1000),
            id="gateway: more cached than prompt, no total",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 135,
                "prompt_tokens_details": {"cached_tokens": 100},
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            TokenUsage(110, 25, 20, 100),
            id="both left out",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 20}},
            TokenUsage(10, 25, 20),
            id="more reasoning than output, no total",
        ),
        pytest.param(
            {"prompt_tokens": 353, "completion_tokens": 23, "total_tokens": 376, "prompt_cache_hit_tokens": 256},
            TokenUsage(353, 23, None, 256),
            id="deepseek: cache hits under their own name",
        ),
        pytest.param(
            {"promptTokenCount": 34, "candidatesTokenCount": 469, "totalTokenCount": 1290, "thoughtsTokenCount": 787},
            TokenUsage(34, 1256, 787),
            id="gemini: candidates exclude thoughts",
        ),
        pytest.param(
            {"promptTokenCount": 34, "candidatesTokenCount": 1256, "totalTokenCount": 1290, "thoughtsTokenCount": 787},
            TokenUsage(34, 1256, 787),
            id="vertex: candidates include thoughts",
        ),
        pytest.param(
            {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105, "cachedContentTokenCount": 60},
            TokenUsage(100, 5, None, 60),
            id="gemini: cached content is inside the prompt",
        ),
        pytest.param(
            {
                "billed_units": {"input_tokens": 68, "output_tokens": 8},
                "tokens": {"input_tokens": 1591, "output_tokens": 38},
                "cached_tokens": 992,
            },
            TokenUsage(1591, 38, None, 992),
            id="cohere: billed units are not the context",
        ),
        pytest.param({"prompt_eval_count": 12, "eval_count": 3}, TokenUsage(12, 3), id="ollama"),
        pytest.param(
            {
                "input_tokens": 92,
                "input_tokens_details": {"cached_tokens": 64},
                "output_tokens": 456,
                "output_tokens_details": {"reasoning_tokens": 384},
                "total_tokens": 548,
            },
            TokenUsage(92, 456, 384, 64),
            id="responses",
        ),
        pytest.param(
            {
                "prompt_tokens": 50,
                "completion_tokens": 5,
                "total_tokens": 55,
                "completion_tokens_details": {"reasoning_tokens": -3},
            },
            TokenUsage(50, 5),
            id="an impossible detail is dropped, the report stays",
        ),
        pytest.param(
            {
                "prompt_tokens": 2_168,
                "completion_tokens": 100,
                "total_tokens": 2_268,
                "prompt_tokens_details": {"cached_tokens": 2_161, "cache_write_tokens": 2_161},
            },
            TokenUsage(2_168, 100, None, 2_161),
            id="openrouter with gemini: what was written is also called read, the total says that the prompt is whole",
        ),
        pytest.param(
            {"promptTokenCount": 34, "candidatesTokenCount": 469, "totalTokenCount": 1290},
            TokenUsage(34, 1256, 787),
            id="vertex: thoughts only in the total",
        ),
    ],
)
def test_reports_come_out_with_cache_in_input_and_reasoning_in_output(
    raw: dict[str, Any], expected: TokenUsage
) -> None:
    assert normalise(raw, 200_000) == expected


@dataclass(frozen=True)
class Spent:
    """What a request spent in truth. ``read`` and ``write`` are parts of the input, ``thoughts`` one of the output."""

    input: int
    output: int
    thoughts: int
    read: int
    write: int

    def openai(self, prompt: int, completion: int, total: bool = True, **more: Any) -> dict[str, Any]:
        whole = {"total_tokens": self.input + self.output} if total else {}
        return {"prompt_tokens": prompt, "completion_tokens": completion, **whole, **more}

    @property
    def fresh(self) -> int:
        return self.input - self.read - self.write

    @property
    def said(self) -> int:
        return self.output - self.thoughts

    @property
    def parts(self) -> dict[str, Any]:
        return {
            "prompt_tokens_details": {"cached_tokens": self.read, "cache_write_tokens": self.write},
            "completion_tokens_details": {"reasoning_tokens": self.thoughts},
        }

    @property
    def converse(self) -> dict[str, int]:
        return {
            "outputTokens": self.output,
            "totalTokens": self.input + self.output,
            "cacheReadInputTokens": self.read,
            "cacheWriteInputTokens": self.write,
        }

    @property
    def google(self) -> dict[str, int]:
        return {
            "promptTokenCount": self.input,
            "totalTokenCount": self.input + self.output,
            "cachedContentTokenCount": self.read,
        }


CONVENTIONS: dict[str, Callable[[Spent], dict[str, Any]]] = {
    "OpenAI": lambda s: s.openai(s.input, s.output, **s.parts),
    "OpenAI without a total": lambda s: s.openai(s.input, s.output, total=False, **s.parts),
    "a total of 0": lambda s: s.openai(s.input, s.output, **s.parts) | {"total_tokens": 0},
    "xAI: completion without reasoning": lambda s: s.openai(s.input, s.said, **s.parts),
    "gateway: prompt without the cached": lambda s: s.openai(s.fresh, s.output, **s.parts),
    "gateway: both": lambda s: s.openai(s.fresh, s.said, **s.parts),
    "gateway: cached in units, not told": lambda s: s.openai(s.input - s.read // 64 * 64, s.output),
    "gateway: the cached are in no number": lambda s: s.openai(
        s.fresh, s.output, **s.parts, total_tokens=s.fresh + s.output, total=False
    ),
    "OpenRouter with Gemini: written are read": lambda s: s.openai(
        s.input, s.output, prompt_tokens_details={"cached_tokens": s.read, "cache_write_tokens": s.read}
    ),
    "DeepSeek": lambda s: s.openai(
        s.input, s.output, prompt_cache_hit_tokens=s.read, prompt_cache_miss_tokens=s.input - s.read
    ),
    "Google's OpenAI endpoint: thoughts not told": lambda s: s.openai(s.input, s.said),
    "Google's OpenAI endpoint, cached": lambda s: s.openai(
        s.input, s.said, prompt_tokens_details={"cached_tokens": s.read}
    ),
    "Responses": lambda s: {
        "input_tokens": s.input,
        "output_tokens": s.output,
        "total_tokens": s.input + s.output,
        "input_tokens_details": {"cached_tokens": s.read, "cache_write_tokens": s.write},
        "output_tokens_details": {"reasoning_tokens": s.thoughts},
    },
    "Anthropic": lambda s: {
        "input_tokens": s.fresh,
        "output_tokens": s.output,
        "cache_read_input_tokens": s.read,
        "cache_creation_input_tokens": s.write,
    },
    "Gemini": lambda s: {**s.google, "candidatesTokenCount": s.said, "thoughtsTokenCount": s.thoughts},
    "Vertex: candidates with thoughts": lambda s: {
        **s.google,
        "candidatesTokenCount": s.output,
        "thoughtsTokenCount": s.thoughts,
    },
    "Vertex: thoughts not told": lambda s: {**s.google, "candidatesTokenCount": s.said},
}


@pytest.mark.quick
@pytest.mark.versions
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_whatever_convention_a_report_keeps_its_input_and_output_are_the_true_ones(convention: str) -> None:
    random = Random(convention)
    for _ in range(500):
        read, write, fresh = random.randint(1_000, 90_000), random.randint(0, 40_000), random.randint(5, 900)
        if "are in no number" in convention:
            # Told by what cannot be: more was read than the prompt has.
            read += fresh
        said, thoughts = random.randint(1_000, 2_000), random.randint(64, 990)
        spent = Spent(read + write + fresh, said + thoughts, thoughts, read, write)
        usage = normalise(CONVENTIONS[convention](spent), 200_000, hidden_thoughts="Google" in convention)
        assert usage is not None
        assert (usage.input, usage.output) == (spent.input, spent.output), spent
        assert usage.reasoning in (None, thoughts), "dropped from the next input as that many"


@pytest.mark.quick
def test_a_rest_that_nobody_explains_is_output_and_of_a_model_that_hides_its_thoughts_always() -> None:
    hidden = {"prompt_tokens": 2_035, "completion_tokens": 51, "total_tokens": 2_035 + 51 + 3_062}
    assert normalise(hidden) == TokenUsage(2_035, 3_113, 3_062)
    units = {"prompt_tokens": 2_035, "completion_tokens": 51, "total_tokens": 2_035 + 51 + 48 * 64}
    assert normalise(units) == TokenUsage(2_035 + 48 * 64, 51)
    assert normalise(units, hidden_thoughts=True) == TokenUsage(2_035, 51 + 48 * 64, 48 * 64)


@pytest.mark.quick
@every(
    "raw",
    [
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": -5, "completion_tokens": 3},
        {"prompt_tokens": 5, "completion_tokens": -3},
        {"prompt_tokens": 400_001, "completion_tokens": 3},
        {"prompt_tokens": 10, "completion_tokens": 500_000},
        {"prompt_tokens": float("nan"), "completion_tokens": 1},
        {"prompt_tokens": None, "completion_tokens": 7},
        {"something": "else"},
    ],
)
def test_what_cannot_be_true_is_rejected_and_says_why(raw: dict[str, Any]) -> None:
    assert normalise(raw, 200_000) is None
    assert rejection(raw, 200_000)


@pytest.mark.quick
def test_without_a_report_there_is_nothing_to_say_about_it() -> None:
    assert normalise({}, 200_000) is None and rejection({}, 200_000) is None
    assert rejection({"prompt_tokens": 10, "completion_tokens": 1}, 200_000) is None


@pytest.mark.quick
@every(
    "raw",
    [
        {"input_tokens": 5, "output_tokens": 3, "server_tool_use": {"web_search_requests": 2}},
        {"input_tokens": 5, "output_tokens": 3, "iterations": [{}, {}]},
        {"promptTokenCount": 5, "candidatesTokenCount": 3, "toolUsePromptTokenCount": 100, "totalTokenCount": 108},
        {"prompt_tokens": 5, "completion_tokens": 3, "num_sources_used": 4},
        {"input_tokens": 5, "output_tokens": 3, "server_side_tool_usage_details": {"web_search_calls": 1}},
    ],
)
def test_sums_over_hidden_calls_are_not_the_size_of_a_context(raw: dict[str, Any]) -> None:
    usage = normalise(raw, 200_000)
    assert usage is not None
    assert not usage.context and not usage.anchors


@pytest.mark.quick
def test_tools_at_the_provider_make_any_report_a_sum() -> None:
    usage = normalise({"input_tokens": 5, "output_tokens": 3}, hidden_calls=True)
    assert usage is not None and not usage.anchors


@pytest.mark.quick
def test_an_estimate_never_anchors() -> None:
    made = estimated(41)
    assert (made.input, made.output, made.source, made.anchors) == (0, 11, "estimated", False)


@pytest.mark.quick
@every(
    ("raw", "told"),
    [
        (
            {
                "input_tokens": 3,
                "output_tokens": 1,
                "cache_creation_input_tokens": 30,
                "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
            },
            {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 1,
                "prompt_cache_hit_tokens": 64,
                "prompt_cache_miss_tokens": 36,
            },
            {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
        ),
        ({"prompt_tokens": 100, "completion_tokens": 1, "cache_discount": -0.002}, {"cache_discount": -0.002}),
        (
            {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 90,
                "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 90}, {"modality": "IMAGE"}, "odd"],
            },
            {"cacheTokensDetails TEXT": 90},
        ),
        ({"prompt_tokens": 100, "completion_tokens": 1, "prompt_cache_miss_tokens": float("nan")}, None),
        ({"prompt_tokens": 100, "completion_tokens": 1}, None),
    ],
)
def test_what_else_is_said_of_the_cache_is_kept(raw: dict[str, Any], told: dict[str, float] | None) -> None:
    usage = normalise(raw)
    assert usage is not None and usage.told == told


@pytest.mark.quick
def test_an_absurd_report_is_kept_as_it_came_and_a_report_of_nothing_bills_nothing() -> None:
    absurd = {"prompt_tokens": 900_000, "completion_tokens": 5, "odd": [1, {"name": "x"}], "share": float("nan")}
    assert normalise(absurd, 100_000) is None
    kept = reported(absurd)
    assert kept == TokenUsage(900_000, 5) and kept is not None
    assert kept.raw == {**absurd, "share": None}, "it goes on as JSON that everybody reads"
    for nothing in (
        {"prompt_tokens": 0, "completion_tokens": 3},
        {"prompt_tokens": 9, "completion_tokens": -3},
        {"a": 1},
    ):
        assert reported(nothing) is None and as_it_came(nothing) == nothing
    assert as_it_came({}) is None and as_it_came({"a": "b" * 9_000}) is None
