"""What a change of git's settings comes to, in words: who commits are by, where they go, what git starts by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_tui.records import dataclass
from agent_tui.text.clean import pictured_line
from agent_tui.tools.word_sets import word_set

_SCOPES = {
    "--global": "in all your repositories",
    "--system": "for everybody on this machine",
    "--worktree": "in this worktree",
}
_WITH_VALUE = word_set("-f --file --blob --type --default --comment --value -t")
_LOOKS = word_set(
    "get list get-color get-colorbool --get --list -l --get-all --get-regexp --get-urlmatch --get-color --get-colorbool"
)
_WHOLE = word_set("edit -e --edit rename-section remove-section --rename-section --remove-section")

_IDENTITY = re.compile(r"(user|author|committer)\.(name|email|signingkey|useconfigonly)")
_PROGRAMS = re.compile(
    r"alias\..+|core\.(hookspath|fsmonitor|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand|worktree)"
    r"|pager\..+|sequence\.editor|credential(\..+)?\.helper|filter\..+\.(clean|smudge|process)|gpg(\..+)?\.program"
    r"|diff\.(external|.+\.(command|textconv))|merge\..+\.driver|(diff|merge)tool\..+|(man|browser|web)\..+"
    r"|interactive\.difffilter|protocol\..+|remote\..+\.(uploadpack|receivepack|vcs)|uploadpack\.packobjectshook"
    r"|init\.templatedir|submodule\..+\.update|trailer\..+\.(command|cmd)|gc\..*hook|receive\.procreceiverefs|hook\..+"
    r"|sendemail\..+|imap\.tunnel|instaweb\..+|guitool\..+|core\.attributesfile|extensions\..+"
)
_INCLUDES = re.compile(r"include(if\..+)?\.path")
_ADDRESSES = re.compile(
    r"remote\..+\.(url|pushurl|proxy|push|fetch)|remote\.pushdefault|url\..+\.(insteadof|pushinsteadof)|http(\..+)?\.proxy"
    r"|branch\..+\.(remote|pushremote|merge)|submodule\..+\.url|lfs\.url"
)
_TRUST = re.compile(
    r"http(\..+)?\.(sslverify|sslcainfo|sslcapath|schannel.*|extraheader|cookiefile)|safe\..+|(fetch|receive|transfer)\.fsckobjects"
    r"|core\.protect(hfs|ntfs)|commit\.gpgsign|gpg\.mintrustlevel|receive\.deny.*|merge\.verifysignatures"
)


@dataclass(slots=True, frozen=True)
class _Change:
    """``key`` as it is written, empty where none is named; ``where`` the settings hold, and what is ``removed``."""

    key: str
    where: str
    removed: bool

    @property
    def plain(self) -> str:
        """The key in small letters."""
        return self.key.lower()


def settings_change(arguments: Sequence[str]) -> str:
    """Describes what ``git config`` with ``arguments`` would do, as a verb and what follows; empty where it only
    shows."""
    change = _read(arguments)
    if change is None:
        return ""
    key, where = pictured_line(change.key)[:80], change.where
    verb = "takes away" if change.removed else "sets"
    if _IDENTITY.fullmatch(change.plain):
        once = "" if change.removed else f" (for one commit alone: git -c {key}=… commit)"
        return f"{verb} who commits are by {where}{once}"
    if _PROGRAMS.fullmatch(change.plain):
        return f"{verb} {key}, by which git starts programs {where}, outside the sandbox and with all your rights"
    if _INCLUDES.fullmatch(change.plain):
        return f"{verb} {key}: a file whose settings git then follows {where}, and they can start programs"
    if _ADDRESSES.fullmatch(change.plain):
        return f"{verb} {key}: where git fetches from and pushes to {where}"
    if _TRUST.fullmatch(change.plain):
        return f"{verb} {key}, by which git checks less, or tells more, {where}"
    what = f"{verb} {key}" if key else "changes settings"
    return f"{what} {where}, in a file that also says what git starts outside the sandbox"


def _read(arguments: Sequence[str]) -> _Change | None:
    """Takes the words of ``git config`` apart; None for what changes nothing."""
    where, action, removed, whole = "in this repository", "", False, False
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option in _WITH_VALUE:
            value = value if equals else next(words, "")
            where = f"in {pictured_line(value)[:80]}" if option in ("-f", "--file") else where
        elif word in _SCOPES:
            where = _SCOPES[word]
        elif word in _LOOKS and (word.startswith("-") or not rest):
            return None
        elif word in _WHOLE and (word.startswith("-") or not rest):
            whole, removed = True, "remove" in word
        elif word.startswith("-"):
            removed = removed or word.startswith("--unset")
            action = action or word * (word in ("--add", "--replace-all", "--unset", "--unset-all"))
        elif not rest and not action and word in ("set", "unset"):
            action, removed = word, word == "unset"
        else:
            rest.append(word)
    if whole or (action and not rest):
        return _Change("", where, removed)
    # One word alone is the old way to ask for a value.
    return _Change(rest[0], where, removed) if len(rest) > 1 or (rest and action) else None


_LISTS = {
    "remote": {
        "add": "adds a remote: where git fetches from and pushes to",
        "set-url": "sets where git fetches from and pushes to",
    },
    "submodule": {
        "add": "adds a submodule: fetches a repository into this one",
        "init": "takes over where submodules are fetched from",
        "set-url": "sets where a submodule is fetched from",
    },
}


def command_changes(subcommand: str, action: str) -> str:
    """The same of ``git remote`` and ``git submodule`` with what follows."""
    return _LISTS.get(subcommand, {}).get(action, f"changes the {subcommand}s in the repository's settings")
