"""The questions of MCP servers as lines: a form field by field, an address to open."""

from __future__ import annotations

from collections.abc import Callable

from agent_tui.models.events import ServerAction, ServerAsked
from agent_tui.models.forms import FormField, defaults, problem_of
from agent_tui.models.messages import Metadata
from agent_tui.plain.line_writer import LineWriter
from agent_tui.plain.questions import PlainQuestion, Taken
from agent_tui.text.clean import spelled

Answer = Callable[[ServerAction, Metadata], None]

_ASKS = {"form": "asks for input", "url": "asks you to open an address"}
_YES = {
    "form": "Fill in the form",
    "url": "Yes: open the address yourself, now or later",
}
_ROWS = [("No", "n"), ("Neither: cancel", "c")]
_SEND = [("Send it", "s"), ("Fill it in again", "a"), *_ROWS]


class ServerQuestion(PlainQuestion):
    """What a server asks. A form is first agreed to, then filled in line by line, and sent once it was shown whole."""

    def __init__(self, asked: ServerAsked, writer: LineWriter, answer: Answer) -> None:
        first = "Send it" if asked.kind == "form" and not asked.fields else _YES[asked.kind]
        super().__init__(asked.request_id, writer, [(first, "y"), *_ROWS], spelled(asked.text))
        self._asked = asked
        self._answer = answer
        self._values: Metadata = defaults(asked.fields)
        self._at: int | None = None
        """The field that is being filled in."""

    @property
    def _field(self) -> FormField | None:
        return None if self._at is None else self._asked.fields[self._at]

    @property
    def prompt(self) -> str:
        field = self._field
        if field is None:
            return super().prompt
        now = field.shown(self._values.get(field.name))
        empty = f"an empty line keeps {spelled(now, line=True)}" if now else "" if field.required else "may be empty"
        notes = ", ".join(note for note in (field.wants, empty) if note)
        return f"{spelled(field.title, line=True)}{f' ({notes})' if notes else ''}: "

    def put(self) -> None:
        asked = self._asked
        self.writer.quote(spelled(f"{asked.server} {_ASKS[asked.kind]}", line=True), "Question")
        if asked.url:
            self._put_address()
        else:
            super().put()

    def _put_address(self) -> None:
        self.writer.quote(self.body, indent="  ")
        self.writer.quote(spelled(self._asked.url, line=True), indent="  ")
        self.writer.quote(spelled(f"it leads to {self._asked.about}", line=True), "Note")
        self.say_rows()

    def take(self, line: str) -> Taken:
        field = self._field
        if field is None:
            return super().take(line)
        text = line.strip()
        try:
            if text:
                self._values = {**self._values, field.name: field.read(text)}
        except ValueError as error:
            self.writer.say(f"{spelled(str(error), line=True)}.", "Note")
            return "again"
        if field.required and field.name not in self._values:
            self.writer.say("an answer is required here.", "Note")
            return "again"
        self._go_to((self._at or 0) + 1)
        return "again"

    def _go_to(self, at: int) -> None:
        """The next field; after the last one all is shown."""
        fields = self._asked.fields
        self._at = at if at < len(fields) else None
        if (field := self._field) is not None:
            if field.about:
                self.writer.quote(spelled(field.about, line=True), "Note")
            for number, choice in enumerate(field.choices, 1):
                self.writer.quote(f"{number}. {spelled(choice.label, line=True)}")
            return
        for each in fields:
            shown = each.shown(self._values.get(each.name)) or "empty"
            self.writer.quote(spelled(f"{each.title}: {shown}", line=True), indent="  ")
        self.rows = _SEND
        super().say_rows()

    def choose(self, at: int) -> Taken:
        key = self.rows[at][1]
        if key in ("n", "c"):
            self._answer("decline" if key == "n" else "cancel", {})
            return "answered"
        if self._asked.fields and key in ("y", "a"):
            self._go_to(0)
            return "again"
        if problem := problem_of(self._asked.fields, self._values):
            self.writer.say(problem, "Note")
            return "again"
        self._answer("accept", self._values)
        return "answered"

    def give_up(self) -> None:
        self._answer("cancel", {})
