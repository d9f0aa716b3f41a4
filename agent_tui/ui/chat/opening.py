"""From the first frame to the open session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.ui.chat.input.drafts import Drafts
    from agent_tui.ui.chat.input.sender import Sender
    from agent_tui.ui.chat.needs import LetsChoose
    from agent_tui.ui.chat.permissions import Permissions
    from agent_tui.ui.chat.seat import Seat
    from agent_tui.ui.chat.session_view import SessionView
    from agent_tui.ui.chat.stage import Stage
    from agent_tui.ui.terminal.window import Window

AgentFactory: TypeAlias = "Callable[[], Awaitable[Agent]]"


class Opening:
    """Completes the screen, then lets the agent open its session."""

    def __init__(
        self,
        seat: Seat,
        stage: Stage,
        session: SessionView,
        questions: Permissions,
        sender: Sender,
        drafts: Drafts,
        window: Window,
        screens: LetsChoose,
    ) -> None:
        self._seat = seat
        self._stage = stage
        self._session = session
        self._questions = questions
        self._sender = sender
        self._drafts = drafts
        self._window = window
        self._screens = screens

    async def furnish(self, problems: Sequence[str], first_prompt: str) -> None:
        """Puts everything around the prompt; ``problems`` become lines, ``first_prompt`` is sent once that can be."""
        await self._stage.furnish()
        self._sender.show_waiting()
        self._window.push_title()
        self._window.set_title("agent-tui")
        self._drafts.bring_back()
        for problem in problems:
            self._stage.say("warning", problem)
        if first_prompt:
            from agent_tui.models.messages import Written

            self._sender.send(Written(first_prompt, []))

    async def open(self, factory: AgentFactory, choose: bool) -> None:
        """Makes the agent, shows its events and starts it. What waited for it is sent then; where the user is to
        ``choose`` a session first, once that is open, and it comes back into the prompt where none is. Raises what goes
        wrong."""
        agent = self._seat.opening = await factory()
        from agent_tui.ui.chat.router import Router

        agent.subscribe(Router(self._seat, self._stage, self._session, self._questions).dispatch)
        await agent.start()
        self._seat.opened()
        self._session.facts_changed()
        if choose:
            self._screens.choose_session(agent, self._sender.agent_ready)
        else:
            self._sender.agent_ready()
