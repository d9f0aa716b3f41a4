from __future__ import annotations

from dataclasses import replace

import pytest

from agent_tui.context.accounting.inputs import CompactionSettings
from agent_tui.context.compaction.notices import done_text, preview_of
from agent_tui.context.compaction.plan import records_of
from agent_tui.context.cuts import CLIP_MIN_CHARS, plan_clips
from agent_tui.models.messages import CLEARED_RESULT, AttachmentPart, TextPart
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Cost
from agent_tui.text.numbers import duration, money, tokens
from tests.support.compaction_world import World, assert_valid, model_info, sent_text, words
from tests.support.every import every


def long_turn(world: World, steps: int, tokens: int) -> None:
    world.user("Read everything and tell me.")
    for number in range(steps):
        world.tool_step(f"file{number}.py", tokens)


def chat(world: World, turns: int, tokens: int = 100) -> None:
    for number in range(turns):
        world.user(f"Question {number}? " + words(tokens // 2, f"q{number}"))
        world.says(f"Answer {number}. " + words(tokens, f"a{number}"))


@pytest.mark.quick
@every(
    ("window", "max_output", "max_input", "limit"),
    [
        (200_000, 8_192, None, 191_808),
        (200_000, 64_000, None, 168_000),
        (128_000, 4_096, None, 123_904),
        (8_192, 8_192, None, 6_144),
        (400_000, 128_000, 272_000, 272_000),
    ],
)
def test_worked_cases(window: int, max_output: int, max_input: int | None, limit: int) -> None:
    world = World(model_info(window, max_output, max_input))
    world.user("hello")
    usage = world.usage()
    assert usage.limit == limit
    assert not usage.would_compact
    over = limit + 10 - usage.total
    world.user(words(over))
    assert world.usage().total > limit
    assert world.usage().would_compact


@pytest.mark.quick
def test_auto_compact_false_never_wants_to() -> None:
    world = World(policy=CompactionSettings(auto_compact=False))
    world.user(words(20_000))
    assert not world.usage().would_compact


@pytest.mark.quick
def test_old_results_are_cleared_inside_one_long_turn() -> None:
    world = World()
    long_turn(world, 13, 1_000)
    plan = world.plan()
    assert world.usage().total > (plan.limit or 0)
    assert plan.action == "prune"
    results = [m.id for m in world.path if m.role == "tool"]
    assert plan.pruning.cleared == tuple(results[: len(plan.pruning.cleared)]), "oldest first"
    # Down to about 60 % of the limit, and no further: half of the results stay.
    assert plan.expected_after is not None
    assert 0.5 * (plan.limit or 0) < plan.expected_after <= 0.6 * (plan.limit or 0)


@pytest.mark.quick
def test_cleared_results_are_sent_as_the_placeholder_and_stay_stored() -> None:
    world = World()
    long_turn(world, 13, 1_000)
    before = [m.tool_result.text for m in world.path if m.tool_result is not None]
    plan = world.plan()
    assert plan.now.size_after([], None).total == plan.before
    world.records += records_of(plan, 1.0, "op", "rec", None)
    view = world.view()
    assert_valid(view)
    assert sent_text(view).count(CLEARED_RESULT) == len(plan.pruning.cleared)
    assert [m.tool_result.text for m in world.path if m.tool_result is not None] == before
    assert world.usage().total == plan.expected_after


def test_too_little_to_clear_means_a_summary() -> None:
    world = World()
    chat(world, 70)
    long_turn(world, 2, 700)
    plan = world.plan()
    assert plan.action == "summary"
    assert plan.summary is not None
    assert not plan.pruning


@pytest.mark.slow
def test_the_summary_never_splits_a_call_from_its_results() -> None:
    for parallel in (1, 2, 3):
        world = World()
        world.user("go")
        for number in range(30):
            paths = [f"p{number}-{i}" for i in range(parallel)]
            world.calls(*paths)
            world.results(*(words(500 // parallel, p) for p in paths))
            world.says(words(20))
            world.user("more")
        plan = world.plan("manual")
        assert plan.summary is not None
        inside = set(plan.summary.message_ids)
        for message in world.path:
            calls = {c.call_id for c in message.tool_calls}
            results = {m.id for m in world.path if m.tool_result and m.tool_result.call_id in calls}
            assert not calls or (message.id in inside) == results.issubset(inside) == bool(results & inside)


def test_what_is_kept_word_for_word_is_within_its_budget() -> None:
    world = World()
    chat(world, 90)
    plan = world.plan()
    assert plan.action == "summary"
    assert plan.summary is not None
    kept = [m for m in world.path if m.id in plan.summary.kept_ids]
    assert kept == world.path[-len(kept) :]
    size = sum(m.raw_tokens or 0 for m in kept)
    assert 2_000 < size <= (plan.limit or 0) // 4
    own = plan.summary.user_messages
    newest = [m.text for m in world.path if m.role == "user" and m.id in plan.summary.message_ids]
    assert list(own) == newest[-len(own) :]
    assert sum(len(t) // 4 for t in own) <= (plan.limit or 0) // 10
    assert plan.summary.user_left_out == len(newest) - len(own) > 0


def test_unanswered_messages_always_stay() -> None:
    world = World()
    chat(world, 60)
    world.user(words(6_000, "big"))
    plan = world.plan()
    assert plan.summary is not None
    assert world.head in plan.summary.kept_ids


def test_an_open_tool_loop_stays_whole() -> None:
    world = World()
    chat(world, 80)
    world.user("now read")
    call = world.calls("a", "b", "c")
    results = world.results(words(1_500, "a"), words(1_500, "b"), words(1_500, "c"))
    plan = world.plan()
    assert plan.summary is not None
    assert {call.id, *(m.id for m in results)} <= set(plan.summary.kept_ids)
    assert not plan.pruning


@pytest.mark.quick
def test_a_newest_result_that_alone_exceeds_the_limit_is_clipped_in_what_is_sent() -> None:
    world = World()
    world.user("read the log")
    result = world.tool_step("huge.log", 40_000)
    plan = world.plan()
    assert plan.action == "prune"
    assert list(plan.pruning.clips) == [result.id]
    assert plan.expected_after is not None
    assert plan.expected_after <= (plan.limit or 0)
    assert "large tool result" in preview_of(plan, world.usage()).say
    assert result.tool_result is not None
    assert len(result.tool_result.text) == 160_000


@pytest.mark.slow
def test_with_history_a_huge_newest_result_is_clipped_and_the_rest_summarised() -> None:
    world = World()
    chat(world, 60)
    world.user("read the log")
    result = world.tool_step("huge.log", 40_000)
    plan = world.plan()
    assert plan.action in ("prune", "summary")
    assert plan.expected_after is not None
    assert plan.expected_after <= (plan.limit or 0)
    assert result.id in plan.pruning.clips


@pytest.mark.quick
def test_clips_spare_small_results() -> None:
    world = World()
    world.user("go")
    world.calls("a", "b", "c")
    small, one, two = world.results(words(100), words(5_000), words(9_000))
    tokens = {m.id: m.raw_tokens or 0 for m in (small, one, two)}
    clips = plan_clips([small, one, two], tokens, 6_100)
    assert set(clips) == {one.id, two.id}
    assert all(n >= CLIP_MIN_CHARS for n in clips.values())
    assert sum(clips.values()) // 4 + 100 <= 6_100
    assert not plan_clips([small, one], tokens, 10_000)


@pytest.mark.quick
def test_the_gate_refuses_what_brings_too_little() -> None:
    world = World(model_info(200_000, 64_000))
    chat(world, 8)
    plan = world.plan("manual")
    assert plan.action == "not_worth_it"
    assert "less than 5 % of the conversation" in plan.why
    assert preview_of(plan, world.usage()).say.startswith("Not worth it: ")


@pytest.mark.quick
def test_nothing_to_compact() -> None:
    world = World()
    assert world.plan("manual").action == "nothing"
    world.user("hello")
    plan = world.plan("manual")
    assert plan.action == "nothing"
    assert preview_of(plan, world.usage()).say.startswith("Nothing to compact: ")


@pytest.mark.slow
def test_what_fits_to_send_is_accepted_although_it_misses_the_limit() -> None:
    world = World()
    chat(world, 40)
    world.user(words(13_000, "paste"))
    plan = world.plan()
    assert plan.action == "summary"
    assert plan.now.needed
    assert plan.fits
    assert plan.expected_after is not None
    assert (plan.limit or 0) < plan.expected_after < 16_384 - 1_024


@pytest.mark.slow
def test_when_the_newest_message_itself_does_not_fit_no_call_is_spent() -> None:
    world = World()
    chat(world, 40)
    world.user(words(16_000, "paste"))
    for plan in (world.plan(), world.plan("manual")):
        assert plan.action == "not_worth_it"
        assert plan.stuck
        assert "your newest message is too large: ~16," in plan.why
        assert "16,384" in plan.why
        assert preview_of(plan, world.usage()).say.startswith("No compaction can make room: ")


@pytest.mark.quick
def test_a_manual_compaction_summarises_even_when_clearing_would_do() -> None:
    world = World()
    long_turn(world, 13, 1_000)
    world.says("done")
    assert world.plan("auto").action == "prune"
    assert world.plan("manual").action == "summary"


@pytest.mark.slow
def test_an_unknown_window_can_be_compacted_by_hand_and_after_an_overflow() -> None:
    world = World(model_info(None, None))
    chat(world, 80)
    world.user("next")
    assert world.usage().limit is None
    for reason in ("manual", "overflow"):
        plan = world.plan(reason)
        assert plan.action == "summary"
        assert plan.expected_after is not None
        assert plan.expected_after <= plan.before * 3 // 4


def test_an_overflow_aims_well_below_what_was_refused() -> None:
    world = World(model_info(200_000, 8_192))
    chat(world, 100)
    world.user("next")
    plan = world.plan("overflow")
    assert plan.action == "summary"
    assert plan.expected_after is not None
    assert plan.expected_after <= plan.before * 3 // 4


@pytest.mark.slow
def test_switching_plans_for_the_new_models_limit() -> None:
    world = World(model_info(200_000, 8_192))
    chat(world, 100)
    assert not world.usage().would_compact
    world.info = model_info(8_192, 8_192)
    plan = world.plan("switch")
    assert plan.limit == 6_144
    assert plan.expected_after is not None
    assert plan.expected_after <= 6_144


def test_the_preview_tells_what_goes_and_what_stays() -> None:
    world = World()
    chat(world, 40)
    world.tool_step("src/app.py", 200)
    chat(world, 40)
    text = preview_of(world.plan("manual"), world.usage()).say
    for words_ in (
        "Now ",
        ", expected ~",
        "with one summary",
        "word for word.",
        "src/app.py",
        "undo",
    ):
        assert words_ in text


def test_a_users_message_larger_than_the_budget_is_cut_visibly() -> None:
    world = World()
    world.user(words(4_000, "paste"))
    chat(world, 1, 8_000)
    world.says(words(2_000))
    world.user("x")
    plan = world.plan("overflow")
    assert plan.summary is not None
    assert "characters left out" in plan.summary.user_cut
    assert plan.summary.user_messages == (), "what is cut is not there word for word"
    assert "word for word in the summary" not in preview_of(plan, world.usage()).say


def test_attachments_of_the_user_do_not_disturb() -> None:
    world = World()
    world.append("user", [AttachmentPart("a.txt", "text/plain", text=words(500), path="a.txt"), TextPart("look")])
    chat(world, 90)
    plan = world.plan()
    assert plan.summary is not None
    assert plan.summary.files == {"a.txt": ["attached"]}


@pytest.mark.quick
def test_texts() -> None:
    record = CompactionRecord(
        "r", "o", "summary", ["m"], before_tokens=171_234, after_tokens=24_111, before_estimated=False
    )
    text = done_text(replace(record, after_spread=912), kept=6, seconds=8.2, cost=Cost(0.021))
    assert text == "171.2k → 24.1k ± 0.9k · kept 6 messages · 8 s · $0.02 · /compact undo"
    assert "· ≥ $0.02 ·" in done_text(record, cost=Cost(0.021, 1))
    assert (
        done_text(replace(record, before_tokens=20_000, after_tokens=9_000, before_estimated=True), cleared=1)
        == "~20k → ~9k · cleared 1 old tool result · /compact undo"
    )
    assert [tokens(n, False) for n in (0, 999, 1_000, 168_000, 999_949, 999_950, 1_234_567)] == [
        "0",
        "999",
        "1k",
        "168k",
        "999.9k",
        "1M",
        "1.2M",
    ]
    assert [money(c) for c in (0, 0.021, 1.5, 0.0042, 0.00001)] == [
        "$0",
        "$0.02",
        "$1.50",
        "$0.0042",
        "<$0.0001",
    ]
    assert [duration(s) for s in (0.44, 2, 4.94, 8.4, 59.7, 125, 3_725)] == [
        "0.4 s",
        "2 s",
        "4.9 s",
        "8 s",
        "1 min",
        "2 min 5 s",
        "1 h 2 min",
    ]
