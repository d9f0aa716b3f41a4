"""Files in the prompt's beginning stay the bytes that were sent; what becomes of them goes with the next message.

Memory files and pinned documents stand before the conversation. Sending an edited one in its place would have the
provider read the whole conversation anew instead of from its cache. So the beginning is taken from the files only
when there is nothing to lose: before the first request of a session or model, after a compaction, when tools or other
parts of it have changed anyway (the user has pinned a file or taken one away), and after an hour without a request.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agent_tui.engine.project.prelude import Prelude, build_prelude, change_part, schema_text
from agent_tui.models.fingerprint import content_fingerprint, fingerprint
from agent_tui.models.messages import CHANGE, AttachmentPart
from agent_tui.models.requests import SentMessage, SystemBlock
from agent_tui.models.rows import RowId
from agent_tui.models.steps import CompactionRecord, Step

COLD_SECONDS = 3_600.0
"""Without a request for so long no provider has the conversation in its cache (an hour is the longest life sold)."""

_ROWS = ("memory", "documents")
_FINGERPRINT = "content"
_KEPT = 8

Key = tuple[str, str]


@dataclass(slots=True)
class _Sent:
    """A beginning as it was built: its blocks, what else it is made of, and which files were pinned."""

    system: list[SystemBlock]
    documents: list[SystemBlock]
    others: str
    pinned: frozenset[str]

    @property
    def files(self) -> dict[Key, SystemBlock]:
        return _files([*self.system, *self.documents])


class StablePrefix:
    """Decides for one session and model which bytes its requests begin with."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._built: dict[str, _Sent] = {}
        self._seen: tuple[str, tuple[str, ...]] = ("", ())
        self._texts: dict[str, str] = {}

    def forget(self) -> None:
        """Another session or model: nothing of it is in a cache yet."""
        self._built.clear()

    def settle(
        self,
        fresh: Prelude,
        pinned: Iterable[str],
        view: Sequence[SentMessage],
        steps: Sequence[Step],
        records: Sequence[CompactionRecord],
    ) -> tuple[Prelude, list[AttachmentPart]]:
        """What to send for ``fresh``, which is of the files as they are now: itself, or with the bytes of the newest
        request; and what the next message of the user has to tell of the files."""
        compactions = tuple(r.id for r in records if r.active)
        now = _files([*fresh.system, *fresh.documents])
        self._texts |= {content_fingerprint(block.text): block.text for block in now.values()}
        chosen = frozenset(pinned)
        sent = self._warm(fresh, chosen, steps, compactions)
        prelude = fresh
        if sent is not None:
            prelude = build_prelude([*sent.system, *sent.documents], fresh.offered)
            prelude.set_counts(fresh.counts())
        self._keep(prelude, _Sent(prelude.system, prelude.documents, _others(fresh), chosen))
        held = _files([*prelude.system, *prelude.documents])
        for part in prelude.fixed:
            block = now.get((part.row, part.path or part.label))
            if part.row in _ROWS and (block is None or content_fingerprint(block.text) != part.fingerprint):
                part.change = "edited"
        return prelude, self._changes(held, now, view)

    def _warm(
        self, fresh: Prelude, pinned: frozenset[str], steps: Sequence[Step], compactions: tuple[str, ...]
    ) -> _Sent | None:
        """The beginning of the newest request, while a provider may have it in its cache and nothing else of it has
        changed. None: it is built anew."""
        newest = next((s for s in reversed(steps) if s.kind == "turn"), None)
        sent = self._built.get(newest.fixed_fingerprint) if newest is not None else None
        if newest is None or sent is None or self._now() - (newest.finished or newest.created) > COLD_SECONDS:
            return None
        if self._seen[0] != newest.id:
            self._seen = (newest.id, compactions)
        same = (self._seen[1], sent.pinned, sent.others) == (compactions, pinned, _others(fresh))
        return sent if same else None

    def _keep(self, prelude: Prelude, sent: _Sent) -> None:
        self._built.pop(prelude.fingerprint, None)
        self._built[prelude.fingerprint] = sent
        while len(self._built) > _KEPT:
            del self._built[next(iter(self._built))]

    def _changes(
        self, held: dict[Key, SystemBlock], now: dict[Key, SystemBlock], view: Sequence[SentMessage]
    ) -> list[AttachmentPart]:
        told = _told(view)
        changes = []
        for key in dict.fromkeys([*held, *now, *told]):
            begins = content_fingerprint(held[key].text) if key in held else ""
            known, is_now = told.get(key, begins), content_fingerprint(now[key].text) if key in now else ""
            if known == is_now:
                continue
            block = now.get(key) or held.get(key)
            name = (block.label or key[1]) if block is not None else key[1]
            if not is_now:
                text = f"{name} is no longer given with this conversation: what was sent of it no longer holds."
            elif is_now == begins:
                text = (
                    f"{name} is as it stands at the beginning of this conversation; what was told since is out of date."
                )
            else:
                text = self._difference(name, self._texts.get(known) if known else None, now[key].text)
            metadata = {_FINGERPRINT: is_now, "row": key[0]}
            changes.append(AttachmentPart(CHANGE, "text/plain", text, path=key[1], provider_metadata=metadata))
        return changes

    def _difference(self, name: str, before: str | None, text: str) -> str:
        """The shorter of the new content and what is different in it."""
        if before is None:
            return f"{name} is to be followed and known from now on:\n{text}"
        lines = difflib.unified_diff(before.splitlines(), text.splitlines(), "before", "now", lineterm="", n=2)
        difference = "\n".join(lines)
        if difference and len(difference) < len(text):
            return f"{name} has changed since it was sent:\n{difference}"
        return f"{name} has changed since it was sent. It now reads:\n{text}"


def with_changes(prelude: Prelude, changes: Sequence[AttachmentPart]) -> Prelude:
    """The prelude with what the next message will tell of files, so that the numbers have it before it is sent."""
    for change in changes:
        prelude.fixed.append(change_part(prelude, change_row(change), change))
    return prelude


def change_row(change: AttachmentPart) -> RowId:
    """The row of the file that a change is of."""
    return "memory" if (change.provider_metadata or {}).get("row") == "memory" else "documents"


def _told(view: Sequence[SentMessage]) -> dict[Key, str]:
    """By file, which content the messages that are sent have told of last; empty where it is gone."""
    told: dict[Key, str] = {}
    for sent in view:
        for part in sent.message.parts:
            if isinstance(part, AttachmentPart) and part.name == CHANGE and part.path and part.provider_metadata:
                metadata = part.provider_metadata
                told[str(metadata.get("row")), part.path] = str(metadata.get(_FINGERPRINT) or "")
    return told


def _files(blocks: Iterable[SystemBlock]) -> dict[Key, SystemBlock]:
    return {(block.row, block.path or block.label): block for block in blocks if block.row in _ROWS}


def _others(prelude: Prelude) -> str:
    """What else the beginning is made of: prompt, environment, skills and tools."""
    blocks = [content_fingerprint(block.text) for block in prelude.system if block.row not in _ROWS]
    return fingerprint([*blocks, "tools", *(content_fingerprint(schema_text(tool)) for tool in prelude.tools)])
