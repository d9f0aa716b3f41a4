"""The project as commands and screens see it: rules, trust, tools, skills, servers, the checks of ``doctor``."""

from __future__ import annotations

import asyncio
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agent_tui.config import Settings
from agent_tui.context.skills import UserCommand
from agent_tui.context.trust import FolderTrust, State, TrustDetail
from agent_tui.engine.binder import Binder
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.extensions import ToolRow, Trusting, tool_rows
from agent_tui.engine.graphics import graphics
from agent_tui.engine.newline_keys import new_line_keys
from agent_tui.engine.state import AgentParts, AgentState
from agent_tui.engine.toolbox import Toolbox
from agent_tui.errors import AgentError
from agent_tui.models.events import Notice, SessionChanged
from agent_tui.models.messages import SEARCH_TOOL, AttachmentPart
from agent_tui.models.requests import ModelInfo
from agent_tui.paths import PROJECT_CONFIG
from agent_tui.pipes.programs import find_program, why_not_found
from agent_tui.providers.catalog import shown_address
from agent_tui.store.backup import problems_of
from agent_tui.store.keys import KEYRING, KeyStore
from agent_tui.store.store import Store
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import size
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.files.pictures import fit_attachments, needs_fitting
from agent_tui.tools.git.repository import version_and_commit
from agent_tui.tools.rules.rule import checked_rules
from agent_tui.tools.rules.standing import Which

if TYPE_CHECKING:
    from agent_tui.context.agents import AgentType
    from agent_tui.tools.mcp.manager import McpManager


