"""Uses of what is private to Textual beside drawing: the driver, errors, the first theme."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual.app import App
from textual.message_pump import MessagePump
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.driver import Driver
    from textual.message import Message

    from agent_tui.ui.textual_private.keys import HearsReport


def driver_of(app: App[Any]) -> Driver | None:
    """Returns the driver, once there is one."""
    return app._driver


def write_to_terminal(app: App[Any], sequence: str) -> None:
    """Sends a control sequence of ours; nothing happens without a terminal."""
    driver = driver_of(app)
    if driver is not None and not driver.is_headless:
        driver.write(sequence)


def ask_terminal(app: App[Any], question: str, listener: HearsReport | None) -> None:
    """Asks the terminal; ``listener`` hears what it says from now on. Nothing happens where nobody would answer."""
    ask = getattr(driver_of(app), "ask", None)
    if ask is not None:
        ask(question, listener)


def wait_after_escape(app: App[Any], seconds: float) -> None:
    """Sets how many seconds after the byte of Esc something more makes another key of it."""
    reader = getattr(driver_of(app), "reader", None)
    if reader is not None:
        reader.escape_wait = seconds


def tell_server(app: App[Any], kind: str, **facts: object) -> None:
    """Tells the program that shows this one on a page something beside the screen; nothing happens without one."""
    from textual.drivers.web_driver import WebDriver

    driver = driver_of(app)
    if isinstance(driver, WebDriver):
        driver.write_meta({"type": kind, **facts})


def wrap_output(driver: Driver, wrapper: Callable[[TextIO], object]) -> None:
    """Puts ``wrapper(file)`` in place of the file that the driver writes to."""
    inner = cast(Any, driver)
    inner._file = wrapper(inner._file)


class _Sequence:
    """A key as Textual's table wants it: its name as ``value``."""

    def __init__(self, value: str) -> None:
        self.value = value


def teach_keys() -> None:
    """Alt+Enter, which terminals without a key protocol send as Esc and Enter: Textual takes it for Enter."""
    from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

    cast(dict[str, object], ANSI_SEQUENCES_KEYS)["\x1b\r"] = (_Sequence("alt+enter"),)


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


def wear_first(app: App[Any], theme: str) -> None:
    """Starts with a registered theme; setting it later styles everything twice."""
    from textual.filter import ANSIToTruecolor, Monochrome, NoColor

    app.set_reactive(App.theme, theme)
    app.stylesheet.set_variables(app.get_css_variables())
    native = app.native_ansi_color
    for n, each in enumerate(app._filters):
        if isinstance(each, ANSIToTruecolor):
            app._filters[n] = ANSIToTruecolor(app.ansi_theme, enabled=not native)
        elif isinstance(each, Monochrome) and native:
            app._filters[n] = NoColor()


def action_of(widget: Widget, key: str) -> str | None:
    """Returns the widget's own action for a key, as the user bound it."""
    active = widget.screen.active_bindings.get(key)
    return active.binding.action if active is not None and active.node is widget else None
