"""What tools ask the user, and the user's answers: a plan to approve, a question with choices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from agent_tui.errors import AgentError, ToolError
from agent_tui.models.events import (
    APPROVED_MODES,
    ApprovedMode,
    Event,
    Notice,
    PlanAnswer,
    PlanPresented,
    QuestionAnswer,
    QuestionAsked,
    QuestionClosed,
)
from agent_tui.models.messages import PLAN_TOOL, new_id
from agent_tui.tools.builtin.conversation import NOBODY
from agent_tui.tools.permissions.permissions import Permissions

A = TypeVar("A", PlanAnswer, QuestionAnswer)

NOT_IN_PLAN_MODE = f"{PLAN_TOOL} works in plan mode only, and the mode is {{mode}}: do the work."

ANSWERED = "It was answered already, or waits no more: nothing was done."


class QuestionDesk:
    """Questions go out as events, and wait. An approved plan changes the permission mode, by ``change_mode``."""

    def __init__(
        self,
        permissions: Permissions,
        publish: Callable[[Event], None],
        change_mode: Callable[[ApprovedMode], None],
    ) -> None:
        self._permissions = permissions
        self._publish = publish
        self._change_mode = change_mode
        self._plans: dict[str, asyncio.Future[PlanAnswer]] = {}
        self._questions: dict[str, tuple[QuestionAsked, asyncio.Future[QuestionAnswer]]] = {}

    async def approve(self, plan: str) -> PlanAnswer | None:
        """What the user says to a plan; None when nobody is there. Raises ToolError outside plan mode."""
        mode = self._permissions.mode
        if mode != "plan":
            raise ToolError(NOT_IN_PLAN_MODE.format(mode=mode))
        if not self._permissions.can_ask:
            self._publish(PlanPresented("", plan))
            return None
        request_id = new_id("plan")
        future: asyncio.Future[PlanAnswer] = asyncio.get_running_loop().create_future()
        self._plans[request_id] = future
        self._publish(PlanPresented(request_id, plan))
        try:
            answer = await future
        finally:
            del self._plans[request_id]
            self._publish(QuestionClosed(request_id))
        if answer.mode is not None:
            self._change_mode(answer.mode)
        return answer

    async def choose(self, question: str, choices: tuple[str, ...], several: bool) -> QuestionAnswer:
        """What the user answers. Raises ToolError when nobody is there."""
        if not self._permissions.can_ask:
            raise ToolError(NOBODY)
        asked = QuestionAsked(new_id("ask"), question, choices, several)
        future: asyncio.Future[QuestionAnswer] = asyncio.get_running_loop().create_future()
        self._questions[asked.request_id] = (asked, future)
        self._publish(asked)
        try:
            return await future
        finally:
            del self._questions[asked.request_id]
            self._publish(QuestionClosed(asked.request_id))

    def answer_plan(self, request_id: str, mode: ApprovedMode | None, plan: str, feedback: str = "") -> None:
        """The user's word on a plan: approved with the mode to carry it out in, or (None) declined. One that waits no
        more is left as it is, and the user told so. Raises AgentError for a mode that no plan is carried out in, and
        for a plan without a word."""
        if mode is not None and mode not in APPROVED_MODES:
            raise AgentError(f"A plan is approved with one of {', '.join(APPROVED_MODES)}, not {mode!r}.")
        if mode is not None and not plan.strip():
            raise AgentError("The plan is empty: there is nothing to approve.")
        self._settle(self._plans.get(request_id), PlanAnswer(mode, plan, feedback))

    def answer_question(self, request_id: str, chosen: Sequence[str] = (), text: str = "") -> None:
        """The user's word on a question: what they chose, what they wrote, or neither (declined). One that waits no
        more is left as it is, and the user told so. Raises AgentError for what is not among the choices."""
        asked, future = self._questions.get(request_id, (None, None))
        if asked is not None:
            strange = [choice for choice in chosen if choice not in asked.choices]
            if strange or (len(chosen) > 1 and not asked.several):
                raise AgentError("That is not among the choices." if strange else "Only one may be chosen.")
        self._settle(future, QuestionAnswer(tuple(chosen), text))

    def _settle(self, future: asyncio.Future[A] | None, answer: A) -> None:
        if future is None or future.done():
            self._publish(Notice("info", ANSWERED, "answered"))
        else:
            future.set_result(answer)
