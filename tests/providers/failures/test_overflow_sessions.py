"""Refusals as too long over real HTTP: how often is asked, for how long an answer, and what is kept of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import ModelConfig
from agent_tui.paths import Paths
from agent_tui.providers.client import ModelClient
from agent_tui.store.store import Store
from tests.support.end_to_end import Product, calls, model
from tests.support.forms import one_of
from tests.support.loopback import Loopback, Reply, anthropic_events, chat_stream, json_reply, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

WINDOW = 16_384
INPUT = 8_000
"""What the servers say the prompt is; near enough to its true size to be believed."""

TEXT = "one two three four five six seven eight nine ten " * 250

CHAT_USAGE = {"prompt_tokens": INPUT, "completion_tokens": 3, "total_tokens": INPUT + 3}
GEMINI_DONE = {
    "candidates": [{"content": {"parts": [{"text": "Done."}], "role": "model"}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": INPUT, "candidatesTokenCount": 3, "totalTokenCount": INPUT + 3},
}


@dataclasses.dataclass(frozen=True)
class Dialect:
    """A kind of server: a model of it, where it is asked, how it answers, and where the asked output stands."""

    name: str
    model: str
    base: str
    path: str
    answer: bytes
    asked: Callable[[Any], int]
    error: Callable[[str], dict[str, Any]]


def _openai_error(text: str) -> dict[str, Any]:
    return {"error": {"message": text, "type": "invalid_request_error", "param": "messages", "code": 400}}


def _anthropic_error(text: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": text}}


def _gemini_error(text: str) -> dict[str, Any]:
    return {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}


def _chat_asked(body: Any) -> int:
    return int(body.get("max_tokens") or body["max_completion_tokens"])


DONE = chat_stream(["Done."], usage=CHAT_USAGE)
ANTHROPIC = Dialect(
    "anthropic",
    "anthropic/claude-sonnet-4-5",
    "",
    "/v1/messages",
    sse(anthropic_events(["Done."]), named=True),
    lambda body: int(body["max_tokens"]),
    _anthropic_error,
)
OPENAI = Dialect("openai", "openai/gpt-4o", "/v1", "/v1/chat/completions", DONE, _chat_asked, _openai_error)
VLLM = Dialect("vllm", "hosted_vllm/qwen", "/v1", "/v1/chat/completions", DONE, _chat_asked, _openai_error)
LLAMA = Dialect("llama.cpp", "llamafile/local", "/v1", "/v1/chat/completions", DONE, _chat_asked, _openai_error)
GEMINI = Dialect(
    "gemini",
    "gemini/gemini-2.5-flash",
    "/v1beta",
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
    sse([GEMINI_DONE]),
    lambda body: int(body["generationConfig"].get("maxOutputTokens") or body["generationConfig"]["max_output_tokens"]),
    _gemini_error,
)

SHORTER: list[tuple[Dialect, str, int | None]] = [
    (ANTHROPIC, f"input length and `max_tokens` exceed context limit: {INPUT} + 9000 > {WINDOW}, decrease it", None),
    (
        OPENAI,
        f"This model's maximum context length is {WINDOW} tokens. However, you requested 17000 tokens ({INPUT} in the "
        "messages, 9000 in the completion). Please reduce the length of the messages or completion.",
        None,
    ),
    (
        VLLM,
        f"'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is {WINDOW} "
        f"tokens and your request has {INPUT} input tokens (9000 > {WINDOW} - {INPUT}). None",
        None,
    ),
    (ANTHROPIC, "max_tokens: 9000 > 4096, which is the maximum allowed number of output tokens for claude-x", 4_096),
    (OPENAI, "max_tokens is too large: 9000. This model supports at most 4096 completion tokens, whereas", 4_096),
    (
        GEMINI,
        "Unable to submit request because it has a maxOutputTokens value of 9000 but the supported range is from 1 "
        "(inclusive) to 4097 (exclusive). Update the value and try again.",
        4_096,
    ),
]

SMALLER: list[tuple[Dialect, dict[str, Any] | str]] = [
    (ANTHROPIC, "prompt is too long: 8001 tokens > 6000 maximum"),
    (OPENAI, "This model's maximum context length is 6000 tokens. However, your messages resulted in 8001 tokens."),
    (VLLM, "This model's maximum context length is 6000 tokens. However, your request has 8001 input tokens. Please"),
    (GEMINI, "The input token count (8001) exceeds the maximum number of tokens allowed (6000)."),
    (
        LLAMA,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size. try increasing the context size",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 8001,
                "n_ctx": 6000,
            }
        },
    ),
]


def refusal(dialect: Dialect, text: dict[str, Any] | str) -> Reply:
    return json_reply(dialect.error(text) if isinstance(text, str) else text, 400)


def product(dialect: Dialect, server: Loopback, worker: ModelClient, home: Path, window: int | None) -> Product:
    configured: ModelConfig = model(dialect.model, server, dialect.base, context_window=window, max_output=32_000)
    return Product(home, worker, {"m": configured})


@contextmanager
def stored(home: Path) -> Iterator[Store]:
    paths = Paths(home / "config", home / "data", home / "state", home / "cache")
    with Store.open(paths.database) as store:
        yield store


@pytest.mark.forms(1)
@pytest.mark.parametrize(("dialect", "text", "most"), SHORTER, ids=[f"{d.name} {t[:22]}" for d, t, _ in SHORTER])
async def test_where_only_the_answer_is_too_long_the_same_is_asked_with_less(
    dialect: Dialect, text: str, most: int | None, server: Loopback, worker: ModelClient, tmp_path: Path
) -> None:
    server.serve(dialect.path, refusal(dialect, text), Reply(dialect.answer))
    product_ = product(dialect, server, worker, tmp_path, WINDOW)
    summary = await product_.run(TEXT)
    assert product_.code == 0, summary
    first, second = (request.json for request in calls(server))
    assert dialect.asked(second) == (most or WINDOW - INPUT - 16)
    assert dialect.asked(second) < dialect.asked(first)
    for key in ("messages", "contents", "system", "tools"):
        assert first.get(key) == second.get(key)
    exported = product_.export()
    assert exported["compactions"] == []
    assert [s["status"] for s in exported["steps"] if s["kind"] == "turn"] == ["failed", "complete"]


@pytest.mark.forms(1)
@pytest.mark.parametrize(("dialect", "text"), one_of(SMALLER, 2), ids=[d.name for d, _ in SMALLER])
async def test_a_smaller_window_is_learned_kept_and_forgotten(
    dialect: Dialect,
    text: dict[str, Any] | str,
    server: Loopback,
    worker: ModelClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.serve(dialect.path, refusal(dialect, text))
    product_ = product(dialect, server, worker, tmp_path, WINDOW)
    await product_.run(TEXT)
    assert product_.code != 0
    # The only message there is cannot be made shorter by asking again; what the provider said is what is told.
    assert len(calls(server)) <= 2
    told = capsys.readouterr().err
    assert "The server says m has a window of 6,000 tokens (not 16,384)." in told
    assert "is larger than" in told
    # As the next start finds it.
    usage = await product_.context()
    assert usage["window"] == 6_000
    assert usage["window_origin"].startswith("learned from the server on 20")
    # The stated size is what the next request is taken to cost.
    (count,) = [s for s in product_.export()["steps"] if s["kind"] == "count"][:1]
    assert count["usage"]["input_tokens"] == 8_001
    agent = product_.agent()
    try:
        await agent.inspect()
        assert any(what == "learned limit" and "6,000" in detail for _, what, detail in await agent.project.doctor())
        assert await agent.models.forget_limits() == 1
        assert agent.context.usage().window == WINDOW
    finally:
        await agent.close()
    with stored(tmp_path) as store:
        assert store.learned.limits() == []


@pytest.mark.slow
async def test_another_window_in_the_configuration_forgets_what_was_learned(
    server: Loopback, worker: ModelClient, tmp_path: Path
) -> None:
    dialect, text = SMALLER[2]
    server.serve(dialect.path, refusal(dialect, text))
    product_ = product(dialect, server, worker, tmp_path, WINDOW)
    await product_.run(TEXT)
    assert (await product_.context())["window"] == 6_000
    again = product(dialect, server, worker, tmp_path, 12_000)
    again.session = product_.session
    usage = await again.context()
    assert usage["window"] == 12_000
    assert usage["window_origin"] == "config"
    product_.models = product(dialect, server, worker, tmp_path, WINDOW).models
    assert (await product_.context())["window"] == WINDOW


@pytest.mark.slow
async def test_a_refusal_that_stays_is_asked_three_times_at_most_and_told(
    server: Loopback, worker: ModelClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dialect, text, _ = SHORTER[1]
    server.serve(dialect.path, refusal(dialect, text))
    product_ = product(dialect, server, worker, tmp_path, WINDOW)
    await product_.run(TEXT)
    assert product_.code != 0
    assert len(calls(server)) <= 3
    assert f"maximum context length is {WINDOW}" in capsys.readouterr().err


async def test_a_rate_is_never_learned_as_a_window(server: Loopback, worker: ModelClient, tmp_path: Path) -> None:
    text = "Request too large for m on tokens per minute (TPM): Limit 6000, Requested 8001, please reduce your message"
    server.serve(OPENAI.path, json_reply(_openai_error(text), 413))
    product_ = product(OPENAI, server, worker, tmp_path, WINDOW)
    await product_.run(TEXT)
    assert product_.code != 0
    assert (await product_.context())["window"] == WINDOW
    with stored(tmp_path) as store:
        assert store.learned.limits() == []
