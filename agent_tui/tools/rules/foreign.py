"""Permission rules as other agents write them: in lists of flags, and in the settings of a project or the user."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

from agent_tui.errors import ConfigError
from agent_tui.paths import CLAUDE_SETTINGS
from agent_tui.records import dataclass
from agent_tui.text.clean import plain_line
from agent_tui.tools.files.beneath import read_bounded
from agent_tui.tools.mcp_names import is_mcp_name, with_all_tools
from agent_tui.tools.rules.standing import Which

_NOT_HERE = frozenset({"notebookedit", "slashcommand", "toolsearch", "lsp"})


def is_not_here(tool: str) -> bool:
    """Returns whether it is a tool that a list may name and nothing here can be."""
    return re.sub(r"[^a-z]", "", tool.lower()) in _NOT_HERE


_USED = frozenset({"permissions", "hooks", "$schema"})
LARGEST = 1_000_000
"""Bytes of such a file that is read."""


@dataclass(slots=True)
class ForeignRules:
    """``rules`` are ours, each with the place it is from. What allows is only offered: nothing that was written for
    another agent allows anything here unasked. ``unused`` are lines on what means nothing here."""

    rules: list[tuple[Which, str, str]] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def joined(self, other: ForeignRules) -> ForeignRules:
        """These and then others."""
        more = [rule for rule in other.rules if rule not in self.rules]
        return ForeignRules([*self.rules, *more], [*self.unused, *other.unused])

    def become(self, other: ForeignRules) -> None:
        """They were read again."""
        self.rules, self.unused = other.rules, other.unused

    def in_force(self) -> list[tuple[Which, str]]:
        """Those that deny or ask."""
        return [(which, rule) for which, rule, _ in self.rules if which != "allow"]


Accepts: TypeAlias = Callable[[str, Which, str], bool]
"""Whether a rule counts: the file it is in, below the project, and what it says."""


def foreign_rules(
    folder: Path, accepts: Accepts | None = None, also: Iterable[tuple[str, Which, str]] = ()
) -> ForeignRules:
    """The rules in settings of other agents below a folder, as far as they are accepted, and those that hold ``also``.
    Reads files; nothing is raised."""
    found = ForeignRules()
    for place in CLAUDE_SETTINGS:
        source = place.as_posix()
        settings = _read(folder / place, source, found)
        permissions = settings.get("permissions")
        permissions = permissions if isinstance(permissions, dict) else {}
        named = [each for each in _named(permissions) if accepts is None or accepts(source, *each)]
        named += [(which, name) for where, which, name in also if where == source]
        for which, name in named:
            try:
                rules = [(which, rule, source) for rule in _checked(name)]
                found.rules += [each for each in rules if each not in found.rules]
            except ConfigError:
                found.unused.append(f"{source}: {which} {plain_line(name, 100)}")
        other = [*(key for key in settings if key not in _USED)]
        other += [f"permissions.{key}" for key in permissions if key not in ("allow", "ask", "deny")]
        if other:
            found.unused.append(f"{source}: {plain_line(', '.join(other), 300)}")
    return found


def rules_of_settings(text: str) -> list[tuple[Which, str]]:
    """The rules in the text of such a file, as they are written there."""
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        return []
    permissions = settings.get("permissions") if isinstance(settings, dict) else None
    return [*_named(permissions)] if isinstance(permissions, dict) else []


def _named(permissions: dict[str, object]) -> Iterator[tuple[Which, str]]:
    which: Which
    for which in ("deny", "ask", "allow"):
        entries = permissions.get(which)
        yield from (
            (which, entry) for entry in (entries if isinstance(entries, list) else []) if isinstance(entry, str)
        )


def _checked(text: str) -> list[str]:
    """Raises ConfigError for what is no rule here."""
    from agent_tui.tools.rules.rule import checked_rules

    rules = own_rules(text)
    checked_rules(rules, "permissions")
    if not rules:
        raise ConfigError("There is no such tool here.")
    return rules


def _read(file: Path, shown: str, found: ForeignRules) -> dict[str, object]:
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            return {}
        value = json.loads(read_bounded(file.resolve(), LARGEST).decode("utf-8", "replace"))
    except (OSError, ValueError, RecursionError) as error:
        found.unused.append(f"{shown}: cannot be read ({plain_line(str(error), 100)})")
        return {}
    return value if isinstance(value, dict) else {}


def own_rules(text: str) -> list[str]:
    """A list like ``Bash(git diff:*), Read(src/**) Edit`` as rules of ours. Raises ConfigError where its brackets
    do not fit."""
    found: list[str] = []
    for part in parts_of(text):
        match = re.fullmatch(r"([^()\s]+)(?:\((.*)\))?", part, re.DOTALL)
        if match is None:
            raise ConfigError(f"{part!r} must be `tool` or `tool(pattern)`.")
        rule = _own_rule(match[1], match[2])
        if rule is not None:
            found.append(rule)
    return found


def parts_of(text: str) -> list[str]:
    """Returns the parts of a text that commas and blanks set apart outside of brackets."""
    parts, deep = [""], 0
    for sign in text:
        deep += (sign == "(") - (sign == ")")
        if deep <= 0 and (sign == "," or sign.isspace()):
            parts.append("")
        else:
            parts[-1] += sign
    return [part for part in parts if part]


def _own_rule(name: str, pattern: str | None) -> str | None:
    from agent_tui.tools.aliases import own_name  # most starts have no such rules

    if is_not_here(name):
        return None
    if is_mcp_name(name):
        return with_all_tools(name)
    tool = own_name(name)
    if pattern is None or pattern in ("", "*"):
        return tool
    if tool == "bash":
        return f"bash({re.sub(r':[*]$', ' *', pattern)})"
    if tool == "fetch":
        return f"fetch({pattern.removeprefix('domain:')})"
    if pattern.startswith("//"):
        pattern = pattern[1:]
    elif pattern.startswith("/"):
        pattern = f".{pattern}"
    return f"{tool}({pattern})"
