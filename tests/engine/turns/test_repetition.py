"""When a model goes in circles: what counts as that, and what does not."""

from __future__ import annotations

import pytest

from agent_tui.engine.turns.repetition import SAME_CALLS, CallWatch, RepetitionWatch
from agent_tui.models.messages import Message, ToolCallPart, ToolResultPart
from tests.support.every import every

LINE = "I will now check the file again.\n"
TABLE = "".join(f"| {number} | row |\n" for number in range(1_000))
CODE = "".join(f"x[{number}] = 0\n" for number in range(1_000))


def stopped_at(text: str, piece: int = 7) -> int | None:
    watch = RepetitionWatch()
    for at in range(0, len(text), piece):
        if watch.add(text[at : at + piece]):
            return at + piece
    return None


@every("line", [LINE, "No.\n\n", "你好，\n", "x" * 200 + "\n", "x" * 450 + ".\n", "ha\n", "\n"])
@every("before", ["", "Words of an answer, as they come. " * 3 + "End.\n", TABLE])
def test_one_piece_again_and_again_ends_it(line: str, before: str) -> None:
    at = stopped_at(before + line * 5_000)
    assert at is not None and 2_000 <= at - len(before) <= 2_600


@every(
    "text",
    [
        "the " * 3_000,
        "- a\n- b\n" * 1_000,
        TABLE,
        CODE,
        LINE * 50,
        ("=" * 80 + "\n") * 20,
        "".join(f"{n} {LINE}" for n in range(500)),
    ],
)
def test_what_only_resembles_itself_goes_on(text: str) -> None:
    assert stopped_at(text) is None


def call(arguments: str, name: str = "read") -> ToolCallPart:
    return ToolCallPart("c1", name, arguments)


def result(text: str, seconds: float = 0.1) -> Message:
    return Message("m", "tool", [ToolResultPart("c1", "read", text, seconds=seconds)])


def repeated(watch: CallWatch, called: ToolCallPart, came: Message) -> str | None:
    watch.add([called], [came])
    return watch.repeated


def test_the_same_call_with_the_same_result_is_counted() -> None:
    watch = CallWatch()
    forms = ('{"path": "a.py", "limit": 1}', '{"limit":1,"path":"a.py"}', '{"path": "a.py", "limit": 1}')
    assert [repeated(watch, call(form), result("x")) for form in forms] == [None, None, "read a.py"]


@pytest.mark.parametrize(
    "rounds",
    [
        [("a", "x"), ("a", "x"), ("a", "y"), ("a", "x"), ("a", "x")],
        [("a", "x"), ("b", "x"), ("a", "x"), ("b", "x"), ("a", "x")],
    ],
)
def test_another_call_or_result_between_begins_anew(rounds: list[tuple[str, str]]) -> None:
    watch = CallWatch()
    assert {repeated(watch, call(f'{{"path": "{path}"}}'), result(text)) for path, text in rounds} == {None}


def test_a_call_that_waits_may_be_made_again() -> None:
    watch = CallWatch()
    assert {repeated(watch, call("{}", "bash"), result("not yet", seconds=10.0)) for _ in range(3 * SAME_CALLS)} == {
        None
    }
