"""What lies below the folders a command is given: links that lead out, and files that a rule denies reading."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from agent_tui.tools.files.paths import is_within
from agent_tui.tools.git.own import own_git
from agent_tui.tools.git.repository import find_repository
from agent_tui.tools.judge.line.syntax import Word
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.rules.ground import Ground

MAX_ENTRIES = 50_000
"""Where a folder holds more, it is treated as if the worst were in it."""

_GIT_SECONDS = 2.0


def leads_out(folder: Path, folders: Iterable[Path]) -> bool:
    """Whether a link below a resolved folder leads out of ``folders``, or there is too much to be sure."""
    within = list(folders)
    for entry in _entries(folder):
        if entry is None or (entry.is_symlink() and not is_within(Path(entry.path).resolve(), within)):
            return True
    return False


def holds_denied(ground: Ground, folder: Path) -> Decision | None:
    """The refusal, where reading everything below a resolved folder would read what a rule denies."""
    if not ground.has_denied_files:
        return None
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


def shows_denied(ground: Ground, words: Sequence[Word], contents: Literal["tree", "history"]) -> Decision | None:
    """The refusal or question, where git would show what a rule denies reading: a file named as it was at some time,
    one that git knows now, or perhaps one it knew."""
    if not ground.has_denied_files:
        return None
    texts = [word.text for word in words[1:]]
    for text in texts:
        name = text.partition(":")[2] if ":" in text and not text.startswith("-") else text
        if name and ground.denies_reading(ground.cwd / name):
            return _refused(name)
    shown = [text for text in texts if ":" in text and not text.startswith(("-", ":"))]
    if contents == "history" and shown and all(":" in t or t.startswith("-") for t in texts[1:]):
        return None  # single files of single commits, and none of them denied
    repository = find_repository(ground.root)
    if repository is None:
        return None
    if contents == "tree":
        with own_git(repository) as git:
            known = git.run(ground.root, "ls-files", "-z", "-c", timeout=_GIT_SECONDS) if git else None
        if known is not None:
            names = (os.fsdecode(name) for name in known.split(b"\0") if name)
            denied = next((name for name in names if ground.denies_reading(ground.root / name)), None)
            return _refused(denied) if denied else None
    return Decision("ask", "what it shows of earlier times may hold files that a rule denies")


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
