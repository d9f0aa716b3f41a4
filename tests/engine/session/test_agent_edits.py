"""What the model lets go of, folds and keeps of its own context: only what is its own, said with its price, and taken
back byte for byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

from agent_tui.config import AgentConfig, ContextConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.agent_edits import AgentEdits
from agent_tui.engine.compaction import drop_marks
from agent_tui.engine.compaction.own_results import kept_notes
from agent_tui.engine.edit_plan import EditPlan, plan_edit
from agent_tui.errors import AgentError, StoreError, ToolError
from agent_tui.models.codec import dumps
from agent_tui.models.events import CompactionEnded, ContextEdited, Event, Notice, PermissionAsked
from agent_tui.models.messages import CONTEXT_TOOL, Message, SummaryPart, TextPart, pinned_text, pinned_words, recall_id
from agent_tui.tools.base import ContextAction
from tests.engine.acting import Act, acting, call, says, tend
from tests.engine.dialect_bodies import check_bodies
from tests.support.agents import parts_for, running, say
from tests.support.cli import REPOSITORY
from tests.support.forms import examples, one_of
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio

BLOCK = 128
"""Tokens that the demo server caches at a time."""
READ, READ2, READ3, READ4 = (call("read", path="notes.txt", limit=150 - number) for number in range(4))


def world(  # type: ignore[no-untyped-def]
    folder: Path,
    resume: str | None = None,
    mode: str = "auto",
    steps: int = 100,
    can_ask: bool = False,
    **context: object,
):
    (folder / "p").mkdir(exist_ok=True)
    (folder / "p" / "notes.txt").write_text("a note about 4711\n" * 150)
    settings = Settings(permissions=PermissionsConfig(mode=mode), context=ContextConfig(**context))  # type: ignore[arg-type]
    settings = replace(settings, agent=AgentConfig(step_limit=steps))
    return running(parts_for(folder / "home", folder / "p", resume=resume, settings=settings, can_ask=can_ask))


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


@pytest.mark.slow
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


@pytest.mark.slow
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
        assert "1 result" in hands(agent)._drop([names[0]]).outcome.text
        return "Done."

    acting(monkeypatch, [READ, READ2, look])
    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        assert len(why) == 1 and "is new: answer it first" in why[0]
        last = recall_id(results(agent)[-1].id)
        assert "1 result" in (await hands(agent).tend("drop", [last], "", "")).text, "it is answered now"


@pytest.mark.slow
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
        seen.events.clear()
        assert (await agent.edits.undo()).startswith("The agent's compaction undone: ")
        assert all(event.quiet for event in seen.of(CompactionEnded)) and not seen.of(Notice), "that line says it"
        assert body(agent) != compacted and len(results(agent)) == 5
        agent._state.binding.compaction.auto.paused = True
        with pytest.raises(ToolError, match="paused"):
            await hands(agent).tend("compact", [], "", "")


async def test_what_waits_is_made_later_or_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn ends before the next request: by its number of steps, as by the user's word."""
    acts = [READ, READ2, READ3, call("context", action="compact", focus="the numbers")]
    acting(monkeypatch, acts)
    async with world(tmp_path, steps=4) as (agent, seen):
        await say(agent, "look")
        assert "compacted before the next request" in said(agent) and not seen.of(CompactionEnded)
        session, before = agent.conversation.info.id, body(agent)
    acting(monkeypatch, [tend("fold", 0, 1, text="Read.")])
    async with world(tmp_path, resume=session, steps=1) as (agent, seen):
        assert body(agent) == before and agent.edits.undoable
        await say(agent, "and now?")
        (ended,) = seen.of(CompactionEnded)
        assert ended.text.startswith("The agent compacted"), "it was asked for before the program ended"
        assert "become the text" in said(agent)
        before = body(agent)
        assert await agent.edits.undo() == "The agent's fold will not be made."
        assert body(agent) == before and not agent._state.binding.compaction.asked.waiting()


