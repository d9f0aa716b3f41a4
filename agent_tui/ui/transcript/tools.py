"""A tool call: its line, what is seen of it, and all of it where it is open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from agent_tui.commands.tool_words import (
    LAST_LINES,
    Excerpt,
    about_a_path,
    call_label,
    excerpt,
    items_of,
    result_facts,
    shown,
)
from agent_tui.models.messages import INTERRUPTED_RESULT, ToolResultPart
from agent_tui.text.clean import drawable, drawable_output, visible
from agent_tui.text.numbers import plural
from agent_tui.text.strict_json import json_or
from agent_tui.tools.arguments import call_summary
from agent_tui.ui.flow.diff import ROWS, beginning, diff_flows, shown_diff
from agent_tui.ui.flow.layout import Action, Decoration, Flow, shown_line
from agent_tui.ui.flow.paint import Piece
from agent_tui.ui.transcript.blocks import MARGIN, Block, GrowingBlock, pieces_of, plain_pieces

BODY: Decoration = (("    ", ""), ("│ ", "reasoning_bar"))
CHANGES: Decoration = (("    ", ""),)
"""Before the lines of a diff: its bands are bar enough."""
MOST_LABEL = 500
"""Characters of what a call is about that are laid out."""
MAX_LIVE = 200_000
LIVE_CHARS = 4_000
"""The newest of them that are looked at."""


class ToolBlock(GrowingBlock):
    """State comes in any order: the call as it streams, its start, its output, its result. With ``preview`` the first
    lines of a diff and the last ones of a command are seen while it is closed."""

    foldable = True
    preview = True

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
        self._said = 0
        self._made: list[Piece] | None = None
        self._made_of: object = None

    @property
    def shows_progress(self) -> bool:
        """True when the newest line of its output stands in its own line while it runs."""
        return self.name == "subagent"

    def append(self, text: str) -> None:
        self._arguments.append(text)

    def replace(self, arguments: str) -> None:
        """The arguments as they are stored in the end."""
        self._arguments = [arguments]

    def output(self, text: str) -> None:
        """Live output. Only the newest ``MAX_LIVE`` characters are kept; the result brings what counts."""
        self._output.append(text)
        self._said += text.count("\n")
        if len(self._output) > 256:
            self._output = ["".join(self._output)[-MAX_LIVE:]]

    @property
    def arguments(self) -> str:
        if len(self._arguments) > 1:
            self._arguments = ["".join(self._arguments)]
        return self._arguments[0]

    def pieces(self, is_open: bool) -> list[Piece]:
        out = [Piece(partial(self._header, is_open), gap=self.gap)]
        if items := items_of(self.result):
            out += pieces_of(items, is_open)
        elif self.result is not None:
            out += self._seen(is_open, self.result)
        elif is_open:
            out += self._body()
        elif self.preview and self.running and not self.shows_progress and (newest := self._newest()).lines:
            out += self._excerpt(newest)
        if self.pictures is not None:
            out += self.pictures.pieces(is_open)
        return out

    def _seen(self, is_open: bool, result: ToolResultPart) -> list[Piece]:
        """The pieces of a result. They are made once: a message that still grows is drawn often."""
        made_of = (is_open, self.preview, result, len(self.arguments))
        if self._made is None or self._made_of != made_of:
            self._made_of = made_of
            if is_open:
                self._made = self._body()
            elif not self.preview:
                self._made = []
            elif shown(result)[0] == "diff" and not result.is_error:
                self._made = self._diff(result, False)
            else:
                seen = excerpt(result)
                self._made = self._excerpt(seen) if seen is not None else []
        return self._made

    def _excerpt(self, seen: Excerpt) -> list[Piece]:
        lines = [
            Flow(shown_line(line), base="muted", first=BODY, wrap="cut", wide=True, action=self._fold)
            for line in seen.lines
        ]
        more = [self._more(seen.hidden, "line", BODY)] if seen.hidden else []
        flows = [*more, *lines] if seen.last else [*lines, *more]
        return [Piece(lambda: flows, rows=len(flows))]

    @property
    def _fold(self) -> Action:
        return ("fold", self.key)

    def _more(self, count: int, noun: str, margin: Decoration) -> Flow:
        return Flow(first=(*margin, (f"… +{plural(count, noun)}", "faint")), silent=True, action=self._fold)

    def _diff(self, result: ToolResultPart, is_open: bool) -> list[Piece]:
        path = (result.display or {}).get("path")
        diff = shown_diff(shown(result)[1], path if isinstance(path, str) else "", drawable_output)
        hidden = 0
        if not is_open:
            diff, hidden = beginning(diff)
        out = []
        for start in range(0, len(diff.lines), ROWS):
            part = diff.lines[start : start + ROWS]
            make = partial(diff_flows, diff, start, start + ROWS, CHANGES)
            out.append(Piece(make, chars=sum(len(line.text) for line in part), rows=len(part)))
        if hidden:
            out.append(Piece(lambda: [self._more(hidden, "line", CHANGES)]))
        return out

    def _newest(self) -> Excerpt:
        """The last lines of what a running command has said."""
        found, chars = 0, 0
        pieces: list[str] = []
        for piece in reversed(self._output):
            pieces.append(piece)
            found, chars = found + piece.count("\n"), chars + len(piece)
            if found > LAST_LINES or chars > LIVE_CHARS:
                break
        text = "".join(reversed(pieces))[-LIVE_CHARS:]
        open_line = not text.endswith("\n")
        lines = text.rstrip("\r\n").split("\n")[-LAST_LINES:]
        # A line that is written over and over, as progress bars are, shows what it says last.
        newest = [drawable_output(line.rstrip("\r").rpartition("\r")[2]) for line in lines]
        return Excerpt(newest if any(newest) else [], max(0, self._said + open_line - len(newest)), True)

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
        yield from result_facts(result, excerpted=self.preview)

    def _body(self) -> list[Piece]:
        """All there is: what the tool was called with, and what it said; or the whole diff."""
        kind, text = shown(self.result) if self.result is not None else ("text", "".join(self._output))
        if self.result is not None and kind == "diff":
            return self._diff(self.result, True)
        out: list[Piece] = []
        if rows := list(self._argument_rows()):
            out += plain_pieces("\n".join(rows), BODY, style="muted", wrap="char", wide=True)
            out += [Piece(lambda: [Flow(first=BODY)])] if text else []
        if text:
            out += plain_pieces(drawable_output(text).rstrip("\n"), BODY, wrap="char", wide=True)
        elif self.result is None:
            out += plain_pieces("no output yet" if self.running else "not started", BODY, style="faint")
        return out

    def _argument_rows(self) -> Iterator[str]:
        data = json_or(self.arguments, None)
        if not isinstance(data, dict):
            if self.arguments.strip():
                yield from drawable_output(self.arguments).split("\n")
            return
        for key, value in data.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield from drawable_output(f"{key}: {text}").split("\n")
