"""The questions that are open: one at a time is put, the oldest first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent_tui.errors import AgentError
from agent_tui.models.events import PermissionAsked, PlanPresented, QuestionAsked
from agent_tui.models.messages import new_id
from agent_tui.plain.questions import (
    AskQuestion,
    PermissionQuestion,
    Pick,
    PlanQuestion,
    Question,
    Row,
    Taken,
)
from agent_tui.text.clean import spelled

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.plain.voice import Voice

T = TypeVar("T")

Edits = Callable[[str, str], Awaitable[str | None]]
"""What becomes of a text in the user's editor, in a file of that name; None where it stays as it is."""


class Asking:
    """Puts the agent's questions and hands it the answers. ``before`` is called before one is put, ``changed`` when
    another one is in front, ``calls_user`` when the agent asks."""

    def __init__(
        self,
        voice: Voice,
        edits: Edits,
        before: Callable[[], None],
        changed: Callable[[], None],
        calls_user: Callable[[], None],
    ) -> None:
        self._voice = voice
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

        self._ask(PermissionQuestion(asked, self._voice, answer))

    def plan(self, agent: Agent, asked: PlanPresented) -> None:
        def edit(text: str, then: Callable[[str], None]) -> None:
            async def run() -> None:
                try:
                    changed = await self._edits(text, "plan.md")
                except AgentError as error:
                    self._voice.quote(str(error), "Error")
                else:
                    then(text if changed is None else changed)
                self._changed()

            task = asyncio.create_task(run(), name="edit plan")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._ask(
            PlanQuestion(
                asked,
                self._voice,
                lambda mode, plan, feedback: agent.questions.answer_plan(asked.request_id, mode, plan, feedback),
                edit,
            )
        )

    def question(self, agent: Agent, asked: QuestionAsked) -> None:
        self._ask(
            AskQuestion(
                asked, self._voice, lambda chosen, text: agent.questions.answer_question(asked.request_id, chosen, text)
            )
        )

    async def pick(self, title: str, rows: Sequence[str]) -> int | None:
        """The number of the row that the user chooses, from 0; None for none."""
        pick = Pick(new_id("ask"), self._voice, title, [Row(row) for row in rows])
        return await self._answered(pick, pick.answer)

    async def may_attach(self, path: Path) -> bool:
        """Asks whether a file outside the project may go with a message."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        reason = "it is outside the project, and what is attached goes to the model"
        whole = {"kind": "text", "text": spelled(str(path), line=True)}
        asked = PermissionAsked(new_id("ask"), "", "attaching", path.name, whole, [], reason)
        question = PermissionQuestion(asked, self._voice, lambda allow, _, __: answer.set_result(allow))
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
            self._voice.say("Nobody can answer any more: declined.")
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
            self._voice.say("Nobody can answer any more: declined.")
            question.give_up()
            self.closed(question.request_id)
