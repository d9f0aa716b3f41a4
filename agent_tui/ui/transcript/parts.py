"""The blocks: user text, answer, reasoning, notices, folding texts, tool calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from agent_tui.context.tokens import char_tokens, round_up
from agent_tui.text.clean import drawable
from agent_tui.text.numbers import duration, lines_in, plural, tokens
from agent_tui.ui.flow.layout import Decoration, Flow
from agent_tui.ui.flow.paint import Piece
from agent_tui.ui.transcript.blocks import (
    MARGIN,
    Block,
    GrowingBlock,
    MarkdownBody,
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
_ICONS = {"warning": "!", "error": "✗"}
NEWEST = 400
"""Characters of a thought that streams of which the newest line is shown."""


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
    """The model's thoughts: one line that opens, with their time and about how many tokens they are; while they stream
    with the newest line of them. ``seconds``: how long they took, where that is known; of a block that streams the time
    is taken here until the stored one comes."""

    foldable = True

    def __init__(self, key: str, text: str, complete: bool = True, seconds: float | None = None) -> None:
        self.key = key
        self.body = MarkdownBody(text, REASONING_MARGIN, "reasoning", complete)
        self.seconds = seconds
        self._newest = ""
        self._tokens: float | None = None
        self._begun = time.monotonic()

    def finish(self) -> None:
        """It is complete."""
        if not self.body.complete:
            self.seconds = time.monotonic() - self._begun
            self.body.finish()

    def append(self, text: str) -> None:
        self.body.append(text)
        self._newest = (self._newest + text)[-NEWEST:]
        if self._tokens is not None:
            self._tokens += char_tokens(text)

    def pieces(self, is_open: bool) -> list[Piece]:
        out = [Piece(partial(self._header, is_open), gap=1)]
        if is_open and self.body.length:
            out += self.body.pieces(0)
        return out

    def _header(self, is_open: bool) -> list[Flow]:
        state, newest = "Thought", ""
        if not self.body.complete:
            state = "Thinking"
            newest = "" if is_open else drawable(self._newest.rstrip().rpartition("\n")[2]).strip()
        # What arrives all at once was thought out of sight: its time is not known.
        elif self.seconds is not None and self.seconds >= LEAST_SECONDS:
            state = f"Thought for {duration(self.seconds)}"
        if self._tokens is None:
            self._tokens = char_tokens(self.body.text)
        size = (
            f"{tokens(round_up(self._tokens), True)} tokens" if self.body.length else "text not shown by the provider"
        )
        label = " · ".join(filter(None, [state, size, newest]))
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
    that has an id, a dialog opens instead, and the text unfolds only where something was found in it. ``last``: lines
    at its end that are seen while it is closed."""

    foldable = True
    last = 0

    def __init__(
        self,
        key: str,
        title: str,
        body: str,
        *,
        markdown: bool,
        is_open: bool = False,
        detail: str = "",
        record: str | None = None,
    ) -> None:
        self.key = key
        self.title = drawable(title)
        self.detail = drawable(detail)
        self.body = body
        self.record = record
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
                out += plain_pieces(self.body, margin, wide=True)
        elif self.foldable and self.last:
            out += self._end((*MARGIN, ("  ", "")))
        return out

    def _end(self, margin: Decoration) -> list[Piece]:
        lines = self.body.rstrip("\n").split("\n")
        end = plain_pieces("\n".join(lines[-self.last :]), margin, wide=True)
        if (hidden := len(lines) - self.last) <= 0:
            return end
        more = Flow(first=(*margin, (f"… +{plural(hidden, 'line')}", "faint")), silent=True, action=("fold", self.key))
        return [Piece(lambda: [more]), *end]

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
        first: Decoration = (("── ", style), (mark, style)) if rule else (*MARGIN, (mark, style))
        # A compaction says in its head what came of it: nothing of that is cut off.
        rest: Decoration = ((" " * 5, ""),) if rule else first
        after = style if rule else ""
        return [Flow(text, runs, first=first, rest=rest, wrap="word" if rule else "cut", action=action, ruled=after)]
