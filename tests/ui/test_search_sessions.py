"""From a word typed in ``/resume`` to the place where it was said, on the real agent."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.widgets import Input

from agent_tui.errors import StoreError
from agent_tui.models.messages import Message, TextPart, new_id
from agent_tui.models.session import SessionHit
from agent_tui.paths import user_paths
from agent_tui.store.search import SearchReader
from agent_tui.store.store import Store
from agent_tui.ui.transcript import Transcript
from tests.support.real_app import Chat, Home, make_home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_worker: None) -> Home:
    return make_home(tmp_path, monkeypatch)


def talk(home: Home, title: str, texts: list[str], project: Path | None = None) -> list[str]:
    """A stored session in which the user and the model say these in turn; the ids of its messages."""
    ids: list[str] = []
    with Store.open(user_paths().database) as store:
        info = store.sessions.create(project or home.project, "demo")
        for number, text in enumerate(texts):
            message = Message(new_id("msg"), "assistant" if number % 2 else "user", [TextPart(text)])
            message.parent_id = ids[-1] if ids else None
            store.messages.add(info.id, message)
            ids.append(message.id)
        info = store.sessions.get(info.id)
        info.title = title
        store.sessions.save(info)
    return ids


def in_view(chat: Chat) -> list[str]:
    """The messages that are on the screen, at least in part."""
    transcript = chat.app.query_one(Transcript)
    entries = {slot.cursor.entry for slot in transcript.slots}
    return [entry.message.id for n, entry in enumerate(transcript.document.entries) if n in entries and entry.message]


async def test_a_word_that_was_said_long_ago_is_found_opened_at_its_place_and_gone_on_from(home: Home) -> None:
    texts = [f"talk {n}\n" * 10 for n in range(200)]
    texts[30] = "why is the Zebra striped?"
    texts[101] = "Some say:\n\nthe **zebra** hides\n\nin the grass."
    ids = talk(home, "Animals", texts)
    talk(home, "Other", ["nothing of it"])
    async with home.chat() as chat:
        await chat.say("/resume")
        await chat.shows("Animals", "Other", "this project")
        await chat.press(*"zebr")
        await chat.shows("1 session", "model: the **zebra** hides")
        await chat.press("enter")
        await chat.shows("Find words", "2 of 2", "the zebra hides")
        assert ids[101] in in_view(chat)
        await chat.press(*"go")
        await chat.until(lambda: chat.app.view.prompt.text == "go")
        await chat.press("ctrl+f", "up", "up")
        await chat.shows("1 of 2", "why is the Zebra striped?")
        await chat.press("escape")
        await chat.hides("Find words")


@pytest.mark.slow
async def test_other_projects_are_searched_only_when_the_key_says_so(home: Home, tmp_path: Path) -> None:
    talk(home, "Far", ["the zebra of elsewhere"], tmp_path / "elsewhere")
    async with home.chat() as chat:
        await chat.say("/resume zebra")
        await chat.shows("No session matches.", "Ctrl+A all projects")
        await chat.press("ctrl+a")
        await chat.shows("the zebra of elsewhere", "Ctrl+A this project")


@pytest.mark.slow
async def test_what_is_said_now_is_in_the_index_when_the_turn_is_over(home: Home) -> None:
    home.script('[[step]]\ntext = "A quagga is a zebra."\n')
    async with home.chat() as chat:
        await chat.say("hello")
        await chat.shows("A quagga is a zebra.")
        await chat.say("/resume")
        await chat.press(*"quagga")
        await chat.shows("model: A quagga is a zebra.", "current")


@pytest.mark.slow
async def test_what_a_run_of_a_script_said_meanwhile_is_found_without_a_restart(home: Home) -> None:
    home.script('[[step]]\nmatch = "striped"\ntext = "So that an okapi can be told from it."\n')
    async with home.chat() as chat:
        await chat.say("/resume okapi")
        await chat.shows("No session matches.")
        arguments = ("-m", "agent_tui", "-p", "why is the zebra striped?", "-m", "demo")
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=home.project, stdout=PIPE, stdin=DEVNULL, env=os.environ
        )
        out, _ = await process.communicate()
        assert "okapi" in out.decode()
        await chat.press("backspace")
        await chat.shows("1 session", "model: So that an okapi can")
        await chat.press("escape")
        await chat.say("/resume okapi")
        await chat.shows("1 session", "model: So that an okapi can")
        await chat.press("enter")
        await chat.shows("Find words", "why is the zebra striped?")


@pytest.mark.slow
async def test_no_text_in_the_search_line_is_an_error(home: Home) -> None:
    talk(home, "Animals", ["the zebra"])
    async with home.chat() as chat:
        await chat.say("/resume")
        await chat.shows("Animals")
        line = chat.app.screen.query_one("#search", Input)
        for typed in ('"', '"a', "z*", "NEAR(a OR", "col:-x", "[/b]\\", "日"):
            line.value = typed
            await chat.until(lambda: "No session matches." in chat.screen())
            assert "this project · 0 sessions" in chat.screen()
            line.value = "zebra"
            await chat.shows("1 session", "you: the zebra")


@pytest.mark.slow
async def test_a_letter_ends_the_search_of_the_one_before_and_closing_ends_them_all(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(home, "Animals", ["the zebra"])
    real, ended = SearchReader.hits, []

    def hits(
        self: SearchReader, query: str, project: str | None = None, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[SessionHit]:
        if query == "zebra":
            yield from real(self, query, project, stopped)
            return
        while not stopped():
            time.sleep(0)
        ended.append(query)
        raise StoreError("the search was stopped")

    monkeypatch.setattr(SearchReader, "hits", hits)
    async with home.chat() as chat:
        await chat.say("/resume")
        await chat.press(*"zebra")
        await chat.shows("1 session", "you: the zebra")
        assert ended and set(ended) <= {"z", "ze", "zeb", "zebr"}
        await chat.press("s")
        await chat.shows("searching…")
        await chat.press("escape")
        await chat.until(lambda: not any(thread.name == "search" for thread in threading.enumerate()))
        assert ended[-1] == "zebras"


async def test_a_search_that_fails_is_told_and_the_next_one_is_made(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(home, "Animals", ["the zebra"])
    real = SearchReader.hits

    def hits(self: SearchReader, *_: object) -> Iterator[SessionHit]:
        monkeypatch.setattr(SearchReader, "hits", real)
        raise RuntimeError("a fault of the program")

    monkeypatch.setattr(SearchReader, "hits", hits)
    async with home.chat() as chat:
        await chat.say("/resume zebr")
        await chat.shows("this project · failed", "the search failed; see the log")
        await chat.hides("No session matches.")
        await chat.press("a")
        await chat.shows("1 session", "you: the zebra")
        await chat.press("x")
        await chat.shows("No session matches.")
