"""What waits to be sent: edit, order, send or drop each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType

from agent_tui.models.events import Event, QueueChanged, WaitingMessage
from agent_tui.text.cells import fit, shorten
from agent_tui.text.clean import one_line
from agent_tui.ui.draw import Piece
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.queue import word

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent

EXPLAINED = {
    "queued": "Goes out after the running turn; Ctrl+S sends it into that turn, before its next step.",
    "steer": "Goes in before the next step of the running turn.",
    "held": "Was not sent when this session was last left. It goes nowhere by itself.",
    "failed": "Could not be sent. It goes nowhere by itself.",
    "unanswered": "Was sent, and its request failed: it goes along with your next message.",
}
PAUSED = "Waits for your word: nothing goes out by itself since the turn was ended."


class QueuePicker(Picker[WaitingMessage, str]):
    """Answers the id of one that is to be edited. The list follows what happens meanwhile."""

    TITLE_TEXT = "What waits to be sent"
    PLACEHOLDER = "search"
    HINT = "Enter edit · Ctrl+S send · Ctrl+X drop · Alt+↑↓ order · Esc close"
    EMPTY = "Nothing waits."
    PREVIEW_LINES = 2
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send now", show=False, priority=True),
        Binding("ctrl+x", "drop", "Drop", show=False, priority=True),
        Binding("alt+up,shift+up", "order(-1)", "Earlier", show=False, priority=True),
        Binding("alt+down,shift+down", "order(1)", "Later", show=False, priority=True),
    ]

    def __init__(self, agent: Agent, paused: bool) -> None:
        super().__init__()
        self.agent = agent
        self._paused = paused
        self._said = ""
        self._unsubscribe: Callable[[], None] = lambda: None

    def on_mount(self) -> None:
        self._unsubscribe = self.agent.subscribe(self._heard)

    def on_unmount(self) -> None:
        self._unsubscribe()

    def _heard(self, event: Event) -> None:
        if isinstance(event, QueueChanged):
            self._paused = event.paused
            self.call_later(self.look_again)

    def look_again(self, on: str = "") -> None:
        """Shows what waits now; the cursor stays on its message, or goes to that of the id ``on``."""
        if not (self.is_attached and self.is_mounted):
            return
        at = on or (self.current.id if self.current is not None else "")
        self.shown = self.entries(self.searched)
        self.say_empty()
        index = next((n for n, waits in enumerate(self.shown) if waits.id == at), None)
        self.rows.set_count(len(self.shown), index)

    def entries(self, search: str) -> Sequence[WaitingMessage]:
        return [waits for waits in self.agent.waiting.listed if search.lower() in waits.text.lower()]

    def draw(self, entry: WaitingMessage, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        name, color = word(entry, self._paused)
        return [
            (fit(name, 12), paint(color)),
            (shorten(one_line(entry.text, 500), max(1, width - 12)), paint("foreground", bold=here)),
        ]

    def width_of(self, entry: WaitingMessage) -> int:
        return 12 + cell_len(one_line(entry.text, 500))

    def preview(self, entry: WaitingMessage) -> str:
        paused = self._paused and entry.kind in ("queued", "steer")
        lines = [self._said, PAUSED if paused else EXPLAINED[entry.kind], one_line(entry.why, 500)]
        return "\n".join(line for line in lines if line)

    def chosen(self, entry: WaitingMessage) -> None:
        self.dismiss(entry.id)

    def action_send(self) -> None:
        if (entry := self.current) is None:
            return
        if self.agent.turns.send_waiting(entry.id):
            if not self.agent.waiting.listed:
                self.dismiss(None)
            self._say("")
        else:
            self._say("It cannot be sent now: something else runs.")

    def action_drop(self) -> None:
        """It stays in the prompt's history, where every message has been since it was typed."""
        if (entry := self.current) is None:
            return
        if self.agent.turns.take_back(entry.id) is None:
            self._say("It cannot be dropped now.")
        else:
            self._say("Dropped. Ctrl+R in the prompt finds its text again.")

    def action_order(self, by: int) -> None:
        if (entry := self.current) is not None and not self.searched:
            moved = self.agent.waiting.move(entry.id, by)
            self._say("" if moved else "It cannot go any earlier." if by < 0 else "It cannot go any later.", entry.id)

    def _say(self, text: str, on: str = "") -> None:
        """What came of a key, above what is known of the row."""
        self._said = text
        self.look_again(on)
        self._preview()
