"""Finding in the transcript: between the line one types into and what is searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.ui.chat.needs import Closes, FindsWords
    from agent_tui.ui.chat.stage import Stage
    from agent_tui.ui.transcript import FindState
    from agent_tui.ui.widgets.find import FindBar


class Finding:
    """Opens and closes the bar and shows how far the search is."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @property
    def bar(self) -> FindBar | None:
        from agent_tui.ui.widgets.find import FindBar

        return next(iter(self._stage.screen.query(FindBar)), None)

    async def open(self) -> None:
        from agent_tui.ui.widgets.find import FindBar

        if self.bar is None:
            await self._stage.screen.mount(FindBar(), before=self._stage.queue_view)

    async def go_on(self, query: str, message_id: str | None) -> None:
        """Goes on here with what was searched in all sessions: opens the bar with it, at that message where it is
        shown."""
        from agent_tui.text.search import search_words
        from agent_tui.ui.widgets.find import FindBar

        bar = self.bar
        if bar is not None:
            await bar.remove()
        await self._stage.screen.mount(FindBar(query), before=self._stage.queue_view)
        self.show(self._stage.transcript.find_in(message_id, query, search_words(query)))

    def close(self) -> bool:
        """Closes the bar; False when there is none."""
        bar = self.bar
        if bar is None:
            return False
        bar.remove()
        self._stage.transcript.clear_find()
        self._stage.prompt.focus()
        return True

    def search(self, text: str) -> None:
        """Looks for a text from now on; for nothing when it is empty."""
        if text:
            self.show(self._stage.transcript.find(text))
        else:
            self._stage.transcript.clear_find()
            self._show(0, 0, True)

    def step(self, by: int) -> None:
        """To the next match, or the one before."""
        transcript = self._stage.transcript
        self.show(transcript.find_next() if by > 0 else transcript.find_prev())

    def show(self, state: FindState) -> None:
        self._show(state.current, state.total, state.complete)

    def _show(self, current: int, total: int, complete: bool) -> None:
        bar = self.bar
        if bar is not None:
            bar.show_count(current, total, complete)


_CLOSES: type[Closes] = Finding
_FINDS: type[FindsWords] = Finding
