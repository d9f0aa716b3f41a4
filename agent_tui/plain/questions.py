"""Questions as numbered choices, the agent's and the program's own; one at a time is put, the oldest first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from agent_tui.commands.tool_words import change_lines
from agent_tui.errors import AgentError
from agent_tui.models.events import ServerAsked
from agent_tui.models.messages import new_id
from agent_tui.records import dataclass
from agent_tui.say.answering import Answering, Reply, Step, deliver_now
from agent_tui.say.asks import Ask, AskChoice, Asked, ask_of, attach_ask
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import lines_in, plural

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.forms import FormField
    from agent_tui.plain.line_writer import LineWriter


LEAST_KEY = 16
"""Characters of one word that may be a key, where one is asked for."""
Taken: TypeAlias = Literal["answered", "again", "step", "other"]
"""What a line was to a question: its answer, something that leaves it open, something that leads to another of its
steps, or nothing that concerns it."""

BODY_LINES = 120
"""Lines of a diff or a plan that are told at once; the rest on demand."""
PART = 20
"""Rows of a long list that are told at once."""
WORDS = {"yes": "y", "no": "n"}


class PlainQuestion:
    """An open question: choices by number, by key, or yes and no; one of them may ask for words first. ``rows`` are
    their labels, each with the key that answers as well (or none)."""

    words_prompt = ""
    """Asks for the words."""

    def __init__(self, request_id: str, writer: LineWriter, rows: Sequence[tuple[str, str]], body: str = "") -> None:
        self.request_id = request_id
        self.writer = writer
        self.rows = rows
        self.body = body
        """The text above the choices; of a long one the rest is said on demand."""
        self._writing = False
        self._all_said = False

    @property
    def unsaid(self) -> bool:
        """True when the end of the text above the choices was not said."""
        return self.body.count("\n") >= BODY_LINES and not self._all_said

    @property
    def prompt(self) -> str:
        if self._writing:
            return f"{self.words_prompt} (an empty line goes back): "
        return f"Answer, 1 to {len(self.rows)}: " if len(self.rows) > 1 else "Answer, 1: "

    def say_rows(self, begin: int = 0, end: int | None = None) -> None:
        for number, (label, _) in enumerate(self.rows[begin:end], begin + 1):
            self.writer.quote(f"{number}. {spelled(label, line=True)}")

    def put(self) -> None:
        """Says it."""
        if self.body:
            lines = self.body.split("\n")
            rest = len(lines) - BODY_LINES
            more = [f"… {plural(rest, 'more line')}: m shows them"] if rest > 0 else []
            self.writer.quote("\n".join([*lines[:BODY_LINES], *more]), indent="  ")
        self.say_rows()

    def take(self, line: str) -> Taken:
        """A line was typed."""
        text = line.strip()
        if self._writing:
            self._writing = False
            return self.words(text) if text else "again"
        if not text:
            return "again"
        if text.lower() == "m" and self.body.count("\n") >= BODY_LINES:
            self._all_said = True
            self.writer.quote("\n".join(self.body.split("\n")[BODY_LINES:]), indent="  ")
            return "again"
        at = self._row(text.lower())
        return self.no_row(text) if at is None else self.choose(at)

    def _row(self, text: str) -> int | None:
        if text.isdecimal() and len(text) < 6 and 1 <= int(text) <= len(self.rows):
            return int(text) - 1
        wanted = WORDS.get(text, text)
        return next((at for at, (_, key) in enumerate(self.rows) if key == wanted), None)

    def no_row(self, text: str) -> Taken:
        """Something was typed that names no choice."""
        if text.rstrip(".").isdecimal():
            self.writer.say(f"No choice {text}.")
            return "again"
        return "other"

    def ask_for_words(self) -> Taken:
        self._writing = True
        return "again"

    def choose(self, at: int) -> Taken:
        """A row was chosen."""
        raise NotImplementedError

    def words(self, text: str) -> Taken:
        """Takes what was written instead of choosing."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Answers as somebody who says nothing."""
        raise NotImplementedError


_FORM = (
    AskChoice("y", "Fill in the form", "edit"),
    AskChoice("s", "Send it", "yes", action="accept"),
    AskChoice("a", "Fill it in again", "edit"),
    AskChoice("n", "No", "no", action="decline"),
    AskChoice("c", "Neither: cancel", "no", action="cancel"),
)
_ADDRESS = AskChoice("y", "Yes: open the address yourself, now or later", "yes", action="accept")
_DECLINE = AskChoice("", "Decline to answer", "no")

