"""read: a file's lines, numbered, an image, a notebook's cells or the text of a PDF."""

from __future__ import annotations

import base64
import io
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

from agent_tui.errors import ToolError
from agent_tui.models.messages import AttachmentPart, Metadata, ToolCallPart, image_type
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured, program_output
from agent_tui.text.numbers import plural
from agent_tui.tools.aliases import parsed, understood
from agent_tui.tools.arguments import INTEGER, TEXT, described, parameters, validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.builtin.pdf import pdf_text
from agent_tui.tools.children.process import Stop, in_thread
from agent_tui.tools.files import text as files
from agent_tui.tools.files.beneath import info_of, open_regular, resolve, shown
from agent_tui.tools.files.pictures import PICTURE_BYTES

OUTPUT_LINES = 60
"""Lines of one cell's output that are shown."""


def notebook_text(data: bytes, name: str) -> str:
    """The cells, each under its number and kind, with their output. Raises ToolError for what is no notebook."""
    try:
        notebook = json.loads(data)
        cells = notebook["cells"]
        shown = [_cell(number, cell) for number, cell in enumerate(cells, 1)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ToolError(f"{name} is not a notebook that can be shown; look at it with bash.") from None
    return "\n\n".join(shown) or "[the notebook has no cells]"


def _cell(number: int, cell: dict[str, Any]) -> str:
    count = cell.get("execution_count")
    run = f", run [{int(count)}]" if isinstance(count, int) else ""
    lines = [f"[cell {number}, {_text(cell.get('cell_type', 'raw'))[:20]}{run}]", _text(cell.get("source", ""))]
    for output in cell.get("outputs") or []:
        lines += _output(output)
    return "\n".join(lines)


def _output(output: dict[str, Any]) -> list[str]:
    kind = output.get("output_type")
    if kind == "stream":
        said = _text(output.get("text", ""))
    elif kind == "error":
        said = _text(output.get("traceback") or []) or f"{output.get('ename')}: {output.get('evalue')}"
    else:
        data = output.get("data") or {}
        said = _text(data.get("text/plain", ""))
        others = [key for key in data if key.startswith(("image/", "application/", "text/html"))]
        said += "".join(f"\n[{key[:60]}, not shown]" for key in others)
    lines = program_output(said).strip("\n").split("\n")
    if len(lines) > OUTPUT_LINES:
        lines = [*lines[:OUTPUT_LINES], f"[… {len(lines) - OUTPUT_LINES:,} more lines of output]"]
    return ["[output]", *lines] if any(lines) else []


def _text(value: Any) -> str:
    """Notebooks keep texts whole or as lists of lines, tracebacks without their newlines."""
    if isinstance(value, list):
        joined = "".join(str(part) for part in value)
        return joined if "\n" in joined or len(value) < 2 else "\n".join(map(str, value))
    return str(value)


DEFAULT_LINES = 2_000
LINE_BYTES = 2_000
PDF_NOTE = "the text of a PDF, in lines of its own; it cannot be edited"
NOTEBOOK_NOTE = "a notebook's cells, in lines of their own; to change them, edit the JSON of the file, which bash shows"
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
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ToolError(f"{name} is UTF-16 text; convert it first, for instance with iconv.")
        if b"\0" in start:
            raise ToolError(f"{name} is a binary file of {info.st_size:,} bytes; it cannot be shown as text.")
        file.seek(0)
        if path.suffix.lower() == ".ipynb" and info.st_size <= NOTEBOOK_BYTES:
            cells = notebook_text(file.read(NOTEBOOK_BYTES), name)
            files.remember(context, path, info)
            return _as_text(cells, NOTEBOOK_NOTE, args, context, stop)
        outcome = _lines(file, info.st_size, args, context.config.output_limit, stop)
    files.remember(context, path, info)
    return outcome


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
            size = os.fstat(file.fileno()).st_size
            args.offset = max(1, args.offset)
            now = _lines(file, size, args, context.config.output_limit, Stop()).text
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
