"""Permission rules: ``tool`` or ``tool(pattern)``, as they stand in the configuration and are remembered; which tools
they may name, and what one that lets a command out of the sandbox is bound to.

What a pattern means depends on the tool: a command for ``bash``, a path for ``read`` and ``edit``, a host for
``fetch``.
``*`` is the only wildcard of commands and hosts; ``\\*`` is a star itself.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path

from agent_tui.errors import ConfigError, ToolError
from agent_tui.paths import read_regular
from agent_tui.records import dataclass
from agent_tui.tools.files.walk import Glob
from agent_tui.tools.git.repository import find_repository
from agent_tui.tools.mcp_names import (
    is_mcp_name,
    server_part,
    short_name,
    split_tool_name,
    tool_name,
    with_all_tools,
)
from agent_tui.tools.word_sets import word_set
from agent_tui.urls import parse_place, parse_url

_RULE = re.compile(r"([A-Za-z_*][\w.*:-]*)(?:\((.*)\))?", re.DOTALL)


@dataclass(slots=True, frozen=True)
class Rule:
    """``tool`` may hold ``*`` (``github__*``). ``pattern`` None: every call of the tool."""

    tool: str
    pattern: str | None = None

    def names(self, tool: str) -> bool:
        """Returns whether the rule is about ``tool``. Those of MCP servers may be named without what they begin
        with."""
        if fnmatch.fnmatchcase(tool, with_all_tools(self.tool) if is_mcp_name(self.tool) else self.tool):
            return True
        return is_mcp_name(tool) and "__" in self.tool and fnmatch.fnmatchcase(short_name(tool), self.tool)

    @property
    def of_servers(self) -> bool:
        """True for a rule about tools of MCP servers and about nothing else."""
        return self.tool == "mcp" or "__" in self.tool

    @property
    def written(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    def names_server(self, server: str) -> bool:
        """Returns whether it is about a server, or tools of it, whatever those are."""
        if self.tool == "mcp":
            parts = (self.pattern or "*").split(".")
            starts = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
            return any(fnmatchcase(server, start) for start in starts)
        return any(fnmatchcase(name, split_tool_name(self.tool)[0]) for name in (server, server_part(server)))

    def names_call(self, server: str, tool: str) -> bool:
        """Returns whether it is about a tool of a server, whichever of their names it is written with."""
        if self.tool == "mcp":
            return any(fnmatchcase(name, self.pattern or "*") for name in (server, f"{server}.{tool}"))
        if self.names(tool_name(server, tool)):
            return True
        return self.of_servers and self.names_server(server) and fnmatchcase(tool, split_tool_name(self.tool)[1] or "*")


def parse_rule(text: str) -> Rule:
    """Raises ConfigError for what is not ``tool`` or ``tool(pattern)``."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"the rule {text!r} must be `tool` or `tool(pattern)`.")
    pattern = match.group(2)
    if pattern is not None and match.group(1) in ("read", "edit", "write", "apply_patch"):
        try:
            Glob(pattern.lstrip("/") or "*")
        except ToolError as error:
            raise ConfigError(f"the rule {text!r} is invalid: {error}") from None
    return Rule(match.group(1), pattern or None)


def command_matches(pattern: str | None, text: str) -> bool:
    """Returns whether one simple command matches. A ``*`` at the end that directly follows a letter or digit ends a
    word: ``git status*`` matches ``git status -s`` and not ``git statusx``."""
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
    """Returns whether a resolved path matches: absolute for patterns beginning ``/`` or ``~``, else relative to the
    project. ``./name`` is that name at the top; ``name`` alone is matched at any depth. A pattern that begins with a
    link means what that leads to as well."""
    if pattern is None:
        return True
    if not pattern.startswith(("/", "~")):
        if path.is_relative_to(root):
            relative = path.relative_to(root).as_posix()
            if _glob(pattern[1:] if pattern.startswith("./") else pattern).matches(relative):
                return True
        start = plain_start(pattern) if "/" in pattern.strip("/") else ""
        return bool(start) and _matches_behind_link(root / start, pattern.removeprefix("./")[len(start) :], path)
    try:
        full = Path(pattern).expanduser().as_posix().strip("/")
    except RuntimeError:
        return False
    if _glob(f"/{full}").matches(path.as_posix().strip("/")):
        return True
    start = plain_start(full)
    return _matches_behind_link(Path("/", start), full[len(start) :], path)


