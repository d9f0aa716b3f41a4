"""The one place that uses what is private to Textual, a small function or class for each use.

``USES`` lists every name with what it is for, so that a test can say which is gone in another version of Textual.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import constants, events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.geometry import Region, Size
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from textual.binding import Binding
    from textual.driver import Driver
    from textual.message import Message


USES: tuple[tuple[str, str, str], ...] = (
    ("textual.message_pump.MessagePump", "_dispatch_message", "going on with the next message after an error"),
    ("textual.app.App", "_handle_exception", "showing an error in a line instead of ending with a traceback"),
    ("textual.app.App", "_refresh_truecolor_filter", "starting with the terminal's own colours"),
    ("textual.app.App", "_filters", "starting with the terminal's own colours"),
    ("textual.app.App", "_driver", "sending the terminal its title and notifications"),
    ("textual.app.App", "_display", "drawing every cell again"),
    ("textual.screen.Screen", "_compositor", "drawing every cell again"),
    ("textual.screen.Screen", "_modal_binding_chain", "answering a key at once, as the user bound it"),
    ("textual.widget.Widget", "_scroll_to", "scrolling the transcript without an animation"),
    ("textual.widget.Widget", "_scroll_update", "telling the scrollbar the transcript's size at once"),
    ("textual.widget.Widget", "_vertical_scrollbar", "drawing a scrollbar fast"),
    ("textual.app.App", "_start_widget", "drawing a scrollbar fast"),
    ("textual.drivers.linux_driver.LinuxDriver", "_file", "a terminal that vanishes"),
    ("textual.drivers.linux_driver.LinuxDriver", "_loop", "a terminal that vanishes"),
    ("textual._xterm_parser", "XTermParser", "keys that were typed before the start"),
    ("textual._ansi_sequences", "SYNC_START", "frames that do not tear"),
    ("textual._ansi_sequences", "SYNC_END", "frames that do not tear"),
    ("textual._compositor", "Compositor", "drawing only what changed"),
    ("textual._compositor", "CompositorUpdate", "drawing only what changed"),
    ("textual._compositor", "LayoutUpdate", "drawing only what changed"),
    ("textual._compositor", "ChopsUpdate", "drawing only what changed"),
    ("textual._compositor.Compositor", "_dirty_regions", "drawing only what changed"),
    ("textual._compositor.Compositor", "_regions_to_spans", "drawing only what changed"),
    ("textual.app.App", "_batch_count", "drawing nothing between two halves of a change"),
    ("textual.app.App", "_running", "drawing nothing at the end"),
    ("textual.app.App", "_closed", "drawing nothing at the end"),
    ("textual.app.App", "_sync_available", "frames that do not tear"),
    ("textual.app.App", "_previous_cursor_position", "drawing nothing where nothing changed"),
    ("textual.screen.Screen", "_on_idle", "showing a key before what else changed"),
    ("textual.screen.Screen", "_dirty_widgets", "showing a key before what else changed"),
    ("textual.screen.Screen", "_layout_required", "showing a key before what else changed"),
    ("textual.screen.Screen", "_compositor_refresh", "showing a key before what else changed"),
    ("textual.screen.Screen", "_on_timer_update", "showing a key before what else changed"),
    ("textual.drivers.linux_driver", "XTermParser", "hearing what the terminal answers"),
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


def filtered(widget: Widget, strips: list[Strip]) -> list[Strip]:
    """Lines as the user's terminal can show them: without colours where it has none, for example."""
    filters = widget.get_line_filters()
    if filters:
        background = widget.background_colors[1]
        for line_filter in filters:
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
    return strips


class LeanScrollBar(ScrollBar):
    """A vertical scrollbar whose lines are made without a console and without styles for each of them."""

    def render_lines(self, crop: Region) -> list[Strip]:
        bar = self.render()
        assert isinstance(bar, ScrollBarRender) and isinstance(bar.style, Style)
        style, (width, height) = bar.style, self.size
        drawn = bar.render_bar(
            size=height,
            virtual_size=bar.virtual_size,
            window_size=bar.window_size,
            position=bar.position,
            thickness=width,
            vertical=True,
            back_color=style.bgcolor or Color.default(),
            bar_color=style.color or Color.default(),
        )
        base = self.visual_style.rich_style
        strips = [one_segment(segment, width, base) for segment in drawn.segments[crop.y : crop.bottom]]
        begin, end = crop.column_span
        return [strip.crop(begin, end) for strip in filtered(self, strips)]


