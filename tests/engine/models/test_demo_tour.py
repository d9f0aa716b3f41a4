"""The tour of the demo model shows what it says: real calls, a question, reasoning, a real compaction."""

from __future__ import annotations

from pathlib import Path

from agent_tui.config import PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.models.events import Event, QuestionAsked
from tests.support.agents import parts_for, results, running, say


def answering(agent: Agent, choice: int) -> None:
    def hears(event: Event) -> None:
        if isinstance(event, QuestionAsked):
            agent.questions.answer_question(event.request_id, (event.choices[choice],))

    agent.subscribe(hears)


def last(agent: Agent) -> str:
    return agent.conversation.path[-1].text


async def test_each_stop_shows_what_it_says(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README.md").write_text("# Here\n")
    async with running(parts_for(tmp_path / "home", project)) as (agent, _):
        answering(agent, 1)
        await say(agent, "Take the tour!")
        assert last(agent).startswith("## 1 of 4") and [r.name for r in results(agent)] == ["list", "read"]
        await say(agent, "something else")
        await say(agent, "next")
        assert last(agent).startswith("## 2 of 4") and [r.name for r in results(agent)[2:]] == ["write", "edit"]
        assert "Status: seen by a person" in (project / "demo-note.md").read_text()
        await say(agent, "next")
        assert last(agent).startswith("## 3 of 4") and "/budget" in last(agent), "it answers to the choice"
        assert any(part.type == "reasoning" for message in agent.conversation.path for part in message.parts)
        await say(agent, "next")
        assert last(agent).startswith("## 4 of 4") and "16,000 tokens was full" in last(agent)
        (record,) = agent.conversation.own_records
        assert record.summary_id


async def test_a_second_tour_changes_the_note_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "demo-note.md").write_text("My own words\n")
    async with running(parts_for(tmp_path / "home", tmp_path)) as (agent, _):
        await say(agent, "take the tour")
        await say(agent, "next")
        assert (tmp_path / "demo-note.md").read_text() == "My own words\nThe demo model was here.\n"


async def test_it_edits_the_file_that_is_named_and_writes_one_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\nprint(x)\n")
    async with running(parts_for(tmp_path / "home", tmp_path)) as (agent, _):
        await say(agent, "edit a.py")
        assert (tmp_path / "a.py").read_text() == "x = 1\nx = 1\nprint(x)\n# The demo model was here.\n"
        await say(agent, "write new.md")
        assert "`new.md`" in last(agent) and (tmp_path / "new.md").is_file()


async def test_it_says_why_a_change_was_not_made(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    settings = Settings(permissions=PermissionsConfig(deny=["edit(a.py)"]))
    async with running(parts_for(tmp_path / "home", tmp_path, settings=settings)) as (agent, _):
        await say(agent, "edit a.py")
        assert "`a.py` is unchanged" in last(agent) and "edit(a.py) denies this" in last(agent)
