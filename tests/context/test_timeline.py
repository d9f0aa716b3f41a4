"""The timeline: its columns are the steps, their numbers those that the time machine shows, and nothing is lost where
steps share a column."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.timeline import NOW, Timeline, in_words, projected, stack_of, timeline_json
from agent_tui.models.rows import STACKED
from agent_tui.models.steps import CompactionRecord, Step
from tests.support.usages import sample_usage

pytestmark = pytest.mark.quick


def step(number: int, rows: dict[str, int], **more: object) -> Step:
    made = Step(f"s{number}", "turn", "demo", "demo", "chat", "demo", f"m{number}", "complete", created=10.0 * number)
    made.estimated_rows, made.estimated_input = rows, sum(rows.values())
    return replace(made, **more)  # type: ignore[arg-type]


def grown(sizes: list[int]) -> list[Step]:
    return [step(number, {"tools": 100, "messages": size}) for number, size in enumerate(sizes, 1)]


def fold(after: int, before: int, then: int, **more: object) -> CompactionRecord:
    """A compaction after step ``after``."""
    made = CompactionRecord(f"r{after}", f"op{after}", "summary", [], created=10.0 * after + 5)
    made.before_tokens, made.after_tokens, made.before_estimated = before, then, False
    return replace(made, **more)  # type: ignore[arg-type]


SIZES = st.lists(st.integers(0, 200_000), max_size=60)


@given(SIZES, st.integers(-3, 90), st.lists(st.integers(0, 60), max_size=4, unique=True))
def test_every_step_has_one_column_which_shows_the_highest_of_them(
    sizes: list[int], most: int, folded: list[int]
) -> None:
    timeline = Timeline(grown(sizes), [fold(after, 9, 3) for after in folded])
    columns = timeline.columns(most, {f"m{n}" for n in range(1, 30)})
    assert len(columns) <= max(1, most) and bool(columns) == bool(sizes)
    assert [n for column in columns for n in range(column.first, column.last + 1)] == list(range(1, len(sizes) + 1))
    for column in columns:
        totals = {n: sizes[n - 1] + 100 for n in range(column.first, column.last + 1)}
        assert column.total == totals[column.number] == max(totals.values()) == sum(dict(column.stack).values())
        assert [name for name, _ in column.stack] == sorted(dict(column.stack), key=STACKED.index)
        assert column.left == (column.number >= 30)
    shown = [each for column in [*columns, timeline.now(sample_usage())] for each in column.folds]
    assert [each.step for each in shown] == sorted(min(after, len(sizes)) + 1 for after in folded)


def test_a_step_of_which_nothing_was_expected_has_an_empty_column() -> None:
    nothing = step(1, {}, estimated_rows=None, estimated_input=None)
    (column,) = Timeline([nothing], []).columns(5, ())
    assert (column.total, column.stack) == (None, ())
    assert dict(stack_of({"messages": 5, "a row of a later version": 7})) == {"messages": 12}


def test_the_projection_and_the_turns_that_are_left_are_the_same() -> None:
    usage = replace(sample_usage(), growth=9_000.0, turns_left=9)
    ahead = projected(usage)
    assert len(ahead) == 9 and ahead[-1] <= (usage.limit or 0) < ahead[-1] + 9_000
    assert all(two - one == 9_000 for one, two in pairwise(ahead))
    assert projected(replace(usage, held="automatic compaction is off")) == []
    assert projected(replace(usage, growth=None, turns_left=None)) == []


def test_the_sentence_tells_of_the_rise_the_compactions_and_what_is_left_of_it() -> None:
    def said(sizes: list[int], now: int, *records: CompactionRecord, path: int = 99) -> str:
        return in_words(Timeline(grown(sizes), records), now, {f"m{n}" for n in range(1, path + 1)})

    assert said([], 0) == ""
    assert said([2_000], 2_100) == "The context stayed at 2.1k over 1 step."
    assert said([2_000, 9_000], 13_700) == "The context rose from 2.1k to 13.7k over 2 steps."
    once = fold(2, 13_000, 5_000)
    fell = "The context rose from 2.1k to 13.1k over 3 steps, compacted once, and is 5.1k now."
    assert said([2_000, 13_000, 4_000], 5_100, once) == fell
    undone = fold(1, 13_000, 5_000, active=False)
    assert said([2_000, 13_000, 4_000], 5_100, once, undone) == fell
    assert said([2_000, 99_000], 2_100, path=1) == "The context stayed at 2.1k over 1 step.", "the branch was left"
    assert said([9_000, 5_000], 3_100) == "The context fell from 9.1k to 3.1k over 2 steps."


def test_what_is_dropped_is_no_compaction() -> None:
    dropped = fold(1, 0, 0, kind="drop", before_tokens=None, after_tokens=None)
    folded = fold(2, 900, 500, reason="edit")
    timeline = Timeline(grown([900, 800, 300]), [dropped, folded, fold(3, 400, 100)])
    assert [each.what for each in timeline.folds()] == ["dropped", "folded", "compacted"]
    assert "compacted once" in in_words(timeline, 100, {"m1", "m2", "m3"})


def edit(after: int, kind: str, *ids: str, **more: object) -> CompactionRecord:
    operation = f"{kind} {after} {ids}"
    return fold(after, 9, 4, kind=kind, message_ids=list(ids), reason="edit", operation_id=operation, **more)


OFF = {"active": False}
EDITS: list[tuple[list[CompactionRecord], list[str]]] = [
    *(([edit(2, kind, "m1", **OFF, switched=[28.0])], []) for kind in ("drop", "summary", "restore", "prune")),
    *(
        ([edit(1, kind, "m1", **OFF, switched=[28.0])], [what])
        for kind, what in (("drop", "dropped"), ("prune", "folded"))
    ),
    ([fold(2, 9, 4, **OFF, switched=[28.0])], []),
    ([fold(1, 9, 4, **OFF, switched=[28.0])], ["compacted"]),
    ([edit(2, "drop", "m1", **OFF)], ["dropped"]),
    ([edit(2, "drop", "m1"), edit(2, "restore", "m1", created=29.0)], []),
    ([edit(2, "drop", "m1", "m2"), edit(2, "restore", "m1", created=29.0)], ["dropped"]),
    ([edit(2, "drop", "m1", "m2"), *(edit(2, "restore", f"m{n}", created=27.0 + n / 10) for n in (1, 2))], []),
    ([edit(1, "drop", "m1"), edit(2, "restore", "m1")], ["dropped", "restored"]),
    ([edit(2, "restore", "m1"), edit(2, "drop", "m1", created=29.0)], []),
    ([edit(2, "drop", "m1"), edit(2, "drop", "m2", created=28.0), edit(2, "restore", "m2", created=29.0)], ["dropped"]),
]


@pytest.mark.parametrize(("records", "marks"), EDITS)
def test_what_was_undone_before_anything_was_sent_leaves_no_mark(
    records: list[CompactionRecord], marks: list[str]
) -> None:
    timeline = Timeline(grown([900, 800]), records)
    assert [each.what for each in timeline.folds()] == marks
    usage = sample_usage()
    assert len([*timeline.now(usage).folds, *(f for c in timeline.columns(2, ()) for f in c.folds)]) == len(marks)


def test_the_json_has_every_step_and_what_is_not_known_is_null() -> None:
    timeline = Timeline([*grown([10, 20]), step(3, {}, estimated_rows=None, estimated_input=None)], [fold(1, 8, 4)])
    data = timeline_json(timeline, sample_usage(), {"m1"})
    assert [each["total"] for each in data["steps"]] == [110, 120, None]
    assert [each["left"] for each in data["steps"]] == [False, True, True]
    assert data["steps"][0]["rows"] == {"tools": 100, "messages": 10}
    assert data["steps"][0]["cache_read_share"] is None and data["steps"][0]["cost_usd"] is None
    assert data["compactions"][0]["before_step"] == 2 and data["projected"] == []


def test_the_numbers_that_are_made_again_are_the_columns_from_then_on() -> None:
    timeline, usage = Timeline(grown([10, 20, 30]), []), sample_usage()
    timeline.made_again(2, usage)
    column = timeline.columns(1, ())[0]
    assert (column.number, column.total, dict(column.stack)) == (2, usage.total, usage.stack())
    now = timeline.now(usage, in_flight=1_000)
    assert now.number == NOW and now.total == usage.total + 1_000 == sum(dict(now.stack).values())
