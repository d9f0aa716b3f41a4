"""Questions as numbered choices, the agent's and the program's own; one at a time is put, the oldest first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from agent_tui.commands.questions import (
    PLAN_CHOICES,
    PermissionChoice,
    PermissionDialog,
    question_text,
)
from agent_tui.commands.tool_words import change_lines
from agent_tui.errors import AgentError
from agent_tui.models.events import PermissionAsked, PlanPresented, QuestionAsked, StopAsked, Way
from agent_tui.models.messages import new_id
from agent_tui.records import dataclass
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import lines_in, plural

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.events import ApprovedMode, RuleOffer
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
            if text:
                self.words(text)
            return "answered" if text else "again"
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

    def words(self, text: str) -> None:
        """Takes what was written instead of choosing."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Answers as somebody who says nothing."""
        raise NotImplementedError


class PermissionQuestion(PlainQuestion):
    """May this call be made? What was not said to its end is allowed by the second of two equal answers."""

    words_prompt = "Say what to do instead"

    def __init__(
        self, asked: PermissionAsked, writer: LineWriter, answer: Callable[[bool, RuleOffer | None, str], None]
    ) -> None:
        self._dialog = PermissionDialog(asked)
        self._display = asked.display or {}
        body = spelled(str(self._display.get("text") or "")).expandtabs(4).rstrip("\n")
        if self._display.get("kind") == "diff":
            body = "\n".join(change_lines(body))
        super().__init__(asked.request_id, writer, _rows(self._dialog.choices), body)
        self._asked = asked
        self._call = body
        self._answer = answer

    def put(self) -> None:
        asked = self._asked
        self.rows, self._all_said = _rows(self._dialog.choices), False
        self.body = self._dialog.text if self._dialog.offer is not None else self._call
        if self._dialog.offer is not None:
            self.writer.quote(self._dialog.title, "Question")
            super().put()
            return
        subject = asked.summary.removeprefix(f"{asked.tool} ")
        self.writer.quote(spelled(f"{asked.tool} {subject}", line=True), "Permission needed")
        if asked.reason:
            self.writer.quote(spelled(asked.reason, line=True), "Reason")
        what = {"diff": "The change", "command": "The command"}.get(str(self._display.get("kind")), "In full")
        if self.body:
            self.writer.say(f"{what}, {plural(lines_in(self.body), 'line')}:")
        super().put()

    def choose(self, at: int) -> Taken:
        choice = self._dialog.choices[at]
        if choice.feedback:
            return self.ask_for_words()
        if answer := self._dialog.choose(choice, not self.unsaid):
            self._answer(answer.allow, answer.offer, "")
            return "answered"
        if not self._dialog.warned(choice):
            return "step"
        if not self._dialog.call_unseen:
            unseen = "the end: m shows it"
        else:
            unseen = "the end of the rules (m shows it) and of the call" if self.unsaid else "the end of the call"
        self.writer.say(f"you have not seen {unseen}, {choice.key} again allows.", "Note")
        return "again"

    def words(self, text: str) -> None:
        self._answer(False, None, text)

    def give_up(self) -> None:
        self._answer(False, None, "")


def _rows(choices: Sequence[PermissionChoice]) -> list[tuple[str, str]]:
    return [(choice.label, choice.key) for choice in choices]


class PlanQuestion(PlainQuestion):
    """Is the plan to be carried out? ``edit`` lets the user change it and calls back with what became of it."""

    words_prompt = "Say what to plan instead"

    def __init__(
        self,
        asked: PlanPresented,
        writer: LineWriter,
        answer: Callable[[ApprovedMode | None, str, str], None],
        edit: Callable[[str, Callable[[str], None]], None],
    ) -> None:
        super().__init__(asked.request_id, writer, [(c.label, c.key) for c in PLAN_CHOICES])
        self._plan = asked.plan
        self._answer = answer
        self._edit = edit

    def put(self) -> None:
        self.body = spelled(self._plan).rstrip("\n")
        count = self.body.count("\n") + 1
        self.writer.say(f"the model has finished its plan, {plural(count, 'line')}:", "Plan")
        super().put()

    def choose(self, at: int) -> Taken:
        choice = PLAN_CHOICES[at]
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


