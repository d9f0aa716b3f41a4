"""Direct calls on the wire: connections that are kept, closed and never sent elsewhere, and what is never imported."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_tui.models.requests import Failed, Finished, ModelSpec, StreamItem
from agent_tui.providers import calling as call
from agent_tui.providers.catalog import DIALECTS, is_direct, resolve_target
from agent_tui.providers.dialects.chat import AZURE_API_VERSION
from agent_tui.providers.direct import Connections, NoAddressError, url_of
from agent_tui.providers.server_facts import Server
from tests.support.loopback import Loopback, Reply, anthropic_events, chat_stream, json_reply, sse
from tests.support.model_calls import KEY, Answer, environment, make_request, run_python
from tests.support.recorded import info_for

pytestmark = [pytest.mark.quick, pytest.mark.versions]

MODELS = (
    "openai/local",
    "anthropic/claude-sonnet-4-6",
    "gemini/gemini-2.5-pro",
    "ollama_chat/qwen3",
    "cohere/command-a",
)


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    kept = Connections()
    yield kept
    await kept.aclose()


async def ask(spec: ModelSpec, connections: Connections, **more: Any) -> Answer:
    items: list[StreamItem] = []

    await call.run(make_request(spec, **more), info_for(spec), items.append, connections)
    return Answer(items)


def spec_at(url: str, model: str = "openai/local", **more: Any) -> ModelSpec:
    return ModelSpec("m", model, api_base=url, api_key=KEY, **more)


async def test_steps_share_a_connection(server: Loopback, connections: Connections) -> None:
    server.serve("*", Reply(chat_stream(["hi"])))
    for _ in range(3):
        assert (await ask(spec_at(server.url), connections)).text == "hi"
    [client] = connections._clients.values()
    pool: Any = client._transport
    assert len(pool._pool.connections) == 1


async def test_a_kept_connection_that_the_server_closed_is_no_failure(
    server: Loopback, connections: Connections
) -> None:
    server.serve("*", Reply(chat_stream(["one"])), Reply(drop=True), Reply(chat_stream(["two"])))
    assert (await ask(spec_at(server.url), connections)).text == "one"
    assert (await ask(spec_at(server.url), connections)).text == "two"
    assert len(server.requests) == 3


async def test_a_new_connection_that_is_closed_is_a_failure_at_once(server: Loopback, connections: Connections) -> None:
    server.serve("*", Reply(drop=True))
    failure = (await ask(spec_at(server.url), connections)).failure
    assert failure.kind == "connection"
    assert failure.retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("model", "body"),
    [
        ("openai/local", chat_stream(["all of it"])),
        ("anthropic/claude-sonnet-4-6", sse(anthropic_events(["all of it"]), named=True)),
    ],
)
async def test_an_answer_that_is_complete_does_not_wait_for_the_connection_to_end(
    server: Loopback, connections: Connections, model: str, body: bytes
) -> None:
    server.serve("*", Reply(body, hang=True))
    answer = await ask(spec_at(server.url, model), connections, timeout=0.3)
    assert answer.text == "all of it"
    assert isinstance(answer.items[-1], Finished)
    assert answer.usage is not None
    assert answer.usage.usage.input == 11
    await asyncio.to_thread(server.wait_for_client_to_leave)


async def test_cancelling_closes_the_connection(server: Loopback, connections: Connections) -> None:
    server.serve("*", Reply(sse(["hello"]), hang=True))
    running = asyncio.create_task(ask(spec_at(server.url), connections))
    await asyncio.to_thread(server.wait_for_requests, 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.to_thread(server.wait_for_client_to_leave)


async def test_silence_ends_the_call_and_the_connection(server: Loopback, connections: Connections) -> None:
    server.serve("*", Reply(b"", hang=True))
    answer = await ask(spec_at(server.url), connections, timeout=1)
    assert answer.failure.kind == "timeout"
    await asyncio.to_thread(server.wait_for_client_to_leave)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_gets_neither_key_nor_conversation(
    server: Loopback, connections: Connections, model: str, status: int
) -> None:
    with Loopback() as elsewhere:
        elsewhere.serve("*", Reply(chat_stream(["stolen"])))
        server.serve("*", Reply(b"", status, headers={"Location": f"{elsewhere.url}/v1/chat/completions"}))
        answer = await ask(spec_at(server.url, model), connections)
        assert elsewhere.requests == []
    assert server.url in answer.failure.message
    assert elsewhere.url in answer.failure.message


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_an_answer_packed_against_our_wish_is_read(
    server: Loopback, connections: Connections, coding: str
) -> None:
    import zlib

    body = chat_stream(["packed ", "words"])
    packed = gzip.compress(body) if coding == "gzip" else zlib.compress(body)
    pieces = [packed[i : i + 7] for i in range(0, len(packed), 7)]
    server.serve("*", Reply(pieces, headers={"Content-Encoding": coding}))
    assert (await ask(spec_at(server.url), connections)).text == "packed words"


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (json_reply({"error": {"message": "bad key"}}, 401), "auth", "bad key"),
        (json_reply({"error": "model 'x' does not support tools"}, 400), "invalid_request", "does not support tools"),
        (json_reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "7"}), "rate_limit", "7 s"),
        (json_reply({"type": "error", "error": {"type": "overloaded_error"}}, 529), "overloaded", "529"),
        (Reply(b"<html>" + b"x" * 5_000_000, 502, "text/html"), "overloaded", "502"),
        (Reply(b"<html><title>Bad &amp; Gateway</title><p>x</p>", 502, "text/html"), "overloaded", "Bad & Gateway"),
        (json_reply([{"error": {"code": 400, "message": "in a list"}}], 400), "invalid_request", "in a list"),
        (
            json_reply({"detail": [{"loc": ["body"], "msg": "field required"}]}, 422),
            "invalid_request",
            "field required",
        ),
        (json_reply({"message": "no such model"}, 404), "not_found", "no such model"),
    ],
    ids=["key", "tools", "rate", "overloaded", "long page", "page", "list", "validation", "model"],
)
async def test_the_servers_own_words_are_told(
    server: Loopback, connections: Connections, reply: Reply, kind: str, words: str
) -> None:
    server.serve("*", reply)
    failure = (await ask(spec_at(server.url), connections)).failure
    assert failure.kind == kind
    assert words in failure.message
    assert KEY not in failure.message + failure.detail
    assert len(failure.detail) < 100_000


async def test_extra_goes_into_the_body_and_the_headers(server: Loopback, connections: Connections) -> None:
    server.serve("*", Reply(sse(anthropic_events(["hi"]), named=True)))
    extra = {"metadata": {"user_id": "me"}, "extra_headers": {"X-Team": "blue"}, "extra_body": {"service_tier": "auto"}}
    answer = await ask(spec_at(server.url, "anthropic/claude-sonnet-4-6", extra=extra), connections)
    assert isinstance(answer.items[-1], Finished)
    [request] = server.requests
    assert (request.json["metadata"], request.json["service_tier"]) == ({"user_id": "me"}, "auto")
    assert request.header("x-team") == "blue"
    assert request.json["stream"] is True


@pytest.mark.parametrize("way", ["keyring", "extra", "api_key_env", "usual"])
async def test_white_space_around_a_key_is_not_sent(server: Loopback, connections: Connections, way: str) -> None:
    server.serve("*", Reply(sse(anthropic_events(["hi"]), named=True)))
    given = f" {KEY}\n"
    ways: dict[str, dict[str, Any]] = {
        "keyring": {"api_key": given},
        "extra": {"extra": {"api_key": given}},
        "api_key_env": {"api_key_env": "OWN_KEY"},
        "usual": {},
    }
    more = ways[way]
    with environment({"OWN_KEY": given, "ANTHROPIC_API_KEY": given if way == "usual" else None}):
        await ask(ModelSpec("m", "anthropic/claude-sonnet-4-6", api_base=server.url, **more), connections)
    assert server.requests[0].header("x-api-key") == KEY


@pytest.mark.parametrize("bad", ["sk-first\nsk-second", "sk-\x07a", "sk-käse", "sk-“quoted”"])
async def test_a_key_that_no_header_carries_is_told_without_its_text(
    server: Loopback, connections: Connections, bad: str
) -> None:
    with environment({"OWN_KEY": bad}):
        spec = ModelSpec("m", "openai/local", api_base=server.url, api_key_env="OWN_KEY")
        failure = (await ask(spec, connections)).failure
    assert failure.kind == "auth"
    assert "OWN_KEY" in failure.message
    assert "sk-" not in failure.message + failure.detail
    assert server.requests == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
async def test_a_certificate_of_ones_own_is_trusted(tmp_path: Path, server: Loopback, connections: Connections) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout"
    made = await asyncio.create_subprocess_exec(
        "openssl",
        *command.split(),
        str(key),
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-out",
        str(certificate),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    await made.wait()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
    server.serve("*", Reply(chat_stream(["secret"])))
    url = server.url.replace("http:", "https:")
    refused = await ask(spec_at(url), connections)
    assert "TLS" in refused.failure.message
    with environment({"SSL_CERT_FILE": str(certificate)}):
        await connections.aclose()
        assert (await ask(spec_at(url), connections)).text == "secret"


async def test_a_proxy_of_the_environment_is_used(server: Loopback, connections: Connections) -> None:
    server.serve("*", Reply(chat_stream(["by proxy"])))
    with environment({"HTTP_PROXY": server.url, "http_proxy": server.url, "NO_PROXY": None, "no_proxy": None}):
        answer = await ask(spec_at("http://model.invalid/v1"), connections)
    assert answer.text == "by proxy"
    assert server.requests[0].header("host") == "model.invalid"


_NO_PROXIES = {
    name: None for upper in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY") for name in (upper, upper.lower())
}


@pytest.mark.parametrize(
    "settings",
    [{"HTTP_PROXY": "http://127.0.0.1:1"}, {"ALL_PROXY": "socks5h://127.0.0.1:1"}, {"NO_PROXY": "::1,[::1]"}],
    ids=lambda settings: next(iter(settings)),
)
async def test_a_server_on_this_machine_is_asked_without_a_proxy(
    server: Loopback, connections: Connections, settings: dict[str, str]
) -> None:
    server.serve("*", Reply(chat_stream(["near"])))
    with environment({**_NO_PROXIES, **settings}):
        assert (await ask(spec_at(server.url), connections)).text == "near"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"HTTPS_PROXY": "ftp://user:secret@proxy"}, "HTTPS_PROXY"),
        ({"HTTP_PROXY": "http://proxy", "NO_PROXY": "[::1]"}, "NO_PROXY"),
        ({"SSL_CERT_FILE": "/no/such/file"}, "SSL_CERT_FILE"),
    ],
)
async def test_settings_of_the_network_that_cannot_be_used_are_named(
    connections: Connections, settings: dict[str, str], told: str
) -> None:
    with environment({**_NO_PROXIES, **settings}):
        failure = (await ask(spec_at("https://model.invalid/v1"), connections)).failure
    assert failure.kind == "invalid_request"
    assert told in failure.message
    assert "secret" not in failure.message + failure.detail


async def test_a_socks_proxy_without_its_package_says_what_to_install(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    with environment({**_NO_PROXIES, "ALL_PROXY": "socks5://proxy:1080"}):
        failure = (await ask(spec_at("https://model.invalid/v1"), connections)).failure
    assert "ALL_PROXY names a SOCKS proxy" in failure.message
    assert "socksio" in failure.message


@pytest.mark.parametrize(
    "base",
    ["http://h:99999/v1", "http:///v1", "ftp://h/v1", "http://h h/v1", "api.example.com/v1", "https://[::1/v1"],
)
async def test_an_address_that_is_none_is_told_before_anything_is_sent(connections: Connections, base: str) -> None:
    failure = (await ask(spec_at(base), connections)).failure
    assert failure.kind == "invalid_request"
    assert failure.message.startswith("api_base of the model is not the address of an API")


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("localhost", "http://localhost:11434"),
        (":11500", "http://127.0.0.1:11500"),
        ("0.0.0.0:11500", "http://127.0.0.1:11500"),
        ("http://0.0.0.0:11500/", "http://127.0.0.1:11500"),
        ("[::1]", "http://[::1]:11434"),
        ("https://ollama.example.com", "https://ollama.example.com"),
        ("box:80/behind", "http://box/behind"),
    ],
)
async def test_ollamas_own_variable_is_read_as_ollama_reads_it(given: str, root: str) -> None:
    spec = ModelSpec("m", "ollama_chat/q")
    target = resolve_target(spec)
    with environment({"OLLAMA_API_BASE": None, "OLLAMA_HOST": given}):
        assert url_of(spec, target) == f"{root}/api/chat"
        assert Server(spec, target, Connections()).root == root


async def test_a_redirect_of_ones_own_server_names_the_server(server: Loopback, connections: Connections) -> None:
    server.serve("*", Reply(b"", 302, headers={"Location": "https://login.invalid/"}))
    failure = (await ask(spec_at(server.url), connections)).failure
    assert failure.message.startswith(f"{server.url} redirects to https://login.invalid")


async def test_a_status_without_words_is_told_once(server: Loopback, connections: Connections) -> None:
    server.serve("*", Reply(b"", 500))
    assert (await ask(spec_at(server.url), connections)).failure.message.count("HTTP 500") == 1


@pytest.mark.parametrize(
    ("model", "base", "more", "wanted"),
    [
        ("openai/gpt-4.1", None, {}, "https://api.openai.com/v1/chat/completions"),
        ("openai/gpt-5", None, {}, "https://api.openai.com/v1/responses"),
        ("openai/x", "http://h/v1/chat/completions", {}, "http://h/v1/chat/completions"),
        ("anthropic/claude-sonnet-4-6", None, {}, "https://api.anthropic.com/v1/messages"),
        ("anthropic/claude-sonnet-4-6", "http://h/gateway/", {}, "http://h/gateway/v1/messages"),
        ("gemini/gemini-3-pro", "http://h", {}, "http://h/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"),
        ("cohere_chat/command-a", "http://h", {}, "http://h/v2/chat"),
        ("cohere_chat/command-a", "http://h/v2/chat", {}, "http://h/v2/chat"),
        ("ollama_chat/q", "http://h:11434/v1", {}, "http://h:11434/api/chat"),
        ("groq/openai/gpt-oss", "http://h", {}, "http://h/openai/v1/chat/completions"),
        ("zai/glm", "http://h/api/coding/paas/v4", {}, "http://h/api/coding/paas/v4/chat/completions"),
        (
            "azure/mine",
            "https://me.openai.azure.com",
            {},
            f"https://me.openai.azure.com/openai/deployments/mine/chat/completions?api-version={AZURE_API_VERSION}",
        ),
        (
            "azure/mine",
            "https://me.openai.azure.com/",
            {"extra": {"api_version": "2024-10-21"}},
            "https://me.openai.azure.com/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        ),
        ("azure/mine", "https://me/openai/v1", {}, "https://me/openai/v1/chat/completions"),
        ("azure/gpt-5", "https://me/openai/v1/", {"api": "responses"}, "https://me/openai/v1/responses"),
    ],
)
def test_addresses(model: str, base: str | None, more: dict[str, Any], wanted: str) -> None:
    spec = ModelSpec("m", model, api_base=base, **more)
    target = resolve_target(spec)
    with environment(dict.fromkeys([n for d in DIALECTS.values() for n in d.base_variables], None)):
        assert url_of(spec, target) == wanted


def test_a_provider_without_an_address_says_what_to_set() -> None:
    spec = ModelSpec("m", "azure/mine")
    with environment({"AZURE_API_BASE": None}), pytest.raises(NoAddressError, match="AZURE_API_BASE"):
        url_of(spec, resolve_target(spec))


async def test_a_missing_address_is_one_clear_line(connections: Connections) -> None:
    with environment({"AZURE_API_BASE": None}):
        answer = await ask(ModelSpec("m", "azure/mine", api_key=KEY), connections)
    assert isinstance(answer.items[-1], Failed)
    assert "set api_base of the model, or AZURE_API_BASE" in answer.failure.message


_CLIENT = """
import asyncio, json, sys
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.client import ModelClient
from tests.support.model_calls import make_request
async def main():
    client = ModelClient()
    for model, api in json.loads(sys.argv[2]):
        request = make_request(ModelSpec("m", model, api_base=sys.argv[1], api_key="k", api=api))
        async for item in client.stream(request):
            pass
        await client.count_exact(request)
    started = client.worker.pid
    await client.close()
    return started
