"""Questions as numbered choices, the agent's and the program's own; one at a time is put, the oldest first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from agent_tui.commands.questions import PLAN_CHOICES, PermissionChoice, PlanChoice, permission_choices, question_text
from agent_tui.errors import AgentError
from agent_tui.models.events import PermissionAsked, PlanPresented, QuestionAsked
from agent_tui.models.messages import new_id
from agent_tui.records import dataclass
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.events import ApprovedMode
    from agent_tui.plain.line_writer import LineWriter


Taken: TypeAlias = Literal["answered", "again", "other"]
"""What a line was to a question: its answer, something that leaves it open, or nothing that concerns it."""

BODY_LINES = 120
"""Lines of a diff or a plan that are told at once; the rest on demand."""
PART = 20
"""Rows of a long list that are told at once."""
WORDS = {"yes": "y", "no": "n"}


class Question:
    """One open question. ``give_up`` is called where nobody can answer it any more."""

    def __init__(self, request_id: str, writer: LineWriter) -> None:
        self.request_id = request_id
        self.writer = writer

    prompt = ""

    def put(self) -> None:
        """Says it."""
        raise NotImplementedError

    def take(self, line: str) -> Taken:
        """A line was typed."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Answers as somebody who says nothing."""
        raise NotImplementedError


@dataclass(slots=True, frozen=True)
class NumberedRow:
    """A numbered choice; ``key`` answers as well."""

    label: str
    key: str = ""


class Numbered(Question):
    """Choices by number, by key, or yes and no; one of them may ask for words first."""

    def __init__(
        self, request_id: str, writer: LineWriter, rows: Sequence[NumberedRow], words_prompt: str = ""
    ) -> None:
        super().__init__(request_id, writer)
        self.rows = rows
        self._words_prompt = words_prompt
        self._writing = False
        self._all_said = False

    @property
    def _long(self) -> bool:
        """True when the text above the choices is said in two parts."""
        return self.body().count("\n") >= BODY_LINES

    @property
    def unsaid(self) -> bool:
        """True when the second of them was not said."""
        return self._long and not self._all_said

    @property
    def prompt(self) -> str:  # type: ignore[override]
        if self._writing:
            return f"{self._words_prompt}, an empty line goes back: "
        return f"Answer, 1 to {len(self.rows)}: " if len(self.rows) > 1 else "Answer, 1: "

    def body(self) -> str:
        """The text above the choices."""
        return ""

    def say_rows(self, begin: int = 0, end: int | None = None) -> None:
        for number, row in enumerate(self.rows[begin:end], begin + 1):
            self.writer.quote(f"{number}. {spelled(row.label, line=True)}")

    def put(self) -> None:
        self.writer.quote(_beginning(self.body()), indent="  ") if self.body() else None
        self.say_rows()

    def take(self, line: str) -> Taken:
        text = line.strip()
        if self._writing:
            self._writing = False
            if text:
                self.words(text)
            return "answered" if text else "again"
        if not text:
            return "again"
        if text.lower() == "m" and self._long:
            self._all_said = True
            self.writer.quote("\n".join(self.body().split("\n")[BODY_LINES:]), indent="  ")
            return "again"
        at = self._row(text.lower())
        if at is None:
            return self.no_row(text)
        return self.choose(at)

    def _row(self, text: str) -> int | None:
        if text.isdecimal() and len(text) < 6 and 1 <= int(text) <= len(self.rows):
            return int(text) - 1
        key = WORDS.get(text, text)
        return next((at for at, row in enumerate(self.rows) if row.key and row.key == key), None)

    def no_row(self, text: str) -> Taken:
        """Something was typed that names no choice."""
        if text.rstrip(".").isdecimal():
            self.writer.say(f"There is no choice {text}.")
            return "again"
        return "other"

    def ask_for_words(self) -> Taken:
        self._writing = True
        return "again"

    def choose(self, at: int) -> Taken:
        """A row was chosen."""
        raise NotImplementedError

    def words(self, text: str) -> None:
        """Takes what was written instead of choosing."""
        raise NotImplementedError


def _beginning(body: str) -> str:
    lines = body.split("\n")
    if len(lines) <= BODY_LINES:
        return body
    more = plural(len(lines) - BODY_LINES, "more line", "more lines")
    return "\n".join([*lines[:BODY_LINES], f"… {more}: m says them"])


