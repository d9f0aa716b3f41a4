"""Where the agent sits, from its making to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.errors import AgentError

if TYPE_CHECKING:
    from agent_tui.ui.agent_protocol import ChatAgent
    from agent_tui.ui.chat.needs import HasAgent, HasAsker, HasContext, HasWords


class Seat:
    """``opening`` is the agent from its making on, also while it still opens its session; ``agent`` from then on.
    ``farewell`` are lines to be said once the screen is gone."""

    def __init__(self) -> None:
        self.opening: ChatAgent | None = None
        self.agent: ChatAgent | None = None
        self.farewell: list[str] = []

    @property
    def busy(self) -> bool:
        """Whether an agent is there and works."""
        return self.agent is not None and self.agent.busy

    def opened(self) -> None:
        """The session is open."""
        self.agent = self.opening

    async def close(self) -> AgentError | None:
        """Lets the agent go; why something could not be stored, where that was so."""
        agent, self.agent, self.opening = self.opening, None, None
        if agent is not None:
            try:
                await agent.close()
            except AgentError as error:
                return error
            finally:
                self.farewell = agent.left_running()
        return None


_AGENT: type[HasAgent] = Seat
_ASKER: type[HasAsker] = Seat
_WORDS: type[HasWords] = Seat
_CONTEXT: type[HasContext] = Seat
