"""The flags of the chat: one parser made of their table, what environment variables say instead of them, and completion
scripts for shells. Everything of argparse that it does not promise is used here.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from agent_tui import terminal_output
from agent_tui.config import FLAGS, Flag
from agent_tui.errors import ConfigError


class Parser(argparse.ArgumentParser):
    """Prints what is cleaned: argparse repeats arguments in its errors. Of a flag that does not exist it says which
    was meant. Lines of the text around the flags stay as they are."""

    raises = False
    """What is wrong is raised as ConfigError: a program reads it, not the usage."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, **settings})

    def error(self, message: str) -> NoReturn:
        begin, mark, unknown = message.partition("unrecognized arguments: ")
        if mark:
            from agent_tui.cli.other_agents import did_you_mean

            words = [
                word + did_you_mean(word, _flags(self)) if word.startswith("--") else word
                for word in unknown.split(" ")
            ]
            message = begin + mark + " ".join(words)
        if self.raises:
            raise ConfigError(f"{message[:1].upper()}{message[1:]}.")
        super().error(message)

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            terminal_output.write(file or sys.stderr, message)


class _Version(argparse.Action):
    """What a report of a fault needs: the first line for scripts, the second says what runs it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        import platform

        from agent_tui.tools.git.repository import version_and_commit

        terminal_output.say(f"agent-tui {version_and_commit()}")
        terminal_output.say(
            f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, in {sys.prefix}"
        )
        parser.exit()


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    """The flags of a parser and of its subcommands."""
    every = [parser, *subparsers_of(parser)]
    return [spelling for one in every for action in one._actions for spelling in action.option_strings]


def subparsers_of(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The parsers of its subcommands and of what those can do."""
    choices = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    below = [one for named in choices for one in named.values() if isinstance(one, argparse.ArgumentParser)]
    return [found for one in below for found in (one, *subparsers_of(one))]


def takes_values(parser: argparse.ArgumentParser) -> dict[str, bool]:
    """The flags of a parser by all their spellings, and whether a value follows."""
    return {spelling: action.nargs != 0 for action in parser._actions for spelling in action.option_strings}


