"""The context screen: what the next request is made of, to the token, and how every number was made."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from agent_tui.context.compaction.notices import EXACT_OFF
from agent_tui.errors import OPEN_ELSEWHERE, AgentError
from agent_tui.models.events import CompactionEnded, ContextChanged, Event, SessionChanged
from agent_tui.models.usage import Prices
from agent_tui.text.cells import fit
from agent_tui.text.clean import one_line
from agent_tui.ui.draw import Piece, paint_of
from agent_tui.ui.safety import Guarded
from agent_tui.ui.screens import context_lines as words
from agent_tui.ui.screens.context_foot import Foot, HasMessage, Words, wrapped
from agent_tui.ui.screens.context_head import Head, ShowsUsage
from agent_tui.ui.screens.context_rows import (
    adds_up,
    compaction_lines,
    flatten,
    request_text,
)
from agent_tui.ui.screens.context_table import ContextRows, OpensRows
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.rows import RowList

if TYPE_CHECKING:
    from textual.worker import Worker

    from agent_tui.ui.agent_protocol import ExplainsContext

TALL = 20
"""From this height on, the words stand below the rows; on lower screens they follow them and scroll along."""


class ContextScreen(Guarded, Screen[None]):
    """Reads nothing but the calculator's answer; opens without a network call and stays live."""

    DEFAULT_CSS = """
    ContextScreen { background: $background; layout: vertical; overflow: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", show=False),
        Binding("c", "cache", "What each call read from the cache", show=False),
        Binding("e", "export", "Export as JSON", show=False),
        Binding("x", "exact", "Count exactly", show=False),
        Binding("s", "stats", "Token counter metrics", show=False),
        Binding("p", "preview", "Preview of a compaction", show=False),
        Binding("w", "why", "Why it compacted or not", show=False),
    ]

    def __init__(self, agent: ExplainsContext) -> None:
        super().__init__()
        self.agent = agent
        self.now = time.time()
        self.usage = agent.context_usage()
        self.trigger = agent.trigger_total()
        self.in_flight = agent.in_flight
        self.message = ""
        self.opened = {"messages"}
        self._unsubscribe: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        yield Head(self)
        yield ContextRows(self)
        yield Words()
        yield Foot(self)

    def on_mount(self) -> None:
        self._unsubscribe = self.agent.subscribe(self._event)
        self.rows.focus()
        self.rebuild()
        self.run_worker(self.agent.refresh_context(), name="refresh", exit_on_error=False)

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
                self.usage, self.in_flight = self.agent.context_usage(), self.agent.in_flight
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
            ("Calculation", words.calculation_text(usage), "foreground"),
            ("Accuracy", words.accuracy_line(usage), "foreground"),
            ("Session", words.session_line(usage, self.agent.records), "foreground"),
        ]
        entries.append(("Proof", proof, "success" if holds else "error"))
        if usage.why:
            # The first sentence: the formula stands above, ``w`` shows all.
            entries.append(("Compaction", one_line(usage.why.partition(". ")[0].rstrip(".") + ".", 300), "foreground"))
        if self.agent.read_only:
            entries.append(("Read-only", self.agent.read_only_reason or OPEN_ELSEWHERE, "warning"))
        entries += [("Warning", one_line(w, 400), "warning") for w in usage.warnings]
        lines: list[list[Piece]] = []
        for label, text, color in entries:
            for number, piece in enumerate(wrapped(text, max(8, width - words.LABEL))):
                lines.append([(fit("" if number else label, words.LABEL), paint("muted")), (piece, paint(color))])
        return lines

    def next_request(self) -> str:
        """What sending the next request costs and how much of it is cached, where that is known."""
        return request_text(self.usage, self.prices)

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

    def action_cache(self) -> None:
        from agent_tui.ui.screens.context_cache import CachePicker

        self.app.push_screen(CachePicker(self.agent))

    def action_stats(self) -> None:
        self._read("Token counter", self.agent.context_stats())

    def action_preview(self) -> None:
        try:
            self._read("What a compaction would do", self.agent.compact_preview())
        except AgentError as error:
            self._say(str(error))

    async def action_export(self) -> None:
        from agent_tui.commands.usage_json import context_json

        path = Path(self.agent.cwd) / f"context-{self.agent.info.id}.json"
        text = json.dumps(context_json(self.usage, self.agent.steps), indent=2) + "\n"
        try:
            await asyncio.to_thread(path.write_text, text, "utf-8")
        except OSError as error:
            self._say(f"Cannot write {path}: {error.strerror or error}")
        else:
            self._say(f"Written to {path}")

    def action_exact(self) -> None:
        if self.agent.settings.context.exact_counting == "off":
            self._say(EXACT_OFF)
            return
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


_HEAD: type[ShowsUsage] = ContextScreen
_ROWS: type[OpensRows] = ContextScreen
_FOOT: type[HasMessage] = ContextScreen
