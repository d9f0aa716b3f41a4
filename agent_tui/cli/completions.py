"""Completion scripts for shells, made from the parsers themselves."""

from __future__ import annotations

import argparse
from typing import Literal

from agent_tui.cli.argparse_private import arguments_of

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
        --output-format) COMPREPLY=($(compgen -W "text json stream-json" -- "$current")); return;;
        --permission-mode) COMPREPLY=($(compgen -W "ask accept-edits plan auto bypass" -- "$current")); return;;
        --config) COMPREPLY=($(compgen -f -- "$current")); return;;
        --add-dir) COMPREPLY=($(compgen -d -- "$current")); return;;
        sessions) COMPREPLY=($(compgen -W "delete check repair --all --search --json" -- "$current")); return;;
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
