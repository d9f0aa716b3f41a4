"""What is proposed to be dropped: only what a later one stands for or nobody came back to, and always whole units."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.tidy import (
    FIXED,
    READ_AGAIN,
    SAME,
    SAME_LINES,
    TODO,
    UNUSED,
    DeadWeight,
    dead_weight,
    units_of,
)
from agent_tui.context.view import build_view
from agent_tui.models.messages import REFUSED, Message, ToolCallPart, ToolResultPart
from agent_tui.models.steps import CompactionRecord
from tests.support.compaction_world import World, assert_valid

pytestmark = pytest.mark.quick

LOG = "\n".join(f"2026-11-23T10:00:{n % 60:02} worker-{n} state=idle queue=0x{n:04x}" for n in range(400))


def numbered(first: int, last: int, word: str = "line") -> str:
    return "\n".join(f"{n}\t{word} {n}" for n in range(first, last + 1))


def called(world: World, name: str, text: str, error: bool = False, **arguments: object) -> Message:
    """A call and its result, which is returned."""
    (result,) = several(world, (name, text, error, arguments))
    return result


def several(world: World, *calls: tuple[str, str, bool, dict[str, object]]) -> list[Message]:
    """Parallel calls in one answer, and their results."""
    number = len(world.messages)
    world.append("assistant", [ToolCallPart(f"c{number}-{i}", c[0], json.dumps(c[3])) for i, c in enumerate(calls)])
    return [
        world.append("tool", [ToolResultPart(f"c{number}-{i}", name, text, error)])
        for i, (name, text, error, _) in enumerate(calls)
    ]


def found(world: World, *kept: str) -> list[DeadWeight]:
    view = build_view(world.path, world.records, world.summaries)
    sizes = {message.id: len(str(message.parts)) // 4 for message in world.path}
    return dead_weight(world.path, view, sizes, frozenset(kept))


def reasons(world: World, *kept: str) -> dict[str, str]:
    """By the results' ids, why they could go."""
    return {message_id: one.why for one in found(world, *kept) for message_id in one.message_ids[1:]}


def asked(world: World, text: str = "go on") -> None:
    world.says("done")
    world.user(text)


def ended(world: World) -> None:
    world.says("That is all.")


def test_of_a_file_only_the_newest_look_at_the_same_lines_stays() -> None:
    world = World()
    world.user("look at it")
    part = called(world, "read", numbered(1, 50), path="src/app.py", limit=50)
    first = called(world, "Read", numbered(1, 100), file_path="./src/app.py")
    others = called(world, "read", numbered(200, 300), path="src/app.py", offset=200)
    asked(world)
    changed = called(world, "read", numbered(1, 120, "new"), path="src/app.py")
    again = called(world, "read", numbered(1, 120, "new"), path="src/app.py")
    ended(world)
    assert reasons(world) == {part.id: READ_AGAIN, first.id: READ_AGAIN, changed.id: SAME_LINES}
    assert others.id not in reasons(world) and again.id not in reasons(world)
    assert found(world)[0].what == "read src/app.py" and found(world)[0].tokens == max(o.tokens for o in found(world))


def test_one_of_several_results_is_proposed_alone() -> None:
    world = World()
    world.user("look at both")
    first, second = several(
        world,
        ("read", numbered(1, 80), False, {"path": "a.py"}),
        ("read", numbered(1, 80), False, {"path": "b.py"}),
    )
    called(world, "read", numbered(1, 80), path="a.py")
    ended(world)
    (alone,) = found(world)
    assert alone.message_ids == (first.id,) and alone.what == "read a.py" and alone.why == SAME_LINES
    world.records = [CompactionRecord("r", "op", "drop", [first.id], created=world.clock())]
    assert found(world) == []
    called(world, "read", numbered(1, 80), path="b.py")
    ended(world)
    assert second.id not in {each for one in found(world) for each in one.message_ids}, "its call would go with it"


