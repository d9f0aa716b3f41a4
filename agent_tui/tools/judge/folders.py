"""Files that a rule denies reading, where a command would come to them by the way: below a folder, or out of git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_tui.tools.git.repository import find_repository, own_git
from agent_tui.tools.judge.line.syntax import Word
from agent_tui.tools.judge.programs.git import shown_contents
from agent_tui.tools.judge.programs.kinds import COPIERS
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.rules.ground import Ground

MAX_ENTRIES = 50_000
"""Where a folder holds more, it is treated as if the worst were in it."""

_GIT_SECONDS = 2.0
_RECURSIVE = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "diff"), re.compile(r"-\w*[rR]\w*|--(dereference-)?recursive")),
    "find": re.compile(r"-exec(dir)?|-ok(dir)?"),
}


def takes_all_below(words: Sequence[str]) -> bool:
    """Whether a program is known to read what is in all files below the folders it is given, or where it runs."""
    if not words:
        return False
    if words[0] in COPIERS or words[0] in ("rg", "ag", "ack"):
        return True
    pattern = _RECURSIVE.get(words[0])
    return pattern is not None and any(pattern.fullmatch(word) for word in words[1:])


def names_its_folders(words: Sequence[str]) -> bool:
    """Whether such a program reads nothing where it is given no folder."""
    return words[0] in COPIERS


def holds_denied(ground: Ground, folder: Path) -> Decision | None:
    """The refusal, where reading everything below a resolved folder would read what a rule denies."""
    for entry in _entries(folder):
        if entry is None:
            return Decision("ask", f"{folder} holds too much to be sure that nothing in it is denied by a rule")
        if ground.denies_reading(Path(entry.path)):
            name = os.path.relpath(entry.path, ground.root)
            message = (
                f"Refused: it would read {name}, which a rule of the user denies. Name the files you need, or use the "
                "grep tool, which passes such files over."
            )
            return Decision("deny", f"a rule denies reading {name}", message)
    return None


def git_shows_denied(ground: Ground, arguments: Sequence[Word]) -> Decision | None:
    """The refusal or question, where git would show what a rule denies reading: a file named as it was at some time,
    one that git knows now, or perhaps one it knew."""
    contents = shown_contents(arguments)
    if not contents:
        return None
    texts = [word.text for word in arguments]
    for text in texts:
        name = text.partition(":")[2] if ":" in text and not text.startswith("-") else text
        if name and ground.denies_reading(ground.cwd / name):
            return _refused(name)
    if contents == "history":
        # Single files of single commits, and none of them denied?
        named = [text for text in texts[1:] if not text.startswith("-")]
        plain = bool(named) and all(":" in text.lstrip(":") for text in named)
        return None if plain else Decision("ask", "what it shows of earlier times may hold files that a rule denies")
    repository = find_repository(ground.root)
    if repository is None:
        return None
    with own_git(repository) as git:
        known = git.run(ground.root, "ls-files", "-z", "-c", timeout=_GIT_SECONDS) if git else None
    if known is None:
        return Decision("ask", "which files git knows cannot be said, and a rule denies some")
    names = (os.fsdecode(name) for name in known.split(b"\0") if name)
    denied = next((name for name in names if ground.denies_reading(ground.root / name)), None)
    return _refused(denied) if denied else None


def _refused(name: str) -> Decision:
    message = f"Refused: it would show {name}, which a rule of the user denies reading."
    return Decision("deny", f"a rule denies reading {name}", message)


def _entries(folder: Path) -> Iterator[os.DirEntry[str] | None]:
    """Everything below, links not followed; None in the end when there is more than is looked at."""
    count = 0
    open_folders = [str(folder)]
    while open_folders:
        try:
            with os.scandir(open_folders.pop()) as found:
                for entry in found:
                    count += 1
                    if count > MAX_ENTRIES:
                        yield None
                        return
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        open_folders.append(entry.path)
        except OSError:
            continue
