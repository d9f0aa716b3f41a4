"""git commands: which only look, which talk to a remote and where, and which change git's own configuration."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from agent_tui.tools.judge.line.syntax import Word
from agent_tui.tools.word_sets import word_set

_LOOKS = word_set(
    "status log diff show blame rev-parse ls-files ls-tree describe shortlog rev-list merge-base name-rev show-ref "
    "for-each-ref check-ignore grep cat-file diff-tree cherry version"
)
_OPTIONS = re.compile(
    r"-[abcehilnpqrstuvwzE]+|-\d+|-[nUCM]\d*|-z|-1|-sb|-ne|-sne|-[SGL].*|-uno|--|--(all|oneline|stat|shortstat|numstat"
    r"|summary|cached|staged|name-only|name-status|short|long|branch|graph|decorate|no-decorate|patch|no-patch|follow"
    r"|no-merges|merges|abbrev-ref|abbrev-commit|show-toplevel|show-current|show-prefix|is-inside-work-tree|git-dir"
    r"|others|exclude-standard|modified|deleted|tags|always|dirty|heads|count|verify|quiet|check|list|reverse|verbose"
    r"|no-renames|word-diff|no-color|first-parent|remotes|and|ignore-case|left-right|no-commit-id)"
    r"|--(since|until|after|before|author|committer|grep|date|color|max-count|unified|diff-filter|abbrev|sort|porcelain"
    r"|short|skip|untracked-files)(=.*)?|--(format|pretty)=(?!.*%G).*"
)
"""Options that only change what is shown. git takes abbreviations: what is not here as a whole is not known."""

_LISTS = {
    "branch": re.compile(r"|(-[arv]+|--all|--list|--show-current|--remotes)( --(sort|format)=\S+)?"),
    "tag": re.compile(r"|-l|--list"),
    "remote": re.compile(r"|-v|--verbose|show|get-url [\w.-]+"),
    "stash": re.compile(r"list|show( -p| --stat)?"),
    "worktree": re.compile(r"list"),
    "reflog": re.compile(r"|show"),
    "config": re.compile(r"-l|--list|--get(-all|-regexp)? [\w.*^$-]+|[\w-]+\.[\w.-]+"),
}
_CONTENT = word_set("diff show grep blame annotate cat-file diff-tree diff-index diff-files range-diff")
_PATCH = re.compile(r"-[pu]|-U\d*|--patch.*|--unified.*|-L.*|--cc|-c|-m")
_NO_PATCH = re.compile(r"--(stat|name-only|name-status|numstat|shortstat|summary|dirstat|no-patch|quiet|check)\b.*|-s")
_GLOBAL_VALUES = word_set("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source")
_WITH_MESSAGE = word_set("commit merge notes revert stash tag")


def without_globals(arguments: Sequence[Word]) -> list[Word]:
    """The subcommand and what follows, for rules that name it: whatever options stand before it."""
    at = 0
    while at < len(arguments) and arguments[at].text.startswith("-"):
        at += 2 if arguments[at].text in _GLOBAL_VALUES else 1
    return list(arguments[at:])


def messages(arguments: Sequence[Word]) -> list[Word]:
    """The words that are no more than a message: what stands in quotes behind ``-m``, whatever it becomes."""
    if not arguments or arguments[0].text not in _WITH_MESSAGE:
        return []
    return [
        word
        for before, word in itertools.pairwise(arguments)
        if word.quoted and re.fullmatch(r"-[aqsvn]*m|--message", before.text)
    ]


def git_looks(words: Sequence[str]) -> bool:
    """Whether a git command only shows something, by what it is called with."""
    rest = list(words[1:])
    if rest[:1] == ["--no-pager"]:
        rest = rest[1:]
    if not rest or rest in (["--version"], ["version"]):
        return bool(rest)
    subcommand, arguments = rest[0], rest[1:]
    if subcommand in _LISTS:
        return _LISTS[subcommand].fullmatch(" ".join(arguments)) is not None
    if subcommand not in _LOOKS or (subcommand in ("grep", "blame") and any(re.match(r"-[SO]", w) for w in arguments)):
        return False
    return all(_OPTIONS.fullmatch(word) for word in arguments if word.startswith("-"))


_CHANGES = word_set(
    "add commit checkout switch restore reset merge rebase mv rm apply am cherry-pick revert clean init gc prune stage "
    "update-index"
)


def git_changes(words: Sequence[str]) -> bool:
    """Whether a git command is known to change the repository or its files: in ``look`` it would be for nothing."""
    rest = [word.text for word in without_globals([Word(word) for word in words[1:]])]
    if rest[:1] == ["stash"]:
        return rest[1:2] not in (["list"], ["show"])
    return bool(rest) and rest[0] in _CHANGES


def shown_contents(arguments: Sequence[Word]) -> Literal["", "tree", "history"]:
    """Whether the contents of files are shown: of now, or of any time."""
    rest = [word.text for word in without_globals(arguments)]
    if not rest:
        return ""
    subcommand, texts = rest[0], rest[1:]
    if subcommand in _CONTENT:
        if any(_NO_PATCH.fullmatch(text) for text in texts) and not any(_PATCH.fullmatch(text) for text in texts):
            return ""
        before = texts[: texts.index("--")] if "--" in texts else texts
        operands = [text for text in before if not text.startswith("-")]
        named = len(operands) > (1 if subcommand in ("grep", "blame", "annotate") else 0)
        staged = any(text in ("--cached", "--staged") for text in texts)
        return "history" if named or staged or subcommand not in ("diff", "grep", "blame", "annotate") else "tree"
    if subcommand in ("log", "whatchanged", "stash", "format-patch") and any(_PATCH.fullmatch(t) for t in texts):
        return "history"
    return ""


Remote = Literal["", "named", "address", "unclear", "other"]
"""Whether git talks to a remote: to one of the repository's by its name, to an address, in a way that may start
programs or reach what is not seen, or by another program's means."""

