"""What MCP servers offered when they were last seen, so that a session can be looked at without starting them."""

from __future__ import annotations

import logging
from pathlib import Path

from agent_tui.config import McpServer
from agent_tui.errors import StoreError
from agent_tui.models.codec import dumps, from_dict
from agent_tui.models.messages import fingerprint
from agent_tui.store.facts import Offers
from agent_tui.tools.mcp.lines import Entries

log = logging.getLogger(__name__)


class RememberedOffers:
    """The offers of one project's servers. One that is configured differently now is another server; what it is given
    (variables, headers) does not count, for keys are among it."""

    def __init__(self, offers: Offers, root: Path) -> None:
        self._offers = offers
        self._root = root

    def keep(self, name: str, server: McpServer, offer: Entries) -> None:
        """Keeps what a server offers now. What cannot be stored is told again by the next start."""
        try:
            self._offers.put(self._root, name, _identity(server), dumps(offer))
        except StoreError as error:
            log.warning("The offer of the MCP server %s was not kept: %s", name, error)

    def find(self, name: str, server: McpServer) -> Entries | None:
        """What a server offered when it was last seen; None where it never was, or is configured differently now."""
        try:
            stored = self._offers.get(self._root, name, _identity(server))
            return None if stored is None else from_dict(Entries, stored)
        except (StoreError, KeyError, TypeError, AttributeError) as error:
            log.warning("The offer of the MCP server %s cannot be read: %s", name, error)
            return None


def _identity(server: McpServer) -> str:
    return fingerprint([server.command or "", *server.args, "in", server.cwd or "", "at", server.url or ""])
