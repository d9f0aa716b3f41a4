"""The main paths on the real agent: what the user does with keys, what they see, and what is then on the disk."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.models.events import (
    CompactionEnded,
    ContextChanged,
    JobsChanged,
    PermissionAnswered,
    PermissionAsked,
    QueueChanged,
    SessionChanged,
    TurnEnded,
)
from agent_tui.models.messages import Message
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.options import Options
from agent_tui.store.store import Store
from agent_tui.ui.screens.text import TextScreen
from tests.support.real_app import Chat, Home, make_home

HANGING = """
[[step]]
match = "first"
text = "half of an answer"
chunk = 4
hang = true
after = 17
"""


def says(text: str, **keys: object) -> str:
    """A step of the demo model's script that answers with a text."""
    lines = ["[[step]]", f"text = {json.dumps(text)}", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


def calls(name: str, **arguments: object) -> str:
    """A step that calls a tool."""
    lines = ["[[step]]", "[[step.tool_calls]]", f"name = {json.dumps(name)}"]
    return "\n".join([*lines, f"arguments = {json.dumps(json.dumps(arguments))}"]) + "\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_worker: None) -> Home:
    return make_home(tmp_path, monkeypatch)


def only_session(store: Store) -> str:
    (info,) = store.sessions.all()
    return info.id


def conversation(home: Home) -> list[Message]:
    """The path of the only session on the disk."""
    with home.store() as store:
        info = store.sessions.get(only_session(store))
        return store.messages.path(info.id, info.head_id)


def steps(home: Home) -> list[Step]:
    with home.store() as store:
        return store.steps.all(only_session(store))


def records(home: Home) -> list[CompactionRecord]:
    with home.store() as store:
        return store.compactions.all(only_session(store))


def waiting(home: Home) -> list[str]:
    with home.store() as store:
        return [message.text for message in store.waiting.all(only_session(store))]


def spoken(home: Home) -> list[tuple[str, str, str]]:
    return [(m.role, m.text, m.status) for m in conversation(home)]


def newest_is(text: str) -> Callable[[QueueChanged], bool]:
    return lambda event: [waits.text for waits in event.waiting][-1:] == [text]


async def ask(chat: Chat, text: str) -> TurnEnded:
    await chat.say(text)
    return await chat.seen.next(TurnEnded)


@pytest.mark.quick
async def test_a_message_is_sent_answered_and_stored(home: Home) -> None:
    home.script(says("An answer that was *streamed*.", chunk=5))
    async with home.chat() as chat:
        assert "demo DEMO" in chat.status
        ended = await ask(chat, "what is this?")
        assert ended.stop_reason == "end"
        await chat.shows("what is this?", "An answer that was streamed.")
        await chat.until(lambda: " % · " in chat.status and "16k" in chat.status)
        assert spoken(home) == [
            ("user", "what is this?", "complete"),
            ("assistant", "An answer that was *streamed*.", "complete"),
        ]
        (step,) = steps(home)
        assert (step.kind, step.status, step.model) == ("turn", "complete", "demo")
        assert step.usage is not None
        assert step.usage.input > 0
        assert step.usage.source == "provider"


@pytest.mark.slow
async def test_what_is_queued_is_shown_taken_back_and_sent_after_the_turn(home: Home) -> None:
    home.script(
        calls("write", path="a.txt", content="a\n") + says("Written.") + says("The second.") + says("The third.")
    )
    async with home.chat() as chat:
        await chat.say("first")
        await chat.seen.next(PermissionAsked)
        # The question came while the user was typing: the keys are the next message's.
        await chat.shows("Allow write?")
        for text in ("second", "third", "never"):
            await chat.say(text)
            await chat.seen.next(QueueChanged, newest_is(text))
        await chat.shows("queued  second", "queued  third", "queued  never")
        assert waiting(home) == ["second", "third", "never"]
        await chat.press("up")
        await chat.until(lambda: chat.prompt == "never")
        assert waiting(home) == ["second", "third"]
        await chat.press(*["backspace"] * len("never"))
        await chat.until(lambda: chat.prompt == "")
        await chat.press("tab")
        await chat.look()
        await chat.answer("y")
        for _ in range(3):
            assert (await chat.seen.next(TurnEnded)).stop_reason == "end"
        await chat.shows("Written.", "The second.", "The third.")
        await chat.hides("queued  ")
        assert waiting(home) == []
        assert [text for role, text, _ in spoken(home) if role == "user"] == ["first", "second", "third"]


@pytest.mark.quick
async def test_an_interrupted_turn_keeps_what_came_and_what_waits(home: Home) -> None:
    home.script(HANGING + says("Now the second."))
    async with home.chat() as chat:
        await chat.say("first")
        await chat.shows("half of an answer")
        await chat.say("second")
        await chat.shows("queued  second")
        await chat.press("escape")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "interrupted"
        await chat.shows("half of an answer", "Interrupted", "second")
        assert spoken(home) == [("user", "first", "complete"), ("assistant", "half of an answer", "stopped")]
        assert steps(home)[-1].status == "stopped"
        assert waiting(home) == ["second"]
        await chat.press("enter")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "end"
        await chat.shows("Now the second.")
        assert spoken(home)[2:] == [("user", "second", "complete"), ("assistant", "Now the second.", "complete")]
        assert waiting(home) == []


@pytest.mark.quick
async def test_a_call_runs_when_it_is_allowed_and_not_when_it_is_denied(home: Home) -> None:
    home.script(
        calls("write", path="yes.txt", content="written\n")
        + says("Done.")
        + calls("write", path="no.txt", content="never\n")
        + says("As you wish.")
    )
    async with home.chat() as chat:
        await chat.say("write it")
        asked = await chat.seen.next(PermissionAsked)
        assert asked.tool == "write"
        await chat.shows("Allow write?", "yes.txt", "+ written", "Yes, this once", "Waiting for your permission")
        assert not (home.project / "yes.txt").exists()
        await chat.look()
        await chat.answer("y")
        assert (await chat.seen.next(PermissionAnswered)).allowed
        await chat.seen.next(TurnEnded)
        await chat.shows("Done.")
        await chat.hides("Allow write?")
        assert (home.project / "yes.txt").read_text() == "written\n"

        await chat.say("again")
        await chat.seen.next(PermissionAsked)
        await chat.shows("Allow write?", "no.txt")
        await chat.look()
        await chat.answer("n")
        assert not (await chat.seen.next(PermissionAnswered)).allowed
        await chat.seen.next(TurnEnded)
        await chat.shows("As you wish.")
        assert not (home.project / "no.txt").exists()
        results = [m.tool_result for m in conversation(home) if m.tool_result is not None]
        assert [(r.name, r.is_error) for r in results] == [("write", False), ("write", True)]
        with home.store() as store:
            changed = store.snapshots.all(only_session(store))
        assert changed[0].content is None
        assert {Path(snapshot.path).name for snapshot in changed} == {"yes.txt"}


@pytest.mark.slow
async def test_always_is_remembered_for_the_next_chat(home: Home) -> None:
    home.script(calls("write", path="a.txt", content="a\n") + says("Done."))
    async with home.chat() as chat:
        await chat.say("write it")
        asked = await chat.seen.next(PermissionAsked)
        await chat.shows("Always allow")
        await chat.look()
        await chat.answer("a", "y")
        await chat.seen.next(TurnEnded)
    (home.project / "a.txt").unlink()
    home.script(calls("write", path="a.txt", content="b\n") + says("Done again."))
    async with home.chat() as chat:
        await ask(chat, "write it once more")
        await chat.shows("Done again.")
        assert not [event for event in chat.seen.events if isinstance(event, PermissionAsked)]
        await chat.say("/permissions")
        await chat.shows(asked.offers[0].rules[0])
    assert (home.project / "a.txt").read_text() == "b\n"


@pytest.mark.slow
async def test_a_compaction_opens_to_its_messages_from_the_transcript_and_by_its_command(home: Home) -> None:
    long = "".join(f"All of this can be told again in {n} words. " for n in range(130))
    home.script("".join(says(f"Answer {n}. {long}", chunk=4000) for n in range(5)))
    async with home.chat() as chat:
        await ask(chat, "Never touch [bold]legacy[/bold]. " + " ".join(f"https://example.org/{n}" for n in range(60)))
        for n in range(4):
            await ask(chat, f"question {n}")
        await chat.say("/compact show")
        await chat.shows("No compactions yet")
        await chat.say("/compact")
        await chat.seen.next(CompactionEnded)
        pages = []
        for by_command in (False, True):
            await chat.shows("Compacted")
            chat.app.transcript.focus()
            await (chat.say("/compact show") if by_command else chat.press("enter"))
            await chat.until(lambda: isinstance(chat.app.screen, TextScreen))
            await chat.shows("No longer sent, by the ids that recall takes", "user: Never touch [bold]legacy[/bold].")
            assert isinstance(chat.app.screen, TextScreen)
            pages.append(chat.app.screen.text)
            await chat.press("end")
            await chat.hides("No longer sent")
            await chat.press("escape")
        assert pages[0] == pages[1] and pages[0].count("example.org") >= 60
        await chat.say("/compact show 2")
        await chat.shows("No such compaction: 2. This conversation has 1 compaction; 1 is the newest.")


async def test_a_conversation_is_compacted_and_the_compaction_taken_back(home: Home) -> None:
    long = "".join(f"All of this can be told again in {n} words. " for n in range(130))
    home.script("".join(says(f"Answer {n}. {long}", chunk=4000) for n in range(5)))
    async with home.chat() as chat:
        for n in range(5):
            assert (await ask(chat, f"question {n}")).stop_reason == "end"
        await chat.say("/compact")
        ended = await chat.seen.next(CompactionEnded)
        assert ended.outcome == "done", ended.text
        await chat.seen.next(ContextChanged)
        await chat.shows("Compacted")
        with home.store() as store:
            session = only_session(store)
            found = store.compactions.all(session)
            assert found
            assert all(record.active and record.reason == "manual" for record in found)
            summary = next(record for record in found if record.kind == "summary")
            assert summary.summary_id in store.messages.summaries(session)
            assert len(store.messages.all(session)) == 10
        await chat.say("/compact undo")
        assert (await chat.seen.next(CompactionEnded)).outcome == "undone"
        await chat.shows("Compaction undone")
        assert not any(record.active for record in records(home))
        assert "paused" not in chat.screen(), "below the limit there is nothing to pause"
        with home.store() as store:
            assert not store.sessions.get(only_session(store)).state.compaction_paused


@pytest.mark.slow
async def test_rewinding_gives_the_message_back_and_deletes_nothing(home: Home) -> None:
    home.script(says("The first answer.") + says("The second answer.") + says("Another second answer."))
    async with home.chat() as chat:
        await ask(chat, "one")
        await ask(chat, "two")
        await chat.shows("The second answer.")
        await chat.press("escape", "escape")
        await chat.shows("Rewind to before", "Moves 2 messages to a branch")
        await chat.look()
        await chat.press("enter")
        await chat.seen.next(SessionChanged, lambda event: event.reload)
        await chat.until(lambda: chat.prompt == "two")
        await chat.shows("The first answer.", "2 messages moved to a branch. /rewind back undoes this.")
        await chat.hides("The second answer.")
        assert [text for _, text, _ in spoken(home)] == ["one", "The first answer."]
        await chat.press("enter")
        await chat.seen.next(TurnEnded)
        await chat.shows("Another second answer.")
        texts = [text for _, text, _ in spoken(home)]
        assert texts == ["one", "The first answer.", "two", "Another second answer."]
        with home.store() as store:
            session = only_session(store)
            assert len(store.messages.all(session)) == 6


@pytest.mark.slow
async def test_a_session_is_resumed_from_the_list_with_what_waited(home: Home) -> None:
    home.script(HANGING)
    async with home.chat() as chat:
        await chat.say("first")
        await chat.shows("half of an answer")
        await chat.say("second")
        await chat.shows("queued  second")
    with home.store() as store:
        session = only_session(store)
        assert store.steps.all(session)[-1].status == "stopped"
    home.script(says("Here I go on."))
    async with home.chat() as chat:
        assert "half of an answer" not in chat.screen()
        await chat.say("/resume")
        await chat.shows("Resume a session", "first")
        await chat.press("enter")
        opened = await chat.seen.next(SessionChanged, lambda event: event.reload and event.info.id == session)
        assert opened.info.kind == "user"
        await chat.shows("half of an answer", "not sent  second")
        await chat.press("enter")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "end"
        await chat.shows("Here I go on.")
        await chat.hides("not sent")
    assert [(role, text) for role, text, _ in spoken(home)] == [
        ("user", "first"),
        ("assistant", "half of an answer"),
        ("user", "second"),
        ("assistant", "Here I go on."),
    ]


@pytest.mark.slow
async def test_a_start_that_asks_for_the_session_sends_the_prompt_to_the_chosen_one(home: Home) -> None:
    home.script(says("The answer of before."))
    async with home.chat() as chat:
        await ask(chat, "remember this")
    with home.store() as store:
        session = only_session(store)
    home.script(says("Here I go on."))
    async with home.chat(Options(model="demo", resume="", prompt="go on")) as chat:
        await chat.shows("Resume a session", "remember this")
        await chat.press("escape")
        await chat.hides("Resume a session")
        assert chat.prompt == "go on", "no session was chosen: nothing was sent, and nothing is lost"
    async with home.chat(Options(model="demo", resume="", prompt="go on")) as chat:
        await chat.shows("Resume a session", "remember this", "go on")
        await chat.press("enter")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "end"
        await chat.shows("The answer of before.", "Here I go on.")
        assert chat.prompt == ""
    with home.store() as store:
        assert only_session(store) == session


@pytest.mark.slow
async def test_continuing_opens_the_newest_session(home: Home) -> None:
    home.script(says("The answer of before."))
    async with home.chat() as chat:
        await ask(chat, "remember this")
    async with home.chat(Options(model="demo", continue_newest=True)) as chat:
        await chat.shows("remember this", "The answer of before.")
        await ask(chat, "and on")
    assert len(conversation(home)) == 4


@pytest.mark.slow
async def test_the_model_is_switched_between_two_messages(home: Home) -> None:
    home.configure(
        'default_model = "small"\n[models.small]\nmodel = "demo"\n'
        '[models.roomy]\nmodel = "demo"\ncontext_window = 64000\n'
    )
    home.script(says("From the small one.") + says("From the roomy one."))
    async with home.chat(Options()) as chat:
        assert "small DEMO" in chat.status
        await ask(chat, "hello")
        await chat.say("/model")
        await chat.shows("search all models", "64k")
        await chat.press(*"roomy")
        await chat.press("enter")
        await chat.shows("Model is now roomy (64k window).")
        await chat.until(lambda: "roomy DEMO" in chat.status and "64k" in chat.status)
        await ask(chat, "hello again")
        await chat.shows("From the roomy one.")
        assert [step.model_key for step in steps(home) if step.kind == "turn"] == ["small", "roomy"]
        with home.store() as store:
            assert store.sessions.get(only_session(store)).model == "roomy"
    async with home.chat(Options(continue_newest=True)) as chat:
        assert "roomy DEMO" in chat.status


@pytest.mark.slow
async def test_a_command_in_the_background_is_listed_told_and_kept(home: Home) -> None:
    os.mkfifo(home.project / "go")
    home.script(calls("bash", command="echo waiting; cat go; exit 3", background=True) + says("Started."))
    async with home.chat(Options(model="demo", permission_mode="auto")) as chat:
        await ask(chat, "start it")
        await chat.shows("1 in background", "in the background: echo waiting")
        await chat.say("/jobs")
        await chat.shows("In the background", "running", "waiting")
        await chat.press("ctrl+y")
        await chat.shows("b1 keeps running", "Stop it with")
        await chat.press("ctrl+y", "enter")
        await chat.shows("b1 echo waiting; cat go")
        await chat.press("escape", "escape")
        await asyncio.to_thread((home.project / "go").write_text, "gone\n")
        await chat.seen.next(JobsChanged, lambda event: event.running == 0)
        await chat.shows("b1 ended after", "exit code 3")
        await chat.hides("in background")
    assert chat.app.chat.holder.farewell == []
