"""A Jupyter notebook as the text of its cells."""

from __future__ import annotations

import json
from typing import Any

from agent_tui.errors import ToolError
from agent_tui.text.clean import program_output

OUTPUT_LINES = 60
"""Lines of one cell's output that are shown."""


def notebook_text(data: bytes, name: str) -> str:
    """The cells in their order, each under a line with its number and kind, with what they put out. Raises ToolError
    for what is no notebook."""
    try:
        notebook = json.loads(data)
        cells = notebook["cells"]
        shown = [_cell(number, cell) for number, cell in enumerate(cells, 1)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ToolError(f"{name} is no notebook that can be shown; see what is in it with bash.") from None
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
