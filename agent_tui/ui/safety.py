"""What happens when the screen's own code fails: one line, one entry in the log, and the chat goes on.

Textual ends the program with a traceback, and stops the widget whose handler failed. A conversation is worth more.
"""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.message_pump import MessagePump

from agent_tui.errors import AgentError
from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message
    from textual.screen import Screen
    from textual.worker import Worker

    from agent_tui.ui.app import AgentApp

MAX_ERRORS = 20
"""So many errors within ``WINDOW`` seconds end the program: nothing on the screen can be trusted any more."""
WINDOW = 10.0

log = logging.getLogger(__name__)


class Guarded(MessagePump):
    """A widget or screen that goes on with its next message when a handler has failed. Put it first among the bases."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            _net(self.app).caught(error)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A task that failed says so; without this its error would be seen nowhere."""
        error = event.worker.error
        if event.worker.is_finished and isinstance(error, Exception):
            _net(self.app).caught(error)


def _net(app: App[Any]) -> Net:
    net: Net = app.net  # type: ignore[attr-defined]
    return net


class Net:
    """Decides what an error costs. ``errors`` are those survived, newest last."""

    def __init__(self, app: AgentApp, clock: Callable[[], float]) -> None:
        self.app = app
        self.clock = clock
        self.errors: deque[Exception] = deque(maxlen=100)
        self._times: deque[float] = deque(maxlen=MAX_ERRORS)
        self._known: set[tuple[object, ...]] = set()

    def caught(self, error: Exception, *, drawing: bool = False) -> None:
        """Shows and logs an error. Before the session is open, and when errors do not end, leaves with one line.

        ``drawing``: a screen could not be made or drawn. One on top of the chat goes away; the chat is still there.
        """
        new = self._new(error)
        if new and not isinstance(error, AgentError):
            log.error("The screen's code failed", exc_info=error)
        now = self.clock()
        self._times.append(now)
        endless = len(self._times) == MAX_ERRORS and now - self._times[0] <= WINDOW
        if endless or not self.app.opened.is_set():
            self.app.fail(error)
            return
        self.errors.append(error)
        if drawing and len(self.app.screen_stack) > 1:
            self.app.call_later(self._pop, self.app.screen)
        if new or isinstance(error, AgentError):
            self.app.call_later(self.app.say, "error", describe(error))

    def _new(self, error: Exception) -> bool:
        frames = traceback.extract_tb(error.__traceback__)
        place = (type(error), *((frames[-1].filename, frames[-1].lineno) if frames else ()))
        known = place in self._known
        self._known.add(place)
        return not known

    def _pop(self, screen: Screen[Any]) -> None:
        if len(self.app.screen_stack) > 1 and self.app.screen is screen:
            self.app.pop_screen()


def describe(error: Exception) -> str:
    """One line for the user."""
    if isinstance(error, AgentError):
        return str(error)
    text = one_line(str(error), 200)
    return f"Internal error: {type(error).__name__}{': ' + text if text else ''}. The log has more."
