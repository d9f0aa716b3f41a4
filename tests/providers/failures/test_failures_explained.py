from __future__ import annotations

import json
from typing import Any

import pytest

from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog import Called, resolve_target
from agent_tui.providers.direct import HttpError
from agent_tui.providers.errors import GatewayError, StreamError, classify, seen_of
from agent_tui.providers.limits import problem
from agent_tui.providers.litellm_gateway import unwrap
from agent_tui.providers.overflow import is_overflow
from agent_tui.providers.secrets import Redactor, redact
from agent_tui.providers.waits import retry_after
from agent_tui.text.secrets import MASK
from tests.support.every import every
from tests.support.model_calls import environment

pytestmark = pytest.mark.quick

OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "Error code: 400 - {'error': {'code': 'context_length_exceeded'}}",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Input is too long for requested model.",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "request (9000 tokens) exceeds the available context size (8192 tokens)",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "Please reduce the length of the messages or completion.",
    "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "Current length is 9000 while limit is 8192",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens",
    "Invalid request: Your request exceeded model token limit: 131072",
    "prompt too long; exceeded max context length by 200 tokens",
    "Range of input length should be [1, 98304]",
    "model_context_window_exceeded",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
]


@every("text", OVERFLOWS)
def test_every_spelling_of_overflow(text: str) -> None:
    assert is_overflow(text)
    failure = classify(_Http(400, text), Called("p"), "m", False)
    assert failure.kind == "context_overflow"
    assert not failure.retryable


def test_a_missing_package_is_not_worth_another_attempt() -> None:
    failure = classify(ModuleNotFoundError("No module named 'google'"), Called("vertex_ai"), "m", False)
    assert not failure.retryable
    assert "google-auth" in failure.message
    failure = classify(ModuleNotFoundError("No module named 'boto3'"), Called("sagemaker"), "m", False)
    assert "(boto3)" in failure.message


@every(
    "text",
    [
        "Rate limit reached: tokens per min (TPM): Limit 30000, Used 29000, Requested 5000",
        "Invalid 'user': string too long. Expected a string with maximum length 64, string_above_max_length",
        "max_tokens: must be at least 1",
        "invalid temperature",
        "messages: text content blocks must be non-empty",
        "tool_use ids were found without tool_result blocks",
    ],
)
def test_other_errors_are_no_overflow(text: str) -> None:
    assert not is_overflow(text)


