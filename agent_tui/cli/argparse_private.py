"""Everything of argparse that it does not promise."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from agent_tui import door


class Parser(argparse.ArgumentParser):
    """Speaks through the door: argparse repeats arguments in its errors. Of a flag that does not exist it says which
    was meant."""

    def error(self, message: str) -> NoReturn:
        begin, mark, unknown = message.partition("unrecognized arguments: ")
        if mark:
            from agent_tui.cli.other_agents import did_you_mean

            words = [
                word + did_you_mean(word, _flags(self)) if word.startswith("--") else word
                for word in unknown.split(" ")
            ]
            message = begin + mark + " ".join(words)
        super().error(message)

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            door.write(file or sys.stderr, message)


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    """The flags of a parser and of its subcommands."""
    below = [one for action in parser._actions if isinstance(action.choices, dict) for one in action.choices.values()]
    own = [spelling for action in parser._actions for spelling in action.option_strings]
    return own + [flag for one in below if isinstance(one, argparse.ArgumentParser) for flag in _flags(one)]


def arguments_of(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    """What a parser takes, in the order it was added."""
    return parser._actions
