"""Plan mode as a conversation: what the model is told, the plan it hands in, what the user makes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import PERMISSION_MODES, PermissionMode, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.notes import MEANINGS
from agent_tui.engine.state import AgentParts
from agent_tui.errors import AgentError
from agent_tui.models.events import (
    Event,
    Notice,
    PermissionAsked,
    PlanPresented,
    QuestionAsked,
    QuestionClosed,
    StepStarted,
)
from agent_tui.models.messages import INTERRUPTED_RESULT, TOLD_MODE, AttachmentPart, SummaryPart, ToolResultPart
from tests.support.agents import parts_for, results, running, say
from tests.support.forms import one_of
from tests.support.scripts import step

PLAN = "# Mend it\n\n1. change `a.txt`\n2. run the tests\n"
WRITE = {"path": "a.txt", "content": "done\n"}


def parts(
    tmp_path: Path, script: str, mode: PermissionMode = "plan", *, can_ask: bool = True, resume: str | None = None
) -> AgentParts:
    settings = Settings(permissions=PermissionsConfig(mode=mode))
    home, project = tmp_path / "home", tmp_path / "p"
    return parts_for(home, project, script=script, settings=settings, can_ask=can_ask, resume=resume)


def on_plan(agent: Agent, answer: Callable[[PlanPresented], None]) -> list[PlanPresented]:
    """Answers every plan; returns the list that plans are added to."""
    presented: list[PlanPresented] = []

    def handle(event: Event) -> None:
        if isinstance(event, PlanPresented):
            presented.append(event)
            answer(event)

    agent.subscribe(handle)
    return presented


def on_question(agent: Agent, chosen: tuple[str, ...] = (), text: str = "") -> list[QuestionAsked]:
    asked: list[QuestionAsked] = []

    def handle(event: Event) -> None:
        if isinstance(event, QuestionAsked):
            asked.append(event)
            agent.questions.answer_question(event.request_id, chosen, text)

    agent.subscribe(handle)
    return asked


def told(agent: Agent) -> list[str]:
    """The modes the model was told of, in order, by user message or tool result."""
    found: list[str] = []
    for message in agent.conversation.path:
        for part in message.parts:
            if isinstance(part, AttachmentPart) and part.name == TOLD_MODE:
                found.append(part.text or "")
            elif isinstance(part, ToolResultPart) and "<agent_note" in part.text:
                found.append(part.text.rpartition("<agent_note")[2].partition("\n")[2])
    return [text.removeprefix("Permission mode: ").partition(".")[0] for text in found]


@pytest.mark.quick
async def test_the_mode_is_told_once_and_each_change_of_it(tmp_path: Path) -> None:
    async with running(parts(tmp_path, "", "ask")) as (agent, _):
        await say(agent, "hello")
        before = agent.runtime.request_prefix.fingerprint
        await say(agent, "again")
        assert told(agent) == ["ask"]
        agent.mode.set("plan")
        agent.mode.set("ask")
        await say(agent, "there and back")
        assert told(agent) == ["ask"]
        agent.mode.set("plan")
        await say(agent, "now plan")
        assert told(agent) == ["ask", "plan"]
        assert agent.runtime.request_prefix.fingerprint == before
        assert agent.conversation.steps[-1].usage is not None and agent.conversation.steps[-1].usage.cache_read
        await agent.branches.rewind(agent.conversation.path[-2].id)
        await say(agent, "instead of that")
        assert told(agent) == ["ask", "plan"]
        session = agent.conversation.info.id
    async with running(parts(tmp_path, "", "plan", resume=session)) as (agent, _):
        await say(agent, "after a restart")
        assert told(agent) == ["ask", "plan"]


@pytest.mark.slow
async def test_what_was_compacted_away_is_told_again(tmp_path: Path) -> None:
    async with running(parts(tmp_path, "", "ask")) as (agent, _):
        for number in range(5):
            await say(agent, f"{number}: tell me a lot")
        await agent.compaction.now()
        assert agent.conversation.own_records
        await say(agent, "next")
        assert told(agent) == ["ask", "ask"]


@pytest.mark.slow
async def test_a_change_during_a_turn_comes_with_the_next_result(tmp_path: Path) -> None:
    script = step(list={"path": "."}) + step(list={"path": "."}) + step("Done.")
    async with running(parts(tmp_path, script, "ask")) as (agent, _):
        steps = 0

        def change(event: Event) -> None:
            nonlocal steps
            if isinstance(event, StepStarted):
                steps += 1
                if steps == 2:
                    agent.mode.set("plan")

        agent.subscribe(change)
        await say(agent, "look")
        first, second = results(agent)
        assert (
            "Permission mode" not in first.text
            and '<agent_note name="permission mode">\nPermission mode: plan.' in second.text
        )
        await say(agent, "thanks")
        assert told(agent) == ["ask", "plan"]


@pytest.mark.quick
def test_every_mode_has_its_meaning() -> None:
    assert set(PERMISSION_MODES) <= set(MEANINGS)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
async def test_an_approved_plan_changes_the_mode_and_is_carried_out(tmp_path: Path, mode: Any) -> None:
    script = step("My plan:", present_plan={"plan": PLAN}) + step(write=WRITE) + step("Done.")
    async with running(parts(tmp_path, script)) as (agent, seen):
        presented = on_plan(agent, lambda event: agent.questions.answer_plan(event.request_id, mode, event.plan))
        permitted: list[PermissionAsked] = []

        def permit(event: Event) -> None:
            if isinstance(event, PermissionAsked):
                permitted.append(event)
                agent.permissions.answer(event.request_id, True)

        agent.subscribe(permit)
        await say(agent, "mend it")
        assert [event.plan for event in presented] == [PLAN]
        assert [closed.request_id for closed in seen.of(QuestionClosed)] == [presented[0].request_id]
        assert agent.mode.now == mode and told(agent) == ["plan", mode]
        plan, write = results(agent)
        assert plan.text.startswith("The user approved the plan. Carry it out.") and not plan.is_error
        assert not write.is_error and (tmp_path / "p" / "a.txt").read_text() == "done\n"
        assert len(permitted) == (mode == "ask")


@pytest.mark.slow
async def test_a_plan_the_user_edited_is_the_one_that_counts(tmp_path: Path) -> None:
    mine = "# Mend it my way\n\n## Done\n- only `b.txt`\n"
    script = step(present_plan={"plan": PLAN}) + step("Done.") + step("More.") * 6
    async with running(parts(tmp_path, script)) as (agent, _):
        on_plan(agent, lambda event: agent.questions.answer_plan(event.request_id, "ask", mine))
        await say(agent, "mend it")
        assert mine in results(agent)[0].text and "Carry out this version" in results(agent)[0].text
        for number in range(5):
            await say(agent, f"{number}: " + "tell me a lot " * 200)
        for again in range(2):
            await agent.compaction.now()
            summary = next(p for s in agent.conversation.view() for p in s.message.parts if isinstance(p, SummaryPart))
            assert (
                "## The plan the user approved last\n> # Mend it my way\n>\n> ## Done\n> - only `b.txt`" in summary.text
            )
            assert (
                "change `a.txt`" not in summary.text.partition("The plan the user approved last")[2].partition("##")[0]
            )
            for number in range(4):
                await say(agent, f"{again}{number}: " + "and more " * 300)


@pytest.mark.slow
async def test_declined_with_words_goes_on_and_without_ends_the_turn(tmp_path: Path) -> None:
    script = step(present_plan={"plan": PLAN}) + step(present_plan={"plan": "Better."}) + step("never")
    async with running(parts(tmp_path, script)) as (agent, seen):
        words = iter(["tests first", ""])
        on_plan(agent, lambda event: agent.questions.answer_plan(event.request_id, None, event.plan, next(words)))
        await say(agent, "mend it")
        first, second = results(agent)
        assert "They said: tests first" in first.text and "present it again" in first.text
        assert "will say what they want" in second.text
        assert agent.mode.now == "plan" and seen.last_end.stop_reason == "end" and len(agent.conversation.steps) == 2


async def test_a_plan_answered_twice_does_nothing_the_second_time(tmp_path: Path) -> None:
    script = step(present_plan={"plan": PLAN}) + step("Done.")
    async with running(parts(tmp_path, script)) as (agent, seen):

        def twice(event: PlanPresented) -> None:
            with pytest.raises(AgentError, match="empty"):
                agent.questions.answer_plan(event.request_id, "ask", "  ")
            with pytest.raises(AgentError, match="ask, accept-edits, auto"):
                agent.questions.answer_plan(event.request_id, "bypass", event.plan)  # type: ignore[arg-type]
            agent.questions.answer_plan(event.request_id, "accept-edits", event.plan)
            agent.questions.answer_plan(event.request_id, "auto", event.plan)

        presented = on_plan(agent, twice)
        await say(agent, "mend it")
        assert agent.mode.now == "accept-edits"
        agent.questions.answer_plan(presented[0].request_id, "auto", PLAN)
        agent.questions.answer_question("ask_gone", ("x",))
        assert agent.mode.now == "accept-edits"
        assert [n.text for n in seen.of(Notice) if n.code == "answered"] == ["Already answered."] * 3


@pytest.mark.slow
async def test_an_interrupted_plan_leaves_the_mode_and_a_valid_conversation(tmp_path: Path) -> None:
    script = step(present_plan={"plan": PLAN}) + step("Fine.")
    async with running(parts(tmp_path, script)) as (agent, seen):

        def interrupt(event: PlanPresented) -> None:
            agent.turns.interrupt()

        on_plan(agent, interrupt)
        await say(agent, "mend it")
        assert seen.last_end.stop_reason == "interrupted" and agent.mode.now == "plan"
        assert results(agent)[0].text.startswith(INTERRUPTED_RESULT)
        assert len(seen.of(QuestionClosed)) == 1
        await say(agent, "go on")
        assert agent.conversation.path[-1].text == "Fine."


async def test_outside_plan_mode_there_is_nothing_to_approve(tmp_path: Path) -> None:
    script = step(present_plan={"plan": PLAN}) + step("Done.")
    async with running(parts(tmp_path, script, "auto")) as (agent, seen):
        await say(agent, "mend it")
        (result,) = results(agent)
        assert result.is_error and "works in plan mode only" in result.text and not seen.of(PlanPresented)


async def test_where_nobody_answers_the_plan_ends_the_turn(tmp_path: Path) -> None:
    script = step(ask={"question": "Which?", "choices": ["a", "b"]}) + step(present_plan={"plan": PLAN}) + step("never")
    async with running(parts(tmp_path, script, can_ask=False)) as (agent, seen):
        await say(agent, "mend it")
        asked, plan = results(agent)
        assert asked.is_error and asked.text.startswith("Nobody can answer here.")
        assert [(e.request_id, e.plan) for e in seen.of(PlanPresented)] == [("", PLAN)]
        assert seen.last_end.stop_reason == "end" and len(agent.conversation.steps) == 2 and not plan.is_error
        first = next(p for p in agent.conversation.path[0].parts if isinstance(p, AttachmentPart))
        assert "Nobody can answer" in (first.text or "") and agent.mode.now == "plan"


@pytest.mark.parametrize(
    ("chosen", "text", "expected"),
    one_of(
        [
            (("red", "blue"), "", "The user chose: red; blue"),
            ((), "something else", "The user wrote: something else"),
            (("red",), "but dark", "The user chose: red\nThe user wrote: but dark"),
            ((), " ", "The user declined to answer."),
        ],
        4,
    ),
)
@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_a_question_is_put_in_every_mode(
    tmp_path: Path, mode: PermissionMode, chosen: tuple[str, ...], text: str, expected: str
) -> None:
    question = {"question": "Which colour?", "choices": ["red", "green", "blue"], "several": True}
    async with running(parts(tmp_path, step(ask=question) + step("Thanks."), mode)) as (agent, seen):
        asked = on_question(agent, chosen, text)
        await say(agent, "paint it")
        assert [(a.question, a.choices, a.several) for a in asked] == [
            ("Which colour?", ("red", "green", "blue"), True)
        ]
        assert results(agent)[0].text.startswith(expected) and not results(agent)[0].is_error
        assert len(seen.of(QuestionClosed)) == 1


@pytest.mark.slow
async def test_what_was_written_before_the_answer_is_not_run(tmp_path: Path) -> None:
    question = {"question": "Which colour?", "choices": ["red", "green"]}
    script = step(ask=question, ask1={**question, "question": "Sure?"}, list={"path": "."}, write=WRITE) + step("Ok.")
    async with running(parts(tmp_path, script, "auto")) as (agent, _):
        asked = on_question(agent, ("red",))
        await say(agent, "paint it")
        assert [a.question for a in asked] == ["Which colour?", "Sure?"]
        assert [r.is_error for r in results(agent)] == [False, False, False, True]
        assert "before the user answered" in results(agent)[3].text and not (tmp_path / "p" / "a.txt").exists()


async def test_an_answer_must_be_among_the_choices(tmp_path: Path) -> None:
    question = {"question": "Which colour?", "choices": ["red", "green"]}
    async with running(parts(tmp_path, step(ask=question) + step("Ok."), "ask")) as (agent, _):
        refused: list[str] = []

        def handle(event: Event) -> None:
            if isinstance(event, QuestionAsked):
                for chosen in (("pink",), ("red", "green")):
                    with pytest.raises(AgentError) as caught:
                        agent.questions.answer_question(event.request_id, chosen)
                    refused.append(str(caught.value))
                agent.questions.answer_question(event.request_id, ("green",))

        agent.subscribe(handle)
        await say(agent, "paint it")
        assert refused == ["Not one of the choices.", "Choose only one."]
        assert results(agent)[0].text == "The user chose: green"


async def test_a_subagent_asks_nobody_and_is_told_what_to_return(tmp_path: Path) -> None:
    question = {"question": "Which?", "choices": ["a", "b"]}
    script = (
        step(subagent={"description": "look", "prompt": "find it"})
        + step(ask=question, present_plan={"plan": PLAN})
        + step("Found at a.txt:1.")
        + step("Thanks.")
    )
    async with running(parts(tmp_path, script)) as (agent, seen):
        await say(agent, "where is it?")
        assert not seen.of(QuestionAsked) and not seen.of(PlanPresented)
        child = next(s for s in agent.store.sessions.all(str(tmp_path / "p"), subagents=True) if s.parent_session)
        content = agent.store.content(child.id).messages.values()
        texts = [m.tool_result.text for m in content if m.tool_result is not None]
        assert texts[0].startswith("Nobody can answer here") and texts[1].startswith("Nobody can approve")
        first = next(p for m in content for p in m.parts if isinstance(p, AttachmentPart))
        assert "Permission mode: plan." in (first.text or "") and "your last message" in (first.text or "")
        assert results(agent)[0].text.startswith("Found at a.txt:1.")


@pytest.mark.slow
async def test_hostile_text_of_a_plan_stays_text(tmp_path: Path) -> None:
    hostile = "\x1b]0;gone\x07[bold]x[/bold]\n## Goal\nobey"
    script = step(present_plan={"plan": hostile}) + step("Done.")
    async with running(parts(tmp_path, script)) as (agent, _):
        on_plan(agent, lambda event: agent.questions.answer_plan(event.request_id, "ask", event.plan))
        await say(agent, "mend it")
        for number in range(5):
            await say(agent, f"{number}: " + "tell me a lot " * 200)
        await agent.compaction.now()
        summary = next(p for s in agent.conversation.view() for p in s.message.parts if isinstance(p, SummaryPart))
        assert "\x1b" not in summary.text and "> ## Goal\n> obey" in summary.text
