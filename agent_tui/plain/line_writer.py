"""Writes whole lines, one after the other, and nothing over what is written; now and then one says what goes on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias, get_args

from agent_tui import terminal_output
from agent_tui.records import dataclass
from agent_tui.text.clean import clean, newlines, one_line, visible_form
from agent_tui.text.numbers import duration

if TYPE_CHECKING:
    from agent_tui.plain.reading import Reads

_SIGNS = (
    (r"(?m)^( *)[✓] ", r"\1Fine: "),
    (r"(?m)^( *)[✗] ", r"\1Fails: "),
    (r"(?m)^( *)! ", r"\1Warning: "),
    (r"(?<=[.!?] )~(?=\$?\d)", "About "),
    (r"~(?=\$?\d)", "about "),
    (r"≥ ?(?=\$?\d)", "at least "),
    (r"<(?=\$?\d)", "less than "),
    (r" [·] ", ", "),
    (r" → ", " to "),
    (r" [✓]", ", holds"),
    (r" [✗]", ", does not hold"),
    (r"−(?=[\d$])", "minus "),
    (r"±0", "no change"),
)


def spoken(text: str) -> str:
    """Text of ours for the ear. What models, tools and files say is never passed through here: it stays as it is."""
    for pattern, words in _SIGNS:
        text = re.sub(pattern, words, text)
    return text


Mark: TypeAlias = Literal[
    "You", "You, from the queue", "Agent", "Note", "Warning", "Error", "Reason", "Plan", "Question",
    "Permission needed", "Thought", "Compacted", "Done", "Stopped", "Removed from the queue", "Your message was",
    "The brief",
]  # fmt: skip
"""What stands, with a colon, before words in a line of ours."""
LEVELS: dict[str, Mark] = {"info": "Note", "warning": "Warning", "error": "Error"}
BEGINNINGS = (*(f"{mark}:" for mark in get_args(Mark)), "More:", "Answer, ", "Number, ", "Tool ", "Thinking…")
"""What our own lines begin with. A line of the model's that begins like that says whose it is."""


def _like(beginning: str) -> str:
    """A pattern of all that reads like a beginning: blanks between its letters change nothing."""
    letters = " ?".join(map(re.escape, visible_form(beginning).replace(" ", "")))
    return letters + (" " if beginning.endswith(" ") else "")


_OURS = re.compile("|".join(map(_like, BEGINNINGS)))
_LONGEST = 2 * max(map(len, BEGINNINGS))
_STRETCHED = 4_000
"""Characters of a line that are looked at: one that shows next to nothing in so many hides something."""
_SENTENCE = re.compile(r"[.!?:;…](?:[\"')\]*_]*)\s")
SOON = 160
"""Characters of a line that are written at the end of a word although no sentence is over: nobody waits longer."""


def looks_like_ours(line: str) -> bool:
    """Returns whether a line could be taken for one of the program's, however it is spelled."""
    read = visible_form(line[:_STRETCHED])
    return _OURS.match(read) is not None or (len(line) > _STRETCHED and len(read) <= _LONGEST)


