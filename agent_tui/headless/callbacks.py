"""What runs in the program that drives the run: its hooks and MCP servers. Each call is a control request of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from agent_tui.config import HOOK_EVENTS
from agent_tui.config.schema import matcher_problem
from agent_tui.errors import AgentError, ConfigError
from agent_tui.headless.incoming import Answered, control_request
from agent_tui.models.messages import Metadata, new_id
from agent_tui.tools.hooks import Hook

GONE = "The program that drives this run answers no more."


class Callbacks:
    """Asks the driver, and waits for what it answers; nobody waits any more once it is ``gone``."""

    def __init__(self, send: Callable[[Metadata], None]) -> None:
        self._send = send
        self._open: dict[str, asyncio.Future[Metadata]] = {}
        self._gone = False

    async def call(self, request: Metadata) -> Metadata:
        """The answer to a request. Raises AgentError where it is an error, or there will be none."""
        if self._gone:
            raise AgentError(GONE)
        name = new_id("call")
        answer: asyncio.Future[Metadata] = asyncio.get_running_loop().create_future()
        self._open[name] = answer
        try:
            self._send(control_request(name, request))
            return await answer
        except asyncio.CancelledError:
            if not self._gone:
                self._send({"type": "control_cancel_request", "request_id": name})
            raise
        finally:
            del self._open[name]

    def take(self, answered: Answered) -> bool:
        """Hands an answer to whoever waits for it; False where it is none to these calls."""
        waiting = self._open.get(answered.id)
        if waiting is None or waiting.done():
            return waiting is not None
        if answered.error is None:
            waiting.set_result(answered.said)
        else:
            waiting.set_exception(AgentError(answered.error))
        return True

    def gone(self) -> None:
        """The driver is gone."""
        self._gone = True
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(AgentError(GONE))

    def hooks(self, given: Any) -> list[Hook]:
        """The hooks of an ``initialize``: events with matchers, each of which names callbacks. Raises ConfigError."""
        if not isinstance(given, dict):
            raise ConfigError("initialize: hooks must be an object of lists.")
        found: list[Hook] = []
        for event, entries in given.items():
            if event not in HOOK_EVENTS:
                raise ConfigError(
                    f"initialize: there is no hook at {str(event)[:40]!r}; known are {', '.join(HOOK_EVENTS)}."
                )
            for entry in entries if isinstance(entries, list) else [entries]:
                found += self._hooks_of(event, entry)
        return found

    def _hooks_of(self, event: str, entry: Any) -> list[Hook]:
        ids = entry.get("hookCallbackIds") if isinstance(entry, dict) else None
        matcher, seconds = (entry.get("matcher") or "", entry.get("timeout")) if isinstance(entry, dict) else ("", None)
        if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids) or not isinstance(matcher, str):
            raise ConfigError(f"initialize: a hook at {event} must have a matcher and a list of hookCallbackIds.")
        if problem := matcher_problem(matcher):
            raise ConfigError(f"initialize: the matcher of a hook at {event} {problem}.")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float | None) or (seconds or 1) <= 0:
            raise ConfigError(f"initialize: the timeout of a hook at {event} must be more than 0 seconds.")
        blocks = entry.get("onFailure", "continue") != "continue"
        return [
            Hook(event, name, matcher, seconds, "the driver", True, partial(self._run_hook, name), blocks)
            for name in ids
        ]

    async def carry(self, server: str, message: Metadata) -> Metadata:
        """What an MCP server inside the driver answers to a message. Raises AgentError."""
        said = await self.call({"subtype": "mcp_message", "server_name": server, "message": message})
        answer = said.get("mcp_response")
        if not isinstance(answer, dict):
            raise AgentError("The program that drives this run answered without an mcp_response.")
        return answer

    async def _run_hook(self, name: str, told: Metadata) -> Metadata:
        request = {"subtype": "hook_callback", "callback_id": name, "input": told}
        return await self.call({**request, "tool_use_id": told.get("tool_use_id")})
