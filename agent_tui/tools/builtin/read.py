"""read: a file's lines, numbered, an image, a notebook's cells or the text of a PDF."""

from __future__ import annotations

import base64
import codecs
import io
import os
from pathlib import Path
from typing import BinaryIO

from agent_tui.errors import ToolError
from agent_tui.models.image_headers import image_type
from agent_tui.models.messages import AttachmentPart, Metadata, ToolCallPart
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured
from agent_tui.text.numbers import plural
from agent_tui.tools.aliases import parsed, understood
from agent_tui.tools.arguments import INTEGER, TEXT, described, parameters, validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.builtin.pdf import pdf_text
from agent_tui.tools.children.process import Stop, in_thread
from agent_tui.tools.files import text as files
from agent_tui.tools.files.beneath import info_of, known_to_commands, open_regular, resolve, shown
from agent_tui.tools.files.encodings import decoded, has_mark
from agent_tui.tools.files.notebook import notebook_text
from agent_tui.tools.files.pictures import PICTURE_BYTES

DEFAULT_LINES = 2_000
LINE_BYTES = 2_000
PDF_NOTE = "the text of a PDF, in lines of its own; it cannot be edited"
NOTEBOOK_NOTE = "a notebook; edit changes its cells by this text without output: [cell new, code] begins another one"
NOTEBOOK_BYTES = 30_000_000
"""Up to this size a notebook is shown as its cells."""
_COUNT_BYTES = 20_000_000  # up to this size the total number of lines is told


@dataclass(slots=True)
class ReadArguments:
    path: str
    offset: int = 1
    limit: int = DEFAULT_LINES