@pytest.mark.slow
async def test_what_waits_goes_with_the_branch_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [READ, READ2, call("context", action="compact")])
    async with world(tmp_path, steps=3) as (agent, _):
        await say(agent, "look")
        asked = agent._state.binding.compaction.asked
        assert asked.waiting()
        agent.conversation.go_to(agent.conversation.path[0].id)
        assert not asked.waiting() and not agent.edits.undoable
        fork = agent.conversation.store.fork(agent.conversation.info.id, agent.conversation.info.head_id)
        assert not fork.state.agent_asked


async def test_only_what_was_confirmed_is_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [READ, READ2, READ3, tend("fold", 0, 1, text="Read."), says("So.")])
    async with world(tmp_path, steps=4) as (agent, seen):
        await say(agent, "look")
        await agent.edits.drop([recall_id(results(agent)[0].id)])
        before = len(agent.conversation.every_record)
        await say(agent, "and now?")
        assert len(agent.conversation.every_record) == before
        warned = [event.text for event in seen.of(Notice) if event.code == "agent_edit"]
        assert len(warned) == 1 and warned[0].startswith("The fold was not made: ")
        assert not [event for event in seen.of(CompactionEnded) if not event.quiet], "one line says it"
        assert any(warned[0] in str(part) for m in agent.conversation.path for part in m.parts), "the model is told"


async def test_the_question_has_the_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = call("context", action="drop", names=["000001"])
    acting(
        monkeypatch,
        [READ, READ2, READ3, tend("fold", 0, 1, text="Read."), call("context", action="compact"), refused],
    )
    async with world(tmp_path, mode="ask", can_ask=True, agent_edits="ask") as (agent, seen):

        def answer(event: Event) -> None:
            if isinstance(event, PermissionAsked):
                agent.permissions.answer(event.request_id, True)

        agent.subscribe(answer)
        await say(agent, "look")
        asked = [event for event in seen.of(PermissionAsked) if event.tool == CONTEXT_TOOL]
        told = {event.call_id: event.display["text"] for event in asked}
        answers = {part.call_id: part.text for m in agent.conversation.path if (part := m.tool_result) is not None}
        assert [event.summary.split()[1] for event in asked] == ["fold", "compact"], "what cannot be is not asked"
        for each, text in told.items():
            assert answers[each].partition("\n")[0] in text, "the same words"
        assert "no longer cached" in "".join(told.values())


async def test_what_frees_nothing_is_not_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [call("read", path="notes.txt", limit=1), READ])
    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        with pytest.raises(ToolError, match="is as short as what would take its place"):
            await hands(agent).tend("drop", [recall_id(results(agent)[0].id)], "", "")


async def test_of_two_edits_the_second_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [READ, READ2, READ3])
    async with world(tmp_path) as (agent, seen):
        await say(agent, "look")
        first, second = (recall_id(message.id) for message in results(agent)[:2])
        await agent.edits.drop([first], later=True)
        await hands(agent).tend("drop", [second], "", "")
        store, commits = agent.conversation.store.compactions, iter((False, True))
        usual = store.commit

        def commit(*given: Any) -> None:
            if next(commits):
                raise StoreError("the disk is full")
            usual(*given)

        with monkeypatch.context() as patch:
            patch.setattr(store, "commit", commit)
            with pytest.raises(StoreError):
                agent.edits._marks().carry_out(agent.events.publish)
        marks = agent.conversation.info.state
        assert [recall_id(each) for each in marks.drops_waiting] == [second], "the first is done, and done once"
        assert agent.edits._marks().carry_out(agent.events.publish)
        assert [event.record.by for event in seen.of(ContextEdited)] == ["", "agent"]


