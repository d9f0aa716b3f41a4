"""The blocks: user text, answer, reasoning, notices, folding texts, banner, tool calls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

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
from agent_tui.text.numbers import duration, lines_in, plural
from agent_tui.ui.flow.layout import Decoration, Flow, shown_line
from agent_tui.ui.flow.paint import Piece
from agent_tui.ui.transcript.blocks import (
    MARGIN,
    Block,
    GrowingBlock,
    MarkdownBody,
    pieces_of,
    pieces_of_lines,
    plain_pieces,
)

USER_MARGIN: Decoration = (("▌ ", "user_bar"),)
REASONING_MARGIN: Decoration = (("  ", ""), ("│ ", "reasoning_bar"))
LONG_USER_ROWS = 40
"""A user message of more lines than this shows only the first ones until it is opened."""
LEAST_SECONDS = 0.1
Named: TypeAlias = tuple[str, str, Callable[[], str] | None]
"""What was attached: its name, and of a picture its key and what says how it is shown (nothing where it is not)."""
PICTURE = "▣"
_ICONS = {"info": "·", "warning": "!", "error": "✗"}


class UserBlock(Block):
    """The user's words, with a bar and a background of their own."""

    key = "user"

    def __init__(self, text: str, attachments: Sequence[Named], pasted: Sequence[Sequence[int]] = ()) -> None:
        self.text = text
        self.attachments = attachments
        self._rows = lines_in(text)
        self._pasted = [(start, end) for start, end in pasted if 0 <= start < end <= len(text)]
        self._short = self._folded()
        self.foldable = bool(self._pasted) or self._rows > LONG_USER_ROWS

    @property
    def default_open(self) -> bool:
        return False

    def pieces(self, is_open: bool) -> list[Piece]:
        out: list[Piece] = []
        for name, key, opens in self.attachments:
            more = opens() if opens is not None else ""
            out += attachment_pieces(drawable(name), key if more else "", more, gap=0 if out else 1)
        if self.text or not out:
            text = self.text if is_open or not self.foldable else self._short
            out += plain_pieces(text, USER_MARGIN, fill="user", gap=0 if out else 1)
            if self.foldable:
                out.append(Piece(partial(self._more, self._label(is_open))))
        return out

    def _label(self, is_open: bool) -> str:
        """Returns the words for how long it is, or for what opening it shows."""
        if is_open:
            return f"▾ {_size(self.text)}"
        more = plural(self._rows - lines_in(self._short), "more line")
        return f"▸ {'what was pasted' if self._pasted else more}"

    def _folded(self) -> str:
        """The text with what was pasted as one word, as it stood in the prompt; its first lines where that is still
        long."""
        pieces, at = [], 0
        for start, end in self._pasted:
            pieces += [self.text[at:start], f"[Pasted {_size(self.text[start:end])}]"]
            at = end
        text = "".join([*pieces, self.text[at:]])
        if lines_in(text) > LONG_USER_ROWS:
            text = "\n".join(text.split("\n", LONG_USER_ROWS // 2)[: LONG_USER_ROWS // 2])
        return text

    def _more(self, label: str) -> list[Flow]:
        mark = (*USER_MARGIN, (label, "label"))
        return [Flow(first=mark, fill="user", silent=True, action=("fold", self.key))]


def _size(text: str) -> str:
    """Returns the lines of a text, or the characters where it is one line, as a paste may be."""
    lines = lines_in(text)
    return plural(lines, "line") if lines > 1 else plural(len(text), "character")


def attachment_pieces(name: str, key: str, more: str, gap: int) -> list[Piece]:
    """The line of what was attached; with ``key`` that of a picture which it opens."""
    if not key:
        return plain_pieces(f"+ {name}", USER_MARGIN, style="muted", fill="user", wrap="char", gap=gap)
    return [
        Piece(partial(picture_line, f"{name}{more}", key, USER_MARGIN, "user"), gap=gap, chars=len(name) + len(more))
    ]


def picture_line(text: str, key: str, margin: Decoration, fill: str) -> list[Flow]:
    """A line that opens a picture."""
    return [Flow(f"{PICTURE} {text}"[:500], base="muted", first=margin, fill=fill, action=("picture", key))]


class TextBlock(GrowingBlock):
    """An answer's Markdown."""

    def __init__(self, key: str, text: str, complete: bool = True) -> None:
        self.key = key
        self.body = MarkdownBody(text, MARGIN, "", complete)

    def pieces(self, is_open: bool) -> list[Piece]:
        return self.body.pieces(self.gap) if self.body.length else []

    def append(self, text: str) -> None:
        self.body.append(text)

    def finish(self) -> None:
        """It is complete."""
        self.body.finish()


class ReasoningBlock(GrowingBlock):
    """The model's thoughts: one line with their time and length that opens. ``seconds``: how long they took, where that
    is known; of a block that streams the time is taken here until the stored one comes."""

    foldable = True

    def __init__(self, key: str, text: str, complete: bool = True, seconds: float | None = None) -> None:
        self.key = key
        self.body = MarkdownBody(text, REASONING_MARGIN, "reasoning", complete)
        self.seconds = seconds
        self._begun = time.monotonic()

    def finish(self) -> None:
        """It is complete."""
        if not self.body.complete:
            self.seconds = time.monotonic() - self._begun
            self.body.finish()

    def append(self, text: str) -> None:
        self.body.append(text)

    def pieces(self, is_open: bool) -> list[Piece]:
        out = [Piece(partial(self._header, is_open, self.body.length), gap=1)]
        if is_open and self.body.length:
            out += self.body.pieces(0)
        return out

    def _header(self, is_open: bool, length: int) -> list[Flow]:
        state = "Thought" if self.body.complete else "Thinking"
        # What arrives all at once was thought out of sight: its time is not known.
        if self.body.complete and self.seconds is not None and self.seconds >= LEAST_SECONDS:
            state = f"Thought for {duration(self.seconds)}"
        size = plural(length, "character") if length else "text not shown by the provider"
        label = f"{state} · {size}"
        first = (*MARGIN, ("▾ " if is_open else "▸ ", "muted"))
        return [Flow(label, base="reasoning", first=first, wrap="cut", action=("fold", self.key))]


class NoticeBlock(Block):
    """One line for the user, or a few."""

    def __init__(self, key: str, level: str, text: str) -> None:
        self.key = key
        self.level = level
        self.text = text

    def pieces(self, is_open: bool) -> list[Piece]:
        return [Piece(self._flows, gap=1, chars=len(self.text), rows=self.text.count("\n") + 1)]

    def _flows(self) -> list[Flow]:
        icon = (*MARGIN, (f"{_ICONS.get(self.level, '·')} ", self.level))
        rest = (*MARGIN, ("  ", ""))
        return [
            Flow(line, base=self.level, first=rest if k else icon, rest=rest)
            for k, line in enumerate(drawable(self.text).expandtabs(4).split("\n"))
        ]


class FoldBlock(Block):
    """A titled text that opens: a command's output, or with a rule before it a compaction's summary (``record``). Where
    that has an id, a dialog opens instead, and the text unfolds only where something was found in it."""

    foldable = True

    def __init__(
        self,
        key: str,
        title: str,
        body: str,
        *,
        markdown: bool,
        is_open: bool,
        detail: str = "",
        record: str | None = None,
        hang: bool = False,
    ) -> None:
        self.key = key
        self.title = drawable(title)
        self.detail = drawable(detail)
        self.body = body
        self.record = record
        self._hang = hang
        self._open = is_open
        self._markdown = MarkdownBody(body) if markdown else None
        self.foldable = bool(body.strip())

    @property
    def default_open(self) -> bool:
        return self._open

    def pieces(self, is_open: bool) -> list[Piece]:
        out = [Piece(partial(self._header, is_open), gap=1)] if self.title else []
        if self.foldable and (is_open or not self.title):
            if self._markdown is not None:
                out += self._markdown.pieces(1)
            else:
                margin = (*MARGIN, ("  ", "")) if self.title else MARGIN
                out += plain_pieces(self.body, margin, wide=True, hang=self._hang)
        return out

    def _header(self, is_open: bool) -> list[Flow]:
        mark = ("▾ " if is_open else "▸ ") if self.foldable or self.record else "· "
        rule = self.record is not None
        style = "summary" if rule else "muted"
        action = ("fold", self.key) if self.foldable else None
        if self.record and not (self.foldable and is_open):
            action = ("compact", self.record)
        runs = [(len(self.title), f"title {style}", None)]
        text = self.title
        if self.detail:
            text += f" · {self.detail}"
            runs.append((len(text), "muted", None))
        first: Decoration = (("── ", "rule"), (mark, style)) if rule else (*MARGIN, (mark, style))
        # A compaction says in its head what came of it: nothing of that is cut off.
        rest: Decoration = ((" " * 5, ""),) if rule else first
        return [Flow(text, runs, first=first, rest=rest, wrap="word" if rule else "cut", action=action)]


class BannerBlock(Block):
    """The head of a session."""

    key = "banner"

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines

    def pieces(self, is_open: bool) -> list[Piece]:
        return [Piece(self._flows, gap=1, rows=len(self.lines))]

    def _flows(self) -> list[Flow]:
        return [
            Flow(drawable(line), base="muted" if k else "title", first=(*MARGIN, ("┃ ", "user_bar")), silent=False)
            for k, line in enumerate(self.lines)
        ]


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
        return [shown_line(drawable_output(line)) for line in lines if line.strip()][-LIVE_LINES:]

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
    return pieces_of_lines(drawable_output(text).rstrip("\n").split("\n"), _diff)


def _diff(lines: Sequence[str]) -> list[Flow]:
    return [Flow(shown_line(line), base=_diff_style(line), first=BODY, wrap="char", wide=True) for line in lines]


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "muted"
    return {"+": "add", "-": "remove", "@": "hunk"}.get(line[:1], "")