class ReadTool:
    """Never loads more of a file than it shows: long lines are cut, and reading stops at the output limit."""

    group = "builtin"
    schema = ToolSchema(
        "read",
        "Read a text file, image, notebook or PDF. Lines come as `number<tab>text`.",
        parameters(
            {
                "path": TEXT,
                "offset": described(INTEGER, "first line"),
                "limit": described(INTEGER, f"lines, default {DEFAULT_LINES}"),
            },
            "path",
        ),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(ReadArguments, arguments, "read")
        path = resolve(args.path, context)
        span = f":{args.offset}" if args.offset > 1 else ""
        return Intent("read", f"read {pictured(shown(path, context))}{span}", [path])

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(ReadArguments, arguments, "read")
        args.offset = args.offset or 1  # counted from 0 elsewhere
        if args.offset < 1 or args.limit < 1:
            raise ToolError("read: offset and limit begin at 1.")
        path = resolve(args.path, context)
        name = pictured(shown(path, context))
        try:
            if await in_thread(lambda stop: _is_pdf(path, name)):
                text = await pdf_text(path, name)
                return await in_thread(lambda stop: _as_text(text, PDF_NOTE, args, context, stop))
            return await in_thread(lambda stop: _read(path, name, args, context, stop))
        except OSError as error:
            raise ToolError(f"{name} cannot be read: {error.strerror}.") from None


def _is_pdf(path: Path, name: str) -> bool:
    with open_regular(path, name) as file:
        return file.read(8).startswith(b"%PDF-")


def _as_text(text: str, what: str, args: ReadArguments, context: ToolContext, stop: Stop) -> ToolOutcome:
    """Returns text in lines that are not those of the file, and ``what``, a hint on changing it."""
    data = text.encode("utf-8", "replace")
    outcome = _lines(io.BytesIO(data), len(data), args, context.config.output_limit, stop)
    outcome.text += f"\n[{what}]"
    return outcome


def _read(path: Path, name: str, args: ReadArguments, context: ToolContext, stop: Stop) -> ToolOutcome:
    with open_regular(path, name) as file:
        info = os.fstat(file.fileno())
        start = file.read(8192)
        if media_type := image_type(start):
            return _image(path, name, start + file.read(PICTURE_BYTES), media_type)
        file.seek(0)
        if path.suffix.lower() == ".ipynb" and info.st_size <= NOTEBOOK_BYTES:
            cells = notebook_text(file.read(NOTEBOOK_BYTES), name)
            files.remember(context, path, info)
            return _as_text(cells, NOTEBOOK_NOTE, args, context, stop)
        text, size, note = _utf8(file, name, info.st_size, stop)
        outcome = _lines(text, size, args, context.config.output_limit, stop)
        notes = [f"[{note}]"] if note else []
        if "another" in (where := known_to_commands(path, context)):
            notes.append(where)
        outcome.text = "\n".join([outcome.text, *notes])
    files.remember(context, path, info)
    return outcome


def _utf8(file: BinaryIO, name: str, size: int, stop: Stop) -> tuple[BinaryIO, int, str]:
    """A file in UTF-8, from its beginning: itself, or one made of it; its size; and what there is to say of its
    encoding. Raises ToolError for what is not text."""
    large = size > files.EDIT_BYTES
    if large or _is_utf8(file, stop):
        start = file.read(1 << 20 if large else 8192)
        file.seek(0)
        if b"\0" not in start[:8192] and not has_mark(start):
            strange = large and "\ufffd" in start.decode("utf-8", "replace")[:-1]
            return file, size, "not all of it is UTF-8, and it is too large to be read as anything else" * strange
    data = file.read(files.EDIT_BYTES + 1)
    found = decoded(data) if len(data) <= files.EDIT_BYTES else None
    if found is None:
        raise ToolError(f"{name} is a binary file of {size:,} bytes; it cannot be shown as text.")
    text, encoding = found
    if encoding.damaged:
        file.seek(0)
        return file, size, "some bytes are not UTF-8 and are shown as \ufffd; edit leaves them as they are"
    if not encoding.legacy:
        file.seek(0)
        return file, size, ""
    plain = text.encode("utf-8")
    sure = "" if encoding.mark else ", as far as its bytes tell"
    return io.BytesIO(plain), len(plain), f"the file is {encoding.name}, not UTF-8{sure}; edit and write keep that"


def _is_utf8(file: BinaryIO, stop: Stop) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while (chunk := file.read(1 << 20)) and not stop.is_set():
            if b"\x1b$" in chunk:
                return False  # it may be Japanese in seven bits
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    finally:
        file.seek(0)
    return True


def _lines(file: BinaryIO, size: int, args: ReadArguments, limit: int, stop: Stop) -> ToolOutcome:
    shown_lines: list[str] = []
    used = number = 0
    cut = controls = more = False
    while chunk := file.readline(LINE_BYTES):
        if stop.is_set():
            raise ToolError("read: interrupted.")
        number += 1
        extra = 0 if chunk.endswith(b"\n") else _skip_line(file, stop)
        if number < args.offset:
            continue
        if len(shown_lines) >= args.limit or used >= limit:
            more = True
            break
        raw = chunk.rstrip(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
        text = pictured(raw.removeprefix("\ufeff") if number == 1 else raw)
        controls = controls or text != raw.removeprefix("\ufeff")
        if extra:
            cut = True
            text += f" [… {extra:,} more bytes in this line]"
        shown_lines.append(f"{number}\t{text}")
        used += len(shown_lines[-1]) + 1
    notes: list[str] = []
    last = args.offset + len(shown_lines) - 1
    total = number if not more else number + _count(file, stop) if size <= _COUNT_BYTES else None
    if more:
        of = f" of {total:,}" if total is not None else ""
        notes.append(f"[lines {args.offset}-{last}{of}; continue with offset {last + 1}]")
    elif not shown_lines:
        notes.append("[the file is empty]" if number == 0 else f"[the file has only {plural(number, 'line')}]")
    if cut:
        notes.append(f"[lines are cut at {LINE_BYTES:,} bytes; use grep or bash for the rest]")
    if controls:
        notes.append("[control characters are shown as pictures such as ␛]")
    display: Metadata = {"kind": "text", "summary": plural(len(shown_lines), "line")}
    if shown_lines:
        display |= {"first": args.offset, "last": last, "total": total}
    return ToolOutcome("\n".join([*shown_lines, *notes]), display=display)


def same_now(call: ToolCallPart, result: str, context: ToolContext) -> bool | None:
    """Whether the lines that a call of ``read`` gave are still those of the file; None where that cannot be told. The
    file does not count as read again."""
    try:
        args = validate(ReadArguments, understood(call.name, parsed(call.name, call.arguments), context.cwd)[1], "read")
        path = resolve(args.path, context)
        if context.hidden(path) or not (then := _numbered(result)):
            return None
        if info_of(path) is None:
            return False
        with open_regular(path, args.path) as file:
            text, size, _ = _utf8(file, args.path, os.fstat(file.fileno()).st_size, Stop())
            args.offset = max(1, args.offset)
            now = _lines(text, size, args, context.config.output_limit, Stop()).text
    except (ToolError, OSError):
        return None
    return _numbered(context.secrets.mask(now)) == then


def _numbered(text: str) -> list[str]:
    """The lines of a file among those of a result."""
    return [line for line in text.split("\n") if line.partition("\t")[0].isdecimal()]


def _skip_line(file: BinaryIO, stop: Stop) -> int:
    """Reads to the end of the line; the number of bytes that were passed over, its newline not counted."""
    passed = 0
    while chunk := file.readline(1 << 16):
        passed += len(chunk)
        if stop.is_set():
            break
        if chunk.endswith(b"\n"):
            return passed - 1
    return passed


def _count(file: BinaryIO, stop: Stop) -> int:
    lines, last = 0, b"\n"
    while (chunk := file.read(1 << 16)) and not stop.is_set():
        lines += chunk.count(b"\n")
        last = chunk[-1:]
    return lines + (last != b"\n")


def _image(path: Path, name: str, data: bytes, media_type: str) -> ToolOutcome:
    if len(data) > PICTURE_BYTES:
        raise ToolError(f"{name} is an image of more than {PICTURE_BYTES:,} bytes; make it smaller first.")
    part = AttachmentPart(path.name, media_type, data=base64.b64encode(data).decode(), path=str(path))
    what = f"{media_type}, {len(data):,} bytes"
    return ToolOutcome(f"{name}: {what}, attached.", display={"kind": "text", "summary": what}, attachments=[part])