Edit: TypeAlias = Callable[[str, Callable[[str], None]], None]
"""Lets the user change a plan, and calls back with what became of it."""


class AskLines(PlainQuestion):
    """A question of the agent's as lines. A form is filled in field by field and sent once it was shown whole; a line
    that is no number answers the model in other words, where it asks; a stop is open until it could be answered."""

    def __init__(self, ask: Ask, writer: LineWriter, reply: Callable[[Reply], None], edit: Edit | None = None) -> None:
        self.ask = ask
        self.answering = Answering(ask)
        self._reply, self._edit = reply, edit
        self._filling: int | None = None
        """The field that is being filled in."""
        self._shown = False
        super().__init__(ask.id, writer, [])
        self._set_rows()

    @property
    def _field(self) -> FormField | None:
        return None if self._filling is None else self.ask.fields[self._filling]

    @property
    def prompt(self) -> str:
        if (each := self._field) is not None:
            now = each.shown(self.answering.values.get(each.name))
            empty = f"an empty line keeps {spelled(now, line=True)}" if now else "" if each.required else "may be empty"
            notes = ", ".join(note for note in (each.wants, empty) if note)
            return f"{spelled(each.title, line=True)}{f' ({notes})' if notes else ''}: "
        if self.ask.kind != "choice":
            return super().prompt
        several = ", or several such as 1,3" if self.ask.several else ""
        return f"Answer, 1 to {len(self.rows)}{several}, or in your own words: "

    def _set_rows(self) -> None:
        """The choices as lines: a form has those that fill it in and send it, not its fields."""
        ask, choices = self.ask, self.answering.rows
        if ask.kind == "choice":
            choices = [*(choice for choice in ask.choices if choice.role == "mark"), _DECLINE]
        elif isinstance(ask.asked, ServerAsked):
            fill, send, again, *ends = _FORM
            first = [_ADDRESS] if ask.asked.url else [fill] if ask.fields else [replace(send, key="y")]
            choices = [*([send, again] if self._shown else first), *ends]
        self._choices = choices
        self.rows = [(choice.label, choice.key if choice.role != "mark" else "") for choice in choices]

    def put(self) -> None:
        ask, answering, writer = self.ask, self.answering, self.writer
        self._set_rows()
        self._all_said = False
        body = spelled(answering.body).expandtabs(4).rstrip("\n")
        self.body = "\n".join(change_lines(body)) if ask.body_kind == "diff" and answering.offer is None else body
        match ask.kind:
            case "permission" if answering.offer is None:
                writer.quote(spelled(f"{ask.tool} {ask.subject}", line=True), "Permission needed")
                if ask.why:
                    writer.quote(spelled(ask.why, line=True), "Reason")
                what = {"diff": "The change", "command": "The command"}.get(ask.body_kind, "In full")
                if self.body:
                    writer.say(f"{what}, {plural(lines_in(self.body), 'line')}:")
            case "plan":
                writer.say(f"the model has finished its plan, {plural(self.body.count(chr(10)) + 1, 'line')}:", "Plan")
            case "choice":
                writer.quote(self.body, "Question")
                self.body = ""
            case "stop":
                writer.quote(spelled(": ".join(filter(None, [ask.title, ask.body]))), "Question")
                self.body = ""
            case _:
                writer.quote(spelled(answering.title, line=True), "Question")
        super().put()
        if isinstance(ask.asked, ServerAsked) and ask.asked.url:
            writer.quote(spelled(f"it leads to {ask.asked.about}", line=True), "Note")

    def take(self, line: str) -> Taken:
        if (each := self._field) is None:
            return super().take(line)
        answering, text = self.answering, line.strip()
        if text and not answering.fill(each, text):
            self.writer.say(f"{spelled(answering.problem.partition(': ')[2], line=True)}.", "Note")
        elif each.required and each.name not in answering.values:
            self.writer.say("an answer is required here.", "Note")
        else:
            self._go_to((self._filling or 0) + 1)
        return "again"

    def _go_to(self, at: int) -> None:
        """The next field; after the last one all is shown."""
        fields = self.ask.fields
        self._filling = at if at < len(fields) else None
        if (each := self._field) is not None:
            if each.about:
                self.writer.quote(spelled(each.about, line=True), "Note")
            for number, choice in enumerate(each.choices, 1):
                self.writer.quote(f"{number}. {spelled(choice.label, line=True)}")
            return
        for each in fields:
            shown = each.shown(self.answering.values.get(each.name)) or "empty"
            self.writer.quote(spelled(f"{each.title}: {shown}", line=True), indent="  ")
        self._shown = True
        self._set_rows()
        self.say_rows()

    def choose(self, at: int) -> Taken:
        row = self._choices[at]
        if row is _DECLINE:
            return self._came(row, Reply())
        if row.role == "edit" and self.ask.fields:
            self._go_to(0)
            return "again"
        if row.role == "mark":
            return self._came(row, Reply(row, chosen=(row.value,)))
        return self._came(row, self.answering.choose(row, not self.unsaid))

    def _came(self, row: AskChoice, came: Reply | Step) -> Taken:
        match came:
            case Reply():
                self._reply(came)
                return "again" if self.ask.kind == "stop" else "answered"
            case "words" if row.way is not None and row.way.secret:
                self.answering.writing = None
                self._reply(Reply(row))  # it is read where nobody sees it
            case "words":
                asks = self.ask.words_for
                self.words_prompt = row.way.asks if row.way is not None else f"Say {asks[0].lower()}{asks[1:]}"
                return self.ask_for_words()
            case "edit" if self._edit is not None:
                self._edit(self.answering.plan, self._changed)
            case "step":
                return "step"
            case "unseen":
                self.writer.say(f"you have not seen {self._unseen}, {row.key} again allows.", "Note")
            case _ if self.answering.problem:
                self.writer.say(self.answering.problem, "Note")
        return "again"

    @property
    def _unseen(self) -> str:
        if not self.answering.call_unseen:
            return "the end: m shows it"
        return "the end of the rules (m shows it) and of the call" if self.unsaid else "the end of the call"

    def _changed(self, plan: str) -> None:
        self.answering.edited(plan)
        self.put()

    def no_row(self, text: str) -> Taken:
        ask, numbers = self.ask, text.replace(",", " ").split()
        if ask.kind == "stop":
            at = next((n for n, choice in enumerate(ask.choices, 1) if choice.way and choice.way.secret), None)
            if at is not None and len(text) >= LEAST_KEY and len(text.split()) == 1:
                self.writer.say(f"That may be a key: it was not sent. Type {at} to enter it unseen.")
                return "again"
        if ask.kind != "choice":
            return super().no_row(text)
        if not all(number.isdecimal() and len(number) < 6 for number in numbers):
            return self._came(_DECLINE, Reply(text=text))
        wanted = sorted({int(number) for number in numbers})
        if not ask.several or not 1 <= wanted[0] <= wanted[-1] < len(self._choices):
            self.writer.say(f"No choice {text}.")
            return "again"
        return self._came(_DECLINE, Reply(chosen=tuple(self._choices[number - 1].value for number in wanted)))

    def words(self, text: str) -> Taken:
        row = self.answering.writing or _DECLINE
        return self._came(row, self.answering.say(text))

    def give_up(self) -> None:
        self._reply(Reply(plan=self.answering.plan))