def arguments_of(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    """Returns the arguments that a parser takes, in the order they were added."""
    return parser._actions


SUBCOMMANDS = (
    "context",
    "sessions",
    "export",
    "models",
    "auth",
    "doctor",
    "config",
    "import",
    "mcp",
    "serve",
    "acp",
    "completions",
)

EPILOG = """\
examples:
  agent-tui                              start a chat
  agent-tui -c                           continue this project's last chat
  agent-tui -p "why does main.py fail?"  print the answer and exit
  git diff | agent-tui -p "review this"  add what is piped in to the prompt

commands:
  context        show what the next request would cost, row by row
  sessions       list, search, delete, check and repair sessions
  export ID      export a session as JSON, Markdown or HTML
  models         list the models you can use
  auth           set, list, move or remove your keys
  doctor         check this installation
  config         show or create the configuration file
  import         copy what you wrote for Claude Code or Codex
  serve          open the chat in a browser
  acp            serve an editor (Agent Client Protocol)
  completions    print a completion script for bash, zsh or fish
agent-tui COMMAND --help shows the flags of a command.

Every flag has an environment variable: AGENT_TUI_MAX_TURNS for --max-turns.
Switches take 1 or 0; repeatable flags take a JSON list, or one value per line.
The flag wins over its variable; repeatable flags add to it.

With -p, agent-tui does not wait for an open pipe that sends nothing; run
agent-tui -p PROMPT - to read standard input to its end.

exit codes:
  0 ok, 1 error, 2 wrong usage or configuration, 53 step limit reached,
  54 budget reached, 55 the model refused or its answer was empty,
  56 a permission was missing (--fail-on-denial), 75 try again later,
  130 interrupted, 141 nobody reads the output any more
"""

_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


CLAUDE_LINES = "claude-json"
_SDK_BEGINS, _SDK_ENDS = ["--output-format", "stream-json", "--verbose"], ["--input-format", "stream-json"]


def is_driven(arguments: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Returns whether the Claude Agent SDK started the program, or someone who wants its lines: it begins and ends its
    arguments always alike, and says in the environment that it is there."""
    pairs = zip(arguments, [*arguments, ""][1:], strict=True)
    formats = [flag.partition("=")[2] or after for flag, after in pairs if flag.partition("=")[0] == "--output-format"]
    as_sdk = [*arguments[:3]] == _SDK_BEGINS and [*arguments[-2:]] == _SDK_ENDS
    return formats[-1:] == [CLAUDE_LINES] or (
        as_sdk and formats[-1] == "stream-json" and "CLAUDE_AGENT_SDK_VERSION" in environ
    )


def build_parser() -> Parser:
    """The parser of the chat itself; subcommands have their own. What was not given is None or an empty list."""
    parser = Parser(
        prog="agent-tui",
        usage="agent-tui [FLAGS] [PROMPT]\n       agent-tui [FLAGS] -p [PROMPT] [-]\n       agent-tui COMMAND …",
        description="A terminal chat agent whose context numbers are true and add up.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("prompt", nargs="*", default=[], metavar="PROMPT", help="first message")
    parser.add_argument(
        "-p", "--print", dest="headless", nargs="?", const="", metavar="PROMPT", help="print the answer and exit"
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print version, commit and Python, and exit")
    groups: dict[str, argparse._ArgumentGroup] = {}
    for flag in FLAGS:
        if flag.group not in groups:
            groups[flag.group] = parser.add_argument_group(flag.group)
        add_flag(groups[flag.group], flag)
    return parser


def add_command(to: Any, name: str, what: str, *examples: str, **settings: Any) -> argparse.ArgumentParser:
    """Adds a subcommand whose help says ``what`` it does, and ends with ``examples`` of what follows its name."""
    parser: argparse.ArgumentParser = to.add_parser(
        name, help=what, description=f"{what[0].upper()}{what[1:]}.", **settings
    )
    told = [f"  {parser.prog} {example}".rstrip() for example in examples]
    parser.epilog = "\n".join(["examples:" if len(told) > 1 else "example:", *told])
    return parser


def add_flag(to: argparse._ActionsContainer, flag: Flag, default: Any = None) -> None:
    """Adds a flag of the table to a parser, or a group of one. ``default``: the value where it is not given."""
    kind: dict[str, Any] = {"dest": flag.dest, "help": flag.help, "default": default}
    if flag.kind == "switch":
        kind["action"] = argparse.BooleanOptionalAction if flag.negatable else "store_true"
    else:
        types = {"path": _path, "paths": _path, "schema": _schema, "number": _number, "dollars": _dollars}
        kind |= {"metavar": flag.metavar, "type": types.get(flag.kind)}
    if flag.kind in ("texts", "paths"):
        kind |= {"action": "append", "default": []}
    if flag.choices:
        kind |= {"choices": flag.choices, "type": lambda text: flag.also.get(text, text)}
    if flag.optional:
        kind |= {"nargs": "?", "const": ""}
    to.add_argument(*flag.spellings, **kind)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None


def _dollars(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None


def _path(text: str) -> Path:
    """An empty path is a variable that was not set, not the folder one is in."""
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    return Path(text)


def _schema(text: str) -> Path | str:
    """A file, or the schema itself."""
    return text if text.lstrip().startswith("{") else _path(text)


def given(values: argparse.Namespace, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Returns the value of each flag that was given, by its field in ``Options``: from the command line, else from its
    variable; of lists both. ``variables`` counts those that came from one. Raises ConfigError for a variable whose
    value does not fit."""
    variables = os.environ if environ is None else environ
    found: dict[str, Any] = {}
    told: dict[str, int] = {}
    for flag in FLAGS:
        typed = getattr(values, flag.dest)
        text = variables.get(flag.variable, "")
        said = _of_variable(flag, text) if text.strip() else None
        if isinstance(typed, list):
            value: Any = [*(said or []), *typed]
        else:
            value = said if typed is None else typed
        if said is not None and (isinstance(typed, list) or typed is None):
            told[flag.dest] = len(said) if isinstance(said, list) else 1
        if value is not None and value != []:
            found[flag.dest] = value
    return {**found, "variables": told}


def named_as_given(problem: str, arguments: Sequence[str]) -> str:
    """Returns a problem with a flag, said of its variable where that gave the value and nothing was typed."""
    for flag in FLAGS:
        long = f"--{flag.name}"
        typed = any(
            argument.partition("=")[0] == long or (flag.short and re.match(rf"-{flag.short}(?!-)", argument))
            for argument in arguments
        )
        if os.environ.get(flag.variable, "").strip() and not typed and re.match(rf"{long}[ :]", problem):
            return f"environment: {flag.variable}{problem.removeprefix(long)}"
    return problem


def _of_variable(flag: Flag, text: str) -> Any:
    match flag.kind:
        case "switch":
            word = text.strip().lower()
            if word not in _YES | _NO:
                raise ConfigError(f"environment: {flag.variable} must be 1 or 0, not {text!r}.")
            return word in _YES
        case "number" | "dollars":
            try:
                return int(text) if flag.kind == "number" else float(text)
            except ValueError:
                raise ConfigError(f"environment: {flag.variable} must be a number, not {text!r}.") from None
        case "texts" | "paths":
            entries = _entries(flag, text)
            return [Path(entry) for entry in entries] if flag.kind == "paths" else entries
        case "path":
            return Path(text)
        case "schema":
            return _schema(text)
        case "text":
            text = flag.also.get(text, text)
            if flag.choices and text not in flag.choices:
                raise ConfigError(
                    f"environment: {flag.variable} must be one of {', '.join(flag.choices)}, not {text!r}."
                )
            return text


def _entries(flag: Flag, text: str) -> list[str]:
    if not text.lstrip().startswith("["):
        return [line.strip() for line in text.splitlines() if line.strip()]
    import json  # most starts have no such list

    try:
        entries = json.loads(text)
    except ValueError:
        entries = None
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise ConfigError(f"environment: {flag.variable} must be a JSON list of strings, or one value per line.")
    return entries


Shell = Literal["bash", "zsh", "fish"]


def script(shell: Shell, parser: argparse.ArgumentParser, commands: tuple[str, ...]) -> str:
    """The script to source, e.g. ``source <(agent-tui completions bash)``."""
    options = sorted(flag for action in arguments_of(parser) for flag in action.option_strings)
    if shell == "bash":
        return _bash(options, commands)
    if shell == "zsh":
        return f"#compdef agent-tui\nautoload -U +X bashcompinit && bashcompinit\n{_bash(options, commands)}"
    return _fish(parser, commands)


def _bash(options: list[str], commands: tuple[str, ...]) -> str:
    return f"""\
_agent_tui() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
    case $previous in
        --output-format) COMPREPLY=($(compgen -W "text json stream-json claude-json" -- "$current")); return;;
        --permission-mode) COMPREPLY=($(compgen -W "ask accept-edits plan auto bypass" -- "$current")); return;;
        --config) COMPREPLY=($(compgen -f -- "$current")); return;;
        --add-dir) COMPREPLY=($(compgen -d -- "$current")); return;;
        sessions) COMPREPLY=($(compgen -W "list delete check repair --all --search --json" -- "$current")); return;;
        -r|--resume|export|delete|check|repair)
            COMPREPLY=($(compgen -W "$(agent-tui sessions 2>/dev/null | cut -d' ' -f1)" -- "$current")); return;;
    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "{" ".join(options)}" -- "$current"))
    elif [[ $COMP_CWORD == 1 ]]; then
        COMPREPLY=($(compgen -W "{" ".join(commands)}" -- "$current"))
    fi
}}
complete -F _agent_tui agent-tui"""


def _fish(parser: argparse.ArgumentParser, commands: tuple[str, ...]) -> str:
    lines = [f"complete -c agent-tui -n __fish_use_subcommand -f -a {name}" for name in commands]
    lines += [
        f"complete -c agent-tui -n '__fish_seen_subcommand_from sessions' -f -a {name}"
        for name in ("delete", "check", "repair")
    ]
    for action in arguments_of(parser):
        parts = ["complete -c agent-tui"]
        parts += [f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in action.option_strings]
        if not action.option_strings:
            continue
        if action.choices:
            parts.append(f"-x -a '{' '.join(map(str, action.choices))}'")
        text = (action.help or "").replace("'", "")
        parts.append(f"-d '{text}'")
        lines.append(" ".join(parts))
    return "\n".join(lines)
