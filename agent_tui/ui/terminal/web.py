"""A terminal in a page of the browser, which may be left, reloaded and opened elsewhere while the chat goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.drivers.web_driver import WebDriver

from agent_tui.terminal_input import TerminalReader
from agent_tui.ui.terminal.driver import WholeFrames
from agent_tui.ui.textual_private.keys import TerminalMessages, packets_of, take_meta

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver


def driver_class(
    leave: Callable[[], object],
    failed: Callable[[Exception], object],
    redraw: Callable[[], object],
    size: tuple[int, int],
) -> type[Driver]:
    """The driver of a chat that is served. ``leave`` is called on the event loop when it is to end: the server says so,
    or is gone; ``failed`` where reading keys fails, ``redraw`` when another page shows it. ``size`` is that of the
    first one, columns and lines."""

    class ServedDriver(WebDriver):
        def __init__(self, app: App[Any], **more: Any) -> None:
            super().__init__(app, **{**more, "size": size})
            self._events = asyncio.get_running_loop()
            self._frames = WholeFrames()
            self.reader = TerminalReader()
            self._begun: list[str] | None = []
            self._first_words = ""

        def write(self, data: str) -> None:
            data = self._frames.take(data)
            if not data:
                return
            if self._begun is not None:
                self._begun.append(data)
            try:
                super().write(data)
            except OSError:
                return  # nobody listens any more: the end of the input says the rest

        def write_meta(self, data: dict[str, object]) -> None:
            try:
                super().write_meta(data)
            except OSError:
                return

        def start_application_mode(self) -> None:
            super().start_application_mode()
            self._first_words, self._begun = "".join(self._begun or ()), None

        def run_input_thread(self) -> None:
            known = TerminalMessages()
            try:
                for kind, content in packets_of(self):
                    if kind == "D":
                        inputs = self.reader.feed(content)
                    else:
                        inputs = self.reader.tick()
                        if kind:
                            take_meta(self, kind, content)
                    for message in (message for one in inputs for message in known.of(one)):
                        self.process_message(message)
            except Exception as error:
                self._on_loop(partial(failed, error))
            if not self.exit_event.is_set():
                self._on_loop(leave)

        def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
            if packet_type == "attach":
                super().on_meta("resize", payload)
                self._on_loop(self._show_again)
            elif packet_type == "quit":
                self._on_loop(leave)
            elif packet_type in ("resize", "focus", "blur"):
                super().on_meta(packet_type, payload)

        def _on_loop(self, call: Callable[[], object]) -> None:
            self._events.call_soon_threadsafe(call)

        def _show_again(self) -> None:
            """A terminal that knows nothing yet is told how it is used, then what stands on it."""
            self.write(self._first_words)
            redraw()

    return ServedDriver
