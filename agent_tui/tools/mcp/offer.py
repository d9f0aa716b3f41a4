"""The offer of an MCP server, taken from the host's word for it and made safe to show and to send."""

from __future__ import annotations

import logging
import re
from dataclasses import field
from pathlib import Path

from agent_tui.config import McpServer
from agent_tui.errors import StoreError
from agent_tui.models.codec import dumps, from_dict
from agent_tui.models.messages import fingerprint
from agent_tui.records import dataclass
from agent_tui.store.facts import Offers
from agent_tui.text.clean import plain, plain_line
from agent_tui.tools.mcp.protocol import Entries, PromptEntry, ResourceEntry
from agent_tui.tools.mcp.tool import Caller, McpTool

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
        """Returns what a server offered last; None where that is not known of this configuration."""
        try:
            stored = self._offers.get(self._root, name, _identity(server))
            return None if stored is None else from_dict(Entries, stored)
        except (StoreError, KeyError, TypeError, AttributeError) as error:
            log.warning("The offer of the MCP server %s cannot be read: %s", name, error)
            return None


def _identity(server: McpServer) -> str:
    return fingerprint([server.command or "", *server.args, "in", server.cwd or "", "at", server.url or ""])


INSTRUCTIONS_LIMIT = 2_000
"""Characters of one server's instructions that are sent."""


@dataclass(slots=True, frozen=True)
class McpResource:
    server: str
    uri: str
    name: str
    description: str = ""
    media_type: str = ""


@dataclass(slots=True, frozen=True)
class McpPrompt:
    """``arguments`` are the names of its arguments, in order; ``required`` those that must be given."""

    server: str
    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()


@dataclass(slots=True, frozen=True)
class Offer:
    """Tools by name, without doubles; resources and prompts in the server's order; ``instructions`` are what it says of
    its use, made plain and short; ``left_out`` names what of its listing cannot be used, and why. ``reads``: it has
    resources, listed or not."""

    tools: list[McpTool] = field(default_factory=list)
    resources: list[McpResource] = field(default_factory=list)
    prompts: list[McpPrompt] = field(default_factory=list)
    instructions: str = ""
    left_out: list[str] = field(default_factory=list)
    reads: bool = False

    def __str__(self) -> str:
        counts = [(len(self.tools), "tool"), (len(self.resources), "resource"), (len(self.prompts), "prompt")]
        said = ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n) or "offers nothing"
        return f"{said}; left out: {', '.join(self.left_out)}" if self.left_out else said


def read_offer(server: str, offer: Entries, call: Caller) -> Offer:
    """Returns the offer of a connected ``server``, by the host's word for it."""
    made = [McpTool(server, entry, call) for entry in offer.tools]
    tools = {tool.schema.name: tool for tool in reversed(made)}
    # Its instructions cannot end the block that they are sent in.
    said = plain(offer.instructions, INSTRUCTIONS_LIMIT).strip()
    return Offer(
        sorted(tools.values(), key=lambda t: t.schema.name),
        [_resource(server, entry) for entry in offer.resources],
        [_prompt(server, entry) for entry in offer.prompts],
        re.sub(r"<(?=/?\s*mcp_server)", "‹", said, flags=re.IGNORECASE),
        [plain_line(name, 60) for name in offer.left_out],
        offer.reads,
    )


def _resource(server: str, entry: ResourceEntry) -> McpResource:
    uri, kind = plain_line(entry.uri, 2_000), plain_line(entry.media_type, 100)
    return McpResource(server, uri, plain_line(entry.name), plain_line(entry.description), kind)


def _prompt(server: str, entry: PromptEntry) -> McpPrompt:
    return McpPrompt(
        server,
        entry.name,
        plain_line(entry.description),
        tuple(a.name for a in entry.arguments),
        frozenset(a.name for a in entry.arguments if a.required),
    )
