"""Whatever a history holds, the body that is made of it is one that its API takes: by the vendor's own schema, where
the package with them is installed, and by what the schemas do not say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent_tui.models.messages import Message
from agent_tui.models.requests import ModelSpec, ToolSchema
from agent_tui.providers.catalog import resolve_target, wire_of
from agent_tui.providers.dialects.litellm import arguments
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.direct import HttpCall, encode
from agent_tui.providers.request import build_call
from agent_tui.text.strict_json import write_json
from tests.support import api_rules, hostile_histories, recorded, vendor_schemas, wire
from tests.support.forms import examples, one_of
from tests.support.hostile_histories import OWN

THOUGHTS = (".messages[].reasoning_content", ".messages[].reasoning", ".messages[].reasoning_details")
MORE = (
    *(*THOUGHTS, ".messages[].reasoning_text", ".messages[].reasoning_opaque", ".messages[].extra_content"),
    ".messages[].tool_calls[].extra_content",
)
CACHE = (".messages[].content[].cache_control", ".tools[].cache_control", ".usage", ".reasoning")


@dataclass(frozen=True)
class Case:
    model: str
    rules: str
    schema: str | None = None
    api: str = "chat"
    ids: re.Pattern[str] = api_rules.FREE_ID
    beyond: tuple[str, ...] = ()
    """Fields that the vendor's own pages have and this schema has not."""

    @property
    def spec(self) -> ModelSpec:
        return ModelSpec("test", self.model, api_base="http://127.0.0.1/v1", api=self.api, api_key="k")  # type: ignore[arg-type]


CASES = [
    Case("openai/gpt-5", "chat", "chat", ids=api_rules.OPENAI_ID, beyond=MORE),
    Case("openai/gpt-5", "responses", "responses", "responses"),
    Case("xai/grok-4.3", "responses", "responses", "responses"),
    Case("anthropic/claude-sonnet-4-5", "anthropic", "anthropic"),
    Case("anthropic/claude-opus-4-7", "anthropic", "anthropic"),
    Case("gemini/gemini-2.5-pro", "gemini", "gemini"),
    Case("gemini/gemini-3-pro-preview", "gemini", "gemini"),
    Case("cohere_chat/command-a-reasoning-08-2025", "cohere", "cohere"),
    Case("mistral/magistral-medium-latest", "mistral"),
    Case("deepseek/deepseek-v4", "chat", "chat", beyond=(*MORE, ".thinking")),
    Case("moonshot/kimi-k2.5", "chat", "chat", beyond=(*MORE, ".thinking")),
    Case("openrouter/anthropic/claude-sonnet-4.5", "chat", "chat", ids=api_rules.PLAIN_ID, beyond=(*MORE, *CACHE)),
    Case("openrouter/mistralai/mistral-medium-3.1", "mistral"),
    Case("hosted_vllm/qwen3", "chat", "chat", beyond=MORE),
    Case("ollama_chat/qwen3", "ollama"),
    Case("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", "calls", ids=api_rules.PLAIN_ID),
    Case("vertex_ai/gemini-2.5-pro", "calls", ids=api_rules.PLAIN_ID),
]


def call_of(case: Case, history: Sequence[Message], tools: list[ToolSchema]) -> tuple[OutgoingRequest, HttpCall | None]:
    target = resolve_target(case.spec)
    mine = [replace(m, origin=wire.origin(target)) if m.origin == OWN else m for m in history]
    request = recorded.request_for(case.spec, mine, tools=tools)
    info = replace(recorded.info_for(case.spec, reasoning=True), images=True)
    call = build_call(request, info)
    return call, encode(call, case.spec, "k") if wire_of(target) is not None else None


def refusals(case: Case, history: Sequence[Message], tools: list[ToolSchema]) -> list[str]:
    """Why the API would refuse the body of this history."""
    call, sent = call_of(case, history, tools)
    content = sent.content if sent is not None else through_litellm(call, case.spec)
    found = api_rules.problems(case.rules, content, case.ids, "claude" in case.model)
    if case.schema is not None and vendor_schemas.missing() is None and not found:
        body = api_rules.read_strictly(content)
        for place in case.beyond:
            body = vendor_schemas.without(body, place)
        if case.schema == "chat":
            # Thoughts among content blocks are Mistral's.
            _drop_thoughts(body)
        found = vendor_schemas.checker(case.schema)(body)
    return found


def _drop_thoughts(body: Any) -> None:
    for message in body["messages"]:
        if isinstance(message.get("content"), list):
            message["content"] = [block for block in message["content"] if block["type"] != "thinking"] or ""


def through_litellm(call: OutgoingRequest, spec: ModelSpec) -> bytes:
    """What LiteLLM makes a body of, as far as it is ours to say."""
    _, asked = arguments(call, spec)
    return write_json({name: asked[name] for name in ("messages", "tools") if name in asked}).encode()


@pytest.mark.forms(2)
@pytest.mark.parametrize("case", one_of(CASES, 4), ids=lambda case: f"{case.model}-{case.rules}")
def test_no_hostile_thing_makes_a_body_that_is_refused(case: Case) -> None:
    found = {name: refusals(case, history, tools) for name, history, tools in hostile_histories.talks()}
    assert not {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.slow
@pytest.mark.parametrize("case", one_of(CASES, 8), ids=lambda case: f"{case.model}-{case.rules}")
def test_nothing_that_a_provider_sent_along_makes_a_body_that_it_refuses(case: Case) -> None:
    for name in hostile_histories.NAMES_OF_METADATA:
        assert (name, refusals(case, hostile_histories.odd_metadata(name), [])) == (name, [])


@pytest.mark.slow
@pytest.mark.parametrize("case", one_of(CASES, 8), ids=lambda case: f"{case.model}-{case.rules}")
@settings(max_examples=examples(25, 500), deadline=None, suppress_health_check=list(HealthCheck))
@given(history=hostile_histories.histories(), tools=hostile_histories.tools())
def test_no_hostile_history_makes_a_body_that_is_refused(
    case: Case, history: list[Message], tools: list[ToolSchema]
) -> None:
    assert refusals(case, history, tools) == []
