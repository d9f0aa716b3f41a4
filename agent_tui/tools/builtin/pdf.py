"""The text of a PDF, read in a child process: such files are hostile, large, or take the library for ever."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.pipes.start import isolated
from agent_tui.tools.children.bounded import Buffer, run_bounded
from agent_tui.tools.files.beneath import open_regular
from agent_tui.tools.sandbox.environment import child_env
from agent_tui.tools.sandbox.policy import free

LIBRARY = "pypdf"
TIMEOUT = 60.0
MAX_BYTES = 50_000_000
MAX_TEXT = 4_000_000
"""Bytes of a file that is looked at, characters of its text that are taken."""

MEMORY = 1_500_000_000
"""Bytes of memory the library gets."""


async def pdf_text(path: Path, name: str) -> str:
    """The text of all pages, each under a line with its number. Raises ToolError that says what to do instead."""
    if importlib.util.find_spec(LIBRARY) is None:
        raise ToolError(
            f"{name} is a PDF. To read its text, try pdftotext FILE - with bash, or the user can install pypdf where "
            "agent-tui runs: pip install 'pypdf>=6'."
        )
    with open_regular(path, name) as file:
        size = os.fstat(file.fileno()).st_size
    if size > MAX_BYTES:
        raise ToolError(f"{name} is a PDF of more than {MAX_BYTES:,} bytes; extract pages with bash.")
    child = free(isolated(__name__, str(path)), child_env(os.environ))
    output = Buffer(4 * MAX_TEXT)
    end = await run_bounded(child, Path("/"), TIMEOUT, output.take)
    if end.why == "time":
        raise ToolError(f"{name}: reading its text took longer than {TIMEOUT:g} s; try pdftotext with bash.")
    text, code = output.text, end.code
    if code == _LOCKED:
        raise ToolError(f"{name} is locked with a password; the user has to unlock it.")
    if code != 0 and not text:
        raise ToolError(f"{name} is a PDF whose text cannot be read; try pdftotext with bash.")
    return text + ("\n[the rest could not be read]" if code != 0 else "")


_LOCKED = 3


def main(path: str) -> int:
    """Writes the text of the PDF."""
    import contextlib
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    written = 0
    try:
        reader = PdfReader(open_regular(Path(path), "the file"))
        count = len(reader.pages)
        for number in range(count):
            text = reader.pages[number].extract_text().strip("\n")
            page = f"[page {number + 1} of {count}]\n{text or '[no text; perhaps an image]'}\n\n"
            sys.stdout.buffer.write(page.encode("utf-8", "replace"))
            sys.stdout.flush()
            written += len(page)
            if written > MAX_TEXT:
                sys.stdout.write(f"[… {count - number - 1:,} more pages]\n")
                break
    except FileNotDecryptedError:
        return _LOCKED
    return 0
