"""What is being written is in the status line, and what sending it leads to stands above the prompt."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from textual import events

from agent_tui.models.context import Draft
from agent_tui.models.events import ContextChanged, DraftChanged, MessageAdded, TurnEnded, TurnStarted
from agent_tui.models.messages import AttachmentPart
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.drawn_lines import StatusFacts, StatusLine
from tests.support.app import running
from tests.support.fake_agent import FakeAgent
from tests.support.real_app import make_home
from tests.support.usages import sample_usage

plain: Paint = lambda *_, **__: None  # type: ignore[assignment]  # noqa: E731


@pytest.mark.quick
@pytest.mark.parametrize(
    ("width", "said"),
    [(200, "70.5 % · 49k + 92k / 200k"), (80, "70.5 % · 49k + 92k / 200k"), (40, "70.5 % 49k+92k/200k")],
)
def test_the_total_the_draft_and_how_full_it_gets(width: int, said: str) -> None:
    line, facts = StatusLine(), StatusFacts()
    facts.model, facts.usage, facts.draft = "m", replace(sample_usage(), total=49_000, spread=0), Draft(92_000)
    line.facts = facts
    shown = "".join(text for text, _ in line.line(0, width, plain)).replace("~", "")
    assert said in shown


@pytest.mark.slow
async def test_what_is_typed_pasted_and_shown_goes_to_the_count(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("see ")
        run.app.prompt.post_message(events.Paste("line\n" * 40))
        await run.until(lambda: "Pasted" in run.app.prompt.text)
        run.app.prompt.insert_text(run.app.prompt.placeholders.image(AttachmentPart("a.png", "image/png", data="")))
        await run.pilot.pause()
        assert run.agent.draft.heard[-1] == ("see [Image #2]", ["line\n" * 40], 1)
        await run.pilot.press("ctrl+u")
        run.app.prompt.set_text("")
        await run.pilot.pause()
        assert run.agent.draft.heard[-1] == ("", [], 0)


@pytest.mark.slow
async def test_a_command_is_no_message(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("a message")
        assert run.agent.draft.heard[-1][0] == "a message"
        for text in ("/compact all of it", "!ls -la", "/nonsense"):
            run.app.prompt.clear_text()
            await run.type(text)
            assert run.agent.draft.heard[-1][0] == "", text


async def test_the_warning_stands_while_it_is_so_also_beside_what_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        usage = replace(sample_usage(), limit=168_000, total=100_000, spread=0, held="")
        run.agent.publish(ContextChanged(usage))
        run.agent.draft.tokens = Draft(90_000)
        await run.type("x")
        await run.until(lambda: "Sending this compacts first: " in run.shown())
        run.agent.publish(TurnStarted())
        await run.until(lambda: "Working" in run.shown())
        await run.until(lambda: "compacts first" in run.shown())
        run.agent.publish(DraftChanged(Draft(1_000)))
        await run.until(lambda: "compacts first" not in run.shown())
        await run.pilot.press("backspace")
        await run.until(lambda: "+ 1k" not in run.shown())


@pytest.mark.slow
async def test_the_real_chat_counts_and_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path, monkeypatch)
    (home.project / "code.py").write_text("value = 1\n" * 700)
    async with home.chat() as chat:
        await chat.press(*"read @code.py please")
        await chat.until(lambda: re.search(r" \+ [23]\.\dk / ", chat.status))
        await chat.press("escape")
        chat.app.prompt.set_text("")
        await chat.until(lambda: " + " not in chat.status)


@pytest.mark.slow
async def test_a_brief_stands_in_the_prompt_to_be_read_and_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_home(tmp_path, monkeypatch)
    async with home.chat() as chat:
        await chat.say("Never touch the vendor folder.")
        await chat.seen.next(TurnEnded)
        await chat.say("/handoff Write the migration")
        await chat.until(lambda: chat.prompt.startswith("Write the migration\n\nThis continues"))
        assert "Never touch the vendor folder." in chat.prompt
        assert chat.app.prompt.cursor_location == (0, 0)
        await chat.shows("Handed off from “Never touch the vendor folder.”", "Review the brief and send it.")
        await chat.until(lambda: " + " in chat.status)
        await chat.press("enter")
        added = await chat.seen.next(MessageAdded, lambda event: event.message.role == "user")
        assert added.message.text.startswith("Write the migration")
        await chat.seen.next(TurnEnded)


@pytest.mark.quick
async def test_a_long_offer_does_not_cost_what_was_typed(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("half a thought")
        run.app.prompt.offer("/compact")
        assert run.app.prompt.text == "half a thought"
        brief = "\n".join(f"line {number}" for number in range(40))
        run.app.prompt.offer(brief)
        assert run.app.prompt.text == f"{brief}\n\nhalf a thought"


async def test_context_names_the_draft_beside_its_total(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, usage=replace(sample_usage(), draft=Draft(92_000)))
    async with running(tmp_path, agent, size=(160, 40)) as run:
        run.app.open_screen("context")
        await run.until(lambda: "+ 92k typed, not sent yet" in run.shown())