class Pick(PlainQuestion):
    """One of the program's own lists: ``answer`` becomes the number of the row, from 0, or None for none. A long one is
    said in parts; every number can be typed at any time."""

    def __init__(self, writer: LineWriter, title: str, rows: Sequence[str]) -> None:
        super().__init__(new_id("ask"), writer, [(row, "") for row in rows])
        self._title = title
        self._said = 0
        self.answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    @property
    def prompt(self) -> str:
        more = ", m for more" if self._said < len(self.rows) else ""
        return f"Number, 1 to {len(self.rows)}{more}; an empty line cancels: "

    def put(self) -> None:
        self._said = 0
        self.writer.say(self._title)
        self._say_part()

    def _say_part(self) -> None:
        begin, self._said = self._said, min(self._said + PART, len(self.rows))
        self.say_rows(begin, self._said)
        if rest := len(self.rows) - self._said:
            self.writer.say(f"… {plural(rest, 'more row', 'more rows')}: m shows them")

    def take(self, line: str) -> Taken:
        if not line.strip():
            self.give_up()
            return "answered"
        if line.strip().lower() == "m" and self._said < len(self.rows):
            self._say_part()
            return "again"
        return super().take(line)

    def choose(self, at: int) -> Taken:
        self._settle(at)
        return "answered"

    def give_up(self) -> None:
        self._settle(None)

    def _settle(self, at: int | None) -> None:
        if not self.answer.done():
            self.answer.set_result(at)


