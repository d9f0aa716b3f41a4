"""Handles failures of the screen's own code: one line, one entry in the log, and the chat goes on. Textual would end
the program with a traceback, and stop the widget whose handler failed."""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.css.query import NoMatches

from agent_tui.errors import AgentError
from agent_tui.text.clean import one_line
from agent_tui.ui.textual_private.terminal import SurvivesHandlers

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen
    from textual.worker import Worker

MAX_ERRORS = 20
"""So many errors within ``WINDOW`` seconds end the program: nothing on the screen can be trusted any more."""
WINDOW = 10.0

log = logging.getLogger(__name__)


class Guarded(SurvivesHandlers):
    """A widget or screen that goes on with its next message when a handler has failed; the app's ``net`` catches the
    error. Put it first among the bases."""

    def survives(self, error: Exception) -> bool:
        if isinstance(error, NoMatches) and not (getattr(self, "is_mounted", True) and self.is_attached):
            log.debug("A message came before or after the widgets it is about", exc_info=error)
            return True
        net = getattr(self.app, "net", None)
        if not isinstance(net, Net):
            return False
        net.caught(error)
        return True

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A task that failed says so; without this its error would be seen nowhere."""
        error = event.worker.error
        if event.worker.is_finished and isinstance(error, Exception) and not self.survives(error):
            raise error


class Net:
    """Decides what an error costs: a line (``say``), the screen on top, or, before the session ``is_open``, the end
    with a line on stderr (``fail``). ``errors`` are those survived, newest last."""

    def __init__(
        self,
        app: App[int],
        is_open: Callable[[], bool],
        say: Callable[[str, str], None],
        fail: Callable[[Exception], None],
        clock: Callable[[], float],
    ) -> None:
        self._app = app
        self._is_open = is_open
        self._say = say
        self._fail = fail
        self.clock = clock
        self.errors: deque[Exception] = deque(maxlen=100)
        self._times: deque[float] = deque(maxlen=MAX_ERRORS)
        self._known: set[tuple[object, ...]] = set()

    def caught(self, error: Exception, *, drawing: bool = False) -> None:
        """Shows and logs an error. Before the session is open, and when errors do not end, leaves with one line.
        ``drawing``: a screen could not be made or drawn; one on top of the chat goes away."""
        app, new = self._app, self._new(error)
        if new and not isinstance(error, AgentError):
            log.error("The screen's code failed", exc_info=error)
        now = self.clock()
        self._times.append(now)
        endless = len(self._times) == MAX_ERRORS and now - self._times[0] <= WINDOW
        if endless or not self._is_open():
            self._fail(error)
            return
        self.errors.append(error)
        if drawing and len(app.screen_stack) > 1:
            app.call_later(self._remove, app.screen)
        if new or isinstance(error, AgentError):
            app.call_later(self._say, "error", describe(error))

    def _new(self, error: Exception) -> bool:
        frames = traceback.extract_tb(error.__traceback__)
        place = (type(error), *((frames[-1].filename, frames[-1].lineno) if frames else ()))
        known = place in self._known
        self._known.add(place)
        return not known

    def _remove(self, screen: Screen[Any]) -> None:
        if len(self._app.screen_stack) > 1 and self._app.screen is screen:
            self._app.pop_screen()


def describe(error: Exception) -> str:
    if isinstance(error, AgentError):
        return str(error)
    text = one_line(str(error), 200)
    return f"Internal error: {type(error).__name__}{': ' + text if text else ''}. See the log for details."