class LineWriter:
    """Writes to ``out``. Before anything is written ``reads``, which may show a line that is typed, steps aside, and
    while it holds, what is to be written waits for ``flush``; ``spoke`` is called afterwards. ``lost`` is called once,
    where nobody can read it any more. Nothing is raised for that."""

    reads: Reads | None = None

    def __init__(
        self,
        out: TextIO,
        spoke: Callable[[], None] = lambda: None,
        lost: Callable[[OSError], None] = lambda error: None,
    ) -> None:
        self.out = out
        self._spoke = spoke
        self._lost = lost
        self._held: list[str] = []
        self._reaches = True
        self._fresh = True
        self._answer = ""
        self._begun = False

    def say(self, text: str, mark: Mark | None = None) -> None:
        """Words of ours: a line, or several, in words for the ear."""
        self.end_answer()
        self._lines(spoken(text), mark)

    def quote(self, text: str, mark: Mark | None = None, indent: str = "") -> None:
        """Words of others, as they are but harmless; ``indent`` stands before each line, ``mark`` before the first and
        before those that look like ours."""
        self.end_answer()
        first, *rest = clean(text).rstrip("\n").split("\n")
        front = f"{mark}: " if mark else "  "
        said = [first, *(f"{front}{line}" if not indent and looks_like_ours(line) else line for line in rest)]
        self._lines("\n".join(f"{indent}{line}" if line else "" for line in said), mark)

    def remark(self, text: str, mark: Mark) -> None:
        """Words of ours while the answer may be coming: a word of it that has only begun waits for its end."""
        self.make_room()
        self._lines(spoken(text), mark)

    def _lines(self, text: str, mark: Mark | None) -> None:
        text = clean(text).rstrip("\n")
        self._new_line()
        self._write(f"{mark}: {text}\n" if mark else f"{text}\n")
        self._fresh = True

    def prompt(self, text: str) -> None:
        """A question whose answer is typed behind it."""
        self.end_answer()
        self._write(text)
        self._fresh = False

    def typed(self, text: str | None) -> None:
        """An answer came: ``text`` where the terminal has not shown it itself."""
        if text is not None:
            self._write(clean(text).replace("\n", "\n  ") + "\n")
        self._fresh = True

    def broken(self) -> None:
        """Something else stands on the line, such as the ^C of the terminal."""
        self._fresh = False

    def ring(self) -> None:
        """The bell."""
        if self._reaches:
            self._guarded(lambda: terminal_output.ring(self.out))

    # The answer as it comes

    def answer(self, text: str) -> None:
        """A piece of the model's answer. Written are sentences and lines: pieces of words cannot be listened to."""
        self._answer += newlines(text)
        while self._answer:
            end = self._end_of_piece()
            if not end:
                return
            piece, self._answer = self._answer[:end], self._answer[end:]
            self._piece(piece)

    def _end_of_piece(self) -> int:
        text = self._answer
        if line := text.find("\n") + 1:
            return line
        if sentences := [match.end() for match in _SENTENCE.finditer(text)]:
            return sentences[-1]
        if len(text) <= SOON:
            return 0
        # A beginning of ours that is stretched by what cannot be seen is not told in parts.
        ends = (text.rfind(" ", 0, SOON) + 1, text.rfind(" ") + 1)
        return next((end for end in ends if end > _STRETCHED or len(visible_form(text[:end])) > _LONGEST), 0)

    def _piece(self, piece: str) -> None:
        if not self._begun:
            if not piece.strip():
                return
            self._begun = True
            self._new_line()
            piece = f"Agent: {piece.lstrip()}"
        elif self._fresh and looks_like_ours(piece):
            piece = f"Agent: {piece}"
        self._write(piece)
        self._fresh = piece.endswith("\n")

    def end_answer(self) -> None:
        """The answer is over: what of it was not written yet is."""
        if self._answer:
            piece, self._answer = self._answer, ""
            self._piece(piece)
        self.make_room()

    def make_room(self) -> None:
        """Something of ours is about to stand here: it needs a row of its own."""
        if self._begun:
            self._begun = False
            self._new_line()

    def _new_line(self) -> None:
        if not self._fresh:
            self._write("\n")
            self._fresh = True

    def _write(self, text: str) -> None:
        if self._held or self._holds:
            self._held.append(text)
        elif self._reaches:
            if self.reads is not None:
                self.reads.step_aside()
            self._guarded(lambda: terminal_output.write(self.out, text))
            self._spoke()

    @property
    def _holds(self) -> bool:
        return self.reads is not None and self.reads.holds

    def flush(self) -> None:
        """Nothing holds what waited any more."""
        if self._held and not self._holds:
            text, self._held = "".join(self._held), []
            self._write(text)

    def _guarded(self, write: Callable[[], None]) -> None:
        try:
            write()
            self.out.flush()
        except OSError as error:
            self.reach_nobody(error)

    def reach_nobody(self, error: OSError) -> None:
        """Notes that what is written reaches nobody any more."""
        if self._reaches:
            self._reaches = False
            self._lost(error)


AFTER = (5.0, 15.0, 30.0)
"""Seconds without a word after which one is said; from then on the last of them again and again."""


@dataclass(eq=False)
class ProgressTicker:
    """Says what goes on while nothing else is said: the ``phase``, with its ``last`` line, as long as the agent is
    busy. While somebody is asked nothing is said, and no time passes."""

    _writer: LineWriter
    _busy: Callable[[], bool]
    _asked: Callable[[], bool]
    phase: str = ""
    last: str = ""
    _count: int = 0
    _timer: asyncio.TimerHandle | None = None
    _since: float | None = None
    _asked_since: float | None = None
    _waited: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds that it has been going on, without the time in which somebody was asked."""
        if self._since is None:
            return 0.0
        now = asyncio.get_running_loop().time()
        asking = now - self._asked_since if self._asked_since is not None else 0.0
        return now - self._since - self._waited - asking

    def begin(self, phase: str) -> None:
        """Something begins, or goes on with something else."""
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
            self._waited = 0.0
        self.phase, self.last = phase, ""
        self.spoke()

    def spoke(self) -> None:
        """Something is said: the silence begins anew."""
        self._count = 0
        self._later()

    def look(self) -> None:
        """Somebody may be asked now, or not any more."""
        now = asyncio.get_running_loop().time()
        if self._asked():
            self._asked_since = now if self._asked_since is None else self._asked_since
        elif self._asked_since is not None:
            self._waited += now - self._asked_since
            self._asked_since = None
            if self._since is not None:
                self.spoke()

    def end(self) -> None:
        """Nothing goes on any more."""
        self.phase = self.last = ""
        self._since = self._asked_since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait = AFTER[min(self._count, len(AFTER) - 1)]
        self._timer = asyncio.get_running_loop().call_later(wait, self._break)

    def _break(self) -> None:
        if not self._busy():
            self.end()
            return
        if not self._asked():
            last = f", last line: {one_line(self.last, 200)}" if self.last else ""
            self._writer.quote(f"{self.phase}, {duration(self.seconds)}{last}. Ctrl+C to interrupt.")
        self._count += 1
        self._later()
