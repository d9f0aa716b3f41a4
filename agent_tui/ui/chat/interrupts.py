"""Ctrl+C and Esc: interrupt, close, clear, quit, whatever fits what goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_tui.ui.keys import TWICE

if TYPE_CHECKING:
    from agent_tui.ui.chat.host import Leaves, OpensScreens
    from agent_tui.ui.chat.needs import Closes, Copies, GivesBack
    from agent_tui.ui.chat.seat import Seat
    from agent_tui.ui.chat.stage import Stage


class Interrupts:
    """Knows when each key was pressed last: twice within ``TWICE`` seconds means more than once."""

    def __init__(
        self,
        seat: Seat,
        stage: Stage,
        sender: GivesBack,
        finding: Closes,
        screens: OpensScreens,
        copying: Copies,
        leaves: Leaves,
        clock: Callable[[], float],
    ) -> None:
        self._seat = seat
        self._stage = stage
        self._sender = sender
        self._finding = finding
        self._screens = screens
        self._copying = copying
        self._leaves = leaves
        self._clock = clock
        self._cancelled_at: float | None = None
        self._escaped_at: float | None = None

    @property
    def working(self) -> bool:
        """Whether there is something to interrupt."""
        return self._sender.is_preparing or self._seat.busy

    def interrupt(self) -> None:
        if self._sender.cancel():
            return
        agent = self._seat.agent
        if agent is not None and agent.turns.interrupt():
            self._stage.activity.begin("Interrupting", "")

    def cancel(self) -> None:
        """Ctrl+C: copy a selection, else interrupt, else clear, else twice quits.

        The key comes here first. What was typed before it has its turn before it is carried out.
        """
        self._stage.prompt.call_later(self._cancel)

    def _cancel(self) -> None:
        stage = self._stage
        now, before = self._clock(), self._cancelled_at
        self._cancelled_at = None
        selected = stage.prompt.selected_text or (stage.furnished and stage.transcript.selected_text())
        if selected:
            self._copying.copy(selected, "the selection")
            stage.transcript.clear_selection()
        elif self.working:
            self.interrupt()
        elif not stage.prompt.is_empty:
            stage.prompt.clear_text()
            stage.hint("Cleared; ↑ brings it back")
        elif before is not None and now - before <= TWICE:
            self._leaves.leave()
        else:
            self._cancelled_at = now
            stage.hint("Ctrl+C again quits", TWICE)

    def escape(self) -> None:
        """Esc: close what is open, else interrupt, else twice on empty goes back to an earlier message."""
        stage = self._stage
        now, before = self._clock(), self._escaped_at
        self._escaped_at = None
        if self._finding.close():
            return
        if self.working:
            self.interrupt()
        elif not stage.prompt.has_focus:
            stage.transcript.clear_selection()
            stage.prompt.focus()
        elif stage.prompt.is_empty:
            if before is not None and now - before <= TWICE:
                stage.hint("")
                self._screens.open_screen("rewind")
            else:
                self._escaped_at = now
                stage.hint("Esc again goes back to an earlier message", TWICE)
