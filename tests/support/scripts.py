"""Scripts of the demo model, written as calls."""

from __future__ import annotations

import json
from typing import Any


def step(text: str = "", **calls: Any) -> str:
    """One scripted answer; ``calls`` are tools by name with their arguments (a trailing number is dropped)."""
    listed = [{"name": name.rstrip("0123456789"), "arguments": json.dumps(args)} for name, args in calls.items()]
    lines = ["[[step]]", f"text = {json.dumps(text)}"]
    for call in listed:
        lines += ["[[step.tool_calls]]", f"name = {json.dumps(call['name'])}"]
        lines += [f"arguments = {json.dumps(call['arguments'])}"]
    return "\n".join(lines) + "\n"
