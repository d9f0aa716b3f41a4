"""Words about going back and to other branches, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.models.session import Branch
from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, tokens

if TYPE_CHECKING:
    from agent_tui.models.messages import Message
    from agent_tui.models.session import FilesMoved, Moved

NAMED = 3
"""Files that are named; more are counted."""


def moved_text(moved: Moved, root: Path) -> str:
    """One line that confirms: what left the conversation, what became of the files, and how to return."""
    parts = []
    if moved.left:
        kept = "is kept" if moved.left == 1 else "are kept"
        parts.append(f"{plural(moved.left, 'message')} left the conversation and {kept}")
    if moved.came:
        parts.append(f"{plural(moved.came, 'message')} of the other branch {_came(moved.came)}")
    text = f"{', '.join(parts) or 'Nothing left the conversation'}."
    if moved.files is not None:
        put = moved.files.put
        text += f" {plural(len(put), 'file')} put back: {_names(put, root)}." if put else " No file was put back."
    back = "/rewind back files" if moved.files is not None and moved.files.put else "/rewind back"
    return f"{text} {back} returns."


def tree(path: Sequence[Message], branches: Sequence[Branch]) -> Iterator[Message | Branch]:
    """Yields the places that one can go back to, from the newest on: the user's messages, and below the message that
    took its place each branch."""
    at: dict[str | None, list[Branch]] = {}
    fork: str | None = None
    for branch in branches:
        fork = branch.fork if branch.under is None else fork
        at.setdefault(fork, []).append(branch)
    for message in reversed(path):
        yield from at.get(message.id, ())
        if message.role == "user":
            yield message
    yield from at.get(None, ())


def head_of(entry: Message | Branch) -> str | None:
    """Returns the id of the message that the conversation ends with once the entry is chosen."""
    return entry.end if isinstance(entry, Branch) else entry.parent_id


def first_words(message: Message) -> str:
    """A message as a row of a list."""
    return one_line(message.text, 300) or "(attachment)"


def words_of(branch: Branch, width: int) -> str:
    """The first words of a branch, and its newest: often it begins like the message it took the place of. The first
    get no more than half of so many cells."""
    said = [message for message in branch.own if message.role == "user"]
    first = first_words(branch.first)
    if len(said) < 2:
        return first
    return f"{shorten(first, width // 2 - 2)} … {first_words(said[-1])}"


def files_text(files: FilesMoved, root: Path, key: str = "Ctrl+R") -> str:
    """Returns words for what ``key`` would do beside going there; empty where no file differs."""
    text = f"{key} puts {plural(len(files.put), 'file')} back too: {_names(files.put, root)}." if files.put else ""
    if files.left:
        lines = [one_line(line, 200).replace(f"{root}/", "") for line in files.left[:2]]
        more = f"; {plural(len(files.left) - 2, 'more file')} left" if len(files.left) > 2 else ""
        text = f"{text} {'; '.join(lines)}{more}.".strip()
    return text


def leaves_text(count: int) -> str:
    """Returns words for what going back takes out of the conversation."""
    leave = "leaves the conversation and stays" if count == 1 else "leave the conversation and stay"
    return f"{plural(count, 'message')} {leave} here as a branch."


def branch_text(branch: Branch) -> str:
    """The size of a branch, and where it forks."""
    own = f"{plural(len(branch.own), 'message')}, {tokens(branch.tokens, True)} tokens"
    where = f"after {plural(branch.shared, 'message')}" if branch.shared else "at the beginning"
    return f"A branch of {own} that forked {where}."


def _came(count: int) -> str:
    return "is back" if count == 1 else "are back"


def _names(files: Sequence[Path], root: Path) -> str:
    names = [one_line(str(path.relative_to(root) if path.is_relative_to(root) else path), 80) for path in files]
    more = [plural(len(names) - NAMED, "more file")] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])
