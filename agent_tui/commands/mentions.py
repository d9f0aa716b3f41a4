"""What goes with a message: the files that its text names with ``@path``; and the files that can be named."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import mimetypes
import os
import re
import shlex
import stat
from collections.abc import Awaitable, Callable, Container, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from agent_tui.engine.draft import NamedFile
from agent_tui.models.image_headers import image_type
from agent_tui.models.messages import AttachmentPart, Metadata, attached_name
from agent_tui.paths import with_home
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured_line
from agent_tui.text.numbers import size
from agent_tui.tools.files.access import BadFile, FileAccess, Reach
from agent_tui.tools.files.beneath import entered, is_within, names_in
from agent_tui.tools.files.encodings import decoded
from agent_tui.tools.files.pictures import PICTURE_BYTES
from agent_tui.tools.files.text import as_read
from agent_tui.tools.git.repository import find_repository, own_git
from agent_tui.tools.permissions.reach import without_hosts
from agent_tui.urls import hosts_in

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from agent_tui.engine.agent import Agent


MAX_TEXT = 256 * 1024
MAX_LINES_FILE = 50 * 1024 * 1024
IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}

LISTED = 1_000
"""Entries of a folder that are listed."""

# A word after `@`, in quotes or not, perhaps with lines (`:10-20`). `@server:uri` is not a file: those are resources
# of MCP servers. A group is atomic here and not possessive: Python 3.11 goes back into those before 3.11.5.
_MENTION = re.compile(
    r"""(?<![\w@.])@(?:"([^"\n]+)"|([^\s"'`,;:)\]}>]++))(?>(?::(\d+)(?:-(\d+))?(?![\w/-]))?)(?!:[^\s"'`,;:)\]}>.!?])"""
)


@dataclass(slots=True, frozen=True)
class Mention:
    """A path as it was written, with the lines asked for (counted from 1, the last included)."""

    path: str
    first: int | None = None
    last: int | None = None

    def __str__(self) -> str:
        if self.first is None:
            return self.path
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last not in (None, self.first) else "")


def mentions(text: str) -> list[Mention]:
    """The paths named in a text, in order, each once. Addresses such as ``me@host`` are not among them."""
    found: list[Mention] = []
    for quoted, bare, first, last in _MENTION.findall(text):
        start = int(first[:9]) if first else None
        found.append(Mention(quoted or bare, start, int(last[:9]) if last else start))
    return list(dict.fromkeys(found))


def quote_path(path: str) -> str:
    """A path as it is written after ``@``: in quotes where it would otherwise end too early."""
    match = _MENTION.fullmatch("@" + path)
    return f"@{path}" if match is not None and match[2] == path else f'@"{path}"'


def unnamed(text: str, own_words: str, cwd: Path) -> str:
    """A text that the user did not write, as it may be sent in their name: it names no file, no resource and no host,
    but those of their ``own_words``."""
    known, before = set(hosts_in(own_words)), None
    while text != before:
        # What is taken out may bring together what names something.
        before = text
        text = _MENTION.sub(lambda m: m[0][1:] if _existing(m[1] or m[2], cwd) else m[0], text)
        text = without_hosts(re.sub(r"(?<![\w@.])@(?=[\w.-]+:)", "", text), known)
    return text


def outside(typed: str, cwd: Path, files: FileAccess) -> list[Path]:
    """Returns the paths of the existing files that a text names and that are outside the project, links followed, each
    once; not those that a rule denies, about which there is nothing to ask. Asks the file system: call in a thread."""
    found: dict[Path, None] = {}
    for mention in mentions(typed):
        with contextlib.suppress(BadFile):
            if (path := _existing(mention.path, cwd)) is not None:
                found[files.locate(path)] = None
    return [path for path in found if not is_within(path, files.folders)]


def expand_mentions(
    typed: str, cwd: Path, files: FileAccess, allowed: Container[Path] = ()
) -> tuple[list[AttachmentPart], list[str]]:
    """The attachments a message asks for and one line for each that cannot be had.

    ``typed`` is what the user wrote themselves: what was piped in, came from a file or from a model names nothing.
    What leads out of the project is attached only where it is among ``allowed``. A word that names no existing file
    stays a word (people do write ``@someone``). Reads files: call in a thread.
    """
    parts: list[AttachmentPart] = []
    problems: list[str] = []
    for mention in mentions(typed):
        path = _existing(mention.path, cwd)
        if path is None:
            continue
        try:
            real = files.locate(path)
            if is_within(real, files.folders) or real in allowed:
                parts.append(_attached(mention, path, real, cwd, files))
                continue
            folder = real if real.is_dir() else real.parent
            problems.append(f"{mention} is outside the project; --add-dir {shlex.quote(str(folder))} allows it")
        except BadFile as error:
            problems.append(f"{mention} {error}")
        except (OSError, ValueError) as error:
            problems.append(f"{mention}: {getattr(error, 'strerror', None) or error}")
    return parts, problems


def _attached(mention: Mention, path: Path, real: Path, cwd: Path, files: FileAccess) -> AttachmentPart:
    # What was judged is read, not where a link may lead by now.
    part = attachment(real, cwd, files, "exact") if mention.first is None else _lines(real, cwd, files, mention)
    if real != path:
        part.name = part.name.replace(_name(real, cwd), _name(path, cwd), 1)
    return part


def named_files(typed: str, cwd: Path, files: FileAccess) -> list[NamedFile]:
    """The same files that ``expand_mentions`` would attach, looked at and not read: those outside the project, which
    are asked about first, are never. Asks the file system: call in a thread."""
    found: list[NamedFile] = []
    for mention in mentions(typed):
        path = _existing(mention.path, cwd)
        if path is None:
            continue
        try:
            real = files.locate(path)
            info = real.stat()
        except (OSError, BadFile):
            continue
        whole = mention.first is None and not stat.S_ISDIR(info.st_mode)
        chars = info.st_size if stat.S_ISREG(info.st_mode) and not (whole and info.st_size > MAX_TEXT) else 0
        read = partial(_read, mention, path, real, cwd, files) if is_within(real, files.folders) else None
        key = (str(real), str(mention), info.st_mtime_ns, info.st_size)
        found.append(NamedFile(key, 0 if path.suffix.lower() in IMAGE_TYPES else min(chars, MAX_TEXT), read))
    return found


def _read(mention: Mention, path: Path, real: Path, cwd: Path, files: FileAccess) -> AttachmentPart | None:
    try:
        return _attached(mention, path, real, cwd, files)
    except (OSError, ValueError):
        # It would not be attached.
        return None


def attachment(path: Path, cwd: Path, files: FileAccess, reach: Reach = "own") -> AttachmentPart:
    """A file as an attachment, a folder as the list of what is in it; its ``path`` is where it really lies. Raises
    ``OSError`` when it cannot be read, ``ValueError`` when it may not be, is too large or neither text nor an image."""
    name, path = _name(path, cwd), files.locate(path, reach)
    if path.is_dir():
        with entered(path) as folder:
            entries = sorted(pictured_line(entry.name) + ("/" if entry.is_dir() else "") for entry in names_in(folder))
        more = [f"… and {len(entries) - LISTED:,} more"] if len(entries) > LISTED else []
        text = "\n".join(entries[:LISTED] + more) or "(empty)"
        return AttachmentPart(name.rstrip("/") + "/", "text/plain", text=text, path=str(path))
    raw, read = _bytes(files, path, PICTURE_BYTES)
    # By its content, not its name: providers refuse a whole conversation over an image that is not what it says.
    if (image := image_type(raw[:16])) is not None:
        return AttachmentPart(attached_name(name), image, data=base64.b64encode(raw).decode(), path=str(path))
    if path.suffix.lower() in IMAGE_TYPES:
        raise ValueError(f"not an image, in spite of its name ({path.suffix})")
    if len(raw) > MAX_TEXT:
        sizes = f"{size(len(raw))}, at most {size(MAX_TEXT)} can be attached"
        raise ValueError(f"the file has {sizes}; name lines (@file:1-200), or ask the model to read it")
    return AttachmentPart(attached_name(name), _kind(path), text=_decoded(raw), path=str(path), provider_metadata=read)


def _lines(path: Path, cwd: Path, files: FileAccess, mention: Mention) -> AttachmentPart:
    if path.is_dir():
        raise ValueError("a folder has no lines")
    raw, read = _bytes(files, path, MAX_LINES_FILE)
    lines = _decoded(raw).splitlines(keepends=True)
    first, last = mention.first or 1, mention.last or len(lines)
    chosen = lines[max(first, 1) - 1 : last]
    if not chosen:
        raise ValueError(f"has no lines {first}-{last}, it has {len(lines):,}")
    text = "".join(chosen)
    if len(text) > MAX_TEXT:
        raise ValueError(f"these lines have {size(len(text))}, the most that is attached is {size(MAX_TEXT)}")
    ending = f"{_name(path, cwd)}:{max(first, 1)}-{max(first, 1) + len(chosen) - 1}"
    return AttachmentPart(attached_name(ending), _kind(path), text=text, path=str(path), provider_metadata=read)


def _bytes(files: FileAccess, path: Path, limit: int) -> tuple[bytes, Metadata]:
    """A regular file's content, and what tells later that it was read."""
    found = files.read(path, limit, "exact")
    if len(found.data) > limit:
        raise ValueError(f"has {size(max(found.info.st_size, len(found.data)))}, at most {size(limit)} are looked at")
    return found.data, as_read(found.info)


def _decoded(raw: bytes) -> str:
    found = decoded(raw)
    if found is None:
        raise ValueError("neither text nor an image")
    return found[0].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _kind(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or "text/plain"


def _name(path: Path, cwd: Path) -> str:
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def _existing(name: str, cwd: Path) -> Path | None:
    for candidate in dict.fromkeys((name, name.rstrip(".!?"))):
        if not candidate:
            continue
        path = with_home(candidate)
        path = path if path.is_absolute() else cwd / path
        try:
            if path.exists():
                return path
        except (OSError, ValueError):
            return None
    return None


Says: TypeAlias = "Callable[[str, str], None]"
"""Takes a level (``info`` or ``warning``) and a line for the user."""
MayAttach: TypeAlias = "Callable[[Path], Awaitable[bool]]"
"""Asks whether a file outside the project may go with a message."""


async def collect(
    agent: Agent, text: str, given: Sequence[AttachmentPart], say: Says, may_attach: MayAttach
) -> list[AttachmentPart]:
    """``given``, and what ``text`` names, as the model takes them. What could not be read, was changed or left out is
    said. ``text`` is the user's own: hosts named in it may be fetched from."""
    agent.project.heard(text)
    if "@" not in text:
        return await _fitting(agent, given, say)

    files = agent.project.files
    beyond = await asyncio.to_thread(outside, text, agent.cwd, files)
    allowed = [path for path in beyond if await may_attach(path)]
    found, problems = await asyncio.to_thread(expand_mentions, text, agent.cwd, files, allowed)
    resources, unread = await agent.project.mcp_attachments(text)
    for problem in [*problems, *unread]:
        say("warning", f"Not attached: {problem}")
    return await _fitting(agent, [*given, *found, *resources], say)


async def _fitting(agent: Agent, parts: Sequence[AttachmentPart], say: Says) -> list[AttachmentPart]:
    attached, scaled, refused = await agent.project.fit_images(parts)
    for line in scaled:
        say("info", line)
    for line in refused:
        say("warning", f"Not attached: {line}")
    return attached


LIMIT = 200_000
_LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"})


def project_files(root: Path, limit: int = LIMIT) -> list[str]:
    """Paths below ``root``, relative, with ``/``, sorted; at most ``limit``. Slow on large trees: call in a thread."""
    found = _git_files(root)
    if found is None:
        found = _walk(root, limit)
    return sorted(found)[:limit]


def _git_files(root: Path) -> list[str] | None:
    repository = find_repository(root)
    if repository is None:
        return None
    with own_git(repository) as git:
        names = git.run(root, *_LIST, timeout=20) if git else None
    return None if names is None else list({os.fsdecode(name) for name in names.split(b"\0") if name})


def _walk(root: Path, limit: int) -> list[str]:
    found: list[str] = []
    files = FileAccess([root])
    specs: list[tuple[str, GitIgnoreSpec]] = []
    for folder, folders, names in os.walk(root):
        here = os.path.relpath(folder, root).replace(os.sep, "/")
        prefix = "" if here == "." else here + "/"
        specs = [(base, spec) for base, spec in specs if prefix.startswith(base)]
        if ".gitignore" in names:
            own = _spec(files, Path(folder, ".gitignore"))
            if own is not None:
                specs.append((prefix, own))
        folders[:] = [f for f in folders if f not in SKIPPED and not _ignored(specs, f"{prefix}{f}/")]
        found += [prefix + name for name in names if not _ignored(specs, prefix + name)]
        if len(found) >= limit:
            break
    return found


def _spec(files: FileAccess, path: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        text = files.read(path, MAX_TEXT, "project").data.decode("utf-8", "replace")
        return GitIgnoreSpec.from_lines(text.splitlines())
    except ValueError:
        return None


def _ignored(specs: list[tuple[str, GitIgnoreSpec]], path: str) -> bool:
    return any(spec.match_file(path[len(base) :]) for base, spec in specs)
