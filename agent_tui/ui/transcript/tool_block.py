"""A tool call: one line with its state that opens into arguments, diff or output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from agent_tui.commands.tool_words import (
    about_a_path,
    argument_data,
    call_label,
    call_summary,
    items_of,
    result_facts,
    shown,
)
from agent_tui.models.messages import INTERRUPTED_RESULT, ToolResultPart
from agent_tui.text.clean import drawable, drawable_output, visible
from agent_tui.ui.flow.caps import cap_line
from agent_tui.ui.flow.lines import Decoration, Flow
from agent_tui.ui.flow.piece import Piece
from agent_tui.ui.transcript.blocks import MARGIN, Block, GrowingBlock, plain_pieces
from agent_tui.ui.transcript.checklist import pieces_of

BODY: Decoration = (("    ", ""), ("│ ", "reasoning_bar"))
MOST_LABEL = 500
"""Characters of what a call is about that are laid out."""
MAX_LIVE = 200_000
LIVE_LINES = 4
"""Of the output of a command that runs, below its line while it is folded."""
LIVE_CHARS = 4_000
"""The newest of them that are looked at."""


class ToolBlock(GrowingBlock):
    """State comes in any order: the call as it streams, its start, its output, its result."""

    foldable = True

    def __init__(self, key: str, call_id: str, name: str, arguments: str = "") -> None:
        self.key = key
        self.call_id = call_id
        self.name = name
        self.summary = ""
        self.waiting = False
        self.running = False
        self.complete = False
        self.result: ToolResultPart | None = None
        self.pictures: Block | None = None
        self._arguments = [arguments]
        self._output: list[str] = []

    @property
    def shows_progress(self) -> bool:
        """Whether the newest line of its output stands in its own line while it runs."""
        return self.name == "subagent"

    def append(self, text: str) -> None:
        self._arguments.append(text)

    def replace(self, arguments: str) -> None:
        """The arguments as they are stored in the end."""
        self._arguments = [arguments]

    def output(self, text: str) -> None:
        """Live output. Only the newest ``MAX_LIVE`` characters are kept; the result brings what counts."""
        self._output.append(text)
        if len(self._output) > 256:
            self._output = ["".join(self._output)[-MAX_LIVE:]]

    @property
    def arguments(self) -> str:
        if len(self._arguments) > 1:
            self._arguments = ["".join(self._arguments)]
        return self._arguments[0]

    def pieces(self, is_open: bool) -> list[Piece]:
        out = [Piece(partial(self._header, is_open), gap=self.gap)]
        items = items_of(self.result)
        if items:
            out += pieces_of(items, is_open)
        elif is_open:
            for part in self._body():
                out += part
        elif self.running and self.result is None and not self.shows_progress and (newest := self._newest()):
            out.append(Piece(lambda: [Flow(line, base="faint", first=BODY, wrap="cut", wide=True) for line in newest]))
        if self.pictures is not None:
            out += self.pictures.pieces(is_open)
        return out

    def _newest(self) -> list[str]:
        """The last lines of what a running command has said."""
        found, chars = 0, 0
        pieces: list[str] = []
        for piece in reversed(self._output):
            pieces.append(piece)
            found, chars = found + piece.count("\n"), chars + len(piece)
            if found > LIVE_LINES or chars > LIVE_CHARS:
                break
        text = "".join(reversed(pieces))[-LIVE_CHARS:].rstrip("\r\n")
        # A line that is written over and over, as progress bars are, shows what it says last.
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
        return [cap_line(drawable_output(line)).expandtabs(4) for line in lines if line.strip()][-LIVE_LINES:]

    def _header(self, is_open: bool) -> list[Flow]:
        icon, style = self._state()
        text = drawable(visible(self._label())).replace("\n", " ⏎ ")
        name, _, rest = text.partition(" ")
        runs = [(len(name), "strong", None), (len(text), "", None)] if rest else [(len(text), "strong", None)]
        right = " · ".join([*self._facts(), "▾" if is_open else "▸"])
        first = (*MARGIN, (f"{icon} ", style))
        kept = len(name) + 1 if rest and about_a_path(self.name) else None
        if len(text) > MOST_LABEL:
            text = text[:MOST_LABEL] if kept is None else f"{text[:kept]}…{text[-MOST_LABEL:]}"
        return [Flow(text, runs, first=first, wrap="cut", kept=kept, wide=True, right=right, action=("fold", self.key))]

    def _label(self) -> str:
        """The tool's name and what it does, the same while it runs and afterwards."""
        if items_of(self.result):
            return self.name
        return call_label(self.name, self.summary or call_summary(self.name, self.arguments))

    def _state(self) -> tuple[str, str]:
        if self.result is not None:
            if self.result.text.startswith(INTERRUPTED_RESULT):
                return "⊘", "warning"
            return ("✗", "failed") if self.result.is_error else ("✓", "ok")
        if self.waiting:
            return "?", "waiting"
        return ("●", "running") if self.running else ("○", "muted")

    def _facts(self) -> Iterator[str]:
        result = self.result
        if result is None:
            if self.waiting:
                yield "waiting for permission"
            elif self.running and self.shows_progress and self._output:
                newest = "".join(self._output[-20:]).rstrip("\n").rpartition("\n")[2]
                if newest:
                    yield drawable_output(newest)[:60]
            return
        yield from result_facts(result)

    def _body(self) -> Iterator[list[Piece]]:
        kind, text = shown(self.result) if self.result is not None else ("text", "".join(self._output))
        if kind != "diff":
            rows = list(self._argument_rows())
            if rows:
                yield plain_pieces("\n".join(rows), BODY, style="muted", wrap="char", wide=True)
                if text:
                    yield [Piece(lambda: [Flow(first=BODY)])]
        if kind == "diff":
            yield diff_pieces(text)
        elif text:
            yield plain_pieces(drawable_output(text).rstrip("\n"), BODY, wrap="char", wide=True)
        elif self.result is None:
            yield plain_pieces("no output yet" if self.running else "not started", BODY, style="faint")

    def _argument_rows(self) -> Iterator[str]:
        data = argument_data(self.arguments)
        if not isinstance(data, dict):
            if self.arguments.strip():
                yield from drawable_output(self.arguments).split("\n")
            return
        for key, value in data.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield from drawable_output(f"{key}: {text}").split("\n")


def diff_pieces(text: str) -> list[Piece]:
    """A unified diff in colours."""
    lines = drawable_output(text).rstrip("\n").split("\n")
    out = []
    for at in range(0, len(lines), 100):
        part = lines[at : at + 100]
        out.append(Piece(partial(_diff, part), chars=sum(map(len, part)) // 2, rows=len(part)))
    return out


def _diff(lines: list[str]) -> list[Flow]:
    return [
        Flow(cap_line(line).expandtabs(4), base=_diff_style(line), first=BODY, wrap="char", wide=True) for line in lines
    ]


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "muted"
    return {"+": "add", "-": "remove", "@": "hunk"}.get(line[:1], "")
