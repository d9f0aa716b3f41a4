"""The schema of an answer on the wire: where a provider can hold its model to it, in its own words, and never where
tools would suffer from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_tui.models.failure import Failure
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.client import ModelClient
from agent_tui.providers.dialects.claude import CLOSED
from agent_tui.providers.dialects.gemini import OPEN
from agent_tui.providers.dialects.openai import STRICT
from agent_tui.providers.dialects.record import Subset
from agent_tui.providers.direct import encode
from agent_tui.providers.refusals import refuses_schema
from agent_tui.providers.request import build_call
from agent_tui.providers.schemas import fitted
from tests.support import anthropic_stream as anthropic
from tests.support import oracle, recorded, wire
from tests.support.end_to_end import Product, calls, model
from tests.support.every import every
from tests.support.loopback import Loopback, Reply, chat_chunk, chat_stream, json_reply, sse
from tests.support.recorded import info_for

SCHEMA: Metadata = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "why": {"type": "string", "minLength": 1}},
    "required": ["ok"],
}
STRICT_SCHEMA: Metadata = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
CLOSED_FORM = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["ok"],
    "additionalProperties": False,
}
OPEN_FORM = {key: value for key, value in CLOSED_FORM.items() if key != "additionalProperties"}
FIELDS = ("response_format", "output_config", "text", "format", "tool_choice", "generationConfig")


def asked(
    name: str,
    schema: Metadata = SCHEMA,
    *,
    tools: bool = True,
    due: bool = False,
    base: str | None = None,
    api: Any = "auto",
) -> dict[str, Any]:
    """What the body says of the answer's form."""
    spec = ModelSpec("m", name, api_base=base, api_key="k", api=api)
    messages = [wire.user("u1", "hi")]
    request = recorded.request_for(spec, messages, effort="off", max_output=None, tools=[wire.TOOL] if tools else [])
    request = replace(request, output_schema=schema, output_due=due)
    info = info_for(spec)
    body = encode(build_call(request, info), spec, "k").body
    plain = encode(build_call(replace(request, output_schema=None), info), spec, "k").body
    return {key: value for key, value in body.items() if key in FIELDS and value != plain.get(key)}


def chat(schema: Metadata, strict: bool) -> dict[str, Any]:
    form = {"name": "answer", "schema": schema, "strict": strict}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def test_openai_is_strict_where_the_schema_is_in_its_subset() -> None:
    assert asked("openai/gpt-4.1", STRICT_SCHEMA) == chat(STRICT_SCHEMA, True)
    assert asked("openai/gpt-4.1") == chat(SCHEMA, False)
    assert asked("openai/gpt-4.1", {"type": "array", "items": {"type": "string"}}) == {}
    strict = {"format": {"type": "json_schema", "name": "answer", "schema": STRICT_SCHEMA, "strict": True}}
    assert asked("openai/gpt-5", STRICT_SCHEMA) == {"text": strict}


def test_claude_gets_a_closed_object_without_bounds() -> None:
    wanted = {"output_config": {"format": {"type": "json_schema", "schema": CLOSED_FORM}}}
    assert asked("anthropic/claude-sonnet-4-5") == asked("anthropic/claude-opus-5-5") == wanted
    spec = wire.spec("anthropic/claude-sonnet-4-6")
    request = recorded.request_for(spec, [wire.user("u1", "hi")], effort="high", tools=[wire.TOOL])
    body = encode(build_call(replace(request, output_schema=SCHEMA), info_for(spec)), spec, "k").body
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": "high", "format": {"type": "json_schema", "schema": CLOSED_FORM}}


def test_gemini_takes_it_beside_tools_from_3_on() -> None:
    config = asked("gemini/gemini-3-pro-preview")["generationConfig"]
    del config["thinkingConfig"]
    assert config == {"responseMimeType": "application/json", "responseJsonSchema": OPEN_FORM}
    assert asked("gemini/gemini-2.5-flash") == {}
    old = asked("gemini/gemini-2.5-flash", tools=False)["generationConfig"]
    assert old["responseJsonSchema"] == OPEN_FORM