def test_what_the_look_that_stands_for_it_is_no_longer_sent_stays() -> None:
    world = World()
    world.user("look")
    first = called(world, "read", numbered(1, 50), path="a.py")
    again = called(world, "read", numbered(1, 50), path="a.py")
    ended(world)
    assert reasons(world) == {first.id: SAME_LINES}
    for kind, ids in (("prune", [again.id]), ("drop", [world.path[-3].id, again.id])):
        world.records = [CompactionRecord("r", "op", kind, ids, created=world.clock())]  # type: ignore[arg-type]
        assert reasons(world) == {}, "the newest that is sent is the only one"


def test_older_todo_lists_failures_that_were_mended_and_what_came_twice() -> None:
    world = World()
    world.user("work")
    listed = called(world, "TodoWrite", "noted", todos=[{"content": "a", "status": "pending"}])
    broken = called(world, "edit", "not found", True, path="a.py", edits=[{"old": "x", "new": "y"}])
    mended = called(world, "write", "written", path="./a.py", content="y")
    failing = called(world, "bash", "1 failed\n[exit code 1]", True, command="pytest  -q")
    passing = called(world, "bash", "1 passed", command="pytest -q")
    seen = called(world, "grep", "a.py:1:y", pattern="y")
    other = called(world, "grep", "a.py:2:y", pattern="y ")
    again = called(world, "grep", "a.py:1:y", pattern="y")
    newest = called(world, "todo", "noted", items=[{"text": "a", "status": "completed"}])
    never = called(world, "bash", "no such file\n[exit code 1]", True, command="cat nowhere")
    no = called(world, "bash", f"{REFUSED} They said: not this", True, command="rm x")
    called(world, "bash", "done", command="rm x")
    ended(world)
    assert reasons(world) == {listed.id: TODO, broken.id: FIXED, failing.id: FIXED, seen.id: SAME}
    assert not {mended.id, passing.id, other.id, again.id, newest.id, never.id, no.id} & reasons(world).keys()


def test_a_large_result_goes_when_nothing_of_it_was_mentioned_since() -> None:
    world = World()
    world.user("what runs?")
    log = called(world, "bash", LOG, command="journalctl")
    world.says("Nothing of interest.")
    assert reasons(world) == {}, "the user may still ask about it"
    world.user("thanks")
    world.says("Worker-17 was fine.")
    assert reasons(world) == {}, "somebody came back to it"
    world.head = world.path[-2].id
    world.says("You are welcome.")
    assert reasons(world) == {log.id: UNUSED}
    assert reasons(world, log.id) == {}, "not where it is pinned"


@pytest.mark.parametrize("said", ["0x0007", "worker-3.", "/logs/worker-5"])
def test_a_word_of_it_in_a_later_call_or_thought_is_a_mention(said: str) -> None:
    world = World()
    world.user("what runs?")
    called(world, "bash", LOG, command="journalctl")
    asked(world)
    called(world, "bash", "-", command=f"grep {said} x")
    ended(world)
    assert reasons(world) == {}


def test_in_a_language_without_blanks_as_well() -> None:
    world = World()
    world.user("何")
    called(world, "bash", "設定ファイルが見つかりません。" * 400, command="ls")
    asked(world)
    world.says("設定を直しました。")
    assert reasons(world) == {}


def test_parallel_calls_go_together_and_an_answer_with_much_to_say_stays() -> None:
    world = World()
    world.user("look")
    both = several(
        world, ("read", numbered(1, 9), False, {"path": "a"}), ("read", numbered(1, 9), False, {"path": "b"})
    )
    called(world, "read", numbered(1, 9), path="a")
    ended(world)
    assert [one.what for one in found(world)] == ["read a"], "b is still needed"
    world.user("more")
    called(world, "read", numbered(1, 9), path="b")
    ended(world)
    assert reasons(world) == {message.id: SAME_LINES for message in both}
    assert found(world)[0].what == "read a, read b"
    world.path[1].parts.insert(0, world.user("x" * 500).parts[0])
    world.head = world.path[-2].id
    assert reasons(world) == {}


