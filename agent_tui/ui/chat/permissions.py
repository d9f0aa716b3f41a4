"""Permission questions on the screen: one at a time, oldest first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_tui.ui.guard import TypingGuard

if TYPE_CHECKING:
    from pathlib import Path

    from agent_tui.models.events import PermissionAsked
    from agent_tui.ui.chat.needs import AsksToAttach, CallsUser, ForgetsQuestions, HasAsker, ShowsQuestions, TakesPaste
    from agent_tui.ui.chat.stage import Stage
    from agent_tui.ui.widgets.permission import PermissionPanel


class Permissions:
    """Shows the panel for the oldest open question and hands the answer to the agent."""

    def __init__(
        self, seat: HasAsker, stage: Stage, caller: CallsUser, pasting: TakesPaste, clock: Callable[[], float]
    ) -> None:
        self._seat = seat
        self._stage = stage
        self._caller = caller
        self._pasting = pasting
        self.open: list[PermissionAsked] = []
        self.panel: PermissionPanel | None = None
        self.guard = TypingGuard(clock)
        self._own: dict[str, asyncio.Future[bool]] = {}

    def ask(self, asked: PermissionAsked) -> None:
        self.open.append(asked)
        self._caller.call_user(f"Permission needed: {asked.summary}")
        self._show()

    def answer(self, asked: PermissionAsked, allow: bool, pattern: str | None, feedback: str) -> None:
        self.answered(asked.request_id)
        own = self._own.get(asked.request_id)
        if own is not None:
            own.set_result(allow)
        elif self._seat.agent is not None:
            self._seat.agent.answer_permission(asked.request_id, allow, pattern, feedback)

    def answered(self, request_id: str) -> None:
        """The question is settled, here or elsewhere."""
        for asked in [a for a in self.open if a.request_id == request_id]:
            self.open.remove(asked)
            self._stage.transcript.tool_waiting(asked.call_id, False)
        if self.panel is not None and self.panel.asked.request_id == request_id:
            self._close()
        self._show()

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
            if had_focus:
                self._stage.prompt.focus()

    def _show(self) -> None:
        if self.panel is not None or not self.open:
            return
        from agent_tui.ui.widgets.permission import PermissionPanel

        self.panel = PermissionPanel(self.open[0], self.guard, self._typed)
        self._stage.show_question(self.panel)
        self._stage.phase("Waiting for your permission")
        if self._stage.prompt.is_empty and not self.guard.typing:
            self.panel.focus()
        else:
            self._stage.hint("A permission is asked: Tab goes there, y / a / n answer")

    def prompt_changed(self) -> None:
        """Something was typed: hints go."""
        # Emptied is not typed: a hint about what was just sent or cleared stays.
        # Nor does one that says where the question is, as long as it is open.
        stage = self._stage
        if stage.activity.hint_text and not stage.prompt.is_empty and self.panel is None:
            stage.hint("")

    def go_there(self) -> None:
        """Tab in the prompt. In the midst of typing it does not make the next key an answer."""
        if self.panel is not None:
            self.guard.accidental()
            self.panel.focus()

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
