"""Drawn lines, and the two that always stand around the prompt: what goes on above it, the status below it."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from agent_tui.text.cells import shorten, whole_parts
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import duration, money, percent, share_in, tenths_of, tokens, total_text
from agent_tui.ui.first_frame import STARTING
from agent_tui.ui.safety import Guarded
from agent_tui.ui.theme import Paint, Piece, paint_of, strip_of, width_of

if TYPE_CHECKING:
    from agent_tui.models.context import ContextUsage, Draft
    from agent_tui.models.steps import CacheForecast


class Lines(Guarded, Widget):
    """Subclasses say how high they are and draw a line."""

    DEFAULT_CSS = """
    Lines { height: auto; background: $background; }
    """

    def __init__(self, *, id: str | None = None, height: int = 0) -> None:
        super().__init__(id=id)
        self.set_height(height)

    def set_height(self, height: int) -> None:
        self.line_count = height
        self.styles.height = height
        self.display = height > 0

    @abstractmethod
    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        """The pieces of line ``y``."""

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        return strip_of(self.line(y, width, paint_of(self.app)), width, self.rich_style)


HINT_SECONDS = 2.0
"""How long a hint stands in front of what goes on."""
IDLE_SECONDS, PER_CHARACTER = 3.0, 0.06
"""How long a hint stands where nothing goes on: time to look there, and to read it."""
LEAST_DETAIL = 8
"""Cells below which a detail says nothing."""
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Activity(Lines):
    """``begin`` a phase, ``end`` it; ``hint`` shows a line until the next key or phase, or until it has been read."""

    DEFAULT_CSS = """
    Activity { padding: 0 1; }
    """

    def __init__(self, reduced_motion: bool, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(id="activity", height=1)
        self.reduced_motion = reduced_motion
        self.clock = clock
        self.phase = ""
        self.key_hint = ""
        self.detail = ""
        self.hint_text = ""
        self.warning = ""
        self.until: float | None = None
        self._since = self._begun = 0.0
        self._waits_since: float | None = None
        self._timer: Timer | None = None
        self._hint_timer: Timer | None = None

    def begin(
        self,
        phase: str,
        key_hint: str = "Esc to interrupt",
        *,
        seconds: float | None = None,
        detail: str = "",
        waits: bool = False,
        timed: bool = False,
    ) -> None:
        """Shows a phase; ``seconds`` makes it a countdown, ``detail`` takes the room that is left. A phase that follows
        another keeps its clock, which stands still while the user is waited for (``waits``), but for one that is
        ``timed`` by itself."""
        if not self.phase:
            self._since, self._waits_since = self.clock(), None
        if self._waits_since is not None and not waits:
            self._since += self.clock() - self._waits_since
            self._waits_since = None
        elif waits and self._waits_since is None:
            self._waits_since = self.clock()
        self.phase, self.key_hint, self.detail = phase, key_hint, one_line(detail)
        self._begun = self.clock() if timed else self._since
        self.until = None if seconds is None else self.clock() + seconds
        self.hint_text = ""
        if self._timer is None and self.is_attached:
            self._timer = self.set_interval(1.0 if self.reduced_motion else 0.1, self.refresh)
        self.refresh()

    def end(self) -> None:
        self.phase = ""
        self.until = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.refresh()

    def hint(self, text: str, seconds: float | None = None) -> None:
        """Shows a line for ``seconds``, or as long as reading it takes; empty takes it away."""
        self.hint_text = one_line(text)
        if self._hint_timer is not None:
            self._hint_timer.stop()
            self._hint_timer = None
        if text and self.is_attached:
            reading = HINT_SECONDS if self.phase else IDLE_SECONDS + PER_CHARACTER * len(self.hint_text)
            self._hint_timer = self.set_timer(reading if seconds is None else seconds, lambda: self.hint(""))
        self.refresh()

    def warn(self, text: str) -> None:
        """Shows what is to be known before Enter, until it is taken away by an empty one."""
        if text != self.warning:
            self.warning = text
            self.refresh()

    @property
    def waits(self) -> bool:
        return bool(self.phase) and self._waits_since is not None

    @property
    def seconds(self) -> float:
        """How long the current phases have lasted, without what the user was waited for; 0 when nothing goes on."""
        now = self.clock() if self._waits_since is None else self._waits_since
        return now - self._since if self.phase else 0.0

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self.hint_text:
            return [(whole_parts(self.hint_text, width), paint("accent"))]
        if not self.phase and self.warning:
            return [(whole_parts(self.warning, width), paint("warning"))]
        if not self.phase:
            return []
        elapsed = self.seconds - (self._begun - self._since)
        frame = "●" if self.reduced_motion else FRAMES[int(elapsed * 10) % len(FRAMES)]
        if self.until is not None:
            clock = f" in {max(0, math.ceil(self.until - self.clock()))} s"
        else:
            clock = f" {duration(math.floor(elapsed))}" if elapsed >= 1 and not self.waits else ""
        phase = shorten(self.phase + clock, max(1, width - 2))
        room = width - 2 - len(phase) - 3
        if self.warning and room >= LEAST_DETAIL:
            warning = f" · {shorten(self.warning, room)}"
            return [(f"{frame} ", paint("primary")), (phase, paint("foreground")), (warning, paint("warning"))]
        keys = whole_parts(self.key_hint, room) if room >= len(self.key_hint.partition(" · ")[0]) else ""
        tail = f" · {keys}" if keys else ""
        room -= len(tail)
        if self.detail and room >= LEAST_DETAIL:
            tail += f" · {shorten(self.detail, room)}"
        return [(f"{frame} ", paint("primary")), (phase, paint("foreground")), (tail, paint("muted"))]


MODE_COLOR = {"ask": "primary", "accept-edits": "success", "plan": "accent", "auto": "error", "bypass": "error"}


class StatusFacts:
    """What the status line shows; ``in_flight`` tokens and the draft's are on top of ``usage``, ``jobs`` run in the
    background."""

    model: str = ""
    demo: bool = False
    mode: str = "ask"
    branch: str | None = None
    usage: ContextUsage | None = None
    in_flight: int = 0
    draft: Draft | None = None
    paused: bool = False
    off: bool = False
    read_only: bool = False
    jobs: int = 0
    starting: bool = True


class StatusLine(Lines):
    """One line; what matters least is shortened first, and nothing that must be there is left out at 60 columns."""

    DEFAULT_CSS = """
    StatusLine { padding: 0 1; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__(id="status", height=1)
        self.facts = StatusFacts()
        self._mode = ""

    def update_facts(self, facts: StatusFacts) -> None:
        self.facts = facts
        self.refresh()

    def show_mode(self, words: str) -> None:
        """The mode of vim's keys, with what was typed of a command; nothing without them."""
        self._mode = words
        self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        for tight in range(6):
            left, right = self._left(tight, paint), self._right(tight, paint)
            gap = width - width_of(left) - width_of(right)
            if gap >= 1:
                return [*left, (" " * gap, paint()), *right]
        pieces: list[Piece] = []
        for text, style in [*right, ("  ", paint()), *left]:
            if (room := width - width_of(pieces)) > 0:
                pieces.append((shorten(text, room), style))
        return pieces

    def _left(self, tight: int, paint: Paint) -> list[Piece]:
        facts = self.facts
        model = one_line(facts.model, 80) or (STARTING if facts.starting else "no model")
        pieces: list[Piece] = []
        if self._mode:
            words = one_line(self._mode, 40)
            mode = words.partition(" ")[0]
            color = "success" if mode in ("INSERT", "REPLACE") else "accent"
            words = words if tight < 3 else words.replace(mode, mode[0], 1)
            pieces += [(words, paint(color, bold=True)), ("  ", paint())]
        pieces.append((shorten(model, (40, 40, 28, 20, 14, 10)[tight]), paint("foreground", bold=True)))
        if facts.demo:
            pieces.append((" DEMO", paint("accent", bold=True)))
        mode = facts.mode if tight < 4 else {"accept-edits": "edits"}.get(facts.mode, facts.mode)
        parts = [(mode, paint(MODE_COLOR.get(facts.mode, "primary")))]
        if facts.branch:
            branch = shorten(one_line(facts.branch, 80), (32, 24, 16, 10, 8, 5)[tight])
            parts.append((branch, paint("muted")))
        if facts.jobs:
            parts.append((f"{facts.jobs} in background" if tight < 2 else f"⚙{facts.jobs}", paint("accent")))
        if facts.read_only:
            parts.append(("read-only" if tight < 3 else "r/o", paint("warning", bold=True)))
        gap = ("  " if tight < 3 else " ", paint())
        return [*pieces, *(piece for part in parts for piece in (gap, part))]

    def _right(self, tight: int, paint: Paint) -> list[Piece]:
        facts, usage = self.facts, self.facts.usage
        gap = "  " if tight < 3 else " "
        pieces: list[Piece] = []
        # Where nothing can be sent as it is, the next message compacts, paused or not.
        paused = facts.paused and not (usage is not None and usage.would_compact)
        if facts.off or paused:
            word = "compaction off" if facts.off else "compaction paused"
            pieces += [(word if tight < 2 else word.split()[1], paint("warning")), (gap, paint())]
        if usage is None:
            return pieces
        if usage.forecast is not None:
            pieces += cache_pieces(usage.forecast, tight, gap, paint)
        context = context_pieces(usage, facts.in_flight, facts.draft, tight, paint)
        return [*pieces, *context, (gap, paint()), (money(usage.session.cost), paint("muted"))]


def cache_pieces(forecast: CacheForecast, tight: int, gap: str, paint: Paint) -> list[Piece]:
    """Returns words for what the next request pays anew; where there is room, until when nothing."""
    from agent_tui.context.cache_forecast import forecast_words, price_words, short_words

    cold = forecast.cold
    if cold is None:
        return [(forecast_words(forecast), paint("faint")), (gap, paint())] if forecast.until and not tight else []
    text = price_words(cold) if tight < 2 else short_words(cold) if tight < 5 else "uncached"
    return [(text, paint("warning")), (gap, paint())]


def context_pieces(usage: ContextUsage, in_flight: int, draft: Draft | None, tight: int, paint: Paint) -> list[Piece]:
    """Percentage and tokens of the active context, ``~`` before them where estimates are in it. What is written and not
    sent yet stands beside its tokens, and is in the percentage: so full it gets."""
    total, written = usage.total + in_flight, draft.tokens if draft is not None else 0
    rough = in_flight > 0 or usage.approximate
    whole, guessed = total + written, rough or (draft is not None and draft.approximate)
    used = tokens(total, True) if in_flight else total_text(usage)
    if tight >= 3:
        used = used.replace(" ", "")
    color, then = _level(total, usage.limit), _level(whole, usage.limit)
    added = "accent" if then == "foreground" else then
    more: list[Piece] = []
    if draft is not None:
        plus = " + " if tight < 2 else "+"
        more = [(f"{plus}{tokens(written, draft.approximate)}", paint(added))]
    if not usage.window:
        return [(used, paint(color)), *more, (" of unknown window" if tight < 2 else "/?", paint("muted"))]
    pieces: list[Piece] = []
    if tight < 2:
        full, first = (min(8, max(1 if part else 0, round(8 * part / usage.window))) for part in (whole, total))
        if written and first == full:
            first, full = (full - 1, full) if full > 1 else (1, 2)
        filled = paint("context-messages" if color == "foreground" else color)
        pieces += [("━" * first, filled), ("━" * (full - first), paint(added))]
        pieces += [("━" * (8 - full), paint("context-free")), (" ", paint())]
    part = share_in(whole, usage.window, guessed and (in_flight > 0 or not usage.spread))
    if tight >= 3:
        part = percent(tenths_of(whole, usage.window) / 10, 0, tight=True)
    sep = " / " if tight < 2 else "/"
    pieces += [
        (part, paint(then, bold=True)),
        (" · " if tight < 2 else " ", paint("faint")),
        (used, paint(color)),
        *more,
        (f"{sep}{tokens(usage.window, False)}", paint("muted")),
    ]
    return pieces


def _level(size: int, limit: int | None) -> str:
    """The colour of so many tokens: red above the limit, and yellow from four fifths of it on."""
    if limit is None:
        return "foreground"
    return "error" if size > limit else "warning" if size > 0.8 * limit else "foreground"
