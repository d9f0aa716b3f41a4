"""Pinned words: they go through every compaction as they were said, once, and cost nothing before that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.commands import registry
from agent_tui.commands.context import toggle_pin
from agent_tui.commands.info import Info
from agent_tui.commands.registry import Text
from agent_tui.context.compaction.notices import preview_of
from agent_tui.context.tokens import family_of
from agent_tui.engine.agent import Agent
from agent_tui.engine.models import calibration_key
from agent_tui.errors import AgentError
from agent_tui.models.messages import AttachmentPart, Message, SummaryPart, TextPart, recall_id
from agent_tui.models.usage import Prices
from tests.support.agents import parts_for, running, say
from tests.support.compaction_world import World, assert_valid, model_info, sent_text, words

pytestmark = pytest.mark.quick

WISH = "Call it quokka-service, whatever anybody says; its port is 5433."


def sent_words(agent: Agent) -> str:
    parts = [part for sent in agent.conversation.view() for part in sent.message.parts]
    return "\n".join(part.text for part in parts if isinstance(part, SummaryPart | TextPart))


def carried(agent: Agent, text: str = WISH) -> int:
    """How often a text stands among the pinned words; it must not stand among the user's other words beside."""
    assert f"<user_message>\n{text}" not in sent_words(agent)
    return sent_words(agent).count(f">\n{text}\n</pinned")


def pinned_row(agent: Agent) -> int:
    usage = agent.context.usage()
    assert sum(row.tokens for row in usage.rows) == usage.total
    (messages,) = [row for row in usage.rows if row.id == "messages"]
    assert sum(row.tokens for row in messages.children) == messages.tokens
    return next((row.tokens for row in messages.children if row.id == "pinned"), 0)


async def command(agent: Agent, line: str) -> str:
    result = await registry.run(agent, line)
    assert isinstance(result, Text | Info)
    return result.text


async def talk(agent: Agent, turns: int = 3) -> None:
    for number in range(turns):
        await say(agent, f"{number}: tell me a lot")


async def compacted(agent: Agent) -> None:
    before = len(agent.conversation.every_record)
    await agent.compaction.now("")
    assert len(agent.conversation.every_record) > before