async def test_a_note_that_is_taken_back_goes_out_of_summaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = [call("context", action="keep", text=f"Note {number}.") for number in (1, 2)]
    acting(monkeypatch, [*keep, READ, READ2, READ3, says("So."), *[says("Well. " * 40)] * 4])
    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        await say(agent, "and now?")
        first = body(agent)
        await agent.compaction.now()
        both = body(agent)
        assert "Note 1." in both and "Note 2." in both

        def without(*words: str) -> str:
            view = agent.conversation.view()
            kept = [m for m in kept_notes(agent.conversation) if pinned_words(m) not in words]
            parts = [
                part if not (isinstance(part, SummaryPart) and part.pinned) else replace(part, text=pinned_text(kept))
                for part in view[0].message.parts
            ]
            return dumps([replace(view[0].message, parts=[p for p in parts if p.text]), *(i.message for i in view[1:])])

        for words in ("Note 2.", "Note 1."):
            expected = without(words)
            assert (await agent.edits.undo()).startswith("The agent's note is no longer kept: ")
            await agent.context.ready()
            assert _texts(body(agent)) == _texts(expected), "as if it had never been kept"
            check_bodies(agent.conversation.view())
        await say(agent, "and now?")
        session, last = agent.conversation.info.id, body(agent)
    async with world(tmp_path, resume=session) as (agent, _):
        assert _texts(body(agent)) == _texts(last) and "<kept_note>" not in last
        await agent.compaction.undo()
        assert body(agent).startswith(first[:-1]) and not agent.edits.undoable


def _texts(body: str) -> list[list[str]]:
    return [[part.get("text", "") for part in message["parts"]] for message in json.loads(body)]


async def test_the_cached_share_is_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that waits, is kept or told makes anything uncached; what goes makes uncached what it said, once."""
    plans: list[tuple[int, EditPlan]] = []

    def now_it_pays(names: list[str]) -> tuple[str, dict[str, object]]:
        runtime, marks = agent._state.runtime, agent.edits._marks()
        plans.append((len(agent.conversation.steps), plan_edit(runtime, runtime.usage(), marks._records())[0]))
        monkeypatch.setattr(drop_marks.DropMarks, "pays", lambda self, plan: True)
        return "context", {"action": "status"}

    small = call("read", path="notes.txt", limit=12)
    keep = call("context", action="keep", text="4711.")
    acting(monkeypatch, [small, READ, READ2, keep, tend("drop", 0), now_it_pays, small, says("So.")])
    async with world(tmp_path) as (agent, seen):
        await say(agent, "look")
        usages = [step.usage for step in agent.conversation.steps if step.usage is not None]
        ((place, plan),) = plans
        assert len(seen.of(ContextEdited)) == 1 and plan.behind
        for number, (before, after) in enumerate(pairwise(usages), 1):
            lost = before.input - (after.cache_read or 0)
            if number == place:
                assert abs(lost - plan.behind - plan.freed) <= 2 * BLOCK, "what it said"
            else:
                assert 0 <= lost <= BLOCK, "all that was sent before is read from the cache"


@pytest.mark.slow
async def test_nothing_changes_behind_thoughts_that_are_bound_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drop_marks, "prefix_bound", lambda target: True)
    acting(monkeypatch, [READ, READ2, tend("drop", 0), tend("fold", 1, text="Read."), says("Read."), says("And now.")])
    async with world(tmp_path) as (agent, seen):
        await say(agent, "look")
        assert "They go when that is cheap" in said(agent, 2) and "when the next turn begins" in said(agent, 3)
        assert not seen.of(ContextEdited) and not seen.of(CompactionEnded), "a tool loop is open"
        monkeypatch.setattr(drop_marks, "cold_in_turn", lambda runtime: True)
        await say(agent, "and now?")
        assert [event.record.by for event in seen.of(ContextEdited)] == ["agent"]
        assert [event.text.startswith("The agent folded 2") for event in seen.of(CompactionEnded)] == [True]


@pytest.mark.slow
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


class Acts:
    """What the user and the agent do to a conversation, at random, with what was sent before each of it."""

    def __init__(self, agent: Agent, rng: random.Random, acts: list[Act]) -> None:
        self.agent, self._rng, self._model = agent, rng, acts
        self.done = 0
        self._known: dict[float, str | None] = dict.fromkeys(self._made())

    def _made(self) -> dict[float, bool]:
        """The times of all that can be taken back, with whether that is a compaction of the user's."""
        found = {each.at[0]: False for each in self.agent.edits._undoable()}
        mine = (r for r in self.agent.conversation.records if r.active and r.compacts and r.reason == "manual")
        return dict(sorted((found | {r.created: True for r in mine if not r.by}).items()))

    async def act(self) -> None:
        agent, rng = self.agent, self._rng
        await agent.context.ready()
        before, asked = body(agent), set(self._made())
        name, other = (recall_id(rng.choice(agent.conversation.path).id) for _ in range(2))
        own, compaction = hands(agent), agent._state.binding.compaction
        with contextlib.suppress(AgentError):
            match rng.choice(("drop", "drop", "user drops", "user later", "restore", "fold", "compact", "keep", "now")):
                case "drop":
                    await own.tend("drop", [name, other], "", "")
                case "user drops":
                    await agent.edits.drop([name])
                case "user later":
                    await agent.edits.drop([name], later=True)
                case "restore":
                    await agent.edits.restore([name])
                case "fold":
                    await own.tend("fold", [name, other], "Read.", "")
                case "compact":
                    await own.tend("compact", [], "", "")
                case "keep":
                    self._model.append(call("context", action="keep", text=f"Note {rng.random()}."))
                    await say(agent, "go on")
                case "now":
                    await agent.compaction.now()
        if rng.random() < 0.6:
            await compaction.before_step()  # else what was asked for waits
        check_bodies(agent.conversation.view())
        # Of what came of one act only the first was made of what was sent before.
        new = [at for at in self._made() if at not in asked]
        appended = not body(agent).startswith(before[:-1]) if not new else False
        assert not appended, "what is refused, and what waits, changes nothing"
        self._known.update({at: before if at == new[0] else None for at in new})
        self.done += bool(new)

    async def undo(self) -> bool:
        """Takes back what was done last; what is sent is as before. False where there is nothing."""
        if not (made := self._made()):
            return False
        newest, mine = list(made.items())[-1]
        await (self.agent.compaction.undo() if mine else self.agent.edits.undo())
        check_bodies(self.agent.conversation.view())
        assert newest not in self._made()
        before = self._known.pop(newest, None)
        assert before is None or body(self.agent).startswith(before[:-1])
        return True


