"""The model's plan before it is carried out: to be approved, changed, or declined with a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from agent_tui.commands.questions import PLAN_CHOICES, PlanChoice
from agent_tui.models.events import PlanPresented
from agent_tui.models.questions import ApprovedMode
from agent_tui.text.cells import shorten
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import lines_in, plural
from agent_tui.ui.draw import Piece
from agent_tui.ui.guard import TypingGuard
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.body import Body
from agent_tui.ui.widgets.lines import Lines
from agent_tui.ui.widgets.question import Choice, Choices, QuestionPanel, TakesTyped

BODY_ROWS = 30


WORDS = {"y": "yes", "e": "edits", "a": "auto", "c": "change", "f": "no, because…", "n": "no"}


class _Header(Lines):
    def __init__(self, plan: str) -> None:
        super().__init__(height=1)
        self.lines = lines_in(plan)
        self.state = ""

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        keys = self.state or f"{plural(self.lines, 'line')}"
        what = "Carry out this plan?"
        return [(what, paint("warning", bold=True)), (shorten(f"  {keys}", max(0, width - len(what))), paint("muted"))]

    def tell(self, state: str) -> None:
        self.state = state
        self.refresh()


def _color(line: str) -> str:
    return "accent" if line.startswith("#") else "muted" if line.startswith(("```", ">")) else "foreground"


class PlanPanel(QuestionPanel):
    """Asks about one plan. Answers by ``Answered``; the plan is the model's text, drawn and never interpreted."""

    DEFAULT_CSS = """
    PlanPanel { border: round $accent; }
    PlanPanel TextArea {
        height: auto; border: none; padding: 0; background: $surface; display: none; scrollbar-size-vertical: 1;
    }
    PlanPanel TextArea:focus { border: none; }
    PlanPanel.-editing TextArea { display: block; }
    PlanPanel.-editing .body { display: none; }
    PlanPanel.-editing More { max-height: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g", "editor", "Change it in $EDITOR", show=False, id="editor"),
        *(Binding(choice.key, f"answer('{choice.key}')", choice.label, show=False) for choice in PLAN_CHOICES),
    ]

    @dataclass
    class Edits(Message):
        """The text is to be changed in the user's editor."""

        panel: PlanPanel

    @dataclass
    class Answered(Message):
        """``mode`` None: declined."""

        asked: PlanPresented
        mode: ApprovedMode | None
        plan: str
        feedback: str

    def __init__(self, asked: PlanPresented, guard: TypingGuard, typed: TakesTyped) -> None:
        self._plan = asked.plan
        self._presented = asked
        self._title = _Header(asked.plan)
        super().__init__(
            asked,
            guard,
            typed,
            self._title,
            Body(asked.plan, _color),
            Choices(PLAN_CHOICES, WORDS),
            "What to plan instead · Enter sends · Esc back",
            body_rows=BODY_ROWS,
        )

    def compose(self) -> ComposeResult:
        header, body, *rest = super().compose()
        yield header
        yield body
        # What the model wrote may drive no terminal here either; a plan left as it is goes back as it came.
        yield TextArea(spelled(self._plan), show_line_numbers=False, tab_behavior="focus")
        yield from rest

    @property
    def writing(self) -> bool:
        return super().writing or self.has_class("-editing")

    def _written_key(self, event: events.Key) -> None:
        if not self.has_class("-editing"):
            super()._written_key(event)

    def _arrange(self, height: int) -> None:
        super()._arrange(height)
        room = self._body.styles.height
        rows = int(room.value) if room is not None else 1
        self.query_one(TextArea).styles.height = rows + self._choices.line_count

    async def on_paste(self, event: events.Paste) -> None:
        if not self.has_class("-editing"):
            await super().on_paste(event)

    def action_editor(self) -> None:
        self.post_message(self.Edits(self))

    @property
    def text(self) -> str:
        """The plan as it is now, spelled out."""
        return self.query_one(TextArea).text

    def changed(self, text: str) -> None:
        """The plan as the user's editor left it."""
        self.query_one(TextArea).text = text
        self.add_class("-editing")
        self.action_escape()

    def choose(self, choice: Choice) -> None:
        assert isinstance(choice, PlanChoice)
        if choice.edit:
            self.add_class("-editing")
            self._choices.display = False
            self._title.tell("change it · Esc when done · Ctrl+G in $EDITOR")
            self.query_one(TextArea).focus()
        elif choice.feedback:
            self.ask_for_words(choice)
        else:
            self._answer(choice.mode, "")

    def say(self, words: str) -> None:
        self._answer(None, words)

    def action_escape(self) -> None:
        if not self.has_class("-editing"):
            super().action_escape()
            return
        area = self.query_one(TextArea)
        if area.text.strip():
            if area.text != spelled(self._plan):
                self._plan = area.text
                self._body.set_text(self._plan)
                self._title.lines = lines_in(self._plan)
            changed = self._plan != self._presented.plan
            self._title.tell("changed by you" if changed else "")
        else:
            area.text = spelled(self._plan)
            self._title.tell("an empty plan is none: it is as before")
        self.remove_class("-editing")
        self._choices.display = True
        self._arrange(self.screen.size.height)
        self.focus()

    def left(self) -> None:
        """Escape declines without a word: the turn ends, and the user says what they want."""
        self._answer(None, "")

    def _answer(self, mode: ApprovedMode | None, feedback: str) -> None:
        if self.first_answer():
            self.post_message(self.Answered(self._presented, mode, self._plan, feedback))
