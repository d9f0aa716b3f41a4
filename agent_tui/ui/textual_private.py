"""The one place that uses what is private to Textual, a small function or class for each use.

``USES`` lists every name with what it is for, so that a test can say which is gone in another version of Textual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual import constants
from textual.app import App
from textual.geometry import Size
from textual.message_pump import MessagePump
from textual.scroll_view import ScrollView
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.driver import Driver
    from textual.message import Message


USES: tuple[tuple[str, str, str], ...] = (
    ("textual.message_pump.MessagePump", "_dispatch_message", "going on with the next message after an error"),
    ("textual.app.App", "_handle_exception", "showing an error in a line instead of ending with a traceback"),
    ("textual.app.App", "_driver", "sending the terminal its title and notifications"),
    ("textual.app.App", "_display", "drawing every cell again"),
    ("textual.screen.Screen", "_compositor", "drawing every cell again"),
    ("textual.screen.Screen", "_modal_binding_chain", "answering a key at once, as the user bound it"),
    ("textual.widget.Widget", "_scroll_to", "scrolling the transcript without an animation"),
    ("textual.widget.Widget", "_scroll_update", "telling the scrollbar the transcript's size at once"),
    ("textual.drivers.linux_driver.LinuxDriver", "_file", "a terminal that vanishes"),
    ("textual.drivers.linux_driver.LinuxDriver", "_loop", "a terminal that vanishes"),
    ("textual._xterm_parser", "XTermParser", "keys that were typed before the start"),
    ("textual._ansi_sequences", "ANSI_SEQUENCES_KEYS", "telling Alt+Enter from Enter"),
)
"""The class (or module) by its full name, the name that is private to it, and what completes "used for …"."""


class SurvivesHandlers(MessagePump):
    """A node of which ``survives`` decides whether it goes on with its next message when a handler has failed."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if not self.survives(error):
                raise

    def survives(self, error: Exception) -> bool:
        """Takes care of the error; False leaves it to Textual."""
        return False


class AnswersErrors(App[int]):
    """An app that is asked what to do with an error that nobody caught."""

    def _handle_exception(self, error: Exception) -> None:
        self.uncaught(error)

    def uncaught(self, error: Exception) -> None:
        """Takes care of the error; what is raised here ends the program."""
        super()._handle_exception(error)


class JumpingScrollView(ScrollView):
    """Scrolls without an animation, and takes a size and a place in one go, without a layout."""

    def _scroll_to(self, *arguments: Any, **options: Any) -> bool:
        options["animate"] = False
        return super()._scroll_to(*arguments, **options)

    def set_virtual_size(self, size: Size) -> None:
        """Tells the scrollbar of ``size`` without laying everything out again."""
        self.set_reactive(Widget.virtual_size, size)
        self._scroll_update(size)


def bindings_of(widget: Widget, key: str) -> Iterator[Binding]:
    """The widget's own bindings for a key, as the user bound it."""
    for node, bindings in widget.screen._modal_binding_chain:
        if node is widget:
            yield from bindings.key_to_bindings.get(key, ())
            return


def write_to_terminal(app: App[Any], sequence: str) -> None:
    """Sends a control sequence of ours; nothing happens without a terminal."""
    driver = app._driver
    if driver is not None and not driver.is_headless:
        driver.write(sequence)


def tell_server(app: App[Any], kind: str, **facts: object) -> None:
    """Tells the program that shows this one on a page something beside the screen; nothing happens without one."""
    from textual.drivers.web_driver import WebDriver

    driver = app._driver
    if isinstance(driver, WebDriver):
        driver.write_meta({"type": kind, **facts})


def draw_again(app: App[Any]) -> None:
    """Writes every cell of the screen on top."""
    screen = app.screen
    app._display(screen, screen._compositor.render_update(full=True))


def wrap_output(driver: Driver, wrapper: Any) -> None:
    """Puts ``wrapper(file)`` in place of the file that the driver writes to."""
    inner = cast(Any, driver)
    inner._file = wrapper(cast(TextIO, inner._file))


def loop_of(driver: Driver) -> asyncio.AbstractEventLoop:
    """The event loop that the driver sends its messages to."""
    return driver._loop


class _Sequence:
    """What Textual's table wants of a key: its name as ``value``."""

    def __init__(self, value: str) -> None:
        self.value = value


def teach_keys() -> None:
    """Alt+Enter, which terminals without a key protocol send as Esc and Enter: Textual takes it for Enter."""
    from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

    cast(dict[str, object], ANSI_SEQUENCES_KEYS)["\x1b\r"] = (_Sequence("alt+enter"),)


def wait_after_escape(seconds: float | None) -> None:
    """How long after the byte of Esc something more makes another key of it; None is Textual's own time."""
    cast(Any, constants).ESCAPE_DELAY = _ESCAPE_DELAY if seconds is None else seconds


_ESCAPE_DELAY = constants.ESCAPE_DELAY


def messages_of(text: str) -> Iterator[Message]:
    """The keys that a terminal means by ``text``."""
    from textual._xterm_parser import XTermParser

    yield from XTermParser().feed(text)
