"""Where the agent sits, from its making to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_tui.errors import AgentError

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.ui.chat.needs import HasAgent, HasAsker, HasContext, HasWords


class Seat:
    """``opening`` is the agent from its making on, also while it still opens its session; ``agent`` from then on.
    ``farewell`` are lines to be said once the screen is gone: what ``last_words`` makes of the agent that was closed,
    and what goes on without it."""

    def __init__(self, last_words: Callable[[Agent], list[str]] = lambda agent: []) -> None:
        self._last_words = last_words
        self.opening: Agent | None = None
        self.agent: Agent | None = None
        self.farewell: list[str] = []

    @property
    def busy(self) -> bool:
        """Whether an agent is there and works."""
        return self.agent is not None and self.agent.turns.busy

    def opened(self) -> None:
        """The session is open."""
        self.agent = self.opening

    async def close(self) -> AgentError | None:
        """Lets the agent go; why something could not be stored, where that was so."""
        agent, is_open = self.opening, self.agent is not None
        self.agent = self.opening = None
        if agent is not None:
            try:
                await agent.close()
            except AgentError as error:
                return error
            finally:
                self.farewell = [*(self._last_words(agent) if is_open else ()), *agent.background.left_running()]
        return None


_AGENT: type[HasAgent] = Seat
_ASKER: type[HasAsker] = Seat
_WORDS: type[HasWords] = Seat
_CONTEXT: type[HasContext] = Seat
