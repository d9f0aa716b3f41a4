"""The beginning and the end: what is opened first, and what is stored and let go last."""

from __future__ import annotations

import asyncio

from agent_tui.engine.accounts.accounts import Accounts
from agent_tui.engine.binding.binder import Binder
from agent_tui.engine.control.mode import ModeControl
from agent_tui.engine.control.sessions import SessionControl
from agent_tui.engine.parts import AgentParts
from agent_tui.engine.running.background import Background
from agent_tui.engine.running.runner import Runner
from agent_tui.engine.running.waiting import Waiting
from agent_tui.engine.session.sessions import Sessions
from agent_tui.engine.session.storing import patiently
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.engine.state.run import RunState, RunStates
from agent_tui.models.events import Event, Notice, SessionChanged, TurnEnded
from agent_tui.store.search_reader import Filler


class Lifetime:
    """Opens what was asked for, once, and closes everything."""

    def __init__(
        self,
        parts: AgentParts,
        hub: Hub,
        states: RunStates,
        bindings: Bindings,
        opened: Sessions,
        accounts: Accounts,
        binder: Binder,
        waiting: Waiting,
        runner: Runner,
        sessions: SessionControl,
        mode: ModeControl,
        background: Background,
    ) -> None:
        self._parts = parts
        self._hub = hub
        self._states = states
        self._bindings = bindings
        self._opened = opened
        self._accounts = accounts
        self._binder = binder
        self._waiting = waiting
        self._runner = runner
        self._sessions = sessions
        self._mode = mode
        self._background = background
        self._filler: Filler | None = None

    async def start(self) -> None:
        """Opens the session and begins to warm up the worker; nothing begins where it was closed meanwhile. Raises
        AgentError when the session cannot be opened."""
        parts, hub = self._parts, self._hub
        conversation = await patiently(
            lambda: self._opened.open_first(parts.resume, parts.session, parts.continue_newest)
        )
        await asyncio.to_thread(parts.workspace.look)
        if self._states.now is RunState.CLOSING:
            return
        parts.permissions.reach.load(conversation.info.state, first=True)
        chosen = parts.model_key is not None or not conversation.info.model
        self._binder.bind(conversation, self._binder.first_model(conversation), chosen=chosen)
        self._states.change(RunState.IDLE)
        hub.publish(SessionChanged(conversation.info, reload=True))
        self._accounts.tell()
        hub.spawn(self._binder.warm_up(), "warm-up")
        if parts.extensions is not None:
            parts.extensions.mcp.on_failure(self._tell_server_failed)
        if parts.extra_tools is not None:
            parts.extra_tools.start(self._accounts.tools_changed)
        self._sessions.tell_read_only()
        self._sessions.tell_missing()
        self._sessions.tell_cut_off()
        self._binder.tell_model_gone()
        for notice in parts.notices:
            hub.publish(notice)
        self._mode.tell_reach()
        self._keep_index()
        self._runner.opened()

    async def look(self) -> None:
        """Opens the session asked for without changing it. No MCP server is started: what they offer is what they
        offered when they were last seen; where that is not known, their tools are those of the newest step."""
        conversation = self._opened.open_for_reading(self._parts.resume)
        await asyncio.to_thread(self._parts.workspace.look)
        known = self._parts.extra_tools is not None and self._parts.extra_tools.recall()
        self._binder.bind(conversation, self._binder.first_model(conversation))
        self._states.change(RunState.LOOKING)
        self._sessions.tell_missing()
        await self._binder.warm_up()
        newest = next((s for s in reversed(conversation.steps) if s.kind == "turn" and s.fixed), None)
        if newest is not None and not known:
            self._bindings.current.runtime.prelude.add_servers_of(newest)

    async def close(self) -> None:
        """Ends what runs, stores what is left and lets the worker go. Raises StoreError, once all is closed, when
        something could not be stored to the last."""
        parts, opened = self._parts, self._opened
        await self._runner.close()
        await self._background.close()
        await self._hub.close()
        if parts.extra_tools is not None:
            await parts.extra_tools.close()
        await parts.backend.close()
        if opened.is_open:
            await self._waiting.save_rest(opened.current)
        if self._filler is not None:
            await asyncio.to_thread(self._filler.close)
        opened.leave()
        if parts.jail is not None:
            parts.jail.close()
        parts.store.close()
        if opened.lost is not None:
            raise opened.lost

    def _keep_index(self) -> None:
        """Puts what was said into the index of texts from now on, and all that was said before."""
        if not self._parts.keep_index:
            return
        filler = self._filler = self._parts.store.search.filler()

        def heard(event: Event) -> None:
            if isinstance(event, (TurnEnded, SessionChanged)):
                filler.wake()

        self._hub.subscribe(heard)
        filler.begin()

    def _tell_server_failed(self, name: str, why: str) -> None:
        self._hub.publish(Notice("warning", f"MCP server {name}: {why}", "mcp"))
