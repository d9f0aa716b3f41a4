"""Choosing how much the model thinks: the levels it has, and what a change costs, before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.context.accounting.lost import lost_text
from agent_tui.context.cache.words import cold_words
from agent_tui.text.cells import fit
from agent_tui.ui.draw import Piece
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.engine.models.efforts import EffortChoice

NAME_WIDTH = 8


class EffortPicker(Picker["EffortChoice", str]):
    """Answers the chosen level."""

    TITLE_TEXT = "Thinking"
    PLACEHOLDER = "off, low, medium or high"
    PREVIEW_LINES = 2

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.choices = agent.models.efforts()

    def entries(self, search: str) -> Sequence[EffortChoice]:
        return [choice for choice in self.choices if search.strip().lower() in choice.effort]

    def start_at(self) -> int:
        return next((i for i, choice in enumerate(self.shown) if choice.current), 0)

    def draw(self, entry: EffortChoice, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        return [
            ("● " if entry.current else "  ", paint("accent")),
            (fit(entry.effort, NAME_WIDTH), paint("primary" if here else "foreground", bold=here)),
            (fit(entry.words, max(0, width - NAME_WIDTH - 2)), paint("muted")),
        ]

    def width_of(self, entry: EffortChoice) -> int:
        return 2 + NAME_WIDTH + cell_len(entry.words)

    def preview(self, entry: EffortChoice) -> str:
        if entry.current:
            return "In force."
        lines = [f"{cold_words(entry.cold)}."] if entry.cold is not None else []
        lines += [text] if (text := lost_text(entry.lost, would=True)) else []
        return "\n".join(lines) or "Nothing is lost and nothing paid anew by the change."

    def chosen(self, entry: EffortChoice) -> None:
        self.dismiss(entry.effort)
