"""The flags of the chat, as one parser."""

from __future__ import annotations

import argparse
from pathlib import Path

from agent_tui import __version__, door
from agent_tui.config import PERMISSION_MODES

SUBCOMMANDS = ("context", "sessions", "export", "models", "auth", "doctor", "config", "completions")
SHARED_FLAGS = {
    "--config": ("context", "models", "doctor", "config"),
    "-m": ("context",),
    "--model": ("context",),
}
"""Flags of the chat that subcommands have, too: they may stand before the subcommand's name."""

EPILOG = """\
commands:
  context        what the next request of a session would cost, row by row
  sessions       list, delete, check and repair sessions
  export ID      a session as JSON, Markdown or HTML
  models         the models that can be used here
  auth           keys in the system's keyring: set, list, remove
  doctor         check this installation
  config         path, show, init
  completions    a completion script for bash, zsh or fish

exit codes: 0 ok, 1 error, 2 usage or configuration, 53 step limit, 75 try again later, 130 interrupted
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the chat itself; subcommands have their own."""
    parser = door.Parser(
        prog="agent-tui",
        description="A terminal chat agent whose context numbers are true and add up.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("prompt", nargs="?", default="", metavar="PROMPT", help="first message of the chat")
    parser.add_argument(
        "-p", "--print", dest="headless", nargs="?", const="", metavar="PROMPT", help="answer without a screen"
    )
    parser.add_argument(
        "--output-format", choices=("text", "json", "stream-json"), default="text", help="of --print (default: text)"
    )
    parser.add_argument("-m", "--model", metavar="NAME", help="a configured model, demo, or a LiteLLM name")
    parser.add_argument(
        "-c", "--continue", dest="continue_newest", action="store_true", help="go on with this project's newest session"
    )
    parser.add_argument("-r", "--resume", nargs="?", const="", metavar="ID", help="go on with a session; no ID: choose")
    parser.add_argument("--config", type=Path, metavar="FILE", help="one more configuration file, over the others")
    parser.add_argument(
        "--add-dir", dest="add_dirs", type=Path, action="append", default=[], metavar="DIR", help="may be worked in too"
    )
    parser.add_argument("--permission-mode", choices=PERMISSION_MODES, help="what the agent may do unasked")
    parser.add_argument("--trust", action="store_true", help="trust this folder's config, skills and MCP servers")
    parser.add_argument("--version", action="version", version=f"agent-tui {__version__}")
    return parser
