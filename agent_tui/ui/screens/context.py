"""The context screen: what the next request is made of, to the token, and how every number was made."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from agent_tui.commands.format import money, one_line, tokens
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.events import CompactionEnded, ContextChanged, Event, SessionChanged
from agent_tui.models.usage import Prices
from agent_tui.ui.draw import Piece, fit, paint_of, shorten, width_of
from agent_tui.ui.screens import context_lines as words
from agent_tui.ui.screens.context_rows import (
    Shown,
    adds_up,
    bar_cells,
    cached_tokens,
    compaction_lines,
    flatten,
    row_cost,
)
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.lines import Lines
from agent_tui.ui.widgets.rows import RowList

if TYPE_CHECKING:
    from textual.worker import Worker

    from agent_tui.engine.agent import Agent

KEYS = (
    ("Enter", "open"),
    ("e", "JSON"),
    ("x", "exact count"),
    ("s", "stats"),
    ("p", "preview"),
    ("w", "why"),
    ("Esc", "close"),
)
PLAIN_FILL = {
    "system": "█",
    "environment": "▓",
    "memory": "▒",
    "skills": "▚",
    "tools": "▞",
    "documents": "▤",
    "messages": "▦",
    "free": "·",
    "reserve": "╱",
    "limit": "┊",
}
"""Without colours the segments differ by their pattern."""

BASIS = {"measured": ("●", "success"), "derived": ("◐", "primary"), "estimated": ("○", "muted")}
TALL = 20
"""From this height on, the words stand below the rows; on lower screens they follow them and scroll along."""


class Head(Lines):
    """Title with the numbers, the stacked bar, and when it compacts."""

    DEFAULT_CSS = "Head { padding: 0 1; }"

    def __init__(self, screen: ContextScreen) -> None:
        super().__init__(id="head", height=4)
        self.owner = screen
        self.thick = 1

    def set_thick(self, thick: int) -> None:
        """How many lines the bar has."""
        if thick != self.thick:
            self.thick = thick
            self.set_height(3 + thick)

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        usage = self.owner.usage
        match y if y < 2 else max(1, y - self.thick + 1):
            case 0:
                return self._title(usage, width, paint)
            case 1:
                return self.bar(usage, width, paint)
            case 2:
                color = "error" if usage.over else "muted"
                return [(shorten(words.subtitle(usage, self.owner.next_request()), width), paint(color))]
            case _:
                return []

    def _title(self, usage: ContextUsage, width: int, paint: Paint) -> list[Piece]:
        size, share, basis = words.header(usage, self.owner.in_flight)
        right: list[Piece] = [(size, paint("foreground", bold=True))]
        if share:
            right += [("  ", paint()), (share, paint("primary", bold=True))]
        if width > 60:
            right += [("  ", paint()), (basis, paint("muted"))]
        left = shorten(f"Context · {one_line(usage.model, 60)}", max(0, width - width_of(right) - 1))
        gap = max(0, width - width_of(right) - width_of([(left, paint())]))
        return [(left, paint("foreground", bold=True)), (" " * gap, paint()), *right]

    def bar(self, usage: ContextUsage, width: int, paint: Paint) -> list[Piece]:
        plain = self.app.no_color
        pieces: list[Piece] = []
        for name, cells in bar_cells(usage, width):
            if name == "limit":
                pieces.append(("┊", paint("warning", bold=True)))
            elif plain:
                pieces.append((PLAIN_FILL.get(name, "█") * cells, paint()))
            elif name == "free":
                pieces.append(("─" * cells, paint("context-free")))
            else:
                pieces.append((("▒" if name == "reserve" else "█") * cells, paint(f"context-{name}")))
        return pieces


class Words(Lines):
    """Calculation, accuracy, session, proof and why, wrapped to the width."""

    DEFAULT_CSS = "Words { padding: 0 1; border-top: solid $line; }"

    def __init__(self, screen: ContextScreen) -> None:
        super().__init__(id="words")
        self.owner = screen
        self.lines: list[list[Piece]] = []

    def show(self, lines: list[list[Piece]]) -> None:
        self.lines = lines
        self.set_height(len(self.lines) + 1 if self.lines else 0)
        self.refresh(layout=True)

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        return self.lines[y] if y < len(self.lines) else []


class Foot(Lines):
    """The keys."""

    DEFAULT_CSS = "Foot { padding: 0 1; dock: bottom; background: $surface; }"

    def __init__(self, screen: ContextScreen) -> None:
        super().__init__(id="foot", height=1)
        self.owner = screen

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self.owner.message:
            return [(shorten(self.owner.message, width), paint("accent"))]
        pieces: list[Piece] = []
        for key, what in KEYS if width > 70 else (*KEYS[:4], KEYS[-1]):
            pieces += [(key, paint("primary", bold=True)), (f" {what}  ", paint("muted"))]
        return pieces


class ContextRows(RowList):
    """The breakdown as a tree; ←/→ close and open."""

    DEFAULT_CSS = "ContextRows { padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "open(True)", "Open", show=False),
        Binding("left,h", "open(False)", "Close", show=False),
        Binding("space", "choose", "Open", show=False),
    ]

    def __init__(self, screen: ContextScreen) -> None:
        super().__init__(id="rows")
        self.owner = screen
        self.shown: list[Shown] = []
        self.extra: list[list[Piece]] = []

    def show(self, shown: list[Shown], extra: list[list[Piece]]) -> None:
        """New lines; the cursor stays on the row it is on."""
        key = self.shown[self.cursor].key if self.cursor < len(self.shown) else ""
        self.shown, self.extra = shown, extra
        cursor = next((i for i, s in enumerate(shown) if s.key == key), min(self.cursor, max(0, len(shown) - 1)))
        self.set_count(len(shown) + len(extra), cursor)

    def selectable(self, index: int) -> bool:
        return index < len(self.shown) and self.shown[index].kind != "gap"

    def action_open(self, wanted: bool) -> None:
        if self.cursor >= len(self.shown):
            return
        line = self.shown[self.cursor]
        if line.open is not None and line.open != wanted:
            self.owner.toggle(line.key)
        elif not wanted and line.depth:
            self.move_to(next(i for i in range(self.cursor, -1, -1) if self.shown[i].depth < line.depth), -1)

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        if index >= len(self.shown):
            return self.extra[index - len(self.shown)]
        line = self.shown[index]
        match line.kind:
            case "gap":
                return []
            case "compaction":
                assert line.record is not None
                text = words.compaction_text(line.record, self.owner.now)
                color = "foreground" if line.record.active else "faint"
                return [("    ", paint()), (shorten(text, max(0, width - 4)), paint(color))]
            case "heading":
                return [("▾ " if line.open else "▸ ", paint("muted")), (line.label, paint("foreground"))]
            case _:
                return self._tokens(line, width, paint)

    def _tokens(self, line: Shown, width: int, paint: Paint) -> list[Piece]:
        row = line.row
        arrow = "  " if line.open is None else "▾ " if line.open else "▸ "
        swatch = PLAIN_FILL.get(line.color.removeprefix("context-"), "■") if self.app.no_color else "■"
        indent = "  " * line.depth
        wide = width >= 108
        label_room = 40 if wide else min(30, max(10, width - 30))
        label = one_line(line.label, 200)
        lead = f"  {indent}{arrow}" if line.depth else arrow
        name_room = max(1, label_room - len(lead) - (2 if not line.depth else 0))
        pieces: list[Piece] = [(lead, paint("muted"))]
        if not line.depth:
            pieces.append((f"{swatch} ", paint(line.color)))
        weak = line.kind != "row"
        pieces.append(
            (fit(label, name_room), paint("error" if line.kind == "over" else "muted" if weak else "foreground"))
        )
        rough = row is not None and (row.approximate or row.basis == "estimated")
        number = f"{'~' if rough else ''}{line.tokens:,}"
        pieces.append((fit(number, 11, right=True), paint("foreground", bold=not line.depth and not weak)))
        pieces.append((fit(_share(line.tenths), 9, right=True), paint("muted")))
        if row is None:
            return pieces
        if width >= 62:
            mark, color = BASIS[row.basis]
            pieces += [(f"  {mark} ", paint(color)), (fit(row.basis, 10), paint("muted"))]
        if wide:
            pieces += self._money(row, paint)
        room = width - width_of(pieces) - 2
        if room > 3:
            pieces.append(("  " + shorten(_note(line), room), paint("faint")))
        return pieces

    def _money(self, row: ContextRow, paint: Paint) -> list[Piece]:
        cached = cached_tokens(row)
        if cached is None or not row.tokens:
            state = ""
        else:
            state = (
                "cached"
                if cached == row.tokens
                else "not cached"
                if not cached
                else f"{100 * cached // row.tokens} % cached"
            )
        cost = row_cost(row, self.owner.prices)
        return [
            (fit(state, 13), paint("success" if state == "cached" else "muted")),
            (fit("" if cost is None else f"${cost:.4f}", 10, right=True), paint("muted")),
        ]


def _share(tenths: int | None) -> str:
    if tenths is None:
        return ""
    sign = "−" if tenths < 0 else ""
    return f"{sign}{abs(tenths) // 10}.{abs(tenths) % 10} %"


def _note(line: Shown) -> str:
    row = line.row
    if row is None:
        return ""
    parts = []
    if row.replay:
        parts.append(row.replay)
    if row.detail:
        parts.append(row.detail)
    elif row.path:
        parts.append(row.path)
    if row.deferred_tokens:
        parts.append(f"{tokens(row.deferred_tokens)} deferred")
    if not parts and row.children and not line.open and line.depth == 0:
        largest = max(row.children, key=lambda c: c.tokens)
        if len(row.children) > 1 and largest.tokens:
            parts.append(f"{one_line(largest.label, 60)} {tokens(largest.tokens)}")
    return one_line(" · ".join(parts), 300)


class ContextScreen(Screen[None]):
    """Reads nothing but the calculator's answer; opens without a network call and stays live."""

    DEFAULT_CSS = """
    ContextScreen { background: $background; layout: vertical; overflow: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", show=False),
        Binding("e", "export", "Export as JSON", show=False),
        Binding("x", "exact", "Count exactly", show=False),
        Binding("s", "stats", "Token counter metrics", show=False),
        Binding("p", "preview", "Preview of a compaction", show=False),
        Binding("w", "why", "Why it compacted or not", show=False),
    ]

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent
        self.now = time.time()
        self.usage = agent.context_usage()
        self.trigger = agent.trigger_total()
        self.in_flight = 0
        self.message = ""
        self.opened = {"messages"}
        self._unsubscribe: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        yield Head(self)
        yield ContextRows(self)
        yield Words(self)
        yield Foot(self)

    def on_mount(self) -> None:
        self._unsubscribe = self.agent.subscribe(self._event)
        self.rows.focus()
        self.rebuild()

    def on_unmount(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()

    @property
    def rows(self) -> ContextRows:
        return self.query_one("#rows", ContextRows)

    @property
    def prices(self) -> Prices | None:
        info = self.agent.model_info
        return info.prices if info is not None else None

    def _event(self, event: Event) -> None:
        match event:
            case ContextChanged(usage, in_flight):
                self.usage, self.in_flight = usage, in_flight
                self.rebuild()
            case CompactionEnded() | SessionChanged():
                self.usage, self.in_flight = self.agent.context_usage(), 0
                self.rebuild()

    def rebuild(self) -> None:
        """Shows the numbers as they are now."""
        if not self.is_mounted:
            return
        self.trigger = self.agent.trigger_total()
        width = max(10, self.size.width - 2)
        low = self.size.height < TALL
        paint = paint_of(self.app)
        extra = [[], *self.word_lines(width, paint)] if low else []
        shown = [*flatten(self.usage, self.opened), *compaction_lines(self.agent.records, self.opened)]
        self.rows.show(shown, extra)
        self.query_one(Words).show([] if low else self.word_lines(width, paint))
        head = self.query_one(Head)
        head.set_thick(2 if self.size.height >= 30 else 1)
        head.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self.rebuild()

    def word_lines(self, width: int, paint: Paint) -> list[list[Piece]]:
        """The words below the rows, wrapped."""
        usage = self.usage
        proof, holds = words.proof_line(usage, self.trigger, adds_up(usage))
        entries = [
            ("Calculation", words.calculation_line(usage), "foreground"),
            ("Accuracy", words.accuracy_line(usage), "foreground"),
            ("Session", words.session_line(usage, self.agent.records), "foreground"),
        ]
        entries.append(("Proof", proof, "success" if holds else "error"))
        if usage.why:
            # The first sentence: the formula stands above, ``w`` shows all.
            entries.append(("Compaction", one_line(usage.why.partition(". ")[0].rstrip(".") + ".", 300), "foreground"))
        if self.agent.read_only:
            entries.append(("Read-only", self.agent.read_only_reason or "open in another process", "warning"))
        entries += [("Warning", one_line(w, 400), "warning") for w in usage.warnings]
        lines: list[list[Piece]] = []
        for label, text, color in entries:
            for number, piece in enumerate(_wrapped(text, max(8, width - words.LABEL))):
                lines.append([(fit("" if number else label, words.LABEL), paint("muted")), (piece, paint(color))])
        return lines

    def next_request(self) -> str:
        """What sending the next request costs and how much of it is cached, where that is known."""
        costs = [row_cost(row, self.prices) for row in self.usage.rows]
        known = [c for c in costs if c is not None]
        cached = [cached_tokens(row) for row in self.usage.rows]
        parts = []
        if known and len(known) == len(costs):
            parts.append(f"next request {money(sum(known))}")
        if self.usage.total and any(c is not None for c in cached):
            parts.append(f"{100 * sum(c or 0 for c in cached) / self.usage.total:.0f} % cached")
        return ", ".join(parts)

    def toggle(self, key: str) -> None:
        """Opens or closes a row."""
        self.opened ^= {key}
        self.rebuild()

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        if event.index >= len(self.rows.shown):
            return
        line = self.rows.shown[event.index]
        if line.open is not None:
            self.toggle(line.key)
        elif line.record is not None:
            summary = self.agent.store.summaries(self.agent.info.id).get(line.record.summary_id or "")
            self._read("Compaction", words.compaction_details(line.record, summary, self.now))
        elif line.row is not None:
            wanted = line.row.message_id
            message = next((m for m in self.agent.messages if m.id == wanted), None) if wanted else None
            self._read(line.label, words.row_details(line.row, message))

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        event.stop()
        self._say("")

    def _read(self, title: str, text: str) -> None:
        from agent_tui.ui.screens.text import TextScreen

        self.app.push_screen(TextScreen(title, text))

    def _say(self, text: str) -> None:
        if text != self.message:
            self.message = text
            self.query_one(Foot).refresh()

    # Keys

    def action_close(self) -> None:
        self.dismiss(None)

    def action_why(self) -> None:
        self._read("Why it compacted, or not", self.usage.why or words.subtitle(self.usage))

    def action_stats(self) -> None:
        from agent_tui.commands.context import stats_text

        self._read("Token counter", stats_text(self.agent))

    def action_preview(self) -> None:
        try:
            self._read("What a compaction would do", self.agent.compact_preview())
        except AgentError as error:
            self._say(str(error))

    async def action_export(self) -> None:
        from agent_tui.commands.usage_json import context_json

        path = Path(self.agent.cwd) / f"context-{self.agent.info.id}.json"
        text = json.dumps(context_json(self.usage), indent=2) + "\n"
        try:
            await asyncio.to_thread(path.write_text, text, "utf-8")
        except OSError as error:
            self._say(f"Cannot write {path}: {error.strerror or error}")
        else:
            self._say(f"Written to {path}")

    def action_exact(self) -> None:
        self._say("Asking the provider to count…")
        self._counting: Worker[None] = self.run_worker(self._exact, exclusive=True, exit_on_error=False)

    async def _exact(self) -> None:
        try:
            counted = await self.agent.count_exact()
        except AgentError as error:
            self._say(str(error))
            return
        if counted is None:
            self._say("This provider cannot count without answering, or it did not answer.")
        else:
            self._say(f"The provider counts {counted:,} tokens")


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    # Breaks between the parts of a line, not inside one.
    glued = " · ".join(part.replace(" ", "\xa0") for part in text.split(" · ")) if " · " in text else text
    return [line.replace("\xa0", " ") for line in textwrap.wrap(glued, width)] or [""]
