"""What a server asks of us, in the tool host: input from the user, the folders of the project.

Each question is brought into our form, bounded, and handed to the program; what comes back goes to the server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import mcp_types as types
from mcp.client.session import ClientRequestContext

from agent_tui.pipes.pipe import Refused
from agent_tui.text.clean import cut
from agent_tui.tools.mcp.names import safe_schema
from agent_tui.tools.mcp.patience import Patience
from agent_tui.tools.mcp.protocol import (
    Elicit,
    Elicited,
    MayStart,
    Relay,
)

Ask = Callable[[Elicit], Awaitable[object]]
Put = Callable[[Elicit | MayStart | Relay], Awaitable[object]]
"""Hands a question to the program, which answers as the protocol says, or Refused. Cancelled, it is withdrawn."""

MOST_OPEN = 5
"""Questions of one server that wait at the same time; more are refused."""

MOST_ASKED = 200
"""Questions of one server between two requests of ours; with more the connection is ended."""

TEXT = 20_000
"""Characters of what a question says."""

URL = 4_000


async def nobody(question: Elicit | MayStart | Relay) -> object:
    """Answers where nobody can be asked."""
    return Elicited("decline") if isinstance(question, Elicit) else Refused("nobody can be asked")


class ServerQuestions:
    """The questions of one server. ``enough`` ends its connection, with the reason; limits of ``patience`` stand still
    while something is asked."""

    def __init__(self, server: str, ask: Ask, patience: Patience, enough: Callable[[str], None]) -> None:
        self._server, self._ask, self._patience, self._enough = server, ask, patience, enough
        self._open = self._asked = 0
        self.roots: list[str] = []

    def begin(self) -> None:
        """A request of ours begins."""
        self._asked = 0

    async def elicit(
        self, context: ClientRequestContext | None, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """The user's input."""
        if isinstance(params, types.ElicitRequestURLParams):
            if len(params.url) > URL:
                return _wrong("the address is too long")
            question = Elicit(self._server, cut(params.message, TEXT), url=params.url)
        else:
            schema = safe_schema(params.requested_schema)
            if params.requested_schema.get("properties") and not schema["properties"]:
                return _wrong("the form is too large")
            question = Elicit(self._server, cut(params.message, TEXT), schema)
        answer = await self._put(question)
        if not isinstance(answer, Elicited):
            return types.ElicitResult(action="decline")
        form = answer.action == "accept" and not question.url
        return types.ElicitResult(action=answer.action, content=answer.values if form else None)

    async def list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """The folders of the project."""
        folders = [Path(root) for root in self.roots]
        return types.ListRootsResult(
            roots=[types.Root.model_validate({"uri": path.as_uri(), "name": path.name}) for path in folders]
        )

    async def _put(self, question: Elicit) -> object:
        """The program's answer; Refused, unasked, where the server asks too much."""
        self._asked += 1
        if self._asked > MOST_ASKED:
            self._enough(f"it asked more than {MOST_ASKED} questions within one request")
            return Refused("too many questions")
        if self._open >= MOST_OPEN:
            return Refused("too many questions at once")
        self._open += 1
        try:
            with self._patience.paused():
                return await self._ask(question)
        finally:
            self._open -= 1


def _wrong(why: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_PARAMS, message=why)