async def sequence(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch, most: int = 9) -> int:
    """A session of random acts, left and opened again, and all of it taken back; how much was done."""
    rng, acts = random.Random(seed), [READ, READ2, says("Read."), READ3, READ4]
    acting(monkeypatch, acts)
    async with world(folder) as (agent, _):
        await say(agent, "look")
        await say(agent, "and?")
        await agent.context.ready()
        first, total = body(agent), agent.context.usage().total
        random_acts = Acts(agent, rng, acts)
        for _ in range(most):
            await random_acts.act()
            if rng.random() < 0.4:
                await random_acts.undo()
        session, last = agent.conversation.info.id, body(agent)
        asked = agent._state.binding.compaction.asked.waiting()
    async with world(folder, resume=session) as (agent, _):
        assert body(agent) == last and agent._state.binding.compaction.asked.waiting() == asked
        rest = Acts(agent, rng, acts)
        while await rest.undo():
            pass
        await agent.context.ready()
        assert body(agent).startswith(first[:-1]) and not agent.edits.undoable
        assert body(agent) != first or agent.context.usage().total == total
    return random_acts.done


@pytest.mark.forms(1)
@pytest.mark.parametrize("seed", one_of(range(6), 3))
async def test_undo_is_exact_after_any_sequence(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await sequence(seed, tmp_path, monkeypatch)


@pytest.mark.slow
async def test_undo_is_exact_after_any_of_many_sequences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, many = 0, examples(25, 500)
    for seed in range(many):
        with monkeypatch.context() as patch, tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            done += await sequence(seed, Path(folder), patch)
    assert done > 2 * many


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
        if sys.argv[3] == "asked":
            await agent.edits.undo()
            await hands(agent).tend("compact", [], "", "")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.parametrize("moment", one_of(["marked", "done", "asked"]))
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
