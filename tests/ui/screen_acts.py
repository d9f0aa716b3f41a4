"""What happens to a screen, in any order: answers, dialogs, scrolling, resizing, other programs."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual import events
from textual.geometry import Offset
from textual.selection import Selection

from agent_tui.models.messages import Message, Part, ReasoningPart, TextPart, user_message
from agent_tui.models.requests import Delta
from agent_tui.ui.flow.paint import key
from agent_tui.ui.theme import load_themes
from tests.ui.drawn import Drawn
from tests.ui.transcripts import chat

PIECES = (
    "Some **bold** words and `code`, ",
    "\n\n",
    "\n- an item\n- another, which is so long that it is wrapped at the edge of nearly every screen there is\n",
    "\n```python\ndef f(x):\n    return x + 1\n```\n",
    "\n| a | b |\n|---|---|\n| 1 | 漢字 |\n\n",
    "日本語のとても長い文章がここに続きます、",
    "e\u0301 \U0001f468\u200d\U0001f469 ",
    "[a link](https://example.org/a?b=c) ",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \t tab ",
    "\n# A heading\n",
    "\n---\n",
)
THEMES = [theme for _, theme in sorted(load_themes(Path("/nonexistent")).themes.items()) if not theme.ansi]


class Acts:
    """Things that happen, each one a method; which of them comes next is random."""

    def __init__(self, shown: Drawn, seed: int) -> None:
        self.shown = shown
        self.app, self.pilot = shown.run.app, shown.run.pilot
        self.random = random.Random(seed)
        self.number = 0
        self.streaming = False

    async def one(self) -> str:
        names = [name for name in dir(Acts) if name.startswith("do_")]
        name = self.random.choice(names + ["do_stream"] * 8 + ["do_scroll"] * 4)
        act: Callable[[], Awaitable[None]] = getattr(self, name)
        await act()
        return name

    async def do_stream(self) -> None:
        if not self.streaming:
            self.number += 1
            self.streaming = True
            self.app.transcript.begin_answer(Message(f"a{self.number}", "assistant", status="streaming"))
        for _ in range(self.random.randint(1, 6)):
            text = self.random.choice(PIECES)
            self.app.transcript.apply_delta(f"a{self.number}", Delta(1, "text", text))

    async def do_end(self) -> None:
        if self.streaming:
            self.streaming = False
            text = "".join(self.random.choice(PIECES) for _ in range(self.random.randint(1, 30)))
            parts: list[Part] = [ReasoningPart("I thought about it.\n" * 4), TextPart(text)]
            self.app.transcript.end_answer(Message(f"a{self.number}", "assistant", parts))

    async def do_message(self) -> None:
        self.number += 1
        message = user_message("".join(self.random.choice(PIECES) for _ in range(3)))
        message.id = f"u{self.number}"
        self.app.transcript.add_message(message)

    async def do_notice(self) -> None:
        self.app.transcript.add_notice("warning", self.random.choice(PIECES))

    async def do_load(self) -> None:
        self.streaming = False
        self.app.transcript.load(chat(self.random.randint(1, 30)))

    async def do_scroll(self) -> None:
        transcript, how = self.app.transcript, self.random.randrange(7)
        if how == 0:
            transcript.scroll_home(animate=False)
        elif how == 1:
            transcript.scroll_end(animate=False)
        elif how == 2:
            transcript.scroll_page_up(animate=False)
        elif how == 3:
            transcript.scroll_page_down(animate=False)
        else:
            transcript.scroll_relative(y=self.random.choice((-3, -2, -1, 1, 2, 3)), animate=False)

    async def do_type(self) -> None:
        await self.pilot.press(*self.random.choice(("abc", "漢字", ["ctrl+j", "x"], ["ctrl+u"], ["backspace"] * 3)))

    async def do_resize(self) -> None:
        size = self.random.randint(20, 110), self.random.randint(6, 40)
        self.shown.terminal.resize(*size)
        await self.pilot.resize_terminal(*size)

    async def do_resize_and_back(self) -> None:
        """The terminal was of another size for a moment; the app hears only of the size it has again."""
        size = self.app.size
        self.shown.terminal.resize(size.width - 5, size.height - 3)
        self.shown.terminal.resize(*size)
        self.app.post_message(events.Resize(size, size))

    async def do_fold(self) -> None:
        self.app.action_toggle_reasoning()
        self.app.action_toggle_tools()

    async def do_select(self) -> None:
        transcript = self.app.transcript
        if slots := transcript.slots:
            first, last = sorted(self.random.choices(slots, k=2), key=lambda slot: slot.cursor)
            begin, end = (key(s.cursor.entry, s.cursor.piece, s.line.row) for s in (first, last))
            selection = Selection(Offset(self.random.randint(0, 5), begin), Offset(self.random.randint(0, 9), end))
            self.app.view.screen.selections = {transcript: selection}

    async def do_unselect(self) -> None:
        self.app.transcript.clear_selection()

    async def do_find(self) -> None:
        self.app.transcript.find(self.random.choice(("an", "code", "answer", "日")))
        self.app.transcript.find_prev()

    async def do_stop_finding(self) -> None:
        self.app.transcript.clear_find()

    async def do_activity(self) -> None:
        self.app.view.hint("A hint")
        self.app.view.phase(self.random.choice(("Working", "Answering")))

    async def do_rest(self) -> None:
        self.app.activity.end()

    async def do_dialog(self) -> None:
        """Something lies over the transcript, which goes on streaming beneath."""
        self.app.open_screen(self.random.choice(("help", "palette", "themes", "context")))
        await self.shown.settle()
        self.shown.check("a dialog opened")
        await self.do_stream()
        await self.shown.settle()
        self.shown.check("streamed beneath a dialog")
        await self.pilot.press("down", "escape")
        await self.shown.run.until(lambda: len(self.app.screen_stack) == 1)

    async def do_theme(self) -> None:
        theme = self.random.choice(THEMES)
        self.app.register_theme(theme)
        self.app.theme = theme.name

    async def do_redraw(self) -> None:
        self.app.action_redraw()

    async def do_spoil(self) -> None:
        """Something else wrote to the terminal, and the user asks for the screen again."""
        self.shown.terminal.feed("\x1b[3;3H?????")
        self.app.action_redraw()
