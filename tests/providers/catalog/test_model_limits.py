from __future__ import annotations

import pytest

from agent_tui.models.requests import ModelSpec
from agent_tui.models.usage import Limits
from agent_tui.providers import limits
from agent_tui.providers.direct import Connections
from agent_tui.providers.limits import ServerFacts, describe
from agent_tui.providers.listing import split_window
from agent_tui.providers.server_facts import is_asked, server_facts
from tests.support.every import every
from tests.support.loopback import Loopback, json_reply
from tests.support.model_calls import environment

KEYS = {"OPENAI_API_KEY": "key-for-tests", "ANTHROPIC_API_KEY": "key-for-tests", "GEMINI_API_KEY": "key-for-tests"}


@pytest.mark.slow
@every(
    ("name", "window", "max_input", "source"),
    [
        ("openai/gpt-5", 400_000, 272_000, "table"),
        ("openai/responses/gpt-5", 400_000, 272_000, "table"),
        ("openai/gpt-5.1-codex", 400_000, 272_000, "table"),
        ("azure/gpt-5", 400_000, 272_000, "table"),
        ("openai/gpt-4o", 128_000, None, "table"),
        ("openai/o3", 200_000, None, "table"),
        ("anthropic/claude-sonnet-4-5", 200_000, None, "table"),
        ("claude-sonnet-4-5", 200_000, None, "table"),
        ("gemini/gemini-2.5-pro", 1_048_576, None, "table"),
        ("anthropic/claude-unknown-9", 200_000, None, "assumed"),
        ("anthropic/claude-sonnet-4-5-20990101", 200_000, None, "assumed"),
        ("openrouter/openai/gpt-5", 400_000, 272_000, "assumed"),
        ("openai/never-heard-of-it", None, None, "unknown"),
        ("ollama_chat/llama3", None, None, "unknown"),
    ],
)
def test_limits_without_the_tables_traps(name: str, window: int | None, max_input: int | None, source: str) -> None:
    found = describe(ModelSpec("m", name)).limits
    assert (found.window, found.max_input, found.source) == (window, max_input, source)


def test_the_configuration_wins() -> None:
    found = describe(ModelSpec("m", "openai/gpt-5", context_window=100_000, max_output=200_000)).limits
    assert found == Limits(100_000, None, 100_000, "config")
    only_output = describe(ModelSpec("m", "openai/gpt-5", max_output=1000)).limits
    assert only_output == Limits(400_000, 272_000, 1000, "table")


@every(
    ("most_in", "most_out", "expected"),
    [
        (272_000, 128_000, (400_000, 272_000)),
        (400_000, 128_000, (400_000, 272_000)),
        (400_000, 272_000, (400_000, 272_000)),
        (922_000, 128_000, (1_050_000, 922_000)),
        (1_050_000, 128_000, (1_050_000, 922_000)),
        (111_616, 16_384, (128_000, 111_616)),
        (128_000, 16_384, (128_000, None)),
        (999, None, (999, None)),
    ],
)
def test_windows_of_models_that_split_them(
    most_in: int, most_out: int | None, expected: tuple[int, int | None]
) -> None:
    assert split_window(most_in, most_out) == expected


def test_prices_and_abilities_of_a_known_model() -> None:
    info = describe(ModelSpec("m", "anthropic/claude-sonnet-4-5"))
    assert info.reasoning is True
    assert info.images is True
    assert info.prices.input is not None
    assert info.prices.cache_read is not None
    assert info.prices.input > info.prices.cache_read


def test_nothing_is_invented_for_an_unknown_model() -> None:
    info = describe(ModelSpec("m", "openai/never-heard-of-it"))
    assert (info.prices.input, info.reasoning, info.images) == (None, None, None)
    guessed = describe(ModelSpec("m", "anthropic/claude-sonnet-4-5-20990101"))
    assert guessed.prices.input is None, "a guess is no price"


@pytest.mark.slow
def test_problems_are_one_line_each() -> None:
    with environment(dict.fromkeys(KEYS)):
        missing = describe(ModelSpec("m", "anthropic/claude-sonnet-4-5")).problem
        assert missing is not None
        assert "ANTHROPIC_API_KEY" in missing
        assert "agent-tui auth set anthropic" in missing
        assert describe(ModelSpec("m", "anthropic/claude-sonnet-4-5", api_key="from keyring")).problem is None
    with environment(KEYS):
        assert describe(ModelSpec("m", "openai/gpt-5")).problem is None
        for wrong in ("opnai/gpt-5", "never-heard-of-it"):
            line = describe(ModelSpec("m", wrong)).problem
            assert line is not None
            assert wrong in line
    assert describe(ModelSpec("m", "openai/x", api_base="http://localhost:8080")).problem is None
    assert describe(ModelSpec("m", "ollama_chat/llama3")).problem is None


def test_without_the_table_limits_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "entry", lambda name, target: (None, False))
    assert describe(ModelSpec("m", "openai/gpt-5", api_key="k")).limits == Limits()


