"""Hints: a line above the prompt that takes nothing away and does not stay."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from agent_tui.models.messages import Message, TextPart, user_message
from agent_tui.ui.widgets import drawn_lines as activity
from tests.support.app import running
from tests.support.fake_agent import FakeAgent

pytestmark = pytest.mark.quick


async def test_a_hint_goes_by_itself_once_it_can_have_been_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as run:
        run.app.view.hint("stays for now")
        await run.pilot.pause()
        assert "stays for now" in run.shown()
        monkeypatch.setattr(activity, "IDLE_SECONDS", 0.01)
        monkeypatch.setattr(activity, "PER_CHARACTER", 0.0)
        run.app.view.hint("is gone soon")
        await run.until(lambda: not run.app.activity.hint_text)
        await run.until(lambda: "soon" not in run.shown())
        run.app.view.hint("is gone at once", 0.01)
        await run.until(lambda: not run.app.activity.hint_text)


async def test_a_line_above_the_prompt_leaves_the_empty_one_below_the_conversation(tmp_path: Path) -> None:
    messages = [
        user_message("what?"),
        Message("m1", "assistant", [TextPart("\n\n".join(f"line {n}" for n in range(60)))]),
    ]
    async with running(tmp_path, FakeAgent(tmp_path, messages)) as run:
        says: tuple[Callable[[], None], ...] = (
            lambda: run.app.view.hint("a hint"),
            lambda: run.app.activity.begin("a phase", ""),
        )
        for size, say in product([(60, 20), (80, 24), (200, 50)], says):
            run.app.activity.end()
            run.app.activity.hint("")
            await run.pilot.resize_terminal(*size)
            say()
            await run.until(lambda: " a hint" in run.shown() or "a phase" in run.shown())
            lines = [line.strip() for line in run.shown().splitlines()]
            said = next(n for n, line in enumerate(lines) if "a hint" in line or "a phase" in line)
            assert lines[said - 1] == "" and lines[said - 2].startswith("line 59")
