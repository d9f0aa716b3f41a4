"""Asking for permission: what the rules leave open goes to the user, whose answers are remembered as rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from agent_tui.engine.toolrunner import Verdict
from agent_tui.models.events import Event, Notice, PermissionAnswered, PermissionAsked
from agent_tui.models.messages import ToolCallPart, new_id
from agent_tui.tools.base import Intent, Tool
from agent_tui.tools.permissions import Permissions


@dataclass(slots=True, frozen=True)
class _Answer:
    allow: bool
    pattern: str | None
    feedback: str


class PermissionDesk:
    """Judges tool calls by ``permissions``; questions go out as events, one at a time."""

    def __init__(self, permissions: Permissions, publish: Callable[[Event], None]) -> None:
        self.permissions = permissions
        self._publish = publish
        self._open: dict[str, asyncio.Future[_Answer]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def judge(self, call: ToolCallPart, tool: Tool, intent: Intent, asker: str = "") -> Verdict:
        """Whether a call may run; waits for the user where the rules say ask. ``asker`` is who makes the call, where
        that is not the session itself."""
        async with self._one_at_a_time:
            name = intent.tool or tool.schema.name
            decision = self.permissions.decide(name, intent)
            if decision.action == "allow":
                return Verdict(True)
            if decision.action == "deny":
                if not self.permissions.can_ask:
                    why = decision.message or decision.reason
                    self._publish(Notice("warning", f"{intent.summary}: {why}", "permission_denied"))
                return Verdict(False, decision.message or decision.reason)
            request_id = new_id("ask")
            future: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
            self._open[request_id] = future
            display = intent.display or {"kind": "text", "text": intent.summary}
            self._publish(
                PermissionAsked(
                    request_id,
                    call.call_id,
                    name,
                    intent.summary,
                    display,
                    decision.patterns,
                    f"{asker}: {decision.reason}" if asker else decision.reason,
                )
            )
            try:
                answer = await future
            finally:
                self._open.pop(request_id, None)
            self._publish(PermissionAnswered(request_id, answer.allow))
            if answer.allow:
                if answer.pattern is not None:
                    # What was chosen and no more: a question about two programs is no answer for both.
                    self.permissions.remember([answer.pattern])
                # The question was about the command as it stands.
                return Verdict(True, domain="free")
            feedback = answer.feedback.strip()
            text = "The user refused this call."
            return Verdict(False, f"{text} They said: {feedback}" if feedback else f"{text} Do not try it again as is.")

    def answer(self, request_id: str, allow: bool, pattern: str | None, feedback: str) -> None:
        """The user's word; an answer to a question that is no longer open does nothing."""
        future = self._open.get(request_id)
        if future is not None and not future.done():
            future.set_result(_Answer(allow, pattern, feedback))

    def dismiss(self) -> None:
        """Closes open questions on the screen after their turn has ended."""
        for request_id, future in list(self._open.items()):
            future.cancel()
            self._publish(PermissionAnswered(request_id, False))
        self._open.clear()
