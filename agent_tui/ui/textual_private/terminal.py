"""The driver: what goes to the terminal beside frames, and what comes from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from textual import constants
from textual.app import App

if TYPE_CHECKING:
    from textual.driver import Driver
    from textual.message import Message


def write_to_terminal(app: App[Any], sequence: str) -> None:
    """Sends a control sequence of ours; nothing happens without a terminal."""
    driver = app._driver
    if driver is not None and not driver.is_headless:
        driver.write(sequence)


def ask_terminal(app: App[Any], question: str, listener: Hears | None) -> None:
    """Asks the terminal; what ``listener``, which goes on to listen, takes of its answer is no key. Nothing happens
    where nobody would answer."""
    ask = getattr(app._driver, "ask", None)
    if ask is not None:
        ask(question, listener)


def tell_server(app: App[Any], kind: str, **facts: object) -> None:
    """Tells the program that shows this one on a page something beside the screen; nothing happens without one."""
    from textual.drivers.web_driver import WebDriver

    driver = app._driver
    if isinstance(driver, WebDriver):
        driver.write_meta({"type": kind, **facts})


def wrap_output(driver: Driver, wrapper: Any) -> None:
    """Puts ``wrapper(file)`` in place of the file that the driver writes to."""
    inner = cast(Any, driver)
    inner._file = wrapper(cast(TextIO, inner._file))


def loop_of(driver: Driver) -> asyncio.AbstractEventLoop:
    """The event loop that the driver sends its messages to."""
    return driver._loop


class Hears(Protocol):
    """Takes out of what comes from the terminal what is no key."""

    def take(self, text: str) -> str: ...

    def give_back(self) -> str: ...


@contextmanager
def listening(listeners: Sequence[Hears]) -> Iterator[None]:
    """A driver's input that is begun meanwhile goes through the ``listeners`` first; more of them may come later."""
    from textual._xterm_parser import XTermParser
    from textual.drivers import linux_driver

    class Parser(XTermParser):
        def feed(self, data: str) -> Iterator[Message]:
            left = data
            for listener in listeners:
                left = listener.take(left) if data else left
            if left or not data:  # an empty text would be the end
                yield from super().feed(left)

        def tick(self) -> Iterator[Message]:
            yield from super().tick()
            for listener in listeners:
                if held := listener.give_back():
                    yield from super().feed(held)

    module = cast(Any, linux_driver)
    module.XTermParser = Parser
    try:
        yield
    finally:
        module.XTermParser = XTermParser


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
