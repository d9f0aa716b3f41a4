"""``@path`` in a message: the files it names become attachments of that message."""

from __future__ import annotations

import base64
import mimetypes
import re
from pathlib import Path

from agent_tui.models.messages import AttachmentPart

MAX_TEXT = 256 * 1024
MAX_IMAGE = 10 * 1024 * 1024
IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}

_MENTION = re.compile(r"""(?<![\w@.])@(?:"([^"\n]+)"|([^\s"'`,;:)\]}>]+))""")


def mentions(text: str) -> list[str]:
    """The paths named in a text, in order, each once. Addresses such as ``me@host`` are not among them."""
    found = (quoted or bare for quoted, bare in _MENTION.findall(text))
    return list(dict.fromkeys(found))


def quote_path(path: str) -> str:
    """A path as it is written after ``@``: in quotes where it would otherwise end too early."""
    return f'@"{path}"' if _MENTION.fullmatch("@" + path) is None else f"@{path}"


def expand_mentions(text: str, cwd: Path) -> tuple[list[AttachmentPart], list[str]]:
    """The attachments a message asks for and one line for each that cannot be had.

    A word that names no existing file stays a word (people do write ``@someone``). Reads files: call in a thread.
    """
    parts: list[AttachmentPart] = []
    problems: list[str] = []
    for name in mentions(text):
        path = _existing(name, cwd)
        if path is None:
            continue
        try:
            part = attachment(path, cwd)
        except (OSError, ValueError) as error:
            problems.append(f"{name}: {getattr(error, 'strerror', None) or error}")
            continue
        parts.append(part)
    return parts, problems


def attachment(path: Path, cwd: Path) -> AttachmentPart:
    """A file as an attachment. Raises ``OSError`` when it cannot be read, ``ValueError`` when it is too large or is
    neither text nor an image."""
    name = str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
    if path.is_dir():
        entries = sorted(p.name + ("/" if p.is_dir() else "") for p in path.iterdir())
        return AttachmentPart(name + "/", "text/plain", text="\n".join(entries[:1000]), path=str(path))
    size = path.stat().st_size
    image = IMAGE_TYPES.get(path.suffix.lower())
    if image is not None:
        if size > MAX_IMAGE:
            raise ValueError(f"the image has {size // 1024:,} kB, at most {MAX_IMAGE // 1024:,} are sent")
        return AttachmentPart(name, image, data=base64.b64encode(path.read_bytes()).decode(), path=str(path))
    if size > MAX_TEXT:
        raise ValueError(f"the file has {size // 1024:,} kB, at most {MAX_TEXT // 1024} are attached; ask to read it")
    raw = path.read_bytes()
    if b"\0" in raw[:8192]:
        raise ValueError("neither text nor an image")
    kind = mimetypes.guess_type(path.name)[0] or "text/plain"
    return AttachmentPart(name, kind, text=raw.decode("utf-8", "replace"), path=str(path))


def _existing(name: str, cwd: Path) -> Path | None:
    for candidate in dict.fromkeys((name, name.rstrip(".!?"))):
        if not candidate:
            continue
        path = Path(candidate).expanduser()
        path = path if path.is_absolute() else cwd / path
        try:
            if path.exists():
                return path
        except (OSError, ValueError):
            return None
    return None
