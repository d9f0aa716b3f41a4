# ruff: noqa: E501
"""The numbers in refusals as too long, in the words of the providers and servers that say them."""

from __future__ import annotations

import pytest

from agent_tui.models.codec import from_dict, to_dict
from agent_tui.models.failure import Failure, Overflow
from agent_tui.providers.catalog import Called
from agent_tui.providers.errors import classify
from agent_tui.providers.overflow import is_overflow, sizes
from tests.support.every import every

pytestmark = pytest.mark.quick

IN, OUT, ALL, WINDOW, MAX_IN, MAX_OUT = "input", "output", "total", "window", "max_input", "max_output"

WORDINGS: list[tuple[str, str, dict[str, int]]] = [
    ("anthropic", "prompt is too long: 205123 tokens > 200000 maximum", {IN: 205123, MAX_IN: 200000}),
    (
        "anthropic with output",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or "
        "`max_tokens` and try again",
        {IN: 190000, OUT: 20000, WINDOW: 200000},
    ),
    (
        "bedrock behind a gateway",
        '{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\\"message\\":\\"input length and '
        '`max_tokens` exceed context limit: 149674 + 64000 > 204658, decrease input length\\"}"}}}',
        {IN: 149674, OUT: 64000, WINDOW: 204658},
    ),
    (
        "anthropic output",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
        {OUT: 100000, MAX_OUT: 64000},
    ),
    (
        "openai chat",
        "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens (120000 in the "
        "messages, 10000 in the completion). Please reduce the length of the messages or completion.",
        {IN: 120000, OUT: 10000, ALL: 130000, WINDOW: 128000},
    ),
    (
        "openai chat with functions",
        "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens (119000 in the "
        "messages, 1000 in the functions, and 10000 in the completion).",
        {IN: 120000, OUT: 10000, ALL: 130000, WINDOW: 128000},
    ),
    (
        "openai of old",
        "This model's maximum context length is 4097 tokens, however you requested 4116 tokens (3860 in your prompt; "
        "256 for the completion). Please reduce your prompt; or completion length.",
        {IN: 3860, OUT: 256, ALL: 4116, WINDOW: 4097},
    ),
    (
        "openai and azure messages",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please "
        "reduce the length of the messages.",
        {IN: 204308, WINDOW: 128000},
    ),
    (
        "openai output",
        "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
        {OUT: 32000, MAX_OUT: 16384},
    ),
    (
        "openai responses output",
        "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got 200000 instead.",
        {OUT: 200000, MAX_OUT: 128000},
    ),
    (
        "openai responses",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
        {IN: 300000, MAX_IN: 272000},
    ),
    (
        "gemini",
        "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
        {IN: 1200293, MAX_IN: 1048576},
    ),
    (
        "gemini without its count",
        "The input token count exceeds the maximum number of tokens allowed (1048576).",
        {MAX_IN: 1048576},
    ),
    (
        "vertex output",
        "Unable to submit request because it has a maxOutputTokens value of 65536 but the supported range is from 1 "
        "(inclusive) to 65536 (exclusive). Update the value and try again.",
        {OUT: 65536, MAX_OUT: 65535},
    ),
    (
        "deepseek",
        "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the "
        "messages, 8192 in the completion).",
        {IN: 122942, OUT: 8192, ALL: 131134, WINDOW: 131072},
    ),
    ("deepseek output", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", {MAX_OUT: 8192}),
    (
        "xai",
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
        {IN: 136973, MAX_IN: 131072},
    ),
    (
        "mistral",
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        {IN: 40000, WINDOW: 32768},
    ),
    (
        "groq output",
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the "
        "`context_window` for this model",
        {MAX_OUT: 8192},
    ),
    (
        "cohere",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 4096 - received 6354. Try using a "
        "shorter prompt or a smaller max_tokens value.",
        {ALL: 6354, WINDOW: 4096},
    ),
    (
        "cohere excess",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs. The limit for this "
        "model is 128000 tokens.",
        {IN: 139326, MAX_IN: 128000},
    ),
    (
        "cohere output",
        "too many tokens: max tokens must be less than or equal to 4096, the maximum output length for this model",
        {MAX_OUT: 4096},
    ),
    (
        "bedrock",
        "Too many input tokens. Max input tokens: 8192, request input token count: 9000",
        {IN: 9000, MAX_IN: 8192},
    ),
    (
        "bedrock output",
        "The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is "
        "lower than 2048.",
        {MAX_OUT: 2047},
    ),
    (
        "ollama's cloud output",
        "max_tokens (32768) exceeds model's maximum output tokens (16384)",
        {OUT: 32768, MAX_OUT: 16384},
    ),
    (
        "llama.cpp",
        '{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size '
        'or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}',
        {IN: 14429, WINDOW: 8192},
    ),
    (
        "llama.cpp as a Python dict",
        "{'message': 'the request exceeds the available context size', 'n_ctx': 8192, 'n_prompt_tokens': 14429}",
        {IN: 14429, WINDOW: 8192},
    ),
    (
        "llama.cpp since",
        "request (66202 tokens) exceeds the available context size (65536 tokens), try increasing it",
        {IN: 66202, WINDOW: 65536},
    ),
    ("llama-cpp-python", "Requested tokens (2285) exceed context window of 2048", {IN: 2285, WINDOW: 2048}),
    (
        "vllm of old",
        "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the messages, "
        "10000 in the completion). Please reduce the length of the messages or completion. None",
        {IN: 9591, OUT: 10000, ALL: 19591, WINDOW: 16384},
    ),
    (
        "vllm prompt",
        "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce "
        "the length of the input messages.",
        {IN: 5000, WINDOW: 4096},
    ),
    (
        "vllm output",
        "'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context length is 64001 tokens "
        "and your request has 24235 input tokens (64000 > 64001 - 24235). None",
        {IN: 24235, OUT: 64000, WINDOW: 64001},
    ),
    (
        "sglang",
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 70000 "
        "tokens: 6000 tokens from the input messages and 64000 tokens for the completion.",
        {IN: 6000, OUT: 64000, ALL: 70000, WINDOW: 32768},
    ),
    (
        "sglang and together",
        "400 The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        {IN: 516368, WINDOW: 262144},
    ),
    (
        "sglang router",
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        {IN: 160062, MAX_IN: 59862},
    ),
    (
        "an openai-like server",
        "Input length (265330) exceeds model's maximum context length (262144).",
        {IN: 265330, WINDOW: 262144},
    ),
    (
        "poolside",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        {IN: 131393, MAX_IN: 131040},
    ),
    (
        "tgi",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3474 `inputs` tokens and 700 "
        "`max_new_tokens`",
        {IN: 3474, OUT: 700, WINDOW: 4096},
    ),
    (
        "tgi prompt",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
        {IN: 5000, MAX_IN: 4095},
    ),
    (
        "moonshot",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
        {ALL: 269030, WINDOW: 262144},
    ),
    ("moonshot of old", "model max length exceeded, max length:8192", {WINDOW: 8192}),
    ("z.ai output", "The max_tokens parameter is illegal.：限制数值范围[1,131072]", {MAX_OUT: 131072}),
    (
        "dashscope",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
        {MAX_IN: 98304},
    ),
    ("dashscope output", "Range of max_tokens should be [1, 8192]", {MAX_OUT: 8192}),
    (
        "volcengine output",
        "integer above maximum value, expected a value <= 12288, but got 32000 instead",
        {OUT: 32000, MAX_OUT: 12288},
    ),
    (
        "cerebras",
        "Please reduce the length of the messages. Current length is 9000 while limit is 8192",
        {ALL: 9000, WINDOW: 8192},
    ),
    ("fireworks", "The prompt is too long: 140000, model maximum context length: 131071", {IN: 140000, WINDOW: 131071}),
    ("copilot", "prompt token count of 200000 exceeds the limit of 128000", {IN: 200000, MAX_IN: 128000}),
    (
        "with separators",
        "Prompt has 300,000 tokens, but the configured context size is 131,072 tokens",
        {IN: 300000, WINDOW: 131072},
    ),
    (
        "tensorrt-llm",
        "The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)",
        {IN: 9000, MAX_IN: 8192},
    ),
    (
        "bedrock llama",
        "This model's maximum context length is 8192 tokens. Please reduce the length of the prompt",
        {WINDOW: 8192},
    ),
]

INEXACT: list[tuple[str, str, dict[str, int]]] = [
    (
        "openrouter",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7000 of text "
        "input, 884 of tool input, 131072 in the output). Please reduce the length of either one, or use the "
        '"middle-out" transform.',
        {IN: 7884, OUT: 131072, ALL: 138956, WINDOW: 131072},
    ),
    (
        "openrouter input",
        "This endpoint's maximum context length is 16384 tokens. However, you requested about 94307 tokens (94307 of text "
        "input). Please reduce the length of either one",
        {IN: 94307, ALL: 94307, WINDOW: 16384},
    ),
    (
        "vllm since",
        "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt "
        "contains at least 62466 input tokens, for a total of at least 128001 tokens.",
        {IN: 62466, OUT: 65535, WINDOW: 128000},
    ),
    (
        "lm studio",
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context "
        "length of only 7866 tokens, which is not enough.",
        {IN: 10136, WINDOW: 7866},
    ),
    (
        "lm studio since",
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: "
        "4096). Try to load the model with a larger context length",
        {IN: 13055, WINDOW: 4096},
    ),
]

NOTHING_TO_READ = [
    # Rates, whatever else they say.
    "Rate limit reached for gpt-4o: tokens per min (TPM): Limit 30000, Used 29000, Requested 5000",
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 41000. The input or output tokens must "
    "be reduced in order to run successfully.",
    "This request would exceed your organization's rate limit of 30,000 input tokens per minute",
    "Too many tokens: maximum context length is 4096 tokens per minute for this key",
    "ThrottlingException: Too many input tokens. Max input tokens: 8192, please wait before trying again.",
    "You exceeded your current quota: the input token count exceeds the maximum number of tokens allowed (250000)",
    # No sizes.
    "Please reduce the length of the messages or completion.",
    "Input is too long for requested model.",
    "invalid params, context window exceeds limit (2013)",
    "Prompt exceeds max length (code 1261)",
    "model_context_window_exceeded",
    "invalid temperature: 4096",
    # By its own numbers the request would have fitted: they are something else.
    "prompt is too long: 1000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 1000 + 1000 > 200000",
    "max_tokens: 100 > 64000, which is the maximum allowed number of output tokens for claude",
    "This model's maximum context length is 0 tokens. However, your messages resulted in 5 tokens.",
    "prompt is too long: 99999999999999999999 tokens > 200000 maximum",
]


def said(found: Overflow | None) -> dict[str, int]:
    assert found is not None
    names = (IN, OUT, ALL, WINDOW, MAX_IN, MAX_OUT)
    return {name: value for name in names if (value := getattr(found, name)) is not None}


@every(("text", "wanted"), [w[1:] for w in WORDINGS])
def test_every_wording_is_read(text: str, wanted: dict[str, int]) -> None:
    found = sizes(text)
    assert said(found) == wanted
    assert found is not None
    assert found.exact
    assert found.text in " ".join(text.split())


@every(("text", "wanted"), [w[1:] for w in INEXACT])
def test_a_size_that_is_not_exact_says_so(text: str, wanted: dict[str, int]) -> None:
    found = sizes(text)
    assert said(found) == wanted
    assert found is not None
    assert not found.exact


@every("text", NOTHING_TO_READ)
def test_a_rate_or_a_number_that_makes_no_sense_is_not_a_size(text: str) -> None:
    assert sizes(text) is None


class Refused(Exception):
    def __init__(self, text: str, status: int | None = 400) -> None:
        super().__init__(text)
        self.message = text
        self.status_code = status


def refusal(text: str, status: int | None = 400) -> Failure:
    return classify(Refused(text, status), Called("p"), "m", False)


@every(("text", "wanted"), [w[1:] for w in WORDINGS + INEXACT])
def test_the_failure_carries_them_and_says_what_is_too_long(text: str, wanted: dict[str, int]) -> None:
    failure = refusal(text)
    assert said(failure.overflow) == wanted
    answer_only = set(wanted) <= {OUT, MAX_OUT}
    assert failure.kind == ("invalid_request" if answer_only else "context_overflow")
    assert not failure.retryable


@every("text", NOTHING_TO_READ)
@every("status", [400, 413, 429, None])
def test_no_failure_of_another_kind_carries_sizes(text: str, status: int | None) -> None:
    assert refusal(text, status).overflow is None


def test_a_throttled_request_is_not_too_long() -> None:
    assert not is_overflow("ThrottlingException: Too many tokens, please wait before trying again.")
    assert refusal("Too many tokens, please wait before trying again.", 429).kind == "rate_limit"


def test_sizes_cross_the_store() -> None:
    failure = refusal(WORDINGS[1][1])
    assert from_dict(Failure, to_dict(failure)) == failure
    old = {k: v for k, v in to_dict(failure).items() if k != "overflow"}
    assert from_dict(Failure, old).overflow is None


def test_a_huge_hostile_text_is_read_in_no_time() -> None:
    assert sizes("maximum context length is " * 200_000) is None
    assert sizes("9" * 1_000_000) is None
    assert sizes("(1 in the messages, " * 100_000) is None