class _Http(Exception):
    def __init__(self, status: int | None, text: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.message = text
        self.status_code = status
        self.headers = headers or {}


class MidStreamFallbackError(Exception):
    """Named like LiteLLM's."""

    status_code = 503

    def __init__(self, original: Exception | None) -> None:
        super().__init__("mid stream")
        self.original_exception = original


@every(
    ("status", "text", "kind"),
    [
        (429, "You exceeded your current quota", "rate_limit"),
        (429, "insufficient_quota", "auth"),
        (400, "Your credit balance is too low to access the Anthropic API", "auth"),
        (402, "Insufficient Balance", "auth"),
        (400, "API key not valid. Please pass a valid API key.", "auth"),
        (400, "The response was blocked by the content management policy", "content_refused"),
        (400, "model `x` does not exist", "not_found"),
        (422, "bad field", "invalid_request"),
        (502, "bad gateway", "overloaded"),
    ],
)
def test_statuses_are_read_together_with_words(status: int, text: str, kind: str) -> None:
    assert classify(_Http(status, text), Called("p"), "m", False).kind == kind


def _passed_on(raw: Any, code: int) -> dict[str, Any]:
    """As OpenRouter says what the provider behind it said."""
    metadata = {"raw": raw, "provider_name": "OpenAI", "is_byok": False}
    return {"error": {"message": "Provider returned error", "code": code, "metadata": metadata}, "user_id": "org_1"}


_UNKNOWN = "Invalid model name passed in model=own/kimi. Call `/v1/models` to view available models for your key."
_INNER = {"error": {"message": "The words must contain 'json'.", "type": "invalid_request_error", "code": None}}


@every(
    ("status", "body", "kind", "words"),
    [
        (400, _passed_on(json.dumps(_INNER, indent=2), 400), "invalid_request", "The words must contain 'json'."),
        (400, _passed_on(_INNER, 400), "invalid_request", "The words must contain 'json'."),
        (429, _passed_on("z-ai/glm is temporarily rate-limited upstream.", 429), "rate_limit", "rate-limited upstream"),
        (400, _passed_on('{"error": {"message": "prompt is too long: 9 > 8"', 400), "context_overflow", "too long"),
        (502, _passed_on("", 502), "overloaded", "Provider returned error"),
        # LiteLLM's proxy, in the forms it had over the years.
        (
            400,
            {"error": {"message": "Budget has been exceeded! Current cost: 10.51, Max budget: 10.00", "code": "400"}},
            "auth",
            "Current cost: 10.51, Max budget: 10.00",
        ),
        (
            429,
            {"error": {"message": "LiteLLM User: al, exceeded budget for model=opus", "type": "budget_exceeded"}},
            "auth",
            "exceeded budget for model=opus",
        ),
        (400, {"error": {"message": "ExceededBudget: End User=al over budget."}}, "auth", "End User=al over budget"),
        (400, {"error": {"message": f"/chat/completions: {_UNKNOWN}", "type": "None"}}, "not_found", _UNKNOWN),
        (400, {"error": {"message": {"error": _UNKNOWN}, "type": "None", "code": "400"}}, "not_found", _UNKNOWN),
        (400, {"error": {"message": f"400: {{'error': '{_UNKNOWN}'}}", "code": 400}}, "not_found", _UNKNOWN),
    ],
)
def test_what_a_gateway_passes_on_is_said_in_the_words_of_who_said_it(
    status: int, body: dict[str, Any], kind: str, words: str
) -> None:
    for error in (HttpError(status, {}, body), StreamError({**body, "error": {**body["error"], "code": status}})):
        failure = classify(error, Called("openrouter"), "own/kimi", False)
        assert failure.kind == kind
        assert words in failure.message, failure.message
        assert "{" not in failure.message, failure.message
        assert failure.retryable is (kind in ("rate_limit", "overloaded"))
    through = f"litellm.APIError: APIError: OpenrouterException - {json.dumps(body)}"
    assert words in classify(_Http(status, through), Called("openrouter"), "own/kimi", False).message


def test_errors_of_a_running_stream_are_unwrapped() -> None:
    inner = _Http(429, "slow down", {"Retry-After": "3"})
    outer = MidStreamFallbackError(MidStreamFallbackError(inner))
    assert unwrap(outer) is inner
    failure = classify(GatewayError(seen_of(unwrap(outer))), Called("gemini"), "m", False)
    assert (failure.kind, failure.status, failure.retry_after) == ("rate_limit", 429, 3.0)


def test_unwrapping_ends_where_nothing_is_inside() -> None:
    outer = MidStreamFallbackError(None)
    assert unwrap(outer) is outer
    assert classify(outer, Called("p"), "m", True).kind == "interrupted_stream"


@every(
    ("event", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded"),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}, "rate_limit"),
        ({"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}, "overloaded"),
        ({"error": {"code": 400, "message": "prompt is too long: 5 > 4"}}, "context_overflow"),
        ({"message": "melted", "code": "server_error"}, "overloaded"),
    ],
)
def test_error_events(event: dict[str, object], kind: str) -> None:
    assert classify(StreamError(event), Called("p"), "m", True).kind == kind


@every(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"llm_provider-retry-after": "4", "retry-after": "9"}, 4.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:01:10 GMT"}, 10.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=60.0) == seconds


def test_messages_are_one_clean_line() -> None:
    failure = classify(_Http(500, "bad\x1b[31m\x07 thing\n" * 300), Called("p"), "m", False)
    assert "\n" not in failure.message
    assert "\x1b" not in failure.message + failure.detail
    assert len(failure.message) < 400
    assert len(failure.detail) <= 4000


@every(
    ("address", "shown"),
    [
        (None, "No connection to openai."),
        ("http://127.0.0.1:8000/v1", "No connection to the server at http://127.0.0.1:8000/v1."),
        ("https://me:secret@host:1/v1?key=secret#secret", "No connection to the server at https://host:1/v1."),
        ("http://[::1]:8000", "No connection to the server at http://[::1]:8000."),
        ("https://api.openai.com/v1", "No connection to openai at https://api.openai.com/v1."),
        ("http://[broken", "No connection to the server at the address in api_base."),
    ],
)
def test_no_connection_names_the_address_but_no_secret(address: str | None, shown: str) -> None:
    error = ConnectionRefusedError("refused")
    failure = classify(error, Called("openai", address), "m", False)
    assert failure.kind == "connection"
    assert failure.message.startswith(f"{shown} Your text is kept.")
    assert "secret" not in failure.message


def test_an_exception_in_a_circle_ends() -> None:
    error = ValueError("a")
    error.__cause__ = error
    assert classify(error, Called("p"), "m", False).kind == "invalid_request"


@every(
    "text",
    [
        "key sk-ant-REDACTED refused",
        "Authorization: Bearer abcdefghijklmnop",
        "x-api-key: 0123456789abcdef",
        "url https://host/v1?key=AIzaSyA0123456789abcdefghijklmnopqrs&alt=sse",
        "https://user:password@host/path",
        '{"api_key": "very-secret-value"}',
    ],
)
def test_what_looks_like_a_key_is_removed(text: str) -> None:
    cleaned = redact(text)
    assert MASK in cleaned
    for secret in ("sk-ant-REDACTED", "abcdefghijklmnop", "0123456789abcdef", "AIza", "password", "very-secret"):
        assert secret not in cleaned


def test_known_keys_are_removed_wherever_they_stand() -> None:
    with environment({"SOME_SERVICE_TOKEN": "plain words here"}):
        assert redact("it said plain words here!") == f"it said {MASK}!"
    redactor = Redactor()
    redactor.add("oddly shaped key")
    redactor.add(None)
    assert redactor("an oddly shaped key") == f"an {MASK}"


def test_ordinary_text_is_left_alone() -> None:
    text = "The task-sk list: tokens per key, max_tokens: 4096, path /usr/lib/python3.11, risk-free"
    assert redact(text) == text


class BadStatusLine(Exception):
    """Named like aiohttp's."""


class InternalServerError(_Http):
    """Named like LiteLLM's, which makes up a status for a connection that was lost."""


def caused(outer: Exception, inner: Exception) -> Exception:
    outer.__cause__ = inner
    return outer


@every(
    ("error", "kind", "words"),
    [
        (caused(_Http(500, "x"), BadStatusLine("SSH-2.0")), "bad_answer", "not a model's answer"),
        (caused(_Http(500, "x"), BadStatusLine("b'\\x15\\x03\\x01'")), "bad_answer", "expects https"),
        (_Http(400, "<html>The plain HTTP request was sent to HTTPS port"), "bad_answer", "expects https"),
        (_Http(400, "Client sent an HTTP request to an HTTPS server."), "bad_answer", "expects https"),
        (ValueError("x"), "invalid_request", "refused"),
        (
            InternalServerError(500, "OpenAIException - Connection error."),
            "connection",
            "No",
        ),
        (InternalServerError(500, "the database connection error handler failed"), "overloaded", "HTTP 500"),
    ],
)
def test_what_is_no_answer_is_not_called_a_status_or_a_lost_connection(error: Exception, kind: str, words: str) -> None:
    failure = classify(error, Called("p", "http://127.0.0.1:9"), "m", False)
    assert (failure.kind, words in failure.message) == (kind, True)
    assert kind != "bad_answer" or (not failure.retryable and "HTTP 500" not in failure.message)


def test_garbage_that_comes_first_is_no_lost_connection() -> None:
    broken = caused(_Http(None, "APIConnectionError: Expecting value"), json.JSONDecodeError("Expecting value", "x", 0))
    assert classify(broken, Called("p"), "m", False).kind == "bad_answer"


OWN = "http://127.0.0.1:8000/v1"


@every(
    ("provider", "address", "key_env", "first", "advice"),
    [
        ("openai", None, None, "openai refused the key", "set OPENAI_API_KEY or run `agent-tui auth set openai`"),
        ("openai", None, "WORK_KEY", "openai refused the key", "Check the key in WORK_KEY."),
        (
            "openai",
            OWN,
            "WORK_KEY",
            "The server at http://127.0.0.1:8000 refused the key",
            "Check the key in WORK_KEY.",
        ),
        ("openai", OWN, None, "The server at http://127.0.0.1:8000 refused the key", "set api_key_env of the model"),
        ("openai", "https://api.openai.com/v1", None, "openai refused the key", "set OPENAI_API_KEY"),
        ("litellm_proxy", OWN, "WORK_KEY", "The server at http://127.0.0.1:8000 refused", "in WORK_KEY."),
        ("groq", "https://eu.groq.example", "WORK_KEY", "groq refused the key", "in WORK_KEY."),
        ("anthropic", None, None, "anthropic refused the key", "set ANTHROPIC_API_KEY"),
    ],
)
def test_a_refused_key_names_what_is_configured(
    provider: str, address: str | None, key_env: str | None, first: str, advice: str
) -> None:
    failure = classify(_Http(401, "nope"), Called(provider, address, key_env), "m", False)
    assert failure.message.startswith(first)
    assert advice in failure.message
    assert key_env is None or "OPENAI_API_KEY" not in failure.message
    assert key_env is None or "auth set" not in failure.message


@every("status", [400, 404, 429, 500, 403, 402, 408])
def test_a_server_of_ones_own_is_never_called_openai(status: int) -> None:
    failure = classify(_Http(status, "no"), Called("openai", OWN, "K"), "m", False)
    assert "openai" not in failure.message.lower()
    assert "he server at http://127.0.0.1:8000" in failure.message


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (ModelSpec("m", "openai/x"), "No API key for openai: set OPENAI_API_KEY, or run `agent-tui auth set openai`."),
        (
            ModelSpec("m", "openai/x", api_base="https://llm.example/v1"),
            "No API key for the server at https://llm.example: set OPENAI_API_KEY, or set api_key_env "
            "of the model to the variable that holds it.",
        ),
        (
            ModelSpec("m", "openai/x", api_base="https://llm.example/v1", api_key_env="WORK_KEY"),
            "No API key for the server at https://llm.example: set WORK_KEY, the variable in api_key_env of the model.",
        ),
    ],
)
def test_a_missing_key_names_the_variable_and_the_server(spec: ModelSpec, words: str) -> None:
    with environment({"OPENAI_API_KEY": None, "WORK_KEY": None}):
        assert problem(spec, resolve_target(spec)) == words


@every(
    "text",
    [
        "tools param requires --jinja flag",
        "tool_choice param requires --jinja flag",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "Unable to generate parser for this template. Automatic parser generation failed",
        "Error rendering prompt with jinja template: unknown filter",
        'template: :3:20: executing "" at <.Messages>: no entry',
        "Conversation roles must alternate user/assistant/user/assistant/... at row 1, column 87:",
        "registry.ollama.ai/library/x does not support tools",
    ],
)
@every("event", [False, True])
def test_what_a_server_cannot_do_is_not_tried_again(text: str, event: bool) -> None:
    error: Exception = StreamError({"error": {"message": text, "code": 500}}) if event else _Http(500, text)
    failure = classify(error, Called("openai", OWN), "m", False)
    assert (failure.kind, failure.retryable) == ("invalid_request", False)
    assert text[:40].split(" at row")[0][:30] in failure.message


@every("text", ["loading model", "internal server error", "CUDA error: out of memory", "slot busy"])
def test_what_may_pass_is_tried_again(text: str) -> None:
    assert classify(_Http(500, text), Called("openai"), "m", False).retryable


@every(
    ("body", "words"),
    [
        (
            '{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}}',
            "Method not found",
        ),
        ('{"type": "https://x/e", "title": "Unauthorized", "status": 400, "detail": "Token is old"}', "Token is old"),
        ("{'title': 'Unauthorized', 'detail': 'It\\'s \"old\"'}", 'It\'s "old"'),
        ("<!DOCTYPE html><html><head><title>Bad &amp; Gateway</title></head><body>x</body></html>", "Bad & Gateway"),
        ("<html><style>p {}</style><body><p>Come <b>back</b> later</p></body></html>", "Come back later"),
        ("<html><h1>502</h1></html>", "502"),
    ],
)
@every("wrapped", ["{}", "litellm.BadRequestError: OpenAIException - {}", "Error code: 400 - {}"])
def test_bodies_of_every_kind_are_told_in_one_line(body: str, words: str, wrapped: str) -> None:
    failure = classify(_Http(400, wrapped.format(body)), Called("p"), "m", False)
    assert f"{words}. Your text is kept" in failure.message
    assert not {"<", "{", "\n"} & set(failure.message)


@every(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"code": 529, "message": "busy"}, "overloaded"),
        ({"code": 502, "message": "Provider returned error"}, "overloaded"),
        ({"code": "server_error", "message": "The server had an error"}, "overloaded"),
        ({"code": "rate_limit_exceeded", "message": "Slow down"}, "rate_limit"),
        ({"message": "network error"}, "interrupted_stream"),
        ({"message": "Something nobody knows"}, "interrupted_stream"),
        ({"type": "invalid_request_error", "message": "messages.3 is wrong"}, "invalid_request"),
        ({"code": "invalid_prompt", "message": "It is flagged"}, "invalid_request"),
        ({"type": "authentication_error", "message": "invalid x-api-key"}, "auth"),
    ],
)
def test_an_error_in_the_middle_of_an_answer(error: dict[str, Any], kind: str) -> None:
    """Only what may be otherwise the next time is tried again."""
    failure = classify(StreamError(error), Called("some"), "m", True)
    assert (failure.kind, failure.retryable) == (kind, kind not in ("invalid_request", "auth"))


@every("words", ["network error", "upstream connect error", "fetch failed", "Provider returned error"])
def test_what_a_gateway_sends_instead_of_an_answer_is_tried_again(words: str) -> None:
    assert classify(StreamError({"message": words}), Called("some"), "m", False).retryable


@pytest.mark.parametrize("started", [True, False])
def test_a_window_that_is_full_in_the_middle_of_an_answer(started: bool) -> None:
    error = StreamError({"message": "This model's maximum context length is 8192 tokens; you requested 9000 tokens."})
    overflow = classify(error, Called("some"), "m", started).overflow
    assert overflow is not None and overflow.answering is started and overflow.window == 8192
