"""The question before a risky call: in the flow above the prompt, so that the transcript stays readable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

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
from agent_tui.ui.widgets.body import Body, pieces_of
from agent_tui.ui.widgets.lines import Lines
from agent_tui.ui.widgets.question import Choice, Choices, QuestionPanel, TakesTyped

MAX_COMPARED = 100_000
PARTS = " · "
"""What stands between the parts of a reason."""
REASON, SHORT_REASON = 3, 2
"""Lines of the reason that are shown, and on low screens."""
SHORT_WORDS = {"y": "yes", "a": "always", "s": "session", "n": "no", "f": "no, because…"}


class _Header(Lines):
    def __init__(self, asked: PermissionAsked) -> None:
        super().__init__(height=1)
        self.asked = asked
        self._instead = ""
        self._reason: list[str] = []

    def fit(self, width: int, most: int) -> int:
        """Wraps the reason into at most so many lines. Its last part, which says where the call would run, then has one
        of its own. Returns the lines of all."""
        reason = spelled(self.asked.reason, line=True)
        self._reason = _at_most(reason, width, most) if reason else []
        head, between, tail = reason.rpartition(PARTS)
        if len(self._reason) > 1 and between:
            self._reason = [*_at_most(head, width, most - 1), shorten(tail, width)]
        return 1 + len(self._reason)

    def tell(self, words: str) -> None:
        """Words that stand where the question does, until there are none."""
        self._instead = words
        self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y:
            return [(self._reason[y - 1], paint("muted"))] if y <= len(self._reason) else []
        if self._instead:
            return [(shorten(self._instead, width), paint("warning", bold=True))]
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


def _at_most(text: str, width: int, most: int) -> list[str]:
    """A text in at most so many lines."""
    pieces = pieces_of(text, width)
    return pieces if len(pieces) <= most else [*pieces[: most - 1], shorten("".join(pieces[most - 1 :]), width)]


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
    """Asks for one call. Answers by ``Answered``. What does not fit is allowed when its end was on the screen, or with
    the second press of the same key: the first says that there is more."""

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
        self._question = _Header(asked)
        super().__init__(
            asked,
            guard,
            typed,
            self._question,
            Body(str(display.get("text") or ""), _color(str(display.get("kind") or "text"))),
            Choices(permission_choices(asked), SHORT_WORDS),
            "What to do instead · Enter sends · Esc back",
        )
        self._permission = asked
        self._whole = False
        self._warned: Choice | None = None

    def on_mount(self) -> None:
        super().on_mount()
        self.watch(self._body, "scroll_y", self._look, init=False)

    def _drawn(self) -> None:
        super()._drawn()
        self.call_after_refresh(self._look)

    def _header_rows(self, width: int, short: bool) -> int:
        return self._question.fit(width, SHORT_REASON if short else REASON)

    def _look(self) -> None:
        """Notes when the end of the text is on the screen."""
        if not self._whole and self._body.below <= 0:
            self._whole = True
            self._question.tell("")

    def choose(self, choice: Choice) -> None:
        assert isinstance(choice, PermissionChoice)
        self._look()
        if choice.feedback:
            self.ask_for_words(choice)
        elif choice.allow and not self._whole and choice is not self._warned:
            self._warned = choice
            where = "Its end was not shown: PgDn shows it" if self._body.size.height else "There is no room to show it"
            self._question.tell(f"{where}, {choice.key or 'Enter'} again allows")
            self.guard.appeared()  # a key that is held, or pressed twice at once, has not read that
        else:
            self._answer(choice.allow, choice.pattern, "")

    def say(self, words: str) -> None:
        self._answer(False, None, words)

    def _answer(self, allow: bool, pattern: str | None, feedback: str) -> None:
        if self.first_answer():
            self.post_message(self.Answered(self._permission, allow, pattern, feedback))
