"""The question after a turn that stopped, above the prompt: one key, and the turn goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from agent_tui.models.events import StopAsked, TurnEnded
from agent_tui.options import Options
from agent_tui.ui.screens.models import ModelPicker
from agent_tui.ui.widgets.answers import WholeInput
from agent_tui.ui.widgets.question import QuestionPanel
from tests.support.forms import one_of
from tests.support.real_app import Chat, Home, make_home

CONFIG = """
default_model = "paid"
[models.paid]
model = "demo"
prices = { input = 3.0, output = 15.0 }
[models.free]
model = "demo"
[models.own]
model = "openai/x"
api_base = "http://127.0.0.1:9/v1"
api_key_env = "NO_SUCH_KEY"
context_window = 32000
[budget]
session_usd = 0.005
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_worker: None) -> Home:
    made = make_home(tmp_path, monkeypatch)
    made.configure(CONFIG)
    return made


async def stopped(chat: Chat, text: str) -> None:
    await chat.say(text)
    await chat.seen.next(StopAsked)
    await chat.shows("n  Stop here")
    await chat.look()


@pytest.mark.parametrize("size", one_of([((60, 20),), ((200, 50),)]))
async def test_a_budget_is_raised_or_left_or_another_model_goes_on(home: Home, size: tuple[int, int]) -> None:
    async with home.chat(Options(), size=size) as chat:
        await stopped(chat, "hello")
        await chat.shows("The session's budget of $0.005 is too small", "$0 spent, the next call may take $0.0")
        assert "To continue" not in chat.screen()
        await chat.answer("o", *"0.001", "enter")
        await chat.shows("$0.001 is not enough")
        await chat.press("escape")
        await chat.shows("n  Stop here")
        await chat.answer("m")
        await chat.until(lambda: isinstance(chat.app.screen, ModelPicker))
        await chat.press("escape")
        await chat.shows("n  Stop here")
        await chat.press("escape")
        await chat.hides("n  Stop here")
        await chat.shows("unanswered  hello")
        await chat.look()
        await chat.press("enter")
        await chat.seen.next(StopAsked)
        await chat.shows("n  Stop here")
        await chat.look()
        await chat.answer("y")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "end"
        await chat.hides("Stop here", "unanswered")


@pytest.mark.slow
async def test_a_key_is_asked_for_masked_and_never_shown(home: Home) -> None:
    async with home.chat(Options(model="own"), size=(80, 24)) as chat:
        await stopped(chat, "hello")
        await chat.shows("The server at http://127.0.0.1:9 has no key yet", "Enter a key for this run only")
        await chat.answer("s", *"sk secret", "enter")
        await chat.shows("That is not a key", "•••••")
        assert "sk secret" not in chat.screen()
        await chat.press("escape")
        await chat.look()
        panel = chat.app.query_one(QuestionPanel)
        panel.post_message(events.Paste("sk-one\nsk-two\n"))
        await chat.shows("•••••")
        assert panel.query_one(WholeInput).value == "sk-one sk-two" and chat.app.prompt.is_empty
        assert "sk-" not in chat.screen()
        await chat.press("enter")
        await chat.shows("That is not a key")