@lru_cache(256)
def one_segment(segment: Segment, width: int, base: Style) -> Strip:
    """A line that is one segment: the same strip for the same segment, so that it is made into text once."""
    return Strip([segment], width).apply_style(base)


class JumpingScrollView(ScrollView):
    """Scrolls without an animation, and takes a size and a place in one go, without a layout."""

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        if self._vertical_scrollbar is None:
            bar = self._vertical_scrollbar = LeanScrollBar(name="vertical", thickness=self.scrollbar_size_vertical)
            bar.display = False
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    def _scroll_to(self, *arguments: Any, **options: Any) -> bool:
        options["animate"] = False
        return super()._scroll_to(*arguments, **options)

    def set_virtual_size(self, size: Size) -> None:
        """Tells the scrollbar of ``size`` without laying everything out again."""
        self.set_reactive(Widget.virtual_size, size)
        self._scroll_update(size)


class Glass(Protocol):
    """What the terminal shows; ``terminal.glass`` says more."""

    def forget(self) -> None: ...

    def forget_rows(self, rows: Sequence[int]) -> None: ...

    def fit(self, width: int, height: int) -> None: ...

    def knows(self, y: int, columns: Sequence[int]) -> bool: ...

    def draw(self, changes: Mapping[int, dict[int, str]], whole: Mapping[int, bool]) -> str: ...


class FrameUpdate(CompositorUpdate):
    """Rows by their number, their parts by the column they begin at; ``whole``: of which rows these are all parts."""

    def __init__(self, size: Size, rows: dict[int, dict[int, Strip | None]], whole: dict[int, bool]) -> None:
        self.size = size
        self.rows = rows
        self.whole = whole

    def cells(self, console: Console) -> dict[int, dict[int, str]]:
        """The parts as they are sent."""
        return {
            y: {x: strip.render(console) if strip is not None else "" for x, strip in row.items()}
            for y, row in self.rows.items()
        }


class FrameCompositor(Compositor):
    """Asks widgets for the lines that changed and for no others, and leaves lines whole that nothing covers."""

    def __init__(self, glass: Glass) -> None:
        super().__init__()
        self.glass = glass

    def render_partial_update(self) -> FrameUpdate | None:  # type: ignore[override]
        """What is dirty; with it whatever the terminal does not show for certain."""
        regions, glass = self._dirty_regions.copy(), self.glass
        self._dirty_regions.clear()
        if not regions:
            return None
        width, height = self.size
        glass.fit(width, height)
        spans: dict[int, list[tuple[int, int]]] = {}
        for y, begin, end in self._regions_to_spans(regions):
            if 0 <= y < height:
                spans.setdefault(y, []).append((begin, end))
        rows: dict[int, dict[int, Strip | None]] = {}
        whole: dict[int, bool] = {}
        for y, cuts in enumerate(self.cuts):
            known = glass.knows(y, cuts[:-1])
            if not known:
                rows[y] = dict.fromkeys(cuts[:-1])
            elif y in spans:
                dirty = spans[y]
                rows[y] = {x: None for x, end in pairwise(cuts) if any(x < b and end > a for a, b in dirty)}
            else:
                continue
            whole[y] = not known
        self.fill(rows)
        return FrameUpdate(self.size, rows, whole)

    def fill(self, rows: dict[int, dict[int, Strip | None]]) -> None:
        """Asks the widgets, those in front first, for what is still missing."""
        missing = {y: sum(strip is None for strip in row.values()) for y, row in rows.items()}
        for widget, (region, clip) in self.visible_widgets.items():
            area = region.intersection(clip)
            lines = [y for y in area.line_range if missing.get(y) and missing_in(rows[y], area.x, area.right)]
            while lines:
                count = next((n for n, y in enumerate(lines) if y != lines[0] + n), len(lines))
                crop = Region(area.x - region.x, lines[0] - region.y, area.width, count)
                for y, strip in zip(lines[:count], widget.render_lines(crop), strict=False):
                    missing[y] -= self.put(rows[y], self.cuts[y], area, strip)
                lines = lines[count:]

    def put(self, row: dict[int, Strip | None], cuts: list[int], area: Region, strip: Strip) -> int:
        """Puts the line of a widget where nothing stands yet; how many parts that were."""
        own = [cut for cut in cuts if area.x <= cut <= area.right]
        pieces: Sequence[Strip]
        if len(own) > 1 and strip.cell_length == own[1] - own[0]:
            pieces = (strip,)
        else:
            pieces = strip.divide([cut - area.x for cut in own[1:]])
        count = 0
        for x, piece in zip(own, pieces, strict=False):
            if x in row and row[x] is None:
                row[x] = piece
                count += 1
        return count