@every(
    ("name", "base"),
    [
        ("ollama_chat/qwen3", None),
        ("hosted_vllm/qwen3", None),
        ("lm_studio/x", None),
        ("openai/gpt-5", "http://127.0.0.1:8080/v1"),
        ("custom_openai/x", "https://gateway.example/v1"),
    ],
)
def test_a_grammar_waits_until_no_tool_is_needed(name: str, base: str | None) -> None:
    assert asked(name, base=base) == {}, "the first token would have to be the answer's"
    due = asked(name, base=base, due=True)
    if name.startswith("ollama"):
        assert due == {"format": SCHEMA}
    else:
        assert due == {**chat(SCHEMA, False), "tool_choice": "none"}
    alone = asked(name, base=base, tools=False)
    assert alone and "tool_choice" not in alone


def test_an_address_in_a_variable_is_a_server_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
    assert asked("openai/gpt-4.1", STRICT_SCHEMA) == {}
    assert asked("openai/some", STRICT_SCHEMA, api="responses", due=True)["tool_choice"] == "none"


@every(
    "name",
    [
        "openai/gpt-3.5-turbo",
        "openai/gpt-4-turbo",
        "openai/gpt-4o-2024-05-13",
        "openai/o1-mini",
        "anthropic/claude-3-7-sonnet-20250219",
        "anthropic/claude-sonnet-4-20250514",
        "anthropic/claude-opus-4-1",
        "anthropic/claude-3-5-haiku-20241022",
        "openrouter/moonshotai/kimi-k2",
        "openrouter/google/gemini-2.5-pro",
        "xai/grok-3-mini",
        "deepseek/deepseek-chat",
        "moonshot/kimi-k2-thinking",
        "zai/glm-4.6",
        "minimax/MiniMax-M2",
        "dashscope/qwen3-max",
        "cohere_chat/command-a-03-2025",
        "groq/openai/gpt-oss-120b",
        "mistral/mistral-large-latest",
    ],
)
def test_whoever_is_not_known_to_can_is_left_alone(name: str) -> None:
    assert asked(name, STRICT_SCHEMA) == {}
    assert asked(name, STRICT_SCHEMA, due=True) == {}


