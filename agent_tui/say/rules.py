"""Rules that an answer adds, in words: as a part of a sentence, and explained one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.text.cells import shorten
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.models.events import RuleOffer

LONG_PATTERN = 400
"""Cells of a rule that are shown in a row; the step after it shows all of it."""
NAMED, ROW = 2, 70
"""So many rules an answer names, where they fit into so many cells: the row of a screen of 80. Of more it says how many
they are, and the step after it lists them."""
SHORT = 40
"""Cells of a command's beginning beside its rule, which stands there whole."""


def rule_sentence(offer: RuleOffer, tool: str) -> str:
    """An offer as an answer to what ``tool`` wants: ``Yes, and don't ask again for `git push *` in this project…``."""
    before, after = "Yes, and don't ask again for", "in this project…" if offer.lasts == "project" else "this session…"
    words = [rule_words(rule, tool) for rule in offer.rules]
    what = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    sentence = f"{before} {what} {after}"
    if len(words) > 1 and (len(words) > NAMED or cell_len(sentence) > ROW):
        opened = [word for rule, word in zip(offer.rules, words, strict=True) if rule.startswith("network(")]
        if len(opened) == 1:
            return f"{before} {opened[0]} and {plural(len(words) - 1, 'rule')} {after}"
        return f"{before} these {len(words)} rules {after}"
    return sentence


def whole_sentence(offer: RuleOffer) -> str:
    """The same with every rule as it stands, for who answers by it and sees no other step."""
    where = "in this project" if offer.lasts == "project" else "this session"
    return f"Yes, and don't ask again for {', '.join(spelled(rule, line=True) for rule in offer.rules)} {where}"


def rule_words(rule: str, tool: str) -> str:
    """What a rule lets pass, as a part of a sentence: a command's pattern, a host, a folder."""
    what, _, where = rule.removesuffix(")").partition("(")
    if what in ("bash", "outside") and where:
        pattern = f"`{shorten(spelled(where, line=True), LONG_PATTERN)}`"
        return f"{pattern} outside the sandbox" if what == "outside" else pattern
    words = _opened(rule, tool)
    before = {"edit": "changes to", "read": "reading", "fetch": "fetching from", "mcp": "the tool"}.get(what)
    as_it_stands = words == shorten(spelled(rule, line=True), LONG_PATTERN)
    if before is None or not where or not as_it_stands:
        return words
    return f"{before} {shorten(spelled(where.removeprefix('./'), line=True), LONG_PATTERN)}"


def explain_rule(rule: str, tool: str) -> str:
    """A rule whole, and what it lets pass in words."""
    return f"{spelled(rule, line=True)}: {_meaning(rule, tool)}"


def _meaning(rule: str, tool: str) -> str:
    what, _, where = rule.removesuffix(")").partition("(")
    words = _opened(rule, tool)
    if not where:
        return "every call"
    if what in ("bash", "outside"):
        begin = where.removesuffix("*")
        if "*" in begin.replace("\\*", ""):
            held = "commands of this form, with anything for each *"
        elif begin == where or begin.endswith("\\"):
            held = "exactly this command"
        else:
            held = f'commands that begin with "{shorten(spelled(begin.rstrip(), line=True), SHORT)}"'
        return f"{held}, outside the sandbox" if what == "outside" else held
    if what == "network":
        return words if where == "registries" else f"connections to {words}"
    if words != shorten(spelled(rule, line=True), LONG_PATTERN):
        return words
    one = "*" not in where
    return {
        "edit": "changes to this file" if one else "changes to files with such names",
        "read": "reading this file" if one else "reading files with such names",
        "fetch": "fetching from this host" if one else "fetching from such hosts",
        "mcp": "this tool of the MCP server" if one else "such tools of the MCP server",
    }.get(what, f"calls of {what} with these arguments")


def _opened(rule: str, tool: str) -> str:
    """What a rule lets pass; a command's and a file's as it stands."""
    what, _, where = rule.removesuffix(")").partition("(")
    if what == "network":
        return "package registries" if where == "registries" else shorten(spelled(where, line=True), LONG_PATTERN)
    if what == "mcp" and "." not in where:
        return f"all tools of the MCP server {shorten(spelled(where, line=True), LONG_PATTERN)}"
    if not where.endswith("/**") or what not in ("edit", "read"):
        return shorten(spelled(rule, line=True), LONG_PATTERN)
    folder = where.removesuffix("/**").removeprefix("./")
    verb = "commands to write" if tool == "bash" else "edits" if what == "edit" else "reading"
    if folder in (".", ""):
        return f"all {verb} in the project"
    return f"{verb} in {shorten(spelled(folder, line=True), LONG_PATTERN)}"
