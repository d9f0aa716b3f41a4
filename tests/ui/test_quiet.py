"""What a session says beside its answers: each event in one line, each reason once, and still there another day."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.models.events import RetryWaiting, TurnEnded
from agent_tui.options import Options
from tests.support.real_app import Home, make_home

SCRIPT = """
[[step]]
match = "wait"
error = { kind = "overloaded", message = "The provider is overloaded.", retry_after = 200 }
[[step]]
match = "refused"
error = { kind = "invalid_request", message = "The provider says no." }
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_worker: None) -> Home:
    made = make_home(tmp_path, monkeypatch)
    made.script(SCRIPT)
    return made


@pytest.mark.slow
async def test_an_interrupt_is_one_line_and_a_failure_keeps_its_reason(home: Home) -> None:
    async with home.chat(size=(100, 80)) as chat:
        await chat.say("wait for it")
        await chat.seen.next(RetryWaiting)
        await chat.press("escape")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "interrupted"
        await chat.shows("Interrupted.")
        await chat.say("a refused one")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "error"
        await chat.shows("The provider says no.")
        await chat.say("good")
        assert (await chat.seen.next(TurnEnded)).stop_reason == "end"
        for text in ("Interrupted.", "The provider says no."):
            assert chat.screen().count(text) == 1, chat.screen()
        assert "% cached" not in chat.screen()
    async with home.chat(Options(model="demo", continue_newest=True), size=(100, 80)) as chat:
        await chat.shows("wait for it", "Interrupted.", "a refused one", "The provider says no.")
        assert chat.screen().count("Interrupted.") == chat.screen().count("The provider says no.") == 1
        assert chat.screen().index("a refused one") < chat.screen().index("says no") < chat.screen().index("good")
