"""Reading: the place is kept, the end is followed, parts fold, jumps arrive."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from textual.geometry import Offset
from textual.selection import Selection

from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    SummaryPart,
    ToolCallPart,
    ToolResultPart,
    user_message,
)
from agent_tui.models.requests import Delta
from agent_tui.models.steps import CompactionRecord
from agent_tui.ui.flow.paint import key
from agent_tui.ui.transcript import Transcript
from agent_tui.ui.transcript.find import selected_text
from agent_tui.ui.transcript.messages import ScreenAsked
from tests.ui.transcripts import Holder, answer, body, chat, screen


@pytest.mark.quick
async def test_opens_at_the_end_and_follows_it() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load(chat(50))
        await pilot.pause()
        assert t.follow and "answer 49 line 9" in screen(t)[-1]
        t.add_message(user_message("one more"))
        await pilot.pause()
        assert screen(t)[-1] == "▌ one more"


async def test_scrolling_up_keeps_what_was_read_while_heights_are_corrected() -> None:
    app = Holder()
    async with app.run_test(size=(40, 20)) as pilot:
        t = app.transcript
        long = "A sentence of some words that wraps in a narrow view. " * 7
        messages = []
        for n in range(60):
            messages += [user_message(f"question {n}"), answer(f"start {n}. {long}\n\n```\ncode\n```", f"a{n}")]
        t.load(messages)
        await pilot.pause()
        for _ in range(40):
            before = screen(t)
            t.scroll_up(animate=False)
            after = screen(t)
            assert after[1:] == before[:-1]
        for _ in range(30):
            before = screen(t)
            t.scroll_page_up(animate=False)
            await pilot.pause()
            t.scroll_page_down(animate=False)
            await pilot.pause()
            assert screen(t) == before
            t.scroll_relative(y=-7, animate=False, immediate=True)
        assert not t.follow


@pytest.mark.slow
async def test_every_line_is_met_once_scrolling_down_from_the_top() -> None:
    app = Holder()
    async with app.run_test(size=(60, 13)) as pilot:
        t = app.transcript
        t.load(chat(30))
        await pilot.pause()
        t.scroll_home(animate=False)
        await pilot.pause()
        seen = screen(t)
        while not t.is_vertical_scroll_end:
            before = screen(t)
            t.scroll_down(animate=False)
            assert screen(t)[:-1] == before[1:]
            seen.append(screen(t)[-1])
        answers = [line for line in seen if "answer" in line]
        assert answers == [f"  • answer {n} line {k}" for n in range(30) for k in range(10)]
        assert t.follow


@pytest.mark.quick
async def test_new_content_below_does_not_move_the_view() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load(chat(20))
        await pilot.pause()
        t.scroll_relative(y=-50, animate=False, immediate=True)
        await pilot.pause()
        before = screen(t)
        t.begin_answer(Message("m", "assistant", status="streaming"))
        t.apply_delta("m", Delta(0, "text", "new text\n\n" * 30))
        t._frame()
        t.add_notice("info", "a notice")
        await pilot.pause()
        assert screen(t)[:-1] == before[:-1]
        assert "2 new" in screen(t)[-1]
        t.follow_end()
        await pilot.pause()
        assert "a notice" in screen(t)[-1]


async def test_a_resize_keeps_the_place() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load(chat(40))
        await pilot.pause()
        t.scroll_relative(y=-100, animate=False, immediate=True)
        await pilot.pause()
        top = screen(t)[0]
        await pilot.resize_terminal(45, 20)
        await pilot.pause()
        assert screen(t)[0] == top
        await pilot.resize_terminal(90, 9)
        await pilot.pause()
        assert screen(t)[0] == top


@pytest.mark.quick
async def test_reasoning_is_closed_until_it_is_opened() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load([answer("said", "m", ReasoningPart("first thought\n\nsecond"))])
        await pilot.pause()
        assert body(t) == ["  ▸ Thought · 21 characters", "", "  said"]
        await pilot.click(t, offset=(8, 1))
        await pilot.pause()
        assert body(t) == [
            "  ▾ Thought · 21 characters", "  │ first thought", "  │", "  │ second", "", "  said",
        ]  # fmt: skip
        assert t.toggle_reasoning()
        await pilot.pause()
        assert "  │ second" in body(t)
        assert not t.toggle_reasoning()
        await pilot.pause()
        assert body(t)[0].startswith("  ▸") and len(body(t)) == 3


TOOL_CALLS = [
    Message(
        "m",
        "assistant",
        [
            ToolCallPart("c1", "bash", '{"command": "ls -la", "timeout": 3}'),
            ToolCallPart("c2", "edit", '{"path": "x.py"}'),
            ToolCallPart("c3", "read", '{"path": "gone"}'),
            ToolCallPart("c4", "read", "{broken"),
        ],
    ),
    Message("r1", "tool", [ToolResultPart("c1", "bash", "one\n\x1b[31mtwo\x1b[0m\n", seconds=61)]),
    Message(
        "r2",
        "tool",
        [
            ToolResultPart(
                "c2",
                "edit",
                "ok",
                display={"kind": "diff", "text": "--- a\n+++ b\n@@ -1 +1,2 @@\n-x = old\n+x = new\n+more"},
            )
        ],
    ),
    Message("r3", "tool", [ToolResultPart("c3", "read", "no such file", is_error=True)]),
    Message("r4", "tool", [ToolResultPart("c4", "read", "[interrupted]")]),
]


@pytest.mark.quick
async def test_tool_calls_are_one_line_that_opens() -> None:
    app = Holder(tool_output="line")
    async with app.run_test(size=(60, 30)) as pilot:
        t = app.transcript
        t.load(TOOL_CALLS)
        await pilot.pause()
        lines = body(t)
        assert len(lines) == 4
        assert lines[0].startswith("  ✓ bash ls -la") and lines[0].endswith("2 lines · 1 min 1 s · ▸")
        assert lines[1].startswith("  ✓ edit x.py") and "+2 −1" in lines[1]
        assert lines[2].startswith("  ✗ read gone") and "no such file" in lines[2]
        assert lines[3].startswith("  ⊘ read {broken")
        t.toggle_tools()
        await pilot.pause()
        lines = body(t)
        for line in ("    │ command: ls -la", "    │ timeout: 3", "    │ two", "    1 - x = old", "    2 + more"):
            assert line in lines


async def test_of_a_closed_call_its_change_and_its_last_lines_are_seen() -> None:
    """Copying gives code without its numbers: with signs where lines were removed, else as it stands in the file."""
    app = Holder()
    async with app.run_test(size=(60, 40)) as pilot:
        t = app.transcript
        t.load(TOOL_CALLS)
        await pilot.pause()
        lines = body(t)
        assert lines[1:3] == ["    │ one", "    │ two"] and lines[3] == ""
        assert lines[5:8] == ["    1 - x = old", "    1 + x = new", "    2 + more"] and lines[8] == ""
        assert lines[9].startswith("  ✗ read gone") and lines[10].startswith("  ⊘ read"), "lines alone have no gap"
        rows = {slot.line.text: key(slot.cursor.entry, slot.cursor.piece, slot.line.row) for slot in t.slots}
        for first, copied in (("x = old", "-x = old\n+x = new\n+more"), ("x = new", "x = new\nmore")):
            span = Selection(Offset(0, rows[first]), Offset(99, rows["more"]))
            assert selected_text(t.document, span) == copied
        words = [text for slot in t.slots for text, style, _ in slot.line.segments if style.bgcolor and "o" not in text]
        assert "new" in words, "the word that changed is a piece of its own"


async def test_what_a_closed_call_leaves_out_is_counted_and_opens() -> None:
    app = Holder()
    async with app.run_test(size=(60, 60)) as pilot:
        t = app.transcript
        added = "\n".join(f"+line {n}" for n in range(50))
        long = "@@ -0,0 +1,2 @@\n+" + "x" * 1_000_000 + "\n+y"
        results = [
            ToolResultPart("c1", "write", "ok", display={"kind": "diff", "text": f"@@ -0,0 +1,50 @@\n{added}"}),
            ToolResultPart("c2", "bash", "\n".join(map(str, range(20))) + "\n[exit code 2]", True, {"exit_code": 2}),
            ToolResultPart("c3", "write", "ok", display={"kind": "diff", "text": long}),
        ]
        t.load([Message(f"r{n}", "tool", [result]) for n, result in enumerate(results)])
        await pilot.pause()
        lines = body(t)
        assert lines[20] == "    20 + line 19" and lines[21] == "    … +30 lines"
        assert lines[23].endswith("exit code 2 · ▸") and lines[24] == "    │ … +15 lines" and lines[29] == "    │ 19"
        assert len(lines) < 60, "a line without an end is cut"
        await pilot.click(Transcript, offset=(10, [slot.line.plain.strip() for slot in t.slots].index("… +30 lines")))
        await pilot.pause()
        assert any(slot.line.plain == "    50 + line 49" for slot in t.slots)


async def test_folding_holds_the_head_of_what_is_read() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        thought = "\n\n".join(f"thought {k}" for k in range(40))
        t.load([*chat(5), answer("said", "m", ReasoningPart(thought)), *chat(5)])
        t.toggle_reasoning()
        await pilot.pause()
        t.find("thought 20")
        await pilot.pause()
        assert any("thought 20" in line for line in screen(t))
        t.toggle_reasoning()
        await pilot.pause()
        assert "Thought" in "".join(screen(t)[:2])


@pytest.mark.quick
async def test_jumps_between_user_messages() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load(chat(10))
        await pilot.pause()
        assert t.jump_user(-1)
        assert "▌ question 9" in screen(t)[:2] or "▌ question 8" in screen(t)[:2]
        assert t.jump_user(-1) and t.jump_user(-1)
        assert "▌ question 6" in screen(t)[:2]
        assert t.jump_user(1)
        assert "▌ question 7" in screen(t)[:2]
        t.scroll_home(animate=False)
        assert not t.jump_user(-1)


@pytest.mark.quick
async def test_compactions_stand_where_they_happened_and_open() -> None:
    app = Holder()
    async with app.run_test(size=(70, 30)) as pilot:
        t = app.transcript
        messages = chat(2)
        for k, message in enumerate(messages):
            message.created = 10.0 * (k + 1)
        summary = user_message("")
        summary.id = "s"
        summary.parts = [SummaryPart("## Goal\n\nShip it.", "r")]
        record = CompactionRecord(
            "r", "o", "summary", ["u0", "a0"], created=25, summary_id="s", before_tokens=12_000, after_tokens=3_000
        )
        undone = CompactionRecord("r2", "o2", "summary", ["u0"], active=False, created=26)
        t.load(messages, [undone, record], {"s": summary})
        await pilot.pause()
        lines = body(t)
        at = next(k for k, line in enumerate(lines) if "Compacted" in line)
        assert lines[at] == "── ▸ Compacted · 2 messages summarised · ~12,000 → ~3,000 tokens"
        assert "question 0" in "".join(lines[:at]) and "question 1" in "".join(lines[at:])
        assert len([line for line in lines if "Compacted" in line]) == 1
        for opening in (lambda: pilot.click(t, offset=(6, screen(t).index(lines[at]))), lambda: pilot.press("enter")):
            t.focus()
            await opening()
            await pilot.pause()
            asked = app.posted.pop()
            assert isinstance(asked, ScreenAsked) and (asked.name, asked.key) == ("compact", "r")
        assert "  Ship it." not in body(t)
        assert t.find("ship it").total == 1 and "  Ship it." in body(t), "what is found in a summary is shown"
        await pilot.click(t, offset=(6, screen(t).index(next(line for line in screen(t) if "Compacted" in line))))
        await pilot.pause()
        assert "  Ship it." not in body(t)


async def test_what_was_said_beside_a_conversation_stays_when_that_is_shown_anew() -> None:
    app = Holder()
    async with app.run_test(size=(70, 60)) as pilot:
        t = app.transcript
        messages = chat(3)
        for k, message in enumerate(messages):
            message.created = 10.0 * (k + 1)
        record = CompactionRecord("r", "o", "summary", ["u0", "a0"], created=1000, before_tokens=9, after_tokens=3)
        t.add_notice("info", "before anything")
        t.load(messages[:2], same=True)
        t.add_notice("info", "after the first")
        for message in messages[2:]:
            t.add_message(message)
        t.add_notice("info", "renamed")
        t.add_record(record)
        t.add_notice("info", "said after the compaction")
        said = [line for line in body(t) if line.strip() and "Compacted" not in line]
        t.load(messages, [replace(record, active=False)], same=True)
        await pilot.pause()
        assert [line for line in body(t) if line.strip()] == said, "an undo takes its line alone"
        t.load(messages, [record], same=True)
        t.load(messages[:4], same=True)
        await pilot.pause()
        left = "\n".join(body(t))
        order = ("before anything", "question 0", "after the first", "question 1")
        assert sorted(order, key=left.index) == list(order)
        assert "question 2" not in left and "renamed" not in left, "a line goes with the message it followed"
        t.load(chat(1))
        await pilot.pause()
        assert "before anything" not in "\n".join(body(t)), "another session's"


async def test_what_was_said_beside_a_long_conversation_stays_above_what_is_drawn_first() -> None:
    app = Holder()
    async with app.run_test(size=(70, 20)) as pilot:
        t = app.transcript
        messages = chat(300)
        for k, message in enumerate(messages):
            message.created = 10.0 * (k + 1)
        t.add_notice("info", "before anything")
        t.load(messages[:4], same=True)
        t.add_notice("info", "after the second")
        for _ in range(2):
            t.load(messages, same=True)
            await pilot.pause()
        for text in ("before anything", "after the second"):
            t.find(text)
            while t.finder is not None and not t.finder.complete:
                await pilot.pause()
            assert t.finder is not None and t.finder.state.total == 1, text


async def test_long_questions_fold() -> None:
    app = Holder()
    async with app.run_test(size=(60, 60)) as pilot:
        t = app.transcript
        t.add_message(user_message("\n".join(f"row {k}" for k in range(100))))
        await pilot.pause()
        assert body(t)[-1] == "▌ ▸ 80 more lines"
        await pilot.press("enter")
        t.focus()
        await pilot.press("enter")
        await pilot.pause()
        t.scroll_end(animate=False)
        await pilot.pause()
        assert "▌ row 99" in screen(t)


async def test_a_conversation_that_is_reloaded_starts_anew() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load(chat(30))
        await pilot.pause()
        t.scroll_home(animate=False)
        t.load([user_message("fresh")])
        await pilot.pause()
        assert body(t) == ["▌ fresh"]
        assert t.follow
        t.clear()
        await pilot.pause()
        assert body(t) == []


def _todo(items: list[tuple[str, str]]) -> list[Message]:
    listed = [{"text": text, "status": status} for text, status in items]
    display = {"kind": "list", "summary": "", "text": "", "items": listed}
    result = ToolResultPart("c1", "todo", "The list is updated.", display=display)
    call = ToolCallPart("c1", "todo", '{"items": []}')
    return [Message("a", "assistant", [call]), Message("t", "tool", [result])]


async def test_a_todo_list_is_a_checklist_under_its_call() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        app.transcript.load(_todo([("read", "completed"), ("fix [b]it[/b]", "in_progress"), ("test", "pending")]))
        await pilot.pause()
        lines = body(app.transcript)
        assert "todo" in lines[0] and "1 of 3 done" in lines[0]
        assert [line.strip() for line in lines[1:]] == ["✓ read", "▶ fix [b]it[/b]", "○ test"]


async def test_a_long_todo_list_shows_where_the_work_is() -> None:
    items = [(f"item {n}", "completed" if n < 20 else "pending") for n in range(40)]
    app = Holder()
    async with app.run_test(size=(60, 60)) as pilot:
        app.transcript.load(_todo(items))
        await pilot.pause()
        lines = [line.strip() for line in body(app.transcript)[1:]]
        assert lines[0] == "✓ item 18" and lines[2] == "○ item 20" and lines[-1] == "… 33 more"
        app.transcript.toggle_tools()
        await pilot.pause()
        assert len(body(app.transcript)) == 41


async def test_a_refused_call_says_what_the_user_said() -> None:
    app = Holder()
    async with app.run_test(size=(80, 20)) as pilot:
        t = app.transcript
        calls = [ToolCallPart(f"c{n}", "bash", '{"command": "rm x"}') for n in range(2)]
        t.load([Message("a", "assistant", [*calls])])
        first = "The user refused this call. Do not try it again as is."
        for n, text in enumerate((first, "The user refused this call. They said: use trash")):
            t.add_message(Message(f"t{n}", "tool", [ToolResultPart(f"c{n}", "bash", text, is_error=True)]))
        await pilot.pause()
        lines = body(t)
        assert "refused ·" in lines[0] and "Do not" not in lines[0]
        assert "refused: use trash" in lines[1]


async def test_a_call_keeps_its_name_and_a_subagent_its_newest_line() -> None:
    app = Holder()
    async with app.run_test(size=(80, 20)) as pilot:
        t = app.transcript
        t.load([Message("a", "assistant", [ToolCallPart("c1", "subagent", '{"description": "look"}')])])
        t.tool_started("c1", "look around")
        t.tool_output("c1", "read a.py\nread b.py\n")
        await pilot.pause()
        assert "subagent look around" in body(t)[0] and "read b.py" in body(t)[0]
        t.add_message(Message("t", "tool", [ToolResultPart("c1", "subagent", "done")]))
        await pilot.pause()
        assert "subagent look around" in body(t)[0] and "read b.py" not in body(t)[0]


async def test_the_users_own_command_shows_what_it_printed_once() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load([])
        t.tool_started("sh", "! echo hi")
        t.tool_output("sh", "hi\n")
        await pilot.pause()
        assert any("! echo hi" in line for line in body(t))
        output = AttachmentPart("output", "text/plain", text="hi\nthere\n")
        message = user_message("!echo hi", attachments=[output])
        t.add_message(message)
        await pilot.pause()
        live = body(t)
        assert sum("echo hi" in line for line in live) == 1
        assert [line.strip() for line in live][-2:] == ["hi", "there"]
        t.load([message])
        await pilot.pause()
        assert body(t) == live
        long = "".join(f"line {n}\n" for n in range(30)) + "[exit code 1]"
        t.load([user_message("!make", attachments=[AttachmentPart("output", "text/plain", text=long)])])
        await pilot.pause()
        seen = [line.strip() for line in body(t)]
        assert seen[-16:] == ["… +16 lines", *(f"line {n}" for n in range(16, 30)), "[exit code 1]"]


@pytest.mark.parametrize(("kind", "title"), [("drop", "Dropped"), ("restore", "Restored")])
async def test_an_edit_that_was_undone_says_so(kind: Literal["drop", "restore"], title: str) -> None:
    app = Holder()
    async with app.run_test(size=(70, 20)) as pilot:
        t = app.transcript
        record = CompactionRecord("r", "o", kind, ["u0"], created=16, reason="edit")
        for shown in (record, replace(record, active=False)):
            t.load(chat(1), [shown], same=True)
            await pilot.pause()
            line = next(line for line in body(t) if title in line)
            assert line.rstrip().endswith("1 message" if shown.active else "1 message · undone")
