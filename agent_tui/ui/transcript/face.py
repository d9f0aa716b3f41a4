"""What an empty chat shows: the name, first steps, the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent_tui.text.clean import drawable
from agent_tui.ui.first_frame import NAME, WORDMARK
from agent_tui.ui.flow.layout import Decoration, Flow
from agent_tui.ui.flow.paint import Piece
from agent_tui.ui.transcript.blocks import MARGIN, Block

STEP_GAP = 3
"""Cells between what is sent and what it does."""


class FirstStep(NamedTuple):
    """A first step: what is sent, and what comes of it."""

    text: str
    what: str


class FaceBlock(Block):
    """What an empty chat shows. A click on a line does what it says."""

    key = "face"

    def __init__(
        self, where: str, notes: Sequence[str], steps: Sequence[FirstStep], last: str, problem: str = "", *, small: bool
    ) -> None:
        self.where, self.last, self.small = drawable(where), drawable(last), small
        self.notes, self.problem = [drawable(note) for note in notes], drawable(problem)
        self.steps = [FirstStep(drawable(step.text), drawable(step.what)) for step in steps]

    def pieces(self, is_open: bool) -> list[Piece]:
        return [Piece(self._flows, gap=1, rows=6 + len(self.steps) + len(self.notes))]

    def _flows(self) -> list[Flow]:
        name = [Flow(NAME, base="title", first=MARGIN)] if self.small else MARK
        space = [] if self.small else [Flow(silent=True)]
        out = [*name, *space, Flow(self.where, base="muted", first=MARGIN, wrap="cut")]
        out += [Flow(note, base="muted", first=MARGIN, rest=MARGIN) for note in self.notes]
        if self.problem:
            lead: Decoration = (*MARGIN, ("! ", "warning"))
            out += [*space, Flow(self.problem, first=lead, rest=(*MARGIN, ("  ", "")))]
        ways = [*self._step_flows(), *self._last_flows()]
        if not self.where:
            return name
        return [*out, *(space or [Flow(silent=True)] if ways else []), *ways]

    def _step_flows(self) -> list[Flow]:
        if not self.steps:
            return []
        out = []
        column = max(len(step.text) for step in self.steps) + STEP_GAP
        for number, step in enumerate(self.steps, 1):
            text = f"{step.text:<{column}}{step.what}"
            runs = [(column, "", None), (len(text), "muted", None)]
            lead: Decoration = (*MARGIN, (f"{number}  ", "running strong"))
            out.append(Flow(text, runs, first=lead, wrap="cut", action=("press", str(number))))
        return out

    def _last_flows(self) -> list[Flow]:
        lead: Decoration = (*MARGIN, ("⏎  ", "running strong"))
        return [Flow(self.last, first=lead, wrap="cut", action=("press", ""))] if self.last else []


MARK = [
    Flow(agent + rest, [(len(agent), "bullet", None), (len(agent + rest), "", None)], first=MARGIN, wrap="cut")
    for agent, rest in WORDMARK
]
