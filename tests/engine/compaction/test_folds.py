"""A fold: a summary of just a range, in its place. Whatever is folded, compacted and taken back, what is sent stays
valid in every dialect, and an undo is exact."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.context.compaction.summary_plan import assembled_text
from agent_tui.context.view import summaries_in_force
from agent_tui.errors import AgentError
from agent_tui.models.messages import SummaryPart, TextPart, ToolCallPart
from tests.engine import dialect_bodies
from tests.support.compaction_world import (
    FakeModel,
    World,
    answer,
    failure,
    model_info,
    sections,
    sent_text,
    words,
)
from tests.support.forms import examples

pytestmark = pytest.mark.quick


def talk(turns: int = 8, size: int = 300) -> World:
    world = World(info=model_info(32_000, 2_048))
    for number in range(turns):
        world.user(f"question {number}: never touch file{number}.txt " + words(40))
        world.measured([ToolCallPart(f"c{number}", "read", json.dumps({"path": f"src/f{number}.py"}))])
        world.results(words(size, f"f{number}"))
        world.measured([TextPart(f"answer {number} " + words(size // 3))])
    return world


def check_bodies(world: World) -> list[str]:
    return dialect_bodies.check_bodies(world.view())


async def test_a_fold_stands_where_its_range_was() -> None:
    world = talk()
    before, bodies, total = world.view(), check_bodies(world), world.usage().total
    first, last = world.path[5].id, world.path[9].id
    plan = world.plan_fold(first, last)
    result = await world.fold(first, last)
    view = world.view()
    assert result.done and result.records[0].reason == "edit"
    assert result.text.startswith("Folded 6 messages · ") and result.text.endswith("/context undo")
    assert [s.message.id for s in view[:5]] == [s.message.id for s in before[:5]]
    (place,) = [i for i, s in enumerate(view) if isinstance(s.message.parts[0], SummaryPart)]
    assert place == 5 and view[6].message.id == before[11].message.id
    text = assembled_text(view[place].message)
    assert "This part of the conversation (6 messages)" in text
    assert "question 2: never touch file2.txt" in text and "question 1:" not in text
    after = world.usage()
    assert result.after is not None and after.total == result.after < total
    assert sum(row.tokens for row in after.rows) == after.total
    assert plan.expected_after is not None and abs(plan.expected_after - after.total) < 400
    assert check_bodies(world) != bodies
    world.undo()
    assert world.view() == before and check_bodies(world) == bodies and world.usage().total == total


async def test_a_range_grows_so_that_no_call_loses_its_result() -> None:
    world = talk(size=900)
    path = world.path
    result = next(m for m in path if m.role == "tool")
    plan = world.plan_fold(result.id, result.id)
    assert plan.summary is not None
    assert plan.summary.message_ids == (path[1].id, path[2].id)


async def test_what_the_model_works_on_is_not_folded() -> None:
    world = talk(3)
    world.user("go on")
    world.calls("a.py", "b.py")
    world.results(words(600), words(600))
    open_ = world.path[-1].id
    with pytest.raises(AgentError, match="still working on it"):
        world.plan_fold(open_, open_)
    plan = world.plan_fold(world.path[4].id, open_)
    assert plan.summary is not None
    assert set(plan.summary.message_ids) == {m.id for m in world.path[4:13]}
    with pytest.raises(AgentError, match="another session"):
        world.plan_fold("msg_of_elsewhere", open_)
    short = World()
    short.user("hi")
    short.says("ho")
    with pytest.raises(AgentError, match="as long as"):
        short.plan_fold("m1", "m2")


async def test_a_compaction_takes_a_fold_whole_and_a_fold_takes_a_summary_in() -> None:
    world = talk(10)
    world.model = FakeModel([answer(sections(text)) for text in ("THE FOLD SAYS", "ALL OF IT", "MORE")])
    await world.fold(world.path[4].id, world.path[15].id)
    folded = world.view()
    result = await world.compact("manual")
    assert result.done
    asked = world.model.requests[-1].messages[0].message.text
    assert "THE FOLD SAYS" in asked and "never touch file2" in asked
    ids = set(result.records[-1].message_ids)
    fold_ids = set(world.records[0].message_ids)
    assert fold_ids <= ids, "not a part of it"
    check_bodies(world)
    assert "ALL OF IT" in sent_text(world.view()) and "THE FOLD SAYS" not in sent_text(world.view())
    # The user's words of the fold are the words of the user, not of the fold.
    assert "question 2: never touch file2.txt" in sent_text(world.view())
    compacted = world.view()
    first = compacted[0].message.id
    over = await world.fold(first, compacted[3].message.id)
    assert over.done, over.text
    assert "ALL OF IT" in world.model.requests[-1].messages[0].message.text
    assert sent_text(world.view()).count("MORE") and "ALL OF IT" not in sent_text(world.view())
    check_bodies(world)
    world.undo()
    assert world.view() == compacted
    world.undo()
    assert world.view() == folded


async def test_two_folds_and_a_rewind_into_one() -> None:
    world = talk(8)
    whole = {m.id for m in world.path}
    await world.fold(world.path[4].id, world.path[11].id)
    await world.fold(world.path[16].id, world.path[23].id)
    assert len(summaries_in_force(world.path, world.records, world.summaries)) == 2
    check_bodies(world)
    world.head = world.path[20].id  # inside the second
    assert len(summaries_in_force(world.path, world.records, world.summaries)) == 1
    check_bodies(world)
    assert whole == set(world.messages), "nothing is deleted"


async def test_a_failed_fold_changes_nothing() -> None:
    world = talk()
    world.model = FakeModel([failure("overloaded")])
    before = world.view()
    result = await world.fold(world.path[0].id, world.path[7].id)
    assert not result.done and result.text.startswith("Fold failed: ") and world.view() == before
    world.model = FakeModel([answer(sections(words(3_000)))])
    total = world.usage().total
    result = await world.fold(world.path[0].id, world.path[7].id)
    assert world.usage().total < total if result.done else "would replace" in result.text


def test_facts_of_the_range_that_stand_elsewhere_need_not_be_added() -> None:
    world = talk()
    plan = world.plan_fold(world.path[0].id, world.path[3].id)
    assert plan.summary is not None
    staying = {m.id for m in plan.summary.kept}
    assert staying == {m.id for m in world.path[4:]}


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("fold"), st.integers(0, 60), st.integers(0, 12)),
        st.tuples(st.just("fold"), st.integers(0, 60), st.integers(0, 30)),
        st.tuples(st.sampled_from(["compact", "undo", "turn", "loop", "rewind"]), st.integers(0, 60), st.just(0)),
    ),
    min_size=3,
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=examples(12, 300), deadline=None)
@given(operations=OPERATIONS, turns=st.integers(3, 9))
def test_any_sequence_of_folds_is_valid_everywhere_and_undone_exactly(
    operations: list[tuple[str, int, int]], turns: int
) -> None:
    world = talk(turns, 200)
    began: list[tuple[str, str | None, list[Any], int]] = []
    for name, place, length in operations:
        path = world.path
        if name in ("fold", "compact"):
            view, total = world.view(), world.usage().total
            try:
                entry = view[place % len(view)].message.id
                other = view[min(len(view) - 1, place % len(view) + length)].message.id
                work = world.fold(entry, other) if name == "fold" else world.compact("manual")
                result = asyncio.run(work)
            except AgentError:
                assert world.view() == view
                continue
            if result.done:
                assert result.after is not None and world.usage().total == result.after < total
                began.append((result.records[0].operation_id, world.head, view, total))
        elif name == "undo":
            operation = world.undo()
            if began and began[-1][0] == operation and began[-1][1] == world.head:
                assert world.view() == began[-1][2] and world.usage().total == began[-1][3]
            began = [b for b in began if b[0] != operation]
        elif name == "turn":
            world.user(f"more {len(world.messages)} " + words(30))
            world.measured([TextPart(words(120))])
        elif name == "loop":
            world.user("tools, please")
            world.calls("x.py", "y.py")
            world.results(words(150), words(150))
            world.measured([TextPart("done")])
        elif len(path) > 4:
            world.head = path[3 + place % (len(path) - 3)].id
            began.clear()
        usage = world.usage()
        assert sum(row.tokens for row in usage.rows) == usage.total
        check_bodies(world)