_REMOTE_FLAGS = re.compile(
    r"-[46adfknpqrtuv]+|-[jn]\d+|-j|--(all|append|atomic|autostash|commit|delete|dry-run|edit|ff|ff-only|follow-tags|force"
    r"|force-if-includes|force-with-lease(=.*)?|heads|init|ipv4|ipv6|jobs(=\d+)?|keep|depth(=\d+)?|deepen(=\d+)?|mirror"
    r"|no-autostash|no-commit|no-edit|no-ff|no-force-with-lease|no-progress|no-rebase|no-recurse-submodules|no-signed"
    r"|no-stat|no-tags|no-thin|no-verify|porcelain|progress|prune|prune-tags|quiet|rebase(=\w+)?|recursive|refs"
    r"|set-upstream|single-branch|squash|stat|symref|tags|thin|unshallow|update-shallow|verbose|verify)"
)
_NUMBERED = word_set("-j --jobs --depth --deepen")
_ADDRESS = re.compile(r"(https://|ssh://)[\w.@:/~%+-]+|[\w.-]+@[\w.-]+:[\w./~-]+")
_TALKS = word_set("fetch pull push ls-remote clone")


def git_remote(words: Sequence[str], folder: Path) -> Remote:
    """How a git command in ``folder`` talks to a remote; empty where it does not."""
    rest = [word.text for word in without_globals([Word(word) for word in words[1:]])]
    if not rest:
        return ""
    subcommand, arguments = rest[0], rest[1:]
    if (subcommand, *arguments[:1]) in {("remote", "update"), ("remote", "prune"), ("submodule", "update")}:
        arguments = arguments[1:]
    elif subcommand in ("send-email", "lfs", "svn", "p4", "archive") and (
        subcommand != "archive" or any(word.startswith("--r") for word in arguments)
    ):
        return "other"
    elif subcommand not in _TALKS:
        return ""
    front = words[1 : len(words) - len(rest)]
    if any(word != "-C" for word in front[::2]) or len(front) % 2:
        return "unclear"  # options in front may have it start anything
    operands, before = [], ""
    for word in arguments:
        if word.startswith("-") and word != "--":
            if not _REMOTE_FLAGS.fullmatch(word):
                return "unclear"
        elif word != "--" and not (before in _NUMBERED and word.isdigit()):
            operands.append(word)
        before = word
    if any("::" in word for word in operands):
        return "unclear"
    if not operands or subcommand == "submodule":
        return "named" if subcommand != "clone" else "unclear"
    if re.fullmatch(r"\w[\w-]*(\.[\w-]+)*", operands[0]) and subcommand != "clone":
        return "unclear" if (folder / operands[0]).exists() else "named"
    return "address" if _ADDRESS.fullmatch(operands[0]) else "unclear"


def changes_settings(words: Sequence[str]) -> bool:
    """Whether git would write its own configuration, which a sandbox keeps as it is."""
    rest = [word.text for word in without_globals([Word(word) for word in words[1:]])]
    if rest[:1] == ["config"]:
        return not git_looks(["git", *rest])
    adds = [("remote", word) for word in ("add", "remove", "rm", "rename", "set-url", "set-head", "set-branches")]
    adds += [("submodule", word) for word in ("add", "init", "deinit", "set-url", "set-branch", "sync")]
    return tuple(rest[:2]) in adds
