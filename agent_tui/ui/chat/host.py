"""What the parts of the chat need of the application around it, one small protocol for each need.

For the type checker alone: nothing imports this at run time, so that it costs nothing before the first frame.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from rich.console import Console
from textual.screen import Screen
from textual.theme import Theme
from textual.worker import Worker

from agent_tui.ui.terminal.window import ReachesTerminal
from agent_tui.ui.textual_private.drawing import Drawing
from agent_tui.ui.textual_private.terminal import Hears

R = TypeVar("R")


class RunsWorkers(Protocol):
    def run_worker(
        self,
        work: Callable[[], Coroutine[None, None, None]],
        *,
        group: str = "default",
        exit_on_error: bool = True,
        exclusive: bool = False,
    ) -> Worker[None]: ...


class SetsTimers(Protocol):
    def set_timer(self, delay: float, callback: Callable[[], None]) -> object: ...


class Repeats(Protocol):
    def set_interval(self, interval: float, callback: Callable[[], None]) -> object: ...


class PilesScreens(Protocol):
    """Screens lie on top of each other."""

    @property
    def screen_stack(self) -> Sequence[Screen[Any]]: ...

    def push_screen(self, screen: Screen[R], callback: Callable[[R | None], None] | None = None) -> object: ...

    def call_later(self, callback: Callable[..., Any], *arguments: Any) -> bool: ...

    def run_action(self, action: str) -> Awaitable[bool]: ...


class WearsThemes(Protocol):
    """What is drawn in a theme."""

    theme: str

    def register_theme(self, theme: Theme) -> None: ...


class TerminalClipboard(Protocol):
    """The clipboard that is reached through the terminal."""

    @property
    def is_headless(self) -> bool: ...

    @property
    def clipboard(self) -> str:
        """What was copied here last."""

    def copy_to_clipboard(self, text: str) -> None: ...


class LendsTerminal(Protocol):
    def suspend(self) -> AbstractContextManager[None]:
        """The terminal is someone else's meanwhile. Raises SuspendNotSupported where that is impossible."""

    def refresh(self, *, layout: bool = False) -> object: ...


class SeesFocus(Protocol):
    @property
    def is_looked_at(self) -> bool:
        """Whether the terminal has the focus."""


class Leaves(Protocol):
    def leave(self) -> None:
        """Ends the program with everything stored."""


class OpensScreens(Protocol):
    def open_screen(self, name: str, data: str = "") -> None:
        """Opens a screen by name; what it answers is carried out."""


class Draws(Protocol):
    @property
    def console(self) -> Console:
        """How the terminal is told colours."""


class ShowsPictures(ReachesTerminal, PilesScreens, Draws, Protocol):
    """What pictures need beside the transcript."""

    drawing: Drawing

    def ask_terminal(self, question: str, listener: Hears | None) -> None:
        """Asks the terminal; what ``listener`` takes of its answer is no key."""


class ChatHost(
    RunsWorkers,
    TerminalClipboard,
    ShowsPictures,
    LendsTerminal,
    SetsTimers,
    Repeats,
    WearsThemes,
    OpensScreens,
    SeesFocus,
    Leaves,
    Protocol,
):
    """What the chat as a whole needs of the application around it. No object in it needs more than one or two."""
