"""The chat as the child of ``agent-tui serve``: its terminal is a page of the browser."""

from __future__ import annotations

import json
import os
import sys

from agent_tui.cli import main as run
from agent_tui.options import SERVED, Served


def main() -> None:
    """Runs the chat with the flags of the command line, for the page that the server speaks of."""
    told = json.loads(os.environ.pop(SERVED))
    sys.exit(run(sys.argv[1:], Served(told["columns"], told["lines"], told["resume"])))
