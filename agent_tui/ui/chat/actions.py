"""What the keys of the main screen do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_tui.config import PERMISSION_MODES
from agent_tui.ui.chat.base import BaseApp
from agent_tui.ui.keys import TWICE
from agent_tui.ui.terminal import control as terminal

if TYPE_CHECKING:
    from agent_tui.ui.chat.sender import Sender
    from agent_tui.ui.transcript import messages as posted
    from agent_tui.ui.widgets.find import FindBar


EARLY = ("cancel", "escape", "focus_prompt", "suspend_process")
"""What can be done while the first frame stands alone."""


class Actions(BaseApp):
    """Actions by the names that the bindings use."""

    sender: Sender

    _cancelled_at: float | None = None
    _escaped_at: float | None = None

    # Interrupt, close, quit

    @property
    def working(self) -> bool:
        """Whether there is something to interrupt."""
        return bool(self.sender.preparing) or (self.agent is not None and self.agent.busy)

    def action_interrupt(self) -> None:
        if self.sender.cancel():
            return
        if self.agent is not None and self.agent.interrupt():
            self.activity.begin("Interrupting", "")

    def action_cancel(self) -> None:
        """Ctrl+C: copy a selection, else interrupt, else clear, else twice quits.

        The key comes here first. What was typed before it has its turn before it is carried out.
        """
        self.prompt.call_later(self._cancel)

    def _cancel(self) -> None:
        now, before = self.clock(), self._cancelled_at
        self._cancelled_at = None
        selected = self.prompt.selected_text or (self.furnished and self.transcript.selected_text())
        if selected:
            self.copy(selected, "the selection")
            self.transcript.clear_selection()
        elif self.working:
            self.action_interrupt()
        elif not self.prompt.is_empty:
            self.prompt.set_text("")
            self.hint("Cleared; Ctrl+_ brings it back")
        elif before is not None and now - before <= TWICE:
            self.leave()
        else:
            self._cancelled_at = now
            self.hint("Ctrl+C again quits")

    def action_escape(self) -> None:
        """Esc: close what is open, else interrupt, else twice on empty goes back to an earlier message."""
        now, before = self.clock(), self._escaped_at
        self._escaped_at = None
        if self.close_find():
            return
        if self.working:
            self.action_interrupt()
        elif not self.prompt.has_focus:
            self.transcript.clear_selection()
            self.prompt.focus()
        elif self.prompt.is_empty:
            if before is not None and now - before <= TWICE:
                self.hint("")
                self.open_screen("rewind")
            else:
                self._escaped_at = now
                self.hint("Esc again goes back to an earlier message")

    def leave(self) -> None:
        raise NotImplementedError

    def action_focus_prompt(self) -> None:
        self.prompt.focus()

    # The transcript

    def action_toggle_tools(self) -> None:
        self.hint("Tool output open" if self.transcript.toggle_tools() else "Tool output closed")

    def action_toggle_reasoning(self) -> None:
        self.hint("Reasoning shown" if self.transcript.toggle_reasoning() else "Reasoning hidden")

    def action_redraw(self) -> None:
        """Writes every cell again: what stands on the terminal may be something else's."""
        self.refresh(layout=True)
        screen = self.screen
        self.call_after_refresh(lambda: self._display(screen, screen._compositor.render_update(full=True)))

    def action_scroll_transcript(self, pages: int) -> None:
        transcript = self.transcript
        if pages >= 1000:
            transcript.follow_end()
        elif pages <= -1000:
            transcript.scroll_home(animate=False)
        else:
            transcript.scroll_relative(y=pages * max(1, transcript.size.height - 2), animate=False)

    def action_jump(self, by: int) -> None:
        if not self.transcript.jump_user(by):
            self.hint("No question further up" if by < 0 else "No question further down")

    # Find

    @property
    def find_bar(self) -> FindBar | None:
        found = self.screen_stack[0].query("#find")
        return found.first() if found else None  # type: ignore[return-value]

    async def action_find(self) -> None:
        from agent_tui.ui.widgets.find import FindBar

        if self.find_bar is None:
            await self.screen_stack[0].mount(FindBar(), before="#queue")

    def close_find(self) -> bool:
        """Closes the find bar; False when there is none."""
        bar = self.find_bar
        if bar is None:
            return False
        bar.remove()
        self.transcript.clear_find()
        self.prompt.focus()
        return True

    def _show_find(self, current: int, total: int, complete: bool) -> None:
        bar = self.find_bar
        if bar is not None:
            bar.show_count(current, total, complete)

    def on_find_bar_query(self, event: FindBar.Query) -> None:
        if event.text:
            state = self.transcript.find(event.text)
            self._show_find(state.current, state.total, state.complete)
        else:
            self.transcript.clear_find()
            self._show_find(0, 0, True)

    def on_find_bar_step(self, event: FindBar.Step) -> None:
        state = self.transcript.find_next() if event.by > 0 else self.transcript.find_prev()
        self._show_find(state.current, state.total, state.complete)

    def on_find_bar_closed(self) -> None:
        self.close_find()

    def on_find_changed(self, event: posted.FindChanged) -> None:
        self._show_find(event.state.current, event.state.total, event.state.complete)

    # Mode, screens, clipboard

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """On top of another screen Shift+Tab is that screen's; before the screen is complete little can be done."""
        if not self.furnished and action not in EARLY:
            return False
        return len(self.screen_stack) == 1 if action == "next_mode" else True

    def action_next_mode(self) -> None:
        agent = self.agent
        if agent is None:
            return
        following = PERMISSION_MODES[(PERMISSION_MODES.index(agent.mode) + 1) % len(PERMISSION_MODES)]
        agent.set_mode(following)
        self.facts_changed()
        from agent_tui.commands.project import MODE_HELP

        self.hint(f"Permission mode {following}: {MODE_HELP[following]}")

    def facts_changed(self) -> None:
        raise NotImplementedError

    def action_palette(self) -> None:
        self.open_screen("palette")

    def open_screen(self, name: str, data: str = "") -> None:
        """Opens a screen by name; what it answers is carried out here."""
        if len(self.screen_stack) > 1 and name == "palette":
            return
        from agent_tui.ui.chat.opening import open_screen

        open_screen(self, name, data)

    def copy(self, text: str, what: str) -> None:
        """Into the clipboard: through the terminal, and the platform's own where there is one."""
        self.copy_to_clipboard(text)
        self.hint(f"Copied {what}")
        if not self.is_headless:
            self.run_worker(asyncio.to_thread(terminal.copy_native, text), exit_on_error=False)