def covers(pattern: str | None, path: Path, root: Path) -> bool:
    """Returns whether a resolved path matches, or a folder that it lies in: what is said against a folder is said
    against all in it."""
    around = (root, *root.parents)
    below = takewhile(lambda folder: folder not in around, path.parents)
    return path_matches(pattern, path, root) or any(path_matches(pattern, folder, root) for folder in below)


def _matches_behind_link(start: Path, rest: str, path: Path) -> bool:
    led = os.path.realpath(start)
    return led != str(start) and _glob(f"{led}{rest}").matches(path.as_posix().strip("/"))


@lru_cache(512)
def _glob(pattern: str) -> Glob:
    return Glob(pattern)


def plain_start(pattern: str) -> str:
    """The folders and the name with which a path's pattern begins, as far as nothing in them stands for anything else:
    ``.github/workflows`` of ``./.github/workflows/**``."""
    plain: list[str] = []
    for part in pattern.removeprefix("./").split("/"):
        if set(part) & set("*?[]{}\\"):
            break
        plain.append(part)
    return "/".join(plain)


@lru_cache(512)
def host_pattern(written: str) -> tuple[str, int | None]:
    """The pattern of a host as hosts are spelled where they are judged, and the port it is for."""
    wild = "*." if written.startswith("*.") else ""
    try:
        place = parse_place(written.removeprefix(wild))
    except ToolError:
        return written.lower(), None
    return wild + place.host, place.written_port


def url_matches(pattern: str | None, url: str) -> bool:
    """Returns whether a URL is on the host of the pattern: ``docs.python.org``, ``*.python.org``,
    ``docs.python.org/3/*``. A scheme in front is taken and must match then."""
    if pattern is None:
        return True
    try:
        parsed = parse_url(url)
    except ToolError:
        return False
    scheme, separator, rest = pattern.rpartition("://")
    place, slash, path = rest.partition("/")
    host, port = host_pattern(place.strip())
    if (separator and scheme.lower() != parsed.scheme) or port not in (None, parsed.port):
        return False
    if not fnmatch.fnmatchcase(parsed.host, host):
        return False
    return not slash or path in ("", "*") or fnmatch.fnmatchcase(parsed.target, "/" + path)


PATH_TOOLS = word_set("read write edit apply_patch list glob grep")
PATTERNED = PATH_TOOLS | word_set("bash outside fetch network mcp")
"""Tools whose rules may have a pattern. ``outside`` is ``bash`` where it asks to leave the sandbox, ``network`` are
hosts that commands in it may reach: a name, or ``registries`` for where packages come from; ``mcp`` the tools of MCP
servers: ``mcp(server)``, ``mcp(server.tool)``, ``mcp(server.*)``."""

BUILTIN = PATH_TOOLS | word_set("bash fetch todo subagent skill jobs ask present_plan recall context web_search")
"""The tools that a session has without MCP servers."""

KNOWN = PATTERNED | BUILTIN | word_set("tool_search mcp_call mcp_read")


def checked_rules(texts: Iterable[str], key: str) -> list[Rule]:
    """The rules under ``key`` of the configuration. Raises ConfigError naming the first that is none."""
    return [_checked(text, key) for text in texts]


def checked_servers_tools(texts: Iterable[str], key: str) -> list[Rule]:
    """The same for names of MCP servers' tools alone."""
    rules = checked_rules(texts, key)
    for rule in rules:
        if "__" not in rule.tool or rule.pattern is not None:
            raise ConfigError(f"{key}: {rule.tool!r} names no tool of an MCP server; write `server__tool`.")
    return rules


def _checked(text: str, key: str) -> Rule:
    try:
        rule = parse_rule(text)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None
    if "__" in rule.tool:  # of an MCP server
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


MAX_BYTES = 1_000_000
"""Of a larger file its size and time count."""

_NAMES = re.compile(
    r"\..*(rc|env)(\.\w+)?|\.[\w-]+-versions?|\.git(modules|attributes)|[a-z.]*(make|docker|container|compose|rake|gem|just|task|proc|vagrant|brew|pod|jenkins|earth|pip)file(\.\w+)?"
    r"|.*\.(toml|cfg|ini|json[5c]?|ya?ml|mk|mak|xml|props|targets|tf|nix|gradle|kts|sbt|cabal|csproj|sln|gemspec"
    r"|podspec|bazel|cmake)"
    r"|.*\.(config|conf|setup)\.[cm]?[jt]s|(setup|conftest|noxfile|tasks|fabfile|wscript|sconstruct|manage)(\.py)?"
    r"|(build|mix)\.(rs|zig|exs|xml)|(requirements|constraints)[\w.-]*\.(txt|in)|cmakelists\.txt|mvnw|gradlew|package\.\w+",
    re.IGNORECASE,
)
"""Files at the top of a project in which build tools, package managers and their kind find what to start. What these
files lead to, further down, is not followed."""

