"""How an answer ended, by every API: what each reason makes of it, and what an unknown one does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_tui.models.failure import Failure
from agent_tui.models.requests import FinishReason
from agent_tui.providers.catalog import Called
from agent_tui.providers.dialects.endings import ENDINGS, Ending, ending_of
from agent_tui.providers.errors import bad_end_failure
from tests.providers.streams.test_streams import Accumulated, accumulate, block, claude
from tests.support.loopback import sse

pytestmark = [pytest.mark.quick, pytest.mark.versions]


def _chat(reason: str, text: str) -> Accumulated:
    deltas = [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}] if text else []
    return accumulate(sse([*deltas, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}, "[DONE]"]))


def _claude(reason: str, text: str) -> Accumulated:
    said = [block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})] if text else []
    return accumulate(claude(*said, stop=reason), "anthropic")


def _gemini(reason: str, text: str) -> Accumulated:
    content: dict[str, Any] = {"content": {"parts": [{"text": text}]}} if text else {}
    return accumulate(sse([{"candidates": [{**content, "finishReason": reason}]}]), "gemini")


def _responses(reason: str, text: str) -> Accumulated:
    said = [{"type": "response.output_text.delta", "output_index": 0, "delta": text}] if text else []
    response = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return accumulate(sse([*said, {"type": "response.incomplete", "response": response}]))


def _cohere(reason: str, text: str) -> Accumulated:
    said = [{"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}}] if text else []
    return accumulate(sse([*said, {"type": "message-end", "delta": {"finish_reason": reason}}]), "cohere")


def _ollama(reason: str, text: str) -> Accumulated:
    end = {"message": {"role": "assistant", "content": text}, "done": True, "done_reason": reason}
    return accumulate(sse([end]).removeprefix(b"data: "), "ollama_chat", "application/x-ndjson")


APIS: dict[str, Callable[[str, str], Accumulated]] = {
    "chat": _chat,
    "anthropic": _claude,
    "gemini": _gemini,
    "responses": _responses,
    "cohere": _cohere,
    "ollama": _ollama,
}
every_api = pytest.mark.parametrize("api", APIS)


def said(got: Accumulated, started: bool) -> FinishReason | Failure:
    """The finish reason of an answer, or the failure that it is."""
    if (bad := got.accumulator.bad_end) is None:
        assert got.reason is not None
        return got.reason
    assert got.reason is None
    return bad_end_failure(bad, Called("some"), "a-model", started)


WITH_TEXT: dict[Ending, str] = {
    **{name: name for name in ("stop", "length", "refused", "paused", "unknown")},
    "tool_calls": "unknown",  # None came.
    "overflow": "context_overflow",
    "broken": "interrupted_stream",
    "rejected": "invalid_request",
}
WITHOUT: dict[Ending, str] = {
    **WITH_TEXT,
    "unknown": "empty_answer",
    "tool_calls": "empty_answer",
    "broken": "overloaded",
}


@every_api
@pytest.mark.parametrize("text", ["so far", ""])
def test_every_known_reason_means_the_same_by_every_api(api: str, text: str) -> None:
    """Gateways pass on what the provider behind them says."""
    for word, ending in ENDINGS.items():
        for spelling in (word, word.upper()):
            end = said(APIS[api](spelling, text), bool(text))
            found = end.kind if isinstance(end, Failure) else end
            assert found == (WITH_TEXT if text else WITHOUT)[ending], (word, end)
            if isinstance(end, Failure):
                assert spelling in end.message and "\n" not in end.message
                assert end.retryable == (ending in ("broken", "unknown", "tool_calls"))


@every_api
@pytest.mark.parametrize("word", ["wibble", "42", "EndOfWorld", "stop!", "\x1b[31mred"])
def test_an_unknown_reason_is_an_error_that_is_tried_again_unless_something_came(api: str, word: str) -> None:
    nothing = said(APIS[api](word, ""), False)
    assert isinstance(nothing, Failure) and (nothing.kind, nothing.retryable) == ("empty_answer", True)
    assert word.strip("\x1b") in nothing.message and "\x1b" not in nothing.message
    assert said(APIS[api](word, "so far"), True) == "unknown"


def test_what_is_no_reason_ends_nothing() -> None:
    for nothing in (None, "", " ", "null", "None", False):
        assert ending_of(nothing) is None


def test_thoughts_alone_are_nothing_to_go_on_with() -> None:
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}]}
    got = accumulate(sse([thought, {"choices": [{"index": 0, "delta": {}, "finish_reason": "wibble"}]}]))
    end = said(got, True)
    assert isinstance(end, Failure) and end.kind == "interrupted_stream" and end.retryable


def test_an_answer_with_calls_ends_for_them_whatever_it_is_called() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "read", "arguments": "{}"}}
    begun: dict[str, Any] = {"choices": [{"delta": {"tool_calls": [call]}}]}
    for word in ("stop", "wibble", "tool_use"):
        assert accumulate(sse([begun, {"choices": [{"delta": {}, "finish_reason": word}]}])).reason == "tool_calls"


@pytest.mark.parametrize(
    ("choice", "ending"),
    [
        ({"finish_reason": "stop", "native_finish_reason": "SAFETY"}, "refused"),
        ({"finish_reason": "length", "native_finish_reason": "model_context_window_exceeded"}, "context_overflow"),
        ({"finish_reason": "error", "native_finish_reason": "MALFORMED_FUNCTION_CALL"}, "overloaded"),
        ({"finish_reason": "error", "native_finish_reason": "PROHIBITED_CONTENT"}, "refused"),
        ({"finish_reason": "stop", "native_finish_reason": "end_turn"}, "stop"),
        ({"finish_reason": "stop", "native_finish_reason": "OTHER"}, "stop"),
        ({"finish_reason": "length", "native_finish_reason": "wibble"}, "length"),
    ],
)
def test_the_reason_of_the_provider_behind_a_gateway_says_more(choice: dict[str, Any], ending: str) -> None:
    end = said(accumulate(sse([{"choices": [{"index": 0, "delta": {}, **choice}]}])), False)
    assert (end.kind if isinstance(end, Failure) else end) == ending


@pytest.mark.parametrize("why", ["SAFETY", "OTHER", "BLOCK_REASON_UNSPECIFIED", "SOMETHING_NEW"])
def test_a_prompt_that_gemini_blocks_is_refused_whatever_for(why: str) -> None:
    got = accumulate(sse([{"promptFeedback": {"blockReason": why}, "usageMetadata": {"promptTokenCount": 9}}]))
    assert got.reason == "refused" and got.end_words == why


def test_what_gemini_says_of_a_bad_end_is_told() -> None:
    event = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed: print(x)"}]}
    end = said(accumulate(sse([event])), False)
    assert isinstance(end, Failure) and "MALFORMED_FUNCTION_CALL: Malformed: print(x)" in end.message


def test_a_grave_reason_is_not_taken_back_by_a_later_one() -> None:
    ends: list[dict[str, Any]] = [{"choices": [{"finish_reason": why}]} for why in ("content_filter", "stop")]
    assert accumulate(sse(ends)).reason == "refused"


def test_an_answer_that_filled_the_window_says_so() -> None:
    end = said(_claude("model_context_window_exceeded", "so far"), True)
    assert isinstance(end, Failure) and end.overflow is not None and end.overflow.answering
    assert "output limit" not in end.message
