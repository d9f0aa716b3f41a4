"""Questions on the screen, for permission and others: one at a time, oldest first."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from agent_tui.ui.chat.view import ChatPart
from agent_tui.ui.keys import TypingGuard

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_tui.say.answering import Reply
    from agent_tui.say.asks import Ask, Asked
    from agent_tui.ui.chat.composing import ExternalEditor, Pasting
    from agent_tui.ui.chat.view import MainView
    from agent_tui.ui.widgets.question import QuestionPanel

_WAITS = {
    "permission": "Waiting for your permission",
    "plan": "Waiting for your answer on the plan",
    "choice": "Waiting for your answer",
    "server": "Waiting for your answer",
    "stop": "",
}
"""What goes on meanwhile."""


class OpenAsk(NamedTuple):
    """A question that waits, and who takes its answer."""

    ask: Ask
    take: Callable[[Reply], None]


class Questions(ChatPart):
    """Shows the panel for the oldest open question and hands the answer to the agent."""

    def __init__(self, view: MainView, pasting: Pasting, editor: ExternalEditor) -> None:
        super().__init__(view)
        self._pasting = pasting
        self._editor = editor
        self.open: list[OpenAsk] = []
        self.panel: QuestionPanel | None = None
        self.guard = TypingGuard(view.clock)

    def ask(self, asked: Asked) -> None:
        """Puts a question of the agent's."""
        from agent_tui.say.asks import ask_of

        ask = ask_of(asked)
        self._put(ask, partial(self._stopped if ask.kind == "stop" else self._answered, ask))

    def _put(self, ask: Ask, take: Callable[[Reply], None]) -> None:
        self.open.append(OpenAsk(ask, take))
        about = {"plan": "A plan is ready", "permission": f"Permission needed: {ask.tool} {ask.subject}"}
        self._view.call_user(about.get(ask.kind, f"{ask.title}: {ask.body}"))
        self._show()

    @property
    def plan_waits(self) -> bool:
        """True when a plan is open: what it is answered with sets the permission mode."""
        return self.panel is not None and self.panel.ask.kind == "plan"

    def _answered(self, ask: Ask, reply: Reply) -> None:
        from agent_tui.models.events import ServerAsked
        from agent_tui.say.answering import deliver_now

        self.answered(ask.id)
        if reply.choice is not None and reply.choice.opens and isinstance(ask.asked, ServerAsked):
            self._view.open_address(ask.asked.url)
        if self._agent is not None:
            deliver_now(self._agent, ask, reply)

    def _stopped(self, ask: Ask, reply: Reply) -> None:
        """The question stays open until the answer could be taken, or another model is chosen."""
        from agent_tui.errors import AgentError
        from agent_tui.say.answering import deliver

        agent, panel = self._agent, self.panel
        if agent is None or panel is None:
            return
        if reply.choice is not None and reply.choice.way is not None and reply.choice.way.models:
            self.app.open_screen("models")
            return
        panel.problem("")

        async def answer() -> None:
            try:
                await deliver(agent, ask, reply)
            except AgentError as error:
                if panel.is_attached:
                    panel.problem(str(error))

        self._view.begin(answer)

    def answered(self, request_id: str) -> None:
        """The question is settled, here or elsewhere."""
        for waits in [each for each in self.open if each.ask.id == request_id]:
            self.open.remove(waits)
            if waits.ask.call_id:
                self._view.transcript.tool_waiting(waits.ask.call_id, False)
        if self.panel is not None and self.panel.ask.id == request_id:
            self._close()
        self._show()
        if self.panel is None and self._view.holder.busy:
            self._view.answered()
        elif self.panel is None and self._view.activity.waits:
            self._view.activity.end()

    def decline(self) -> None:
        """Esc, where no turn runs that it could interrupt: no, to who works in the background."""
        if self.panel is not None and self.panel.ask.kind == "permission":
            self.panel.decline()

    async def may_attach(self, path: Path) -> bool:
        """Asks whether a file outside the project may go with a message."""
        from agent_tui.say.asks import attach_ask

        ask = attach_ask(path)
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def take(reply: Reply) -> None:
            self.answered(ask.id)
            answer.set_result(reply.allows)

        self._put(ask, take)
        try:
            return await answer
        finally:
            self.answered(ask.id)

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
        from agent_tui.say.answering import Answering
        from agent_tui.ui.widgets.question import QuestionPanel

        ask, take = self.open[0]
        self.panel = QuestionPanel(Answering(ask), self.guard, self._typed, take, self._editor.changed)
        self._view.show_question(self.panel)
        if phase := _WAITS[ask.kind]:
            self._view.phase(phase, waits=True)
        if self._view.prompt.is_empty and not self.guard.typing:
            self.panel.focus()

    def prompt_changed(self) -> None:
        """Something was typed: hints go."""
        # Emptied is not typed: a hint about what was just sent or cleared stays.
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
            self._view.hint("Not taken as an answer" + ("; it's in the prompt" if text else ""))
