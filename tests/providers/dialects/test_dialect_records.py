"""All that is known of a provider is its record: no code goes by its name, and a new one is one record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import aclosing
from types import MappingProxyType

import pytest

from agent_tui.models.messages import Message, ReasoningPart, user_message
from agent_tui.models.requests import ModelSpec, StreamItem
from agent_tui.providers import calling as call
from agent_tui.providers import catalog
from agent_tui.providers.catalog import DIALECTS, MODEL_FAMILIES, RETENTION
from agent_tui.providers.dialects import table
from agent_tui.providers.dialects.chat import WIRE as CHAT
from agent_tui.providers.dialects.record import Dialect
from agent_tui.providers.direct import Connections
from agent_tui.providers.limits import describe
from agent_tui.urls import is_loopback
from tests.providers.dialects.named_providers import MAY_NAME, NAMES, comparisons
from tests.support import recorded, wire
from tests.support.every import every
from tests.support.loopback import CHAT_USAGE, Loopback, Reply, chat_chunk, chat_stream, json_reply, sse
from tests.support.model_calls import Answer, environment, make_request
from tests.support.sources import matching

RECORDS = ("providers/dialects/", "providers/catalog.py")
ALLOWED: Mapping[str, str] = MappingProxyType(
    {
        "context/tokens.py": "the table of tokenizer constants, a record each of its own",
        "providers/server_facts.py": "what servers call themselves in their lists of models",
        "providers/litellm_gateway.py": "names of loggers of Python packages",
    }
)
"""Files in which names of providers or families stand together, and why. None of them compares with one."""

ACME = Dialect(
    "acme", CHAT, base="https://api.acme.example/v1", host_path="/v1", keys=("ACME_TOKEN",), call_ids="short"
)


@pytest.mark.slow
def test_no_code_goes_by_the_name_of_a_provider_or_family() -> None:
    found: list[str] = []
    listed: set[str] = set()
    for name, text in matching(MAY_NAME).items():
        if name.startswith(RECORDS):
            continue
        for line, words in comparisons(text):
            listed.add(name)
            if name not in ALLOWED or not words.startswith(("(", "{", "[")):
                found.append(f"{name}:{line}: {words}")
    assert not found
    assert listed == set(ALLOWED), "a file in the list that is not needed there any more"


@every(
    "source",
    [
        "if target.provider == 'openai': ...",
        "x = 'claude' != family",
        "y = provider in ('xai', 'other')",
        "HOSTS = frozenset({'bedrock'})",
        "a = provider.startswith('vertex')",
        "a = name.startswith(('x', 'gemini/'))",
        "match provider:\n    case 'groq' | 'other': ...",
        "PATHS = {'mistral': '/v1'}",
    ],
)
def test_a_comparison_with_a_name_is_found(source: str) -> None:
    assert list(comparisons(source))


@every(
    "source",
    [
        "if dialect.wire == 'ollama': ...",
        "match dialect.wire:\n    case 'gemini': ...",
        "a = kind == 'other'",
        "raise ValueError('openai')",
        "a = url.startswith('http')",
    ],
)
def test_what_reads_a_record_is_not(source: str) -> None:
    assert list(comparisons(source)) == []


def test_names_are_those_of_the_records() -> None:
    assert {"openai", "bedrock", "claude", "gemini"} <= NAMES
    rules = {rule.name for rule in RETENTION}
    for record in DIALECTS.values():
        assert set(record.retains) <= rules, record.name
        assert set(record.framing) <= set(MODEL_FAMILIES), record.name
        assert record.wire is not None or not record.base, f"{record.name} has an address, but only LiteLLM calls it"
        variables = (*record.keys, *record.base_variables, record.key_name)
        assert [name for name in variables if not re.fullmatch("[A-Z][A-Z0-9_]*", name)] == [], record.name
    makers = {family.maker for family in MODEL_FAMILIES.values()} - {None}
    assert makers <= set(DIALECTS)


def test_a_hosted_provider_has_variables_that_a_shell_can_set() -> None:
    hosted = table._hosted("acme-ai", "https://api.acme.example/v1")
    assert (hosted.key_name, hosted.keys) == ("ACME_AI_API_KEY", ("ACME_AI_API_KEY",))
    assert hosted.base_variables == ("ACME_AI_API_BASE",)
    assert Dialect("acme-ai").key_name == hosted.key_name


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "DIALECTS", MappingProxyType({**DIALECTS, "acme": ACME}))


async def ask(spec: ModelSpec, *, messages: list[Message] | None = None) -> Answer:
    items: list[StreamItem] = []

    info = describe(spec)
    assert info.problem is None
    async with aclosing(Connections()) as connections:
        await call.run(make_request(spec, messages=messages, tools=[wire.TOOL]), info, items.append, connections)
    return Answer(items)


@pytest.mark.slow
async def test_an_openai_compatible_provider_is_one_record(acme: None, server: Loopback) -> None:
    spec = ModelSpec("m", "acme/think-1", api_base=server.url)
    function = {"name": "read", "arguments": '{"path": "a"}'}
    called = [
        chat_chunk({"reasoning_content": "First read it."}),
        chat_chunk({"tool_calls": [{"index": 0, "id": "call_long_0001", "type": "function", "function": function}]}),
        chat_chunk({}, "tool_calls"),
        chat_chunk({}, None, usage=CHAT_USAGE),
    ]
    server.serve("*", Reply(sse([*called, "[DONE]"])), Reply(chat_stream(["Done."])))
    with environment({"ACME_TOKEN": "token-0123456789"}):
        first = await ask(spec, messages=[user_message("read a")])
        target = describe(spec).target
        answer = recorded.assemble(first.items, Message("a1", "assistant", origin=wire.origin(target)))
        [thought] = [part for part in answer.parts if isinstance(part, ReasoningPart)]
        assert thought.text == "First read it."
        again = [user_message("read a"), answer, wire.result("call_long_0001", "contents")]
        assert (await ask(spec, messages=again)).text == "Done."
    one, two = server.requests
    assert (one.path, one.header("authorization")) == ("/v1/chat/completions", "Bearer token-0123456789")
    assert one.json["model"] == "think-1"
    assert [tool["function"]["name"] for tool in one.json["tools"]] == [wire.TOOL.name]
    resent, result = two.json["messages"][-2:]
    assert resent["reasoning_content"] == "First read it."
    assert resent["tool_calls"][0]["function"] == function
    assert len(result["tool_call_id"]) == 9
    assert result["tool_call_id"] == resent["tool_calls"][0]["id"]


@pytest.mark.slow
async def test_its_errors_name_its_key(acme: None, server: Loopback) -> None:
    server.serve("*", json_reply({"error": {"message": "token has expired"}}, 401))
    spec = ModelSpec("m", "acme/think-1", api_base=server.url)
    with environment({"ACME_TOKEN": "token-0123456789"}):
        failure = (await ask(spec)).failure
    assert "token has expired" in failure.message
    assert "ACME_TOKEN" in failure.message
    with environment({"ACME_TOKEN": None}):
        assert "ACME_TOKEN" in (describe(spec).problem or "")


@pytest.mark.parametrize("base", ["http://[::1", "http://[x]/v1", "localhost:port"])
def test_an_address_that_is_none_does_not_stop_a_model_from_being_named(base: str) -> None:
    target = catalog.resolve_target(ModelSpec("m", "openai/gpt-5", api_base=base))
    assert (target.provider, target.api) == ("openai", "chat")
    assert not is_loopback(base)
    assert catalog.near_url(base, ACME).endswith(base)
