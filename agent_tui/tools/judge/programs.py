"""Programs that leave the machine or the project: git with its remotes and its own configuration, what publishes, and
what needs the network. Only what is asked and said is decided by it; what a command can reach is the sandbox's to say.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from agent_tui.tools.judge.git_settings import command_changes, settings_change
from agent_tui.tools.judge.words import Word
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


def _subcommand(words: Sequence[str]) -> list[str]:
    return [word.text for word in without_globals([Word(word) for word in words[1:]])]


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
    """Returns whether a git command only shows something, by what it is called with."""
    rest = list(words[2:] if words[1:2] == ["--no-pager"] else words[1:])
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
    """Returns whether git is known to change something: running it in ``look`` would be for nothing."""
    rest = _subcommand(words)
    if rest[:1] == ["stash"]:
        return rest[1:2] not in (["list"], ["show"])
    return bool(rest) and rest[0] in _CHANGES


def shown_contents(arguments: Sequence[Word]) -> Literal["", "tree", "history"]:
    """Returns which contents of files git shows: those of now (``tree``), of any time (``history``), or none."""
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
    """Returns the way a git command in ``folder`` talks to a remote; empty where it does not."""
    rest = _subcommand(words)
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


_SETS = {
    "remote": word_set("add remove rm rename set-url set-head set-branches"),
    "submodule": word_set("add init deinit set-url set-branch sync"),
}


def changes_settings(words: Sequence[str]) -> str:
    """Describes how git would change its own configuration, which a sandbox keeps as it is; empty where it would
    not."""
    rest = _subcommand(words)
    if rest[:1] == ["config"]:
        return "" if git_looks(["git", *rest]) else settings_change(rest[1:])
    if len(rest) > 1 and rest[1] in _SETS.get(rest[0], ()):
        return command_changes(rest[0], rest[1])
    return ""


_PACKAGES = "publish unpublish deprecate token owner owners access dist-tag login adduser logout"


def _lines(table: dict[str, str]) -> dict[str, tuple[tuple[str, ...], ...]]:
    return {name: tuple(tuple(line.split()) for line in lines.split(",")) for name, lines in table.items()}


PUBLISHING = _lines(
    {
        **dict.fromkeys(["npm", "pnpm", "bun"], ",".join([*_PACKAGES.split(), "run publish", "pm publish"])),
        "yarn": ",".join([*_PACKAGES.split(), "run publish", *(f"npm {word}" for word in _PACKAGES.split())]),
        "cargo": "publish,login,logout,owner,yank,release",
        "gem": "push,yank,owner,signin",
        "twine": "upload,register",
        **dict.fromkeys(["uv", "poetry", "pdm", "flit", "hatch", "rye", "maturin"], "publish,upload,auth"),
        "conda": "upload",
        "anaconda": "upload,login",
        "git": "push,send-email,send-pack,credential,credential-store,credential-cache",
        **dict.fromkeys(["docker", "podman"], "push,login,image push,manifest push,compose push"),
        **dict.fromkeys(["nerdctl", "buildah", "skopeo", "crane", "oras", "helm"], "push,login,copy,cp,sync"),
        **dict.fromkeys(["mvn", "mvnw"], "deploy,release:perform,deploy:deploy,deploy:deploy-file"),
        "dotnet": "nuget push,nuget delete",
        "nuget": "push,delete,setapikey",
        "goreleaser": "release,publish",
        **dict.fromkeys(["lerna", "changeset", "vsce", "ovsx", "nx", "composer"], "publish"),
        **dict.fromkeys(["dart", "flutter"], "pub publish"),
        "mix": "hex.publish",
        **dict.fromkeys(["netlify", "firebase", "flyctl", "fly", "serverless", "sls"], "deploy"),
        "wrangler": "deploy,publish,secret",
        **dict.fromkeys(["surge", "vercel", "now", "np", "semantic-release", "heroku"], ""),
        **dict.fromkeys(["op", "bw", "lpass", "vault", "doppler", "keyring"], ""),
    }
)
"""By program, the words that it is called with for that; none: whatever it is called with."""

_BEGINNING = {"gradle": "publish", "gradlew": "publish"}
"""Programs whose tasks are named by how they begin."""

_RUNNERS = {
    tuple(line.split())
    for line in (
        *("npx", "bunx", "uvx", "pipx run", "uv run", "uv tool run", "poetry run", "pdm run", "hatch run"),
        *("rye run", "pnpm dlx", "pnpm exec", "npm exec", "npm x", "yarn dlx", "yarn exec", "yarn run", "bun x"),
        *("bundle exec", "corepack"),
    )
}

_FORGES = word_set("gh glab hub")
_ONLY_LOOKS = word_set(
    "list ls view show status diff checks watch checkout clone download search browse completion help version sync"
)
_TELLING = word_set("-t --show-token")
_CHANGES_API = ("-X", "-f", "-F", "--method", "--field", "--raw-field", "--input", "--form")


def publishes(words: Sequence[str]) -> str:
    """Returns why a command counts as publishing something or telling a secret; empty where it is not known as such.
    Which program is meant is also seen behind runners (``npx``, ``uv run``) and ``python -m``."""
    if len(words) == 2 and words[1] in ("--version", "--help", "help"):
        return ""
    name, rest = _program(words)
    if name in _FORGES:
        return f"{name} acts in your name, or can reveal secrets" if _acts(rest) else ""
    lines = PUBLISHING.get(name, ())
    begins = _BEGINNING.get(name)
    if any(_called_with(rest, line) for line in lines) or (
        begins and any(word.rpartition(":")[2].startswith(begins) for word in rest)
    ):
        return f"{name} publishes, or can reveal secrets"
    return ""


def _program(words: Sequence[str]) -> tuple[str, list[str]]:
    name, rest = words[0].rpartition("/")[2] if words else "", list(words[1:])
    if name.rstrip("0123456789.") in ("python", "pypy", "py") and "-m" in rest[:-1]:
        at = rest.index("-m")
        return rest[at + 1], rest[at + 2 :]
    plain = [name, *_plain(rest)]
    for length in (3, 2, 1):
        if tuple(plain[:length]) in _RUNNERS and len(plain) > length:
            started = plain[length]
            return _program([started.partition("@")[0] or started, *rest[rest.index(started) + 1 :]])
    return name, rest


def _plain(words: Iterable[str]) -> list[str]:
    return [word for word in words if not word.startswith(("-", "+"))]


def _called_with(words: Sequence[str], line: tuple[str, ...]) -> bool:
    """Returns whether ``words`` begin with ``line``, but for options and what may be an option's value."""
    plain, first = _plain(words), 0
    before = ""
    for word in words:
        if not word.startswith(("-", "+")):
            if tuple(plain[first : first + len(line)]) == line:
                return True
            if not before.startswith("-") or "=" in before:
                return False
            first += 1
        before = word
    return not line


