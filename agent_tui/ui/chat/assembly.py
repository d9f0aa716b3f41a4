"""The chat, put together: each object with what it needs and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.completion import FileIndex
from agent_tui.history import History
from agent_tui.ui.chat.attention import Attention
from agent_tui.ui.chat.finding import Finding
from agent_tui.ui.chat.freshness import Freshness
from agent_tui.ui.chat.input.attachments import Attachments
from agent_tui.ui.chat.input.commands import Commands
from agent_tui.ui.chat.input.completing import Completing
from agent_tui.ui.chat.input.copying import Copying, Pasting
from agent_tui.ui.chat.input.drafts import Drafts
from agent_tui.ui.chat.input.editor import Editor
from agent_tui.ui.chat.input.prompt_host import PromptHost
from agent_tui.ui.chat.input.sender import Sender
from agent_tui.ui.chat.interrupts import Interrupts
from agent_tui.ui.chat.opening import Opening
from agent_tui.ui.chat.permissions import Permissions
from agent_tui.ui.chat.reading import Reading
from agent_tui.ui.chat.screens import Screens
from agent_tui.ui.chat.seat import Seat
from agent_tui.ui.chat.session_view import SessionView
from agent_tui.ui.chat.stage import Stage
from agent_tui.ui.chat.tasks import Tasks
from agent_tui.ui.chat.themes import ThemeChoice
from agent_tui.ui.terminal.window import Window

if TYPE_CHECKING:
    from agent_tui.config import Settings
    from agent_tui.engine.agent import Agent
    from agent_tui.paths import Paths
    from agent_tui.ui.chat.host import ChatHost
    from agent_tui.ui.chat.pictures import Pictures


class Chat:
    """The objects that the application hands its keys and messages to."""

    def __init__(
        self,
        host: ChatHost,
        settings: Settings,
        paths: Paths,
        root: Path,
        clock: Callable[[], float],
        last_words: Callable[[Agent], list[str]],
    ) -> None:
        history = History(paths.state, str(root))
        self.seat = seat = Seat(last_words)
        self.stage = stage = Stage(settings.ui, history, clock)
        self.files = FileIndex(root)
        self.window = Window(host)
        tasks = Tasks(host)
        attention = Attention(self.window, settings.ui.notifications, host)
        self.copying = Copying(host, stage, tasks)
        self.pasting = Pasting(host, stage.prompt)
        self.drafts = Drafts(history, stage.prompt, host, stage, clock)
        self.editor = Editor(host, stage.prompt, stage, settings.ui.editor)
        self.finding = Finding(stage)
        self._host, self._tasks, self._ui = host, tasks, settings.ui
        self.pictures: Pictures | None = None
        self.reading = Reading(stage)
        self.completing = Completing(seat, stage, self.files, history, tasks)
        self.permissions = Permissions(seat, stage, attention, self.pasting, clock)
        self.session = SessionView(seat, stage, settings, self.window, attention, self.permissions, self.files)
        attachments = Attachments(stage, self.permissions)
        commands = Commands(stage, attachments, host, self.copying, self.session, host)
        self.sender = Sender(seat, stage, tasks, attachments, commands)
        self.interrupts = Interrupts(seat, stage, self.sender, self.finding, host, self.copying, host, clock)
        themes = ThemeChoice(host, stage, settings.ui.theme, paths.themes, paths.state)
        self.screens = Screens(
            host,
            seat,
            stage,
            tasks,
            themes,
            history,
            self.finding,
            self.sender,
            self.session,
            self,
            settings.keys,
            clock,
        )
        self.freshness = Freshness(seat, host, host)
        self.opening = Opening(
            seat, stage, self.session, self.permissions, self.sender, self.drafts, self.window, self.screens
        )
        stage.prompt.host = PromptHost(
            seat, stage, self.permissions.guard, self.drafts, self.sender, self.pasting, self.copying
        )
        if settings.ui.vim:
            stage.prompt.use_vim(True)

    def find_pictures(self, in_page: bool) -> None:
        """The first frame stands: finds out how the terminal, or the page of the browser, can show pictures."""
        self._pictures(in_page).begin()

    def open_picture(self, which: str) -> None:
        """Shows a picture of the conversation on a screen of its own."""
        self._pictures().open(which)

    def _pictures(self, in_page: bool = False) -> Pictures:
        from agent_tui.ui.chat.pictures import Pictures

        if self.pictures is None:
            ui = self._ui
            self.pictures = Pictures(self._host, self.seat, self.stage, self._tasks, ui.images, ui.mouse, in_page)
        return self.pictures
