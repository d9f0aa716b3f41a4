"""Where a path really leads: links resolved, inside the project or not, protected or not."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext


def resolve(path: str, context: ToolContext) -> Path:
    """The absolute path, ``~`` expanded and every link followed; it need not exist. Raises ToolError for a path that
    cannot be one, and for one that leads elsewhere than it did when the call was allowed."""
    resolved = resolve_from(path, context.cwd)
    if context.allowed_paths is not None and resolved not in context.allowed_paths:
        raise ToolError("The path leads elsewhere now than when the call was allowed. Look again before another try.")
    return resolved


def resolve_from(path: str, cwd: Path) -> Path:
    """The same without regard to any call. Raises ToolError for what cannot be a path."""
    if not path or "\0" in path:
        raise ToolError("The path is empty or contains a NUL character.")
    try:
        resolved = (cwd / Path(path).expanduser()).resolve()
    except (RuntimeError, OSError, ValueError) as error:
        raise ToolError(f"The path {path[:200]!r} cannot be resolved: {error}") from None
    try:
        resolved.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ToolError(f"The path {path[:80]!r}… is too long.") from None
    return resolved


def is_within(path: Path, folders: Iterable[Path]) -> bool:
    """True when the resolved ``path`` is one of ``folders`` or below one, links in ``folders`` followed."""
    text = os.path.normcase(path)
    # By its own name first: that costs no look at the disk, and what is resolved lies below no link.
    return any(_below(text, folder) or _below(text, os.path.realpath(folder)) for folder in folders)


def _below(path: str, folder: str | Path) -> bool:
    tree = os.path.normcase(folder)
    return path == tree or path.startswith(tree.rstrip(os.sep) + os.sep)


def inside(path: Path, context: ToolContext) -> bool:
    """True when the resolved ``path`` lies in the project or an added directory."""
    return is_within(path, [context.root, *context.added_dirs])


def may_tell(path: Path, context: ToolContext) -> bool:
    """Whether the model may learn about the resolved ``path`` without asking: it could read it just as well."""
    return inside(path, context) and not context.hidden(path)


def shown(path: Path, context: ToolContext) -> str:
    """The path as people and the model are shown it: relative to the working directory when below it."""
    for base in (context.cwd.resolve(), context.root.resolve()):
        if path == base:
            return "."
        if path.is_relative_to(base):
            return (path if base != context.cwd.resolve() else path.relative_to(base)).as_posix()
    return path.as_posix()
