"""An entry: one message (or notice) of the transcript, made into blocks and pieces only when it is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.models.failure import INTERRUPTED
from agent_tui.models.messages import (
    CONTEXT_NOTE,
    NO_OUTPUT,
    OWN_OUTPUT,
    TOLD,
    TOLD_MODE,
    AttachmentPart,
    Message,
    Part,
    ReasoningPart,
    SearchPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    images_in,
    own_output,
    summary_text,
    written_in,
)
from agent_tui.models.search import search_call
from agent_tui.paths import in_project
from agent_tui.records import dataclass
from agent_tui.text.numbers import lines_in, plural
from agent_tui.ui.flow.paint import Piece
from agent_tui.ui.transcript.blocks import MARGIN, Block
from agent_tui.ui.transcript.parts import (
    USER_MARGIN,
    FoldBlock,
    Named,
    NoticeBlock,
    ReasoningBlock,
    TextBlock,
    UserBlock,
)
from agent_tui.ui.transcript.tools import ToolBlock

if TYPE_CHECKING:
    from agent_tui.ui.transcript.album import Album


class Heights:
    """A list of heights in rows with sums of them (a Fenwick tree), so that nothing looks at more of ``n`` than
    ``log2(n)``; but for ``reset``."""

    __slots__ = ("_rows", "_sums", "total")

    def __init__(self, rows: Iterable[int] = ()) -> None:
        self.reset(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> int:
        return self._rows[index]

    def reset(self, rows: Iterable[int]) -> None:
        """Replaces all heights."""
        self._rows = list(rows)
        before = list(accumulate(self._rows, initial=0))
        # Sum number k is of the ``k & -k`` heights that end with the k-th.
        self._sums = [before[k] - before[k & (k - 1)] for k in range(len(before))]
        self.total = before[-1]

    def append(self, height: int) -> None:
        count = len(self._rows) + 1
        self._rows.append(height)
        self._sums.append(self.before(count - 1) - self.before(count & (count - 1)) + height)
        self.total += height

    def set(self, index: int, height: int) -> None:
        change = height - self._rows[index]
        if change:
            self._rows[index] = height
            self.total += change
            k, sums = index + 1, self._sums
            while k < len(sums):
                sums[k] += change
                k += k & -k

    def before(self, index: int) -> int:
        """The sum of all heights before ``index``."""
        total, sums = 0, self._sums
        while index:
            total += sums[index]
            index &= index - 1
        return total

    def find(self, y: int) -> tuple[int, int]:
        """The index of what covers row ``y`` and the row within it; the last one for rows beyond the end."""
        y = max(0, y)
        if y >= self.total:
            return max(0, len(self._rows) - 1), max(0, self._rows[-1] - 1 if self._rows else 0)
        index, sums = 0, self._sums
        step = 1 << len(self._rows).bit_length()
        while step := step >> 1:
            after = index + step
            if after < len(sums) and sums[after] <= y:
                index, y = after, y - sums[after]
        return index, y


ENDING = "end"
"""The key of a line that says how an answer ended."""
SHORT_OUTPUT = 20
"""Output of the user's own command of more lines is folded,"""
LAST_SEEN = 15
"""but for so many lines at its end."""

_NONE = Heights()


class Tools:
    """Facts about tool calls beside the calls themselves, by call id; and the project's ``root``, to which paths are
    shown relative. ``album`` holds the pictures, where the terminal has them in a text; elsewhere ``opening`` says how
    one is shown on a screen of its own, if that is possible."""

    def __init__(self, root: Path) -> None:
        self.results: dict[str, ToolResultPart] = {}
        self.images: dict[str, list[AttachmentPart]] = {}
        self.album: Album | None = None
        self.opening = ""
        self.live: dict[str, ToolBlock] = {}
        self.owner: dict[str, Entry] = {}
        self.root = root

    def shows(self, block: ToolBlock, entry: Entry) -> None:
        """A call is shown by that block of that entry."""
        self.live[block.call_id] = block
        self.owner[block.call_id] = entry

    def answered(self, message: Message, result: ToolResultPart) -> None:
        """A tool's answer is there, with the images that it returned."""
        self.results[result.call_id] = result
        if len(message.parts) > 1:
            self.images[result.call_id] = [p for p in message.parts if isinstance(p, AttachmentPart) and p.data]