class AskQuestion(PlainQuestion):
    """A question that the model asks. A line that is no number is an answer in other words."""

    DECLINE = "Decline to answer"

    def __init__(self, asked: QuestionAsked, writer: LineWriter, answer: Callable[[Sequence[str], str], None]) -> None:
        super().__init__(asked.request_id, writer, [(label, "") for label in (*asked.choices, self.DECLINE)])
        self._asked = asked
        self._answer = answer

    @property
    def prompt(self) -> str:
        several = ", or several such as 1,3" if self._asked.several else ""
        return f"Answer, 1 to {len(self.rows)}{several}, or in your own words: "

    def put(self) -> None:
        self.writer.quote(spelled(question_text(self._asked)), "Question")
        self.say_rows()

    def choose(self, at: int) -> Taken:
        self._answer(self._asked.choices[at : at + 1], "")
        return "answered"

    def no_row(self, text: str) -> Taken:
        numbers = text.replace(",", " ").split()
        if not all(number.isdecimal() and len(number) < 6 for number in numbers):
            self._answer((), text)
            return "answered"
        wanted = sorted({int(number) for number in numbers})
        if not self._asked.several or not 1 <= wanted[0] <= wanted[-1] <= len(self._asked.choices):
            self.writer.say(f"No choice {text}.")
            return "again"
        self._answer(tuple(self._asked.choices[number - 1] for number in wanted), "")
        return "answered"

    def give_up(self) -> None:
        self._answer((), "")


class StopQuestion(PlainQuestion):
    """What is to be done about what stopped the turn? ``answer`` takes the way, None for none, and what was written for
    it; the question is open until that could be done."""

    def __init__(
        self, asked: StopAsked, writer: LineWriter, answer: Callable[[StopQuestion, Way | None, str], None]
    ) -> None:
        super().__init__(asked.request_id, writer, [(way.label, way.key) for way in asked.ways])
        self._asked = asked
        self._answer = answer
        self._way = asked.ways[0]

    def put(self) -> None:
        self.writer.quote(spelled(self._asked.question), "Question")
        self.say_rows()

    def choose(self, at: int) -> Taken:
        self._way = self._asked.ways[at]
        if self._way.feedback and not self._way.secret:
            self.words_prompt = self._way.asks
            return self.ask_for_words()
        self._answer(self, self._way, "")
        return "again"

    def take(self, line: str) -> Taken:
        taken = super().take(line)
        return "again" if taken == "answered" else taken

    def no_row(self, text: str) -> Taken:
        at = next((n for n, way in enumerate(self._asked.ways, 1) if way.secret), None)
        if at is None or len(text) < LEAST_KEY or len(text.split()) > 1:
            return super().no_row(text)
        self.writer.say(f"That may be a key: it was not sent. Type {at} to enter it unseen.")
        return "again"

    def words(self, text: str) -> None:
        self._answer(self, self._way, text)

    def give_up(self) -> None:
        self._answer(self, None, "")


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
    _answers: Callable[[StopQuestion, Way | None, str], None] | None = None
    """Takes the answer to what stopped a turn; without it that is not asked."""
    _open: list[PlainQuestion] = field(default_factory=list)
    _own: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    nobody: bool = False
    """Nobody can answer any more: what is asked is declined at once."""

    @property
    def front(self) -> PlainQuestion | None:
        return self._open[0] if self._open else None

    def permission(self, agent: Agent, asked: PermissionAsked) -> None:
        self._ask(PermissionQuestion(asked, self._writer, partial(agent.permissions.answer, asked.request_id)))

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

        self._ask(PlanQuestion(asked, self._writer, partial(agent.questions.answer_plan, asked.request_id), edit))

    def question(self, agent: Agent, asked: QuestionAsked) -> None:
        self._ask(AskQuestion(asked, self._writer, partial(agent.questions.answer_question, asked.request_id)))

    @property
    def asks_stops(self) -> bool:
        """Whether what stops a turn is asked about."""
        return self._answers is not None

    def stop(self, asked: StopAsked) -> None:
        if self._answers is not None:
            self.put_back(StopQuestion(asked, self._writer, self._answers))

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
        reason = "it is outside the project, and attachments are sent to the model"
        whole = {"kind": "text", "text": spelled(str(path), line=True)}
        asked = PermissionAsked(new_id("ask"), "", "attaching", path.name, whole, reason=reason)
        question = PermissionQuestion(asked, self._writer, lambda allow, _, __: answer.set_result(allow))
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
