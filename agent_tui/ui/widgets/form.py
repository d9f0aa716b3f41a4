"""The question of an MCP server: a form to fill in, or an address to open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from agent_tui.models.events import ServerAction, ServerAsked
from agent_tui.models.forms import FormField, defaults, problem_of
from agent_tui.models.messages import Metadata
from agent_tui.records import dataclass
from agent_tui.text.cells import shorten
from agent_tui.text.clean import spelled
from agent_tui.ui.keys import TypingGuard
from agent_tui.ui.widgets.bodies import Body
from agent_tui.ui.widgets.question import ChoiceRow, Choices, QuestionPanel, TakesTyped, Title, WholeInput

NAME = 30
"""Cells of a server's name."""

Answer = Callable[[ServerAsked, ServerAction, Metadata, bool], None]
"""Takes the user's word, the values of a form, and whether an address is to be opened."""


@dataclass(slots=True, frozen=True)
class FormRow:
    """A row: an answer (``action``), a field to fill in, one of the ``value``s that a field takes, or (neither) the way
    back from those."""

    key: str
    label: str
    action: ServerAction | None = None
    opens: bool = False
    field: FormField | None = None
    value: str | None = None
    feedback: bool = False


NO = FormRow("n", "No", "decline")
OPEN = FormRow("y", "Yes, open it in the browser", "accept", opens=True)
_YES = {
    "form": (FormRow("s", "Send", "accept"),),
    "url": (OPEN, FormRow("o", "Yes, I open it myself", "accept")),
}
_TITLES = {"form": "asks for input", "url": "asks you to open an address"}


class ServerPanel(QuestionPanel[ServerAsked]):
    """Puts one question of a server, whose words are drawn and never interpreted. Fields are filled in one by one; what
    one takes of several values is chosen in rows of their own."""

    DEFAULT_CSS = """
    ServerPanel { border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Mark", show=False),
        *(Binding(key, f"answer('{key}')", f"Choose {key}", show=False) for key in "ysonb"),
    ]

    def __init__(self, asked: ServerAsked, guard: TypingGuard, typed: TakesTyped, answer: Answer) -> None:
        self._values: Metadata = defaults(asked.fields)
        self._tell = answer
        self._field: FormField | None = None
        who = f"{shorten(spelled(asked.server, line=True), NAME)} {_TITLES[asked.kind]}"
        needed = any(each.required for each in asked.fields)
        self._hint = (
            f"at {spelled(asked.about, line=True)}" if asked.url else f"{'* required · ' if needed else ''}Esc cancels"
        )
        self._title = Title(who, self._hint)
        super().__init__(
            asked,
            guard,
            typed,
            self._title,
            Body("\n\n".join(filter(None, [asked.text, asked.url] if asked.url else [asked.about, asked.text]))),
            Choices(self._rows(asked), {}, self._mark),
            "",
        )

    def _rows(self, asked: ServerAsked) -> Sequence[ChoiceRow]:
        fields = [
            FormRow(str(n) if n < 10 else "", self._label(each), field=each, feedback=each.kind in _WRITTEN)
            for n, each in enumerate(asked.fields, 1)
        ]
        return [*fields, *_YES[asked.kind], NO]

    def _label(self, each: FormField) -> str:
        shown = each.shown(self._values.get(each.name)) or "—"
        return spelled(f"{each.title}{' *' if each.required else ''}: {shown}", line=True)

    def _mark(self, choice: ChoiceRow) -> str:
        if not isinstance(choice, FormRow) or self._field is None or choice.value is None:
            return ""
        now = self._values.get(self._field.name)
        chosen = choice.value in now if isinstance(now, list) else choice.value == now
        return ("[x] " if chosen else "[ ] ") if self._field.kind == "choices" else ("(x) " if chosen else "( ) ")

    def choose(self, choice: ChoiceRow) -> None:
        assert isinstance(choice, FormRow)
        if choice.action is not None:
            self._send(choice)
        elif choice.field is not None:
            self._begin(choice, choice.field)
        elif self._field is not None and choice.value is not None:
            self._chosen(self._field, choice.value)
        else:
            self._back()

    def action_mark(self) -> None:
        """Takes one of several values, or not; what cannot be undone by another press is no matter of a blank."""
        here = self.here
        assert isinstance(here, FormRow)
        if here.value is not None or (here.field is not None and here.field.kind == "boolean"):
            self.choose(here)

    def _send(self, row: FormRow) -> None:
        problem = problem_of(self.asked.fields, self._values) if row.action == "accept" else ""
        if problem:
            self._say(problem)
            missing = [n for n, each in enumerate(self.asked.fields) if problem_of([each], self._of(each))]
            self._to(missing[0])
        elif self.first_answer():
            assert row.action is not None
            self._tell(self.asked, row.action, self._values, row.opens)

    def _of(self, each: FormField) -> Metadata:
        return {each.name: self._values.get(each.name)}

    def _begin(self, row: FormRow, each: FormField) -> None:
        """A field is to be filled in."""
        self._say(each.about)
        if each.kind == "boolean":
            self._set(each, not self._values.get(each.name, False))
            self._show(self._rows(self.asked), self._choices.cursor)
        elif each.choices:
            self._field = each
            rows = [
                FormRow(str(n) if n < 10 else "", spelled(c.label, line=True), value=c.value)
                for n, c in enumerate(each.choices, 1)
            ]
            now = self._values.get(each.name)
            at = next((n for n, one in enumerate(rows) if one.value == now), 0)
            self._show([*rows, FormRow("b", "Back to the form")], at)
        else:
            line = self.query_one(WholeInput)
            line.placeholder = " · ".join(
                filter(None, [spelled(each.title, line=True), each.wants, "Enter keeps it", "Esc back"])
            )
            line.value = each.written(self._values.get(each.name))
            self.ask_for_words(row)

    def _chosen(self, each: FormField, value: str) -> None:
        """One of the values of a field was chosen; of several it is one more, or one less."""
        if each.kind == "choice":
            self._set(each, value)
            self._back(1)
            return
        now = self._values.get(each.name) or []
        kept = [c.value for c in each.choices if (c.value in now) != (c.value == value)]
        self._set(each, kept or None)
        self._to(self._choices.cursor)

    def _set(self, each: FormField, value: Any) -> None:
        self._values = {**self._values, each.name: value}
        if value is None:
            del self._values[each.name]

    def say(self, words: str) -> None:
        each = self.here.field if isinstance(self.here, FormRow) else None
        if each is None:
            return
        try:
            self._set(each, each.read(words) if words else None)
        except ValueError as error:
            self._say(f"{each.title}: {error}")
            return
        self.remove_class("-feedback")
        self.focus()
        self._back(1)

    def _back(self, on: int = 0) -> None:
        """To the fields; ``on`` so many rows after the one that was filled in."""
        at = self._choices.cursor
        if self._field is not None:
            at, self._field = self.asked.fields.index(self._field), None
        self._say("")
        self._show(self._rows(self.asked), at + on)

    def _show(self, rows: Sequence[ChoiceRow], at: int) -> None:
        self._choices.choices = rows
        self._to(at)

    def _say(self, words: str) -> None:
        self._title.tell(spelled(words, line=True) or self._hint)

    def action_escape(self) -> None:
        if self._field is not None:
            self._back()
        else:
            super().action_escape()

    def left(self) -> None:
        """Escape is neither yes nor no."""
        self._send(FormRow("", "", "cancel"))


_WRITTEN = ("text", "number", "integer")
"""Kinds of fields that are written."""