@dataclass(slots=True, eq=False)
class Entry:
    """One message of the transcript, or blocks of no message."""

    message: Message | None = None
    blocks: list[Block] | None = None
    """None until they are needed; ``pieces`` as well."""
    pieces: list[Piece] | None = None
    starts: list[int] = field(default_factory=list)
    """The number of the first piece of each block."""
    heights: Heights = _NONE
    opened: dict[str, bool] | None = None
    """The blocks that the user folded otherwise than usual."""
    index: int = 0
    """The place in the document."""
    live: bool = False
    interrupted: bool = False
    """What is there of a live answer goes when something of it comes anew."""
    after_line: bool = False
    chars: int = 0
    """With ``rows`` the estimate of the height."""
    rows: int = 2

    def __post_init__(self) -> None:
        self.measure()

    def measure(self) -> None:
        """Takes the size of the message for the estimate of its height, folded parts as one line."""
        message = self.message
        if message is None:
            return
        chars, rows = 0, 0
        for part in message.parts:
            if type(part) is TextPart:
                chars += len(part.text)
                rows += 2 + part.text.count("\n")
                for start, end in part.pasted or ():
                    chars -= end - start
                    rows -= part.text.count("\n", start, end)
            else:
                rows += 2 if type(part) is ReasoningPart else 1
        self.chars, self.rows = chars, rows

    def is_open(self, block: Block, folding: Folding) -> bool:
        if self.opened is not None and block.key in self.opened:
            return self.opened[block.key]
        if block.default_open is not None:
            return block.default_open
        return folding.reasoning if isinstance(block, ReasoningBlock) else folding.tools

    def build(self, folding: Folding, width: int) -> list[Piece]:
        """All pieces, made from the blocks as they are folded now."""
        pieces: list[Piece] = []
        self.starts = []
        after_line = self.after_line
        for block in self.blocks or ():
            self.starts.append(len(pieces))
            if isinstance(block, ToolBlock):
                block.gap, block.preview = 0 if after_line else 1, folding.preview
            if made := block.pieces(self.is_open(block, folding)):
                after_line = isinstance(block, ToolBlock) and len(made) == 1
            pieces += made
        self.pieces = pieces
        self.heights = Heights([piece.guess(width) for piece in pieces])
        return pieces

    def place(self, piece: int) -> tuple[Block, int] | None:
        """The block that piece number ``piece`` belongs to, and the piece's number within it."""
        for block, start in zip(reversed(self.blocks or ()), reversed(self.starts), strict=True):
            if start <= piece:
                return block, piece - start
        return None


@dataclass(slots=True)
class Folding:
    """The kinds of blocks that are open unless the user said otherwise for one block; ``preview``: of tool calls that
    are closed a few lines are seen."""

    reasoning: bool = False
    tools: bool = False
    preview: bool = True


def blocks_of(message: Message, tools: Tools) -> list[Block]:
    """The blocks of a stored message."""
    if message.role == "user":
        return _user(message, tools)
    if message.role == "tool" and (result := message.tool_result) is not None:
        block = ToolBlock("call", result.call_id, result.name)
        block.result = result
        add_images(block, tools)
        return [block]
    if message.role == "tool":
        return []
    out: list[Block] = []
    complete = message.status != "streaming"
    for index, part in enumerate(message.parts):
        key = str(index)
        if isinstance(part, TextPart):
            out.append(TextBlock(key, part.text, complete))
        elif isinstance(part, ReasoningPart):
            out.append(ReasoningBlock(key, part.text, complete, part.seconds))
        elif (call := part if isinstance(part, ToolCallPart) else shown_call(part)) is not None:
            out.append(tool_block(key, call, tools))
    out += ending(message)
    return out


