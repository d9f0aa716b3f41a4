"""What the Agent says of its project: rules, tools, skills, servers, health."""

from __future__ import annotations

import asyncio

from agent_tui.context.project.user_commands import UserCommand
from agent_tui.engine.about import report as project
from agent_tui.engine.agent_accounting import Accounting
from agent_tui.engine.models.learned import with_learned
from agent_tui.engine.project.extensions import ToolRow, tool_rows
from agent_tui.models.events import (
    SessionChanged,
)
from agent_tui.models.messages import AttachmentPart

SURE = "/trust yes trusts exactly this."


class ProjectFacts(Accounting):
    """Read by commands and screens; changes only trust and remembered rules."""

    def permission_rules(self) -> list[project.Row]:
        """(decision, rule, source) of every rule."""
        return project.permission_rules(self.settings, self.store, self.root, self.parts.trust.identity)

    def remove_permission_rule(self, rule: str) -> bool:
        """Forgets a remembered rule; False when there was none. Rules of the configuration are changed there."""
        stored = self.store.remove_permission_rule(self.root, rule)
        if stored:
            self.desk.permissions.forget(rule)
        return stored

    def tools(self) -> list[ToolRow]:
        """(name, group, description, tokens, enabled) of every tool."""
        disabled = self.settings.tools.disabled
        return tool_rows(self.toolbox, self._runtime.prelude, self._runtime.info.limits, disabled)

    def trust_details(self) -> str:
        """What the folder brings along that is new to the user, or differs from what they trusted."""
        return self.parts.trust.details()

    def trust(self, sure: bool = False) -> str:
        """Trusts the project's configuration, skills, commands and MCP servers from now on; one line on what came.

        What changed since it was trusted is shown first, and asked about: ``sure`` is the answer. Only what was shown
        is trusted; where it has changed since then, that is shown.
        """
        trust = self.parts.trust
        if not sure and trust.state != "never":
            return (
                f"{trust.line() or 'This folder is not trusted.'}\n{trust.details()}\n/trust yes trusts exactly this."
            )
        if not trust.accept():
            return (
                f"It changed a moment ago; nothing is trusted yet.\n{trust.details()}\n/trust yes trusts exactly this."
            )
        self.parts.trusted = True
        settings = self.parts.reload() if self.parts.reload is not None else self.settings
        line = self.parts.extensions.trusted(settings) if self.parts.extensions is not None else "Trusted."
        self._tools_changed()
        self.publish(SessionChanged(self.info))
        return line

    def user_commands(self) -> list[UserCommand]:
        """The user's and the project's commands, and the prompts of MCP servers."""
        self._look_at_trust()
        return list(self.parts.extensions.user_commands()) if self.parts.extensions is not None else []

    def skills(self) -> list[project.Row]:
        """(name, description, path) of every skill."""
        return self.parts.extensions.skill_rows() if self.parts.extensions is not None else []

    def mcp_servers(self) -> list[project.Row]:
        """(name, state, detail) of every MCP server."""
        return [*self.parts.extensions.mcp.servers()] if self.parts.extensions is not None else []

    async def mcp_reconnect(self, name: str) -> str:
        """Connects an MCP server again; one line on how that went."""
        if self.parts.extensions is None:
            return "There are no MCP servers here."
        return await self.parts.extensions.mcp.reconnect(name)

    def mcp_resources(self) -> list[tuple[str, str]]:
        """(``server:uri``, description) of every MCP resource, as it is named after ``@``."""
        extensions = self.parts.extensions
        found = extensions.mcp.resources() if extensions is not None else []
        return [(f"{r.server}:{r.uri}", r.description or r.name) for r in found]

    async def mcp_attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]:
        """The MCP resources that ``@server:uri`` words of a message name, and a line for each that failed."""
        if self.parts.extensions is None:
            return [], []
        return await self.parts.extensions.mcp.attachments(text)

    async def sandbox_lines(self) -> list[str]:
        """Which sandbox holds, and what each domain means under it."""
        from agent_tui.tools.sandbox import words

        jail = self.parts.jail
        if jail is None:
            return ["none"]
        sandbox = await jail.ready()
        network = jail.config.network
        domains = [words.described(sandbox, d, network) for d in ("look", "work") if sandbox.holds(d)]
        meaning = words.unheld(self.mode, sandbox)
        return [words.status_line(sandbox), *domains, *([meaning] if meaning else [])]

    async def doctor(self) -> list[project.Row]:
        """Checks of the installation: (ok, warn or fail; what; detail)."""
        info = self.model_info
        if info is None:
            spec = self.runtime.info.spec if self.runtime is not None else self.parts.catalogue.default()
            info = with_learned(self.store, await self.parts.provider.describe(spec))
        rows = await asyncio.to_thread(project.doctor, self.parts, info)
        return rows + project.learned_rows(self.store)
