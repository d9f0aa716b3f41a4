"""Find in the transcript: a line with a count, next and previous; Esc closes it."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from agent_tui.records import dataclass
from agent_tui.ui.safety import Guarded


class FindBar(Guarded, Horizontal):
    """Posts ``Query`` as the text changes, ``MoveTo`` and ``Closed``. A ``text`` to begin with is looked for already,
    and the keys stay with the prompt until someone takes them here."""

    DEFAULT_CSS = """
    FindBar { height: 1; background: $surface; padding: 0 1; }
    FindBar .label { width: auto; color: $primary; text-style: bold; background: $surface; }
    FindBar Input { width: 1fr; height: 1; border: none; background: $surface; padding: 0 1; }
    FindBar Input:focus { border: none; }
    FindBar .count { width: auto; color: $muted; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", show=False),
        Binding("down,ctrl+f,f3", "step(1)", "Next", show=False),
        Binding("up,shift+f3,ctrl+b", "step(-1)", "Previous", show=False),
    ]

    @dataclass
    class Query(Message):
        text: str

    @dataclass
    class MoveTo(Message):
        by: int

    class Closed(Message):
        pass

    def __init__(self, text: str = "") -> None:
        super().__init__(id="find")
        self._text = text

    def compose(self) -> ComposeResult:
        yield Static(Content("Find words" if self._text else "Find"), classes="label")
        yield Input(self._text, placeholder="text · Enter/↓ next · ↑ previous · Esc close")
        yield Static(Content(""), classes="count")

    def on_mount(self) -> None:
        if not self._text:
            self.query_one(Input).focus()

    def take_keys(self) -> bool:
        """Typing goes here from now on; False where it did."""
        line = self.query_one(Input)
        had = line.has_focus
        line.focus()
        return not had

    def show_count(self, current: int, total: int, complete: bool) -> None:
        more = "" if complete else "+"
        text = f"{current} of {total}{more}" if total else "no matches" if complete else "searching…"
        if total and not self.query_one(Input).has_focus:
            text += " · Ctrl+F next · Esc close"
        self.query_one(".count", Static).update(Content(text if self.query_one(Input).value else ""))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value == self._text:
            return
        if self._text:
            # Words came from elsewhere; what is typed here is looked for as it is.
            self.query_one(".label", Static).update(Content("Find"))
        self._text = ""
        self.post_message(self.Query(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.MoveTo(1))

    def action_step(self, by: int) -> None:
        self.post_message(self.MoveTo(by))

    def action_close(self) -> None:
        self.post_message(self.Closed())
