"""``agent-tui mcp``: signs in to an MCP server, and out of it, from the shell."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui import terminal_output
from agent_tui.cli.arguments import add_command
from agent_tui.errors import AgentError, ConfigError
from agent_tui.options import Options
from agent_tui.paths import project_root, user_paths
from agent_tui.text.clean import clean_line

if TYPE_CHECKING:
    from agent_tui.config import McpServer


def add_mcp(commands: Any) -> None:
    """Adds the subcommand."""
    parser = add_command(commands, "mcp", "sign in to an MCP server, or out of it", "login docs", "logout docs")
    actions = parser.add_subparsers(required=True)
    for name, text, run in (
        ("login", "sign in with the browser", _login),
        ("logout", "forget a sign-in, and have the server revoke it", _logout),
    ):
        action = add_command(actions, name, text, "docs")
        action.add_argument("server", metavar="NAME", help="the server's name in .mcp.json or the configuration")
        action.add_argument("--mcp-config", type=Path, action="append", default=[], metavar="FILE", help="its servers")
        action.set_defaults(run=run)


def _server(values: argparse.Namespace) -> McpServer:
    """The server that is named. Raises ConfigError where there is none, or it cannot be used."""
    from agent_tui.bootstrap import load_settings
    from agent_tui.cli.stores import store_to_read
    from agent_tui.context.trust import FolderTrust
    from agent_tui.tools.mcp.config import plan_servers, servers_of

    paths, root = user_paths(), project_root(Path.cwd())
    with store_to_read() as store:
        trust = FolderTrust(root, store.trust)
    configured = dict(load_settings(Options(config=values.config), paths, trust.config()).mcp)
    for file in values.mcp_config:
        configured |= servers_of(file)
    plans = {plan.name: plan for plan in plan_servers(configured, root, trust.servers())}
    plan = plans.get(values.server)
    if plan is None:
        raise ConfigError(f"There is no MCP server {values.server}. There are: {', '.join(plans) or 'none'}.")
    if plan.server is None:
        raise ConfigError(f"The MCP server {plan.name} is {plan.state}: {plan.detail}.")
    return plan.server


def _login(values: argparse.Namespace) -> None:
    server = _server(values)
    asyncio.run(_sign_in(values.server, server))


async def _sign_in(name: str, server: McpServer) -> None:
    from agent_tui.commands.desktop import open_address
    from agent_tui.tools.mcp.oauth import SignIn
    from agent_tui.tools.mcp.tokens import Tokens

    loop = asyncio.get_running_loop()

    def show(address: str) -> None:
        opened = open_address(address)
        terminal_output.tell("Opened in your browser:" if opened else "Open this address in a browser:")
        terminal_output.say(address)
        sys.stdout.flush()
        if sys.stdin.isatty():
            terminal_output.tell("If the browser is on another machine, paste the address it ends on:")
            loop.add_reader(sys.stdin.fileno(), pasted)

    def pasted() -> None:
        line = sys.stdin.readline()
        try:
            if line.strip():
                one.take(line)
        except AgentError as error:
            terminal_output.complain(str(error))
        if not line:
            loop.remove_reader(sys.stdin.fileno())

    one = SignIn(Tokens(user_paths().data), name, server, show)
    try:
        where = await one.run()
    except AgentError as error:
        raise AgentError(f"MCP server {name}: {error}.") from error
    finally:
        if sys.stdin.isatty():
            loop.remove_reader(sys.stdin.fileno())
    terminal_output.tell(clean_line(f"Signed in to {name}. The token is kept in {where}."))


def _logout(values: argparse.Namespace) -> None:
    from agent_tui.tools.mcp.oauth import sign_out
    from agent_tui.tools.mcp.tokens import Tokens

    said = asyncio.run(sign_out(Tokens(user_paths().data), values.server, _server(values)))
    terminal_output.tell(
        clean_line(f"Signed out of {values.server}: {said}." if said else f"You are not signed in to {values.server}.")
    )