class PermissionQuestion(Numbered):
    """May this call be made? What was not said to its end is allowed by the second of two equal answers."""

    def __init__(
        self, asked: PermissionAsked, writer: LineWriter, answer: Callable[[bool, str | None, str], None]
    ) -> None:
        self._choices: list[PermissionChoice] = permission_choices(asked)
        super().__init__(
            asked.request_id, writer, [NumberedRow(c.label, c.key) for c in self._choices], "Say what to do instead"
        )
        self._asked = asked
        self._answer = answer
        self._warned: int | None = None

    def body(self) -> str:
        display = self._asked.display or {}
        return spelled(str(display.get("text") or "")).expandtabs(4).rstrip("\n")

    def put(self) -> None:
        asked = self._asked
        subject = asked.summary.removeprefix(f"{asked.tool} ")
        self.writer.quote(spelled(f"{asked.tool} {subject}", line=True), "Permission needed")
        if asked.reason:
            self.writer.quote(spelled(asked.reason, line=True), "Reason")
        what = {"diff": "The change", "command": "The command"}.get(str((asked.display or {}).get("kind")), "The whole")
        if self.body():
            self.writer.say(f"{what}, {plural(self.body().count(chr(10)) + 1, 'line')}:")
        super().put()

    def choose(self, at: int) -> Taken:
        choice = self._choices[at]
        if choice.feedback:
            return self.ask_for_words()
        if choice.allow and self.unsaid and at != self._warned:
            self._warned = at
            self.writer.say(f"its end was not said: m says it, {choice.key or at + 1} again allows.", "Note")
            return "again"
        self._answer(choice.allow, choice.pattern, "")
        return "answered"

    def words(self, text: str) -> None:
        self._answer(False, None, text)

    def give_up(self) -> None:
        self._answer(False, None, "")


class PlanQuestion(Numbered):
    """Is the plan to be carried out? ``edit`` lets the user change it and calls back with what became of it."""

    def __init__(
        self,
        asked: PlanPresented,
        writer: LineWriter,
        answer: Callable[[ApprovedMode | None, str, str], None],
        edit: Callable[[str, Callable[[str], None]], None],
    ) -> None:
        self._choices: Sequence[PlanChoice] = PLAN_CHOICES
        super().__init__(
            asked.request_id, writer, [NumberedRow(c.label, c.key) for c in PLAN_CHOICES], "Say what to plan instead"
        )
        self._plan = asked.plan
        self._answer = answer
        self._edit = edit

    def body(self) -> str:
        return spelled(self._plan).rstrip("\n")

    def put(self) -> None:
        self.writer.say(f"the model has finished its plan, {plural(self.body().count(chr(10)) + 1, 'line')}:", "Plan")
        super().put()

    def choose(self, at: int) -> Taken:
        choice = self._choices[at]
        if choice.feedback:
            return self.ask_for_words()
        if choice.edit:
            self._edit(self._plan, self._changed)
            return "again"
        self._answer(choice.mode, self._plan, "")
        return "answered"

    def _changed(self, plan: str) -> None:
        if plan.strip():
            self._plan = plan
        self.put()

    def words(self, text: str) -> None:
        self._answer(None, self._plan, text)

    def give_up(self) -> None:
        self._answer(None, self._plan, "")


class AskQuestion(Numbered):
    """A question that the model asks. A line that is no number is an answer in other words."""

    DECLINE = "Decline to answer"

    def __init__(self, asked: QuestionAsked, writer: LineWriter, answer: Callable[[Sequence[str], str], None]) -> None:
        super().__init__(
            asked.request_id, writer, [*(NumberedRow(c) for c in asked.choices), NumberedRow(self.DECLINE)]
        )
        self._asked = asked
        self._answer = answer

    @property
    def prompt(self) -> str:  # type: ignore[override]
        several = ", or several such as 1,3" if self._asked.several else ""
        return f"Answer, 1 to {len(self.rows)}{several}, or in your own words: "

    def put(self) -> None:
        self.writer.quote(spelled(question_text(self._asked)), "Question")
        self.say_rows()

    def choose(self, at: int) -> Taken:
        chosen = self._asked.choices[at : at + 1]
        self._answer(chosen, "")
        return "answered"

    def no_row(self, text: str) -> Taken:
        numbers = text.replace(",", " ").split()
        if not all(number.isdecimal() and len(number) < 6 for number in numbers):
            self._answer((), text)
            return "answered"
        wanted = sorted({int(number) for number in numbers})
        if not self._asked.several or not 1 <= wanted[0] <= wanted[-1] <= len(self._asked.choices):
            self.writer.say(f"There is no choice {text}.")
            return "again"
        self._answer(tuple(self._asked.choices[number - 1] for number in wanted), "")
        return "answered"

    def give_up(self) -> None:
        self._answer((), "")


