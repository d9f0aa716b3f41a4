"""Questions on the screen, for permission and others: one at a time, oldest first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, assert_never

from agent_tui.ui.chat.view import ChatPart
from agent_tui.ui.keys import TypingGuard

if TYPE_CHECKING:
    from pathlib import Path

    from agent_tui.commands.questions import PermissionAnswer
    from agent_tui.models.events import (
        ApprovedMode,
        PermissionAsked,
        PlanPresented,
        QuestionAsked,
        ServerAction,
        ServerAsked,
        StopAsked,
        Way,
    )
    from agent_tui.models.messages import Metadata
    from agent_tui.ui.chat.composing import ExternalEditor, Pasting
    from agent_tui.ui.chat.view import MainView
    from agent_tui.ui.widgets.question import QuestionPanel

    Asked = PermissionAsked | PlanPresented | QuestionAsked | ServerAsked | StopAsked


class Questions(ChatPart):
    """Shows the panel for the oldest open question and hands the answer to the agent."""

    def __init__(self, view: MainView, pasting: Pasting, editor: ExternalEditor) -> None:
        super().__init__(view)
        self._pasting = pasting
        self._editor = editor
        self.open: list[Asked] = []
        self.panel: QuestionPanel[Any] | None = None
        self.guard = TypingGuard(view.clock)
        self._own: dict[str, asyncio.Future[bool]] = {}

    def ask(self, asked: Asked) -> None:
        """Puts a question of the agent's, or of the screen's own."""
        from agent_tui.models.events import PermissionAsked, PlanPresented, QuestionAsked, ServerAsked, StopAsked

        match asked:
            case PermissionAsked():
                call = f"Permission needed: {asked.summary}"
            case PlanPresented():
                call = "A plan is ready"
            case QuestionAsked():
                call = f"A question: {asked.question}"
            case ServerAsked():
                call = f"{asked.server} asks: {asked.text}"
            case StopAsked():
                call = asked.question
            case _:
                assert_never(asked)
        self.open.append(asked)
        self._view.call_user(call)
        self._show()

    @property
    def plan_waits(self) -> bool:
        """True when a plan is open: what it is answered with sets the permission mode."""
        from agent_tui.models.events import PlanPresented

        return self.panel is not None and isinstance(self.panel.asked, PlanPresented)

    def answer(self, asked: PermissionAsked, answer: PermissionAnswer) -> None:
        self.answered(asked.request_id)
        if (own := self._own.get(asked.request_id)) is not None:
            own.set_result(answer.allow)
        elif self._agent is not None:
            self._agent.permissions.answer(asked.request_id, answer.allow, answer.offer, answer.feedback)

    def answer_plan(self, asked: PlanPresented, mode: ApprovedMode | None, plan: str, feedback: str) -> None:
        self.answered(asked.request_id)
        if self._agent is not None:
            self._agent.questions.answer_plan(asked.request_id, mode, plan, feedback)

    def answer_question(self, asked: QuestionAsked, chosen: tuple[str, ...], text: str) -> None:
        self.answered(asked.request_id)
        if self._agent is not None:
            self._agent.questions.answer_question(asked.request_id, chosen, text)

    def answer_server(self, asked: ServerAsked, action: ServerAction, values: Metadata, opens: bool) -> None:
        self.answered(asked.request_id)
        if opens:
            self._view.open_address(asked.url)
        if self._agent is not None:
            self._agent.servers.answer(asked.request_id, action, values)

    def answer_stop(self, asked: StopAsked, way: Way | None, text: str) -> None:
        """The question stays open until the answer could be taken, or another model is chosen."""
        from agent_tui.errors import AgentError
        from agent_tui.ui.widgets.panels import StopPanel

        agent, panel = self._agent, self.panel
        if agent is None or not isinstance(panel, StopPanel):
            return
        if way is not None and way.models:
            self.app.open_screen("models")
            return
        panel.problem("")

        async def answer() -> None:
            try:
                await agent.stops.answer(asked.request_id, way.key if way is not None else "", text)
            except AgentError as error:
                if panel.is_attached:
                    panel.problem(str(error))

        self._view.begin(answer)

    def answered(self, request_id: str) -> None:
        """The question is settled, here or elsewhere."""
        from agent_tui.models.events import PermissionAsked

        for asked in [a for a in self.open if a.request_id == request_id]:
            self.open.remove(asked)
            if isinstance(asked, PermissionAsked):
                self._view.transcript.tool_waiting(asked.call_id, False)
        if self.panel is not None and self.panel.asked.request_id == request_id:
            self._close()
        self._show()
        if self.panel is None and self._view.holder.busy:
            self._view.answered()
        elif self.panel is None and self._view.activity.waits:
            self._view.activity.end()

    def decline(self) -> None:
        """Esc, where no turn runs that it could interrupt: no, to who works in the background."""
        from agent_tui.ui.widgets.panels import PermissionPanel

        if isinstance(panel := self.panel, PermissionPanel):
            panel.decline()

    async def may_attach(self, path: Path) -> bool:
        """Asks whether a file outside the project may go with a message."""
        from agent_tui.models.events import PermissionAsked
        from agent_tui.models.messages import new_id
        from agent_tui.text.clean import spelled

        request_id = new_id("ask")
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._own[request_id] = answer
        reason = "it is outside the project, and attachments are sent to the model"
        whole = {"kind": "text", "text": spelled(str(path), line=True)}
        self.ask(PermissionAsked(request_id, "", "attaching", path.name, whole, reason=reason))
        try:
            return await answer
        finally:
            del self._own[request_id]
            self.answered(request_id)

    def _close(self) -> None:
        panel, self.panel = self.panel, None
        if panel is not None:
            panel.give_letters()
            had_focus = panel.has_focus or panel.has_focus_within
            panel.remove()
            self._view.question_closed()
            if had_focus:
                self._view.prompt.focus()

    def _show(self) -> None:
        if self.panel is not None or not self.open:
            return
        self.panel, phase, hint = self._panel(self.open[0])
        self._view.show_question(self.panel)
        if phase:
            self._view.phase(phase, waits=True)
        if self._view.prompt.is_empty and not self.guard.typing:
            self.panel.focus()
        else:
            self._view.hint(hint)

    def _panel(self, asked: Asked) -> tuple[QuestionPanel[Any], str, str]:
        """The panel for a question, what goes on meanwhile, and how one gets there from the midst of typing."""
        from agent_tui.models.events import PermissionAsked, PlanPresented, QuestionAsked, ServerAsked, StopAsked
        from agent_tui.ui.widgets.form import ServerPanel
        from agent_tui.ui.widgets.panels import AskPanel, PermissionPanel, PlanPanel, StopPanel

        guard, typed = self.guard, self._typed
        match asked:
            case PermissionAsked():
                panel: QuestionPanel[Any] = PermissionPanel(asked, guard, typed, self.answer)
                hint = "Permission needed: Tab, then y / a / n"
                return panel, "Waiting for your permission", hint
            case PlanPresented():
                panel = PlanPanel(asked, guard, typed, self.answer_plan, self._editor.changed)
                return panel, "Waiting for your answer on the plan", "A plan is ready: Tab to answer"
            case QuestionAsked():
                panel = AskPanel(asked, guard, typed, self.answer_question)
                return panel, "Waiting for your answer", "A question: Tab to answer"
            case ServerAsked():
                panel = ServerPanel(asked, guard, typed, self.answer_server)
                return panel, "Waiting for your answer", "An MCP server asks: Tab to answer"
            case StopAsked():
                panel = StopPanel(asked, guard, typed, self.answer_stop)
                return panel, "", "The turn stopped: Tab to answer"
            case _:
                assert_never(asked)

    def prompt_changed(self) -> None:
        """Something was typed: hints go."""
        # Emptied is not typed: a hint about what was just sent or cleared stays.
        # Nor does one that says where the question is, as long as it is open.
        view = self._view
        if view.activity.hint_text and not view.prompt.is_empty and self.panel is None:
            view.hint("")

    def go_there(self) -> bool:
        """Tab in the prompt; False when nothing is asked. Amid typing the next key is no answer yet."""
        if self.panel is None:
            return False
        self.guard.accidental()
        self.panel.focus()
        return True

    def _typed(self, text: str, paste: bool) -> None:
        """Something typed or pasted at a question that is no answer to it: nothing of it is lost."""
        if paste:
            self._pasting.pasted(text)
        elif text:
            self._view.prompt.insert_text(text)
            self._view.prompt.focus()
        if self.panel is not None:
            self._view.hint("Not taken as an answer" + ("; it's in the prompt · Tab to answer" if text else ""))
