"""The widgets of the main screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_tui.ui.prompt.widget import Prompt
from agent_tui.ui.widgets.lines import Activity, StatusLine

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.widget import Widget

    from agent_tui.config import UiConfig
    from agent_tui.history import History
    from agent_tui.ui.chat.needs import Tells
    from agent_tui.ui.prompt.completing import Completions
    from agent_tui.ui.transcript import Transcript
    from agent_tui.ui.widgets.own_line import OwnLine
    from agent_tui.ui.widgets.queue import Queue

ROOMY = 28
"""From this many lines on, the prompt has air above and below."""


ASKS = "-asks"
"""The screen's class while a question stands above the prompt: its frame is distance enough."""


class Stage:
    """What is on the main screen, and lines for the user on it.

    Only what the first frame shows is made at once. ``transcript``, ``queue_view`` and ``completions`` are there from
    ``furnish`` on, which comes right after the first frame: their modules cost as much time as the whole start of the
    prompt.
    """

    transcript: Transcript
    queue_view: Queue
    completions: Completions
    furnished = False

    def __init__(self, settings: UiConfig, history: History, clock: Callable[[], float]) -> None:
        self._settings = settings
        self.activity = Activity(settings.reduced_motion, clock)
        self.prompt = Prompt(history)
        self.status = StatusLine()
        self._queue_lines = 4

    @property
    def screen(self) -> Screen[object]:
        """The main screen, whatever lies on top of it."""
        return self.prompt.screen

    @property
    def turn_cost(self) -> bool:
        """Whether each turn ends with what it cost."""
        return self._settings.turn_cost

    async def furnish(self) -> None:
        """Puts transcript, queue and completions around the prompt."""
        from agent_tui.ui.prompt.completing import Completions
        from agent_tui.ui.transcript import Transcript
        from agent_tui.ui.widgets.queue import Queue

        ui, screen = self._settings, self.screen
        self.transcript = Transcript(
            id="transcript", show_reasoning=ui.show_reasoning, reduced_motion=ui.reduced_motion
        )
        self.queue_view = Queue()
        self.completions = Completions()
        await screen.query("#room").remove()
        await screen.mount_all([self.transcript, self.queue_view], before=self.activity)
        await screen.mount(self.completions, before=self.prompt)
        self.prompt.complete_with(self.completions)
        self.queue_view.set_limit(self._queue_lines)
        self.furnished = True

    async def own_line(self) -> OwnLine:
        """The line below the status line that belongs to the user, made when first asked for."""
        from agent_tui.ui.widgets.own_line import OwnLine

        line = OwnLine()
        await self.screen.mount(line, after=self.status)
        return line

    def arrange(self, height: int) -> None:
        """The screen has ``height`` lines now."""
        self.prompt.set_class(height >= ROOMY, "-roomy")
        self._queue_lines = 0 if height < 8 else 1 if height < 14 else 4
        if self.furnished:
            self.queue_view.set_limit(self._queue_lines)

    def show_question(self, panel: Widget) -> None:
        """Puts a question into the flow above the prompt."""
        self.screen.add_class(ASKS)
        self.screen.mount(panel, before=self.activity)

    def question_closed(self) -> None:
        """No question stands there any more."""
        self.screen.remove_class(ASKS)

    def hint(self, text: str, seconds: float | None = None) -> None:
        """A short line above the prompt, gone with the next key, after ``seconds`` or once it can have been read."""
        self.activity.hint(text, seconds)

    def say(self, level: str, text: str) -> None:
        """A line in the transcript that is not part of the conversation."""
        self.transcript.add_notice(level, text)

    def phase(self, phase: str, *, waits: bool = False) -> None:
        """What the line above the prompt says while the agent works, or ``waits`` for the user: then it says that,
        whatever goes on beside it, until the user has ``answered``."""
        if phase != self.activity.phase and (waits or not self.activity.waits):
            self._begin(phase, waits)

    def answered(self) -> None:
        """The user is not waited for any more."""
        if self.activity.waits:
            self._begin("Working", False)

    def _begin(self, phase: str, waits: bool) -> None:
        roomy = self.prompt.app.size.width > 70
        self.activity.begin(phase, f"Esc to interrupt{' · Enter queues' if roomy else ''}", waits=waits)


_TELLS: type[Tells] = Stage
