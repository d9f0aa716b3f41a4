"""``agent-tui serve``: the chat in a page of the browser."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agent_tui import terminal_output
from agent_tui.cli.arguments import add_command
from agent_tui.errors import EXIT_OK, AgentError
from agent_tui.options import SERVED, Served
from agent_tui.pipes.start import command as command_of
from agent_tui.text.clean import clean_line

LOOPBACK = "127.0.0.1"


def add_serve(commands: Any, folder_of: Callable[[Sequence[str]], Path]) -> None:
    """Adds it to the subcommands. ``folder_of`` says in which folder a chat with such flags works, and raises
    for those that it does not take."""
    serve = add_command(
        commands,
        "serve",
        "open the chat in a browser; takes the flags of the chat, too",
        "",
        "--port 8080 -m demo -c",
        allow_abbrev=False,
    )
    serve.add_argument("--host", default=LOOPBACK, metavar="HOST", help=f"address to listen on (default: {LOOPBACK})")
    serve.add_argument(
        "--port", default=0, type=_port, metavar="PORT", help="port to listen on (default: any free one)"
    )
    serve.set_defaults(run=lambda values: _serve(values, folder_of))


def _port(text: str) -> int:
    number = int(text) if text.isdecimal() else -1
    if not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError("must be a number from 0 to 65535")
    return number


def _serve(values: argparse.Namespace, folder_of: Callable[[Sequence[str]], Path]) -> int:
    flags: list[str] = values.rest
    folder = folder_of(flags)
    if any(find_spec(package) is None for package in ("textual_serve", "aiohttp")):
        raise AgentError("agent-tui serve needs the textual-serve package: pip install 'textual-serve<2'.")
    from agent_tui.hardening import hide_memory
    from agent_tui.serve.server import is_loopback, serve

    hide_memory()
    if not is_loopback(values.host):
        terminal_output.tell(
            f"WARNING: agent-tui listens on {clean_line(values.host)}, which other machines can reach. Anyone with the "
            "address below can run commands on this machine as you, and nothing is encrypted: not the address, not "
            "what you type and read. A tunnel is safer: ssh -L PORT:127.0.0.1:PORT HOST"
        )
    *start, root = command_of("agent_tui.cli.serve")

    def told(address: str) -> None:
        terminal_output.say(address)
        sys.stdout.flush()
        terminal_output.tell(
            "Open this address in a browser. Anyone who has it controls the chat: keep it secret. Ctrl+C ends the chat."
        )

    asyncio.run(
        serve([*start, *flags, root], values.host, values.port, f"agent-tui {folder.resolve().name}".strip(), told)
    )
    return EXIT_OK


def main() -> None:
    """Runs the chat with the flags of the command line, for the page that the server speaks of."""
    from agent_tui.cli import main as run

    told = json.loads(os.environ.pop(SERVED))
    sys.exit(run(sys.argv[1:], Served(told["columns"], told["lines"], told["resume"])))
