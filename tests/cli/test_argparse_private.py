from __future__ import annotations

import argparse
import io
from contextlib import redirect_stderr

import pytest

from agent_tui.cli.arguments import Parser, arguments_of

pytestmark = pytest.mark.quick


def test_argparse_still_has_what_is_private_to_it() -> None:
    gone = [
        f"argparse.ArgumentParser no longer has {name}: used for {use}"
        for name, there, use in (
            ("_actions", isinstance(vars(argparse.ArgumentParser()).get("_actions"), list), "completions for shells"),
            ("_print_message", callable(getattr(argparse.ArgumentParser, "_print_message", None)), "harmless messages"),
        )
        if not there
    ]
    assert gone == []


def test_arguments_come_in_their_order() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--one")
    parser.add_argument("-t", "--two")
    assert [action.option_strings for action in arguments_of(parser)] == [["--one"], ["-t", "--two"]]


@pytest.mark.parametrize("arguments", [["--bad\x1b]0;owned\x07"], ["\x9b2J\x08"]])
def test_what_argparse_repeats_is_harmless(arguments: list[str]) -> None:
    heard = io.StringIO()
    with redirect_stderr(heard), pytest.raises(SystemExit):
        Parser(prog="p").parse_args(arguments)
    assert "p: error: unrecognized arguments" in heard.getvalue()
    assert not {"\x1b", "\x07", "\x9b", "\x08"} & set(heard.getvalue())
