"""Commands about the project and what the agent may do in it: permissions, trust, tools, MCP, skills, doctor."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from agent_tui.commands.desktop import open_address
from agent_tui.commands.info import Action, Info, Mark, Row, Section
from agent_tui.commands.registry import CommandResult, Copy, Submit, Text, command
from agent_tui.config import MODES_ELSEWHERE, PERMISSION_MODES
from agent_tui.engine.about import LEARNED, OFFERED, OTHERS, REMEMBERED, SESSION, HookState
from agent_tui.store.facts import forgotten_text
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_tui.context.trust import TrustDetail
    from agent_tui.engine.agent import Agent
    from agent_tui.tools.rules.standing import Which

MODE_HELP = {
    "ask": "asks before edits and commands",
    "accept-edits": "edits files in the project without asking",
    "plan": "reads only",
    "auto": "works without asking, except for what is dangerous",
    "bypass": "no questions and no sandbox: only for throwaway containers",
}

LONGEST = 1_000
"""Characters of what is said in one row."""

INIT_PROMPT = """\
Look at this project and write a file AGENTS.md in its root for coding agents who will work here. Read the README, \
the build and test configuration and a few representative source files first. Say in at most 60 lines: what the \
project is, how to build, run and test it (exact commands), how the code is laid out, and the conventions that are \
visible in the code. If AGENTS.md exists already, improve it and keep what is still true."""


_SOURCES: dict[str, tuple[str, tuple[str, ...]]] = {
    REMEMBERED: ("Rules remembered for this project", ("d",)),
    SESSION: ("Rules for this session", ("d",)),
    OTHERS: ("Rules of another repository at this path (unused)", ("d",)),
}
"""The titles of rules that can be taken back here, and the key for that."""
_GIVEN: dict[str, tuple[Which, str]] = {
    "allow": ("allow", "Allowed"),
    "ask": ("ask", "Always asks"),
    "deny": ("deny", "Denied"),
}


def _permission_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    yield from ((mode, text) for mode, text in MODE_HELP.items() if mode != "bypass")
    for _, rule, source in agent.project.permission_rules():
        if source in _SOURCES:
            yield f"remove {rule}", source


_RULES = (
    Action("enter", "set mode", "/permissions {row}", "MODE"),
    Action("a", "allow", "/permissions allow {row}", "RULE"),
    Action("a", "allow", "/permissions allow {typed}", typed="RULE", hint="what to allow, e.g. bash(npm test*)"),
    Action("k", "ask", "/permissions ask {typed}", typed="RULE", hint="what to ask about, e.g. bash(git push*)"),
    Action("n", "deny", "/permissions deny {typed}", typed="RULE", hint="what to deny, e.g. read(secrets/**)"),
    Action("d", "remove", "/permissions remove {row}", "RULE"),
)


@command("permissions", args="[mode] | allow|ask|deny RULE | remove RULE", choices=_permission_choices)
async def permissions(agent: Agent, args: str) -> CommandResult:
    """Show or set what the agent may do without asking.

    Modes: ask, accept-edits, plan (read only), auto; Shift+Tab cycles through the first three. Rules you give here
    or with "always" are remembered for the project until you run /permissions remove RULE.
    """
    args = MODES_ELSEWHERE.get(args, args)
    for mode in PERMISSION_MODES:
        if args == mode == "bypass" != agent.mode.now:
            line = "bypass works only from the start: use --permission-mode bypass, or set mode in your configuration."
            return Text(line, error=True)
        if args == mode:
            agent.mode.set(mode)
            return Text(f"Permission mode: {mode} ({MODE_HELP[mode]}).")
    what, _, rule = args.partition(" ")
    rule = rule.strip()
    if what == "remove" and rule:
        if agent.project.remove_permission_rule(rule):
            return Text(f"Removed {rule}.")
        return Text(f"No such rule: {rule}.", error=True)
    if rule and what in _GIVEN:
        which, said = _GIVEN[what]
        agent.project.add_permission_rule(which, rule)
        return Text(f"{said} in this project: {rule}.")
    if args:
        modes = " | ".join(mode for mode in PERMISSION_MODES if mode != "bypass")
        return Text(f"Usage: /permissions [{modes} | allow|ask|deny RULE | remove RULE]", error=True)
    now = agent.mode.now
    modes_shown = [mode for mode in MODE_HELP if mode != "bypass" or mode == now]
    sections = [
        Section(
            "Mode",
            [
                Row(mode, MODE_HELP[mode], mark="on" if mode == now else "", key=mode, keys=("enter",))
                for mode in modes_shown
            ],
        )
    ]
    rules = agent.project.permission_rules()
    for source in dict.fromkeys(source for _, _, source in rules):
        own = [(decision, rule) for decision, rule, where in rules if where == source]
        keys: tuple[str, ...] = ("a",) if source.startswith(OFFERED) else ()
        title, keys = _SOURCES.get(source, (f"Rules from {source}" if not keys else f"Rules {source}", keys))
        rows = [Row(decision, one_line(rule, LONGEST), key=rule, keys=keys) for decision, rule in own]
        sections.append(Section(title, rows))
    if not rules:
        sections.append(Section("Rules", [], "None yet."))
    elif any(decision == "allow" and rule.startswith(("bash", "outside")) for decision, rule, _ in rules):
        note = f"Outside the sandbox, rules apply only in {agent.root}, and only while its configuration is unchanged."
        sections[-1] = replace(sections[-1], note=note)
    return Info("Permissions", sections, "/permissions", _RULES, foreign=True)


def _trust_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    yield "show", "show what would be trusted"
    yield "yes", "trust what was shown"


@command("trust", args="[show|yes]", choices=_trust_choices)
async def trust(agent: Agent, args: str) -> CommandResult:
    """Show what this folder brings along, and trust it.

    That is each of its hooks, MCP servers, rules, settings, skills, commands and types of subagents, with the files
    they run. What is new or changes later is not used until you have seen it here.
    """
    if args not in ("", "show", "yes"):
        return Text("Usage: /trust [show|yes]", error=True)
    project = agent.project
    if args == "yes" and (line := project.trust()):
        return Text(line)
    question = trust_info(project.trust_question(), first="" if args != "yes" else NOT_SHOWN)
    if question is not None:
        return question
    if project.trust_state == "trusted":
        return Text(f"{agent.root} is already trusted.")
    return Text(project.trust() or project.trust_line)


NOT_SHOWN = "Nothing is trusted yet: this was not shown before, or has changed."
READ_ANYWAY = "AGENTS.md, with the files that it names, is read in any folder."
TRUST_TITLE = "Trust what this folder brings?"


def trust_info(shown: Sequence[TrustDetail], first: str = "") -> Info | None:
    """What waits for the user as rows, all of it; None where nothing does."""
    sections = [Section(first, [])] if first else []
    for title, group in groupby(shown, lambda one: one.kind):
        rows = [Row(text=line) for one in group for line in (one.title, *(f"    {line}" for line in one.lines))]
        sections.append(Section(title, rows))
    if not sections or not shown:
        return None
    hidden = sum(one.unshown for one in shown)
    also = f" and {plural(hidden, 'file')} cannot be" if hidden else ""
    key = Action("y", "trust all of it", "/trust yes", whole=True, hidden=also)
    sections[-1] = replace(sections[-1], note=f"{sections[-1].note} {READ_ANYWAY}".strip())
    asked = any(one.asked for one in shown)
    return Info(TRUST_TITLE, sections, "/trust show", [key] if asked else [], foreign=True)


@command("init")
async def init(agent: Agent, args: str) -> CommandResult:
    """Ask the model to write AGENTS.md for this project."""
    text = f"{INIT_PROMPT}\n\n{args}" if args else INIT_PROMPT
    from agent_tui.models.messages import range_of

    return Submit(text, tuple(range_of(args, text)))


@command("tools")
async def tools_(agent: Agent, args: str) -> CommandResult:
    """List the model's tools and what each costs in tokens."""
    groups: dict[str, list[Row]] = {}
    for name, where, what, cost, enabled in sorted(
        agent.project.tools(), key=lambda t: (t[1] != "builtin", t[1], t[0])
    ):
        row = Row(one_line(name, 200), one_line(what, LONGEST), tokens(cost, True) if enabled else "off")
        groups.setdefault(where, []).append(row)
    sections = [
        Section(_GROUPS.get(where, where.replace("mcp:", "MCP server ")), rows) for where, rows in groups.items()
    ]
    return Info("Tools and their tokens", sections or [Section("", [Row(text="No tools.")])], foreign=True)


