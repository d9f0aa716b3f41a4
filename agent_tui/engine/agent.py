"""The Agent: the one object the UI, the commands and headless mode talk to. Events go out to subscribers."""

from __future__ import annotations

import asyncio
import logging

from agent_tui.engine.agent_project import ProjectFacts
from agent_tui.engine.agent_sessions import SessionControl
from agent_tui.engine.session.storing import patiently
from agent_tui.errors import READ_ONLY
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import (
    Notice,
    SessionChanged,
)

log = logging.getLogger(__name__)


class Agent(SessionControl, ProjectFacts):
    """A chat with one model in one project. All methods are to be called on the event loop's thread.

    Nothing here raises for what a model, a tool or a provider does: that arrives as events. AgentError is raised
    for what the user asked wrongly (an unknown model, a session that does not exist).
    """

    async def start(self) -> None:
        """Opens the session and begins to warm up the worker. Raises AgentError when the session cannot be opened."""
        parts = self.parts
        await patiently(self.sessions.open_first)
        await asyncio.to_thread(self.workspace.look)
        chosen = parts.model_key is not None or not self.info.model
        self._attach(self._first_model(), chosen)
        self._started = True
        self.publish(SessionChanged(self.info, reload=True))
        self.publish(self._runtime.changed())
        self._spawn(self._warm_up(), "warm-up")
        if parts.extensions is not None:
            parts.extensions.mcp.on_failure = lambda name, why: self.publish(
                Notice("warning", f"MCP server {name}: {why}", "mcp")
            )
        if parts.extra_tools is not None:
            parts.extra_tools.start(self._tools_changed)
        if self.read_only:
            self.publish(Notice("warning", READ_ONLY, "read_only"))
        self._tell_missing()
        self._tell_model_gone()
        for notice in parts.notices:
            self.publish(notice)
        self._tell_reach()
        self._inbox.hold(self.conversation.waiting)
        self._tell_waiting()
        self._next()
        self._keep_waiting(self._inbox.to_send())

    async def inspect(self) -> ContextUsage:
        """Opens the session asked for without changing it and says what its next request would cost.

        No MCP server is started: the tools of servers are those of the newest step.
        """
        self.sessions.open_for_reading(self.parts.resume)
        self._tell_missing()
        await asyncio.to_thread(self.workspace.look)
        self._attach(self._first_model())
        await self._warm_up()
        newest = next((s for s in reversed(self.steps) if s.kind == "turn" and s.fixed), None)
        if newest is not None:
            self._runtime.prelude.add_servers_of(newest)
        return self.context_usage()

    async def _warm_up(self) -> None:
        try:
            await self.parts.backend.start()
        except Exception:
            # It is tried again with the first call, which says what is wrong.
            log.exception("The worker could not be started")
        await self._describe_and_count()

    async def close(self) -> None:
        """Ends what runs, stores what is left and lets the worker go. Raises StoreError, once all is closed, when
        something could not be stored to the last."""
        self._closing = True
        # Not ``interrupt``: that would end a compaction only, and the turn around it would go on.
        if self._executor is not None:
            self._executor.cancel()
        elif self._in_turns:
            self._interrupted = True
        elif self._task is not None:
            self._task.cancel()
        await self.join()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self.parts.extra_tools is not None:
            await self.parts.extra_tools.close()
        await self.parts.backend.close()
        if self.sessions.is_open:
            await self._save_rest(self.conversation)
        self.sessions.leave()
        if self.parts.jail is not None:
            self.parts.jail.close()
        self.store.close()
        if self.sessions.lost is not None:
            raise self.sessions.lost
