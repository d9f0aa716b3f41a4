"""A tool call: one line with its state that opens into arguments, diff or output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from agent_tui.models.messages import FEEDBACK, INTERRUPTED_RESULT, REFUSED, ToolResultPart
from agent_tui.text.cells import shorten
from agent_tui.text.clean import drawable, drawable_output, visible
from agent_tui.text.numbers import duration, plural
from agent_tui.ui.flow.caps import cap_line
from agent_tui.ui.flow.lines import Decoration, Flow
from agent_tui.ui.flow.piece import Piece
from agent_tui.ui.transcript.blocks import MARGIN, GrowingBlock, plain_pieces
from agent_tui.ui.transcript.checklist import items_of, pieces_of, progress

BODY: Decoration = (("    ", ""), ("│ ", "reasoning_bar"))
MAX_LIVE = 200_000
LIVE_LINES = 4
"""Of the output of a command that runs, below its line while it is folded."""
LIVE_CHARS = 4_000
"""The newest of them that are looked at."""
_SUBJECTS = ("path", "file_path", "command", "pattern", "url", "query", "task", "prompt", "name")


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
        return [Flow(text[:500], runs, first=first, wrap="cut", wide=True, right=right, action=("fold", self.key))]

    def _label(self) -> str:
        """The tool's name and what it does, the same while it runs and afterwards."""
        if items_of(self.result):
            return self.name
        label = self.summary or self._summary()
        first = label.partition(" ")[0].rstrip(":")
        return label if first in (self.name, "!") or "__" in self.name else f"{self.name} {label}"

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
        kind, text = self._shown(result)
        items = items_of(result)
        if items:
            yield progress(items)
        elif result.is_error:
            yield _refusal(result.text) or drawable_output(text.strip().split("\n", 1)[0])[:60] or "failed"
        elif answer := (result.display or {}).get("answer"):
            yield shorten(drawable_output(str(answer)), 60)
        elif kind == "diff":
            lines = text.split("\n")
            added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
            removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
            yield f"+{added} −{removed}"
        elif text:
            yield from _lines(result, text)
        if result.seconds is not None and result.seconds >= 0.05:
            yield duration(result.seconds)

    def _summary(self) -> str:
        data = self._data()
        for subject in _SUBJECTS if isinstance(data, dict) else ():
            value = data.get(subject)
            if isinstance(value, str) and value:
                return f"{self.name} {value}"
        text = self.arguments.strip()
        return self.name if text in ("", "{}") else f"{self.name} {text[:200]}"

    def _data(self) -> Any:
        try:
            return json.loads(self.arguments)
        except (ValueError, RecursionError):
            return None

    def _shown(self, result: ToolResultPart) -> tuple[str, str]:
        display = result.display or {}
        text = display.get("text")
        kind = display.get("kind")
        return (str(kind), text) if isinstance(text, str) and text else ("text", result.text)

    def _body(self) -> Iterator[list[Piece]]:
        kind, text = self._shown(self.result) if self.result is not None else ("text", "".join(self._output))
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
        data = self._data()
        if not isinstance(data, dict):
            if self.arguments.strip():
                yield from drawable_output(self.arguments).split("\n")
            return
        for key, value in data.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield from drawable_output(f"{key}: {text}").split("\n")


def _lines(result: ToolResultPart, text: str) -> Iterator[str]:
    """How many lines there are, and where not all of them were sent to the model, how many of them."""
    display = result.display or {}
    count, sent = display.get("lines"), display.get("sent")
    if isinstance(count, int) and isinstance(sent, int):
        yield plural(count, "line")
        yield f"{sent:,} sent"
    else:
        yield plural(text.rstrip("\n").count("\n") + 1, "line")


def _refusal(text: str) -> str:
    """What the user answered, without what is said to the model around it."""
    if not text.startswith(REFUSED):
        return ""
    word = text.removeprefix(REFUSED).strip().partition("\n")[0]
    feedback = word.removeprefix(FEEDBACK).strip() if word.startswith(FEEDBACK) else ""
    return f"refused: {drawable_output(feedback)[:50]}" if feedback else "refused"


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