_BELOW = (
    ".cargo/config",
    ".cargo/config.toml",
    ".yarn/plugins",
    ".yarn/releases",
    ".mvn/maven.config",
    ".mvn/jvm.config",
)
_BRANCHES = re.compile(rb'^\[branch "[^\n]*\n(?:[ \t][^\n]*\n?)*', re.MULTILINE)
"""Which branch follows which: ``git push -u`` writes it, and it starts nothing."""

Configuration = Mapping[str, object]
"""By name, what tells whether a file is still the same."""


def configuration(root: Path) -> Configuration:
    """That of the project in ``root``, as it is now."""
    try:
        names = [entry.name for entry in os.scandir(root) if _NAMES.fullmatch(entry.name) and not entry.is_dir()]
    except OSError:
        names = []
    found = {name: _state(root / name) for name in (*names, *_BELOW)}
    repository = find_repository(root)
    if repository is not None:
        found |= {f".git/{name}": _state(repository.common / name) for name in ("config", "config.worktree")}
        found[".git"] = (str(repository.own), str(repository.common))
    return {name: state for name, state in found.items() if state is not None}


def changed(before: Configuration, now: Configuration, of_git: bool) -> str:
    """The name of a file that is not as it was; empty where all are. ``of_git``: of those that git reads."""
    names = sorted(name for name in {*before, *now} if name.startswith(".git") or not of_git)
    return next((name for name in names if before.get(name) != now.get(name)), "")


def _state(path: Path) -> object:
    """None where there is nothing; of a folder that it is there."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return stat.S_IFMT(found.st_mode)
        if found.st_size > MAX_BYTES:
            return found.st_size, found.st_mtime_ns
        data = read_regular(path, MAX_BYTES)
    except OSError as problem:
        return None if isinstance(problem, FileNotFoundError) else "unreadable"
    # Keyed anew in every process: nobody finds another text with the same value.
    return hash(_BRANCHES.sub(b"", data) if path.name == "config" else data)


def same_repository(one: Path, other: Path) -> bool:
    """Returns whether git means the same repository in two folders, links not followed."""
    return find_repository(one) == find_repository(other)


_PLAIN_OPTIONS = re.compile(
    r"-[aAhlnquvwy]|-vv+|--(all|amend|base|body|check|comments|cov|coverage|draft|fill|follow-tags|force|frozen|head|help"
    r"|json|label|lf|limit|locked|namespace|no-edit|no-fail-fast|quiet|release|state|title|verbose|version|watch|web"
    r"|workspace|yes)|--(cov|json|limit|maxfail|state|tb|watch)=[\w,.-]*"
)
_ELSEWHERE = re.compile(
    r"(-C|--(prefix|manifest-path|git-dir|work-tree|cwd|directory|project|project-directory|chdir|dir|root))(=.*)?|-C.+"
)
_ADDRESS = re.compile(r".*://.*|git\+.*|[\w.-]+@[\w.-]+:.*|.*::.*|[\w.-]+:[\w.-]+:.*|--")


def uncovered(pattern: str, words: Sequence[str]) -> str:
    """The first of ``words`` that a rule was not meant for where nothing holds what runs: another folder; where a star
    stands for it, an option that may have a program start another, or an address. Empty where the rule covers all."""
    fixed = _fixed(pattern)
    for at, word in enumerate(words):
        message = words[0] == "git" and re.fullmatch(r"-[aq]*m", word)
        option = re.match(r"-|\.?[A-Z]\w*=", word) and not _PLAIN_OPTIONS.fullmatch(word) and not message
        if _ELSEWHERE.fullmatch(word) or (at >= fixed and (option or _ADDRESS.fullmatch(word))):
            return word
    return ""


def uncovered_address(pattern: str, words: Sequence[str]) -> str:
    """The same of a command that is held, but for the network: where it would reach is part of what was asked."""
    return next((word for word in words[_fixed(pattern) :] if _ADDRESS.fullmatch(word)), "")


def has_star(pattern: str) -> bool:
    """Returns whether a pattern stands for more than one command."""
    return _STAR.search(pattern) is not None


_STAR = re.compile(r"(?<!\\)\*")


def _fixed(pattern: str) -> int:
    """Returns the number of words without a star that a pattern begins with; for one without any star, the most there
    may be."""
    star = _STAR.search(pattern)
    return 1_000_000 if star is None else len(pattern[: star.start()].split())
