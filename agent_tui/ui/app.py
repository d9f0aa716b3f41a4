"""The application: what is on the main screen, how it starts and how it ends."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widget import Widget

from agent_tui import door
from agent_tui.config import Settings
from agent_tui.errors import EXIT_ERROR, EXIT_OK, AgentError
from agent_tui.paths import Paths
from agent_tui.ui.chat.changes import Changes
from agent_tui.ui.chat.permissions import Permissions
from agent_tui.ui.chat.prompting import Prompting
from agent_tui.ui.chat.sender import Sender
from agent_tui.ui.keys import APP_BINDINGS
from agent_tui.ui.prompt.widget import Prompt
from agent_tui.ui.safety import Net, describe
from agent_tui.ui.terminal import control as terminal
from agent_tui.ui.theme import ANSI_THEME, start_theme, wanted_theme
from agent_tui.ui.widgets.status import StatusFacts

if TYPE_CHECKING:
    from textual.driver import Driver

    from agent_tui.engine.agent import Agent
    from agent_tui.ui.chat.freshness import Freshness
    from agent_tui.ui.chat.router import Router
    from agent_tui.ui.transcript import messages as posted
    from agent_tui.ui.widgets.permission import PermissionPanel

AgentFactory: TypeAlias = "Callable[[], Awaitable[Agent]]"

ROOMY = 22
"""From this many lines on, the prompt has air above and below."""

FIRST_KEYS = 0.02
"""Seconds between the first frame and the rest of the start."""


class Room(Widget):
    """Stands where the transcript will be, and is empty: a plain widget shows its own name."""

    def render(self) -> str:
        return ""


class AgentApp(Changes):
    """The chat. The first frame shows before the agent exists; what is typed meanwhile is kept and sent then."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#prompt"
    TITLE = "agent-tui"
    BINDINGS: ClassVar[list[BindingType]] = APP_BINDINGS
    router: Router
    freshness: Freshness
    CSS = """
    Screen { layout: vertical; background: $background; color: $foreground; overflow: hidden; }
    #transcript, #room { height: 1fr; background: $background; }
    """

    def __init__(
        self,
        agent_factory: AgentFactory,
        settings: Settings,
        paths: Paths,
        root: Path,
        *,
        prompt: str = "",
        problems: Sequence[str] = (),
        clock: Callable[[], float] | None = None,
        detect_colors: bool = False,
    ) -> None:
        theme, problem = start_theme(wanted_theme(settings.ui.theme, paths.state), paths.themes)
        super().__init__(settings, paths, root, theme, *([clock] if clock else []))
        self.agent_factory = agent_factory
        self.failure: AgentError | None = None
        self.net = Net(self, self.clock)
        self.sender = Sender(self)
        self.permissions = Permissions(self)
        self.prompting = Prompting(self)
        self._facts = StatusFacts()
        self._queue_lines = 4
        self.opened = asyncio.Event()
        self.failed = asyncio.Event()
        self._first_prompt = prompt
        self._problems = [*problems, *([problem] if problem else [])]
        if detect_colors and self.console.color_system == "standard" and not theme.ansi:
            self._use_ansi_theme()
        if settings.keys:
            self.set_keymap(settings.keys)

    def get_driver_class(self) -> type[Driver]:
        """A terminal that may vanish without taking the process hostage."""
        from agent_tui.ui.terminal.driver import driver_class

        return driver_class(self.leave) or super().get_driver_class()

    def _use_ansi_theme(self) -> None:
        theme, problem = start_theme(ANSI_THEME, self.paths.themes)
        if problem is None:
            self.use_first_theme(theme)

    def compose(self) -> ComposeResult:
        yield Room(id="room")
        yield self.activity
        yield self.prompt
        yield self.status

    @property
    def main_screen(self) -> Screen[object]:
        """The screen with transcript and prompt, whatever lies on top of it."""
        return self.screen_stack[0]

    # Start and end

    def on_resize(self, event: events.Resize) -> None:
        height = event.size.height
        self.prompt.set_class(height >= ROOMY, "-roomy")
        self._queue_lines = 0 if height < 8 else 1 if height < 14 else 4
        if self.furnished:
            self.queue_view.set_limit(self._queue_lines)

    def on_key(self, event: events.Key) -> None:
        """A character that nothing else took is meant for the prompt, wherever the focus is."""
        if not event.is_printable or not event.character or len(self.screen_stack) > 1 or self.prompt.has_focus:
            return
        if event.key not in self.active_bindings:
            event.stop()
            event.prevent_default()
            self.prompt.focus()
            self.prompt.insert_text(event.character)

    def on_mount(self) -> None:
        # A moment later, so that keys typed before the start are on the screen first.
        self.call_after_refresh(self.set_timer, FIRST_KEYS, self._after_first_frame)

    async def _after_first_frame(self) -> None:
        await self.furnish()
        self.furnished = True
        self.sender.show_waiting()
        self.prompt.ask_again()
        self.queue_view.set_limit(self._queue_lines)
        terminal.push_title(self)
        terminal.set_title(self, "agent-tui")
        self._handle_signals()
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        draft = self.history_file.load_draft()
        if draft and self.prompt.is_empty:
            self.prompt.set_text(draft)
        for problem in self._problems:
            self.say("warning", problem)
        if self._first_prompt:
            self.sender.send(self._first_prompt, [])
        self.run_worker(self._start_agent(), name="start", exit_on_error=False)

    async def _start_agent(self) -> None:
        try:
            agent = self._opening = await self.agent_factory()
            from agent_tui.ui.chat.freshness import Freshness
            from agent_tui.ui.chat.router import Router

            self.router = Router(self)
            self.freshness = Freshness(self)
            agent.subscribe(self.router.dispatch)
            await agent.start()
        except Exception as error:
            self._handle_exception(error)
            return
        self.agent = agent
        self.facts_changed()
        self.sender.agent_ready()
        self.freshness.begin()
        self.opened.set()
        gc.enable()
        gc.collect()
        gc.freeze()

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and not self.is_headless:
                try:
                    loop.add_signal_handler(number, self.leave)
                except (NotImplementedError, RuntimeError, ValueError):
                    return

    def leave(self) -> None:
        """Ends the program with everything stored."""
        self.history_file.save_draft(self.prompt.placeholders.expand(self.prompt.text)[0])
        terminal.pop_title(self)
        self.exit(EXIT_OK)

    def _handle_exception(self, error: Exception) -> None:
        """Textual's way out for what nobody caught; see ``safety``."""
        self.net.caught(error, drawing=True)

    def fail(self, error: Exception) -> None:
        """Leaves with one line on stderr."""
        if self.failure is None:
            self.failure = error if isinstance(error, AgentError) else AgentError(describe(error))
            self.failed.set()
            self.exit(self.failure.exit_code)

    async def close_agent(self) -> None:
        """Lets the agent go, once the screen is gone."""
        agent, self.agent, self._opening = self._opening, None, None
        if agent is not None:
            try:
                await agent.close()
            except AgentError as error:
                self.failure = self.failure or error

    # Messages of widgets

    @on(Prompt.Asked)
    async def _asked(self, event: Prompt.Asked) -> None:
        await self.prompting.asked(event.what)

    @on(Prompt.Completing)
    def _completing(self, event: Prompt.Completing) -> None:
        self.prompting.complete(event.query)

    @on(Prompt.Changed)
    def _prompt_changed(self) -> None:
        self.prompting.changed()

    def on_copy_requested(self, event: posted.CopyRequested) -> None:
        self.copy(event.text, event.what)

    def on_link_clicked(self, event: posted.LinkClicked) -> None:
        self.open_url(event.url)

    def on_follow_changed(self, event: posted.FollowChanged) -> None:
        if event.follow:
            self.hint("")
        elif event.new:
            self.hint(f"{event.new} new below · Ctrl+End follows")

    def on_permission_panel_answered(self, event: PermissionPanel.Answered) -> None:
        self.permissions.answer(event.asked, event.allow, event.pattern, event.feedback)


def run_ui(
    agent_factory: AgentFactory,
    settings: Settings,
    paths: Paths,
    root: Path,
    *,
    prompt: str = "",
    problems: Sequence[str] = (),
) -> int:
    """Runs the chat until the user leaves; returns the exit code.

    ``agent_factory`` is awaited after the first frame and returns an agent that is not started. An AgentError from
    it or from the start leaves the screen, and its line goes to stderr. ``problems`` are lines to show at the start.
    """
    app = AgentApp(agent_factory, settings, paths, root, prompt=prompt, problems=problems, detect_colors=True)

    async def main() -> int:
        try:
            code = await app.run_async()
        finally:
            await app.close_agent()
        return code if code is not None else app.return_code or EXIT_OK

    try:
        code = asyncio.run(main())
    except KeyboardInterrupt:
        code = EXIT_OK
    except Exception as error:
        app.net.caught(error)
        code = EXIT_ERROR
    if app.failure is not None:
        door.complain(str(app.failure))
        return app.failure.exit_code
    return code
