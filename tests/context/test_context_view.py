"""The view is valid to send, whatever is stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.view import ViewBuilder, build_view
from agent_tui.models.messages import (
    CLEARED_RESULT,
    INTERRUPTED_RESULT,
    AttachmentPart,
    Message,
    Part,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CompactionRecord

pytestmark = pytest.mark.quick


def user(name: str, text: str = "hi") -> Message:
    return Message(name, "user", [TextPart(text)])


def answer(name: str, *calls: str, text: str = "ok", arguments: str = "{}", status: str = "complete") -> Message:
    parts: list[Part] = [TextPart(text)] if text else []
    return Message(name, "assistant", [*parts, *(ToolCallPart(c, "read", arguments) for c in calls)], status)  # type: ignore[arg-type]


def result(name: str, call: str, text: str = "done") -> Message:
    return Message(name, "tool", [ToolResultPart(call, "read", text)], raw_tokens=len(text))


def ids(view: list[SentMessage]) -> list[str]:
    return [item.message.id for item in view]


def test_plain_conversations_are_sent_as_they_are() -> None:
    path = [user("u"), answer("a", "c"), result("r", "c"), answer("b")]
    view = build_view(path, [], {})
    assert [item.message for item in view] == path
    assert [item.key for item in view] == ["u", "a", "r", "b"]


def test_missing_results_are_interrupted_and_orphans_dropped() -> None:
    path = [user("u"), result("r0", "zz"), answer("a", "c", "d"), result("r", "d"), result("x", "other"), user("v")]
    view = build_view(path, [], {})
    assert ids(view) == ["u", "a", "a#interrupted0", "r", "v"]
    missing = view[2].message.tool_result
    assert missing is not None and missing.text == INTERRUPTED_RESULT and missing.call_id == "c" and missing.is_error


def test_a_result_after_a_steering_message_moves_to_its_call() -> None:
    path = [user("u"), answer("a", "c"), user("s"), result("r", "c"), answer("b")]
    assert ids(build_view(path, [], {})) == ["u", "a", "r", "s", "b"]


def test_equal_call_ids_are_answered_in_order() -> None:
    path = [user("u"), answer("a", "c", "c"), result("r1", "c", "1"), result("r2", "c", "2"), answer("b", "c")]
    assert ids(build_view(path, [], {})) == ["u", "a", "r1", "r2", "b", "b#interrupted0"]


def test_drafts_and_empty_messages_are_not_sent() -> None:
    thought = Message("t", "assistant", [ReasoningPart("hm", {"signature": "s"})])
    path = [user("u"), thought, user("e", " \n"), answer("n", text=""), answer("d", status="streaming")]
    assert ids(build_view(path, [], {})) == ["u"]
    image = Message("i", "user", [AttachmentPart("a.png", "image/png", data="AA==")])
    assert ids(build_view([image], [], {})) == ["i"]


def test_cut_off_answers_lose_the_calls_they_never_finished() -> None:
    stopped = answer("a", "c", arguments='{"path": "ap', status="stopped")
    view = build_view([user("u"), stopped, user("v")], [], {})
    assert ids(view) == ["u", "a", "v"] and view[1].key == "a#trimmed"
    assert view[1].message.tool_calls == [] and view[1].stored is stopped and len(stopped.tool_calls) == 1
    only = answer("a", "c", text="", arguments="[1", status="failed")
    assert ids(build_view([user("u"), only], [], {})) == ["u"]
    whole = answer("a", "c", status="stopped")
    assert ids(build_view([user("u"), whole], [], {})) == ["u", "a", "a#interrupted0"]


def test_invalid_arguments_of_a_finished_answer_stay() -> None:
    path = [user("u"), answer("a", "c", arguments="{oops"), result("r", "c", "invalid JSON")]
    assert ids(build_view(path, [], {})) == ["u", "a", "r"]


def test_the_newest_summary_that_fits_stands_for_its_messages() -> None:
    path = [user("u"), answer("a"), user("v"), answer("b")]
    one, two = (Message(n, "user", [SummaryPart("s", n)]) for n in ("s1", "s2"))
    records = [
        CompactionRecord("r1", "o", "summary", ["u"], created=1, summary_id="s1"),
        CompactionRecord("r2", "p", "summary", ["u", "a"], created=2, summary_id="s2"),
        CompactionRecord("r3", "q", "summary", ["u", "gone"], created=3, summary_id="s1"),
    ]
    summaries = {"s1": one, "s2": two}
    assert ids(build_view(path, records, summaries)) == ["s2", "v", "b"]
    records[1].active = False
    assert ids(build_view(path, records, summaries)) == ["s1", "a", "v", "b"]
    assert ids(build_view(path[:1], records, {})) == ["u"]


def test_a_draft_behind_a_summary_is_not_sent() -> None:
    path = [user("u"), answer("a"), user("v"), answer("d", status="streaming")]
    records = [CompactionRecord("r1", "o", "summary", ["u", "a"], summary_id="s1")]
    summaries = {"s1": Message("s1", "user", [SummaryPart("s", "r1")])}
    assert ids(build_view(path, records, summaries)) == ["s1", "v"]


def test_clearing_and_clipping_replace_what_is_sent_only() -> None:
    path = [user("u"), answer("a", "c", "d"), result("r", "c", "x" * 100), result("s", "d", "y" * 100)]
    path[2].parts.append(AttachmentPart("i", "image/png", data="AA=="))
    records = [
        CompactionRecord("p", "o", "prune", ["r"]),
        CompactionRecord("q", "o", "prune", ["s"], clips={"s": 60}),
    ]
    view = build_view(path, records, {})
    assert [item.key for item in view] == ["u", "a", "r#cleared", "s#clip60"]
    assert ids(view) == ["u", "a", "r", "s"]
    assert view[2].message.parts == [ToolResultPart("c", "read", CLEARED_RESULT)]
    clipped = view[3].message.tool_result
    assert clipped is not None and clipped.text == "y" * 15 + "\n[clipped: 81 more characters not sent]\n" + "y" * 4
    assert view[3].message.raw_tokens is not None and view[3].message.raw_tokens <= 100
    assert path[2].tool_result is not None and path[2].tool_result.text == "x" * 100
    assert view[2].stored is path[2]


call_ids = st.lists(st.sampled_from("abc"), max_size=3)
entries = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "tool", "empty"]),
        call_ids,
        st.sampled_from(["complete", "streaming", "stopped", "failed"]),
        st.sampled_from(["{}", "{", "", '"x"']),
    ),
    max_size=14,
)


def conversation_of(stored: list[tuple[str, list[str], str, str]]) -> list[Message]:
    path: list[Message] = []
    for number, (role, calls, status, arguments) in enumerate(stored):
        if role == "assistant":
            path.append(answer(str(number), *calls, arguments=arguments, text="t" * (number % 2), status=status))
        elif role == "tool":
            path.append(result(str(number), calls[0] if calls else "zz"))
        else:
            path.append(user(str(number), "" if role == "empty" else "text"))
    return path


@given(entries, st.lists(st.lists(st.integers(0, 13), max_size=4), max_size=3))
def test_any_stored_conversation_gives_a_valid_view(
    stored: list[tuple[str, list[str], str, str]], prunes: list[list[int]]
) -> None:
    path = conversation_of(stored)
    records = [CompactionRecord(str(n), "o", "prune", [str(i) for i in p]) for n, p in enumerate(prunes)]
    view = build_view(path, records, {})
    assert view == build_view(path, records, {})
    assert len({item.key for item in view}) == len(view)
    waiting: list[str] = []
    for item in view:
        message = item.message
        assert message.status != "streaming"
        found = message.tool_result
        if found is not None:
            assert waiting.pop(0) == found.call_id
            continue
        assert not waiting and message.role != "tool"
        assert message.text or message.tool_calls
        waiting = [c.call_id for c in message.tool_calls]
    assert not waiting


@given(entries, st.lists(st.integers(0, 14), max_size=14), st.lists(st.integers(0, 13), max_size=4))
def test_a_kept_builder_gives_the_same_views(
    stored: list[tuple[str, list[str], str, str]], lengths: list[int], pruned: list[int]
) -> None:
    path = conversation_of(stored)
    builder, records = ViewBuilder(), [CompactionRecord("p", "o", "prune", [str(i) for i in pruned])]
    for number, length in enumerate([*range(len(path)), *lengths]):
        shown = path[:length]
        if number == len(path):
            records[0].active = False
        if number == len(path) + 3 and shown:
            records.append(CompactionRecord("s", "q", "summary", [shown[0].id], summary_id="sum"))
        summaries = {"sum": Message("sum", "user", [SummaryPart("so far", "s")])}
        assert builder.build(shown, records, summaries) == build_view(shown, records, summaries)
