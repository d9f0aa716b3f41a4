"""The page of a compaction: the same picture in colours, in patterns and in words, in any room."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.commands.context_texts import bar_cells, changes_of, compaction_page, picture_text
from agent_tui.context.compaction.plan import CompactionFigures
from agent_tui.models.rows import STACKED
from agent_tui.ui.screens.compaction import WOULD, Bars, CompactionScreen
from tests.support.agents import parts_for, running, say
from tests.support.app import running as running_app

pytestmark = pytest.mark.quick

BEFORE = {"system": 1_200, "tools": 3_100, "user": 2_000, "messages": 20_000, "tool_results": 60_000}
AFTER = {"system": 1_200, "tools": 3_100, "summary": 1_800, "user": 400, "messages": 5_000, "tool_results": 3_000}
PICTURE = CompactionFigures("Now 86.3k.\nKeeps 4 messages word for word.", BEFORE, AFTER, 80_000, rough=False)


async def test_the_picture_stands_above_the_words_where_there_is_room(tmp_path: Path) -> None:
    async with running_app(tmp_path) as run:
        run.app.push_screen(CompactionScreen(WOULD, PICTURE))
        await run.pilot.pause()
        run.app.screen.action_copy()  # type: ignore[attr-defined]
        for width, height in ((200, 50), (120, 40), (8, 6), (80, 24), (60, 20), (30, 12), (40, 15)):
            await run.pilot.resize_terminal(width, height)
            await run.pilot.pause()
            shown, bars = run.shown(), run.app.screen.query_one(Bars)
            if width >= 60:
                assert "before" in shown and "~14.5k" in shown and "tool results 60k → 3k" in shown
                assert "Keeps 4 messages word for word" in shown
                assert "unchanged 4.3k" in shown
            assert width < 30 or "Now 86.3k." in shown
            assert bars.line_count < height


def test_as_text_it_says_the_same() -> None:
    text = picture_text(PICTURE)
    assert text.splitlines()[0].startswith("before") and " 86.3k" in text
    assert "▒ tool results 60k → 3k" in text and text.endswith(PICTURE.say)
    assert picture_text(CompactionFigures("Nothing to compact: it is empty.")) == "Nothing to compact: it is empty."
    assert not changes_of(CompactionFigures(""))


@settings(max_examples=60, deadline=None)
@given(
    stack=st.dictionaries(st.sampled_from(STACKED), st.integers(0, 10**7)),
    scale=st.integers(1, 10**7),
    width=st.integers(1, 200),
)
def test_a_bar_is_never_longer_than_its_room(stack: dict[str, int], scale: int, width: int) -> None:
    cells = bar_cells(stack, scale, width)
    assert sum(n for _, n in cells) <= width and all(n >= 0 for _, n in cells)
    assert bool(cells) == any(stack.values())


@pytest.mark.slow
async def test_the_page_of_one_that_was_made_shows_the_request_as_it_was_then(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "notes.txt").write_text("a note that is long enough to be read\n" * 300)
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, _):
        for number in range(6):
            await say(agent, f"read notes.txt, please ({number})")
        planned = await agent.compaction.preview()
        await agent.compaction.now()
        record = agent.conversation.own_records[-1]
        made = await compaction_page(agent, record, time.time())
        assert sum(made.before.values()) == record.before_tokens == sum(planned.before.values())
        assert sum(made.after.values()) == record.after_tokens
        assert "Kept word for word: " in made.say
        for number in range(2):
            await say(agent, f"read notes.txt, please, again ({number})")
        later = await compaction_page(agent, record, time.time())
        assert sum(later.before.values()) == record.before_tokens and sum(later.after.values()) == record.after_tokens
        await agent.compaction.undo()
        undone = await compaction_page(agent, record, time.time())
        assert sum(undone.after.values()) == record.after_tokens and "undone" in undone.say