@pytest.mark.slow
def test_a_model_that_only_others_list_gets_what_they_agree_on() -> None:
    haiku = describe(ModelSpec("m", "openrouter/anthropic/claude-haiku-4.5", api_key="k"))
    assert (haiku.limits.window, haiku.limits.source, haiku.reasoning) == (200_000, "assumed", True)
    gemini = describe(ModelSpec("m", "gemini/gemini-3-pro-preview", api_key="k"))
    assert (gemini.limits.window, gemini.limits.source) == (1_048_576, "assumed")
    assert gemini.prices.input is None, "another provider's price is not a price"
    own = describe(ModelSpec("m", "openai/glm-5.1", api_base="http://127.0.0.1:9"))
    assert own.limits == Limits(), "a server of one's own may have loaded less"


async def _asked(server: Loopback, model: str) -> Limits | None:
    connections = Connections()
    facts = await server_facts(describe(ModelSpec("m", model, api_base=server.url)), connections)
    await connections.aclose()
    assert facts is not None
    assert not facts.silent
    return facts.limits


@pytest.mark.slow
async def test_ollama_tells_the_context_it_has_loaded(server: Loopback) -> None:
    server.serve("/api/ps", json_reply({"models": [{"name": "llama3:latest", "context_length": 16_384}]}))
    assert await _asked(server, "ollama_chat/llama3") == Limits(16_384, None, None, "server")


async def test_ollama_with_a_configured_context(server: Loopback) -> None:
    server.serve("/api/ps", json_reply({"models": []}))
    shown = {"parameters": 'stop "x"\nnum_ctx    32768', "model_info": {"llama.context_length": 131_072}}
    server.serve("/api/show", json_reply(shown))
    assert await _asked(server, "ollama_chat/llama3") == Limits(32_768, None, None, "server")
    assert server.requests[-1].json == {"model": "llama3"}


@pytest.mark.parametrize(("most", "chosen"), [(131_072, 32_768), (8_192, 8_192)])
async def test_ollama_is_not_left_to_its_small_default(server: Loopback, most: int, chosen: int) -> None:
    server.serve("/api/ps", json_reply({"models": []}))
    server.serve("/api/show", json_reply({"model_info": {"llama.context_length": most}}))
    with environment({"OLLAMA_CONTEXT_LENGTH": None}):
        assert await _asked(server, "ollama_chat/llama3") == Limits(chosen, None, None, "chosen")
    with environment({"OLLAMA_CONTEXT_LENGTH": "6000"}):
        assert await _asked(server, "ollama_chat/llama3") == Limits(6_000, None, None, "assumed")


async def test_llama_cpp_tells_its_context(server: Loopback) -> None:
    server.serve("/props", json_reply({"default_generation_settings": {"n_ctx": 8192}}))
    assert await _asked(server, "llamafile/model.gguf") == Limits(8192, None, None, "server")
    server.serve("/v1/models", json_reply({"object": "list", "data": [{"id": "model.gguf"}]}))
    assert await _asked(server, "openai/model.gguf") == Limits(8192, None, None, "server")


async def test_a_gateway_is_not_asked_for_more_than_its_models(server: Loopback) -> None:
    assert await _asked(server, "openai/some-model") is None
    assert [r.path for r in server.requests] == ["/v1/models"]


@pytest.mark.slow
@every(
    ("model", "address", "asked"),
    [
        ("anthropic/claude-sonnet-4-20250514", "http://127.0.0.1:9", False),
        ("anthropic/claude-sonnet-4-20250514", None, False),
        ("gemini/gemini-3-pro-preview", "http://127.0.0.1:9", False),
        ("groq/openai/gpt-oss-unheard-of", "http://127.0.0.1:9", True),
        ("groq/openai/gpt-oss-unheard-of", None, False),
        ("groq/openai/gpt-oss-unheard-of", "https://api.groq.com/openai/v1", False),
        ("openai/gpt-5", None, False),
        ("openai/gpt-5", "https://api.openai.com/v1", False),
        ("openai/gpt-5", "http://127.0.0.1:9", True),
        ("openai/unheard-of", "http://127.0.0.1:9", True),
        ("azure/gpt-unheard-of", "https://mine.openai.azure.com", False),
        ("ollama_chat/llama3", None, True),
    ],
)
def test_only_servers_that_may_know_are_asked(model: str, address: str | None, asked: bool) -> None:
    assert is_asked(describe(ModelSpec("m", model, api_base=address))) is asked


async def test_lm_studio_tells_the_loaded_context(server: Loopback) -> None:
    models = [{"id": "qwen", "loaded_context_length": 4096, "max_context_length": 32_768}, {"id": "b"}]
    server.serve("/api/v0/models", json_reply({"data": models}))
    assert await _asked(server, "lm_studio/qwen") == Limits(4096, None, None, "server")


async def test_vllm_tells_its_context(server: Loopback) -> None:
    server.serve("/v1/models", json_reply({"data": [{"id": "qwen", "max_model_len": 40_960}]}))
    assert await _asked(server, "hosted_vllm/qwen") == Limits(40_960, None, None, "server")


@pytest.mark.parametrize("body", [b"not json", b"[]", b'{"models": 3, "data": "x", "default_generation_settings": []}'])
async def test_servers_that_talk_nonsense_say_nothing(server: Loopback, body: bytes) -> None:
    server.serve("*", body)
    assert await _asked(server, "openai/x") is None


async def test_a_server_that_is_not_there(server: Loopback) -> None:
    facts = await server_facts(describe(ModelSpec("m", "openai/x", api_base="http://127.0.0.1:9")), Connections())
    assert facts == ServerFacts(silent=True, unreachable=True)
