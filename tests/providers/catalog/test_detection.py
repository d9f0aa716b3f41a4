from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_tui.providers.catalog import KEY_VARIABLES
from agent_tui.providers.local_servers import detect_models
from tests.support.loopback import Loopback, Reply, closed_port, json_reply
from tests.support.model_calls import environment


@pytest.fixture(autouse=True)
def bare_machine() -> Iterator[None]:
    nothing = f"http://127.0.0.1:{closed_port()}"
    bases = dict.fromkeys(("OLLAMA_API_BASE", "LM_STUDIO_API_BASE", "LLAMAFILE_API_BASE"), nothing)
    with environment({**{v: None for names in KEY_VARIABLES.values() for v in names}, **bases}):
        yield


async def test_nothing_is_found_on_a_bare_machine() -> None:
    found = await detect_models()
    assert (found.models, found.reason) == ([], "")


async def test_a_key_in_the_environment_chooses_its_provider() -> None:
    with environment({"GEMINI_API_KEY": "key"}):
        found = await detect_models()
    [spec] = found.models
    assert spec.model.startswith("gemini/")
    assert spec.api_key_env == "GEMINI_API_KEY"
    assert "GEMINI_API_KEY is set" in found.reason


async def test_ollamas_models_are_listed(server: Loopback) -> None:
    embedding = {"name": "mxbai:latest", "details": {"family": "bert", "families": ["bert"]}}
    named = {"name": "nomic-embed-text:latest"}
    models = [embedding, named, {"name": "llama3:latest"}, {"name": "qwen3:8b", "details": {"family": "qwen3"}}]
    server.serve("/api/tags", json_reply({"models": models}))
    with environment({"OLLAMA_API_BASE": server.url}):
        found = await detect_models(limit=10)
    assert [s.model for s in found.models] == ["ollama_chat/llama3:latest", "ollama_chat/qwen3:8b"]
    assert found.models[0].api_base == server.url
    assert "Ollama is running" in found.reason
    assert "/model lists 1 more" in found.reason


async def test_lm_studios_models_are_listed_without_embeddings(server: Loopback) -> None:
    models = [{"id": "qwen"}, {"id": "text-embedding-nomic"}]
    server.serve("/v1/models", json_reply({"data": models}))
    with environment({"LM_STUDIO_API_BASE": server.url + "/v1"}):
        found = await detect_models(limit=10)
    assert [(s.model, s.api_base) for s in found.models] == [("lm_studio/qwen", f"{server.url}/v1")]


async def test_llama_cpp_is_told_from_other_servers_on_its_port(server: Loopback) -> None:
    server.serve("/v1/models", json_reply({"data": [{"id": "/models/qwen.gguf"}]}))
    with environment({"LLAMAFILE_API_BASE": server.url}):
        assert (await detect_models(limit=10)).models == []
        server.serve("/props", json_reply({"default_generation_settings": {"n_ctx": 4096}}))
        [spec] = (await detect_models(limit=10)).models
    assert (spec.key, spec.model, spec.api_base) == ("local/qwen", "openai//models/qwen.gguf", f"{server.url}/v1")


async def test_a_silent_server_is_left_out(server: Loopback) -> None:
    server.serve("*", Reply(b"", hang=True))
    with environment({"OLLAMA_API_BASE": server.url}):
        assert (await detect_models(limit=0.2)).models == []


@pytest.mark.parametrize("body", [b"nonsense", b"[]", b'{"models": [1, {"name": 5}, {}]}'])
async def test_nonsense_does_not_hurt(server: Loopback, body: bytes) -> None:
    server.serve("*", body)
    with environment({"OLLAMA_API_BASE": server.url, "LM_STUDIO_API_BASE": server.url}):
        await detect_models(limit=10)
