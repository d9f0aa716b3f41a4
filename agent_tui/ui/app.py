"""The application: it puts the chat together, gives Textual what it asks for, and hands everything else on."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, assert_never

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType

from agent_tui import terminal_output
from agent_tui.config import AUTO_THEME, Settings
from agent_tui.errors import EXIT_ERROR, EXIT_OK, AgentError
from agent_tui.options import Served
from agent_tui.paths import Paths
from agent_tui.ui.chat.chat import AgentFactory, Chat
from agent_tui.ui.chat.key_actions import next_mode
from agent_tui.ui.chat.view import Blank, ChatApp
from agent_tui.ui.first_frame import OWN_CHOICE, FirstFrame, keep_background, theme_for, told_before, wanted_theme
from agent_tui.ui.keys import APP_BINDINGS
from agent_tui.ui.prompt.widget import Prompt
from agent_tui.ui.safety import Guarded, Net, describe
from agent_tui.ui.textual_private.terminal import AnswersErrors, tell_server, wear_first
from agent_tui.ui.textual_private.who_draws import DrawingWatch
from agent_tui.ui.theme import start_theme

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.driver import Driver

    from agent_tui.engine.agent import Agent
    from agent_tui.ui.chat.status_command import StatusCommand
    from agent_tui.ui.chat.view import Opened
    from agent_tui.ui.prompt.completing import Completions
    from agent_tui.ui.transcript import Transcript
    from agent_tui.ui.transcript import messages as posted
    from agent_tui.ui.widgets.drawn_lines import Activity
    from agent_tui.ui.widgets.find import FindBar
    from agent_tui.ui.widgets.queue import QueueLines


log = logging.getLogger(__name__)

FIRST_KEYS = 0.02
"""Seconds between the first frame and the rest of the start."""

AIRY = 18
"""From so many lines on there is an empty one below the conversation, whatever is said above the prompt."""

WHOLE = 1000
"""So many pages are the way to the start or the end."""

EARLY = ("cancel", "escape", "focus_prompt", "suspend_process")
"""Actions that are possible while the first frame stands alone."""


class ChatStart(NamedTuple):
    """The way the chat begins and ends."""

    prompt: str = ""
    """Sent once the session is open."""
    choose: bool = False
    """Whether the user is asked, before that, which session to go on with."""
    detect_colors: bool = False
    """Whether the terminal is asked for its background and how many colours it has."""
    served: Served | None = None
    """The page of the browser that shows the chat instead of a terminal."""
    face: bool = False
    """Whether a new session begins, whose empty chat shows the name."""
    frame: FirstFrame | None = None
    """What the terminal shows already."""
    last_words: Callable[[Agent], list[str]] = lambda agent: []
    """What is said of a session on the terminal once the screen is gone."""


class AgentApp(Guarded, AnswersErrors, ChatApp):
    """The chat. The first frame shows before the agent exists; what is typed meanwhile is kept and sent then."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#prompt"
    TITLE = "agent-tui"
    BINDINGS: ClassVar[list[BindingType]] = APP_BINDINGS
    VERTICAL_BREAKPOINTS = [(0, "-low"), (AIRY, "-airy")]
    CSS = """
    Screen { layout: vertical; color: $foreground; overflow: hidden; }
    Screen:ansi > .screen--selection { background: ansi_default; color: ansi_default; text-style: reverse; }
    #transcript, #room { height: 1fr; background: $background; }
    .-airy #transcript, .-airy #room { margin: 0 0 1 0; }
    .-airy.-asks #transcript { margin: 0; }
    .-asks Prompt { border-left: outer $line; background: $background; }
    Input:focus { background-tint: $foreground 0%; }
    Input > .input--placeholder, Input > .input--suggestion { color: $faint; }
    Input:ansi > .input--placeholder { text-style: none; }
    Input:ansi > .input--cursor, Input:ansi > .input--selection {
        background: ansi_default; color: ansi_default; text-style: reverse;
    }
    """

    def __init__(
        self,
        agent_factory: AgentFactory,
        settings: Settings,
        paths: Paths,
        root: Path,
        start: ChatStart = ChatStart(),  # noqa: B008
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        detect_colors = start.detect_colors
        wanted = wanted_theme(settings.ui.theme, paths.state)
        self._by_terminal = detect_colors and wanted == AUTO_THEME
        self._paths = paths
        self._start, self._served = start, start.served
        super().__init__()  # which asks for the driver
        self.drawing = DrawingWatch(self._drawing_failed)
        few = self._few_colors = detect_colors and self.console.color_system == "standard"
        if wanted == AUTO_THEME:
            wanted = theme_for(told_before(paths.state, os.environ) if detect_colors else None, few)
        theme, bad_theme = start_theme(wanted, paths.themes)
        if few and not theme.ansi:
            plain, broken = start_theme(theme_for(not theme.dark, few), paths.themes)
            theme = theme if broken else plain
        self.register_theme(theme)
        wear_first(self, theme.name)  # set later it would style everything twice
        if settings.ui.reduced_motion:
            self.animation_level = "none"
        if settings.keys:
            self.set_keymap(settings.keys)
        self.agent_factory = agent_factory
        self.failure: AgentError | None = None
        self.opened = asyncio.Event()
        self.failed = asyncio.Event()
        self._own_line: StatusCommand | None = None
        self._told_session = ""
        self._problem = bad_theme
        self.chat = Chat(self, settings, paths, root, clock, start.last_words)
        self.view = self.chat.view
        self.net = Net(self, self.opened.is_set, self.view.say, self.fail, clock)

    def get_driver_class(self) -> type[Driver]:
        """A terminal that may vanish without taking the process hostage, or a page of the browser."""
        if self._served is not None:
            from agent_tui.ui.terminal import web

            return web.driver_class(
                self.leave, self._reading_failed, self.action_redraw, (self._served.columns, self._served.lines)
            )
        from agent_tui.ui.terminal.driver import driver_class

        heard = self.background_told if self._by_terminal else None
        return driver_class(self.leave, self._reading_failed, heard, self._start.frame) or super().get_driver_class()

    def background_told(self, light: bool) -> None:
        """The terminal says what its background is. What the user chose meanwhile stays."""
        keep_background(light, self._paths.state)
        name = theme_for(light, self._few_colors)
        if self.theme in OWN_CHOICE and name != self.theme and self._by_terminal:
            theme, _ = start_theme(name, self._paths.themes)
            self.register_theme(theme)
            self.theme = theme.name
        self._by_terminal = False

    def compose(self) -> ComposeResult:
        yield Blank(self._start.face)
        yield self.view.activity
        yield self.view.prompt
        yield self.view.status

    # The widgets of the main screen

    @property
    def prompt(self) -> Prompt:
        return self.view.prompt

    @property
    def activity(self) -> Activity:
        return self.view.activity

    @property
    def transcript(self) -> Transcript:
        return self.view.transcript

    @property
    def queue_view(self) -> QueueLines:
        return self.view.queue_view

    @property
    def completions(self) -> Completions:
        return self.view.completions

    # Start and end

    def on_mount(self) -> None:
        # A moment later, so that keys typed before the start are on the screen first.
        self.call_after_refresh(self.set_timer, FIRST_KEYS, self._after_first_frame)

    async def _after_first_frame(self) -> None:
        if self._has_left:
            return
        await self.chat.furnish(self._problem, self._start.prompt, face=self._start.face)
        if self._has_left:
            return
        if not self.is_headless:
            from agent_tui.ui.terminal.driver import on_termination

            on_termination(self.leave)
            self.chat.pictures.begin(in_page=self._served is not None)
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.run_worker(self._start_agent(), name="start", exit_on_error=False)

    @property
    def _has_left(self) -> bool:
        """True when the user was faster than the start."""
        return not (self.is_running and self.prompt.is_attached)

    async def _start_agent(self) -> None:
        try:
            await self.chat.open(self.agent_factory, self._start.choose)
        except Exception as error:
            self.uncaught(error)
            return
        self.chat.freshness.begin()
        self._tell_drawing()
        self.chat.pictures.tell()
        if self._served is not None and self.chat.holder.agent is not None:
            self.chat.holder.agent.subscribe(self._tell_session)
            self._tell_session()
        await self._begin_status_command()
        self.opened.set()
        gc.enable()
        gc.collect()
        gc.freeze()

    async def _begin_status_command(self) -> None:
        if command := self.view.settings.status_command:
            from agent_tui.ui.chat.status_command import StatusCommand

            line = await self.view.own_line()
            if self.chat.holder.agent is not None:
                self._own_line = StatusCommand(command, self.chat.holder.agent, line.show, self.view.say)

    def _tell_session(self, event: object = None) -> None:
        """The server learns which session a page that comes after the end of this process is to show."""
        agent = self.chat.holder.agent
        if agent is not None and agent.conversation.path and agent.conversation.info.id != self._told_session:
            self._told_session = agent.conversation.info.id
            tell_server(self, "session", id=self._told_session)

    def _drawing_failed(self) -> None:
        """Textual draws from now on, everything once more."""
        self.call_later(self.draw_again)
        self._tell_drawing()

    def _tell_drawing(self) -> None:
        """The agent's own checks can say that Textual draws."""
        if self.chat.holder.agent is not None and (told := self.drawing.problem):
            log.warning("Textual: %s", told, exc_info=self.drawing.error)
            self.chat.holder.agent.project.tell_drawing(told)

    def leave(self) -> None:
        self.chat.drafts.save()
        self.view.window.pop_title()
        self._end_pictures()
        self.exit(EXIT_OK)

    def _end_pictures(self) -> None:
        if self.view.furnished:
            self.chat.pictures.end()

    async def close_agent(self) -> None:
        """Lets the agent go, once the screen is gone."""
        if self._own_line is not None:
            await self._own_line.close()
        lost = await self.chat.holder.close()
        self.failure = self.failure or lost

    # Errors

    def uncaught(self, error: Exception) -> None:
        """Textual's way out for what nobody caught; see ``safety``."""
        self.net.caught(error, drawing=True)

    def _reading_failed(self, error: Exception) -> None:
        """What was typed could not be understood; what is typed next may be."""
        self.net.caught(error)

    def panic(self, *renderables: RenderableType) -> None:
        """Textual's way out for what nobody is asked about; the exit code says so."""
        self.failure = self.failure or AgentError("Internal error in the screen. See the log for details.")
        super().panic(*renderables)

    def fail(self, error: Exception) -> None:
        """Leaves with one line on stderr."""
        if self.failure is None:
            self.failure = error if isinstance(error, AgentError) else AgentError(describe(error))
            self.failed.set()
            self._end_pictures()
            self.exit(self.failure.exit_code)

    # Keys

    def on_resize(self, event: events.Resize) -> None:
        self.view.arrange(event.size.height)

    async def on_event(self, event: events.Event) -> None:
        """Hands what is meant for the prompt to it, before the next key is looked at: that one may have come along."""
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            self.chat.interrupts.keys += 1
            if self.chat.typing.takes(event):
                return
        await super().on_event(event)

    def on_key(self, event: events.Key) -> None:
        """A character that nothing else took is meant for the prompt, wherever the focus is."""
        if not event.is_printable or not event.character or len(self.screen_stack) > 1 or self.prompt.has_focus:
            return
        if event.key not in self.active_bindings:
            event.stop()
            event.prevent_default()
            self.prompt.focus()
            self.prompt.type_here(event.character)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """On top of another screen Shift+Tab is that screen's; before the screen is complete little can be done."""
        if not self.view.furnished and action not in EARLY:
            return False
        return len(self.screen_stack) == 1 if action == "next_mode" else True

    def action_interrupt(self) -> None:
        if not self.chat.interrupts.interrupt():
            self.chat.questions.decline()

    def action_cancel(self) -> None:
        self.chat.interrupts.cancel()

    def action_escape(self) -> None:
        self.chat.interrupts.escape()

    def action_focus_prompt(self) -> None:
        self.prompt.focus()

    def action_toggle_tools(self) -> None:
        self.view.hint("Tool output open" if self.transcript.toggle_tools() else "Tool output closed")

    def action_to_background(self) -> None:
        self.chat.interrupts.to_background()

    def action_toggle_reasoning(self) -> None:
        self.view.hint("Reasoning shown" if self.transcript.toggle_reasoning() else "Reasoning hidden")

    def action_scroll_transcript(self, pages: int) -> None:
        """By pages; by ``WHOLE`` to the end, from where on it follows, or to the start."""
        if pages >= WHOLE:
            self.transcript.follow_end()
        elif pages <= -WHOLE:
            self.transcript.scroll_home(animate=False)
        else:
            self.transcript.scroll_relative(y=pages * max(1, self.transcript.size.height - 2), animate=False)

    def action_jump(self, by: int) -> None:
        """To the question before (-1) or after (1)."""
        if not self.transcript.jump_user(by):
            self.view.hint("No question further up" if by < 0 else "No question further down")

    def action_redraw(self) -> None:
        """Writes every cell again: what stands on the terminal may be something else's."""
        self.chat.pictures.lost()
        self.refresh(layout=True)
        self.draw_again()

    async def action_find(self) -> None:
        await self.chat.finding.open()

    def action_next_mode(self) -> None:
        if self.chat.questions.plan_waits:
            self.view.hint("Answer the plan to choose the mode")
        elif self.chat.holder.agent is not None:
            next_mode(self.chat.holder.agent, self.chat.session, self.view)

    def action_palette(self) -> None:
        self.open_screen("palette")

    def open_screen(self, name: Opened, data: str = "") -> None:
        self.chat.screens.open(name, data)

    # Messages of widgets

    @on(Prompt.Asked)
    async def _asked(self, event: Prompt.Asked) -> None:
        match event.what:
            case "escape":
                self.chat.interrupts.escape()
            case "quit":
                self.leave()
            case "keys":
                self.open_screen("help", "keys")
            case "history":
                self.open_screen("history", self.prompt.text)
            case "panel":
                if not self.chat.questions.go_there() and self.queue_view.entries:
                    self.open_screen("queue")
            case "editor":
                await self.chat.editor.edit()
            case "paste":
                await self.chat.pasting.paste()
            case "find":
                await self.action_find()
            case _:
                assert_never(event.what)

    @on(Prompt.Completing)
    def _completing(self, event: Prompt.Completing) -> None:
        self.chat.completing.complete(event.query)

    @on(Prompt.Changed)
    def _prompt_changed(self) -> None:
        self.chat.prompt_changed()

    def on_copy_requested(self, event: posted.CopyRequested) -> None:
        self.chat.copying.copy(event.text, event.what)

    def on_pin_asked(self, event: posted.PinAsked) -> None:
        if event.message_id:
            self.view.begin(lambda: self.chat.sender.command(f"/pin {event.message_id}"))
        self.view.hint("" if event.message_id else "None of your messages is in view to pin")

    def on_link_clicked(self, event: posted.LinkClicked) -> None:
        self.view.open_address(event.url, clicked=True)

    def on_pressed(self, event: posted.Pressed) -> None:
        self.chat.pressed(event.step)

    def on_screen_asked(self, event: posted.ScreenAsked) -> None:
        self.open_screen(event.name, event.key)

    def on_follow_changed(self, event: posted.FollowChanged) -> None:
        if event.follow:
            self.view.hint("")
        elif event.new:
            self.view.hint(f"{event.new} new below · Ctrl+End to follow")

    def on_find_bar_query(self, event: FindBar.Query) -> None:
        self.chat.finding.search(event.text)

    def on_find_bar_move_to(self, event: FindBar.MoveTo) -> None:
        self.chat.finding.step(event.by)

    def on_find_bar_closed(self) -> None:
        self.chat.finding.close()

    def on_find_changed(self, event: posted.FindChanged) -> None:
        self.chat.finding.show(event.state)


def run_ui(
    agent_factory: AgentFactory,
    settings: Settings,
    paths: Paths,
    root: Path,
    start: ChatStart,
    again: Sequence[str] = ("agent-tui",),
) -> int:
    """Runs the chat until the user leaves; returns the exit code. An AgentError of ``agent_factory`` or of the agent's
    start goes to stderr as a line. ``again`` is how the program was called, as far as that matters for going on."""

    def last_words(agent: Agent) -> list[str]:
        from agent_tui.ui.chat.leaving import way_back

        return way_back(agent, again)

    from agent_tui.ui.terminal.driver import end_reading

    for name in ("COLUMNS", "LINES"):
        # The terminal knows its size. One that was exported would win over it and never change.
        os.environ.pop(name, None)
    start = start._replace(detect_colors=True, last_words=last_words)
    app = AgentApp(agent_factory, settings, paths, root, start)

    async def main() -> int:
        try:
            code = await app.run_async(mouse=settings.ui.mouse)
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
    finally:
        end_reading()
    for line in app.chat.holder.farewell:
        terminal_output.tell(line)
    if app.failure is not None:
        terminal_output.complain(str(app.failure))
        return app.failure.exit_code
    return code