@pytest.mark.parametrize(
    "name",
    [
        "openai/gpt-4o",
        "openai/gpt-4o-2024-08-06",
        "openai/gpt-4o-mini",
        "openai/o3-mini",
        "openai/gpt-6.1-sol",
        "anthropic/claude-haiku-4-5-20251001",
        "anthropic/claude-fable-5-1",
        "openrouter/anthropic/claude-opus-4.6",
        "openrouter/openai/gpt-5",
        "openrouter/google/gemini-3-pro-preview",
        "openrouter/x-ai/grok-4.1-fast",
        "xai/grok-4.3",
        "gemini/gemini-4-argon",
        "azure/gpt-4.1",
        "perplexity/sonar",
    ],
)
def test_whoever_can_is_asked_in_every_request(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_API_BASE", "https://x.openai.azure.com")
    assert asked(name, STRICT_SCHEMA) == asked(name, STRICT_SCHEMA, due=True) != {}


def test_what_the_user_configured_stands_alone() -> None:
    spec = wire.spec("azure/gpt-4.1", extra={"response_format": {"type": "json_object"}})
    request = replace(recorded.request_for(spec, [wire.user("u1", "hi")]), output_schema=SCHEMA)
    assert build_call(request, info_for(spec)).arguments["response_format"] == {"type": "json_object"}


ORACLE = (
    "anthropic/claude-sonnet-4-6",
    "gemini/gemini-3-pro-preview",
    "azure/gpt-4.1",
    "openai/qwen3",
    "openrouter/openai/gpt-5",
    "xai/grok-4",
    "ollama_chat/qwen3",
    "hosted_vllm/foo",
)


@pytest.mark.slow
@every("name", ORACLE)
def test_through_litellm_it_arrives_as_well(name: str) -> None:
    spec = wire.spec(name)
    with oracle.Sender() as sender:
        _compare(sender, spec)


def _compare(sender: oracle.Sender, spec: ModelSpec) -> None:
    for due in (False, True):
        request = recorded.request_for(spec, [wire.user("u1", "hi")], effort="medium", tools=[wire.TOOL])
        mine, theirs = sender.both(replace(request, output_schema=SCHEMA, output_due=due))
        assert [theirs.body.get(f) for f in FIELDS[:-1]] == [mine.body.get(f) for f in FIELDS[:-1]]
        forms = [oracle.camel(sent.body).get("generationConfig", {}) for sent in (mine, theirs)]
        assert forms[0].get("responseJsonSchema") == forms[1].get("responseJsonSchema")


class TestSubset:
    """A schema in the words of a provider: no value that fits is lost, and what cannot be said is not sent."""

    @pytest.mark.parametrize("subset", [STRICT, CLOSED, OPEN])
    @pytest.mark.parametrize(
        "schema",
        [
            {},
            {"type": "array", "items": {"type": "string"}},
            {"type": "object"},
            {"type": "object", "properties": {"a": True}, "required": ["a"], "additionalProperties": False},
            {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False},
            {"type": "object", "properties": {"a": {"not": {"type": "null"}}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"$ref": "http://x/y"}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {"x": {"type": "null"}}},
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/one"}},
                "$defs": {"one": {"anyOf": [{"$ref": "#/$defs/two"}]}, "two": {"$ref": "#/$defs/one"}},
            },
        ],
    )
    def test_what_cannot_be_said(self, schema: Metadata, subset: Subset) -> None:
        assert fitted(schema, subset) is None

    @pytest.mark.slow
    def test_nesting_is_bounded(self) -> None:
        deep: Metadata = {"type": "string"}
        for _ in range(5_000):
            deep = {"type": "object", "properties": {"a": deep}, "required": ["a"], "additionalProperties": False}
        assert [fitted(deep, subset) for subset in (STRICT, CLOSED, OPEN)] == [None] * 3
        fan: Metadata = {f"p{n}": {"type": "string"} for n in range(9_000)}
        assert fitted({"type": "object", "properties": fan}, OPEN) is None

    def test_definitions_stay(self) -> None:
        one = {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": False,
        }
        schema = {**one, "properties": {"n": {"$ref": "#/$defs/one"}}, "$defs": {"one": one}}
        assert fitted(schema, STRICT) == fitted(schema, CLOSED) == schema

    @pytest.mark.parametrize("subset", [CLOSED, OPEN])
    @pytest.mark.parametrize(
        "value",
        [
            {"kind": "a", "size": 3, "tags": ["x"]},
            {"kind": "a", "size": 3.5, "tags": []},
            {"kind": "a", "size": None, "tags": ["x", "y", "z"], "default": "a property, not a keyword"},
        ],
    )
    def test_what_fits_still_fits(self, subset: Subset, value: Any) -> None:
        schema: Metadata = {
            "type": "object",
            "properties": {
                "kind": {"const": "a"},
                "size": {
                    "oneOf": [{"type": "integer", "maximum": 9}, {"type": "number", "not_known": 1}, {"type": "null"}]
                },
                "tags": {
                    "type": "array",
                    "items": {"type": "string", "pattern": "^.$"},
                    "uniqueItems": True,
                    "maxItems": 3,
                },
                "default": {"type": "string", "default": "x"},
            },
            "required": ["kind", "size", "tags"],
        }
        assert fitted(schema, subset) is None, "a keyword that nobody knows may mean anything"
        del schema["properties"]["size"]["oneOf"][1]["not_known"]
        made = fitted(schema, subset)
        assert made is not None
        assert "default" in made["properties"] and "default" not in made["properties"]["default"]
        Draft202012Validator(made).validate(value)


@every(
    ("text", "refused"),
    [
        ("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", True),
        ("output_config.format.schema: For 'object' type, property 'x' is not supported", True),
        ("This model does not support response format `json_schema`.", True),
        ("Function calling with a response mime type: 'application/json' is unsupported", True),
        ("Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.", True),
        ("Schema is too complex for compilation", True),
        ("Failed to parse grammar", True),
        ("tools.0.input_schema: JSON schema is invalid", False),
        ("Invalid schema for function 'read': json_schema", False),
        ("max_tokens: too large", False),
    ],
)
def test_which_refusals_are_of_the_schema(text: str, refused: bool) -> None:
    assert refuses_schema(Failure("invalid_request", "x refused the request.", status=400, detail=text)) is refused
    assert not refuses_schema(Failure("rate_limit", text, status=429, detail=text))


REFUSED = json_reply(
    {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "output_config: Extra inputs are not permitted"},
    },
    status=400,
)
LOOK = anthropic.answer(anthropic.tool_use("toolu_1", "list", '{"path": "."}'), stop="tool_use")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(STRICT_SCHEMA), "utf-8")
    return path