def missing_in(row: dict[int, Strip | None], begin: int, end: int) -> bool:
    return any(strip is None and begin <= x < end for x, strip in row.items())


class DrawsFrames(App[int]):
    """An app that sends the terminal only what it does not show yet, each frame as one piece."""

    glass: Glass
    key_pressed = False
    """Whether a key was pressed whose effect is not on the terminal yet."""

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self.key_pressed = True
        elif isinstance(event, events.Resize):
            # The terminal was perhaps, for a moment, of yet another size, and what it shows is what that left.
            self.glass.forget()
            self.screen.refresh()
        await super().on_event(event)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        frame = as_frame(renderable)
        if frame is None:
            self.drawn_by_textual(renderable)
            super()._display(screen, renderable)
            return
        driver = self._driver
        if self._running and not (self._closed or self._batch_count or driver is None or driver.is_headless):
            try:
                text = self.sequence(frame)
            except Exception as error:
                self.glass.forget()
                self._handle_exception(error)
            else:
                if text:
                    frame_text = f"{SYNC_START}{text}{SYNC_END}" if self._sync_available else text
                    for at in range(0, len(frame_text), ONE_WRITE):
                        driver.write(frame_text[at : at + ONE_WRITE])
                    driver.flush()
        self.post_display_hook()

    def sequence(self, frame: FrameUpdate) -> str:
        self.glass.fit(*frame.size)
        text = self.glass.draw(frame.cells(self.console), frame.whole)
        cursor = self.screen.outer_size.clamp_offset(self.cursor_position)
        if text or cursor != self._previous_cursor_position:
            self._previous_cursor_position = cursor
            text += f"\x1b[{cursor.y + 1};{cursor.x + 1}H"
        return text

    def drawn_by_textual(self, renderable: RenderableType | None) -> None:
        if isinstance(renderable, ChopsUpdate):
            self.glass.forget_rows([y for y, _, _ in renderable.spans])
        elif renderable is not None:
            self.glass.forget()


ONE_WRITE = 8_192 if sys.platform == "win32" else 1 << 30
"""Characters that a terminal is given at once: the thread that writes may have to wait for each piece, but Python fails
on long ones on Windows."""


def as_frame(renderable: RenderableType | None) -> FrameUpdate | None:
    if isinstance(renderable, LayoutUpdate):
        rows: dict[int, dict[int, Strip | None]] = {}
        for y, strips in enumerate(renderable.strips, renderable.region.y):
            row = rows[y] = {}
            x = renderable.region.x
            for strip in strips:
                row[x] = strip
                x += strip.cell_length
        return FrameUpdate(renderable.region.size, rows, dict.fromkeys(rows, True))
    return renderable if isinstance(renderable, FrameUpdate) else None


class EchoingScreen(Screen[None]):
    """A screen that draws only what changed, and what a key did before everything else."""

    app: DrawsFrames

    def __init__(self, glass: Glass, **names: Any) -> None:
        super().__init__(**names)
        self._compositor = FrameCompositor(glass)

    async def _on_idle(self, event: events.Idle) -> None:
        """Textual goes on with what is left when this is done."""
        app, widget = self.app, self.focused
        if widget is None or not app.key_pressed or widget not in self._dirty_widgets:
            return
        if not self.is_current or app._batch_count:
            return
        app.key_pressed = False
        if self._layout_required:
            self._on_timer_update()
            return
        later = self._dirty_widgets - {widget}
        self._compositor.update_widgets({widget})
        self._compositor_refresh()
        self._dirty_widgets.update(later)


def wear_first(app: App[Any], theme: str) -> None:
    """Starts with a registered theme; setting it later would style everything twice."""
    app.set_reactive(App.theme, theme)
    app.stylesheet.set_variables(app.get_css_variables())
    app._refresh_truecolor_filter(app.ansi_theme)
    if app.no_color and app.native_ansi_color:
        from textual.filter import Monochrome, NoColor

        app._filters[:] = [NoColor() if isinstance(each, Monochrome) else each for each in app._filters]


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


def draw_again(app: DrawsFrames) -> None:
    """Writes every cell of the screen on top."""
    app.glass.forget()
    screen = app.screen
    app._display(screen, screen._compositor.render_update(full=True))


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
