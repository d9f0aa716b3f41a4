"""What a terminal sends, as Textual's messages: keys by its names, pastes, the mouse, the focus, sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from textual import constants, events, messages
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import IS_ITERM, XTermParser
from textual.drivers._byte_stream import ByteStream
from textual.keys import Keys

from agent_tui.terminal_input import KeyPress, PastedText, TerminalInput, TerminalReport, TypedText

if TYPE_CHECKING:
    from textual.drivers.web_driver import WebDriver
    from textual.message import Message

HearsReport: TypeAlias = Callable[[str], object]
"""Is told each report of the terminal that means nothing to Textual."""

MOST_CELLS = 4_096
"""Columns or lines of a terminal that is believed to be so large."""
_MOUSE = re.compile(r"\x1b\[<\d{1,3};-?\d{1,5};-?\d{1,5}[Mm]")
_CURSOR = re.compile(r"\x1b\[(\d{1,5});(\d{1,5})R")
_MODE = re.compile(r"\x1b\[\?(\d{1,5});(\d)\$y")
_SIZE = re.compile(r"\x1b\[48;(\d{1,6})(?::[\d:]*)?;(\d{1,6})(?::[\d:]*)?;(\d{1,6})(?::[\d:]*)?;(\d{1,6})(?::[\d:]*)?t")
_NUMBERED = re.compile(r"\x1b\[(\d*)(?:;\d+)?([A-Z~])|\x1b\[(5[789]\d{3}|6\d{4})(?:;\d+)?(u)")
"""Keys that write nothing, by their numbers."""


class TerminalMessages:
    """Makes messages of what was read. ``listeners`` hear the terminal's answers; more of them may come later."""

    def __init__(self, listeners: Iterable[HearsReport] = ()) -> None:
        self._listeners = listeners
        self._parser = XTermParser()

    def of(self, one: TerminalInput) -> Iterator[Message]:
        match one:
            case TypedText(text):
                for letter in text:
                    yield from self._keys(letter)
            case PastedText(text):
                yield events.Paste(text)
            case KeyPress(sequence):
                yield from self._keys(sequence)
            case TerminalReport(sequence):
                yield from self._report(sequence)

    def _keys(self, sequence: str) -> Iterator[Message]:
        for key in self._named_keys(sequence):
            if key.key != Keys.Ignore:
                yield key

    def _named_keys(self, sequence: str) -> Iterable[events.Key]:
        numbered = _NUMBERED.fullmatch(sequence)
        if numbered is not None:
            number, final = (numbered[1] or "1", numbered[2]) if numbered[2] else numbered.group(3, 4)
            if number + final not in FUNCTIONAL_KEYS:
                # Textual takes the number of a key that it does not know for a letter's.
                known = ANSI_SEQUENCES_KEYS.get(sequence)
                return [events.Key(key.value, None) for key in known] if isinstance(known, tuple) else []
        elif len(sequence) == 2 and sequence not in ANSI_SEQUENCES_KEYS:
            return self._parser._sequence_to_key_events(sequence[1], alt=True)
        return self._parser._sequence_to_key_events(sequence)

    def _report(self, report: str) -> Iterator[Message]:
        if report in ("\x1b[I", "\x1b[O"):
            yield events.AppFocus() if report == "\x1b[I" else events.AppBlur()
        elif _MOUSE.fullmatch(report) is not None:
            if (mouse := self._parser.parse_mouse_code(report)) is not None:
                yield mouse
        elif (cursor := _CURSOR.fullmatch(report)) is not None:
            yield events.CursorPosition(int(cursor[2]) - 1, int(cursor[1]) - 1)
        elif (mode := _MODE.fullmatch(report)) is not None:
            yield from _supported(mode[1], int(mode[2]))
        elif (size := _SIZE.fullmatch(report)) is not None:
            yield from self._resized(*map(int, size.groups()))
        else:
            for listener in list(self._listeners):
                listener(report)

    def _resized(self, height: int, width: int, high: int, wide: int) -> Iterator[Message]:
        """A size in the midst of keys. One that no terminal has is not believed: Textual would make so many cells."""
        if not (0 < width <= MOST_CELLS and 0 < height <= MOST_CELLS):
            return
        in_pixels = wide >= width and high >= height
        resize = events.Resize.from_dimensions((width, height), (wide, high) if in_pixels else None)
        self._parser.terminal_size, self._parser.terminal_pixel_size = resize.size, resize.pixel_size
        self._parser.mouse_pixels = in_pixels
        yield resize


def _supported(mode: str, setting: int) -> Iterator[Message]:
    """What the terminal says of a mode that Textual asked about."""
    if mode == "2026" and setting > 0:
        yield messages.TerminalSupportsSynchronizedOutput()
    elif mode == "2048" and constants.SMOOTH_SCROLL and not IS_ITERM:
        yield messages.InBandWindowResize.from_setting_parameter(setting)


def packets_of(driver: WebDriver) -> Iterator[tuple[str, bytes]]:
    """What a page's server sends, as kind and content; every tenth of a second an empty one. It ends with the input."""
    stream, reader = ByteStream(), driver._input_reader
    try:
        for data in reader:
            yield from stream.feed(data) if data else [("", b"")]
    finally:
        reader.close()


def take_meta(driver: WebDriver, kind: str, content: bytes) -> None:
    """Has a driver do what its page's server says beside keys."""
    driver._on_meta(kind, content)