@pytest.mark.asyncio(loop_scope="session")
class TestRuns:
    async def test_it_is_the_same_in_every_request_and_tools_are_called(
        self, worker: ModelClient, tmp_path: Path, server: Loopback, file: Path
    ) -> None:
        server.serve("/v1/messages", LOOK, anthropic.answer(anthropic.text('{"ok": true}')))
        product = Product(tmp_path, worker, {"m": model("anthropic/claude-sonnet-4-6", server)}, step_limit=3)
        summary = await product.run("hi", output_schema=file)
        assert (product.code, summary["output"], summary["steps"]) == (0, {"ok": True}, 2)
        forms = [call.json["output_config"]["format"] for call in calls(server)]
        assert forms == [{"type": "json_schema", "schema": STRICT_SCHEMA}] * 2

    async def test_a_refused_schema_costs_one_request_in_a_run(
        self, worker: ModelClient, tmp_path: Path, server: Loopback, file: Path
    ) -> None:
        good = anthropic.answer(anthropic.text('{"ok": true}'))
        server.serve("/v1/messages", REFUSED, LOOK, anthropic.answer(anthropic.text("yes")), good)
        product = Product(tmp_path, worker, {"m": model("anthropic/claude-sonnet-4-6", server)}, step_limit=3)
        summary = await product.run("hi", output_schema=file)
        assert (product.code, summary["output"], summary["steps"]) == (0, {"ok": True}, 4), "the refused call is one"
        held = ["format" in call.json.get("output_config", {}) for call in calls(server)]
        assert held == [True, False, False, False]
        assert sum(note["code"] == "schema_refused" for note in summary["notices"]) == 1
        assert all(call.json["output_config"]["effort"] for call in calls(server)), "what else is asked stays"

    async def test_a_server_that_refuses_for_anything_else_is_not_asked_again(
        self, worker: ModelClient, tmp_path: Path, server: Loopback, file: Path
    ) -> None:
        other = json_reply(
            {"type": "error", "error": {"type": "invalid_request_error", "message": "messages: no"}}, status=400
        )
        server.serve("/v1/messages", other)
        product = Product(tmp_path, worker, {"m": model("anthropic/claude-sonnet-4-6", server)})
        await product.run("hi", output_schema=file)
        assert (product.code, len(calls(server))) == (1, 1)

    @pytest.mark.slow
    async def test_a_local_server_is_held_to_it_once_the_answer_did_not_fit(
        self, worker: ModelClient, tmp_path: Path, server: Loopback, file: Path
    ) -> None:
        function = {"name": "list", "arguments": '{"path": "."}'}
        called = [
            chat_chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}),
            chat_chunk({}, "tool_calls"),
        ]
        answers = [Reply(chat_stream([text])) for text in ("Fine.", '{"ok": true}')]
        server.serve("/v1/chat/completions", Reply(sse([*called, "[DONE]"])), *answers)
        product = Product(
            tmp_path, worker, {"m": model("openai/qwen3", server, "/v1", context_window=32_000)}, step_limit=3
        )
        summary = await product.run("hi", output_schema=file)
        assert (product.code, summary["output"], summary["steps"]) == (0, {"ok": True}, 3)
        bodies = [call.json for call in calls(server)]
        assert ["response_format" in body for body in bodies] == [False, False, True]
        assert bodies[-1]["tool_choice"] == "none"
        assert bodies[0]["tools"] == bodies[-1]["tools"], "what is before the conversation stays the same"

    async def test_what_it_costs_is_in_the_measured_numbers(
        self, worker: ModelClient, tmp_path: Path, server: Loopback, file: Path
    ) -> None:
        """Nobody says what a schema counts for: the first answer measures it, as a part of what is fixed."""
        server.serve(
            "/v1/messages",
            anthropic.answer(anthropic.text('{"ok": true}'), start={"input_tokens": 3_000, "output_tokens": 1}),
        )
        product = Product(tmp_path, worker, {"m": model("anthropic/claude-sonnet-4-6", server)})
        await product.run("hi", output_schema=file)
        steps = product.steps()
        usage = await product.context()
        assert steps[0]["usage"]["input_tokens"] == 3_000
        assert usage["total"] == sum(row["tokens"] for row in usage["rows"])
        assert 3_000 <= usage["total"] < 3_100