_GROUPS = {"builtin": "Built in", "left out": "Left out", "disabled": "Switched off"}


def _mcp_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    for name, state, _ in agent.project.mcp_servers():
        yield f"reconnect {name}", state
        if agent.project.mcp_may_sign_in(name):
            yield f"login {name}", "sign in with the browser"
            yield f"logout {name}", "forget the sign-in"


_SERVER = (
    Action("r", "reconnect", "/mcp reconnect {row}", "NAME"),
    Action("s", "sign in", "/mcp login {row}", "NAME"),
    Action("o", "sign out", "/mcp logout {row}", "NAME"),
)


@command("mcp", args="[reconnect|login|logout NAME]", choices=_mcp_choices)
async def mcp(agent: Agent, args: str) -> CommandResult:
    """Show MCP servers and their state; sign in and out.

    /mcp login NAME opens the browser. Where that is on another machine, /mcp login NAME ADDRESS takes the address it
    ended on.
    """
    what, _, name = args.partition(" ")
    name = name.strip()
    if what == "reconnect" and name:
        return Text(await agent.project.mcp_reconnect(name))
    if what == "login" and name:
        return await _mcp_login(agent, name)
    if what == "logout" and name:
        return Text(await agent.project.mcp_sign_out(name))
    if what == "address" and name in agent.project.sign_in_addresses:
        return Copy(agent.project.sign_in_addresses[name], "the address")
    if args:
        return Text("Usage: /mcp [reconnect|login|logout NAME]", error=True)
    rows = [
        Row(
            one_line(name, 200),
            one_line(detail, LONGEST),
            state,
            key=name,
            keys=("r", "s", "o") if agent.project.mcp_may_sign_in(name) else ("r",),
        )
        for name, state, detail in agent.project.mcp_servers()
    ]
    none = Row(text="No MCP servers. Add them to .mcp.json, or to [mcp.NAME] in the configuration.")
    actions = [action for action in _SERVER if any(action.key in row.keys for row in rows)]
    return Info("MCP servers", [Section("", rows or [none])], "/mcp", actions, foreign=True)


