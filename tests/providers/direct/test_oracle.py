"""Direct calls against LiteLLM as the oracle: the same requests, sent both ways, arrive as the same requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from agent_tui.models.messages import Message, Origin
from agent_tui.models.requests import ModelRequest
from agent_tui.providers.accumulate import Accumulator
from agent_tui.providers.catalog import DIALECTS, dialect_of, resolve_target
from tests.recordings import needs_recordings
from tests.support import oracle, recorded, wire
from tests.support.forms import LONG, one_of

MODELS = (
    "anthropic/claude-sonnet-4-6",
    "anthropic/claude-sonnet-4-5",
    "gemini/gemini-3-pro-preview",
    "gemini/gemini-2.5-flash",
    "openai/gpt-4.1",
    "openai/gpt-5",
    "openai/qwen3",
    "azure/gpt-4.1",
    "openrouter/anthropic/claude-sonnet-4.6",
    "openrouter/moonshotai/kimi-k2",
    "deepseek/deepseek-reasoner",
    "xai/grok-4",
    "xai/grok-3-mini",
    "groq/openai/gpt-oss-120b",
    "mistral/magistral-medium-latest",
    "moonshot/kimi-k2-thinking",
    "zai/glm-4.6",
    "perplexity/sonar",
    "cohere_chat/command-a-reasoning-08-2025",
    "minimax/MiniMax-M2",
    "dashscope/qwen3-max",
    "ollama_chat/qwen3",
    "ollama_chat/gpt-oss:20b",
    "lm_studio/foo",
    "hosted_vllm/foo",
    "llamafile/foo",
    "custom_openai/x",
    "litellm_proxy/y",
)
RESPONSES = ("openai/gpt-5", "azure/gpt-5-mini", "xai/grok-4.3", "openai/some-own")

ACCEPTED: tuple[tuple[str, str, str], ...] = (
    ("anthropic/", r"\.content\[\]\.title: \"doc\.pdf\" \| -", "the file's name is of use to the model"),
    ("anthropic/", r"\.tools\[\]\.description: - \| \"\"", "an empty description says nothing"),
    ("groq/", r"\.reasoning_content: \"hm\" \| -", "a field that it never sends: its own is reasoning"),
    ("mistral/", r"\.content: \"I will\.\" \| \[\{\"type\": \"thinking\"", "thoughts in a field that it never sends"),
    ("deepseek/", r"\.content: \[\{\"type\": \"(image_url|file)\"", "LiteLLM drops pictures silently"),
    ("xai/grok-3-mini", r"\.reasoning_effort: \"\w+\" \| -", "LiteLLM drops the only model's effort that xAI has"),
    ("cohere", r"\.reasoning_content: - \|", "no field of Cohere's API: thoughts go in content"),
    ("ollama", r"\.images: - \| \[\]", "no pictures"),
    ("ollama", r"\.tool_name: \"read\" \| -", "the field in which Ollama's API names a result's tool"),
    ("ollama_chat/gpt-oss", r"\.think: \"low\" \| \"none\"", "the model takes levels and knows no none"),
    ("openai/some-own", r"\.stream: true \| -", "LiteLLM does not stream Responses of models it does not know"),
)
"""Every difference that is meant: for which models, which, and why. Models begin with the first, differences match the
second."""


OF_RECORDINGS = (("azure/", r"\.input\[\]\.status: \"completed\" \| -", "an item goes back as it came"),)
"""The same of what follows recorded answers."""


def accepted(model: str, difference: str) -> bool:
    known = (*ACCEPTED, *OF_RECORDINGS)
    return any(model.startswith(prefix) and re.search(pattern, difference) for prefix, pattern, _ in known)


@pytest.fixture(scope="module")
def sender() -> Iterator[oracle.Sender]:
    with oracle.Sender() as sender:
        yield sender


def compare(sender: oracle.Sender, request: ModelRequest) -> list[str]:
    mine, theirs = sender.both(request)
    form = oracle.camel if request.spec.model.startswith("gemini/") else (lambda body: body)
    found = list(oracle.differences(form(mine.body), form(theirs.body)))
    if (mine.method, mine.path, mine.headers) != (theirs.method, theirs.path, theirs.headers):
        found.append(f"{mine.method} {mine.path} {mine.headers} | {theirs.method} {theirs.path} {theirs.headers}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_every_request_is_the_one_that_litellm_sends(sender: oracle.Sender, api: str) -> None:
    """Every request by every model in the long form; else each model sends every third, another the others."""
    models = MODELS if api == "chat" else RESPONSES
    wrong: list[str] = []
    used: set[str] = set()
    for number, model in enumerate(models):
        spec = wire.spec(model, api=api)
        requests = list(oracle.matrix(spec))
        for name, request in requests if LONG else requests[number % 3 :: 3]:
            for difference in compare(sender, request):
                if not accepted(model, difference):
                    wrong.append(f"{model}, {name}: {difference}")
                used |= {p for m, p, _ in ACCEPTED if model.startswith(m) and re.search(p, difference)}
    assert not wrong
    expected = {p for m, p, _ in ACCEPTED if any(model.startswith(m) for model in models)}
    unused = expected - used if api == "chat" and LONG else set()
    assert not unused - {r"\.stream: true \| -"}, "an accepted difference that is none any more"


def test_every_direct_provider_is_compared() -> None:
    compared = {model.partition("/")[0] for model in (*MODELS, *RESPONSES)}
    same_code = {
        "cohere": "cohere_chat",
        "ollama": "ollama_chat",
        "openai_like": "custom_openai",
        "vllm": "hosted_vllm",
    }
    assert {n for n, d in DIALECTS.items() if d.wire is not None} - compared == set(same_code)


@needs_recordings
@pytest.mark.parametrize("name", one_of(recorded.names() or ["none"], 6))
def test_what_follows_a_recorded_answer_is_sent_alike(sender: oracle.Sender, name: str) -> None:
    recording = recorded.load(name)
    spec = recorded.spec_for(recording, "http://127.0.0.1")
    target = resolve_target(spec)
    if not dialect_of(target.provider).wire is not None:
        pytest.skip("only LiteLLM speaks to it")
    accumulator = Accumulator(target)
    accumulator.tap.begin(recording["content_type"])
    accumulator.tap.feed(recorded.body(name))
    origin = Origin(target.provider, target.api, target.model)
    answer = recorded.assemble(accumulator.finish(), Message("msg_1", "assistant", origin=origin))
    follow_up = recorded.tool_results(answer) or [recorded.question("And then?", "msg_user2")]
    request = recorded.request_for(spec, [recorded.question(), answer, *follow_up])
    assert [d for d in compare(sender, request) if not accepted(spec.model, d)] == []