class Project:
    """The project: what it brings along and what it allows. Changes only trust and remembered rules."""

    def __init__(
        self, state: AgentState, context: ContextControl, binder: Binder, toolbox: Toolbox, trusting: Trusting
    ) -> None:
        self._state = state
        self._parts = state.parts
        self._extensions = state.parts.extensions
        self._context = context
        self._binder = binder
        self._toolbox = toolbox
        self._trusting = trusting
        self._pictures = self._drawing = ""
        self.sign_in_addresses: dict[str, str] = {}

    @property
    def branch(self) -> str:
        """The git branch at the start of the session; empty outside a repository."""
        return self._parts.workspace.git.branch

    @property
    def files(self) -> FileAccess:
        """What is read and written in the user's name, held to the rules of the session."""
        return self._parts.permissions.files

    def heard(self, own_words: str) -> None:
        """The user wrote this themselves: hosts named in it may be fetched from."""
        self._parts.permissions.reach.name(own_words)

    async def fit_images(self, parts: Sequence[AttachmentPart]) -> tuple[list[AttachmentPart], list[str], list[str]]:
        """Attachments as the model in use takes them: a line for each image that was scaled down, and one for each
        that had to be left out."""
        limits = self._state.image_limits
        if not needs_fitting(parts, limits):
            return list(parts), [], []
        return await asyncio.to_thread(fit_attachments, parts, limits)

    async def fitted(self, parts: Sequence[AttachmentPart]) -> list[AttachmentPart]:
        """The same for who has no screen: what was scaled down or left out is told as notices."""
        attached, scaled, refused = await self.fit_images(parts)
        for line in refused:
            self._state.events.publish(Notice("warning", f"Not attached: {line}", "attachment"))
        for line in scaled:
            self._state.events.publish(Notice("info", line, "attachment"))
        return attached

    def permission_rules(self) -> list[Row]:
        """(decision, rule, source) of every rule."""
        parts = self._parts
        session = parts.permissions.rules
        identity = self._trusting.folder.identity
        rules = permission_rules(parts.settings, parts.store, parts.root, identity, session.brought)
        known = {(which, rule) for which, rule, _ in rules}
        foreign = [row for row in parts.foreign.rules if row[:2] not in known]
        rules += [(which, rule, place) for which, rule, place in foreign if which != "allow"]
        rules += [("allow", rule, SESSION) for rule in parts.permissions.for_session]
        return rules + [("offered", rule, f"{OFFERED}{place}") for which, rule, place in foreign if which == "allow"]

    def add_permission_rule(self, which: Which, rule: str) -> None:
        """Allows, asks about or denies what a rule says from now on, in this project, whatever a rule that was given
        here said of it. Raises ConfigError for what is no rule."""
        checked_rules([rule], f"permissions.{which}")
        self.remove_permission_rule(rule)
        self._parts.permissions.rules.remember([rule], which)

    def remove_permission_rule(self, rule: str) -> bool:
        """Forgets a rule that was remembered, or holds for the session; False when there was none. Rules of the
        configuration are changed there."""
        given = self._parts.store.rules.of(self._parts.root, self._trusting.folder.identity)
        stored = self._parts.store.rules.remove(self._parts.root, rule)
        for which in (which for which, text in given if text == rule):
            self._parts.permissions.rules.forget(rule, which)
        return self._parts.permissions.forget_for_session(rule) or stored

    def tools(self) -> list[ToolRow]:
        """(name, group, description, tokens, enabled) of every tool."""
        runtime = self._state.runtime
        disabled, rows = self._parts.settings.tools.disabled, runtime.usage().rows
        takes = runtime.info.tools is not False
        offered = self._toolbox.offered(runtime.info if takes else replace(runtime.info, tools=None))
        found = tool_rows(offered, runtime.request_prefix, disabled, rows, runtime.left_out, takes_tools=takes)
        why = self._toolbox.no_search(runtime.info)
        return [*found, *([(SEARCH_TOOL, "left out", why, None, False)] if why else [])]

    @property
    def trust_state(self) -> State:
        """How far the folder is trusted."""
        return self._trusting.folder.state

    @property
    def trust_line(self) -> str:
        """One line on what of the folder is not used, and why."""
        return self._trusting.folder.line()

    def trust_question(self) -> list[TrustDetail]:
        """Returns all that the folder brings along and that waits for the user, whole. What is shown is what ``trust``
        accepts."""
        return self._trusting.question()

    def trust(self) -> str:
        """Accepts what was shown last, from now on; one line on what that is. Empty, and nothing is accepted, where
        nothing was shown or the folder has changed since."""
        line = self._trusting.accept()
        if not line:
            return ""
        parts = self._parts
        settings = parts.reload() if parts.reload is not None else parts.settings
        if self._extensions is not None:
            self._extensions.reload_servers(settings)
        parts.foreign.become(self._trusting.folder.foreign_rules())
        of_config: list[tuple[Which, str]] = [("deny", rule) for rule in settings.permissions.deny]
        of_config += [("ask", rule) for rule in settings.permissions.ask]
        parts.permissions.rules.bring([*of_config, *parts.foreign.in_force()])
        self._state.hooks.reload()
        self._context.tools_changed()
        self._state.events.publish(SessionChanged(self._state.conversation.info))
        return line

    def user_commands(self) -> list[UserCommand]:
        """The user's and the project's commands, and the prompts of MCP servers."""
        self._context.prefix.look_at_trust()
        return self._extensions.user_commands() if self._extensions is not None else []

    def skills(self) -> list[Row]:
        """(name, description, path) of every skill."""
        return self._extensions.skill_rows() if self._extensions is not None else []

    def agent_types(self) -> list[Row]:
        """(name, description with tools and model, folder) of every type of subagent, and what is wrong with those
        that are broken."""
        return self._extensions.agent_rows() if self._extensions is not None else []

    def hooks(self) -> list[tuple[str, HookState, str, str]]:
        """(source, state, when, command or what is wrong) of every hook, of those too that wait for trust."""
        folder = self._trusting.folder
        rows: list[tuple[str, HookState, str, str]] = [
            (h.source, "on", h.when, h.command) for h in self._state.hooks.all
        ]
        waiting = [item for item in (*folder.waiting, *folder.refused) if item.kind == "hook"]
        rows += [(item.source, "waits", one_line(item.name, 100), item.text) for item in waiting]
        return rows + [(source, "problem", "", one_line(text, 300)) for source, text in folder.brought.unused]

    def mcp_servers(self) -> list[Row]:
        """(name, state, detail) of every MCP server."""
        return [*self._extensions.mcp.servers()] if self._extensions is not None else []

    def mcp_tools(self) -> list[tuple[str, str]]:
        """(name, server) of every tool that a connected MCP server offers, both as they themselves say them."""
        return self._extensions.mcp.offered_tools() if self._extensions is not None else []

    def bring(self, agents: Sequence[AgentType], skills: Collection[str] | None) -> None:
        """Has these types of subagents too, which win over those in files, and of the skills only those named (None:
        all)."""
        if self._extensions is not None:
            self._extensions.agents.bring(agents)
            self._extensions.skills.narrow(skills)

    async def mcp_reconnect(self, name: str) -> str:
        """Connects an MCP server again; one line on how that went."""
        if self._extensions is None:
            return "No MCP servers."
        return await self._extensions.mcp.reconnect(name)

    async def mcp_sign_in(self, name: str) -> str:
        """Begins to sign in to an MCP server; returns the address to open. How it ends is told by a notice. Raises
        AgentError where it ends before there is an address."""
        mcp = self._mcp()
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        shown = ""

        def show(text: str) -> None:
            nonlocal shown
            self.sign_in_addresses[name] = shown = text
            if not address.done():
                address.set_result(text)

        async def sign_in() -> None:
            if (own := asyncio.current_task()) is not None:  # who no longer waits for the address wants no sign-in
                address.add_done_callback(lambda waited: own.cancel() if waited.cancelled() else False)
            try:
                notice = Notice("info", f"MCP server {await mcp.sign_in(name, show)}.", "mcp")
            except AgentError as error:
                if not address.done():
                    address.set_exception(error)
                    return
                notice = Notice("warning", f"MCP server {one_line(name)}: {error}", "mcp")
            finally:
                if self.sign_in_addresses.get(name) == shown:  # a later sign-in has one of its own
                    del self.sign_in_addresses[name]
            self._state.events.publish(notice)

        task = asyncio.create_task(sign_in(), name=f"sign-in to {name}")
        self._state.events.keep(task)
        either: set[asyncio.Future[Any]] = {task, address}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not address.done():
                raise AgentError(f"MCP server {one_line(name)}: the sign-in ended before there was an address.")
            return address.result()
        finally:
            address.cancel()

    def mcp_may_sign_in(self, name: str) -> bool:
        """Returns whether an MCP server may have a sign-in: one that is reached by an address."""
        return self._extensions is not None and self._extensions.mcp.may_sign_in(name)

    async def mcp_paste(self, name: str, address: str) -> None:
        """Gives a sign-in the address that the browser ended on. Raises AgentError."""
        await self._mcp().paste(name, address)

    async def mcp_sign_out(self, name: str) -> str:
        """Forgets the sign-in to an MCP server; returns a line. Raises AgentError."""
        return await self._mcp().sign_out(name)

    def _mcp(self) -> McpManager:
        if self._extensions is None:
            raise AgentError("No MCP servers.")
        return self._extensions.mcp

    def mcp_resources(self) -> list[tuple[str, str]]:
        """(``server:uri``, description) of every MCP resource, as it is named after ``@``."""
        found = self._extensions.mcp.resources() if self._extensions is not None else []
        return [(f"{r.server}:{r.uri}", r.description or r.name) for r in found]

    async def mcp_attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]:
        """The MCP resources that ``@server:uri`` words of a message name, and a line for each that failed."""
        if self._extensions is None:
            return [], []
        return await self._extensions.mcp.attachments(text)

    async def sandbox_lines(self) -> list[str]:
        """Returns which sandbox holds, and what each domain means under it."""
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
        """Keeps how the terminal shows pictures, as told by whoever asked the terminal."""
        self._pictures = detail

    def tell_drawing(self, problem: str) -> None:
        """Keeps why Textual draws, as told by whoever should draw."""
        self._drawing = problem

    async def doctor(self) -> list[Row]:
        """Checks of the installation: (ok, warn or fail; what; detail)."""
        opened, parts = self._state.opened, self._parts
        if opened and self._state.binding.described:
            info = self._state.runtime.info
        else:
            spec = self._state.runtime.info.spec if opened else parts.catalogue.default()
            info = await self._binder.facts_of(spec)
        rows = await asyncio.to_thread(doctor, parts, info, self._pictures)
        rows += [("warn", "not used", line) for line in parts.foreign.unused]
        if self._extensions is not None:
            rows += [("ok", what, detail) for what, detail in await asyncio.to_thread(self._extensions.brought)]
            rows += [("warn", "not used", line) for line in self._extensions.broken()]
        if self._drawing:
            at = next(n for n, row in enumerate(rows) if row[1] == "textual")
            rows[at] = ("warn", "textual", f"{rows[at][2]}: {self._drawing}")
        return [
            *rows,
            await _keys(self._state.keys),
            *hook_line([state for _, state, _, _ in self.hooks()]),
            *learned_rows(parts.store),
        ]


