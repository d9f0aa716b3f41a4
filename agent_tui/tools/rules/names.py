"""Which tools rules may name: a rule that names none would be silently without effect."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from fnmatch import fnmatchcase

from agent_tui.errors import ConfigError
from agent_tui.tools.rules.rule import Rule, parse_rule
from agent_tui.tools.word_sets import word_set

PATH_TOOLS = word_set("read write edit apply_patch list glob grep")
PATTERNED = PATH_TOOLS | word_set("bash outside fetch network mcp")
"""Tools whose rules may have a pattern. ``outside`` is ``bash`` where it asks to leave the sandbox, ``network`` are
hosts that commands in it may reach: a name, or ``registries`` for where packages come from; ``mcp`` the tools of MCP
servers: ``mcp(server.tool)``, ``mcp(server.*)``."""

KNOWN = PATTERNED | word_set("todo subagent skill jobs ask present_plan tool_search mcp_call")


def checked_rules(texts: Iterable[str], key: str) -> list[Rule]:
    """The rules under ``key`` of the configuration. Raises ConfigError naming the first that is none."""
    return [_checked(text, key) for text in texts]


def checked_servers_tools(texts: Iterable[str], key: str) -> list[Rule]:
    """The same for names of MCP servers' tools alone."""
    rules = checked_rules(texts, key)
    for rule in rules:
        if not _of_a_server(rule.tool) or rule.pattern is not None:
            raise ConfigError(f"{key}: {rule.tool!r} names no tool of an MCP server; write `server__tool`.")
    return rules


def _checked(text: str, key: str) -> Rule:
    try:
        rule = parse_rule(text)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None
    if _of_a_server(rule.tool):
        if rule.pattern is not None:
            raise ConfigError(f"{key}: {text!r}: a tool of an MCP server takes no pattern; write `{rule.tool}`.")
        return rule
    named = [tool for tool in KNOWN if fnmatchcase(tool, rule.tool)]
    if not named:
        near = difflib.get_close_matches(rule.tool.lower(), sorted(KNOWN), n=1, cutoff=0.6)
        those = f"there are {', '.join(sorted(KNOWN))}, and `server__tool` for those of MCP servers."
        hint = f"did you mean {near[0]}?" if near else those
        raise ConfigError(f"{key}: {text!r} names no tool: {hint}")
    if rule.pattern is not None and not any(tool in PATTERNED for tool in named):
        raise ConfigError(f"{key}: {text!r}: {named[0]} takes no pattern; write `{rule.tool}`.")
    return rule


def _of_a_server(name: str) -> bool:
    return "__" in name
