"""What the model lets go of, folds and keeps of its own context: only what is its own, said with its price, and taken
back byte for byte."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from agent_tui.config import ContextConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.agent_edits import AgentEdits
from agent_tui.engine.compaction import drop_marks
from agent_tui.errors import AgentError, ToolError
from agent_tui.models.codec import dumps
from agent_tui.models.events import CompactionEnded, ContextEdited
from agent_tui.models.messages import CONTEXT_TOOL, Message, TextPart, recall_id
from agent_tui.tools.base import ContextAction
from tests.support.acting import acting, call, says, tend
from tests.support.agents import parts_for, running, say
from tests.support.cli import REPOSITORY
from tests.support.dialect_bodies import check_bodies
from tests.support.forms import one_of
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio

READ, READ2, READ3, READ4 = (call("read", path="notes.txt", limit=150 - number) for number in range(4))


def world(folder: Path, resume: str | None = None, mode: str = "auto", **context: object):  # type: ignore[no-untyped-def]
    (folder / "p").mkdir(exist_ok=True)
    (folder / "p" / "notes.txt").write_text("a note about 4711\n" * 150)
    settings = Settings(permissions=PermissionsConfig(mode=mode), context=ContextConfig(**context))  # type: ignore[arg-type]
    return running(parts_for(folder / "home", folder / "p", resume=resume, settings=settings, can_ask=False))


def body(agent: Agent) -> str:
    return dumps([item.message for item in agent.conversation.view()])


def results(agent: Agent) -> list[Message]:
    return [item.message for item in agent.conversation.view() if item.message.tool_result is not None]


def said(agent: Agent, place: int = -1) -> str:
    part = results(agent)[place].tool_result
    assert part is not None
    return part.text


def hands(agent: Agent) -> AgentEdits:
    own = agent.toolbox.context().own
    assert isinstance(own, AgentEdits)
    return own


async def test_results_are_let_go_of_in_the_middle_of_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = acting(monkeypatch, [READ, READ, tend("drop", 0), READ])
    async with world(tmp_path, compact_at=4_000) as (agent, seen):
        await say(agent, "look")
        # With little room left it goes before the next step.
        (edited,) = seen.of(ContextEdited)
        assert (edited.record.kind, edited.record.by, edited.record.reason) == ("prune", "agent", "edit")
        assert "Old tool result cleared" in said(agent, 0) and recall_id(results(agent)[0].id) in said(agent, 0)
        assert "a note" in said(agent, 1)
        assert "1 result" in said(agent, 2) and "tokens less per request" in said(agent, 2)
        for request in sent:
            check_bodies(request.messages)
        found = agent.conversation.past()
        assert results(agent)[0].id in found.gone
        gone = body(agent)
        assert "restored" in await agent.edits.undo()
        assert "a note" in said(agent, 0) and body(agent) != gone
        with pytest.raises(AgentError, match="Nothing to undo"):
            await agent.edits.undo()


async def test_what_is_let_go_of_waits_until_it_is_cheap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [call("read", path="notes.txt", limit=12), READ, READ, tend("drop", 0), READ])
    async with world(tmp_path) as (agent, seen):
        await say(agent, "look")
        before = body(agent)
        assert not seen.of(ContextEdited) and "They go when that is cheap" in said(agent, 3)
        assert "no longer cached" in said(agent, 3)
        assert [each.waiting for each in agent.edits.dropped()] == [True]
        status = (await hands(agent).tend("status", [], "", "")).text
        assert f"Let go of, and still sent: {recall_id(results(agent)[0].id)}" in status
        assert "no longer be dropped" in await agent.edits.undo() and not agent.edits.dropped()
        assert body(agent) == before


async def test_a_compaction_takes_what_is_let_go_of_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [READ, READ2, READ3])
    async with world(tmp_path) as (agent, seen):
        await say(agent, "look")
        first = results(agent)[0]
        await hands(agent).tend("drop", [recall_id(first.id)], "", "")
        await agent.compaction.now()
        assert [event.record.message_ids for event in seen.of(ContextEdited)] == [[first.id]]


async def test_it_reaches_only_what_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [READ, READ, call("context", action="keep", text="Order 4711 first."), READ])
    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        await say(agent, "and now?")
        own, path = hands(agent), agent.conversation.path
        users = [m for m in path if m.role == "user"]
        note = next(m for m in path if m.id in agent.conversation.info.state.pinned_messages)
        answer = next(m for m in path if m.tool_calls)
        for message, why in ((users[0], "user's message"), (answer, "fold it"), (note, "kept note")):
            with pytest.raises(ToolError, match=why):
                await own.tend("drop", [recall_id(message.id)], "", "")
        with pytest.raises(ToolError, match="No such message"):
            await own.tend("drop", ["nothing"], "", "")
        with pytest.raises(ToolError, match="lies between these names"):
            await own.tend("fold", [recall_id(answer.id), recall_id(path[-1].id)], "Read it.", "")
        with pytest.raises(ToolError, match="as long as"):
            await own.tend("fold", [recall_id(answer.id)], "Read it. " * 3_000, "")
        with pytest.raises(ToolError, match="notes would take"):
            await own.tend("keep", [], "word " * 2_000, "")
        assert "1 result" in (await own.tend("drop", [recall_id(path[2].id), recall_id(users[1].id)], "", "")).text


async def test_what_is_not_answered_yet_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why: list[str] = []

    def look(names: list[str]) -> str:
        # The request is made: its newest result has no answer yet.
        with pytest.raises(ToolError) as refused:
            hands(agent)._drop([names[-1]])
        why.append(str(refused.value))
        assert "1 result" in hands(agent)._drop([names[0]]).text
        return "Done."

    acting(monkeypatch, [READ, READ2, look])
    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        assert len(why) == 1 and "is new: answer it first" in why[0]
        last = recall_id(results(agent)[-1].id)
        assert "1 result" in (await hands(agent).tend("drop", [last], "", "")).text, "it is answered now"


async def test_a_note_goes_through_every_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "Order 4711 is booked at 17.50, not at 18.00."
    acting(monkeypatch, [call("context", action="keep", text=words), READ, READ2, READ3, READ4])
    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        before = body(agent)
        assert [pin.label for pin in agent.pins.all()] == [f"“{words}”"]
        await say(agent, "and now?")
        for _ in range(2):
            await agent.compaction.now()
            await say(agent, "go on, tell me a lot")
        sent = body(agent)
        assert sent.count(words) == 1 and "kept_note" in sent
        assert "the user did not write them" in sent and "The user pinned" not in sent, "they are not the user's words"
        assert [pin.state for pin in agent.pins.all()] == ["carried"]
        await agent.compaction.undo()
        await agent.compaction.undo()
        assert "no longer kept" in await agent.edits.undo() and not agent.pins.all()
        assert body(agent).startswith(before[:-1])


@pytest.mark.slow
async def test_a_fold_takes_the_words_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = acting(monkeypatch, [READ, READ2, READ3, tend("fold", 0, 1, text="notes.txt says 4711, 150 times.")])
    async with world(tmp_path) as (agent, seen):
        await say(agent, "look")
        (ended,) = seen.of(CompactionEnded)
        assert ended.text.startswith("The agent folded 4 messages") and "/context undo" in ended.text
        (record,) = ended.records
        assert (record.by, record.reason, record.model) == ("agent", "edit", None)
        assert not [step for step in agent.conversation.steps if step.kind == "compaction"], "no other call is made"
        assert "4711, 150 times" in body(agent) and len(results(agent)) == 2
        for request in sent:
            check_bodies(request.messages)
        with_it = body(agent)
        await agent.edits.undo()
        assert len(results(agent)) == 4 and body(agent) != with_it


async def test_a_pin_takes_the_agents_mark_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [READ, READ2])
    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        first = results(agent)[0]
        await hands(agent).tend("drop", [recall_id(first.id)], "", "")
        assert agent.conversation.info.state.agent_drops == (first.id,)
        answer = next(m for m in agent.conversation.path if m.tool_calls)
        answer.parts.insert(0, TextPart("I look."))
        agent.pins.pin_message(answer)
        state = agent.conversation.info.state
        assert not state.drops_waiting and not state.agent_drops


async def test_it_compacts_when_the_step_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [READ, READ2, READ3, call("context", action="compact", focus="the numbers"), READ])
    async with world(tmp_path) as (agent, seen):
        await say(agent, "look")
        (ended,) = seen.of(CompactionEnded)
        assert ended.outcome == "done" and ended.text.startswith("The agent compacted")
        assert {(record.by, record.focus) for record in ended.records if record.kind == "summary"} == {
            ("agent", "the numbers")
        }
        compacted = body(agent)
        assert (await agent.edits.undo()).startswith("The agent's compaction undone: ")
        assert body(agent) != compacted and len(results(agent)) == 5
        agent._state.binding.compaction.auto.paused = True
        with pytest.raises(ToolError, match="paused"):
            await hands(agent).tend("compact", [], "", "")


async def test_nothing_changes_behind_thoughts_that_are_bound_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drop_marks, "prefix_bound", lambda target: True)
    acting(
        monkeypatch, [READ, READ2, tend("drop", 0), tend("fold", 0, 1, text="Read."), says("Read."), says("And now.")]
    )
    async with world(tmp_path) as (agent, seen):
        await say(agent, "look")
        assert "They go when that is cheap" in said(agent, 2) and "refuses your thoughts" in said(agent, 3)
        assert not seen.of(ContextEdited) and not seen.of(CompactionEnded), "a tool loop is open"
        monkeypatch.setattr(drop_marks, "cold_in_turn", lambda runtime: True)
        await say(agent, "and now?")
        assert [event.record.by for event in seen.of(ContextEdited)] == ["agent"]


async def test_a_subagent_tends_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = call("subagent", description="look", prompt="look at it")
    sent = acting(monkeypatch, [task, READ, READ2, tend("drop", 0), says("It is read.")])
    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        told = [part.text for request in sent for item in request.messages if (part := item.message.tool_result)]
        assert any("Let go of 1 result" in text for text in told)
        assert not agent.conversation.every_record and not agent.conversation.info.state.agent_drops
        assert not agent.edits.undoable


async def test_off_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = acting(monkeypatch, [READ, call("context", action="status")])
    async with world(tmp_path, agent_edits="off") as (agent, _):
        await say(agent, "look")
        assert CONTEXT_TOOL not in {tool.name for tool in sent[-1].tools}
        assert "There is no tool named 'context'" in said(agent)


@pytest.mark.parametrize(
    ("setting", "mode", "asked"),
    [
        ("auto", "ask", {"fold", "compact"}),
        ("auto", "plan", {"fold", "compact"}),
        ("auto", "accept-edits", set()),
        ("auto", "auto", set()),
        ("ask", "auto", {"drop", "fold", "keep", "compact"}),
        ("ask", "bypass", set()),
    ],
)
async def test_the_user_is_asked_by_setting_and_mode(setting: str, mode: str, asked: set[str], tmp_path: Path) -> None:
    async with world(tmp_path, mode=mode, agent_edits=setting) as (agent, _):
        tool, context = agent.toolbox.registry.get(CONTEXT_TOOL), agent.toolbox.context()
        actions: tuple[ContextAction, ...] = get_args(ContextAction)
        given = {"names": ["123456"], "text": "Read it."}
        decisions = {
            action: agent.parts.permissions.decide(CONTEXT_TOOL, tool.intent({"action": action, **given}, context))
            for action in actions
        }
        # Nobody can be asked here: what would be asked is refused.
        assert {action for action, decision in decisions.items() if decision.action == "deny"} == asked


@pytest.mark.parametrize("seed", one_of(range(6), 3))
async def test_undo_is_exact_after_any_sequence(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    acting(monkeypatch, [READ, READ2, READ3, READ4])

    async def state(agent: Agent) -> tuple[str, int]:
        await agent.context.ready()
        return body(agent), agent.context.usage().total

    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        await say(agent, "and?")
        first, done = await state(agent), 0
        for _ in range(25):
            made = len(agent.conversation.every_record), agent.conversation.info.state
            now, marked = await state(agent), [each.waiting for each in agent.edits.dropped()]
            name, other = (recall_id(rng.choice(agent.conversation.path).id) for _ in range(2))
            try:
                match act := rng.choice(("drop", "user drops", "user later", "fold")):
                    case "drop":
                        await hands(agent).tend("drop", [name], "", "")
                    case "user drops":
                        await agent.edits.drop([name])
                    case "user later":
                        await agent.edits.drop([name], later=True)
                    case "fold":
                        await hands(agent).tend("fold", [name, other], "Read.", "")
                        await agent._state.binding.compaction.before_step()
            except AgentError:
                assert (act == "fold" and True in marked) or await state(agent) == now, (
                    "what is refused changes nothing"
                )
                continue
            check_bodies(agent.conversation.view())
            if made == (len(agent.conversation.every_record), agent.conversation.info.state):
                continue  # it was marked before
            done += 1
            if rng.random() < 0.4 and not (act == "fold" and True in marked):
                await agent.edits.undo()
                assert await state(agent) == now
        assert done
        session, last = agent.conversation.info.id, body(agent)
    async with world(tmp_path, resume=session) as (agent, _):
        assert body(agent) == last
        while agent.edits.undoable:
            await agent.edits.undo()
        assert await state(agent) == first


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.engine.session.test_agent_edits import body, hands, recall_id, results, say, world

async def main(folder):
    async with world(folder) as (agent, _):
        await say(agent, "read notes.txt")
        await say(agent, "read notes.txt again")
        await agent.context.ready()
        (folder / "before").write_text(agent.conversation.info.id + " " + body(agent))
        await hands(agent).tend("drop", [recall_id(results(agent)[0].id)], "", "")
        if sys.argv[3] == "done":
            await agent.compaction.now()
            await agent.compaction.undo()
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.parametrize("moment", one_of(["marked", "done"]))
async def test_a_killed_program_loses_no_undo(moment: str, tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(KILLED)
    arguments = [sys.executable, str(script), str(tmp_path), str(REPOSITORY), moment]
    child = await asyncio.to_thread(subprocess.run, arguments, timeout=PATIENCE * 3)
    assert child.returncode == -signal.SIGKILL
    session, _, before = (tmp_path / "before").read_text().partition(" ")
    async with world(tmp_path, resume=session) as (agent, _):
        await agent.context.ready()
        assert agent.edits.undoable
        await agent.edits.undo()
        assert body(agent) == before and not agent.edits.undoable