async def _keys(keys: KeyStore) -> Row:
    try:
        new, kept = await keys.place(), await keys.places()
    except AgentError as error:
        return "warn", "keys", str(error)
    movable = new == KEYRING and any(place != KEYRING for place in kept.values())
    stored = "".join(f"; {name}: {place}" for name, place in kept.items())
    way = "; agent-tui auth move moves them to the keyring" if movable else ""
    return "warn" if movable else "ok", "keys", f"kept in {new}{stored}{way}"


def hook_line(states: Sequence[HookState]) -> list[Row]:
    """Returns the line on hooks; none where there are none."""
    on, waits, wrong = (states.count(state) for state in ("on", "waits", "problem"))
    said = [f"{on} in force"] + [f"{waits} ignored until /trust"] * (waits > 0) + [f"{wrong} not used"] * (wrong > 0)
    state = "warn" if wrong else "ok"
    return [(state, "hooks", f"{', '.join(said)}; run /hooks to list them")] if states else []


Row = tuple[str, str, str]
HookState = Literal["on", "waits", "problem"]
"""In force, ignored until the folder is trusted, or not understood."""


CONFIGURATION, BROUGHT = "your configuration or the command line", "the project's configuration"
REMEMBERED, SESSION = "this project", "this session"
OTHERS = "another repository at this path (unused)"
OFFERED = "not in force, offered by "
"""Where rules are from."""
LEARNED = "learned limit"
"""What the check of what a server said is called."""