started = asyncio.run(main())
names = ("litellm", "tiktoken", "openai", "aiohttp", "anthropic", "google.genai", "rich", "click")
print(json.dumps({"heavy": [name for name in names if name in sys.modules], "worker": started}))
"""


def test_direct_calls_need_no_worker_and_nothing_heavy(server: Loopback) -> None:
    server.serve("*", Reply(chat_stream(["hello"])))
    names = sorted(name for name, dialect in DIALECTS.items() if dialect.wire is not None)
    models = [(f"{name}/some-model", "chat") for name in names] + [("openai/gpt-5", "responses")]
    done = run_python(_CLIENT, server.url, json.dumps(models))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said == {"heavy": [], "worker": None}
    assert len([r for r in server.requests if "count" not in r.path and "input_tokens" not in r.path]) == len(models)


@pytest.mark.parametrize("extra", [{"azure_ad_token": "t"}, {"organization": "o"}, {"aws_region_name": "r"}])
def test_what_is_meant_for_litellm_goes_through_it(extra: dict[str, str]) -> None:
    for model in ("azure/mine", "openai/gpt-5"):
        spec = ModelSpec("m", model, api_base="http://127.0.0.1:9", extra=extra)
        assert not is_direct(spec, resolve_target(spec))


@pytest.mark.parametrize("extra", [{"temperature": 0.5}, {"extra_headers": {"x": "y"}}, {"api_version": "v1"}])
def test_fields_of_a_body_need_no_litellm(extra: dict[str, Any]) -> None:
    spec = ModelSpec("m", "azure/mine", api_base="http://127.0.0.1:9", extra=extra)
    assert is_direct(spec, resolve_target(spec))
