from __future__ import annotations

import pytest

from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog import DUMMY_KEY, Key, resolve_key, resolve_target
from agent_tui.providers.litellm_gateway import api_base, connection, prepare_environment
from tests.support.every import every
from tests.support.model_calls import environment, make_request

pytestmark = pytest.mark.quick

HOST = "http://127.0.0.1:9000"


@every(
    ("model", "configured", "wanted"),
    [
        ("openai/x", HOST, f"{HOST}/v1"),
        ("openai/x", f"{HOST}/", f"{HOST}/v1"),
        ("openai/x", f"{HOST}/v1", f"{HOST}/v1"),
        ("openai/x", f"{HOST}/proxy/openai", f"{HOST}/proxy/openai"),
        ("anthropic/claude-sonnet-4-6", HOST, HOST),
        ("anthropic/claude-sonnet-4-6", f"{HOST}/v1", HOST),
        ("anthropic/claude-sonnet-4-6", f"{HOST}/v1/messages", HOST),
        ("anthropic/claude-sonnet-4-6", f"{HOST}/gateway/", f"{HOST}/gateway"),
        ("gemini/gemini-2.5-pro", HOST, f"{HOST}/v1beta"),
        ("gemini/gemini-2.5-pro", f"{HOST}/v1beta", f"{HOST}/v1beta"),
        ("gemini/gemini-2.5-pro", f"{HOST}/v1beta/models/gemini-2.5-pro", f"{HOST}/v1beta"),
        ("groq/openai/gpt-oss-120b", HOST, f"{HOST}/openai/v1"),
        ("openrouter/a/b", HOST, f"{HOST}/api/v1"),
        ("deepseek/deepseek-chat", HOST, HOST),
        ("ollama_chat/llama3", HOST, HOST),
        ("azure/gpt-5", f"{HOST}/openai/v1/", HOST),
        ("azure/gpt-5", f"{HOST}/openai/v1/responses", HOST),
        ("azure/gpt-5", f"{HOST}/openai", HOST),
        ("azure/gpt-5", f"{HOST}/proxy", f"{HOST}/proxy"),
        ("cohere_chat/command-a", HOST, f"{HOST}/v2/chat"),
        ("cohere_chat/command-a", f"{HOST}/v2", f"{HOST}/v2/chat"),
        ("cohere_chat/command-a", f"{HOST}/v2/chat", f"{HOST}/v2/chat"),
        ("zai/glm-4.7", HOST, f"{HOST}/api/paas/v4"),
        ("zai/glm-4.7", f"{HOST}/api/coding/paas/v4/", f"{HOST}/api/coding/paas/v4"),
        ("openai/x", f"{HOST}/v1/chat/completions", f"{HOST}/v1"),
    ],
)
def test_addresses_as_litellm_wants_them(model: str, configured: str, wanted: str) -> None:
    spec = ModelSpec("m", model, api_base=configured)
    assert api_base(spec, resolve_target(spec)) == wanted


def test_without_an_address_litellm_knows_it() -> None:
    spec = ModelSpec("m", "openai/gpt-5")
    assert api_base(spec, resolve_target(spec)) is None
    arguments = connection(make_request(spec), resolve_target(spec), Key())
    assert not {"api_base", "api_key"} & set(arguments)
    assert (arguments["max_retries"], arguments["num_retries"]) == (0, 0)


def test_where_a_key_comes_from() -> None:
    with environment({"OPENAI_API_KEY": "from-environment", "MINE": "from-mine"}):
        assert resolve_key(ModelSpec("m", "openai/x"), "openai").value == "from-environment"
        assert resolve_key(ModelSpec("m", "openai/x", api_key_env="MINE"), "openai").value == "from-mine"
        assert resolve_key(ModelSpec("m", "openai/x", api_key="given"), "openai").value == "given"
        local = ModelSpec("m", "openai/x", api_base="http://localhost:8080/v1")
        assert resolve_key(local, "openai").value == DUMMY_KEY, "a key is not given to whoever listens here"
    assert resolve_key(ModelSpec("m", "openai/x", api_key_env="NOT_SET"), "openai").missing == "NOT_SET"
    assert resolve_key(ModelSpec("m", "lm_studio/x"), "lm_studio").value == DUMMY_KEY
    aws = resolve_key(ModelSpec("m", "bedrock/x"), "bedrock")
    assert (aws.value, aws.missing) == (None, None), "LiteLLM finds such credentials itself"


def test_the_environment_keeps_litellm_offline_and_loopback_direct() -> None:
    values = {"NO_PROXY": "intranet", "LITELLM_MODE": "DEV"}
    prepare_environment(values)
    prepare_environment(values)
    assert values["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert values["LITELLM_MODE"] == "PRODUCTION"
    assert int(values["REPEATED_STREAMING_CHUNK_LIMIT"]) > 1_000_000
    assert values["NO_PROXY"] == "intranet,127.0.0.1,localhost,::1"
