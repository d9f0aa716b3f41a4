"""Scripts of the demo model, written as calls."""

from __future__ import annotations

import json
from typing import Any


def step(text: str = "", **calls: Any) -> str:
    """One scripted answer; ``calls`` are tools by name with their arguments (a trailing number is dropped)."""
    return calls_step(*((name.rstrip("0123456789"), json.dumps(args)) for name, args in calls.items()), text=text)


def calls_step(*calls: tuple[str, str], text: str = "") -> str:
    """The same, of calls by name with their arguments as the model writes them."""
    lines = ["[[step]]", f"text = {json.dumps(text)}"]
    for name, arguments in calls:
        lines += ["[[step.tool_calls]]", f"name = {json.dumps(name)}", f"arguments = {json.dumps(arguments)}"]
    return "\n".join(lines) + "\n"