def shown_call(part: Part) -> ToolCallPart | None:
    """The call of a search that ran at the provider; None for what another part's search found, and for other parts."""
    return search_call(part) if isinstance(part, SearchPart) else None


def ending(message: Message) -> Iterable[Block]:
    """The line that says how an answer ended, where it did not simply end."""
    if message.status == "failed":
        yield NoticeBlock(ENDING, "error", message.note or "The answer failed.")
    elif message.status == "stopped":
        yield NoticeBlock(ENDING, "warning", message.note or INTERRUPTED)
    elif message.status == "complete" and message.role == "assistant" and message.note:
        yield NoticeBlock(ENDING, "info", message.note)


def tool_block(key: str, part: ToolCallPart, tools: Tools) -> ToolBlock:
    """The block of a call, the one that already shows it where there is one."""
    block = tools.live.get(part.call_id)
    if block is None:
        block = ToolBlock(key, part.call_id, part.name, part.arguments)
    block.result = tools.results.get(part.call_id, block.result)
    add_images(block, tools)
    return block


def add_images(block: ToolBlock, tools: Tools) -> None:
    """Puts what the call returned as images below its line."""
    if images := tools.images.get(block.call_id):
        from agent_tui.ui.transcript.album import PictureBlock

        block.pictures = PictureBlock(images_in(images), tools, (*MARGIN, ("  ", "")))


def _user(message: Message, tools: Tools) -> list[Block]:
    if summary := summary_text(message):
        return [FoldBlock("summary", "Summary", summary, markdown=True, is_open=False, record="")]
    # The mode and the numbers stand on the status line; that the model knows them is no news.
    quiet = (TOLD_MODE, CONTEXT_NOTE)
    attached = [part for part in message.parts if isinstance(part, AttachmentPart) and part.name not in quiet]
    output = own_output(message)
    if output is None:
        blocks: list[Block] = [UserBlock(message.text, _all_named(attached, tools), written_in(message).pasted)]
        if images := images_in(message.parts):
            from agent_tui.ui.transcript.album import PictureBlock

            blocks.append(PictureBlock(images, tools, USER_MARGIN, "user", named=True))
        return blocks
    output = "" if output.strip() == NO_OUTPUT else output
    lines = lines_in(output.rstrip("\n"))
    short = lines <= SHORT_OUTPUT
    detail = plural(lines, "line") if output.strip() else "no output"
    printed = FoldBlock("shell", "output", output, markdown=False, is_open=short, detail=detail)
    printed.last = 0 if short else LAST_SEEN
    named = _all_named([part for part in attached if part.name != OWN_OUTPUT], tools)
    return [UserBlock(message.text, named), printed]


def _all_named(parts: Sequence[AttachmentPart], tools: Tools) -> list[Named]:
    """Returns the names of what was attached, each with what makes a line of it that opens, where it is an image."""
    out: list[Named] = []
    for part in parts:
        named = _named(part, tools.root)
        if part.is_image:
            from agent_tui.ui.transcript.album import key_of, more_of

            out.append((named, key_of(part), partial(more_of, part, tools)))
        else:
            out.append((named, "", None))
    return out


def _named(part: AttachmentPart, root: Path) -> str:
    """Returns the name of what was attached, by its path in the project: files are called so, and what tells of one
    names it as well."""
    path = in_project(part.path, root) if part.path else ""
    # A file is called by its path, with the lines that were chosen of it.
    named = in_project(part.name, root)
    same = not path or path.rstrip("/") in named or Path(path).name in named
    shown = named if same else f"{named} {path}"
    # What the program tells the model is no file, so it has no type that says anything.
    return shown if part.name in TOLD else f"{shown} ({part.media_type})"
