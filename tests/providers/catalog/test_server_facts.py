"""What servers say of themselves, in their own words: every kind of answer, with the key and headers of a call."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest

import agent_tui.providers.server_facts
from agent_tui.models.requests import ModelInfo, ModelSpec
from agent_tui.models.usage import Limits
from agent_tui.providers.demo import DemoProvider
from agent_tui.providers.direct import Connections, url_of
from agent_tui.providers.limits import ServerFacts, describe
from agent_tui.providers.server_facts import is_asked, is_looked_up, server_facts
from tests.support.agents import parts_for, running
from tests.support.every import every
from tests.support.loopback import Loopback, Reply, json_reply
from tests.support.model_calls import environment

_LLAMA: dict[str, Any] = {
    # xllamacpp 2026.10.11549, 8 192 tokens for two slots.
    "/v1/models": {
        "models": [{"name": "tekken.gguf", "model": "tekken.gguf", "capabilities": ["completion"]}],
        "object": "list",
        "data": [
            {
                "id": "tekken.gguf",
                "aliases": ["tekken.gguf"],
                "object": "model",
                "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
                "owned_by": "llamacpp",
                "meta": {"vocab_type": 2, "n_vocab": 131072, "n_ctx": 4096, "n_ctx_train": 131072},
            }
        ],
    },
    "/props": {
        "default_generation_settings": {"params": {"max_tokens": -1}, "n_ctx": 4096},
        "total_slots": 2,
        "model_alias": "tekken.gguf",
        "modalities": {"vision": False, "video": False, "audio": False},
    },
}
_ONE_SLOT = {**_LLAMA, "/props": {**_LLAMA["/props"], "total_slots": 1}}
# Gemma's template, by the same version.
_NO_TOOLS = {
    **_LLAMA,
    "/props": {
        **_LLAMA["/props"],
        "chat_template_caps": {
            "supports_string_content": True,
            "supports_system_role": True,
            "supports_tool_calls": False,
            "supports_tools": False,
        },
    },
}
_SEES = {**_LLAMA, "/props": {**_LLAMA["/props"], "modalities": {"vision": True}}}
_ROUTER = {
    # Its models have their own processes; without the model's name its own properties say 0.
    "/v1/models": {"data": [{"id": name, "owned_by": "llamacpp", "status": {"value": "unloaded"}} for name in "ab"]},
    "/props": {"default_generation_settings": {"n_ctx": 0}, "role": "router"},
}
_NO_PROPS = {"/v1/models": _LLAMA["/v1/models"]}
_TRAINED = {"/v1/models": {"data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}]}}
_VLLM = {
    # vllm/entrypoints/openai/models/protocol.py (ModelCard); adapters have no length of their own.
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": "qwen", "object": "model", "owned_by": "vllm", "root": "Qwen/Qwen3-8B", "max_model_len": 40_960},
            {"id": "sql", "owned_by": "vllm", "root": "/lora", "parent": "qwen", "max_model_len": None},
        ],
    }
}
_SGLANG = {"/v1/models": {"data": [{"id": "glm", "owned_by": "sglang", "root": "glm", "max_model_len": 202_752}]}}
_LM_STUDIO = {
    "/v1/models": {"data": [{"id": "gemma", "object": "model", "owned_by": "organization_owner"}]},
    "/api/v0/models": {
        "data": [
            {"id": "gemma", "type": "vlm", "loaded_context_length": 4096, "max_context_length": 131_072},
            {"id": "cold", "type": "llm", "state": "not-loaded", "max_context_length": 32_768},
        ]
    },
}


def _alias(name: str, model: str, **info: Any) -> dict[str, Any]:
    return {"model_name": name, "litellm_params": {"model": model}, "model_info": {"key": model, **info}}


_LITELLM = {
    # litellm[proxy] 1.106.2.
    "/v1/models": {
        "data": [
            {"id": "smart", "owned_by": "openai", "max_input_tokens": 200_000, "max_output_tokens": 64_000},
            {"id": "five", "owned_by": "openai", "max_input_tokens": 272_000, "max_output_tokens": 128_000},
            {"id": "bare", "owned_by": "openai"},
            {"id": "both", "owned_by": "openai"},
        ]
    },
    "/v1/model/info": {
        "data": [
            _alias("smart", "anthropic/claude-sonnet-4-5", max_input_tokens=200_000, max_output_tokens=64_000)
            | {"model_info": {"max_input_tokens": 200_000, "max_output_tokens": 64_000, "supports_vision": True}},
            _alias("five", "openai/gpt-5", max_input_tokens=272_000, max_output_tokens=128_000),
            _alias("bare", "openai/local", max_input_tokens=None, max_output_tokens=None, supports_vision=False),
            _alias("both", "openai/x", max_input_tokens=128_000),
            _alias("both", "openai/y", max_input_tokens=32_000, max_output_tokens=4_000),
        ]
    },
}
_OPENROUTER = {
    "/api/v1/models": {
        "data": [
            {
                "id": "maker/new",
                "context_length": 262_144,
                "architecture": {"input_modalities": ["text", "image"]},
                "top_provider": {"context_length": 262_144, "max_completion_tokens": 65_536},
            }
        ]
    }
}
_GROQ = {
    "/v1/models": {"data": [{"id": "g", "owned_by": "Meta", "context_window": 131_072, "max_completion_tokens": 8_192}]}
}
_LITELLM["/models"] = _LITELLM["/v1/models"]
_UNVERSIONED = {"/models": _VLLM["/v1/models"]}
_SILENT_ON_LIMITS = {"/v1/models": {"data": [{"id": "m", "object": "model", "owned_by": "me"}]}}


def _facts(window: int | None, output: int | None = None, source: Any = "server", **more: Any) -> ServerFacts:
    limits = Limits(window, more.pop("most_in", None), output, source) if window else None
    return ServerFacts(limits, **more)


_several = partial(_facts, parallel=True)
_llama, _vllm = partial(_several, counting="input_tokens"), partial(_several, counting="tokenize")

SERVERS = [
    pytest.param(
        _LLAMA,
        "openai/tekken.gguf",
        "",
        _llama(4096, images=False),
        id="llama.cpp",
    ),
    pytest.param(
        _LLAMA,
        "openai/any-name",
        "/v1",
        _llama(4096, images=False),
        id="any name",
    ),
    pytest.param(
        _LLAMA,
        "openai/gpt-4o",
        "/v1",
        _llama(4096, images=False),
        id="known name",
    ),
    pytest.param(_LLAMA, "llamafile/x", "/v1", _llama(4096, images=False), id="llamafile"),
    pytest.param(_SEES, "openai/x", "/v1", _llama(4096, images=True), id="llama.cpp sees"),
    pytest.param(_NO_TOOLS, "openai/x", "/v1", _llama(4096, images=False, tools=False), id="a template without tools"),
    pytest.param(
        _ONE_SLOT, "openai/x", "/v1", _facts(4096, images=False, counting="input_tokens", parallel=False), id="one slot"
    ),
    pytest.param(_ROUTER, "openai/b", "/v1", _facts(None, counting="input_tokens", silent=True), id="router"),
    pytest.param(_NO_PROPS, "openai/x", "/v1", _facts(4096, images=False, counting="input_tokens"), id="no props"),
    pytest.param(_TRAINED, "openai/m", "/v1", _facts(131_072, None, "assumed", counting="input_tokens"), id="trained"),
    pytest.param(_VLLM, "hosted_vllm/qwen", "/v1", _vllm(40_960), id="vllm"),
    pytest.param(_VLLM, "openai/sql", "/v1", _vllm(40_960), id="vllm adapter"),
    pytest.param(
        _UNVERSIONED,
        "openai/qwen",
        "/behind/llm",
        _vllm(40_960),
        id="behind a path",
    ),
    pytest.param(_SGLANG, "openai/glm", "/v1", _several(202_752), id="sglang"),
    pytest.param(_LM_STUDIO, "lm_studio/gemma", "/v1", _facts(4096, images=True), id="lm studio"),
    pytest.param(_LM_STUDIO, "openai/cold", "/v1", _facts(32_768, None, "assumed", images=False), id="not loaded"),
    pytest.param(_LITELLM, "litellm_proxy/smart", "", _several(200_000, 64_000, images=True), id="litellm"),
    pytest.param(_LITELLM, "openai/five", "/v1", _several(400_000, 128_000, most_in=272_000), id="litellm, gpt-5"),
    pytest.param(_LITELLM, "openai/bare", "/v1", _several(None), id="litellm knows nothing"),
    pytest.param(_LITELLM, "openai/both", "/v1", _several(32_000, 4_000), id="litellm, the smaller of two"),
    pytest.param(_OPENROUTER, "openai/maker/new", "/api/v1", _facts(262_144, 65_536, images=True), id="openrouter"),
    pytest.param(_GROQ, "groq/g", "/v1", _facts(131_072, 8_192), id="groq's language"),
    pytest.param(_SILENT_ON_LIMITS, "openai/m", "/v1", _facts(None), id="a bare list"),
]


@pytest.mark.forms(40)
@pytest.mark.parametrize("key", [None, "secret"])
@pytest.mark.parametrize(("served", "model", "path", "expected"), SERVERS)
async def test_what_a_server_says(
    server: Loopback, served: dict[str, Any], model: str, path: str, expected: ServerFacts, key: str | None
) -> None:
    behind = path if path.endswith("llm") else ""
    for where, answer in served.items():
        server.serve(behind + where, json_reply(answer))
    extra = {"extra_headers": {"X-Team": "blue"}}
    spec = ModelSpec("m", model, api_base=server.url + path, api_key=key, extra=extra)
    connections = Connections()
    with environment({"GROQ_API_KEY": "from-the-environment"}):
        facts = await server_facts(describe(spec), connections)
    await connections.aclose()
    assert facts == expected
    # Each request carries what a call would: a server that insists on it answers as well.
    sent = {(r.header("authorization"), r.header("x-team")) for r in server.requests}
    named = key or ("from-the-environment" if model.startswith("groq") else "no-key")
    assert sent == {(f"Bearer {named}", "blue")}


_ANTHROPIC = {
    "id": "claude-next-9",
    "type": "model",
    "display_name": "Claude Next",
    "max_input_tokens": 1_000_000,
    "max_tokens": 128_000,
    "capabilities": {"image_input": {"supported": True}},
}
_GEMINI = {"name": "models/gemini-9", "inputTokenLimit": 2_097_152, "outputTokenLimit": 65_536}
_MISTRAL = {"id": "mistral-next", "max_context_length": 262_144, "capabilities": {"vision": False}}
_LOOKED_UP = [
    ("anthropic/claude-next-9", {"/v1/models/claude-next-9": _ANTHROPIC}, _facts(1_000_000, 128_000, images=True)),
    ("gemini/gemini-9", {"/v1beta/models/gemini-9": _GEMINI}, _facts(2_097_152, 65_536)),
    ("mistral/mistral-next", {"/v1/models/mistral-next": _MISTRAL}, _facts(262_144, images=False)),
    ("groq/g", {"/openai/v1/models/g": _GROQ["/v1/models"]["data"][0]}, _facts(131_072, 8_192)),
    # Its own entry says nothing of limits, or there is none: the list does.
    ("moonshot/kimi-9", {"/v1/models": {"data": [{"id": "kimi-9", "context_length": 131_072}]}}, _facts(131_072)),
    ("minimax/a", {"/v1/models": [{"id": "a", "context_length": 32_768}]}, _facts(32_768)),
    ("openrouter/a/b", {"/api/v1/models": {"data": [
        {"id": "a/b", "context_length": 32_768, "supported_parameters": ["temperature"]}]}},
     _facts(32_768, tools=False)),
    ("openai/gpt-99", {"/v1/models/gpt-99": {"id": "gpt-99", "object": "model", "owned_by": "openai"}}, _facts(None)),
    ("xai/grok-99", {}, _facts(None)),
]  # fmt: skip


@pytest.mark.forms(2)
@pytest.mark.parametrize(("model", "served", "expected"), _LOOKED_UP)
async def test_a_provider_is_asked_for_a_model_that_no_table_knows(
    server: Loopback, model: str, served: dict[str, Any], expected: ServerFacts
) -> None:
    for where, answer in served.items():
        server.serve(where, json_reply(answer))
    server.serve("*", json_reply({"error": "not found"}, 404))
    info = describe(ModelSpec("m", model, api_key="secret"))
    assert is_looked_up(info) and not is_asked(info)
    base = urlsplit(url_of(info.spec, info.target))
    here = replace(info, spec=replace(info.spec, api_base=server.url + base.path.partition("/models/")[0]))
    connections = Connections()
    with patch.object(agent_tui.providers.server_facts, "is_asked", lambda info: False):
        facts = await server_facts(here, connections)
    await connections.aclose()
    assert facts == expected
    assert len(server.requests) <= 2
    for request in server.requests:
        assert "secret" in (request.header("authorization") or request.header("x-api-key") or
                            request.header("x-goog-api-key") or "")  # fmt: skip


@pytest.mark.slow
@every(
    ("model", "settings"),
    [
        ("anthropic/claude-sonnet-4-6", {}),
        ("anthropic/claude-next-9", {"context_window": 200_000}),
        ("azure/my-deployment", {"api_base": "https://me.example.com"}),
        ("bedrock/unknown-9", {}),
        ("anthropic/claude-next-9", {"via": "litellm"}),
    ],
)
def test_no_other_model_is_looked_up(model: str, settings: dict[str, Any]) -> None:
    assert not is_looked_up(describe(ModelSpec("m", model, api_key="secret", **settings)))


@every(
    ("model", "base", "told", "expected"),
    [
        ("openai/gpt-5", None, None, True),
        ("anthropic/claude-sonnet-4-6", None, None, True),
        ("hosted_vllm/m", "http://127.0.0.1:8000/v1", None, True),
        ("ollama_chat/m", None, None, False),
        ("lm_studio/m", None, None, False),
        # Nobody knows what answers there; whatever says that it takes several is believed.
        ("openai/m", "http://127.0.0.1:8080/v1", None, False),
        ("openai/m", "http://192.168.1.7:8080/v1", None, False),
        ("openai/m", "http://box.local/v1", None, False),
        ("openai/m", "http://127.0.0.1:8080/v1", True, True),
        ("openai/m", "https://llm.example.com/v1", None, True),
        ("openai/m", "https://llm.example.com/v1", False, False),
    ],
)
def test_which_servers_answer_several_requests_at_a_time(
    model: str, base: str | None, told: bool | None, expected: bool
) -> None:
    spec = ModelSpec("m", model, api_base=base, api_key="secret")
    with environment({"OLLAMA_API_BASE": None, "OLLAMA_HOST": None}):
        assert describe(spec, ServerFacts(parallel=told)).parallel is expected


@pytest.mark.parametrize("several", [None, "1", "4"])
async def test_ollama_says_what_a_model_can_do(server: Loopback, several: str | None) -> None:
    server.serve("/api/ps", json_reply({"models": [{"name": "m:latest", "context_length": 8_192}]}))
    server.serve("/api/show", json_reply({"capabilities": ["completion", "vision"]}))
    connections = Connections()
    with environment({"OLLAMA_NUM_PARALLEL": several}):
        facts = await server_facts(describe(ModelSpec("m", "ollama_chat/m", api_base=server.url)), connections)
    await connections.aclose()
    assert facts == _facts(8_192, images=True, tools=False, parallel=True if several == "4" else None)


@pytest.mark.parametrize(
    ("reply", "silent"),
    [
        (json_reply({"error": {"message": "Invalid API Key"}}, 401), False),
        (json_reply({"error": {"message": "Loading model"}}, 503), True),
        (Reply(b"", drop=True), True),
        (Reply(b"<html>"), False),
        (Reply(b'{"data": [{"id": ["x"], "meta": 3, "aliases": 4}, 5], "models": {}}'), False),
        (Reply(status=302, headers={"Location": "/v1/elsewhere"}), False),
    ],
    ids=["wrong key", "loading", "gone", "nonsense", "odd", "elsewhere"],
)
async def test_what_says_nothing(server: Loopback, reply: Reply, silent: bool) -> None:
    server.serve("*", reply)
    connections = Connections()
    facts = await server_facts(describe(ModelSpec("m", "openai/x", api_base=server.url)), connections)
    await connections.aclose()
    assert facts == ServerFacts(silent=silent, unreachable=reply.drop)
    assert all("elsewhere" not in r.path for r in server.requests)


@pytest.mark.parametrize("address", ["http://[::1", "http://\u2100/v1", "http://a:99999/v1"])
async def test_an_address_that_is_none_is_left_to_the_call(address: str) -> None:
    connections = Connections()
    facts = await server_facts(describe(ModelSpec("m", "openai/x", api_base=address, api_key="k")), connections)
    await connections.aclose()
    assert facts is not None and facts.limits is None


async def test_what_came_in_time_is_kept_where_the_rest_does_not(server: Loopback) -> None:
    server.serve("/v1/models", json_reply(_GROQ["/v1/models"]))
    server.serve("*", Reply(b"", hang=True))
    connections = Connections()
    spec = ModelSpec("m", "openai/g", api_base=server.url)
    with patch.object(agent_tui.providers.server_facts, "TIMEOUT", 0.3):
        facts = await server_facts(describe(spec), connections)
    await connections.aclose()
    assert facts == _facts(131_072, 8_192, silent=True)


class Starting(DemoProvider):
    """The demo model behind a server that is only just starting."""

    ready = False

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        info = await super().describe(spec)
        if self.ready:
            self.told.set()
            return info
        info.limits, info.silent = Limits(), True
        return info

    told = asyncio.Event()


async def test_a_server_that_was_starting_is_asked_again(tmp_path: Path) -> None:
    made: list[Starting] = []

    def provider(counter: Any) -> Starting:
        made.append(Starting(counter, None, pace=0.0))
        return made[0]

    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, _):
        await agent.context.ready()
        assert agent.context.usage().window is None
        made[0].ready, made[0].told = True, asyncio.Event()
        agent.turns.submit("hello")
        await agent.events.settled()
        assert made[0].told.is_set()
        assert agent.context.usage().window
