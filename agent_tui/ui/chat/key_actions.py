"""The actions of the main screen's keys: interrupt, close, clear, quit; find in the transcript; change the mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from agent_tui.config import NEXT_MODES
from agent_tui.errors import AgentError
from agent_tui.ui.chat.view import ChatPart
from agent_tui.ui.keys import PAUSE, TWICE

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.ui.chat.composing import Copying, Pasting
    from agent_tui.ui.chat.sending import Sender
    from agent_tui.ui.chat.session import SessionView
    from agent_tui.ui.chat.view import MainView
    from agent_tui.ui.transcript import FindState
    from agent_tui.ui.widgets.find import FindBar


class TypedAhead(ChatPart):
    """What is typed goes where its beginning went: a screen that opens late, amid a word, gets nothing of it."""

    def __init__(self, view: MainView, pasting: Pasting) -> None:
        super().__init__(view)
        self._pasting = pasting
        self._typed: float | None = None

    def takes(self, event: events.Key | events.Paste) -> bool:
        """Returns whether the event is dealt with. What comes while the conversation has the focus goes to the prompt
        by itself, which is given the focus."""
        view, character = self._view, event.character if isinstance(event, events.Key) and event.is_printable else ""
        ahead = len(self.app.screen_stack) > 1
        if ahead and not self._goes_on:
            return False
        self._typed = view.clock() if character or isinstance(event, events.Paste) else None
        if not ahead:
            if view.furnished and self.app.focused is view.transcript and self._is_text(event):
                self.app.screen.set_focus(view.prompt)
            return False
        if isinstance(event, events.Paste):
            self._pasting.pasted(event.text)
        elif character:
            view.prompt.type_here(character)
        # Enter ends the word and sends nothing: who typed it did not see the screen.
        return bool(character) or isinstance(event, events.Paste) or event.key == "enter"

    @property
    def _goes_on(self) -> bool:
        since = None if self._view.prompt.is_empty else self._typed
        return since is not None and self._view.clock() - since < PAUSE

    def _is_text(self, event: events.Key | events.Paste) -> bool:
        return isinstance(event, events.Paste) or (event.is_printable and event.key not in self.app.active_bindings)


class Interrupts(ChatPart):
    """Knows when each key was pressed last: twice within ``TWICE`` seconds means more than once."""

    def __init__(self, view: MainView, sender: Sender, finding: Finding, copying: Copying) -> None:
        super().__init__(view)
        self._sender = sender
        self._finding = finding
        self._copying = copying
        self._cancelled_at: float | None = None
        self._escaped_at: tuple[float, int] | None = None
        self.keys = 0
        """Keys pressed so far: Esc twice is twice in a row."""

    @property
    def working(self) -> bool:
        return bool(self._sender.preparing) or self._view.holder.busy

    def interrupt(self) -> bool:
        """Returns whether something was going on."""
        if self._sender.cancel():
            return True
        interrupted = self._agent is not None and self._agent.turns.interrupt()
        if interrupted:
            self._view.activity.begin("Interrupting", "")
        return interrupted

    def to_background(self) -> None:
        """Ctrl+B: commands that are waited for go on in the background."""
        try:
            moved = self._agent is not None and self._agent.background.move()
        except AgentError as error:
            self._view.hint(str(error))
        else:
            self._view.hint("" if moved else "No command is running")

    def cancel(self) -> None:
        """Ctrl+C: copy a selection, else interrupt, else clear, else twice quits. Keys typed before it go first."""
        self._view.prompt.call_later(self._cancel)

    def _cancel(self) -> None:
        view = self._view
        now, before = view.clock(), self._cancelled_at
        self._cancelled_at = None
        selected = view.prompt.selected_text or (view.furnished and view.transcript.selected_text())
        if selected:
            self._copying.copy(selected, "the selection")
            view.transcript.clear_selection()
        elif self.working:
            self.interrupt()
        elif not view.prompt.is_empty:
            view.prompt.clear_text()
            view.hint("Cleared; ↑ brings it back")
        elif before is not None and now - before <= TWICE:
            view.app.leave()
        else:
            self._cancelled_at = now
            view.hint("Press Ctrl+C again to quit", TWICE)

    def escape(self) -> None:
        """Esc: close what is open, else interrupt, else twice on empty goes back to an earlier message."""
        view = self._view
        now, before = view.clock(), self._escaped_at
        self._escaped_at = None
        if self._finding.close():
            return
        if self.working:
            self.interrupt()
        elif not view.prompt.has_focus:
            view.transcript.clear_selection()
            view.prompt.focus()
        elif view.prompt.is_empty:
            if before is not None and now - before[0] <= TWICE and self.keys - before[1] <= 1:
                view.hint("")
                view.app.open_screen("rewind")
            else:
                self._escaped_at = now, self.keys
                view.hint("Press Esc again to rewind to an earlier message", TWICE)


class Finding(ChatPart):
    """Opens and closes the bar and shows how far the search is."""

    @property
    def bar(self) -> FindBar | None:
        from agent_tui.ui.widgets.find import FindBar

        return next(iter(self._view.screen.query(FindBar)), None)

    async def open(self) -> None:
        from agent_tui.ui.widgets.find import FindBar

        bar = self.bar
        if bar is None:
            await self._view.screen.mount(FindBar(), before=self._view.queue_view)
        elif bar.take_keys():
            self.step(1)

    async def go_on(self, query: str, message_id: str | None) -> None:
        """Opens the bar with what was searched in all sessions, at that message where it is shown. Typing still goes to
        the prompt."""
        from agent_tui.text.search import search_words
        from agent_tui.ui.widgets.find import FindBar

        bar = self.bar
        if bar is not None:
            await bar.remove()
        await self._view.screen.mount(FindBar(query), before=self._view.queue_view)
        self._view.prompt.focus()
        self.show(self._view.transcript.find_in(message_id, query, search_words(query)))

    def close(self) -> bool:
        """Closes the bar; False when there is none."""
        bar = self.bar
        if bar is None:
            return False
        bar.remove()
        self._view.transcript.clear_find()
        self._view.prompt.focus()
        return True

    def search(self, text: str) -> None:
        """Looks for a text from now on; for nothing when it is empty."""
        if text:
            self.show(self._view.transcript.find(text))
        else:
            from agent_tui.ui.transcript import FindState

            self._view.transcript.clear_find()
            self.show(FindState("", 0, 0, True))

    def step(self, by: int) -> None:
        transcript = self._view.transcript
        self.show(transcript.find_next() if by > 0 else transcript.find_prev())

    def show(self, state: FindState) -> None:
        if (bar := self.bar) is not None:
            bar.show_count(state.current, state.total, state.complete)


def next_mode(agent: Agent, session: SessionView, view: MainView) -> None:
    """Goes to the mode after this one and says what it means."""
    from agent_tui.commands.project import MODE_HELP

    at = NEXT_MODES.index(agent.mode.now) + 1 if agent.mode.now in NEXT_MODES else 0
    following = NEXT_MODES[at % len(NEXT_MODES)]
    agent.mode.set(following)
    session.facts_changed()
    view.hint(f"Permission mode {following}: {MODE_HELP[following]}")
