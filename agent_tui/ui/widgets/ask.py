"""A question of the model's, with choices and room for an answer in one's own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from agent_tui.commands.questions import question_text
from agent_tui.models.events import QuestionAsked
from agent_tui.text.cells import whole_parts
from agent_tui.text.clean import spelled
from agent_tui.ui.draw import Piece
from agent_tui.ui.guard import TypingGuard
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.body import Body
from agent_tui.ui.widgets.lines import Lines
from agent_tui.ui.widgets.question import Choice as Question
from agent_tui.ui.widgets.question import Choices, QuestionPanel, TakesTyped


@dataclass(slots=True, frozen=True)
class Choice:
    """``choice`` is what the model gave, empty for the rows that are ours; ``done`` sends what was chosen."""

    key: str
    label: str
    choice: str = ""
    feedback: bool = False
    done: bool = False


class _Header(Lines):
    def __init__(self, several: bool) -> None:
        super().__init__(height=1)
        self._keys = "Space marks, Enter sends" if several else "Enter or a number answers"

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        what = "The model asks"
        keys = whole_parts(f"  {self._keys} · Esc declines", max(0, width - len(what)))
        return [(what, paint("warning", bold=True)), (keys, paint("muted"))]


def choices_for(asked: QuestionAsked) -> list[Choice]:
    """The choices by number, and the way to other words."""
    rows = [Choice(str(n), spelled(text, line=True), text) for n, text in enumerate(asked.choices, 1)]
    if asked.several:
        rows.append(Choice("s", "Send what is chosen", done=True))
    return [*rows, Choice("o", "Other words…", feedback=True)]


class AskPanel(QuestionPanel):
    """Puts one question. Answers by ``Answered``; the model's words are drawn and never interpreted."""

    DEFAULT_CSS = """
    AskPanel { border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Choose one of several", show=False),
        Binding("s", "answer('s')", "Send", show=False),
        Binding("o", "answer('o')", "Other words", show=False),
    ]

    @dataclass
    class Answered(Message):
        """Neither choices nor words: declined."""

        asked: QuestionAsked
        chosen: tuple[str, ...]
        text: str

    def __init__(self, asked: QuestionAsked, guard: TypingGuard, typed: TakesTyped) -> None:
        self._question = asked
        self._chosen: set[str] = set()
        super().__init__(
            asked,
            guard,
            typed,
            _Header(asked.several),
            Body(question_text(asked)),
            Choices(choices_for(asked), {}, self._mark),
            "In your own words · Enter sends · Esc back",
        )

    def _mark(self, choice: Question) -> str:
        if not self._question.several or not isinstance(choice, Choice) or not choice.choice:
            return ""
        return "[x] " if choice.choice in self._chosen else "[ ] "

    def choose(self, choice: Question) -> None:
        assert isinstance(choice, Choice)
        if choice.feedback:
            self.ask_for_words(choice)
        elif choice.done:
            self._send()
        elif self._question.several:
            self._toggle(choice)
        else:
            self._answer((choice.choice,), "")

    def action_choose(self) -> None:
        """Enter sends; where several may be chosen and none is yet, it takes the row it stands on."""
        choice = self.choices[self._choices.cursor]
        if self._question.several and isinstance(choice, Choice) and choice.choice:
            self._chosen = self._chosen or {choice.choice}
            self._send()
        else:
            self.choose(choice)

    def action_mark(self) -> None:
        choice = self.choices[self._choices.cursor]
        if self._question.several and isinstance(choice, Choice) and choice.choice:
            self._toggle(choice)

    def _toggle(self, choice: Choice) -> None:
        self._chosen ^= {choice.choice}
        self._to(self._choices.cursor)

    def _send(self) -> None:
        chosen = tuple(choice for choice in self._question.choices if choice in self._chosen)
        if chosen:
            self._answer(chosen, "")

    def say(self, words: str) -> None:
        chosen = tuple(choice for choice in self._question.choices if choice in self._chosen)
        if words or chosen:
            self._answer(chosen, words)

    def left(self) -> None:
        """Escape declines; the model goes on without an answer."""
        self._answer((), "")

    def _answer(self, chosen: tuple[str, ...], text: str) -> None:
        if self.first_answer():
            self.post_message(self.Answered(self._question, chosen, text))
