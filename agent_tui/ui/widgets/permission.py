"""The question before a risky call: in the flow above the prompt, so that the transcript stays readable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.message import Message

from agent_tui.commands.questions import PermissionChoice, permission_choices
from agent_tui.commands.tool_words import about_a_path
from agent_tui.models.events import PermissionAsked
from agent_tui.text.cells import shorten, shorten_path
from agent_tui.text.clean import one_line, spelled
from agent_tui.ui.draw import Piece
from agent_tui.ui.guard import TypingGuard
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.body import Body
from agent_tui.ui.widgets.lines import Lines
from agent_tui.ui.widgets.question import Choice, Choices, QuestionPanel, TakesTyped

MAX_COMPARED = 100_000
SHORT_WORDS = {"y": "yes", "a": "always", "s": "session", "n": "no", "f": "no, because…"}


def _reason_rows(asked: PermissionAsked, width: int) -> list[str]:
    """The reason in one row, or where that is too short for it, each part of it in one: where the call would run is
    said last, and must not be cut off."""
    reason = spelled(asked.reason, line=True)
    return [] if not reason else [reason] if cell_len(reason) <= width else reason.split(" · ")[:3]


class _Header(Lines):
    def __init__(self, asked: PermissionAsked) -> None:
        super().__init__(height=2 if asked.reason else 1)
        self.asked = asked

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y > 0:
            rows = _reason_rows(self.asked, width)
            return [(shorten(rows[y - 1], width), paint("muted"))] if y <= len(rows) else []
        what = f"Allow {shorten(spelled(self.asked.tool, line=True), 40)}?"
        return [
            (what, paint("warning", bold=True)),
            ("  " + self._subject(max(0, width - len(what) - 2)), paint("foreground")),
        ]

    def _subject(self, width: int) -> str:
        """What the tool would do it to, in at most ``width`` cells; nothing when the body below says it word by
        word."""
        display = self.asked.display or {}
        summary = self.asked.summary.removeprefix(f"{self.asked.tool} ")
        subject = spelled(summary, line=True)
        if display.get("kind") == "diff":
            size = display.get("summary")
            known = f"  {one_line(size, 40)}" if isinstance(size, str) and size else ""
            room = width - len(known)
            return (shorten_path if about_a_path(self.asked.tool) else shorten)(subject, room) + known
        body = " ".join(str(display.get("text") or "")[:MAX_COMPARED].split())
        same = " ".join(summary.split()).rstrip("…") in body
        return "" if display.get("kind") == "command" and same else shorten(subject, width)


def _color(kind: str) -> Callable[[str], str]:
    """The colours of a diff's lines; everything else has one."""

    def color(line: str) -> str:
        if kind != "diff":
            return "foreground"
        if line.startswith(("@@", "--- ", "+++ ")):
            return "muted"
        return {"+": "diff-add", "-": "diff-remove"}.get(line[:1], "foreground")

    return color


class PermissionPanel(QuestionPanel):
    """Asks for one call. Answers by ``Answered``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('y')", "Yes", show=False, id="allow"),
        Binding("a", "answer('a')", "Always", show=False, id="always"),
        Binding("s", "answer('s')", "This session", show=False),
        Binding("n", "answer('n')", "No", show=False, id="deny"),
        Binding("f", "answer('f')", "No, with a word", show=False, id="feedback"),
    ]

    @dataclass
    class Answered(Message):
        asked: PermissionAsked
        allow: bool
        pattern: str | None
        feedback: str

    def __init__(self, asked: PermissionAsked, guard: TypingGuard, typed: TakesTyped) -> None:
        display = asked.display or {}
        super().__init__(
            asked,
            guard,
            typed,
            _Header(asked),
            Body(str(display.get("text") or ""), _color(str(display.get("kind") or "text"))),
            Choices(permission_choices(asked), SHORT_WORDS),
            "What to do instead · Enter sends · Esc back",
        )
        self._permission = asked

    def _header_rows(self, width: int) -> int:
        return 1 + len(_reason_rows(self._permission, width))

    def choose(self, choice: Choice) -> None:
        assert isinstance(choice, PermissionChoice)
        if choice.feedback:
            self.ask_for_words(choice)
        else:
            self._answer(choice.allow, choice.pattern, "")

    def say(self, words: str) -> None:
        self._answer(False, None, words)

    def _answer(self, allow: bool, pattern: str | None, feedback: str) -> None:
        if self.first_answer():
            self.post_message(self.Answered(self._permission, allow, pattern, feedback))