@pytest.mark.slow
async def test_pinned_words_go_through_five_compactions_once_and_rows_add_up(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        await say(agent, WISH)
        first = agent.conversation.path[0]
        view, fixed = [s.key for s in agent.conversation.view()], agent.runtime.request_prefix.fingerprint
        said = await command(agent, "/pin")
        assert "quokka-service" in said and "word for word" in said
        assert [s.key for s in agent.conversation.view()] == view, "pinning changes nothing that is sent"
        assert agent.runtime.request_prefix.fingerprint == fixed and pinned_row(agent) == 0
        for _ in range(5):
            await talk(agent)
            await compacted(agent)
            assert carried(agent) == 1
            assert first.id not in {s.message.id for s in agent.conversation.view()}
            assert pinned_row(agent) > 10
        await say(agent, "and now?")
        history = agent.context.history()
        moments = [history.moment(number) for number in range(1, history.count + 1)]
        assert [(m.problem, m.differs) for m in moments if m.problem or m.differs] == []
        assert "kept in the summary" in await command(agent, "/pins")
        assert "Unpinned" in await command(agent, f"/pin {recall_id(first.id)}")
        before = [s.key for s in agent.conversation.view()]
        assert carried(agent) == 1, "unpinning changes nothing that is sent either"
        await agent.compaction.undo()
        assert [s.key for s in agent.conversation.view()] != before
        await talk(agent)
        await compacted(agent)
        assert pinned_row(agent) == 0, "the next compaction may take it"


async def test_a_message_that_was_compacted_before_is_carried_from_the_next_compaction_on(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        await say(agent, WISH)
        answer = agent.conversation.path[-1]
        await talk(agent)
        await compacted(agent)
        view = [s.key for s in agent.conversation.view()]
        await command(agent, f"/pin {recall_id(answer.id)}")
        assert [s.key for s in agent.conversation.view()] == view
        assert "not sent until the next compaction" in await command(agent, "/pins")
        await talk(agent)
        await compacted(agent)
        assert carried(agent, answer.text.strip()) == 1 and pinned_row(agent) > 0


async def test_a_fork_keeps_a_pin_and_another_branch_has_none(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        await say(agent, "hello")
        await say(agent, WISH)
        wish = agent.conversation.path[-2]
        await command(agent, "/pin")
        await agent.sessions.fork()
        assert [pin.id for pin in agent.pins.all()] == [wish.id]
        agent.conversation.go_to(agent.conversation.path[1].id)
        assert agent.pins.all() == [] and "Nothing pinned" in await command(agent, "/pins")
        await talk(agent)
        await compacted(agent)
        assert pinned_row(agent) == 0 and WISH not in sent_words(agent)


async def test_a_pin_is_there_after_a_restart(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        await say(agent, WISH)
        await command(agent, "/pin")
        session = agent.conversation.info.id
    async with running(parts_for(tmp_path / "home", tmp_path / "p", resume=session)) as (agent, _):
        assert [pin.label[:20] for pin in agent.pins.all()] == [f"“{WISH[:19]}"]
        await talk(agent)
        await compacted(agent)
        assert pinned_row(agent) > 0


async def test_what_cannot_be_pinned_is_said_in_a_line(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        assert "No message to pin" in await command(agent, "/pin")
        await say(agent, WISH)
        await command(agent, "/pin")
        assert "Unpinned" in await command(agent, "/pin") and agent.pins.all() == []
        await command(agent, "/pin")
        with pytest.raises(AgentError, match="is already pinned"):
            agent.pins.pin_message(agent.conversation.path[0])
        for line in ("/pin msg_of_another_session", "/pin 000000"):
            assert "No such message" in await command(agent, line)
        with pytest.raises(AgentError, match=r"nothing\.txt: it cannot be read"):
            await command(agent, "/pin nothing.txt")
        (tool,) = [Message("t", "tool", [TextPart("x")])]
        with pytest.raises(AgentError, match="not tool results"):
            agent.pins.pin_message(tool)
        large = Message("m", "user", [TextPart(words(50_000))])
        with pytest.raises(AgentError, match="more than half of the limit"):
            agent.pins.pin_message(large)
        agent.conversation.read_only = True
        with pytest.raises(AgentError, match="open"):
            await command(agent, "/pin")
        agent.conversation.read_only = False
        assert len(agent.pins.all()) == 1


async def test_what_is_attached_is_not_pinned_with_the_words(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        await say(agent, WISH, (AttachmentPart("a.py", "text/plain", text="secret sauce " * 50, path="/p/a.py"),))
        assert "Its attachments are not pinned (a.py)" in await command(agent, "/pin")
        (pin,) = agent.pins.all()
        assert pin.tokens < 40


async def test_a_large_file_says_its_price_before_it_is_pinned(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        (tmp_path / "p" / "big.txt").write_text("a line of it\n" * 8_000)
        (tmp_path / "p" / "small.txt").write_text("a line of it\n")
        result = await registry.run(agent, "/pin big.txt")
        assert isinstance(result, Text) and result.then == "/pin big.txt --yes"
        assert "big.txt adds ~26" in result.text and "--yes to pin it" in result.text
        assert agent.context.pinned == []
        assert "Pinned big.txt" in await command(agent, result.then)
        assert "Pinned small.txt" in await command(agent, "/pin small.txt")
        assert "Unpinned small.txt" in await command(agent, "/pin ./small.txt")
        assert "  big.txt" in (said := await command(agent, "/pins")) and "~26" in said


async def test_the_price_that_is_asked_is_that_of_the_row(tmp_path: Path) -> None:
    """Also where the model's reports have shown that it counts more than its family's facts say."""
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        known = family_of(agent.runtime.info.target).beginning
        more = replace(known, factors=tuple(1.5 * factor for factor in known.factors), reports=1)
        agent.runtime.conversation.store.measured.learn(calibration_key(agent.runtime.info), "", lambda _: more)
        agent.runtime.describe_as(agent.runtime.info)
        (tmp_path / "p" / "big.txt").write_text("a line of it\n" * 8_000)
        asked = await command(agent, "/pin big.txt")
        await command(agent, "/pin big.txt --yes")
        await agent.context.ready()
        (pin,) = agent.pins.all()
        said = float(asked.partition("~")[2].partition("k")[0]) * 1_000
        assert abs(said - pin.tokens) < 0.01 * pin.tokens


def pinned_world(*ids: str, window: int = 16_384) -> World:
    world = World(model_info(window))
    world.pinned = ids
    return world


async def test_pinned_words_are_carried_in_order_and_whatever_is_left_out() -> None:
    world = pinned_world("m1", "m4")
    world.user("first: " + WISH)
    world.says("fine")
    world.user(words(3_000, "filler"))
    world.user("second: use port 5434")
    for number in range(6):
        world.tool_step(f"f{number}.py", 1_500)
    world.says("done")
    world.user("go on")
    plan = world.plan("manual")
    assert "Keeps what you pinned word for word" in preview_of(plan, world.usage()).say
    result = await world.compact("manual")
    assert result.done and result.summary is not None
    *_, carried = result.summary.parts
    assert isinstance(carried, SummaryPart) and carried.pinned
    text = sent_text(world.view())
    assert text.count(WISH) == text.count("use port 5434") == 1
    assert text.index(WISH) < text.index("use port 5434")
    assert_valid(world.view())


async def test_where_only_leaving_out_helps_the_pinned_words_stay() -> None:
    world = pinned_world("m1", window=6_000)
    world.user(WISH)
    world.says("fine")
    world.user(words(4_000, "huge"))
    world.says("well")
    world.user("and this: " + words(3_500, "more"))
    plan = world.plan_without_model("overflow")
    assert plan.summary is not None and plan.summary.left_out
    assert WISH in plan.summary.pinned
    message = plan.summary.message({}, "rec", 0.0)
    assert sum(WISH in part.text for part in message.parts if isinstance(part, SummaryPart)) == 1


def test_where_pinned_words_leave_no_room_the_user_is_told_so() -> None:
    world = pinned_world("m1", window=4_000)
    world.user(words(3_000, "pinned"))
    world.says("fine")
    world.user(words(1_500, "more"))
    plan = world.plan("overflow")
    assert plan.stuck and "what you pinned ~3," in plan.why and "/pins" in plan.why


async def test_a_pin_says_what_it_adds_where_there_is_a_price(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        await say(agent, "word " * 1_000)
        agent.runtime.info = replace(agent.runtime.info, prices=Prices(10e-6, 20e-6, 1e-6))
        said = await command(agent, "/pin")
        assert "($0.001" in said and "a step cached, $0.01" in said
        (tmp_path / "p" / "big.txt").write_text("a line of it\n" * 8_000)
        price = await command(agent, "/pin big.txt")
        assert "The next one costs $0." in price and "instead of $0." in price and "Later ones cost" in price


async def test_a_message_of_many_words_says_its_price_first(tmp_path: Path) -> None:
    script = 'window = 200000\n[[step]]\ntext = "Fine."\n'
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, _):
        await say(agent, "word " * 12_000)
        result = await registry.run(agent, "/pin")
        assert isinstance(result, Text) and "tokens to every compaction" in result.text
        message = agent.conversation.path[0]
        assert agent.pins.all() == [] and result.then == f"/pin {recall_id(message.id)} --yes"
        assert "--yes to pin it" in toggle_pin(agent, message)
        assert "Pinned “word word" in await command(agent, result.then)
        assert "Unpinned" in toggle_pin(agent, message)


async def test_the_next_summary_is_not_made_from_the_pinned_words_of_the_last() -> None:
    world = pinned_world("m1")
    world.user(WISH)
    for _ in range(2):
        world.says(words(3_000, "filler"))
        world.user("go on")
        world.says("done")
        world.user("and on")
        assert (await world.compact("manual")).done
        assert sent_text(world.view()).count(WISH) == 1
    first, second = world.model.requests
    assert WISH in sent_text(first.messages) and WISH not in sent_text(second.messages)
