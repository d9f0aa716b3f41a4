"""What gateways repeat, leave out and number otherwise: shapes from the field that stand for no whole style, and where
a repetition could as well be what the model said twice, the rule that decides."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_tui.engine.turns.stream import StreamProcessor
from agent_tui.models.messages import Message, ReasoningPart, TextPart
from agent_tui.models.requests import Delta, Target
from agent_tui.providers.accumulate import Accumulator
from agent_tui.providers.dialects.repeats import RunningText, is_json_beginning
from tests.providers.streams.test_streams import Accumulated, accumulate, block, chat, claude
from tests.support.loopback import sse

pytestmark = [pytest.mark.quick, pytest.mark.versions]


def texts(*pieces: str) -> bytes:
    return chat(*({"content": piece} for piece in pieces))


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("He", "Hello", "Hello wor", "Hello world"), "Hello world"),
        (("Hello", "Hello world"), "Hello world"),
        (("Hel", "lo world", "Hello world"), "Hello world"),
        (("So I begin: first", "So I begin: first, then"), "So I begin: first, then"),
        # What the model says twice.
        (("ha", "ha", "ha"), "hahaha"),
        (("#", "##", " Title"), "### Title"),
        (("1", "12"), "112"),
        (("1. a\n", "1. a\n"), "1. a\n1. a\n"),
        (("- one line of text\n", "- one line of text\n", "- another\n"), "- one line of text\n" * 2 + "- another\n"),
        (("so", " the end", ", then", " the end"), "so the end, then the end"),
    ],
)
def test_a_server_that_says_all_each_time_and_a_model_that_says_a_thing_twice(
    pieces: tuple[str, ...], text: str
) -> None:
    assert accumulate(texts(*pieces)).parts == [("text", text, None)]


@given(st.lists(st.text("ab \n", max_size=6), max_size=12))
def test_no_piece_that_goes_on_is_ever_changed(pieces: list[str]) -> None:
    for n, piece in enumerate(pieces):
        said = "".join(pieces[:n])
        assume(not said or not piece.startswith(said))
    running = RunningText()
    assert "".join([*map(running.add, pieces), running.settle()]) == "".join(pieces) == running.text


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.dictionaries(st.text(max_size=3), st.recursive(numbers | st.text(max_size=4), st.lists), max_size=3))
def test_what_json_can_be_cut_to_is_a_beginning_of_json(value: Any) -> None:
    text = json.dumps(value)
    assert all(is_json_beginning(text[:n]) for n in range(len(text) + 1) if text[:n])
    assert not is_json_beginning(text + "{")


def call(**fields: Any) -> dict[str, Any]:
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {"tool_calls": [{**fields, "function": function}]}


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        (
            [call(index=0, name="read", arguments='{"a":1}'), call(index=0, name="read", arguments='{"a":2}')],
            [("read", '{"a":1}'), ("read", '{"a":2}')],
        ),
        (
            # One and the same id for all, as servers give that use the tool's name.
            [
                call(index=0, id="read", name="read", arguments='{"a":1}'),
                call(index=1, id="read", name="read", arguments='{"a":2}'),
            ],
            [("read", '{"a":1}'), ("read", '{"a":2}')],
        ),
        (
            [call(index=0, id="a", name="list", arguments="{}"), call(index=0, id="b", name="list", arguments="{}")],
            [("list", "{}"), ("list", "{}")],
        ),
        ([call(index=0, name="list", arguments=""), call(index=0, name="read", arguments="{}")], None),
        (
            # Arguments of which a piece looks like their beginning.
            [call(index=0, id="a", name="read", arguments='{"a":'), call(index=0, arguments='{"a":1}}')],
            [("read", '{"a":{"a":1}}')],
        ),
    ],
    ids=["no ids", "one id", "equal calls", "a call without arguments", "nested"],
)
def test_calls_are_told_apart(deltas: list[dict[str, Any]], calls: list[tuple[str, str]] | None) -> None:
    accumulator = Accumulator(Target("openai", "chat", "m", "unknown"), names=["read", "list"])
    accumulator.tap.begin("text/event-stream")
    accumulator.tap.feed(chat(*deltas, finish="tool_calls"))
    got = Accumulated(accumulator, accumulator.finish())
    expected = calls or [("list", ""), ("read", "{}")]
    assert [(one.name, one.arguments) for one in got.message.tool_calls] == expected


def test_blocks_of_a_server_that_has_one_id_for_all_are_calls_of_their_own() -> None:
    start = {"type": "tool_use", "id": "call", "name": "read", "input": {}}
    blocks = [block(n, start, {"type": "input_json_delta", "partial_json": f'{{"a":{n}}}'}) for n in range(2)]
    got = accumulate(claude(*blocks, stop="tool_use"), "anthropic")
    assert [one.arguments for one in got.message.tool_calls] == ['{"a":0}', '{"a":1}']


def test_other_choices_are_other_answers() -> None:
    events = [
        {"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]},
        {"choices": [{"index": 1, "delta": {"content": "c"}}]},
        {"choices": [{"index": 0, "delta": {"content": "d"}, "finish_reason": "stop"}]},
    ]
    assert accumulate(sse(events)).parts == [("text", "ad", None)]


def test_a_message_told_whole_at_the_end_brings_what_had_not_come() -> None:
    details = [{"type": "reasoning.text", "text": "plan", "signature": "S", "index": 0}]
    message = {"content": "Hello", "reasoning_content": "plan", "reasoning_details": details}
    last = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    streamed = [{"choices": [{"index": 0, "delta": delta}]} for delta in ({"reasoning": "plan"}, {"content": "Hel"})]
    got = accumulate(sse([*streamed, last]))
    assert [part[:2] for part in got.parts] == [("reasoning", "plan"), ("text", "Hello")]
    assert got.parts[0][2] == {"field": "reasoning", "reasoning_details": details}


@pytest.mark.parametrize(
    "delta", [{"content": "</think>\n\nHi"}, {"content": "<think>plan</think>\n\nHi"}, {"content": "\n\nHi"}]
)
def test_a_thought_in_a_field_is_not_said_again_in_tags(delta: dict[str, Any]) -> None:
    got = accumulate(chat({"reasoning_content": "plan"}, delta))
    assert got.parts == [("reasoning", "plan", None), ("text", "\n\nHi", None)]


def test_thoughts_that_differ_from_those_in_a_field_are_said() -> None:
    got = accumulate(chat({"reasoning_content": "The plan.", "reasoning": "The idea."}, {"content": "Hi"}))
    assert [part[:2] for part in got.parts] == [("reasoning", "The plan."), ("reasoning", "The idea."), ("text", "Hi")]
    got = accumulate(chat({"reasoning_content": "The plan."}, {"content": "<think>is a tag</think>"}), "openrouter")
    assert [part[:2] for part in got.parts] == [("reasoning", "The plan."), ("text", "<think>is a tag</think>")]


def test_parts_of_a_summary_do_not_run_into_each_other() -> None:
    def detail(n: int, text: str) -> dict[str, Any]:
        details = [{"type": "reasoning.summary", "summary": text, "index": n}]
        return {"reasoning": text, "reasoning_details": details}

    got = accumulate(chat(detail(0, "**One**"), detail(0, " more"), detail(1, "**Two**")), "openrouter")
    assert got.parts[0][1] == "**One** more\n\n**Two**"
    piece = {"type": "response.reasoning_summary_text.delta", "output_index": 0}
    added = {"type": "response.reasoning_summary_part.added", "output_index": 0}
    got = accumulate(sse([added, {**piece, "delta": "One"}, added, {**piece, "delta": "Two"}]))
    assert got.parts[0][1] == "One\n\nTwo"


def test_a_signature_ends_its_thought_where_nobody_says_so() -> None:
    deltas = [{"type": "thinking_delta", "thinking": "a"}, {"type": "signature_delta", "signature": "S"}]
    again = [{"type": "thinking_delta", "thinking": "b"}, {"type": "signature_delta", "signature": "T"}]
    got = accumulate(claude(block(0, {}, *deltas)[1:-1] + block(0, {}, *again)[1:-1]))
    signed = [{"type": "thinking", "signature": signature} for signature in "ST"]
    assert got.parts == [("reasoning", "a", signed[0]), ("reasoning", "b", signed[1])]


def test_gemini_repeats_a_call_with_its_signature_and_makes_equal_ones_without() -> None:
    def answer(*parts: dict[str, Any]) -> bytes:
        end = {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}
        return sse([*({"candidates": [{"content": {"parts": [part]}}]} for part in parts), end])

    one: dict[str, Any] = {"functionCall": {"name": "read", "args": {"a": 1}}}
    assert len(accumulate(answer(one, one), "gemini").message.tool_calls) == 2
    named = {"functionCall": {**one["functionCall"], "id": "c1"}}
    assert len(accumulate(answer(named, named), "gemini").message.tool_calls) == 1
    signed = {**one, "thoughtSignature": "S"}
    assert accumulate(answer(signed, signed), "gemini").parts == [
        ("call", "read", '{"a": 1}', {"thought_signature": "S"})
    ]


@pytest.mark.parametrize(
    ("reports", "usage"),
    [
        ([{"prompt_tokens": 10, "completion_tokens": 1}, {"prompt_tokens": 10, "completion_tokens": 2}], (10, 2)),
        ([{"prompt_tokens": 10, "completion_tokens": 1}, {"prompt_tokens": 0, "completion_tokens": 2}], (10, 2)),
        ([{"prompt_tokens": 10, "completion_tokens": 1}, {"completion_tokens": 2, "total_tokens": None}], (10, 2)),
        ([{"prompt_tokens": "12", "completion_tokens": 3.0, "total_tokens": None}], (12, 3)),
    ],
)
def test_the_last_report_of_usage_counts(reports: list[dict[str, Any]], usage: tuple[int, int]) -> None:
    got = accumulate(sse([{"choices": [{"index": 0, "delta": {"content": "x"}}], "usage": one} for one in reports]))
    assert (got.usage.input, got.usage.output) == usage


def test_a_text_that_turns_out_to_be_a_thought_is_stored_as_one() -> None:
    processor = StreamProcessor(Message("m", "assistant"), "prefix")
    metadata = {"field": "think_tags", "close": "</think>"}
    for delta in (
        Delta(0, "text", "So it "),
        Delta(0, "text", "is 4."),
        Delta(0, "reasoning", "", metadata),
        Delta(0, "reasoning", closed=True),
        Delta(1, "text", "It is 4."),
    ):
        processor.apply(delta)
    processor.finish()
    thought, text = processor.message.parts
    assert isinstance(thought, ReasoningPart) and isinstance(text, TextPart)
    assert (thought.text, thought.provider_metadata, thought.prefix) == ("So it is 4.", metadata, "prefix")
    assert text.text == "It is 4."
