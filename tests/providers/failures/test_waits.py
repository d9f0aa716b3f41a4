"""How long a provider asks to wait, in every form that is known."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from agent_tui.models.failure import Failure
from agent_tui.providers.catalog import Called
from agent_tui.providers.errors import StreamError, classify
from agent_tui.providers.waits import reset_after, retry_after, said_wait, seconds_of, wants_retry

pytestmark = [pytest.mark.quick, pytest.mark.versions]

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("0.25", 0.25),
        ("6m0s", 360),
        ("1h2m3.5s", 3_723.5),
        ("120ms", 0.12),
        ("1s", 1),
        ("17.5s", 17.5),
        ("350µs", 0.00035),
        ("2d", 172_800),
        (str(int(NOW + 40)), 40),
        (str(int((NOW + 40) * 1_000)), 40),
        ("2027-01-15T08:00:50Z", 50),
        ("2027-01-15T09:00:50+01:00", 50),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30),
        ("Fri, 15 Jan 2021 08:00:30 GMT", 0),
        ("-3", 0),
        ("inf", None),
        ("nan", None),
        ("1e999", None),
        ("soon", None),
        ("2027-01-15T08:00:50", None),  # Of no time zone.
        ("", None),
    ],
)
def test_a_value_of_a_header(value: str, seconds: float | None) -> None:
    assert seconds_of(value, NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"X-RateLimit-Reset-Tokens": "120ms"}, 0.12),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "9s"}, 9),
        (
            {
                "x-ratelimit-reset-requests": "6m0s",
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-tokens": "9s",
                "x-ratelimit-remaining-tokens": "0",
            },
            9,
        ),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "59"}, None),
        ({"anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:50Z"}, 50),
        (
            {
                "anthropic-ratelimit-requests-reset": "2027-01-15T08:10:00Z",
                "anthropic-ratelimit-requests-remaining": "3",
                "anthropic-ratelimit-tokens-reset": "2027-01-15T08:00:05Z",
                "anthropic-ratelimit-tokens-remaining": "0",
            },
            5,
        ),
        ({"ratelimit-reset": "30"}, 30),
        ({"llm_provider-x-ratelimit-reset-requests": "2s"}, 2),
        ({"x-ratelimit-limit-requests": "60"}, None),
        ({"retry-after": "9"}, None),
    ],
)
def test_limits_that_are_reset(headers: dict[str, str], seconds: float | None) -> None:
    assert reset_after(headers, NOW) == (None if seconds is None else pytest.approx(seconds))


BODIES: list[tuple[str, float | None]] = [
    ("Rate limit reached. Please try again in 6.1s. Visit …", 6.1),
    ("Please try again in 1m2.5s.", 62.5),
    ("Please try again in 20 ms", 0.02),
    ("Please try again in 20ms.", 0.02),
    ("Please retry in 17.123456789s.", 17.123456789),
    ("Try again in 1 minute and 30 seconds.", 90),
    ("Please wait 20 seconds before trying again", 20),
    ("retry after 5 minutes", 300),
    ("Requests to the API have exceeded the rate limit. Please retry after 8 seconds.", 8),
    ("Your limit resets in 2h", 7_200),
    (json.dumps({"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]}), 17),
    (json.dumps({"retryDelay": "0.5s"}), 0.5),
    (str({"details": [{"retryDelay": "3s"}]}), 3),
    (json.dumps(json.dumps({"retryDelay": "4s"})), 4),
    ("retry_delay {\n  seconds: 12\n}", 12),
    (json.dumps({"retryDelay": {"seconds": 21, "nanos": 5}}), 21),
    (json.dumps({"retry_after": 1.5}), 1.5),
    (json.dumps({"retry_after_ms": 250}), 0.25),
    (json.dumps({"retry_after_seconds": 30}), 30),
    ("Try again later.", None),
    ("Try again, or choose another model in 5 models", None),
    ("The limit is 30 requests in 1 minute.", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "seconds"), BODIES)
def test_words_that_say_when(text: str, seconds: float | None) -> None:
    assert said_wait(text) == (None if seconds is None else pytest.approx(seconds))


class Refusal(Exception):
    def __init__(self, status: int, headers: dict[str, str], body: Any) -> None:
        super().__init__("refused")
        self.status_code, self.headers, self.body = status, headers, body


def refused(status: int, headers: dict[str, str] | None = None, body: Any = "slow down") -> Failure:
    return classify(Refusal(status, headers or {}, body), Called("some"), "m", False)


def test_the_surest_word_counts() -> None:
    headers = {"retry-after": "7", "x-ratelimit-reset-requests": "60s"}
    assert refused(429, headers, "try again in 9s").retry_after == 7
    assert refused(429, {"x-ratelimit-reset-requests": "60s"}, "try again in 9s").retry_after == 9
    assert refused(429, {"x-ratelimit-reset-requests": "60s"}).retry_after == 60
    assert "wait 1 min" in refused(429, {"x-ratelimit-reset-requests": "60s"}).message


def test_limits_stand_beside_every_answer_and_say_something_of_one_refusal_only() -> None:
    assert refused(500, {"x-ratelimit-reset-requests": "60s"}).retry_after is None
    assert refused(400, body="try again in 9s").retry_after is None


def test_a_failed_response_says_when() -> None:
    error = {"code": "rate_limit_exceeded", "message": "Rate limit reached for x. Please try again in 20 ms."}
    failure = classify(StreamError(error), Called("openai"), "m", True)
    assert (failure.kind, failure.retry_after, failure.retryable) == ("rate_limit", 0.02, True)


@pytest.mark.parametrize(
    ("status", "said", "retryable"),
    [(429, "false", False), (529, "FALSE", False), (409, "true", True), (429, "maybe", True), (400, "", False)],
)
def test_the_server_says_whether_to_try_again(status: int, said: str, retryable: bool) -> None:
    assert wants_retry({"X-Should-Retry": said}) == {"true": True, "false": False}.get(said.lower())
    assert refused(status, {"X-Should-Retry": said}).retryable is retryable


def test_a_refusal_for_its_size_is_not_repeated_whatever_the_server_says() -> None:
    failure = refused(400, {"x-should-retry": "true"}, "prompt is too long: 300000 tokens > 200000 maximum")
    assert failure.kind == "context_overflow" and not failure.retryable


def test_whatever_comes_is_a_number_of_seconds_or_nothing() -> None:
    dice = random.Random(7)
    pieces = ["1", "9" * 400, "m", "s", "ms", " ", ":", '"', "retryDelay", "try again in ", "retry-after", "{"]
    pieces += ["seconds", "-", ".", "e9", "T", "Z", "2027-01-01", "\x00", "µ", "\\", " and ", "in"]
    for _ in range(3_000):
        text = "".join(dice.choices(pieces, k=dice.randint(1, 30)))
        headers = {"retry-after": text, "x-ratelimit-reset-requests": text, "retry-after-ms": text}
        for found in (said_wait(text), retry_after(headers, NOW), reset_after(headers, NOW)):
            assert found is None or 0 <= found < float("inf")


@pytest.mark.parametrize("filler", [" ", "1s ", "try again in ", "retryDelay ", "1m", '\\"'])
def test_long_bodies_are_read_at_once(filler: str) -> None:
    assert said_wait(filler * 50_000 + "!") in (None, pytest.approx(1), pytest.approx(6), pytest.approx(360))
