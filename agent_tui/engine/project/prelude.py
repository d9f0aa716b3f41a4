"""What goes with every request beside the conversation: system blocks, documents and tools, as one value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agent_tui.models.messages import AttachmentPart, content_fingerprint, fingerprint
from agent_tui.models.requests import OfferedTool, SystemBlock, ToolSchema
from agent_tui.models.rows import RowId
from agent_tui.models.steps import FixedPart, Step
from agent_tui.tools.mcp.search import CALL, SEARCH

FILE_ROWS: tuple[RowId, ...] = ("memory", "documents")
"""Rows whose parts are files: others may write them while the session runs."""


@dataclass(slots=True)
class Prelude:
    """The fixed parts of the next request. ``fingerprint`` covers what signatures may be bound to: the system blocks,
    the documents (sent after them) and the tools.

    ``texts`` maps a part's content fingerprint to the text the worker counts; ``offered`` are all tools, deferred ones
    included.
    """

    system: list[SystemBlock] = field(default_factory=list)
    documents: list[SystemBlock] = field(default_factory=list)
    tools: list[ToolSchema] = field(default_factory=list)
    offered: list[OfferedTool] = field(default_factory=list)
    fixed: list[FixedPart] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    fingerprint: str = ""

    def counts(self) -> dict[str, int]:
        """The o200k_base counts that are known, by content fingerprint; of deferred tools what they would cost."""
        return known_counts(self.fixed)

    def set_counts(self, counts: dict[str, int]) -> None:
        """Fills in o200k_base counts by content fingerprint."""
        self.fixed = [part.counted(counts) for part in self.fixed]

    def uncounted(self) -> dict[str, str]:
        """Texts that still need a count, by fingerprint."""
        return {
            p.fingerprint: self.texts[p.fingerprint]
            for p in self.fixed
            if p.fingerprint in self.texts and (p.raw_tokens is None or p.deferred_tokens == 0)
        }

    def keep_edited(self, before: Sequence[FixedPart], rows: Sequence[RowId]) -> None:
        """Parts outside ``rows`` that were known to be edited still are."""
        edited = {part.fingerprint for part in before if part.change == "edited" and part.row not in rows}
        self.mark_edited(lambda part: part.fingerprint in edited)

    def mark_edited(self, of: Callable[[FixedPart], bool]) -> None:
        """The files of these parts are others by now, of which the user's messages tell."""
        self.fixed = [replace(part, change="edited") if of(part) else part for part in self.fixed]

    def add_servers_of(self, step: Step) -> None:
        """Adds what of MCP servers went with an earlier step and is not there, for a look at a session whose servers
        are not started and were not seen since their offers are remembered.

        Where nothing else changed since, the next request is the same as far as signatures are concerned.
        """
        unchanged = {p.fingerprint for p in self.fixed} == {p.fingerprint for p in step.fixed if not _of_server(p)}
        there = {(p.row, p.label) for p in self.fixed}
        self.fixed += [p for p in step.fixed if _of_server(p) and (p.row, p.label) not in there]
        if unchanged and step.fixed_fingerprint:
            self.fingerprint = step.fixed_fingerprint


def known_counts(fixed: Sequence[FixedPart]) -> dict[str, int]:
    """The counts of ``Prelude.counts`` for these parts."""
    return {part.fingerprint: count for part in fixed if (count := part.count)}


def _of_server(part: FixedPart) -> bool:
    if part.row == "tools" and part.label in (SEARCH, CALL):
        return True
    return part.row in ("tools", "servers") and part.group.startswith("mcp:")


def schema_text(schema: ToolSchema) -> str:
    """A tool as the estimator counts it: compact JSON, close to what every provider makes of it."""
    return json.dumps(
        {"name": schema.name, "description": schema.description, "parameters": schema.parameters},
        ensure_ascii=False,
        separators=(",", ":"),
    )


def build_prelude(blocks: Sequence[SystemBlock], tools: Sequence[OfferedTool]) -> Prelude:
    """Assembles the fixed parts. Blocks of row ``documents`` are sent apart: they are re-read for every request."""
    prelude = Prelude(offered=list(tools))
    for block in blocks:
        (prelude.documents if block.row == "documents" else prelude.system).append(block)
        prelude.fixed.append(_part(prelude, block.row, block.group or block.row, block.label, block.text, block.path))
    for tool in tools:
        text = schema_text(tool.schema)
        part = _part(prelude, "tools", tool.group, tool.schema.name, text, None)
        if tool.deferred:
            part = replace(part, raw_tokens=0, chars=0, ascii_chars=0, deferred_tokens=0)
        else:
            prelude.tools.append(tool.schema)
        prelude.fixed.append(part)
    system = [content_fingerprint(b.text) for b in (*prelude.system, *prelude.documents)]
    prelude.fingerprint = fingerprint([*system, "tools", *(content_fingerprint(schema_text(t)) for t in prelude.tools)])
    return prelude


def with_documents(prelude: Prelude, documents: Sequence[SystemBlock]) -> Prelude:
    """The same with other documents: what else is sent stays as it is, and so does every count that is known."""
    changed = build_prelude([*prelude.system, *documents], prelude.offered)
    changed.set_counts(prelude.counts())
    return changed


def change_part(prelude: Prelude, row: RowId, change: AttachmentPart) -> FixedPart:
    """The change of a file as a part that waits for the user's next message."""
    path = change.path or ""
    known = next((p for p in prelude.fixed if p.row == row and p.path == path), None)
    label = known.label if known is not None else path.rsplit("/", 1)[-1]
    part = _part(prelude, row, path, f"{label} (change)", change.text or "", path)
    return replace(part, change="waiting", text=None)


def _part(prelude: Prelude, row: RowId, group: str, label: str, text: str, path: str | None) -> FixedPart:
    digest = content_fingerprint(text)
    prelude.texts[digest] = text
    ascii_chars = len(text) if text.isascii() else sum(c < "\x80" for c in text)
    kept = text if row in FILE_ROWS else None
    return FixedPart(row, group, label or group, len(text), digest, ascii_chars=ascii_chars, path=path, text=kept)
