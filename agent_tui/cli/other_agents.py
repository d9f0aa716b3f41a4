"""Flags as other agents call them: taken where they mean the same here, else refused with what comes nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from agent_tui.tools.rules.foreign import own_rules, parts_of

_SAME: Mapping[str, tuple[str, ...]] = {
    "--dangerously-skip-permissions": ("--permission-mode", "bypass"),
    "--dangerously-bypass-approvals-and-sandbox": ("--permission-mode", "bypass"),
    "--yolo": ("--permission-mode", "bypass"),
    "--full-auto": ("--permission-mode", "auto"),
    "--no-session-persistence": ("--ephemeral",),
    "--skip-git-repo-check": (),
    "--include-partial-messages": ("--no-final",),
}
"""Switches, and what says the same here."""

_RENAMED: Mapping[str, str] = {
    "--approval-mode": "--permission-mode",
    "--max-budget-usd": "--budget",
    "--json-schema": "--output-schema",
    "--session-id": "--session",
    "--cwd": "--cd",
    "--work-dir": "--cd",
    "--prompt": "--print",
}
"""Flags with a value."""

_LISTS: Mapping[str, str] = {
    "--allowedtools": "--allow",
    "--allowed-tools": "--allow",
    "--disallowedtools": "--deny",
    "--disallowed-tools": "--deny",
    "--include-directories": "--add-dir",
}
"""Flags with several values, set apart by commas, blanks or as arguments of their own."""

_NEAREST: Mapping[str, str] = {
    "--sandbox": "--permission-mode plan, accept-edits or auto; [sandbox] in the configuration",
    "--ask-for-approval": "--permission-mode",
    "--tools": "--allow and --deny, or disabled in [tools]",
    "--append-system-prompt-file": "--append-system-prompt TEXT",
    "--fork-session": "/fork in the chat",
    "--name": "/rename in the chat",
    "--plugin-dir": "skills, commands, hooks or MCP servers; there are no plugins",
    "--ide": "agent-tui acp, from the editor",
    "--oss": "-m ollama/MODEL",
    "--debug": "--verbose; agent-tui doctor says where the log is",
    "--json": "--output-format json or stream-json",
    "--output-last-message": "--output-format text, with standard output to a file",
    "--settings": "--config FILE",
    "--profile": "--config FILE",
    "--effort": "/thinking in the chat, or reasoning_effort in [models.NAME] of the configuration",
    "--agent": "--system-prompt-file FILE",
    "--prompt-interactive": "only the prompt",
    "--worktree": "--cd DIR",
    "--quiet": "-p, which prints only the answer",
}
"""What has no equal, and what to use instead."""

_WORDS: Mapping[str, str] = {
    "login": "agent-tui auth set PROVIDER",
    "logout": "agent-tui auth remove PROVIDER",
    "resume": "agent-tui --resume",
    "update": "what installed agent-tui, e.g. pipx",
    "upgrade": "what installed agent-tui, e.g. pipx",
}
"""Subcommands of others, and what to use instead."""


def in_our_flags(arguments: Sequence[str]) -> list[str]:
    """The arguments with the flags of other agents put into ours. Raises ConfigError for a list that cannot be read."""
    found: list[str] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if argument == "--":
            return [*found, argument, *waiting]
        flag, sign, value = argument.partition("=")
        if (ours := _SAME.get(flag)) is not None and not sign:
            found += ours
        elif flag in _RENAMED:
            found.append(_RENAMED[flag] + sign + value)
        elif (ours_list := _LISTS.get(flag.lower())) is not None:
            values = [value] if sign else waiting[:1]
            del waiting[: 0 if sign else 1]
            while waiting and ours_list != "--add-dir" and _is_rules(waiting[0]):
                values.append(waiting.pop(0))
            found += [word for one in values for entry in _entries(ours_list, one) for word in (ours_list, entry)]
        else:
            found.append(argument)
    return found


def _entries(flag: str, text: str) -> list[str]:
    return [part for part in text.split(",") if part] if flag == "--add-dir" else own_rules(text)


def _is_rules(argument: str) -> bool:
    from agent_tui.tools.aliases import own_name  # most starts have no such list
    from agent_tui.tools.mcp_names import is_mcp_name
    from agent_tui.tools.rules.rule import KNOWN

    parts = [part.partition("(")[0] for part in parts_of(argument)]
    return bool(parts) and all(own_name(name) in KNOWN or is_mcp_name(name) for name in parts)


def did_you_mean(flag: str, known: Iterable[str]) -> str:
    """Returns the flag that one that does not exist was meant to be, or what to use instead, in brackets after a blank;
    empty where nothing is near."""
    name = flag.partition("=")[0]
    if nearest := _NEAREST.get(name):
        return f" (use {nearest})"
    near = difflib.get_close_matches(name, [one for one in known if one.startswith("--")], n=1, cutoff=0.7)
    # One that is known itself is another subcommand's.
    return f" (did you mean {near[0]}?)" if near and near[0] != name else ""


def no_command(word: str, subcommands: Sequence[str]) -> str:
    """Why one word alone is hardly a message: it is nearly a subcommand, or one of others. Empty where it is none."""
    near = difflib.get_close_matches(word, subcommands, n=1, cutoff=0.8)
    hint = f"Use {_WORDS[word]}." if word in _WORDS else f"Did you mean agent-tui {near[0]}?" if near else ""
    return f"No such command: {word!r}. {hint} To send it as a message: agent-tui -- {word}" if hint else ""
