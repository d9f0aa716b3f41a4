"""The context screen, live: what it shows is what the agent says, and what stands behind a row can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.commands.bookkeeping import adds_up
from agent_tui.commands.context_texts import part_text, sent_text
from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import context_json
from agent_tui.models.events import ContextChanged
from agent_tui.models.messages import Message, SummaryPart, TextPart, ToolResultPart
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CompactionRecord
from agent_tui.ui.screens.context_head import bar_cells
from agent_tui.ui.screens.context_lines import flatten
from agent_tui.ui.screens.context_screen import ContextScreen
from agent_tui.ui.screens.context_view import Words
from agent_tui.ui.screens.text import TextScreen
from tests.support.app import Running, running
from tests.support.fake_agent import FakeAgent
from tests.support.usages import row, sample_usage


async def open_context(run: Running) -> ContextScreen:
    run.app.open_screen("context")
    await run.screen(ContextScreen)
    await run.pilot.pause()
    assert isinstance(run.app.screen, ContextScreen)
    return run.app.screen


def written(screen: ContextScreen) -> str:
    """The bookkeeping as it stands on the screen, its lines put together again."""
    return " ".join(text for words in screen.query(Words) if words.display for _, text, _ in words.lines)


@pytest.mark.quick
async def test_context_screen_shows_the_calculators_numbers(tmp_path: Path) -> None:
    usage = sample_usage()
    async with running(tmp_path, FakeAgent(tmp_path, usage=usage), size=(200, 50)) as run:
        screen = await open_context(run)
        shown = run.shown()
        for number in ("2,600", "500", "1,400", "9,800", "69,900", "41,000", "6,600", "83,800", "32,000"):
            assert number in shown
        assert (
            "84.2k of 200k, 42.1 % of the window   ■ tool results 20.5 % of the window   compacts in about 9 turns"
            in shown
        )
        assert "Calculation" not in written(screen) and "rows = total" not in written(screen)
        await run.pilot.press("w")
        await run.screen(TextScreen)
        await run.pilot.pause()
        read = " ".join(run.shown().split())
        for line in ("82,000 last input", "+ 2,100 last output", "= 84,200 the next input", "= 168,000 the limit"):
            assert line in read
        assert "rows = total = trigger = 84,200" in run.shown()


async def test_context_rows_open_down_to_single_messages(tmp_path: Path) -> None:
    usage = sample_usage(3)
    agent = FakeAgent(tmp_path, [Message("msg_0", "user", [TextPart("the message itself")])], usage)
    async with running(tmp_path, agent, size=(120, 40)) as run:
        screen = await open_context(run)
        labels = [line.label for line in screen.view.rows.shown]
        screen.view.rows.move_to(labels.index("Tool results"))
        await run.pilot.press("l")
        await run.until(lambda: "read src/module_0.py" in run.shown())
        await run.pilot.press("down", "enter")
        await run.screen(TextScreen)
        await run.until(lambda: "the message itself" in run.shown())
        assert "read from the provider's cache" in run.shown()
        await run.pilot.press("escape")
        await run.screen(ContextScreen)
        await run.pilot.press("h", "h")
        await run.until(lambda: "module_0" not in run.shown())


HOSTILE = "Be brief. [bold]not bold[/] \x1b[2J\x1b]0;evil\x07 end"


@pytest.mark.quick
async def test_the_text_behind_fixed_rows_can_be_read(tmp_path: Path) -> None:
    usage = sample_usage()
    usage.rows[0].fingerprint, usage.rows[1].fingerprint = "f-system", "f-gone"
    github = usage.rows[4].children[1]
    github.children = [row("note", 6_200, fingerprint="f-tool", deferred_tokens=700, detail="deferred")]
    agent = FakeAgent(tmp_path, usage=usage)
    tool = {"name": "note", "description": "Reads\na note", "parameters": {"type": "object", "properties": {"id": {}}}}
    agent.context.texts = {"f-system": HOSTILE, "f-tool": json.dumps(tool)}
    async with running(tmp_path, agent, size=(120, 40)) as run:
        screen = await open_context(run)
        screen.view.opened |= {"tools", "tools/mcp:github"}
        screen.view.rebuild()

        async def read(label: str) -> str:
            labels = [line.label for line in screen.view.rows.shown]
            screen.view.rows.move_to(labels.index(label))
            await run.pilot.press("enter")
            await run.screen(TextScreen)
            shown = run.shown()
            await run.pilot.press("escape")
            await run.screen(ContextScreen)
            return shown

        prompt = await read("System prompt")
        assert "Be brief. [bold]not bold[/]" in prompt and "~2,600 tokens, estimated" in prompt
        assert "\x1b" not in prompt and "\x07" not in prompt
        assert "Text not available" in await read("Environment")
        told = await read("Note")
        assert "Reads" in told and '"properties"' in told and "~700 more once the model loads it" in told


@pytest.mark.quick
def test_a_tool_is_laid_out_without_another_word() -> None:
    schema = {"name": "n", "description": "d\ne", "parameters": {"type": "object", "required": ["ä"]}}
    text = part_text(json.dumps(schema, ensure_ascii=False), tool=True)
    heading, rest = text.split("\n\n# Parameters\n")
    assert heading == "# n\nd\ne" and json.loads(rest) == schema["parameters"]
    for other in ("{", "[]", '{"name": 1}', "no schema"):
        assert part_text(other, tool=True) == other
    assert part_text(json.dumps(schema), tool=False) == json.dumps(schema), "a file that looks like a tool is a file"


@pytest.mark.quick
def test_what_is_sent_instead_of_a_message_is_told_with_what_was_stored() -> None:
    stored = Message("m", "tool", [ToolResultPart("c", "read", "the whole file")])
    sent = SentMessage(Message("m", "tool", [ToolResultPart("c", "read", "[cleared]")]), "m#cleared", stored)
    text = sent_text(sent)
    assert text.index("[cleared]") < text.index("# Stored, not sent") < text.index("the whole file")
    assert "not sent now" in sent_text(None)


@pytest.mark.slow
async def test_context_screen_is_live_and_marks_what_is_in_flight(tmp_path: Path) -> None:
    async with running(tmp_path, size=(120, 40)) as run:
        await open_context(run)
        run.agent.publish(ContextChanged(run.agent.usage, in_flight=1_800))
        await run.until(lambda: "~86k of 200k, ~43.0 % of the window" in run.shown())
        assert "~1.8k in flight" in run.shown()
        assert "answer in progress" in run.shown() and "~71,700" in run.shown()


async def test_context_export_is_the_shared_json(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await open_context(run)
        await run.pilot.press("e")
        path = run.agent.paths.exports / "context-ses_1.json"
        await run.until(path.exists)
        await run.until(lambda: "Written to" in run.shown())
        assert json.loads(path.read_text()) == context_json(ContextReport(run.agent.usage), ())
        path.write_text("mine")
        await run.pilot.press("e")
        await run.until(path.with_stem("context-ses_1-2").exists)
        assert path.read_text() == "mine", "nothing is overwritten"
        assert list(run.agent.cwd.glob("*.json")) == [], "and nothing is written where the user works"


async def test_context_exact_count_and_preview(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await open_context(run)
        await run.pilot.press("x")
        await run.until(lambda: "84,211" in run.shown())
        await run.pilot.press("v")
        await run.until(lambda: "Would summarise 12 messages." in run.shown())


async def test_compaction_history_shows_its_summary(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.conversation.own_records = [
        CompactionRecord(
            "r1",
            "op1",
            "summary",
            ["m1"],
            summary_id="sum",
            before_tokens=171_200,
            after_tokens=24_100,
            kept_messages=6,
        )
    ]
    agent.store.kept = {"sum": Message("sum", "user", [SummaryPart("## Goal\nFix the parser", "r1")])}
    async with running(tmp_path, agent, size=(100, 40)) as run:
        screen = await open_context(run)
        await run.pilot.press("end", "enter")
        await run.until(lambda: "~171.2k → ~24.1k" in run.shown())
        screen.view.rows.action_last()
        await run.pilot.press("enter")
        await run.until(lambda: "Fix the parser" in run.shown())


@pytest.mark.slow
async def test_ten_thousand_messages_open_without_walking_them(tmp_path: Path) -> None:
    usage = sample_usage()
    children = [row("message", 4, f"message {i}", message_id=f"m{i}", basis="derived") for i in range(10_250)]
    usage.rows[-1].children[3].children = children
    async with running(tmp_path, FakeAgent(tmp_path, usage=usage)) as run:
        screen = await open_context(run)
        assert len(screen.view.rows.shown) < 20
        screen.view.rows.move_to(next(i for i, s in enumerate(screen.view.rows.shown) if s.label == "Tool results"))
        await run.pilot.press("l")
        await run.until(lambda: len(screen.view.rows.shown) > 10_000)
        await run.pilot.press("end")
        await run.until(lambda: "Reserve" in run.shown())


@pytest.mark.slow
async def test_unknown_window_is_said(tmp_path: Path) -> None:
    usage = sample_usage()
    usage.window = usage.limit = usage.reserve = usage.free = usage.over = None
    async with running(tmp_path, FakeAgent(tmp_path, usage=usage)) as run:
        await open_context(run)
        assert "84.2k of an unknown window" in run.shown() and "set context_window" in run.shown()
        await run.pilot.press("escape")
        await run.until(lambda: len(run.app.screen_stack) == 1)
        assert "84.2k" in run.shown().splitlines()[-1]


@given(st.lists(st.integers(0, 50_000), min_size=7, max_size=7), st.integers(1, 300_000), st.integers(4, 200))
@pytest.mark.quick
def test_percentages_and_bar_add_up_for_any_numbers(sizes: list[int], limit: int, width: int) -> None:
    usage = sample_usage()
    usage.rows = [row(r.id, size) for r, size in zip(usage.rows, sizes, strict=True)]
    usage.total, usage.limit, usage.window = sum(sizes), limit, limit + 32_000
    usage.free, usage.over = max(0, limit - usage.total), max(0, usage.total - limit)
    usage.reserve = 32_000
    assert adds_up(usage)
    lines = flatten(usage, set())
    assert sum(line.tenths or 0 for line in lines) == 1000
    assert sum(line.tokens or 0 for line in lines) == usage.window
    assert sum(cells for _, cells in bar_cells(usage, width)) == width


@pytest.mark.quick
def test_a_wrong_sum_is_not_called_right() -> None:
    usage = sample_usage()
    assert adds_up(usage)
    usage.rows[-1].children[0].tokens += 1
    assert not adds_up(usage)


async def test_a_key_pins_the_message_of_a_row(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.conversation.path.append(Message("msg_5", "user", [TextPart("never push")]))
    async with running(tmp_path, agent, size=(120, 40)) as run:
        rows = (await open_context(run)).view.rows
        await run.pilot.press("p")
        await run.until(lambda: "p on one to pin it" in run.shown())
        rows.move_to(next(i for i, line in enumerate(rows.shown) if line.label == "Tool results"), 1)
        await run.pilot.press("enter")
        await run.pilot.pause()
        named = [i for i, line in enumerate(rows.shown) if line.row is not None and line.row.message_id == "msg_5"]
        rows.move_to(named[0], 1)
        await run.pilot.press("p")
        await run.until(lambda: "pinned msg_5" in run.shown())
