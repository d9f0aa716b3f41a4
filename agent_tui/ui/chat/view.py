"""The main screen and who sits behind it: the widgets with lines for the user, the application, the agent."""

from __future__ import annotations

import asyncio
import base64
import os
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from textual.strip import Strip
from textual.widget import Widget

from agent_tui.errors import AgentError
from agent_tui.text.secrets import without_keys
from agent_tui.ui.first_frame import NAME, ROOMY, WORDMARK, is_small
from agent_tui.ui.prompt.widget import Prompt
from agent_tui.ui.terminal.driver import Window
from agent_tui.ui.textual_private.drawing import DrawsFrames
from agent_tui.ui.textual_private.terminal import ask_terminal, write_to_terminal
from agent_tui.ui.theme import paint_of, strip_of
from agent_tui.ui.widgets.drawn_lines import Activity, StatusLine

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.worker import Worker

    from agent_tui.commands.registry import ScreenName
    from agent_tui.config import UiConfig
    from agent_tui.engine.agent import Agent
    from agent_tui.history import PromptHistory
    from agent_tui.ui.chat.status_command import OwnLine
    from agent_tui.ui.prompt.completing import Completions
    from agent_tui.ui.textual_private.keys import HearsReport
    from agent_tui.ui.transcript import Transcript
    from agent_tui.ui.widgets.queue import QueueLines

    Opened: TypeAlias = ScreenName | Literal["history", "palette"]
    """Screens that are opened by name: those of commands, and those of keys alone."""

ASKS = "-asks"
"""The screen's class while a question stands above the prompt: its frame is distance enough, and the prompt is off."""


class ChatApp(DrawsFrames):
    """The application as the parts of the chat know it."""

    @abstractmethod
    def leave(self) -> None:
        """Ends the program with everything stored."""

    @abstractmethod
    def open_screen(self, name: Opened, data: str = "") -> None:
        """Opens a screen by name; what it answers is carried out."""

    def write_to_terminal(self, sequence: str) -> None:
        """Sends a control sequence of ours; nothing happens without a terminal."""
        write_to_terminal(self, sequence)

    def write_outside(self, sequence: str) -> None:
        """The same for the terminal around tmux or GNU screen, which do not hand it on by themselves."""
        from agent_tui.ui.terminal.passing import passed_on

        write_to_terminal(self, sequence if self.is_web else passed_on(sequence, os.environ))

    def copy_to_clipboard(self, text: str) -> None:
        """Into the terminal's clipboard, and that of the one around tmux or GNU screen."""
        from agent_tui.ui.terminal.passing import passed_on

        super().copy_to_clipboard(text)
        sequence = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
        if not self.is_web and (outside := passed_on(sequence, os.environ)) != sequence:
            write_to_terminal(self, outside)

    def ask_terminal(self, question: str, listener: HearsReport | None) -> None:
        """Asks the terminal; ``listener`` hears what it says from now on."""
        ask_terminal(self, question, listener)


class Blank(Widget):
    """Stands where the transcript will be, with the name of the program where a new session begins."""

    def __init__(self, face: bool) -> None:
        super().__init__(id="room")
        self._face = face

    def render_line(self, y: int) -> Strip:
        size, paint = self.size, paint_of(self.app)
        if not self._face or not 1 <= y <= (1 if is_small(*self.app.size) else len(WORDMARK)):
            return Strip.blank(size.width, self.rich_style)
        agent, rest = WORDMARK[y - 1]
        name = [(agent, paint("primary")), (rest, paint("foreground"))]
        small = [(NAME, paint("foreground", bold=True))]
        return strip_of([("  ", paint()), *(small if is_small(*self.app.size) else name)], size.width, self.rich_style)


class AgentHolder:
    """Holds the agent: ``opening`` from its making on, ``agent`` once its session is open. ``farewell`` is said when
    the screen is gone: what ``last_words`` makes of the agent that was closed, and what goes on without it."""

    def __init__(self, last_words: Callable[[Agent], list[str]] = lambda agent: []) -> None:
        self._last_words = last_words
        self.opening: Agent | None = None
        self.agent: Agent | None = None
        self.farewell: list[str] = []

    @property
    def busy(self) -> bool:
        return self.agent is not None and self.agent.turns.busy

    def opened(self) -> None:
        self.agent = self.opening

    async def close(self) -> AgentError | None:
        """Lets the agent go; why something could not be stored, where that was so."""
        agent, is_open = self.opening, self.agent is not None
        self.agent = self.opening = None
        if agent is not None:
            try:
                await agent.close()
            except AgentError as error:
                return error
            finally:
                self.farewell = [*(self._last_words(agent) if is_open else ()), *agent.background.left_running()]
        return None


