"""Every request that we make, against the schema that its vendor publishes, where a field that the schema does not name
is an error; so are the next requests after each recorded answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from agent_tui.models.messages import Message
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.accumulate import Accumulator
from agent_tui.providers.catalog import resolve_target, wire_of
from tests.recordings import needs_recordings
from tests.support import recorded, vendor_schemas, wire
from tests.support.real_talks import body_of, requests

pytestmark = pytest.mark.skipif(vendor_schemas.missing() is not None, reason=f"schemas: {vendor_schemas.missing()}")

THOUGHTS = ".messages[].reasoning_content"
"""Thoughts go back in the field they came in: it is of those who speak OpenAI's language, not of OpenAI."""
SWITCH = ".thinking"


@dataclass(frozen=True)
class Case:
    model: str
    schema: str = "chat"
    beyond: tuple[str, ...] = ()
    """Fields that the vendor's own pages have and this schema has not."""

    @property
    def spec(self) -> ModelSpec:
        api: Any = "responses" if self.schema == "responses" else "chat"
        return ModelSpec("test", self.model, api_base="http://127.0.0.1/v1", api=api, api_key="k")


CASES = [
    Case("openai/gpt-5", beyond=(THOUGHTS,)),
    Case("openai/gpt-4o", beyond=(THOUGHTS,)),
    Case("openai/gpt-5", "responses"),
    Case("openai/gpt-4.1", "responses"),
    Case("xai/grok-4.3", "responses"),
    Case("anthropic/claude-sonnet-4-5", "anthropic"),
    Case("anthropic/claude-opus-4-7", "anthropic"),
    Case("anthropic/nobody-knows", "anthropic"),
    # Of a beta that is newer than the schema; each case was tried live in pydantic-ai's issue 7984.
    Case("anthropic/claude-fable-5-1", "anthropic beta", (".thinking.block_binding",)),
    Case("gemini/gemini-2.5-pro", "gemini"),
    Case("gemini/gemini-3-pro-preview", "gemini"),
    Case("cohere_chat/command-a-reasoning-08-2025", "cohere"),
    # api-docs.deepseek.com/guides/thinking_mode
    Case("deepseek/deepseek-v4", beyond=(THOUGHTS, SWITCH)),
    # docs.z.ai/guides/capabilities/thinking-mode, platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
    Case("zai/glm-4.7", beyond=(THOUGHTS, SWITCH)),
    Case("moonshot/kimi-k2.5", beyond=(THOUGHTS, SWITCH)),
    Case("xai/grok-4", beyond=(THOUGHTS,)),
    Case("groq/openai/gpt-oss-120b", beyond=(THOUGHTS,)),
    Case("mistral/magistral-medium-latest"),
    # openrouter.ai/docs/features/prompt-caching, …/use-cases/reasoning-tokens, …/use-cases/usage-accounting
    Case(
        "openrouter/anthropic/claude-sonnet-4.5",
        beyond=(THOUGHTS, ".reasoning", ".usage", ".messages[].content[].cache_control", ".tools[].cache_control"),
    ),
    Case("hosted_vllm/qwen3", beyond=(THOUGHTS,)),
    Case("llamafile/any", beyond=(THOUGHTS,)),
]


@cache
def bodies(case: Case) -> dict[str, dict[str, Any]]:
    return {name: body_of(request) for name, request in requests(case.spec)}


def problems(body: dict[str, Any], case: Case) -> list[str]:
    for place in case.beyond:
        body = vendor_schemas.without(body, place)
    return vendor_schemas.checker(case.schema)(body)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.model}, {case.schema}")
def test_every_request_is_what_the_vendor_says_it_takes(case: Case) -> None:
    found = {name: wrong for name, body in bodies(case).items() if (wrong := problems(body, case))}
    assert not found


@pytest.mark.parametrize("case", [case for case in CASES if case.beyond], ids=lambda case: case.model)
def test_a_field_beyond_a_schema_is_sent_and_is_beyond_it(case: Case) -> None:
    for place in case.beyond:
        used = [body for body in bodies(case).values() if vendor_schemas.without(body, place) != body]
        assert used, f"{place} is sent no longer"
        others = replace(case, beyond=tuple(one for one in case.beyond if one != place))
        assert problems(used[0], others), f"{place} is in the schema now"


_RECORDED = {
    "anthropic": "anthropic",
    "openai-responses": "responses",
    "openai-chat": "chat",
    "gemini": "gemini",
    "cohere": "cohere",
}


@needs_recordings
@pytest.mark.parametrize("name", recorded.names() or ["none"])
def test_the_request_after_each_recorded_answer_is_one_that_the_vendor_takes(name: str) -> None:
    recording = recorded.load(name)
    spec = replace(recorded.spec_for(recording, "http://127.0.0.1"), extra={})
    schema = _RECORDED.get(recording["family"])
    target = resolve_target(spec)
    if schema is None or wire_of(target) is None:
        pytest.skip("called through LiteLLM alone")
    if recording["provider"] == "mistral":
        pytest.skip("thoughts among content blocks: Mistral's own schema is not in the package")
    accumulator = Accumulator(target)
    accumulator.tap.begin(recording["content_type"])
    accumulator.tap.feed(recorded.body(name))
    answer = recorded.assemble(accumulator.finish(), Message("a", "assistant", origin=wire.origin(target)))
    after = recorded.tool_results(answer) or [recorded.question("And then?", "u2")]
    body = body_of(recorded.request_for(spec, [recorded.question(), answer, *after]))
    case = next((c for c in CASES if c.schema == schema and c.model.split("/")[0] == spec.model.split("/")[0]), None)
    beyond = (*(case.beyond if case else ()), *_BACK.get(recording["provider"], ()))
    assert not problems(body, Case(spec.model, schema, beyond))


_BACK = {
    # What came with the answer and goes back with it.
    "openrouter": (".messages[].reasoning_details", ".messages[].reasoning"),
    "groq": (".messages[].reasoning",),
    "charm-hyper": (THOUGHTS,),
}
