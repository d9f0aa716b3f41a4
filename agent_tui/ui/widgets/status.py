"""The status line: model, mode, branch, context and cost, in whatever width there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import money, percent, share_in, tenths_of, tokens
from agent_tui.ui.draw import Piece, width_of
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from agent_tui.models.cache import CacheOutlook
    from agent_tui.models.context import ContextUsage

MODE_COLOR = {"ask": "primary", "accept-edits": "success", "plan": "accent", "auto": "error", "bypass": "error"}


class StatusFacts:
    """What the line shows. ``usage`` is the calculator's answer as it is; ``in_flight`` tokens are on top. ``jobs``
    commands run in the background."""

    model: str = ""
    demo: bool = False
    mode: str = "ask"
    branch: str | None = None
    usage: ContextUsage | None = None
    in_flight: int = 0
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
        room = width
        for text, style in [*right, ("  ", paint()), *left]:
            if room > 0:
                text = shorten(text, room)
                pieces.append((text, style))
                room -= width_of([(text, style)])
        return pieces

    def _left(self, tight: int, paint: Paint) -> list[Piece]:
        facts = self.facts
        model = one_line(facts.model, 80) or ("starting…" if facts.starting else "no model")
        limit = (40, 40, 28, 20, 14, 10)[tight]
        pieces: list[Piece] = [(shorten(model, limit), paint("foreground", bold=True))]
        if self._mode:
            mode, _, pending = one_line(self._mode, 40).partition(" ")
            words = f"{mode} {pending}" if pending else mode
            color = "success" if mode in ("INSERT", "REPLACE") else "accent"
            pieces = [
                (words if tight < 3 else words.replace(mode, mode[0], 1), paint(color, bold=True)),
                ("  ", paint()),
                *pieces,
            ]
        if facts.demo:
            pieces.append((" DEMO", paint("accent", bold=True)))
        gap = "  " if tight < 3 else " "
        mode = facts.mode if tight < 4 else {"accept-edits": "edits"}.get(facts.mode, facts.mode)
        pieces += [(gap, paint()), (mode, paint(MODE_COLOR.get(facts.mode, "primary")))]
        if facts.branch:
            branch = shorten(one_line(facts.branch, 80), (32, 24, 16, 10, 8, 5)[tight])
            pieces += [(gap, paint()), (branch, paint("muted"))]
        if facts.jobs:
            pieces += [
                (gap, paint()),
                (f"{facts.jobs} in background" if tight < 2 else f"⚙{facts.jobs}", paint("accent")),
            ]
        if facts.read_only:
            pieces += [(gap, paint()), ("read-only" if tight < 3 else "r/o", paint("warning", bold=True))]
        return pieces

    def _right(self, tight: int, paint: Paint) -> list[Piece]:
        facts, usage = self.facts, self.facts.usage
        gap = "  " if tight < 3 else " "
        pieces: list[Piece] = []
        if facts.off or facts.paused:
            word = "compaction off" if facts.off else "compaction paused"
            pieces += [(word if tight < 2 else word.split()[1], paint("warning")), (gap, paint())]
        if usage is None:
            return pieces
        if usage.outlook is not None:
            pieces += cache_pieces(usage.outlook, tight, gap, paint)
        pieces += context_pieces(usage, facts.in_flight, tight, paint)
        pieces += [(gap, paint()), (money(usage.session.cost), paint("muted"))]
        return pieces


def cache_pieces(outlook: CacheOutlook, tight: int, gap: str, paint: Paint) -> list[Piece]:
    """What the next request pays anew; where there is room, until when nothing."""
    from agent_tui.context.cache.words import outlook_words, price_words, short_words

    cold = outlook.cold
    if cold is None:
        return [(outlook_words(outlook), paint("faint")), (gap, paint())] if outlook.until and not tight else []
    text = price_words(cold) if tight < 2 else short_words(cold) if tight < 5 else "cold"
    return [(text, paint("warning")), (gap, paint())]


def context_pieces(usage: ContextUsage, in_flight: int, tight: int, paint: Paint) -> list[Piece]:
    """Percentage and tokens of the active context, ``~`` before them where estimates are in it."""
    total = usage.total + in_flight
    rough = in_flight > 0 or usage.approximate
    used = tokens(total, rough)
    color = "foreground"
    if usage.limit is not None:
        color = "error" if total > usage.limit else "warning" if total > 0.8 * usage.limit else "foreground"
    if not usage.window:
        return [(used, paint(color)), (" of unknown window" if tight < 2 else "/?", paint("muted"))]
    pieces: list[Piece] = []
    if tight < 2:
        full = min(8, max(1 if total else 0, round(8 * total / usage.window)))
        filled = paint("context-messages" if color == "foreground" else color)
        pieces += [("━" * full, filled), ("━" * (8 - full), paint("context-free")), (" ", paint())]
    part = share_in(total, usage.window, rough)
    if tight >= 3:
        part = percent(tenths_of(total, usage.window) / 10, 0, tight=True)
    sep = " / " if tight < 2 else "/"
    pieces += [
        (part, paint(color, bold=True)),
        (" · " if tight < 2 else " ", paint("faint")),
        (used, paint(color)),
        (f"{sep}{tokens(usage.window, False)}", paint("muted")),
    ]
    return pieces