class MainView:
    """The parts of the main screen, and lines for the user on it.

    ``transcript``, ``queue_view`` and ``completions`` are there from ``furnish`` on, right after the first frame:
    their modules cost as much time as the whole start of the prompt.
    """

    transcript: Transcript
    queue_view: QueueLines
    completions: Completions
    furnished = False

    def __init__(
        self, app: ChatApp, holder: AgentHolder, settings: UiConfig, history: PromptHistory, clock: Callable[[], float]
    ) -> None:
        self.app = app
        self.holder = holder
        self.settings = settings
        self.history = history
        self.clock = clock
        self.window = Window(app)
        self.activity = Activity(settings.reduced_motion, clock)
        self.prompt = Prompt(history)
        self.status = StatusLine()
        self._queue_lines = 4

    @property
    def screen(self) -> Screen[object]:
        """The main screen, whatever lies on top of it."""
        return self.prompt.screen

    async def furnish(self, filled: Callable[[], None]) -> None:
        """Puts transcript, queue and completions around the prompt; ``filled`` says what the transcript begins with."""
        from agent_tui.ui.prompt.completing import Completions
        from agent_tui.ui.transcript import Transcript
        from agent_tui.ui.widgets.queue import QueueLines

        ui, screen = self.settings, self.screen
        self.transcript = Transcript(
            id="transcript",
            show_reasoning=ui.show_reasoning,
            tool_output=ui.tool_output,
            reduced_motion=ui.reduced_motion,
        )
        filled()
        self.queue_view = QueueLines()
        self.completions = Completions()
        with self.app.batch_update():  # between the two the prompt would stand at the top
            await screen.query("#room").remove()
            await screen.mount_all([self.transcript, self.queue_view], before=self.activity)
            await screen.mount(self.completions, before=self.prompt)
        self.prompt.complete_with(self.completions)
        self.queue_view.set_limit(self._queue_lines)
        self.furnished = True

    async def own_line(self) -> OwnLine:
        """The line below the status line that belongs to the user, made when first asked for."""
        from agent_tui.ui.chat.status_command import OwnLine

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
        self.screen.add_class(ASKS)
        self.prompt.stand_below(True)
        self.screen.mount(panel, before=self.activity)

    def question_closed(self) -> None:
        self.screen.remove_class(ASKS)
        self.prompt.stand_below(False)

    def hint(self, text: str, seconds: float | None = None) -> None:
        """A short line above the prompt, gone with the next key, after ``seconds`` or once it can have been read."""
        self.activity.hint(text, seconds)

    def say(self, level: str, text: str) -> None:
        """A line in the transcript that is not part of the conversation."""
        self.transcript.add_notice(level, without_keys(text, fields=False) if level in ("error", "warning") else text)

    def phase(self, phase: str, *, waits: bool = False, command: bool = False, timed: bool = False) -> None:
        """Sets what the line above the prompt says while the agent works, or ``waits`` for the user: that stays until
        ``answered``. ``command``: a command runs, which may be moved into the background; ``timed``: with a clock of
        its own."""
        if phase != self.activity.phase and (waits or not self.activity.waits):
            self._begin(phase, waits, command, timed)

    def answered(self) -> None:
        """The user is not waited for any more."""
        if self.activity.waits:
            self._begin("Working", False)

    def _begin(self, phase: str, waits: bool, command: bool = False, timed: bool = False) -> None:
        # While a question is open, Enter answers it.
        ends = "Esc declines" if waits else "Esc to interrupt"
        queues = self.app.size.width > 70 and not waits
        moves = " · Ctrl+B to background" if command else ""
        self.activity.begin(phase, f"{ends}{moves}{' · Enter queues' if queues else ''}", waits=waits, timed=timed)

    def begin(
        self, work: Callable[[], Coroutine[Any, Any, None]], *, group: str = "default", exclusive: bool = False
    ) -> Worker[None]:
        """Does ``work`` beside everything else; an error in it is shown. ``exclusive`` ends the others of its group."""
        # A function, not a coroutine: one that is replaced before it began leaves nothing unawaited.
        return self.app.run_worker(work, group=group, exclusive=exclusive, exit_on_error=False)

    def open_address(self, address: str, clicked: bool = False) -> None:
        """Opens a page in the user's browser; where nothing can be opened, its address is said. A link that was
        clicked may be one without https."""
        if self.app.is_web:
            self.app.open_url(address)
            return

        async def work() -> None:
            from agent_tui.commands.desktop import open_address

            if not await asyncio.to_thread(open_address, address, clicked):
                self.say("warning", f"No browser could be opened; open this address yourself: {address}")

        self.begin(work)

    def call_user(self, text: str) -> None:
        """Rings, where that is wanted, when the user looks elsewhere."""
        if self.settings.notifications and not self.app.app_focus:
            self.window.notify(text)


class ChatPart:
    """A part of the chat: it knows the main screen, and the agent behind it once that has opened its session."""

    def __init__(self, view: MainView) -> None:
        self._view = view
        self.app = view.app

    @property
    def _agent(self) -> Agent | None:
        return self._view.holder.agent
