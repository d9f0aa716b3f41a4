"""Decides what may leave the machine unasked, and to which hosts and MCP servers; keeps what of outside the project was
read before.

A host is known where the user named it in their own words, or the project's files did as they were committed when the
session began: what the model writes names nothing. Once something outside the project was read, which the user's
consents so far did not reckon with, they count for what stays on the machine only.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from copy import copy
from dataclasses import replace
from pathlib import Path

from agent_tui.models.messages import SEARCH_TOOL
from agent_tui.models.session import SessionState
from agent_tui.text.clean import pictured_line
from agent_tui.tools.base import Intent, ServerTool
from agent_tui.tools.rules.decision import ALLOWED, Decision
from agent_tui.urls import BARE_HOST, Url, hosts_in, urls_in

PLAIN_TARGET = 200
"""Characters of a path on a host that the project's files name; what is longer has to stand there itself."""

_SEARCH_SECONDS = 3.0
_KEPT = 200
"""Hosts, and things that were read, that a session keeps."""

_HOST = re.compile(r"[a-z0-9.-]+")
_PLAIN = re.compile(r"[\w.-]+")


def without_hosts(text: str, known: Container[str]) -> str:
    """The text with all hosts but the ``known`` ones written so that it names them no more: ``hxxps://evil[.]io``."""

    def disarmed(match: re.Match[str]) -> str:
        if match[1].lower().removeprefix("www.") in known:
            return match[0]
        return match[0].replace(".", "[.]")

    pieces: list[str] = []
    end = 0
    for start, stop, url in urls_in(text):
        if url.login or url.host.removeprefix("www.") not in known:
            written = re.sub("^http", "hxxp", text[start:stop], flags=re.IGNORECASE)
            pieces += [text[end:start], written.replace(".", "[.]")]
            end = stop
    return re.sub(BARE_HOST, disarmed, "".join([*pieces, text[end:]]), flags=re.IGNORECASE)


class ProjectHosts:
    """The hosts named in the files of a repository, as they were committed when this was made."""

    def __init__(self, root: Path) -> None:
        from agent_tui.tools.git.repository import find_repository

        self._repository = find_repository(root)
        self._commit = self._repository.commit if self._repository is not None else ""
        self._known: dict[str, bool] = {}

    def name(self, url: Url) -> bool:
        """Returns whether the project's files name the host of ``url``; of an address with a query, or a long one,
        whether it stands there itself. Runs git, for three seconds at most."""
        if not self._commit or not _HOST.fullmatch(url.host):
            return False
        whole = "?" in url.target or len(url.target) > PLAIN_TARGET
        sought = url.text.partition("#")[0] if whole else url.host
        if sought not in self._known:
            self._known[sought] = self._search(sought, whole)
        return self._known[sought]

    def _search(self, sought: str, whole: bool) -> bool:
        from agent_tui.tools.git.repository import own_git

        assert self._repository is not None and self._repository.tree is not None
        host = sought.removeprefix("www.").replace(".", r"\.")
        pattern = ["-F", "-e", sought] if whole else ["-E", "-e", rf"https?://(www\.)?{host}([^A-Za-z0-9.-]|$)"]
        with own_git(self._repository) as git:
            if git is None:
                return False
            found = git.run(
                self._repository.tree, "grep", "-q", "-I", "-i", *pattern, self._commit, timeout=_SEARCH_SECONDS
            )
        return found is not None


