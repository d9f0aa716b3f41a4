"""What stands above the prompt while and after a conversation is compacted."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest import MonkeyPatch

from agent_tui.models.events import CompactionEnded, CompactionOffered, CompactionStarted, TurnEnded, TurnStarted
from agent_tui.ui import keys
from agent_tui.ui.keys import ALONE, PAUSE
from tests.support.app import running


async def test_after_a_compaction_that_was_asked_for_nothing_works(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        run.agent.publish(CompactionStarted(5_200, "asked for"))
        await run.until(lambda: "Compacting ~5.2k" in run.shown())
        run.agent.publish(CompactionEnded("done", "5.2k → 1.2k · /compact undo"))
        await run.until(lambda: "5.2k → 1.2k" in run.shown())
        await run.until(lambda: "Compacting" not in run.shown())
        assert "Working" not in run.shown()


async def test_after_a_compaction_inside_a_turn_the_turn_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted())
        run.agent.publish(CompactionStarted(5_200, "over the limit"))
        await run.until(lambda: "Compacting ~5.2k" in run.shown())
        run.agent.publish(CompactionEnded("done", "5.2k → 1.2k · /compact undo"))
        await run.until(lambda: "Working" in run.shown())
        run.agent.publish(TurnEnded("end"))
        await run.until(lambda: "Working" not in run.shown())


TAKEN = ("compact_offered", None)
OFFER = "Compact now ~$0.12, next 3 turns ~$0.40; cold from 14:05 on: ~$1.60"


@pytest.mark.quick
async def test_an_offer_is_taken_up_by_its_key_alone_and_by_no_word_that_begins_with_it(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(CompactionOffered(OFFER))
        await run.until(lambda: f"{OFFER} · y" in run.shown())
        run.clock.now += 2 * PAUSE
        await run.type("yes")
        run.clock.now += 2 * ALONE
        await run.type(", do it")
        await run.until(lambda: run.app.prompt.text == "yes, do it")
        assert TAKEN not in run.agent.calls
        run.app.prompt.clear_text()
        await run.type("y")
        await run.until(lambda: run.app.prompt.text == "y")
        run.clock.now += 2 * ALONE
        await run.until(lambda: TAKEN in run.agent.calls)
        assert run.app.prompt.is_empty


async def test_a_key_that_comes_with_the_offer_is_typing(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(CompactionOffered(OFFER))
        await run.type("y")
        await run.until(lambda: run.app.prompt.text == "y")
        run.clock.now += 2 * ALONE
        await run.type("e")
        await run.until(lambda: run.app.prompt.text == "ye")
        assert TAKEN not in run.agent.calls


async def test_the_key_of_an_offer_that_has_just_ended_is_no_word_and_does_nothing(tmp_path: Path) -> None:
    """Else it stood in the prompt, and the next command was sent to the model behind it: "y/compact"."""
    async with running(tmp_path) as run:
        run.agent.publish(CompactionOffered(OFFER))
        await run.until(lambda: "~$1.60 · y" in run.shown())
        run.agent.publish(CompactionOffered(""))
        await run.until(lambda: "~$1.60 · over" in run.shown())
        run.clock.now += 2 * PAUSE
        await run.type("y")
        run.clock.now += 2 * ALONE
        await run.until(lambda: "nothing was compacted" in run.shown())
        assert run.app.prompt.is_empty and TAKEN not in run.agent.calls
        assert not run.app.activity.offer_text, "once said, it is gone: the next y is a letter"


async def test_the_pin_key_says_where_there_is_nothing_to_pin(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.transcript.focus()
        await run.pilot.press("P")
        await run.until(lambda: "None of your messages is in view to pin" in run.shown())


async def test_an_offer_that_ends_while_its_key_waits_is_not_taken_up(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(CompactionOffered(OFFER))
        await run.until(lambda: "~$1.60 · y" in run.shown())
        run.clock.now += 2 * PAUSE
        await run.type("y")
        run.agent.publish(CompactionOffered(""))
        run.clock.now += 2 * ALONE
        await run.until(lambda: "nothing was compacted" in run.shown())
        assert run.app.prompt.is_empty and TAKEN not in run.agent.calls


async def test_an_offer_that_is_over_goes_with_what_is_typed_or_begins(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for typed in (True, False):
            run.agent.publish(CompactionOffered(OFFER))
            run.agent.publish(CompactionOffered(""))
            await run.until(lambda: "· over" in run.shown())
            if typed:
                await run.type("/")
                assert run.app.prompt.text == "/"
                run.app.prompt.clear_text()
            else:
                run.agent.publish(TurnStarted())
                run.agent.publish(TurnEnded("end"))
            await run.until(lambda: "~$1.60" not in run.shown())
            assert not run.app.activity.offer_text
        run.agent.publish(CompactionOffered(OFFER))
        await run.type("yet")
        run.agent.publish(CompactionOffered(""))
        await run.until(lambda: not run.app.activity.offer_text)
        assert run.app.prompt.text == "yet"


async def test_the_key_answers_no_offer_that_is_not_to_be_seen(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "ALONE", 0.05)
    async with running(tmp_path) as run:
        run.agent.publish(CompactionOffered(OFFER))
        run.clock.now += 2 * PAUSE
        run.app.view.hint("Something else is said there", 600)
        await run.until(lambda: "~$1.60" not in run.shown())
        await run.type("y")
        run.clock.now += 2 * PAUSE
        await run.until(lambda: f"{OFFER} · y" in run.shown())
        assert TAKEN not in run.agent.calls and run.app.prompt.text == "y"
        run.app.prompt.clear_text()
        await run.type("y")
        run.clock.now += 2 * PAUSE
        await run.until(lambda: run.agent.calls.count(TAKEN) == 1)
