"""A session as a file: complete JSON, or Markdown and HTML for reading."""

from __future__ import annotations

import html
import json
from typing import Any

from agent_tui.commands.format import clean, one_line
from agent_tui.errors import AgentError

FORMATS: dict[str, tuple[str, str]] = {
    "json": ("everything, with provider metadata, steps and compactions", "json"),
    "md": ("the conversation as Markdown", "md"),
    "html": ("the conversation as one HTML page", "html"),
}
"""Format → what it is, file suffix."""


def render_export(data: dict[str, Any], fmt: str) -> str:
    """The file's text for what ``Store.export`` gave. Raises AgentError for an unknown format."""
    if fmt == "json":
        return json.dumps(data, ensure_ascii=True, indent=2) + "\n"
    if fmt == "md":
        return _markdown(data)
    if fmt == "html":
        return _html(data)
    raise AgentError(f"Unknown export format {fmt}: use {', '.join(FORMATS)}.")


def _blocks(data: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(kind, heading, text) of everything there is to read, in order."""
    blocks: list[tuple[str, str, str]] = []
    for message in data.get("messages", []):
        role = str(message.get("role", ""))
        for part in message.get("parts", []):
            text = clean(str(part.get("text") or ""))
            match part.get("type"):
                case "text" if text.strip():
                    blocks.append((role, "You" if role == "user" else "Answer", text))
                case "reasoning" if text.strip():
                    blocks.append(("reasoning", "Reasoning", text))
                case "tool_call":
                    name = one_line(str(part.get("name") or ""), 100)
                    blocks.append(("tool", f"Tool call: {name}", clean(str(part.get("arguments") or ""))))
                case "tool_result":
                    state = "failed" if part.get("is_error") else "result"
                    blocks.append(("tool", f"Tool {state}: {one_line(str(part.get('name') or ''), 100)}", text))
                case "attachment":
                    name = one_line(str(part.get("name") or "attachment"), 200)
                    blocks.append(("attachment", f"Attachment: {name}", text))
                case "summary":
                    blocks.append(("summary", "Summary", text))
        if message.get("status") in ("stopped", "failed"):
            blocks.append(("note", f"({message['status']})", ""))
    return blocks


def _title(data: dict[str, Any]) -> str:
    session = data.get("session") or {}
    return one_line(str(session.get("title") or session.get("id") or "Session"), 200)


def _markdown(data: dict[str, Any]) -> str:
    lines = [f"# {_title(data)}", ""]
    for kind, heading, text in _blocks(data):
        lines += [f"## {heading}", ""]
        if kind in ("tool", "attachment") and text:
            fence = _fence(text)
            lines += [fence, text.rstrip("\n"), fence, ""]
        elif kind == "reasoning":
            lines += [*(f"> {line}".rstrip() for line in text.splitlines()), ""]
        elif text:
            lines += [text.rstrip("\n"), ""]
    return "\n".join(lines)


def _fence(text: str) -> str:
    """A fence longer than any run of backticks inside."""
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return "`" * max(3, longest + 1)


_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
body{color:#1c2024;background:#fbfbfa}
section{margin:1rem 0;padding:.25rem 1rem;border-left:3px solid #c9ccd1}section.user{border-color:#2f6f9f}
section.assistant{border-color:#3d7a55}section.reasoning{color:#666}pre{white-space:pre-wrap;overflow-wrap:anywhere;
font:13px/1.45 ui-monospace,monospace}h2{font-size:.8rem;margin:.5rem 0;color:#666;text-transform:uppercase}
@media(prefers-color-scheme:dark){body{color:#dfe3e6;background:#15181b}h2,section.reasoning{color:#98a0a8}}
"""


def _html(data: dict[str, Any]) -> str:
    title = html.escape(_title(data))
    body = "\n".join(
        f'<section class="{html.escape(kind)}"><h2>{html.escape(heading)}</h2><pre>{html.escape(text)}</pre></section>'
        for kind, heading, text in _blocks(data)
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"</head><body><h1>{title}</h1>\n{body}\n</body></html>\n"
    )