class SessionReach:
    """Of one session: who may be reached, and what was read. ``project`` names hosts; None where no project does."""

    def __init__(self, project: ProjectHosts | None = None) -> None:
        self._project = project
        self._hosts: list[str] = []
        self._read: list[str] = []
        self._granted: dict[str, list[str]] = {}

    def scratch(self) -> SessionReach:
        """A copy, with grants of its own."""
        other = copy(self)
        other._granted = dict(self._granted)
        return other

    def name(self, own_words: str) -> None:
        """The user wrote this themselves: hosts named in it are known from now on."""
        self._hosts = list(dict.fromkeys([*self._hosts, *hosts_in(own_words)]))[-_KEPT:]

    def read(self, what: str) -> None:
        """Something outside the project was read; ``what`` is a few words, the same for the same thing."""
        if what not in self._read:
            self._read = [*self._read, what][-_KEPT:]

    def since(self, but: str = "") -> str:
        """Returns what was read outside the project, in words; empty for nothing but ``but``."""
        found = self._others(but)
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        return f"reading {found[-1]}{more} from outside the project" if found else ""

    def _others(self, but: str) -> list[str]:
        return [what for what in self._read if what != but]

    def grant(self, key: str) -> None:
        """The user said yes to this, for as long as the session lasts."""
        self._granted[key] = list(self._read)

    @property
    def grants(self) -> list[str]:
        """What the user said yes to."""
        return list(self._granted)

    def revoke(self, key: str) -> bool:
        """Takes such a yes back; False where there is none."""
        return self._granted.pop(key, None) is not None

    def granted(self, key: str, *, leaves: bool = False, but: str = "") -> bool:
        """Returns whether the user said yes to this; where something ``leaves`` the machine, after all that was read
        but ``but``."""
        before = self._granted.get(key)
        return before is not None and (not leaves or set(self._others(but)) <= set(before))

    def load(self, state: SessionState, first: bool = False) -> None:
        """Another session is in force. For the ``first`` one is what was said and read while it was being opened."""
        said, read = (self._hosts, self._read) if first else ([], [])
        self._hosts = list(dict.fromkeys([*state.named_hosts, *said]))
        self._read, self._granted = list(dict.fromkeys([*state.read_outside, *read])), {}

    def kept(self, state: SessionState) -> SessionState:
        """``state`` with what has to be known when the session is opened again."""
        return replace(state, named_hosts=tuple(self._hosts), read_outside=tuple(self._read))

    def fetch(self, url: Url) -> Decision:
        """Decides on a fetch that no rule speaks of. May run git."""
        rule, host = f"fetch({url.host})", url.host
        if self.granted(rule, leaves=True):
            return ALLOWED
        since = self.since()
        known = host.removeprefix("www.") in self._hosts or (self._project is not None and self._project.name(url))
        if known and not since:
            return ALLOWED
        why = f"after {since}" if known else "which neither you nor the project's files mention"
        why += f", after {since}" if since and not known else ""
        reason = f"fetches from {host}, {why}"
        return Decision("ask", reason, patterns=[rule], session=[rule])

    def search(self, url: Url) -> Decision:
        """Decides on a search at the user's own endpoint that no rule speaks of: a query tells it something, too."""
        if self.granted(SEARCH_TOOL, leaves=True):
            return ALLOWED
        since = self.since()
        reason = f"sends what is searched to {url.host}{f', after {since}' if since else ''}"
        return Decision("ask", reason, patterns=[SEARCH_TOOL], session=[SEARCH_TOOL])

    def call(self, name: str, called: ServerTool) -> Decision:
        """Decides on a call of an MCP server's tool that no rule speaks of; ``name`` is what the model calls it."""
        own = _answer_of(called)
        since = self.since(own) if called.open_world else ""
        rule = rule_of(called) if is_plain(called.server, called.tool) else name
        rules = [rule, *([f"mcp({called.server})"] if is_plain(called.server) else [])]
        if any(self.granted(each, leaves=called.open_world, but=own) for each in rules):
            return ALLOWED
        reason = f"a tool of the MCP server {pictured_line(called.server)}"
        if since:
            reason += f" that may reach other systems, after {since}" if called.only_looks else f", after {since}"
        return Decision("ask", reason, patterns=[rule], session=rules)

    def passed(self, intent: Intent, outside: Iterable[Path], left_sandbox: bool) -> None:
        """A call may run: notes what it reads of outside the project."""
        for path in outside:
            self.read(pictured_line(str(path)))
        if left_sandbox:
            self.read("output of a command outside the sandbox")
        if intent.server is not None:
            self.read(_answer_of(intent.server))


def _answer_of(called: ServerTool) -> str:
    return f"an answer of the MCP server {pictured_line(called.server)}"


def rule_of(called: ServerTool) -> str:
    return f"mcp({called.server}.{called.tool})"


def is_plain(*names: str) -> bool:
    """Returns whether names can stand in a rule and mean nothing but themselves."""
    return all(_PLAIN.fullmatch(name) for name in names)
