"""Commands about the project and what the agent may do in it: permissions, trust, tools, MCP, skills, doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.commands.registry import CommandResult, Submit, Text, command
from agent_tui.config import MODES_ELSEWHERE, PERMISSION_MODES
from agent_tui.store.facts import forgotten_text
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.engine.agent import Agent

MODE_HELP = {
    "ask": "asks before edits and commands",
    "accept-edits": "edits files in the project without asking",
    "plan": "reads only",
    "auto": "asks for nothing that no rule forbids",
    "bypass": "asks for nothing and holds nothing: for containers that are thrown away",
}

DETAIL = 1_000
"""Characters of what ``/doctor`` says of one check: what to do stands at the end of it."""

INIT_PROMPT = """\
Look at this project and write a file AGENTS.md in its root for coding agents who will work here. Read the README, \
the build and test configuration and a few representative source files first. Say in at most 60 lines: what the \
project is, how to build, run and test it (exact commands), how the code is laid out, and the conventions that are \
visible in the code. If AGENTS.md exists already, improve it and keep what is still true."""


def _permission_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    yield from ((mode, text) for mode, text in MODE_HELP.items() if mode != "bypass")
    for _, rule, source in agent.project.permission_rules():
        if source != "config":
            yield f"remove {rule}", source


@command("permissions", args="[mode] | remove RULE", choices=_permission_choices)
async def permissions(agent: Agent, args: str) -> CommandResult:
    """Shows or sets what the agent may do without asking.

    Modes: ask, accept-edits, plan (reads only), auto; Shift+Tab goes through the first three. Rules added with
    "always" can be removed with /permissions remove RULE.
    """
    args = MODES_ELSEWHERE.get(args, args)
    for mode in PERMISSION_MODES:
        if args == mode == "bypass" != agent.mode.now:
            line = "bypass is for the start: --permission-mode bypass, or mode in your own configuration."
            return Text(line, error=True)
        if args == mode:
            agent.mode.set(mode)
            return Text(f"Permission mode: {mode} ({MODE_HELP[mode]}).")
    if args.startswith("remove "):
        rule = args.removeprefix("remove ").strip()
        if agent.project.remove_permission_rule(rule):
            return Text(f"Removed {rule}.")
        return Text(f"No remembered rule {rule}.", error=True)
    if args:
        modes = ", ".join(mode for mode in PERMISSION_MODES if mode != "bypass")
        return Text(f"Modes: {modes}; or remove RULE.", error=True)
    lines = [f"Mode: {agent.mode.now} ({MODE_HELP[agent.mode.now]})"]
    rules = agent.project.permission_rules()
    lines += [f"  {decision:<6} {one_line(rule, 100)}  ({source})" for decision, rule, source in rules]
    if not rules:
        lines.append("  no rules")
    elif any(decision == "allow" and rule.startswith(("bash", "outside")) for decision, rule, _ in rules):
        lines.append(f"  Outside the sandbox they hold in {agent.root} alone, while its configuration is as it was.")
    return Text("\n".join(lines))


def _trust_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    yield "show", "what this folder brings along"
    yield "yes", "trusts what was shown"


@command("trust", args="[show|yes]", choices=_trust_choices)
async def trust(agent: Agent, args: str) -> CommandResult:
    """Trusts this folder: its config, MCP servers, skills and commands are read.

    What is trusted is their content. When it changes, or another repository stands at this path, it is shown and asked
    again: /trust yes.
    """
    if args not in ("", "show", "yes"):
        return Text("/trust takes nothing, show or yes.", error=True)
    if agent.project.trusted:
        return Text(f"{agent.root} is trusted already.")
    if args == "show":
        return Text(agent.project.trust_details(), foreign=True)
    return Text(agent.project.trust(args == "yes"))


@command("init")
async def init(agent: Agent, args: str) -> CommandResult:
    """Asks the model to write AGENTS.md for this project."""
    return Submit(f"{INIT_PROMPT}\n\n{args}" if args else INIT_PROMPT)


@command("tools")
async def tools_(agent: Agent, args: str) -> CommandResult:
    """Lists the tools the model is given and what each costs in tokens."""
    listed = agent.project.tools()
    if not listed:
        return Text("No tools.")
    lines: list[str] = []
    group = ""
    for name, where, what, cost, enabled in sorted(listed, key=lambda t: (t[1] != "builtin", t[1], t[0])):
        if where != group:
            group = where
            lines.append(group)
        state = "" if enabled else "  (off)"
        lines.append(f"  {name:<18}{tokens(cost, True):>7}  {one_line(what, 90)}{state}")
    return Text("\n".join(lines))


def _mcp_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    return ((f"reconnect {name}", state) for name, state, _ in agent.project.mcp_servers())


@command("mcp", args="[reconnect NAME]", choices=_mcp_choices)
async def mcp(agent: Agent, args: str) -> CommandResult:
    """Shows MCP servers and their state."""
    if args.startswith("reconnect"):
        name = args.removeprefix("reconnect").strip()
        if not name:
            return Text("/mcp reconnect needs the server's name.", error=True)
        return Text(await agent.project.mcp_reconnect(name))
    if args:
        return Text("/mcp takes nothing or reconnect NAME.", error=True)
    servers = agent.project.mcp_servers()
    if not servers:
        return Text("No MCP servers. They are read from .mcp.json and from [mcp.NAME] in the configuration.")
    return Text("\n".join(f"{one_line(n, 30):<20} {state:<11} {one_line(d, 100)}".rstrip() for n, state, d in servers))


@command("skills")
async def skills(agent: Agent, args: str) -> CommandResult:
    """Lists the skills the model can load."""
    found = agent.project.skills()
    if not found:
        return Text("No skills. They are read from .agents/skills/NAME/SKILL.md once the folder is trusted.")
    return Text("\n".join(f"{one_line(name, 40):<24} {one_line(what, 100)}" for name, what, _ in found))


@command("doctor", args="[--forget]", choices=lambda agent: [("--forget", "what servers taught of models")])
async def doctor(agent: Agent, args: str) -> CommandResult:
    """Checks keys, servers, worker, database and terminal; --forget drops what servers taught."""
    if args == "--forget":
        count = await agent.models.forget_limits()
        return Text(forgotten_text(count))
    if args:
        return Text("/doctor takes nothing or --forget.", error=True)
    marks = {"ok": "✓", "warn": "!", "fail": "✗"}
    checks = await agent.project.doctor()
    return Text(
        "\n".join(f"{marks.get(state, '?')} {what:<22} {one_line(detail, DETAIL)}" for state, what, detail in checks)
    )
