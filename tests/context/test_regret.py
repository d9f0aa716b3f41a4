"""Regret: what is looked at again because a compaction took it from what is sent, and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.accounting.spending import session_totals
from agent_tui.context.compaction.regret import Regret, regrets, sum_of
from agent_tui.context.tokens import family_of
from agent_tui.models.messages import Message, ToolCallPart, ToolResultPart
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Prices
from tests.support.compaction_world import TARGET, World

pytestmark = pytest.mark.quick

PRICES = Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6)
FILE = "\n".join(f"{number}\tline {number} of the file" for number in range(1, 101))


def called(world: World, name: str, text: str, error: bool = False, **arguments: object) -> Message:
    """A call and its result, which is returned."""
    number = len(world.messages)
    world.append("assistant", [ToolCallPart(f"c{number}", name, json.dumps(arguments))])
    return world.append("tool", [ToolResultPart(f"c{number}", name, text, error)])


def compacted(world: World, *messages: Message, operation: str = "cmp1") -> CompactionRecord:
    record = CompactionRecord(f"rec-{operation}", operation, "prune", [m.id for m in messages], created=world.clock())
    world.records.append(record)
    return record


def found(world: World) -> dict[str, Regret]:
    return regrets(world.records, world.path, family_of(TARGET), PRICES)


def test_what_is_read_again_is_counted_and_priced_to_the_compaction_that_took_it() -> None:
    world = World()
    first = called(world, "read", FILE, path="src/app.py")
    compacted(world, first)
    compacted(world, called(world, "grep", "nothing", pattern="x"), operation="cmp2")
    again = called(world, "Read", FILE, file_path="./src/app.py")
    regret = found(world)["cmp1"]
    assert set(found(world)) == {"cmp1"}
    assert regret.calls == 1 and regret.what == ["read ./src/app.py"]
    assert regret.tokens == pytest.approx(again.raw_tokens, rel=0.1)
    assert regret.usd == pytest.approx(regret.tokens * 3.75e-6), "paid anew, at the price of writing it"
    assert regrets(world.records, world.path, family_of(TARGET), Prices())["cmp1"].usd is None


def test_a_part_of_what_was_read_is_regret_and_more_than_it_is_not() -> None:
    world = World()
    lines = FILE.splitlines()
    compacted(world, called(world, "read", "\n".join(lines[:50]), path="a.py", limit=50))
    called(world, "read", "\n".join([*lines[10:20], "[lines 11-20 of 100; continue with offset 21]"]), path="a.py")
    called(world, "read", "\n".join(lines[40:60]), path="a.py", offset=41)
    assert found(world)["cmp1"].calls == 1


@pytest.mark.parametrize("tool", ["edit", "write", "apply_patch"])
def test_a_command_after_a_change_is_run_for_the_change(tool: str) -> None:
    world = World()
    compacted(world, called(world, "bash", "12 passed in 0.31s", command="pytest -q"))
    called(world, "bash", "12 passed in 0.42s", command="pytest -q")
    called(world, tool, "changed", path="a.py")
    called(world, "bash", "12 passed in 0.40s", command="pytest -q")
    assert found(world)["cmp1"].what == ["bash pytest -q"]


def test_what_is_another_now_is_no_regret() -> None:
    world = World()
    compacted(
        world,
        called(world, "read", "1\told", path="a.py"),
        called(world, "bash", "on branch main", command="git status"),
        called(world, "read", "not found", error=True, path="b.py"),
    )
    called(world, "read", "1\tnew", path="a.py")
    called(world, "bash", "2 files changed", command="git status")
    called(world, "read", "not found", error=True, path="b.py")
    assert found(world) == {}


def test_what_is_still_sent_is_not_missed() -> None:
    world = World()
    first = called(world, "read", FILE, path="a.py")
    kept = called(world, "read", FILE, path="a.py")
    compacted(world, first)
    called(world, "read", FILE, path="a.py")
    assert found(world) == {}, "the second reading was still sent"
    compacted(world, kept, world.path[-1], operation="cmp2")
    called(world, "read", FILE, path="a.py")
    assert {name: regret.calls for name, regret in found(world).items()} == {"cmp1": 1}, "who took it first"
    called(world, "read", FILE, path="a.py")
    assert found(world)["cmp1"].calls == 1, "once it is back, it is there"


def test_recall_is_regret_whatever_it_finds() -> None:
    world = World()
    compacted(world, called(world, "read", FILE, path="a.py"))
    called(world, "recall", "line 7 of the file", query="line 7")
    assert found(world)["cmp1"].what == ["recall line 7"]
    assert regrets([], world.path, family_of(TARGET)) == {}


def test_an_undone_compaction_is_blamed_for_its_time_alone() -> None:
    world = World()
    record = compacted(world, called(world, "read", FILE, path="a.py"))
    called(world, "read", FILE, path="a.py")
    record.active, record.switched = False, [world.clock()]
    called(world, "read", FILE, path="a.py")
    assert found(world)["cmp1"].calls == 1


TOOLS = ("read", "bash", "grep", "edit", "recall", "todo")


@given(st.lists(st.tuples(st.sampled_from(TOOLS), st.integers(0, 2), st.booleans()), max_size=25))
def test_no_more_is_regretted_than_was_called_after_a_compaction(calls: list[tuple[str, int, bool]]) -> None:
    """Whatever is called and taken: each call is blamed on one compaction at most, on one that was made before it."""
    world = World()
    after: dict[str, int] = {}
    for number, (tool, which, compact) in enumerate(calls):
        result = called(world, tool, FILE, path=f"{which}.py", command=f"run {which}", query="q")
        after = {name: count + 1 for name, count in after.items()}
        if compact:
            compacted(world, result, *[m for m in world.path if m.role == "tool"][:which], operation=f"cmp{number}")
            after[f"cmp{number}"] = 0
    regret = found(world)
    assert all(one.calls <= after[name] and one.tokens > 0 for name, one in regret.items())
    assert sum(one.calls for one in regret.values()) <= max(after.values(), default=0)
    assert all(one.calls == len(one.what) for one in regret.values())


def test_what_came_back_after_several_compactions_is_added_up_and_not_priced_where_one_has_no_price() -> None:
    two, one = Regret(2, 300, 0.5, ["a", "b"]), Regret(1, 40, 0.25, ["c"])
    both = sum_of([two, one])
    assert both is not None and (both.calls, both.tokens, both.usd) == (3, 340, 0.75)
    unpriced = sum_of([two, Regret(1, 40, None, ["c"])])
    assert unpriced is not None and unpriced.usd is None
    assert sum_of([]) is None


def test_compactions_that_were_paid_for_and_undone_are_counted() -> None:
    def record(name: str, *, undone: bool, usd: float | None = 0.1, **more: object) -> CompactionRecord:
        switched = [5.0] if undone else []
        return CompactionRecord(name, name, "summary", ["m"], not undone, cost_usd=usd, switched=switched, **more)  # type: ignore[arg-type]

    elsewhere = record("beside", undone=False)
    elsewhere.active = False
    unpriced = record("unpriced", undone=True, usd=None, cost_known_usd=0.0, unpriced_calls=1)
    free = record("free", undone=True, usd=None)
    again = record("again", undone=False)
    again.switched = [1.0, 2.0]
    totals = session_totals([], [record("a", undone=True), elsewhere, unpriced, free, again, record("b", undone=False)])
    assert (totals.compactions, totals.taken_back) == (2, 2)
