"""The facts of messages are read once a message, beside the loop, whatever their lines look like."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from agent_tui.context.compaction import facts as room
from agent_tui.context.compaction.facts import LONG_LINE, FactReader, read_facts
from agent_tui.context.compaction.planning import plan_compaction
from agent_tui.context.compaction.rules import STRETCH, is_rule
from agent_tui.models.events import CompactionEnded
from agent_tui.models.messages import Message, TextPart, user_message
from tests.support.compaction_bench import Make, ReadingModel
from tests.support.compaction_world import World, words
from tests.support.every import every

RULE = "Never push to main."


class Reads(Counter[str]):
    """How often each message was read, and in which threads; ``gate`` holds every reading up."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[threading.Thread] = set()
        self.begun, self.gate = threading.Event(), threading.Event()
        self.gate.set()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    counted, own = Reads(), room._read

    def counting(message: Message, *rest: object) -> object:
        counted[message.id] += 1
        counted.threads.add(threading.current_thread())
        counted.begun.set()
        counted.gate.wait()
        return own(message, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(room, "_read", counting)
    return counted


def talk(turns: int = 40) -> World:
    world = World()
    world.user(RULE)
    for number in range(turns):
        world.tool_step(f"src/m{number}.py", 60)
        world.says(
            f"We decided to store part {number} in t{number}. Should part {number} be rebuilt?\n{words(120, 'A')}"
        )
        world.user(f"Go on with part {number}.")
    return world


@pytest.mark.slow
def test_however_many_cuts_are_tried_each_message_is_read_once(reads: Reads) -> None:
    world, reader = talk(), FactReader()
    whole = reader.read(world.path)
    for cut in range(0, len(world.path), 4):
        assert reader.read(world.path[:cut]) == read_facts(world.path[:cut])
    assert reader.read(world.path) == whole and len(whole) > 40
    reads.clear()
    for reason in ("manual", "auto", "overflow"):
        plan = plan_compaction(
            world.inputs(),
            world.usage(),
            world.path,
            world.summaries,
            reason=reason,
            read=reader.read,
        )
        assert plan.summary is None or plan.summary.facts
    assert not reads


def test_what_changed_is_read_again_and_what_is_still_written_is_not_kept(reads: Reads) -> None:
    reader, message = FactReader(), user_message("Never A.")
    answer = Message("a", "assistant", [TextPart("It is unclear who B is.")], status="streaming")
    assert [f.text for f in reader.read([message, answer])] == ["Never A.", "It is unclear who B is."]
    message.parts = [TextPart("Never C.")]
    answer.parts[0] = TextPart("It is unclear who D is.")
    assert [f.text for f in reader.read([message, answer])] == ["Never C.", "It is unclear who D is."]
    reader.read([message, answer])
    assert reads == {message.id: 2, "a": 3}


async def test_preview_and_compaction_read_a_message_once_and_not_on_the_loop(bench: Make, reads: Reads) -> None:
    session = bench(ReadingModel(), auto=False)
    session.fill(30, 300)
    await session.prepare()
    assert "Replaces" in (await session.service.preview()).say
    result = await session.service.compact("manual", session.events.append)
    assert result.done
    assert reads and max(reads.values()) == 1
    assert threading.main_thread() not in reads.threads


async def test_a_compaction_can_be_cancelled_while_it_is_planned(bench: Make, reads: Reads) -> None:
    session = bench(ReadingModel(), auto=False)
    session.fill(30, 300)
    await session.prepare()
    view = session.conversation.view()
    reads.gate.clear()
    work = asyncio.create_task(session.service.compact("manual", session.events.append))
    await asyncio.to_thread(reads.begun.wait)
    assert session.service.cancel()
    result = await work
    reads.gate.set()
    assert result.outcome == "cancelled" and session.conversation.view() == view
    (ended,) = session.of(CompactionEnded)
    assert isinstance(ended, CompactionEnded) and ended.outcome == "cancelled" and not session.model.requests
    assert (await session.service.compact("manual", session.events.append)).done


@pytest.mark.slow
@every("filler", ["lorem ipsum ", "7.", "a/", "解析器", "-", "\u00e9 "])
def test_a_rule_is_found_however_long_the_line_is_that_it_stands_in(filler: str) -> None:
    much = filler * (2 * STRETCH // len(filler))
    for text in (f"{much}. {RULE}", f"{RULE} {much}", f"{much} never {much}", f"{much}不要{much}"):
        rules = [fact.text for fact in read_facts([user_message(text)]) if fact.kind == "rule"]
        assert any(part in rule for rule in rules for part in ("Never push", " never ", "不要"))


@pytest.mark.slow
@every("filler", ["casino ", "nothing ", "7.", "x" * 11])
def test_what_is_searched_in_stretches_is_not_cut_into_rules(filler: str) -> None:
    for shift in range(len(filler)):
        assert not is_rule("y" * shift + filler * (3 * STRETCH // len(filler)))


def test_a_line_that_nobody_wrote_hides_nothing_around_it() -> None:
    data = "It is unclear " * LONG_LINE
    found = read_facts([Message("a", "assistant", [TextPart(f"B is unclear.\n{data}\nC is unclear.")])])
    assert [fact.text for fact in found] == ["B is unclear.", "C is unclear."]
