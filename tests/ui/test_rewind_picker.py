"""The list of what can be gone back to: the conversation, and the branches where they forked."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agent_tui.models.messages import Message, TextPart, user_message
from agent_tui.models.session import Branch, FilesMoved, SessionInfo
from agent_tui.ui.screens.sessions import RewindPicker, SessionPicker
from tests.support.app import running
from tests.support.fake_agent import FakeAgent
from tests.support.forms import one_of


def said(text: str, minutes: int) -> list[Message]:
    question, answer = user_message(text), Message(f"answer to {text}", "assistant", [TextPart("yes")])
    question.created = answer.created = time.time() - 60 * minutes
    return [question, answer]


def forked(folder: Path) -> FakeAgent:
    """Three questions; two branches took the place of the second, one of them forked again."""
    path = [*said("write a parser", 30), *said("use a dataclass", 9), *said("now the tests", 5)]
    agent = FakeAgent(folder / "p", path)
    tuples = [*said("use a tuple", 20), *said("with a name", 18)]
    dicts, inner = [*said("use a dict", 25)], [*said("typed", 22)]
    fork = path[1].id
    agent.branches.others = [
        Branch(tuples[-1].id, fork, tuples, 2, 3_100),
        Branch(dicts[-1].id, fork, dicts, 2, 420),
        Branch(inner[-1].id, dicts[0].id, inner, 3, 80, under=dicts[-1].id, depth=1),
    ]
    agent.moving = FilesMoved([agent.root / "src" / "a.py"], [f"{agent.root}/b.py: changed since by something else"])
    return agent


def rows(shown: str) -> list[str]:
    """What the dialog's rows say; the chat is to be seen beside it."""
    inside = (line.partition("│")[2].rpartition("│")[0] for line in shown.splitlines())
    lines = (line.strip("│ ❯\n") for line in inside)
    return [" ".join(line.split()) for line in lines if line.endswith(" min")]


@pytest.mark.parametrize("size", one_of([((60, 20),), ((80, 24),), ((200, 50),)]))
async def test_the_tree_is_to_be_read_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async with running(tmp_path, forked(tmp_path), size=size) as run:
        run.app.open_screen("rewind")
        await run.screen(RewindPicker)
        await run.until(lambda: "now the tests" in run.shown())
        found = rows(run.shown())
        wide = size[0] > 80
        assert found[:2] == ["now the tests 5 min", "use a dataclass 9 min"]
        count = "4 messages · ~3.1k" if wide else "4 · ~3.1k"
        assert found[2].startswith("├─ use a tuple …") and found[2].endswith(f"{count} 18 min")
        assert found[3].startswith("├─ use a dict") and found[4].startswith("├─ typed")
        assert found[5] == "write a parser 30 min"
        deeper = [line.index("├─") for line in run.shown().splitlines() if "├─" in line]
        assert deeper[0] == deeper[1] < deeper[2]
        await run.pilot.press("tab")
        await run.until(lambda: "Branch of 4 messages" in run.shown())
        assert "Ctrl+R files · Ctrl+F fork" in run.shown()
        assert "Ctrl+R also restores 1 file: src/a.py." in " ".join(run.shown().replace("│", " ").split())


@pytest.mark.slow
async def test_without_branches_and_changed_files_there_are_no_keys_for_them(tmp_path: Path) -> None:
    agent = forked(tmp_path)
    agent.moving, agent.branches.others = FilesMoved([], []), []
    async with running(tmp_path, agent) as run:
        run.app.open_screen("rewind")
        await run.screen(RewindPicker)
        await run.until(lambda: "Enter go back · Ctrl+F fork · Esc close" in run.shown())


async def test_any_branch_is_a_key_away_and_one_line_confirms(tmp_path: Path) -> None:
    agent = forked(tmp_path)
    ends = [branch.end for branch in agent.branches.others]
    async with running(tmp_path, agent, size=(120, 40)) as run:
        for keys, end, files in ((["tab", "tab"], ends[1], False), (["shift+tab"], ends[2], True)):
            agent.calls.clear()
            run.app.open_screen("rewind")
            await run.screen(RewindPicker)
            run.clock.now += 1
            await run.pilot.press(*keys, "ctrl+r" if files else "enter")
            await run.until(lambda: agent.called("go_to"))
            assert agent.called("go_to") == [(end, files)]
        await run.until(lambda: "/rewind back files undoes this." in " ".join(run.shown().split()))
        shown = " ".join(run.shown().split())
        assert "2 messages moved to a branch" in shown and "Restored 1 file: src/a.py." in shown


@pytest.mark.slow
async def test_a_search_finds_what_was_said_on_a_branch(tmp_path: Path) -> None:
    agent = forked(tmp_path)
    async with running(tmp_path, agent) as run:
        run.app.open_screen("rewind")
        await run.screen(RewindPicker)
        run.clock.now += 1
        await run.type("with a name")
        await run.until(lambda: len(rows(run.shown())) == 1)
        run.clock.now += 1
        await run.pilot.press("enter")
        await run.until(lambda: agent.called("go_to"))
        assert agent.called("go_to") == [(agent.branches.others[0].end, False)]


async def test_what_is_left_before_the_first_message_can_still_be_gone_to(tmp_path: Path) -> None:
    agent = forked(tmp_path)
    left = Branch(agent.conversation.path[-1].id, None, list(agent.conversation.path), 0, 500)
    agent.conversation.path.clear()
    agent.branches.others = [left]
    async with running(tmp_path, agent) as run:
        run.app.prompt.set_text("/rewind")
        await run.pilot.press("enter")
        await run.screen(RewindPicker)
        await run.until(lambda: "forked at the start" in run.shown())
        await run.pilot.press("escape")
        run.app.prompt.set_text("/rewind back")
        await run.pilot.press("enter")
        await run.until(lambda: agent.called("go_back"))
        await run.until(lambda: "/rewind back undoes this." in run.shown())
        run.app.prompt.set_text("/rewind sideways")
        await run.pilot.press("enter")
        await run.until(lambda: "Usage: /rewind" in run.shown())


@pytest.mark.slow
async def test_the_list_of_sessions_marks_forks_and_names_more_branches(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path / "p")
    project = str(agent.root)
    agent.store.listed = [
        SessionInfo("ses_1", project, "the original", "demo", messages=6),
        SessionInfo("ses_2", project, "its copy", "demo", messages=4, parent_session="ses_1"),
    ]
    agent.store.branches = 2
    async with running(tmp_path, agent) as run:
        run.app.open_screen("sessions")
        await run.screen(SessionPicker)
        await run.until(lambda: "6 messages and 2 more branches" in run.shown())
        lines = run.shown().splitlines()
        assert [" fork " in line for line in lines if "the original" in line or "its copy" in line] == [False, True]
        await run.pilot.press("down")
        await run.until(lambda: "a fork of another session" in run.shown())