def test_what_still_goes_on_stays() -> None:
    world = World()
    world.user("look")
    called(world, "read", numbered(1, 50), path="a.py")
    world.user("and quickly")
    called(world, "read", numbered(1, 50), path="a.py")
    assert reasons(world) == {}
    ended(world)
    assert len(reasons(world)) == 1


NAMES = ("read", "bash", "todo", "edit", "grep")
ACTS = st.lists(
    st.tuples(
        st.sampled_from([*NAMES, "parallel", "user", "says", "prune", "drop", "fold", "pin"]),
        st.integers(0, 5),
        st.booleans(),
    ),
    max_size=30,
)


@given(ACTS)
def test_whatever_was_done_it_proposes_no_more_than_may_go(acts: list[tuple[str, int, bool]]) -> None:
    """Never the newest look at a file, a pinned message, what goes on, what is not sent as it came; a call only
    with all its results; and all of it dropped leaves a valid request in which each still has what stands for it."""
    world, pinned = World(), set[str]()
    world.user("begin")
    for act, n, failed in acts:
        arguments: dict[str, object] = {"path": f"f{n % 2}", "command": f"run {n % 2}", "items": []}
        texts = {"read": numbered(1, 10 + n), "bash": LOG if n > 3 else "short"}
        match act:
            case "user":
                world.user("go on")
            case "says":
                world.says("worker-5 is fine" if failed else "well")
            case "parallel":
                several(world, *((name, texts.get(name, "fine"), failed, arguments) for name in ("read", NAMES[n % 5])))
            case "prune" | "drop" | "fold":
                units = [unit for unit in units_of(world.path) if unit[0].role == "assistant"]
                if units:
                    unit = units[n % len(units)]
                    ids = [m.id for m in unit] if act != "prune" else [m.id for m in unit[1:]]
                    kind: Literal["drop", "prune"] = "drop" if act != "prune" else "prune"
                    name = f"r{len(world.records)}"
                    world.records.append(CompactionRecord(name, "op", kind, ids, created=world.clock()))
            case "pin":
                pinned.add(world.path[n % len(world.path)].id)
            case _:
                called(world, act, texts.get(act, "fine"), failed, **arguments)
    proposed = found(world, *pinned)
    ids = [message_id for one in proposed for message_id in one.message_ids]
    whole = {s.message.id for s in build_view(world.path, world.records, world.summaries) if s.key == s.message.id}
    assert len(ids) == len(set(ids)) and whole.issuperset(ids) and pinned.isdisjoint(ids)
    wholes = [tuple(m.id for m in unit) for unit in units_of(world.path)]
    for one in proposed:
        (unit_ids,) = [unit for unit in wholes if not set(unit).isdisjoint(one.message_ids)]
        alone = set(unit_ids[1:]) > set(one.message_ids)
        assert one.message_ids == unit_ids or alone, "a call goes with its results, or results beside others that stay"
    last = max((n for n, m in enumerate(world.path) if m.role == "assistant" and not m.tool_calls), default=-1)
    assert {m.id for m in world.path[last + 1 :]}.isdisjoint(ids)
    newest: dict[str, str] = {}
    for message in world.path:
        calls = {call.call_id: call for other in world.path for call in other.tool_calls}
        result = message.tool_result
        if result is not None and result.name == "read" and not result.is_error and message.id in whole:
            newest[json.loads(calls[result.call_id].arguments)["path"]] = message.id
    assert set(newest.values()).isdisjoint(ids)
    dropped = CompactionRecord("last", "op", "drop", ids, created=world.clock())
    assert_valid(build_view(world.path, [*world.records, dropped], world.summaries))
    later = World()
    later.messages, later.head, later.records = world.messages, world.head, [*world.records, dropped]
    assert found(later, *pinned) == []
