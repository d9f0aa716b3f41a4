"""The chat: its parts, put together, and the way from the first frame to the open session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from agent_tui.completion import FileIndex
from agent_tui.history import PromptHistory
from agent_tui.ui.chat.composing import CompletionLookup, Copying, Drafts, ExternalEditor, Pasting
from agent_tui.ui.chat.key_actions import Finding, Interrupts, TypedAhead
from agent_tui.ui.chat.questions import Questions
from agent_tui.ui.chat.screens import Screens
from agent_tui.ui.chat.sending import Sender
from agent_tui.ui.chat.session import DraftCount, SessionView
from agent_tui.ui.chat.view import AgentHolder, ChatPart, MainView
from agent_tui.ui.keys import PAUSE
from agent_tui.ui.prompt.widget import PromptHost

if TYPE_CHECKING:
    from agent_tui.config import Settings
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Written
    from agent_tui.paths import Paths
    from agent_tui.ui.chat.pictures import Pictures
    from agent_tui.ui.chat.view import ChatApp

AgentFactory: TypeAlias = "Callable[[], Awaitable[Agent]]"

log = logging.getLogger(__name__)

EVERY = 2.0
"""Seconds between two looks at files that are part of every request: a handful of paths, in a thread."""


class Freshness(ChatPart):
    """Looks whether such files have changed, while the user looks, too, and the agent does not work."""

    def __init__(self, view: MainView) -> None:
        super().__init__(view)
        self._look: asyncio.Task[bool] | None = None

    def begin(self) -> None:
        self.app.set_interval(EVERY, self.look)

    def look(self) -> None:
        """One look, unless the last one still waits for a slow disk."""
        agent = self._agent
        if agent is None or agent.turns.busy or not self.app.app_focus:
            return
        agent.draft.look_at_files()
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(agent.context.refresh(), name="freshness")
            self._look.add_done_callback(_told)


def _told(look: asyncio.Task[bool]) -> None:
    if not look.cancelled() and (error := look.exception()) is not None:
        log.error("Looking for changed files failed", exc_info=error)


class Chat:
    """The objects that the application hands its keys and messages to. ``pictures`` are there from ``furnish`` on."""

    pictures: Pictures

    def __init__(
        self,
        app: ChatApp,
        settings: Settings,
        paths: Paths,
        root: Path,
        clock: Callable[[], float],
        last_words: Callable[[Agent], list[str]],
    ) -> None:
        self.holder = AgentHolder(last_words)
        self._sent_at = -PAUSE
        self.view = view = MainView(app, self.holder, settings.ui, PromptHistory(paths.state, str(root)), clock)
        files = FileIndex(root)
        self.copying = Copying(view)
        self.pasting = Pasting(view)
        self.drafts = Drafts(view)
        self.editor = ExternalEditor(view)
        self.finding = Finding(view)
        self.freshness = Freshness(view)
        self.completing = CompletionLookup(view, files)
        self.questions = Questions(view, self.pasting, self.editor)
        self.session = SessionView(view, files, settings.context.auto_compact)
        self.draft_count = DraftCount(view, self.session)
        self.sender = Sender(view, self.questions, self.session, self.copying)
        self.typing = TypedAhead(view, self.pasting)
        self.interrupts = Interrupts(view, self.sender, self.finding, self.copying)
        self.screens = Screens(
            view,
            paths,
            self.finding,
            self.sender,
            self.session,
            lambda which: self.pictures.open(which),
            settings.keys,
        )
        view.prompt.host = PromptHost(
            typed=self._typed,
            sent=self._sent,
            take_back=self._take_back,
            send_waiting=self._send_waiting,
            pasted=self.pasting.pasted,
            refused=self._refused,
            copied=lambda text: self.copying.copy(text, "what was yanked"),
            mode_shown=view.status.show_mode,
        )
        if settings.ui.vim:
            view.prompt.use_vim(True)

    def _typed(self) -> None:
        self.questions.guard.typed()
        self.drafts.key_comes()

    def prompt_changed(self) -> None:
        """Something else stands in the prompt."""
        self.questions.prompt_changed()
        self.drafts.changed()
        self.draft_count.changed()
        if self.questions.panel is None:  # whose hint says where the keys are
            self.session.face.typed(self.view.prompt.text)

    def _refused(self, text: str) -> bool:
        """Whether the text cannot be sent now; the number of a first step becomes the step."""
        if step := self.session.face.step_of(text):
            self.view.prompt.set_text(step)
        return self.sender.refused(step or text)

    def pressed(self, step: str) -> None:
        """A line of the empty chat was clicked."""
        if not step:
            self.session.face.go_on()
        elif text := self.session.face.step_of(step):
            from agent_tui.models.messages import Written

            self.sender.send(Written(text, []))

    def _sent(self, typed: Written, steer: bool) -> None:
        self._sent_at = self.view.clock()
        self.questions.guard.sent()
        self.drafts.forget()
        self.draft_count.changed()
        self.sender.send(typed, steer)

    def _take_back(self) -> None:
        """↑ on an empty prompt: the newest queued message, else the newest of the history."""
        taken = self.sender.take_back()
        if taken is None:
            self.view.prompt.recall_older()
        else:
            self.view.prompt.give_back(taken)

    def _send_waiting(self) -> None:
        """Enter on an empty prompt, while nothing runs or what runs was interrupted: what waits goes out; else the
        newest compaction that is in view opens, but for a second Enter at once."""
        if self.holder.agent is not None and self.holder.agent.turns.send_waiting():
            self.questions.guard.sent()
            self.view.transcript.follow_end()
        elif self.view.furnished and (seen := self.view.transcript.newest_record):
            if self.view.clock() - self._sent_at > PAUSE:
                self.view.app.open_screen("compact", seen)
        else:
            self.session.face.go_on()

    async def furnish(self, problem: str | None, first_prompt: str, *, face: bool) -> None:
        """Puts everything around the prompt; a ``problem`` becomes a line, ``first_prompt`` is sent when it can be."""
        from agent_tui.ui.chat.pictures import Pictures

        self.pictures = Pictures(self.view)
        await self.view.furnish(self.session.face.begin if face else lambda: None)
        self.sender.show_waiting()
        self.view.window.push_title()
        self.view.window.set_title("agent-tui")
        self.drafts.bring_back()
        if problem is not None:
            self.view.say("warning", problem)
        if first_prompt:
            from agent_tui.models.messages import Written

            self.sender.send(Written(first_prompt, []))

    async def open(self, factory: AgentFactory, choose: bool) -> None:
        """Makes the agent, shows its events and starts it; then what waited for it is sent, or comes back into the
        prompt where the user is to ``choose`` a session and does not. Raises what goes wrong."""
        agent = self.holder.opening = await factory()
        from agent_tui.ui.chat.router import Router

        agent.subscribe(Router(self.view, self.session, self.questions).dispatch)
        await agent.start()
        self.holder.opened()
        self.session.facts_changed()
        self.draft_count.changed()
        if choose:
            self.screens.choose_session(agent, then=self.sender.agent_ready)
        else:
            self.sender.agent_ready()
