"""What every part of the application can reach: the agent, the widgets of the main screen, the settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import App
from textual.theme import Theme

from agent_tui.config import Settings
from agent_tui.paths import Paths
from agent_tui.ui.prompt.completion import FileIndex
from agent_tui.ui.prompt.history import History
from agent_tui.ui.prompt.widget import Prompt
from agent_tui.ui.safety import Guarded
from agent_tui.ui.theme import variable_defaults
from agent_tui.ui.widgets.activity import Activity
from agent_tui.ui.widgets.status import StatusLine

if TYPE_CHECKING:
    from pathlib import Path

    from agent_tui.engine.agent import Agent
    from agent_tui.ui.prompt.popup import Completions
    from agent_tui.ui.transcript import Transcript
    from agent_tui.ui.widgets.queue import Queue


class BaseApp(Guarded, App[int]):
    """State and widgets.

    Only what the first frame shows is made at once. ``agent`` is None until it has opened its session; ``transcript``,
    ``queue_view`` and ``completions`` are there from ``furnish`` on, which comes right after the first frame: their
    modules cost as much time as the whole start of the prompt.
    """

    transcript: Transcript
    queue_view: Queue
    completions: Completions
    furnished = False

    def __init__(
        self,
        settings: Settings,
        paths: Paths,
        root: Path,
        theme: Theme,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.paths = paths
        self.root = root
        self.clock = clock
        self.agent: Agent | None = None
        self.use_first_theme(theme)
        self.history_file = History(paths.state, str(root))
        self.files = FileIndex(root)
        self.activity = Activity(settings.ui.reduced_motion, clock)
        self.prompt = Prompt(self.history_file)
        self.status = StatusLine()
        if settings.ui.reduced_motion:
            self.animation_level = "none"

    async def furnish(self) -> None:
        """Puts transcript, queue and completions around the prompt."""
        from agent_tui.ui.prompt.popup import Completions
        from agent_tui.ui.transcript import Transcript
        from agent_tui.ui.widgets.queue import Queue

        ui = self.settings.ui
        screen = self.screen_stack[0]
        self.transcript = Transcript(
            id="transcript", show_reasoning=ui.show_reasoning, reduced_motion=ui.reduced_motion
        )
        self.queue_view = Queue()
        self.completions = Completions()
        await screen.query("#room").remove()
        await screen.mount_all([self.transcript, self.queue_view], before=self.activity)
        await screen.mount(self.completions, before=self.prompt)
        self.prompt.completions = self.completions

    def use_first_theme(self, theme: Theme) -> None:
        """Starts with a theme; setting it later would style everything twice."""
        self.register_theme(theme)
        self.set_reactive(App.theme, theme.name)
        self.stylesheet.set_variables(self.get_css_variables())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own variables for themes that leave them out."""
        return variable_defaults(self.current_theme)

    def hint(self, text: str) -> None:
        """A short line above the prompt, gone with the next key."""
        self.activity.hint(text)

    def say(self, level: str, text: str) -> None:
        """A line in the transcript that is not part of the conversation."""
        self.transcript.add_notice(level, text)
