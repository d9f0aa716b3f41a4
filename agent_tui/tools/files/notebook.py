"""Notebooks as text: what is read of their cells, and the cells as they are edited."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from agent_tui.errors import ToolError
from agent_tui.text.clean import program_output
from agent_tui.tools.files.encodings import decoded

OUTPUT_LINES = 60
"""Lines of one cell's output that are shown."""


def notebook_text(data: bytes, name: str) -> str:
    """The cells, each under its number and kind, with their output. Raises ToolError for what is no notebook."""
    try:
        notebook = json.loads((decoded(data) or ("", None))[0])
        cells = notebook["cells"]
        shown = [_cell(number, cell) for number, cell in enumerate(cells, 1)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ToolError(f"{name} is not a notebook that can be shown; look at it with bash.") from None
    return "\n\n".join(shown) or "[the notebook has no cells]"


def _cell(number: int, cell: dict[str, Any]) -> str:
    lines = [_editable(number, cell)]
    for output in cell.get("outputs") or []:
        lines += _output(output)
    return "\n".join(lines)


def _editable(number: int, cell: dict[str, Any]) -> str:
    count = cell.get("execution_count")
    run = f", run [{int(count)}]" if isinstance(count, int) else ""
    return f"[cell {number}, {_text(cell.get('cell_type', 'raw'))[:20]}{run}]\n{_text(cell.get('source', ''))}"


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


_HEAD = re.compile(r"\[cell (?P<number>\d{1,6}|new), (?P<kind>code|markdown|raw)(?:, run \[\d+\])?\]")
_INDENT = re.compile(r"\A\s*\{\r?\n([ \t]+)\"")


class Cells:
    """The cells of a notebook as one text, each under its line ``[cell 2, code]`` as ``read`` shows it, without what
    they put out. A line that goes takes its cell away, ``[cell new, code]`` begins another."""

    def __init__(self, notebook: dict[str, Any], text: str) -> None:
        self._notebook, self._json = notebook, text
        cells = notebook["cells"]
        self.text = "\n\n".join(_editable(number, cell) for number, cell in enumerate(cells, 1))
        told = sum(bool(_HEAD.fullmatch(line)) for line in self.text.split("\n"))
        if told != len(cells):
            raise ToolError("The notebook has a cell of another kind, or a line that looks like the head of one.")

    @classmethod
    def of(cls, path: Path, text: str) -> Cells | None:
        """None for what is no notebook, or a broken one, which is edited as the text it is. Raises ToolError for cells
        that cannot be told apart."""
        if path.suffix.lower() != ".ipynb":
            return None
        try:
            return cls(json.loads(text), text)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def saved(self, edited: str) -> str:
        """The file for the edited text; a cell whose code changed loses its output. Raises ToolError."""
        # A patch ends its last line, which has no end here.
        parts, lines = [], (edited if self.text.endswith("\n") else edited.removesuffix("\n")).split("\n")
        heads = [(at, found) for at, line in enumerate(lines) if (found := _HEAD.fullmatch(line))]
        if lines[: heads[0][0] if heads else None] != ([] if heads else [""]):
            raise ToolError("The first line must be the head of a cell, as [cell new, code]. Nothing was changed.")
        old = self._notebook["cells"]
        names = Counter(found["number"] for _, found in heads)
        for name, count in names.items():
            if name != "new" and (count > 1 or not 0 < int(name) <= len(old)):
                raise ToolError(f"[cell {name}] stands there twice, or is none of its {len(old)}. Nothing was changed.")
        for index, (at, found) in enumerate(heads):
            last = index + 1 == len(heads)
            body = lines[at + 1 : None if last else heads[index + 1][0]]
            # An empty line stands between two cells.
            source = "\n".join(body[:-1] if not last and body and not body[-1] else body)
            cell = {} if found["number"] == "new" else old[int(found["number"]) - 1]
            parts.append(self._changed(cell, found["kind"], source))
        indent = _INDENT.match(self._json)
        text = json.dumps(
            {**self._notebook, "cells": parts},
            indent=indent[1] if indent else None,
            ensure_ascii=self._json.isascii() and "\\u" in self._json,
        )
        return text + self._json[len(self._json.rstrip("\r\n")) :]

    def _changed(self, cell: dict[str, Any], kind: str, source: str) -> dict[str, Any]:
        if cell and cell["cell_type"] == kind and _text(cell.get("source", "")) == source:
            return cell
        others = {key: value for key, value in cell.items() if key not in ("outputs", "execution_count")}
        made = {"cell_type": kind, **({} if cell else self._id()), "metadata": {}, **others}
        made |= {"cell_type": kind, "source": source.splitlines(keepends=True)}
        return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})

    def _id(self) -> dict[str, str]:
        """New cells have an id from format 4.5 on."""
        form = (self._notebook.get("nbformat"), self._notebook.get("nbformat_minor"))
        return {"id": os.urandom(4).hex()} if all(isinstance(n, int) for n in form) and form >= (4, 5) else {}
