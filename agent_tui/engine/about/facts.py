"""The project as commands and screens see it: rules, trust, tools, skills, servers, health."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent_tui.context.skills import UserCommand
from agent_tui.engine.about import report
from agent_tui.engine.accounts.accounts import Accounts
from agent_tui.engine.accounts.fixed import FixedParts
from agent_tui.engine.binding.binder import Binder
from agent_tui.engine.parts import AgentParts
from agent_tui.engine.project.extensions import ToolRow, tool_rows
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.engine.project.trusting import Trusting
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.models.events import SessionChanged
from agent_tui.models.messages import AttachmentPart
from agent_tui.tools.files.pictures import fit_attachments, needs_fitting


class Project:
    """What the project brings along and allows; changes only trust and remembered rules."""

    def __init__(
        self,
        parts: AgentParts,
        hub: Hub,
        bindings: Bindings,
        fixed: FixedParts,
        accounts: Accounts,
        binder: Binder,
        toolbox: Toolbox,
        trusting: Trusting,
    ) -> None:
        self._parts = parts
        self._hub = hub
        self._bindings = bindings
        self._fixed = fixed
        self._accounts = accounts
        self._binder = binder
        self._toolbox = toolbox
        self._trusting = trusting
        self._pictures = self._drawing = ""

    @property
    def branch(self) -> str:
        """The git branch at the start of the session; empty outside a repository."""
        return self._parts.workspace.git.branch

    @property
    def folders(self) -> list[Path]:
        """Where files are read and attached without asking: the project and the folders added to it."""
        return [self._parts.root, *self._parts.added_dirs]

    def heard(self, own_words: str) -> None:
        """The user wrote this themselves: hosts named in it may be fetched from."""
        self._parts.permissions.reach.name(own_words)

    async def fit_images(self, parts: Sequence[AttachmentPart]) -> tuple[list[AttachmentPart], list[str], list[str]]:
        """Attachments as the model in use takes them: a line for each image that was scaled down, and one for each
        that had to be left out."""
        limits = self._bindings.image_limits
        if not needs_fitting(parts, limits):
            return list(parts), [], []
        return await asyncio.to_thread(fit_attachments, parts, limits)

    def permission_rules(self) -> list[report.Row]:
        """(decision, rule, source) of every rule."""
        parts = self._parts
        rules = report.permission_rules(parts.settings, parts.store, parts.root, self._trusting.identity)
        return [*rules, *(("allow", rule, "this session") for rule in parts.permissions.rules.for_session)]

    def remove_permission_rule(self, rule: str) -> bool:
        """Forgets a rule that was remembered, or holds for the session; False when there was none. Rules of the
        configuration are changed there."""
        stored = self._parts.store.rules.remove(self._parts.root, rule)
        if stored:
            self._parts.permissions.rules.forget(rule)
        return self._parts.permissions.rules.forget_for_session(rule) or stored

    def tools(self) -> list[ToolRow]:
        """(name, group, description, tokens, enabled) of every tool."""
        runtime = self._bindings.current.runtime
        disabled, rows = self._parts.settings.tools.disabled, runtime.usage().rows
        return tool_rows(self._toolbox, runtime.prelude, runtime.info, disabled, rows)

    @property
    def trusted(self) -> bool:
        return self._trusting.trusted

    def trust_details(self) -> str:
        """What the folder brings along that is new to the user, or differs from what they trusted."""
        return self._trusting.details()

    def trust(self, sure: bool = False) -> str:
        """Trusts the project's configuration, skills, commands and MCP servers from now on; one line on what came.

        What changed since it was trusted is shown first, and asked about: ``sure`` is the answer. Only what was shown
        is trusted; where it has changed since then, that is shown.
        """
        first = self._trusting.accept(sure)
        if first is not None:
            return first
        parts = self._parts
        settings = parts.reload() if parts.reload is not None else parts.settings
        line = parts.extensions.trusted(settings) if parts.extensions is not None else "Trusted."
        self._accounts.tools_changed()
        self._hub.publish(SessionChanged(self._bindings.current.conversation.info))
        return line

    def user_commands(self) -> list[UserCommand]:
        """The user's and the project's commands, and the prompts of MCP servers."""
        self._fixed.look_at_trust()
        return list(self._parts.extensions.user_commands()) if self._parts.extensions is not None else []

    def skills(self) -> list[report.Row]:
        """(name, description, path) of every skill."""
        return self._parts.extensions.skill_rows() if self._parts.extensions is not None else []

    def mcp_servers(self) -> list[report.Row]:
        """(name, state, detail) of every MCP server."""
        return [*self._parts.extensions.mcp.servers()] if self._parts.extensions is not None else []

    async def mcp_reconnect(self, name: str) -> str:
        """Connects an MCP server again; one line on how that went."""
        if self._parts.extensions is None:
            return "There are no MCP servers here."
        return await self._parts.extensions.mcp.reconnect(name)

    def mcp_resources(self) -> list[tuple[str, str]]:
        """(``server:uri``, description) of every MCP resource, as it is named after ``@``."""
        extensions = self._parts.extensions
        found = extensions.mcp.resources() if extensions is not None else []
        return [(f"{r.server}:{r.uri}", r.description or r.name) for r in found]

    async def mcp_attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]:
        """The MCP resources that ``@server:uri`` words of a message name, and a line for each that failed."""
        if self._parts.extensions is None:
            return [], []
        return await self._parts.extensions.mcp.attachments(text)

    async def sandbox_lines(self) -> list[str]:
        """Which sandbox holds, and what each domain means under it."""
        from agent_tui.tools.sandbox import words

        jail = self._parts.jail
        if jail is None:
            return ["none"]
        sandbox = await jail.ready()
        network, loopback = jail.config.network, jail.config.loopback
        domains = [words.described(sandbox, d, network, loopback) for d in ("look", "work") if sandbox.holds(d)]
        meaning = words.unheld(self._parts.permissions.mode, sandbox)
        return [words.status_line(sandbox), *domains, *([meaning] if meaning else [])]

    def tell_pictures(self, detail: str) -> None:
        """How the terminal shows pictures, by whoever asked it."""
        self._pictures = detail

    def tell_drawing(self, problem: str) -> None:
        """What of the installed Textual cannot be used, by whoever draws with it."""
        self._drawing = problem

    async def doctor(self) -> list[report.Row]:
        """Checks of the installation: (ok, warn or fail; what; detail)."""
        opened, parts = self._bindings.opened, self._parts
        if opened and self._bindings.current.described:
            info = self._bindings.current.runtime.info
        else:
            spec = self._bindings.current.runtime.info.spec if opened else parts.catalogue.default()
            info = await self._binder.facts_of(spec)
        rows = await asyncio.to_thread(report.doctor, parts, info, self._trusting.trusted, self._pictures)
        if self._drawing:
            at = next(n for n, row in enumerate(rows) if row[1] == "textual")
            rows[at] = ("warn", "textual", f"{rows[at][2]}: {self._drawing}")
        return rows + report.learned_rows(parts.store)