T = TypeVar("T")

Edits = Callable[[str, str], Awaitable[str | None]]
"""What becomes of a text in the user's editor, in a file of that name; None where it stays as it is."""


@dataclass(eq=False)
class Asking:
    """Puts the agent's questions and hands it the answers."""

    _writer: LineWriter
    _edits: Edits
    _before: Callable[[], None]
    """Called before a question is put."""
    _changed: Callable[[], None]
    """Called when another one is in front."""
    _calls_user: Callable[[], None]
    """Called when the agent asks."""
    _answers: Callable[[AskLines, Reply], None] | None = None
    """Takes the answer to what stopped a turn; without it that is not asked."""
    _open: list[PlainQuestion] = field(default_factory=list)
    _own: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    nobody: bool = False
    """Nobody can answer any more: what is asked is declined at once."""

    @property
    def front(self) -> PlainQuestion | None:
        return self._open[0] if self._open else None

    def ask(self, agent: Agent, asked: Asked) -> None:
        """Puts a question of the agent's."""
        ask = ask_of(asked)
        if ask.kind != "stop":
            self._ask(AskLines(ask, self._writer, partial(deliver_now, agent, ask), self._edit_plan))
        elif self._answers is not None:
            lines = AskLines(ask, self._writer, lambda reply: answers(lines, reply))
            answers = self._answers
            self._ask(lines)

    def _edit_plan(self, text: str, then: Callable[[str], None]) -> None:
        async def run() -> None:
            try:
                changed = await self._edits(text, "plan.md")
            except AgentError as error:
                self._writer.quote(str(error), "Error")
            else:
                then(text if changed is None else changed)
            self._changed()

        task = asyncio.create_task(run(), name="edit plan")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def asks_stops(self) -> bool:
        """Whether what stops a turn is asked about."""
        return self._answers is not None

    def put_back(self, question: PlainQuestion) -> None:
        """Puts a question, or one that was closed to make room for another, again."""
        self._ask(question)

    async def pick(self, title: str, rows: Sequence[str]) -> int | None:
        """The number of the row that the user chooses, from 0; None for none."""
        pick = Pick(self._writer, title, rows)
        return await self._answered(pick, pick.answer)

    async def may_attach(self, path: Path) -> bool:
        """Asks whether a file outside the project may go with a message."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        question = AskLines(attach_ask(path), self._writer, lambda reply: answer.set_result(reply.allows))
        return await self._answered(question, answer)

    async def _answered(self, question: PlainQuestion, answer: asyncio.Future[T]) -> T:
        self._own.add(question.request_id)
        self._ask(question)
        try:
            return await answer
        finally:
            self._own.discard(question.request_id)
            self.closed(question.request_id)

    def _ask(self, question: PlainQuestion) -> None:
        if self.nobody:
            question.put()
            self._decline(question)
            return
        self._open.append(question)
        if len(self._open) == 1:
            self._put(question)
        self._changed()

    def _put(self, question: PlainQuestion) -> None:
        self._before()
        if question.request_id not in self._own:
            self._calls_user()
        question.put()

    def take(self, line: str) -> Taken:
        """A line for the question in front. ``again``: it stays open."""
        question = self._open[0]
        taken = question.take(line)
        if taken == "answered":
            self.closed(question.request_id)
        elif taken == "step":
            self._before()
            question.put()
        return taken

    def closed(self, request_id: str) -> None:
        """The question is settled, here or elsewhere."""
        before = self.front
        self._open = [question for question in self._open if question.request_id != request_id]
        if self.front is not before:
            if self.front is not None:
                self._put(self.front)
            self._changed()

    def drop_own(self) -> bool:
        """Gives up the program's own question in front; False where it is not its own, or there is none."""
        question = self.front
        if question is None or question.request_id not in self._own:
            return False
        question.give_up()
        self.closed(question.request_id)
        return True

    def give_up(self) -> None:
        """Nobody can answer any more."""
        self.nobody = True
        while self._open:
            question = self._open[0]
            self._decline(question)
            self.closed(question.request_id)

    def _decline(self, question: PlainQuestion) -> None:
        self._writer.say("Declined: nobody can answer any more.")
        question.give_up()
