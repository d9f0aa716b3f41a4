"""Everything of argparse that it does not promise."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from agent_tui import door


class Parser(argparse.ArgumentParser):
    """Speaks through the door: argparse repeats arguments in its errors."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            door.write(file or sys.stderr, message)


def arguments_of(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    """What a parser takes, in the order it was added."""
    return parser._actions
