"""Recorded traffic through the whole product as scripts use it: configuration, headless runs on one session with a
restart between them, the exported session, the bodies of the requests, and the accounting."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent_tui.config import ModelConfig
from agent_tui.providers.client import ModelClient
from tests.recordings import needs_recordings
from tests.support import recorded
from tests.support.end_to_end import (
    Product,
    calls,
    chain,
    export_differences,
    first_steps,
    model,
    reply,
    resent_differences,
)
from tests.support.forms import LONG
from tests.support.loopback import Loopback

pytestmark = [needs_recordings, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(autouse=True)
def recorded_numbers_are_of_other_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is served here was counted for another system prompt and other tools than those that are sent: that a report
    is several times off the estimate proves nothing. Whether it is believed otherwise is tested with the calculator."""
    monkeypatch.setattr("agent_tui.context.accounting.believed.DOUBTED", 1_000_000)
    monkeypatch.setattr("agent_tui.context.accounting.believed.WAYS", ())


class Way(NamedTuple):
    """A way to configure the model of a recording: its prefix, the paths its address may have, further settings."""

    prefix: str
    paths: tuple[str, ...] = ("", "/", "/v1", "/v1/")
    more: dict[str, Any] = {}


RESPONSES = {"api": "responses"}
WAYS: dict[str, tuple[Way, ...]] = {
    "anthropic": (Way("anthropic/", ("", "/", "/v1", "/v1/", "/gateway/v1")), Way("", ("",))),
    "azure": (
        Way("azure/", ("", "/openai/v1", "/openai/v1/", "/openai"), RESPONSES),
        Way("azure/", ("", "/openai/v1"), {**RESPONSES, "extra": {"api_version": "preview"}}),
        Way("azure/responses/", ("",)),
        Way("openai/", ("/openai/v1", "/openai/v1/"), RESPONSES),
    ),
    "bedrock": (Way("bedrock/", ("", "/")), Way("bedrock/converse/", ("",))),
    "charm-hyper": (Way("openai/"), Way("hosted_vllm/", ("/v1",)), Way("custom_openai/", ("/v1",))),
    "cohere": (Way("cohere/", ("", "/v2")), Way("cohere_chat/", ("", "/", "/v2", "/v2/", "/v2/chat", "/v1"))),
    "deepseek": (Way("deepseek/", ("", "/", "/v1", "/beta")), Way("openai/")),
    "google": (Way("gemini/", ("", "/", "/v1beta", "/v1beta/", "/v1")),),
    "groq": (Way("groq/", ("", "/", "/openai/v1", "/openai/v1/")), Way("openai/", ("/openai/v1",))),
    "mistral": (Way("mistral/"), Way("openai/", ("/v1",))),
    "openai-chat": (Way("openai/"), Way("azure/", ("",), {"api": "chat"})),
    "openai-responses": (Way("openai/", ("", "/", "/v1", "/v1/responses"), RESPONSES), Way("openai/responses/")),
    "openrouter": (Way("openrouter/", ("", "/", "/api/v1", "/api/v1/")), Way("openai/", ("/api/v1",))),
    "xai": (Way("xai/"), Way("openai/", ("/v1", "/v1/chat/completions"))),
    "zai": (
        Way("zai/", ("", "/", "/api/coding/paas/v4", "/api/paas/v4/")),
        Way("openai/", ("/api/coding/paas/v4",)),
    ),
}


def _ways(name: str) -> tuple[Way, ...]:
    recording = recorded.load(name)
    return WAYS.get(recording["provider"]) or WAYS[recording["family"]]


def _cases() -> list[Any]:
    """Every recording in the first way, every other way with the first recording that has it; every second of them
    only in the long form."""
    cases: list[Any] = []
    done, made = set(), 1
    for name in first_steps():
        for n, way in enumerate(_ways(name)):
            for path in way.paths:
                what = (way.prefix, path, str(way.more))
                if (n or path != way.paths[0]) and what in done:
                    continue
                done.add(what)
                made += 1
                if made % 2 and not LONG:
                    continue
                label = f"{name}:{way.prefix}{path}{'+' + '+'.join(way.more) if way.more else ''}"
                cases.append(
                    pytest.param(name, way, path, id=label, marks=[pytest.mark.slow] if len(cases) % 9 else [])
                )
    return cases


async def _run_chain(product: Product, server: Loopback, names: list[str]) -> None:
    """One run for each recorded answer and one more, each of which begins by reading the session from the store."""
    server.serve("*", *[reply(name) for name in names], reply(names[-1]))
    for number in range(len(names) + 1):
        await product.run("What is the weather?" if number == 0 else "Go on.")
        assert product.code in (0, 53), [s["failure"] for s in product.steps()]
        assert len(calls(server)) == number + 1


@pytest.mark.parametrize(("name", "way", "path"), _cases() or [pytest.param("none", Way(""), "")])
async def test_exported_and_sent_back_exactly(
    worker: ModelClient, tmp_path: Path, name: str, way: Way, path: str
) -> None:
    names = chain(name)
    with Loopback(posts_only=True) as server:
        config = model(way.prefix + recorded.load(name)["model"], server, path, **way.more)
        product = Product(tmp_path, worker, {"tested": config})
        await _run_chain(product, server, names)
        bodies = [request.json for request in calls(server)]
        answers, steps = product.answers(), product.steps()
        for n, step_name in enumerate(names):
            assert export_differences(step_name, answers[n], steps[n]) == [], step_name
            assert resent_differences(step_name, bodies[n + 1]) == [], step_name
            assert "_skip_mcp_handler" not in bodies[n], "meant for LiteLLM alone"
            assert "temperature" not in bodies[n]
        context = await product.context()
    assert context["calculation"]["last_input_tokens"] == steps[-1]["usage"]["input_tokens"]
    assert context["total"] == sum(row["tokens"] for row in context["rows"])


def _config(name: str, server: Loopback) -> ModelConfig:
    way = _ways(name)[0]
    return model(way.prefix + recorded.load(name)["model"], server, way.paths[0], **way.more)
