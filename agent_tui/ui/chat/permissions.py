"""Questions on the screen, for permission and others: one at a time, oldest first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_tui.ui.keys import TypingGuard

if TYPE_CHECKING:
    from pathlib import Path

    from agent_tui.models.events import PermissionAsked, PlanPresented, QuestionAsked
    from agent_tui.models.questions import ApprovedMode
    from agent_tui.ui.chat.needs import AsksToAttach, CallsUser, ForgetsQuestions, HasAsker, ShowsQuestions, TakesPaste
    from agent_tui.ui.chat.stage import Stage
    from agent_tui.ui.widgets.question import QuestionPanel

    Asked = PermissionAsked | PlanPresented | QuestionAsked


class Permissions:
    """Shows the panel for the oldest open question and hands the answer to the agent."""

    def __init__(
        self, seat: HasAsker, stage: Stage, caller: CallsUser, pasting: TakesPaste, clock: Callable[[], float]
    ) -> None:
        self._seat = seat
        self._stage = stage
        self._caller = caller
        self._pasting = pasting
        self.open: list[Asked] = []
        self.panel: QuestionPanel | None = None
        self.guard = TypingGuard(clock)
        self._own: dict[str, asyncio.Future[bool]] = {}

    def ask(self, asked: PermissionAsked) -> None:
        self._open(asked, f"Permission needed: {asked.summary}")

    def ask_plan(self, asked: PlanPresented) -> None:
        self._open(asked, "A plan is ready")

    def ask_question(self, asked: QuestionAsked) -> None:
        self._open(asked, f"A question: {asked.question}")

    @property
    def plan_waits(self) -> bool:
        """Whether a plan is open: what it is answered with sets the permission mode."""
        from agent_tui.models.events import PlanPresented

        return self.panel is not None and isinstance(self.panel.asked, PlanPresented)

    def _open(self, asked: Asked, call: str) -> None:
        self.open.append(asked)
        self._caller.call_user(call)
        self._show()

    def answer(self, asked: PermissionAsked, allow: bool, pattern: str | None, feedback: str) -> None:
        self.answered(asked.request_id)
        own = self._own.get(asked.request_id)
        if own is not None:
            own.set_result(allow)
        elif self._seat.agent is not None:
            self._seat.agent.permissions.answer(asked.request_id, allow, pattern, feedback)

    def answer_plan(self, asked: PlanPresented, mode: ApprovedMode | None, plan: str, feedback: str) -> None:
        self.answered(asked.request_id)
        if self._seat.agent is not None:
            self._seat.agent.questions.answer_plan(asked.request_id, mode, plan, feedback)

    def answer_question(self, asked: QuestionAsked, chosen: tuple[str, ...], text: str) -> None:
        self.answered(asked.request_id)
        if self._seat.agent is not None:
            self._seat.agent.questions.answer_question(asked.request_id, chosen, text)

    def answered(self, request_id: str) -> None:
        """The question is settled, here or elsewhere."""
        from agent_tui.models.events import PermissionAsked

        for asked in [a for a in self.open if a.request_id == request_id]:
            self.open.remove(asked)
            if isinstance(asked, PermissionAsked):
                self._stage.transcript.tool_waiting(asked.call_id, False)
        if self.panel is not None and self.panel.asked.request_id == request_id:
            self._close()
        self._show()
        if self.panel is None:
            self._stage.answered()

    def clear(self) -> None:
        """The turn is over; it can ask nothing any more. What the screen itself asks goes on."""
        self.open = [asked for asked in self.open if asked.request_id in self._own]
        if self.panel is not None and self.panel.asked not in self.open:
            self._close()
        self._show()

    async def may_attach(self, path: Path) -> bool:
        """Asks whether a file outside the project may go with a message."""
        from agent_tui.models.events import PermissionAsked
        from agent_tui.models.messages import new_id
        from agent_tui.text.clean import spelled

        request_id = new_id("ask")
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._own[request_id] = answer
        reason = "it is outside the project, and what is attached goes to the model"
        whole = {"kind": "text", "text": spelled(str(path), line=True)}
        self.ask(PermissionAsked(request_id, "", "attaching", path.name, whole, [], reason))
        try:
            return await answer
        finally:
            del self._own[request_id]
            self.answered(request_id)

    def _close(self) -> None:
        panel, self.panel = self.panel, None
        if panel is not None:
            had_focus = panel.has_focus or panel.has_focus_within
            panel.remove()
            self._stage.question_closed()
            if had_focus:
                self._stage.prompt.focus()

    def _show(self) -> None:
        if self.panel is not None or not self.open:
            return
        self.panel, phase, hint = self._panel(self.open[0])
        self._stage.show_question(self.panel)
        self._stage.phase(phase, waits=True)
        if self._stage.prompt.is_empty and not self.guard.typing:
            self.panel.focus()
        else:
            self._stage.hint(hint)

    def _panel(self, asked: Asked) -> tuple[QuestionPanel, str, str]:
        """The panel for a question, what goes on meanwhile, and how one gets there from the midst of typing."""
        from agent_tui.models.events import PlanPresented, QuestionAsked

        if isinstance(asked, PlanPresented):
            from agent_tui.ui.widgets.panels import PlanPanel

            plan = PlanPanel(asked, self.guard, self._typed)
            return plan, "Waiting for your word on the plan", "A plan is ready: Tab goes there"
        if isinstance(asked, QuestionAsked):
            from agent_tui.ui.widgets.panels import AskPanel

            return AskPanel(asked, self.guard, self._typed), "Waiting for your answer", "A question: Tab goes there"
        from agent_tui.ui.widgets.panels import PermissionPanel

        panel = PermissionPanel(asked, self.guard, self._typed)
        return panel, "Waiting for your permission", "A permission is asked: Tab goes there, y / a / n answer"

    def prompt_changed(self) -> None:
        """Something was typed: hints go."""
        # Emptied is not typed: a hint about what was just sent or cleared stays.
        # Nor does one that says where the question is, as long as it is open.
        stage = self._stage
        if stage.activity.hint_text and not stage.prompt.is_empty and self.panel is None:
            stage.hint("")

    def go_there(self) -> bool:
        """Tab in the prompt; False when nothing is asked. In the midst of typing it does not make the next key an
        answer."""
        if self.panel is None:
            return False
        self.guard.accidental()
        self.panel.focus()
        return True

    def _typed(self, text: str, *, paste: bool = False) -> None:
        """Something typed or pasted at a question that is no answer to it: nothing of it is lost."""
        if paste:
            self._pasting.pasted(text)
        elif text:
            self._stage.prompt.insert_text(text)
            self._stage.prompt.focus()
        if self.panel is not None:
            self._stage.hint("Too soon to be an answer" + (": it is in the prompt · Tab goes there" if text else ""))


_ATTACH: type[AsksToAttach] = Permissions
_FORGETS: type[ForgetsQuestions] = Permissions
_SHOWS: type[ShowsQuestions] = Permissions