def permission_rules(
    settings: Settings, store: Store, root: Path, identity: str, brought: Collection[str] = ()
) -> list[Row]:
    """(decision, rule, source) of every permission rule, those of the configuration first, of which ``brought`` came
    with the project, and last those that were given in another repository at this path, which are not in force."""
    rules = settings.permissions
    configured = [("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow)]
    rows: list[Row] = [
        (decision, rule, BROUGHT if rule in brought else CONFIGURATION)
        for decision, texts in configured
        for rule in texts
    ]
    rows += [(which, rule, REMEMBERED) for which, rule in store.rules.of(root, identity)]
    return rows + [("asked", rule, OTHERS) for _, rule in store.rules.of_others(root, identity)]


def doctor(parts: AgentParts, info: ModelInfo, pictures: str = "") -> list[Row]:
    """Checks of this installation: (ok, warn or fail; what; detail). ``pictures`` is how the terminal shows them, where
    it was asked already."""
    rows: list[Row] = [
        ("ok", "agent-tui", version_and_commit()),
        ("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}, in {sys.prefix}"),
    ]
    for package in ("textual", "rich", "litellm", "tiktoken", "mcp", "pydantic", "platformdirs"):
        version = _version(package)
        rows.append(("ok" if version else "fail", package, version or "missing; reinstall agent-tui"))
    rows += [
        *_configuration(parts),
        _database(parts),
        _log(parts.paths.log_file),
        _model(info),
        _folder(parts.trust),
    ]
    for program, use in (("git", "branch and status work"), ("rg", "grep works")):
        found = find_program(program)
        missing = f"{why_not_found(program)}; {use} without it, slower"
        rows.append(("ok", program, found) if found else ("warn", program, missing))
    rows += [_sandbox(parts), _terminal(), *(("ok", what, detail) for what, detail in new_line_keys(os.environ))]
    rows.append(("ok", "pictures", pictures or graphics(parts.settings.ui.images, os.environ).detail))
    return rows


def _folder(trust: FolderTrust) -> Row:
    """That it is not trusted matters only where it brings something along."""
    trust.look()
    waits = bool(trust.waiting or trust.refused)
    words = f"{'not ' * (not trust.trusted)}trusted{': /trust shows what waits for you' * waits}"
    return "warn" if waits else "ok", "folder", f"{trust.root} ({words})"


def learned_rows(store: Store) -> list[Row]:
    """Returns what servers said of models' limits by refusing a request."""
    rows: list[Row] = []
    for known in store.learned.limits():
        said = (
            ("window", known.window),
            ("input at most", known.max_input),
            ("output at most", known.max_output),
            ("took", known.accepted or known.accepted_input),
            ("assumed window", known.raised),
            ("gave", known.accepted_output),
        )
        facts = ", ".join(f"{name} {value:,}" for name, value in said if value is not None)
        where = f" at {shown_address(known.server)}" if known.server else ""
        day = time.strftime("%Y-%m-%d", time.localtime(known.learned_at))
        rows.append(("ok", LEARNED, f"{known.model}{where}: {facts} ({day}; --forget forgets it)"))
    return rows


def _configuration(parts: AgentParts) -> Iterator[Row]:
    """The files that settings and themes are read from."""
    own, project = parts.paths.config_file, parts.root / PROJECT_CONFIG
    yield "ok", "configuration", f"{own}{'' if own.exists() else ' (missing; agent-tui config init creates it)'}"
    if project.exists():
        waits = any(item.source == PROJECT_CONFIG.as_posix() for item in (*parts.trust.waiting, *parts.trust.refused))
        yield "warn" if waits else "ok", "project config", f"{project}{' (not all is used until /trust)' * waits}"
    yield "ok", "themes", str(parts.paths.themes)


def _sandbox(parts: AgentParts) -> Row:
    from agent_tui.tools.sandbox.words import ports_line, status_line, unheld

    if parts.jail is None:
        return ("warn", "sandbox", "none")
    sandbox = parts.jail.tried()
    meaning = unheld(parts.permissions.mode, sandbox)
    config = parts.jail.config
    said = (status_line(sandbox), ports_line(sandbox, config.network, config.loopback), meaning)
    line = "; ".join(part for part in said if part)
    return ("ok" if sandbox.holds("look") and sandbox.holds("work") else "warn", "sandbox", line)


def _database(parts: AgentParts) -> Row:
    file = parts.store.file
    if not parts.store.writable:
        return ("fail", "sessions", f"nothing can be stored: {parts.store.problem}")
    with closing(sqlite3.connect(file)) as connection:
        problems = problems_of(connection)
    if problems:
        return ("fail", "sessions", f"{file} is damaged ({problems[0][:120]}): run agent-tui sessions repair")
    mode = file.stat().st_mode & 0o777
    detail = f"{file} ({size(file.stat().st_size)}, mode {mode:04o}, SQLite {sqlite3.sqlite_version})"
    return ("ok" if mode == 0o600 else "warn", "sessions", detail)


def _log(file: Path) -> Row:
    if os.access(file, os.W_OK):
        return ("ok", "log", str(file))
    return ("warn", "log", f"cannot write {file}: nothing is logged")


def _model(info: ModelInfo) -> Row:
    limits = info.limits
    window = f"{limits.window:,} tokens ({limits.origin})" if limits.window else "unknown window"
    if info.problem:
        return ("fail", "model", f"{info.spec.key}: {info.problem}")
    return ("ok" if limits.window else "warn", "model", f"{info.spec.key}: {window}")


def _terminal() -> Row:
    term = os.environ.get("TERM", "")
    colours = os.environ.get("COLORTERM", "") or ("256 colours" if "256" in term else "16 colours")
    state = "ok" if sys.stdout.isatty() else "warn"
    return (state, "terminal", f"{term or 'unknown'}, {colours}" + (", NO_COLOR" if os.environ.get("NO_COLOR") else ""))


def _version(package: str) -> str:
    """The installed version; empty where there is none."""
    from importlib.metadata import PackageNotFoundError, version  # e-mail and zip files come with it

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