def _acts(words: Sequence[str]) -> bool:
    """Returns whether a forge's own program does more than look."""
    plain = _plain(words)
    if not plain or plain[0] in ("search", "status", "help", "version", "browse", "completion"):
        return False
    if plain[0] == "api":
        return "graphql" in plain or any(word.startswith(_CHANGES_API) for word in words)
    if plain[0] == "auth":
        return plain[1:2] != ["status"] or any(word in _TELLING for word in words)
    return not any(word in _ONLY_LOOKS for word in plain[1:2])


_REACHES = word_set(
    "curl wget ssh scp sftp rsync ftp nc ncat netcat socat telnet gh glab hub docker podman kubectl helm aws "
    "gcloud az terraform npx bunx uvx pipx dig nslookup host ping traceroute http https"
)
_FETCHING = {
    **dict.fromkeys(["pip", "pip3"], word_set("install download wheel index search")),
    "npm": word_set("install i ci add update outdated audit publish view info search login exec init create"),
    "pnpm": word_set("install i add update outdated audit publish dlx"),
    "yarn": word_set("install add upgrade outdated audit publish dlx"),
    "bun": word_set("install add update x"),
    "uv": word_set("sync add tool lock install compile"),
    "poetry": word_set("install add update lock publish"),
    "cargo": word_set("add install update fetch publish search"),
    "go": word_set("get mod install"),
    "bundle": word_set("install update"),
    "gem": word_set("install update push"),
    "composer": word_set("install update require"),
    "brew": word_set("install upgrade update"),
}
_TALKERS = word_set("curl wget http https xh nc ncat netcat telnet ping")
_HERE = re.compile(
    r"(?:https?://)?(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0)(?::\d+)?(?:[/?].*)?|(?:https?://)?:\d+(?:/.*)?",
    re.IGNORECASE,
)


_OFFLINE = frozenset({"--offline", "--no-index"})
"""Words by which package managers do without: who is wrong here has no network where the command is held."""


def reaches_out(words: Sequence[str], folders: Iterable[Path]) -> bool:
    """Returns whether a command needs the network to do what it is for, in whichever of ``folders`` it runs."""
    name = words[0].rpartition("/")[2]
    if name in ("npx", "bunx") and _installed(words[1:], folders):
        return False
    if name in _REACHES:
        return True
    if _OFFLINE.intersection(words):
        return False
    if re.fullmatch(r"python[\d.]*", name) and list(words[1:3]) == ["-m", "pip"]:
        return len(words) > 3 and words[3] in _FETCHING["pip"]
    return (name in _FETCHING and any(word in _FETCHING[name] for word in words[1:3])) or (
        name == "yarn" and len(words) == 1
    )


def stays_here(words: Sequence[str]) -> bool:
    """Returns whether a command seems to talk to this machine alone. Where it is held it has no other to talk to: who
    is wrong here asks a question too few, and reaches nothing."""
    if words[0] not in _TALKERS:
        return False
    named = [word for word in words[1:] if _HERE.fullmatch(word)]
    listens = words[0] in ("nc", "ncat", "netcat") and any(re.fullmatch(r"-[a-z]*l[a-z]*", word) for word in words)
    return bool(named or listens) and not any("://" in word and word not in named for word in words[1:])


def _installed(arguments: Sequence[str], folders: Iterable[Path]) -> bool:
    """Returns whether what ``npx`` is to run lies in the project."""
    rest = [word for word in arguments if word not in ("--no-install", "--no", "--")]
    plain = bool(rest) and re.fullmatch(r"[\w.-]+", rest[0]) is not None and not rest[0].startswith(("-", "."))
    return plain and all((folder / "node_modules/.bin" / rest[0]).exists() for folder in folders)
