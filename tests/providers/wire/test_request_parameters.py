"""What is asked of each provider beside the conversation, as it goes over the wire: output, thinking, nothing else."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.models.messages import user_message
from agent_tui.models.requests import ModelRequest, ModelSpec, SentMessage
from agent_tui.providers.catalog import own_limit, wire_of
from agent_tui.providers.client import ModelClient
from agent_tui.providers.direct import encode
from agent_tui.providers.limits import describe
from agent_tui.providers.request import build_call
from tests.providers import responses_stream as responses
from tests.support import anthropic_stream as anthropic
from tests.support.end_to_end import Product, calls, model
from tests.support.every import every
from tests.support.loopback import Loopback, Reply, chat_stream, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONTENT = {"model", "messages", "input", "contents", "tools", "toolConfig"}
SYSTEM = {"system", "instructions", "systemInstruction"}
ROUTINE = {"stream", "stream_options", "store", "include", "prompt_cache_key", "usage"}
ADAPTIVE = {"type": "adaptive", "display": "summarized"}


def _budget(tokens: int) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": tokens}


def _gemini(output: int, **thinking: Any) -> dict[str, Any]:
    return {"generationConfig": {"maxOutputTokens": output, "thinkingConfig": thinking}}


def _effort(effort: str) -> dict[str, Any]:
    return {"effort": effort, "summary": "auto"}


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("anthropic/claude-opus-4-7", "off", {"max_tokens": 128_000}),
    (
        "anthropic/claude-opus-4-7",
        "low",
        {"max_tokens": 128_000, "thinking": ADAPTIVE, "output_config": {"effort": "low"}},
    ),
    (
        "anthropic/claude-sonnet-4-6",
        "high",
        {"max_tokens": 128_000, "thinking": ADAPTIVE, "output_config": {"effort": "high"}},
    ),
    ("anthropic/claude-sonnet-4-5", "off", {"max_tokens": 64_000}),
    ("anthropic/claude-sonnet-4-5", "high", {"max_tokens": 64_000, "thinking": _budget(24_576)}),
    ("anthropic/claude-sonnet-4-20250514", "low", {"max_tokens": 64_000, "thinking": _budget(2_048)}),
    ("anthropic/claude-3-5-haiku-20241022", "high", {"max_tokens": 8_192}),
    ("openai/gpt-5", "off", {"max_completion_tokens": 128_000, "reasoning_effort": "minimal"}),
    ("openai/gpt-5.1", "off", {"max_completion_tokens": 128_000, "reasoning_effort": "none"}),
    ("openai/gpt-4o", "high", {"max_tokens": 16_384}),
    ("openai/unheard-of", "high", {}),
    ("responses:openai/gpt-5", "high", {"max_output_tokens": 128_000, "reasoning": _effort("high")}),
    ("responses:openai/gpt-5.5", "off", {"max_output_tokens": 128_000, "reasoning": _effort("none")}),
    ("responses:openai/o3", "off", {"max_output_tokens": 100_000, "reasoning": _effort("low")}),
    ("gemini/gemini-2.5-flash", "off", _gemini(65_536, thinkingBudget=0)),
    ("gemini/gemini-2.5-pro", "off", _gemini(65_536, includeThoughts=True, thinkingBudget=128)),
    ("gemini/gemini-2.5-pro", "high", _gemini(65_536, includeThoughts=True, thinkingBudget=24_576)),
    ("openrouter/anthropic/claude-haiku-4.5", "high", {"max_tokens": 64_000, "reasoning": {"effort": "high"}}),
    ("openrouter/openai/gpt-5", "off", {"max_tokens": 128_000, "reasoning": {"effort": "low"}}),
    ("deepseek/deepseek-reasoner", "off", {"max_tokens": 65_536, "thinking": {"type": "disabled"}}),
    ("zai/glm-4.7-flash", "high", {"max_tokens": 128_000, "thinking": {"type": "enabled"}}),
    ("groq/openai/gpt-oss-120b", "high", {"max_tokens": 65_536, "reasoning_effort": "high"}),
    (
        "bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0",
        "low",
        {
            "inferenceConfig": {"maxTokens": 64_000},
            "additionalModelRequestFields": {"thinking": _budget(2_048)},
            "additionalModelResponseFieldPaths": ["/usage/output_tokens_details"],
        },
    ),
]


@pytest.mark.forms(1)
@pytest.mark.parametrize(("name", "effort", "expected"), CASES, ids=[f"{c[0]} {c[1]}" for c in CASES])
async def test_output_and_thinking(
    worker: ModelClient, tmp_path: Path, server: Loopback, name: str, effort: str, expected: dict[str, Any]
) -> None:
    server.serve("*", Reply(chat_stream(["hi"])))
    server.serve("/v1/messages", anthropic.answer(anthropic.text("hi")))
    server.serve("/v1/responses", responses.answer(responses.message("msg_1", "hi")))
    asked = await _asked(worker, tmp_path, server, name, reasoning_effort=effort)
    assert asked == expected


@pytest.mark.forms(1)
@pytest.mark.parametrize("window", [3_000, 5_000, 8_192, 20_000])
async def test_what_is_asked_for_fits(worker: ModelClient, tmp_path: Path, server: Loopback, window: int) -> None:
    server.serve("*", anthropic.answer(anthropic.text("hi")))
    config: dict[str, Any] = {"reasoning_effort": "high", "context_window": window, "max_output": window}
    product = Product(tmp_path, worker, {"m": model("anthropic/claude-sonnet-4-5", server, **config)})
    await product.run("hi")
    if not (sent := calls(server)):
        assert product.code == 1, "no room for an answer: said, not sent"
        return
    body = sent[-1].json
    [step] = product.steps()
    assert 0 < body["max_tokens"] <= window - step["estimated_input_tokens"]
    if "thinking" in body:
        assert 1_024 <= body["thinking"]["budget_tokens"] < body["max_tokens"]


@every(("own", "asked"), [(500, 500), (50_000, 1_000), (-1, 1_000), ("4096", 1_000)])
async def test_a_budget_caps_what_the_models_own_settings_ask_for(own: Any, asked: int) -> None:
    spec = ModelSpec("m", "openai/gpt-4o", extra={"max_tokens": own, "extra_body": {"max_completion_tokens": own}})
    sent = [SentMessage(user_message("hi"), "msg_1")]
    request = ModelRequest("req_1", spec, "ses_1", [], sent, [], 1_000, "off", capped=True)
    kwargs = build_call(request, describe(spec)).arguments
    assert (kwargs["max_tokens"], kwargs["extra_body"]["max_completion_tokens"]) == (asked, asked)


BEYOND = {64_000, -1, -2}
OTHER_NAMES: list[tuple[str, dict[str, Any]]] = [
    ("hosted_vllm/local", {"n_predict": -1}),
    ("hosted_vllm/local", {"extra_body": {"n_predict": 64_000}}),
    ("lm_studio/local", {"max_new_tokens": 64_000}),
    ("hosted_vllm/local", {"sampling_params": {"max_new_tokens": 64_000, "min_p": 0.1}}),
    ("openai/gpt-4o", {"extra_body": {"options": {"num_predict": -2}}}),
    ("gemini/gemini-3-pro", {"generationConfig": {"maxOutputTokens": 64_000, "seed": 1}}),
    ("gemini/gemini-3-pro", {"extra_body": {"generation_config": {"max_output_tokens": 64_000}}}),
    ("ollama_chat/qwen3", {"options": {"num_predict": -1, "num_ctx": 4_096}}),
    ("bedrock/anthropic.claude-opus-4-6-v1:0", {"inferenceConfig": {"maxTokens": 64_000}}),
    ("anthropic/claude-opus-4-6", {"extra_body": {"max_tokens": 64_000}}),
]


@pytest.mark.slow
@every(("name", "own"), OTHER_NAMES)
async def test_a_budget_caps_it_under_every_name(name: str, own: dict[str, Any]) -> None:
    """Whatever the server calls it: no number in the request is above what is left, and none is without end."""
    spec = ModelSpec("m", name, extra=copy.deepcopy(own), api_base="http://127.0.0.1:1/v1")
    request = ModelRequest("req_1", spec, "ses_1", [], [SentMessage(user_message("hi"), "msg_1")], [], 1_000, "off")
    info = describe(spec)
    assert own_limit(spec, info.target) in (0, 64_000)
    free, held = (
        _numbers(encode(call, spec, None).body if wire_of(info.target) else call.arguments)
        for call in (build_call(request, info), build_call(replace(request, capped=True), info))
    )
    assert free & BEYOND and not held & BEYOND and 1_000 in held
    assert spec.extra == own, "what is configured stays"


def _numbers(value: Any) -> set[float]:
    if isinstance(value, dict):
        return {found for inner in value.values() for found in _numbers(inner)}
    return {value} if isinstance(value, (int, float)) else set()


async def _asked(worker: ModelClient, tmp_path: Path, server: Loopback, name: str, **more: Any) -> dict[str, Any]:
    prefix, _, plain = name.rpartition("responses:")
    if prefix or name.startswith("responses:"):
        more["api"] = "responses"
    if name.startswith("gemini/"):
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11}
        candidate = {"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP", "index": 0}
        server.serve("*", sse([{"candidates": [candidate], "usageMetadata": usage}]))
    product = Product(tmp_path, worker, {"m": model(plain, server, "", **more)})
    await product.run("hi")
    body = calls(server)[0].json
    return {key: value for key, value in body.items() if key not in CONTENT | SYSTEM | ROUTINE}
