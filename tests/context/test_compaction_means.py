"""The means of a compaction one by one: clearing with a goal, clips, what a summary keeps, what is left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.accounting.next_input import fits_to_send
from agent_tui.context.compaction.answers import parse_sections
from agent_tui.context.compaction.judge import Replaced, judge_summary
from agent_tui.context.compaction.notices import preview_of
from agent_tui.context.compaction.plan import BREATH_STEPS, plan_clearing, records_of
from agent_tui.context.compaction.summary import MODEL_SECTIONS, NOTHING, assemble
from agent_tui.context.compaction.summary_parts import collect_files, file_lines, plan_lines, todo_lines, user_words
from agent_tui.context.cuts import clip_text
from agent_tui.context.tokens import family_of
from agent_tui.models.messages import (
    APPROVED,
    CLEARED_RESULT,
    PLAN_TOOL,
    Message,
    SummaryPart,
    TextPart,
    ToolCallPart,
    saved_note,
)
from agent_tui.models.requests import SentMessage
from tests.support.compaction_world import TARGET, World, assert_valid, model_info, sent_text, words

FAMILY = family_of(TARGET)


def carry_out(world: World, plan_reason: str = "auto") -> None:
    plan = world.plan(plan_reason)  # type: ignore[arg-type]
    assert plan.summary is None or not plan.summary.needs_model
    summary = plan.summary.message({}, "rec", 1.0) if plan.summary is not None else None
    world.records += records_of(plan, 1.0, "op", "rec", summary)
    if summary is not None:
        world.summaries[summary.id] = summary


# Clearing


def test_clearing_goes_to_its_goal_and_stops_there() -> None:
    world = World(model_info(200_000, 64_000))
    world.user("Read everything.")
    for number in range(57):
        world.tool_step(f"file{number}.py", 3_000)
    plan = world.plan()
    assert plan.action == "prune"
    assert plan.expected_after is not None
    assert 0.57 * 168_000 < plan.expected_after <= 0.6 * 168_000
    carry_out(world)
    results = [s.message.tool_result for s in world.view() if s.message.role == "tool"]
    cleared = [r is not None and r.text == CLEARED_RESULT for r in results]
    assert cleared == sorted(cleared, reverse=True), "the oldest, without a gap"


@pytest.mark.slow
def test_where_clearing_cannot_reach_its_goal_a_summary_is_the_better_means() -> None:
    world = World(model_info(200_000, 64_000))
    for number in range(60):
        world.user(f"Question {number}? " + words(400))
        world.says(words(1_500))
    for number in range(18):
        world.tool_step(f"file{number}.py", 3_500)
    plan = world.plan()
    # Clearing would get below the limit, for a step's breath.
    assert plan.action == "summary"
    assert (plan.expected_after or 0) < 0.6 * 168_000


def test_no_second_clearing_in_quick_succession() -> None:
    world = World()
    world.user("Go.")
    for number in range(13):
        world.tool_step(f"file{number}.py", 1_000)
    assert world.plan().action == "prune"
    carry_out(world)
    for number in range(6):
        world.tool_step(f"more{number}.py", 1_000)
    assert world.usage().would_compact
    assert world.plan().action == "summary"
    for _ in range(BREATH_STEPS):
        world.measured([TextPart("Yes.")])
        world.user("And?")
    assert world.plan().action == "prune"


# Clips


@given(st.text(max_size=3_000), st.integers(0, 3_500))
def test_a_clip_keeps_its_length_and_says_what_is_missing(text: str, limit: int) -> None:
    clipped = clip_text(text, limit)
    if len(text) <= limit:
        assert clipped == text
        return
    assert "more characters not sent]" in clipped
    assert len(clipped) <= max(limit, 60)


@given(st.integers(0, 900), st.integers(0, 900), st.integers(400, 1_500))
def test_the_note_on_the_saved_output_survives_a_clip_and_counts(head: int, tail: int, limit: int) -> None:
    note = saved_note(123_456, "/home/user/.cache/output/bash_0123.txt")
    text = "a" * head + f"\n{note}\n" + "b" * tail
    clipped = clip_text(text, limit)
    assert clipped.count(note) == 1
    assert len(clipped) <= max(limit, len(text) if len(text) <= limit else limit)


# What a summary keeps


@pytest.mark.quick
def test_a_paste_does_not_push_one_line_rules_out() -> None:
    rules = ["Never touch vendor.", "Answer in French.", "No new dependencies."]
    said = [*rules, "p" * 9_000, "Look at this."]
    messages = [Message(f"u{i}", "user", [TextPart(t)]) for i, t in enumerate(said)]
    kept, cut, left_out = user_words(messages, 614, FAMILY)
    assert list(kept) == [*rules, "Look at this."], "whole, and in the order they were said"
    assert "characters left out" in cut
    assert left_out == 0


@given(st.lists(st.integers(1, 4_000), max_size=30), st.integers(0, 3_000))
def test_user_words_stay_in_their_budget(sizes: list[int], budget: int) -> None:
    messages = [Message(f"u{i}", "user", [TextPart(f"{i} " + "w" * size)]) for i, size in enumerate(sizes)]
    kept, cut, left_out = user_words(messages, budget, FAMILY)
    assert len(kept) + bool(cut) + left_out == len(messages)
    assert sum(len(t) for t in (*kept, cut)) / 4 <= budget * 1.1 + 60
    whole, gone = [m.text for m in messages if m.text in kept], [m.text for m in messages if m.text not in kept]
    assert len(whole) == len(kept), "word for word"
    assert all(2 * len(g) + 64 >= len(w) for g in gone for w in whole)


def presented(world: World, name: str, plan: str, approved: bool = True) -> None:
    """A plan that was handed in, and what became of it."""
    world.append("assistant", [ToolCallPart(name, PLAN_TOOL, json.dumps({"plan": "as the model wrote it"}))])
    world.results("It is approved. " + "x" * 4_000)
    part = world.path[-1].tool_result
    assert part is not None
    part.name, part.display = PLAN_TOOL, {"text": plan, **({APPROVED: True} if approved else {})}


@pytest.mark.quick
def test_the_plan_approved_last_stays_as_a_quotation() -> None:
    world = World()
    assert plan_lines(world.path, 0, 100) == ()
    world.user("Plan it.")
    presented(world, "p1", "old")
    presented(world, "p2", "# Mine\x1b[2J\n\n## Done\nnothing")
    presented(world, "p3", "declined", approved=False)
    everything = len(world.path)
    lines = plan_lines(world.path, everything, 100)
    assert lines == ("> # Mine␛[2J", ">", "> ## Done", "> nothing")
    assert parse_sections("\n".join(["## Goal", "mine", *lines])) == {"Goal": "mine\n" + "\n".join(lines)}
    assert plan_lines(world.path, 4, 100) == (), "it is among what is kept"
    presented(world, "p4", "word " * 2_000)
    cut = plan_lines(world.path, len(world.path), 100)
    assert "characters left out" in "\n".join(cut) and sum(map(len, cut)) < 600


@pytest.mark.quick
def test_an_approved_plan_is_not_cleared_away() -> None:
    world = World()
    world.user("Plan it.")
    presented(world, "p1", "mine")
    presented(world, "p2", "declined", approved=False)
    approved, declined = (m.id for m in world.path if m.role == "tool")
    for number in range(3):
        world.append("assistant", [ToolCallPart(f"c{number}", "read", "{}")])
        world.results("y" * 4_000)
    view = [SentMessage(m, m.id) for m in world.path]
    cleared = plan_clearing(view, {m.id: 1_000 for m in world.path}, 8_000).cleared
    assert declined in cleared and approved not in cleared


def test_the_todo_list_stays_as_it_stands() -> None:
    world = World()
    world.user("Plan it.")
    for done in (0, 1):
        items = [
            {"text": "write\x1b[31m\nit", "status": "completed" if done else "pending"},
            {"text": "test it", "status": "in_progress" if done else "pending"},
            {"text": "ship it", "status": "pending"},
        ]
        call = world.append("assistant", [ToolCallPart(f"t{done}", "todo", json.dumps({"items": items}))])
        assert call.tool_calls
        world.results("The list is updated.")
    lines = todo_lines(world.path, 100)
    assert lines[1:] == ("- [>] test it", "- [ ] ship it")
    assert lines[0].startswith("- [x] write") and "\x1b" not in lines[0] and "\n" not in lines[0]
    assert todo_lines(world.path, 10) == ("- [>] test it", "- [ ] ship it"), "what is done gives way first"
    for number in range(90):
        world.user(f"q{number}")
        world.says(words(120))
    plan = world.plan()
    assert plan.summary is not None
    text = sent_text_of(plan.summary.message({"Goal": "x"}, "r", 0.0))
    assert "## Todo list\n- [x] write" in text
    assert "todo list (3 items)" in preview_of(plan, world.usage()).say


def sent_text_of(message: Message) -> str:
    return "".join(p.text for p in message.parts if isinstance(p, SummaryPart))


@pytest.mark.quick
def test_files_are_listed_with_the_lines_that_were_read() -> None:
    world = World()
    world.user("go")
    for arguments in (
        {"path": "a.py", "offset": 101, "limit": 200},
        {"path": "b.py", "limit": 50},
        {"path": "c.py", "offset": 7},
        {"path": "b.py"},
        {"path": "a.py", "offset": "x", "limit": -1},
        {"path": "d.py", "offset": 5, "limit": 5},
    ):
        name = f"c{len(world.messages)}"
        world.append("assistant", [ToolCallPart(name, "read", json.dumps(arguments))])
        world.results("text")
    assert file_lines(collect_files(world.path)) == [
        "- c.py (read from line 7)",
        "- b.py (read)",
        "- a.py (read)",
        "- d.py (read lines 5-9)",
    ]


@pytest.mark.quick
def test_missing_headings_are_filled_in() -> None:
    text = "## Goal\nBuild it.\n\n## Done\nHalf."
    assert judge_summary(text, "stop", Replaced()) is None
    filled = assemble(parse_sections(text), [], [], 0)
    for name in MODEL_SECTIONS:
        assert f"## {name}\n" in filled
    assert filled.count(NOTHING) == len(MODEL_SECTIONS) - 2 + 1  # and no files


# Leaving out


def test_old_turns_are_left_out_behind_a_line_and_come_back() -> None:
    world = World()
    world.user("Rule: never touch vendor.")
    world.says("Yes.")
    for number in range(60):
        world.user(f"Question {number}? " + words(60))
        world.says(f"Answer {number}. " + words(200))
    world.user("And now? " + words(500))
    before, usage = world.view(), world.usage()
    assert not fits_to_send(usage)
    plan = world.plan()
    assert plan.now.needed
    failed = world.plan_without_model()
    assert failed.summary is not None
    assert failed.summary.left_out > 20
    assert failed.fits
    assert "a line says so" in preview_of(failed, world.usage()).say
    message = failed.summary.message({}, "rec", 1.0)
    world.summaries[message.id] = message
    world.records += records_of(failed, 1.0, "op", "rec", message)
    view = world.view()
    assert_valid(view)
    text = sent_text(view)
    assert f"[{failed.summary.left_out} older messages left out here" in text
    assert "Rule: never touch vendor." in text, "the user's words stay where there is room"
    assert "And now?" in text
    assert "Answer 59." in text
    assert "Answer 1." not in text
    # A later summary sees what was left out.
    world.says(words(100))
    again = world.plan("manual")
    assert again.summary is not None
    assert any("Answer 1." in m.text for m in again.summary.fresh)
    assert again.summary.previous is None
    world.undo()
    assert [s.key for s in world.view()][: len(before)] == [s.key for s in before]


def test_a_switch_to_a_smaller_model_keeps_the_newest_exchange() -> None:
    world = World(model_info(200_000, 8_192))
    for number in range(60):
        world.user(f"Question {number}? " + words(60))
        world.says(f"Answer {number}. " + words(200))
    question, answer_ = world.user("What is it? " + words(600)), world.says("It is this. " + words(1_400))
    world.info = model_info(8_192, 2_048)
    plan = world.plan("switch")
    assert plan.summary is not None
    assert {question.id, answer_.id} <= set(plan.summary.kept_ids)


def test_a_long_turn_keeps_the_message_it_began_with_word_for_word() -> None:
    world = World()
    asked = world.user("Do all of this: " + words(900, "task"))
    for number in range(40):
        world.calls(f"f{number}.py", name="write")
        world.results("ok")
        world.says(words(450))
    plan = world.plan()
    assert plan.summary is not None
    assert asked.id in plan.summary.kept_ids
    assert asked.id not in plan.summary.message_ids