class Pick(Numbered):
    """One of the program's own lists: ``answer`` becomes the number of the row, from 0, or None for none. A long one is
    said in parts; every number can be typed at any time."""

    def __init__(self, request_id: str, writer: LineWriter, title: str, rows: Sequence[NumberedRow]) -> None:
        super().__init__(request_id, writer, rows)
        self._title = title
        self._said = 0
        self.answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    @property
    def prompt(self) -> str:  # type: ignore[override]
        more = ", m says more" if self._said < len(self.rows) else ""
        return f"Number, 1 to {len(self.rows)}{more}; an empty line leaves it: "

    def put(self) -> None:
        self._said = 0
        self.writer.say(self._title)
        self._say_part()

    def _say_part(self) -> None:
        begin, self._said = self._said, min(self._said + PART, len(self.rows))
        self.say_rows(begin, self._said)
        if rest := len(self.rows) - self._said:
            self.writer.say(f"… {plural(rest, 'more row', 'more rows')}: m says them")

    def take(self, line: str) -> Taken:
        if not line.strip():
            self.give_up()
            return "answered"
        if line.strip().lower() == "m" and self._said < len(self.rows):
            self._say_part()
            return "again"
        return super().take(line)

    def choose(self, at: int) -> Taken:
        if not self.answer.done():
            self.answer.set_result(at)
        return "answered"

    def give_up(self) -> None:
        if not self.answer.done():
            self.answer.set_result(None)


T = TypeVar("T")

Edits = Callable[[str, str], Awaitable[str | None]]
"""What becomes of a text in the user's editor, in a file of that name; None where it stays as it is."""


class Asking:
    """Puts the agent's questions and hands it the answers. ``before`` is called before one is put, ``changed`` when
    another one is in front, ``calls_user`` when the agent asks."""

    def __init__(
        self,
        writer: LineWriter,
        edits: Edits,
        before: Callable[[], None],
        changed: Callable[[], None],
        calls_user: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._edits = edits
        self._before = before
        self._changed = changed
        self._calls_user = calls_user
        self._open: list[Question] = []
        self._own: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.nobody = False
        """Nobody can answer any more: what is asked is declined at once."""

    @property
    def front(self) -> Question | None:
        return self._open[0] if self._open else None

    def permission(self, agent: Agent, asked: PermissionAsked) -> None:
        def answer(allow: bool, pattern: str | None, feedback: str) -> None:
            agent.permissions.answer(asked.request_id, allow, pattern, feedback)

        self._ask(PermissionQuestion(asked, self._writer, answer))

    def plan(self, agent: Agent, asked: PlanPresented) -> None:
        def edit(text: str, then: Callable[[str], None]) -> None:
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

        self._ask(
            PlanQuestion(
                asked,
                self._writer,
                lambda mode, plan, feedback: agent.questions.answer_plan(asked.request_id, mode, plan, feedback),
                edit,
            )
        )

    def question(self, agent: Agent, asked: QuestionAsked) -> None:
        self._ask(
            AskQuestion(
                asked,
                self._writer,
                lambda chosen, text: agent.questions.answer_question(asked.request_id, chosen, text),
            )
        )

    async def pick(self, title: str, rows: Sequence[str]) -> int | None:
        """The number of the row that the user chooses, from 0; None for none."""
        pick = Pick(new_id("ask"), self._writer, title, [NumberedRow(row) for row in rows])
        return await self._answered(pick, pick.answer)

    async def may_attach(self, path: Path) -> bool:
        """Asks whether a file outside the project may go with a message."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        reason = "it is outside the project, and what is attached goes to the model"
        whole = {"kind": "text", "text": spelled(str(path), line=True)}
        asked = PermissionAsked(new_id("ask"), "", "attaching", path.name, whole, [], reason)
        question = PermissionQuestion(asked, self._writer, lambda allow, _, __: answer.set_result(allow))
        return await self._answered(question, answer)

    async def _answered(self, question: Question, answer: asyncio.Future[T]) -> T:
        self._own.add(question.request_id)
        self._ask(question)
        try:
            return await answer
        finally:
            self._own.discard(question.request_id)
            self.closed(question.request_id)

    def _ask(self, question: Question) -> None:
        if self.nobody:
            question.put()
            self._writer.say("Nobody can answer any more: declined.")
            question.give_up()
            return
        self._open.append(question)
        if len(self._open) == 1:
            self._put(question)
        self._changed()

    def _put(self, question: Question) -> None:
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
        return taken

    def closed(self, request_id: str) -> None:
        """The question is settled, here or elsewhere."""
        before = self.front
        self._open = [question for question in self._open if question.request_id != request_id]
        if self.front is not before:
            if self.front is not None:
                self._put(self.front)
            self._changed()

    def turn_over(self) -> None:
        """The turn can ask nothing any more; what the program itself asks goes on."""
        for question in [q for q in self._open if q.request_id not in self._own]:
            self.closed(question.request_id)

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
            self._writer.say("Nobody can answer any more: declined.")
            question.give_up()
            self.closed(question.request_id)
