"""Which git commands only look, which reach out, and which have git start something."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from agent_tui.tools.judge.line.syntax import NotUnderstoodError, Word
from agent_tui.tools.judge.programs.arguments import Reading
from agent_tui.tools.word_sets import word_set

_LOOKS = word_set(
    "status log diff show rev-parse ls-files ls-tree blame annotate describe shortlog rev-list merge-base "
    "name-rev for-each-ref show-ref count-objects check-ignore check-attr grep whatchanged cat-file diff-tree "
    "diff-index diff-files cherry range-diff version"
)
# With these words, options and patterns they list; with others they change something.
_LISTS: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    name: (re.compile(options), re.compile(operands))
    for name, options, operands in (
        ("branch", r"-[arv]+|--(all|remotes|show-current|list|no-color|verbose|contains|merged|no-merged|sort|format)"
                   r"(=.*)?", r""),
        ("tag", r"-l|--list|-n\d*|--(sort|contains|merged|points-at|format)=.*", r""),
        ("remote", r"-v|--verbose", r"(show|get-url [\w.-]+)?"),
        ("stash", r"-p|--patch|--(stat|name-only|name-status|oneline)|-\d+|-n\d+",
                  r"list|show( (stash@\{)?\d+\}?)?"),
        ("worktree", r"--porcelain|-v", r"list"),
        ("reflog", r"-n\d*|-\d+|--oneline|--date=\w+", r"(show)?( ?[\w./@{}-]+)?"),
        ("symbolic-ref", r"--short|-q", r"HEAD"),
        ("config", r"--(get|get-all|get-regexp|list|local|global|system|show-origin|show-scope|name-only|bool|path)|-l",
                   r"(get |list)?[\w.*^$-]*"),
    )
}  # fmt: skip
_DANGEROUS = (
    *(
        "--output",
        "--ext-diff",
        "--textconv",
        "--filters",
        "--open-files-in-pager",
        "--no-index",
        "--exec",
        "--paginate",
    ),
    *(
        "--show-signature",
        "--contents",
        "--ignore-revs-file",
        "--exclude-from",
        "--file",
        "--blob",
        "--edit",
        "--stdin",
    ),
    *("--super-prefix", "--orderfile", "--batch", "--pathspec-from-file", "--recurse-submodules", "--submodule"),
)
_CONTENT = word_set("diff show grep blame annotate cat-file diff-tree diff-index diff-files range-diff")
_TREE_ONLY = word_set("diff grep blame annotate diff-files")
_PATCH = re.compile(r"-[pu]|-U\d*|--patch.*|--unified.*|-L.*|--cc|-c|--patch-with-.*|-m")
_NO_PATCH = re.compile(r"--(stat|name-only|name-status|numstat|shortstat|summary|dirstat|no-patch|quiet|check)\b.*|-s")


_SEARCHES = {
    **dict.fromkeys(("log", "rev-list"), word_set("-S -G -n --author --grep --since --until")),
    **dict.fromkeys(("blame", "annotate"), word_set("-L")),
}
"""Options whose value is a pattern, a range of lines or a number, and comes as the next word. Not of ``diff``,
which would read what only seems to be one outside the repository."""


def split_globals(arguments: Sequence[Word]) -> tuple[list[Word], list[Word], bool]:
    """(folders of -C, the rest, whether all options before the subcommand are harmless)."""
    folders: list[Word] = []
    at = 0
    while at < len(arguments) and arguments[at].text.startswith("-"):
        text = arguments[at].text
        if text == "-C" and at + 1 < len(arguments):
            folders.append(arguments[at + 1])
            at += 1
        elif text in ("--version", "-v") and len(arguments) == 1:
            break
        elif text not in ("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"):
            return folders, list(arguments[at:]), False
        at += 1
    return folders, list(arguments[at:]), True


def git_reading(arguments: list[Word]) -> Reading | None:
    """What a git command looks at; None for all others."""
    folders, rest, plain = split_globals(arguments)
    if not plain:
        return None
    found = Reading(paths=folders)
    if any(folder.text not in (".", "./") for folder in folders):
        found.held = "git reads the settings of that folder"
    if not rest or rest[0].text in ("--version", "-v"):
        return found
    subcommand, texts = rest[0].text, [word.text for word in rest[1:]]
    if rest[0].dynamic:
        raise NotUnderstoodError("what git is to do is only known when it runs")
    if subcommand in _LISTS:
        return found if _lists(subcommand, texts) else None
    if subcommand not in _LOOKS:
        return None
    if any(_means(text, option) for text in texts for option in _DANGEROUS) or any("%G" in text for text in texts):
        return None
    if any(text.startswith("-O") for text in texts) or (subcommand in ("blame", "annotate") and "-S" in texts):
        return None
    if subcommand == "grep" and any(re.fullmatch(r"-\w*[Of].*", text) for text in texts):
        return None
    if subcommand == "ls-files" and any(text.startswith("-X") for text in texts):
        return None
    _operands(found, subcommand, rest[1:])
    _contents(found, subcommand, texts)
    return found


def _operands(found: Reading, subcommand: str, arguments: list[Word]) -> None:
    """Everything that may be a path: git leaves the repository for two files named to ``diff``."""
    operands = [
        word
        for before, word in zip([Word(), *arguments], arguments, strict=False)
        if not word.text.startswith("-") and not (before.text in _SEARCHES.get(subcommand, ()) and not word.glob)
    ]
    if any(word.glob for word in arguments if word.text.startswith("-")):
        raise NotUnderstoodError("an option is a file pattern")
    if subcommand == "grep" and operands and not any(word.text.startswith("-e") for word in arguments):
        operands = operands[1:]
    found.paths += [word for word in operands if not word.glob or "/" in word.text or word.text[:1] in "*?["]
    found.paths += [word for word in operands if word.glob and word not in found.paths]


def _contents(found: Reading, subcommand: str, texts: list[str]) -> None:
    """Notes whether the contents of files are shown, of now or of any time."""
    if subcommand in _CONTENT:
        if not any(_NO_PATCH.fullmatch(text) for text in texts) or any(_PATCH.fullmatch(text) for text in texts):
            now = subcommand in _TREE_ONLY and not _names_revisions(subcommand, texts)
            found.contents = "tree" if now else "history"
    elif subcommand in ("log", "whatchanged", "stash") and any(_PATCH.fullmatch(text) for text in texts):
        found.contents = "history"


def _names_revisions(subcommand: str, texts: list[str]) -> bool:
    before = texts[: texts.index("--")] if "--" in texts else texts
    operands = [text for text in before if not text.startswith("-")]
    staged = any(text in ("--cached", "--staged") for text in texts)
    return staged or len(operands) > (1 if subcommand == "grep" else 0)


def _lists(subcommand: str, texts: list[str]) -> bool:
    options, operands = _LISTS[subcommand]
    plain = [text for text in texts if not text.startswith("-")]
    listing = any(re.fullmatch(r"-l|--(list|contains|merged|no-merged|points-at).*", text) for text in texts)
    if not all(options.fullmatch(text) for text in texts if text.startswith("-")):
        return False
    if subcommand == "config":
        if not plain and not any(text in ("-l", "--list") for text in texts):
            return False
        reads = any(text.startswith("--get") or text in ("-l", "--list") for text in texts)
        return len(plain) <= 1 or (reads and len(plain) <= 2) or (plain[0] == "get" and len(plain) == 2)
    if subcommand in ("branch", "tag"):
        # A word alone would make one; behind --list it is a pattern.
        return not plain or (listing and all(re.fullmatch(r"[\w./*@-]+", text) for text in plain))
    if subcommand in ("stash", "worktree", "symbolic-ref") and not plain:
        return False
    return operands.fullmatch(" ".join(plain)) is not None


def _means(word: str, option: str) -> bool:
    """True when ``word`` is ``option``, with a value or abbreviated, as git takes it."""
    name = word.partition("=")[0]
    return len(name) > 2 and name.startswith("--") and option.startswith(name)


_WITH_MESSAGE = word_set("commit merge notes revert stash tag")


def messages(arguments: Sequence[Word]) -> list[Word]:
    """The words that are no more than a message: what stands in quotes behind ``-m``, whatever it becomes."""
    if not arguments or arguments[0].text not in _WITH_MESSAGE:
        return []
    return [
        word
        for before, word in itertools.pairwise(arguments)
        if word.quoted and re.fullmatch(r"-[aqsvn]*m|--message", before.text)
    ]


_STARTS = (
    *("--exec", "--upload-pack", "--receive-pack", "--config", "--template", "--open-files-in-pager", "--ext-diff"),
    *("--textconv", "--extcmd", "--tool", "--strategy", "--gpg-sign", "--config-env", "--exec-path", "--git-dir"),
    *(
        "--work-tree",
        "--namespace",
        "--output",
        "--no-index",
        "--separate-git-dir",
        "--reference",
        "--credential-helper",
        "--unsafe-paths",
    ),
)
_KNOWN = word_set(
    "add commit checkout switch restore stash reset merge rebase mv rm apply am cherry-pick revert branch tag "
    "fetch pull push clean init clone worktree notes gc prune format-patch bisect bundle reflog remote "
    "update-index"
) | _LOOKS | {"symbolic-ref"}  # fmt: skip
_REMOTES = word_set("fetch pull push clone ls-remote")


def git_asks(arguments: Sequence[Word]) -> str:
    """Why a git command that does not only look is asked about even in a mode that runs commands: it starts programs
    named in it, changes settings, or reaches a place that is named in it. Empty where it does not."""
    _, rest, plain = split_globals(arguments)
    if not plain or not rest:
        return "git with settings of its own"
    subcommand, texts = rest[0].text, [word.text for word in rest[1:]]
    if subcommand not in _KNOWN:
        return f"what git {subcommand} starts is not visible here"
    if starting(texts) or (subcommand == "rebase" and any(re.match(r"-\w*[xs]", text) for text in texts)):
        return "git would start what an option names"
    if subcommand == "grep" and any(re.match(r"-\w*O", text) for text in texts):
        return "git would start what an option names"
    operands = [text for text in texts if not text.startswith("-")]
    if subcommand == "bisect" and operands[:1] == ["run"]:
        return "git would start what it is given"
    if subcommand == "remote" and operands[:1] not in ([], ["show"], ["get-url"], ["prune"], ["update"]):
        return "it changes where git reaches"
    if subcommand == "clone":
        return "it fetches from a place it names"
    return "it reaches a place it names" if names_a_place(arguments) else ""


_REMOTE_FLAGS = re.compile(
    r"-[46adfknpqrtuv]+|-[jn]\d+|-j|--(all|append|atomic|autostash|commit|delete|dry-run|edit|ff|ff-only|follow-tags|force"
    r"|force-if-includes|force-with-lease(=.*)?|heads|ipv4|ipv6|jobs(=\d+)?|keep|depth(=\d+)?|deepen(=\d+)?|mirror|no-autostash"
    r"|no-commit|no-edit|no-ff|no-force-with-lease|no-progress|no-rebase|no-recurse-submodules|no-signed|no-stat|no-tags|no-thin"
    r"|no-verify|porcelain|progress|prune|prune-tags|quiet|rebase(=\w+)?|refs|set-upstream|squash|stat|symref|tags|thin|unshallow"
    r"|update-shallow|verbose|verify)"
)
_NUMBERED = word_set("-j --jobs --depth --deepen")


def names_a_place(arguments: Sequence[Word]) -> bool:
    """Whether git would reach an address or folder named in the command, not one of the repository's remotes. So would
    it where an option is not known: the word behind it may be its value, or that place."""
    _, rest, _ = split_globals(arguments)
    if not rest or rest[0].text not in _REMOTES:
        return False
    before, operands = "", []
    for word in rest[1:]:
        if word.text.startswith("-") and word.text != "--":
            if not _REMOTE_FLAGS.fullmatch(word.text):
                return True
        elif word.text != "--" and not (before in _NUMBERED and word.text.isdigit()):
            operands.append(word.text)
        before = word.text
    return bool(operands) and not re.fullmatch(r"\w[\w-]*(\.[\w-]+)*", operands[0])


def without_globals(arguments: Sequence[Word]) -> list[Word]:
    """The subcommand and what follows, for rules that name it: whatever options stand before it."""
    at = 0
    while at < len(arguments) and arguments[at].text.startswith("-"):
        at += 2 if arguments[at].text in _GLOBAL_VALUES else 1
    return list(arguments[at:])


_GLOBAL_VALUES = word_set("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source")


def starting(texts: Sequence[str]) -> bool:
    """Whether options have git start a program, or leave the project, however abbreviated."""
    return any(_means(text, option) for text in texts for option in _STARTS) or any(
        re.match(r"-O.", text) for text in texts
    )


def git_reaches_out(arguments: Sequence[Word]) -> bool:
    """Whether a git command needs the network."""
    _, rest, _ = split_globals(arguments)
    if not rest:
        return False
    if rest[0].text == "submodule":
        return any(word.text in ("add", "update") for word in rest[1:])
    return rest[0].text in _REMOTES or rest[0].text in ("send-email", "remote", "lfs")
