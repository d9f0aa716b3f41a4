"""Permission rules: ``tool`` or ``tool(pattern)``, as they stand in the configuration and are remembered.

What a pattern means depends on the tool: a command for ``bash``, a path for ``read`` and ``edit``, a host for
``fetch``.
``*`` is the only wildcard of commands and hosts; ``\\*`` is a star itself.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agent_tui.errors import ConfigError, ToolError
from agent_tui.tools.files.walk import Glob
from agent_tui.tools.urls import parse_url

_RULE = re.compile(r"([A-Za-z_*][\w.*:-]*)(?:\((.*)\))?", re.DOTALL)


@dataclass(slots=True, frozen=True)
class Rule:
    """``tool`` may hold ``*`` (``github__*``). ``pattern`` None: every call of the tool."""

    tool: str
    pattern: str | None = None

    def names(self, tool: str) -> bool:
        """Whether the rule is about ``tool``. Those of MCP servers may be named without what they begin with."""
        if fnmatch.fnmatchcase(tool, self.tool):
            return True
        return "__" in self.tool and tool.startswith("mcp__") and fnmatch.fnmatchcase(tool[len("mcp__") :], self.tool)


def parse_rule(text: str) -> Rule:
    """Raises ConfigError for what is not ``tool`` or ``tool(pattern)``."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"the rule {text!r} is neither `tool` nor `tool(pattern)`.")
    pattern = match.group(2)
    if pattern is not None and match.group(1) in ("read", "edit", "write", "apply_patch"):
        try:
            Glob(pattern.lstrip("/") or "*")
        except ToolError as error:
            raise ConfigError(f"the rule {text!r} cannot be used: {error}") from None
    return Rule(match.group(1), pattern or None)


def command_matches(pattern: str | None, text: str) -> bool:
    """Whether one simple command matches. A ``*`` at the end that directly follows a letter or digit ends a word:
    ``git status*`` matches ``git status -s`` and not ``git statusx``."""
    return pattern is None or _command(pattern).fullmatch(text) is not None


def exact(text: str) -> str:
    """The pattern that matches this command alone."""
    return text.replace("\\", "\\\\").replace("*", "\\*")


@cache
def _command(pattern: str) -> re.Pattern[str]:
    tokens = re.findall(r"\\[\\*]|\*+|[^\\*]+|\\", pattern)
    regex = ""
    for index, token in enumerate(tokens):
        if not token.startswith("*"):
            regex += re.escape(token[1:] if re.fullmatch(r"\\[\\*]", token) else token)
            continue
        last = index == len(tokens) - 1
        if last and index and tokens[index - 1][-1:].isalnum():
            regex += r"(?:\s.*)?"
        elif last and pattern.endswith(" *"):
            regex = regex.removesuffix("\\ ") + r"(?:\s.*)?"
        else:
            regex += ".*"
    return re.compile(regex, re.DOTALL)


def path_matches(pattern: str | None, path: Path, root: Path) -> bool:
    """Whether a resolved path matches: absolute for patterns beginning ``/`` or ``~``, else relative to the project.
    ``./name`` is that name at the top; ``name`` alone is matched at any depth."""
    if pattern is None:
        return True
    if pattern.startswith(("/", "~")):
        try:
            full = Path(pattern).expanduser()
        except RuntimeError:
            return False
        return Glob("/" + full.as_posix().strip("/")).matches(path.as_posix().strip("/"))
    if not path.is_relative_to(root):
        return False
    relative = path.relative_to(root).as_posix()
    return Glob(pattern[1:] if pattern.startswith("./") else pattern).matches(relative)


def plain_start(pattern: str) -> str:
    """The folders and the name with which a path's pattern begins, as far as nothing in them stands for anything else:
    ``.github/workflows`` of ``./.github/workflows/**``."""
    plain: list[str] = []
    for part in pattern.removeprefix("./").split("/"):
        if set(part) & set("*?[]{}\\"):
            break
        plain.append(part)
    return "/".join(plain)


def url_matches(pattern: str | None, url: str) -> bool:
    """Whether a URL is on the host of the pattern: ``docs.python.org``, ``*.python.org``, ``docs.python.org/3/*``.
    A scheme in front is taken and must match then."""
    if pattern is None:
        return True
    try:
        parsed = parse_url(url)
    except ToolError:
        return False
    scheme, separator, rest = pattern.rpartition("://")
    host, slash, path = rest.partition("/")
    if (separator and scheme != parsed.scheme) or not fnmatch.fnmatchcase(parsed.host, host.lower().strip()):
        return False
    return not slash or path in ("", "*") or fnmatch.fnmatchcase(parsed.target, "/" + path)
