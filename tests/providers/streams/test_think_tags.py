"""Thoughts in plain text: split into parts, stored, and sent back byte for byte as they came."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.models.messages import Message, ReasoningPart, TextPart
from agent_tui.models.requests import ModelSpec, Target
from agent_tui.providers.accumulate import Accumulator
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.direct import encode
from agent_tui.providers.request import build_call
from tests.support import recorded, wire
from tests.support.every import every
from tests.support.loopback import CHAT_USAGE, chat_events, sse

pytestmark = pytest.mark.quick

LOCAL = ModelSpec("m", "openai/qwen3", api_base="http://127.0.0.1:8000/v1")
texts = st.lists(
    st.sampled_from(["<think>", "</think>", "<thi", "nk>", "</", "\n", " ", "a", "Answer", "<"]), max_size=12
)


def answered(pieces: list[str], target: Target, finish: str | None = "stop") -> Message:
    accumulator = Accumulator(target)
    accumulator.tap.begin("text/event-stream")
    accumulator.tap.feed(sse(chat_events(pieces, finish, CHAT_USAGE)))
    answer = Message("a1", "assistant", origin=wire.origin(target))
    return recorded.assemble(accumulator.finish(), answer)


def sent_back(answer: Message) -> str | None:
    history = [wire.user("u1", "q"), answer, wire.user("u2", "and?")]
    request = recorded.request_for(LOCAL, history)
    messages = encode(build_call(request, recorded.info_for(LOCAL)), LOCAL, None).body["messages"]
    found = [m["content"] for m in messages if m["role"] == "assistant"]
    return found[0] if found else None


@given(texts, st.sampled_from(["stop", None]))
def test_whatever_comes_in_whatever_pieces_goes_back_as_it_came(pieces: list[str], finish: str | None) -> None:
    answer = answered(pieces, resolve_target(LOCAL), finish)
    whole = "".join(pieces)
    assert (sent_back(answer) or "").strip() == whole.strip()
    if any(isinstance(part, ReasoningPart) for part in answer.parts):
        assert sent_back(answer) == whole
        assert whole.lstrip().startswith("<think>") or "</think>" in whole
    else:
        assert answer.text == whole
        assert not whole.lstrip().startswith("<think>")


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_thoughts_are_reasoning_and_the_rest_is_the_answer(size: int) -> None:
    whole = "<think>\nLet me see.\n</think>\n\nIt is 4 < 5, not </think>."
    pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
    answer = answered(pieces, resolve_target(LOCAL))
    assert [type(part) for part in answer.parts] == [ReasoningPart, TextPart]
    assert answer.reasoning == "\nLet me see.\n"
    assert answer.text == "\n\nIt is 4 < 5, not </think>."


@every("size", [1, 3, 1_000])
@every(
    ("whole", "thought", "text"),
    [
        ("So it is 4.\n</think>\n\nIt is 4.", "So it is 4.\n", "\n\nIt is 4."),
        ("So it is 4.</think>It is 4.", "So it is 4.", "It is 4."),
        ("</think>It is 4.", "", "It is 4."),
        ("<thinking>So</thinking>It is 4.", "So", "It is 4."),
        ("It ends with </think>, always.", "", "It ends with </think>, always."),
        ("It ends with `</think>`, always.", "", "It ends with `</think>`, always."),
        ("```\nx\n</think>\n```", "", "```\nx\n</think>\n```"),
    ],
)
def test_thoughts_whose_opening_tag_the_server_wrote(whole: str, thought: str, text: str, size: int) -> None:
    pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
    answer = answered(pieces, resolve_target(LOCAL))
    assert (answer.reasoning, answer.text) == (thought, text)
    assert sent_back(answer) == whole


def test_an_answer_that_ends_while_it_thinks_keeps_what_it_thought() -> None:
    answer = answered(["<think>half a th", "ought</thi"], resolve_target(LOCAL), None)
    assert (answer.reasoning, answer.text) == ("half a thought</thi", "")


def test_tags_further_on_are_text() -> None:
    answer = answered(["The tag is <think>x</think>."], resolve_target(LOCAL))
    assert (answer.reasoning, answer.text) == ("", "The tag is <think>x</think>.")


@pytest.mark.parametrize("model", ["openai/gpt-4.1", "openrouter/anthropic/claude-sonnet-4.6"])
def test_models_that_think_elsewhere_may_write_about_tags(model: str) -> None:
    answer = answered(["<think>is a tag</think>"], resolve_target(ModelSpec("m", model)))
    assert (answer.reasoning, answer.text) == ("", "<think>is a tag</think>")