async def _mcp_login(agent: Agent, name: str) -> CommandResult:
    name, _, ended = name.partition(" ")
    if ended:
        await agent.project.mcp_paste(name, ended)
        return Text("Taken; whether it worked is said in a moment.")
    address = await agent.project.mcp_sign_in(name)
    opened = await asyncio.to_thread(open_address, address)
    title = "Opened in your browser:" if opened else "Open this address in a browser:"
    note = (
        "Sign in there; the rest goes by itself. A browser on another machine ends on an address that it cannot open: "
        "paste that one here."
    )
    actions = (
        Action("a", "copy the address", f"/mcp address {name}"),
        Action("p", "paste", f"/mcp login {name} {{typed}}", typed="ADDRESS", hint="the address it ended on"),
    )
    section = Section(title, [Row(text=address)], note)
    return Info(f"Sign in to {name}", [section], f"/mcp address {name}", actions, foreign=True)


@command("agents")
async def agents(agent: Agent, args: str) -> CommandResult:
    """List the types of subagents."""
    sections: dict[str, list[Row]] = {}
    for name, what, folder in agent.project.agent_types():
        sections.setdefault(folder, []).append(Row(one_line(name, 300), one_line(what, LONGEST)))
    none = Row(text="No types. Add them as .agent-tui/agents/NAME.md and trust the folder.")
    listed = [Section(folder, rows) for folder, rows in sections.items()]
    return Info("Subagent types", listed or [Section("", [none])], foreign=True)


@command("skills")
async def skills(agent: Agent, args: str) -> CommandResult:
    """List the skills the model can load."""
    rows = [Row(one_line(name, 200), one_line(what, LONGEST)) for name, what, _ in agent.project.skills()]
    none = Row(text="No skills. Add them as .agents/skills/NAME/SKILL.md and trust the folder.")
    return Info("Skills", [Section("", rows or [none])], foreign=True)


_HOOK_MARKS: dict[HookState, Mark] = {"on": "ok", "waits": "", "problem": "warn"}


@command("hooks")
async def hooks(agent: Agent, args: str) -> CommandResult:
    """List the commands that run at events.

    A ! stands before one that is not used, with the reason; hooks of a folder wait until you trust it.
    """
    sources: dict[str, list[Row]] = {}
    for source, state, when, text in agent.project.hooks():
        title = f"{one_line(source, 200)}{' (ignored until /trust)' if state == 'waits' else ''}"
        row = Row(one_line(when, 200), one_line(text, LONGEST), mark=_HOOK_MARKS[state])
        sources.setdefault(title, []).append(row)
    sections = [Section(title, rows) for title, rows in sources.items()]
    none = Row(text="No hooks yet. Add them to [hooks] in the configuration.")
    return Info("Hooks", sections or [Section("", [none])], "/hooks", foreign=True)


def _doctor_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    yield "--forget", "forget the limits learned from servers"


@command("doctor", aliases=("config",), args="[--forget]", choices=_doctor_choices)
async def doctor(agent: Agent, args: str) -> CommandResult:
    """Check the installation, and show where things are.

    /doctor --forget forgets the model limits learned from servers.
    """
    if args == "--forget":
        count = await agent.models.forget_limits()
        return Text(forgotten_text(count))
    if args:
        return Text("Usage: /doctor [--forget]", error=True)
    found: dict[bool, list[Row]] = {True: [], False: []}
    for state, what, detail in await agent.project.doctor():
        mark: Mark = "fail" if state == "fail" else "warn" if state == "warn" else "ok"
        found[mark != "ok"].append(Row(what, one_line(detail, LONGEST), mark=mark))
    note = "Precedence: flags, AGENT_TUI_* variables, project configuration, your configuration."
    sections = [Section("Needs attention", found[True])] if found[True] else []
    forget = Action("f", "forget learned limits", "/doctor --forget")
    learned = any(row.name == LEARNED for row in found[False])
    return Info("Doctor", [*sections, Section("Fine", found[False], note)], "/doctor", [forget] if learned else [])
