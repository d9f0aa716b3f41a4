"""Files in the prompt's beginning stay the bytes that were sent; what becomes of them goes with the next message.

Memory files and pinned documents stand before the conversation. Sending an edited one in its place would have the
provider read the whole conversation anew instead of from its cache. So the beginning is taken from the files only
when there is nothing to lose: before the first request of a session or model, after a compaction, when tools or other
parts of it have changed anyway (the user has pinned a file or taken one away), and after an hour without a request.
A step keeps the text of its files, so that a process that opens the session later begins as the last one did.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agent_tui.engine.project.prelude import FILE_ROWS, Prelude, build_prelude, change_part, known_counts, schema_text
from agent_tui.models.messages import CHANGE, AttachmentPart, content_fingerprint, fingerprint
from agent_tui.models.requests import ModelInfo, SentMessage, SystemBlock
from agent_tui.models.rows import RowId
from agent_tui.models.steps import CompactionRecord, FixedPart, Step

COLD_SECONDS = 3_600.0
"""Without a request for so long no provider has the conversation in its cache (an hour is the longest life sold)."""

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

    def forget(self) -> None:
        """Another session or model: nothing of it is in a cache yet."""
        self._built.clear()

    def settle(
        self,
        fresh: Prelude,
        pinned: Iterable[str],
        model: ModelInfo,
        view: Sequence[SentMessage],
        steps: Sequence[Step],
        records: Sequence[CompactionRecord],
    ) -> tuple[Prelude, list[AttachmentPart]]:
        """What to send for ``fresh``, which is of the files as they are now: itself, or with the bytes of the newest
        request to ``model``; and what the next message of the user has to tell of the files."""
        now = _files([*fresh.system, *fresh.documents])
        chosen = frozenset(pinned)
        newest = _newest(steps, model)
        sent, prelude = None, fresh
        if newest is not None:
            self._restore(newest, fresh)
            sent = self._warm(newest, fresh, chosen, records)
        if newest is not None and sent is not None:
            prelude = build_prelude([*sent.system, *sent.documents], fresh.offered)
            prelude.set_counts({**known_counts(newest.fixed), **fresh.counts()})
        self._keep(prelude, _Sent(prelude.system, prelude.documents, _others(fresh), chosen))
        held = _files([*prelude.system, *prelude.documents])

        def edited(part: FixedPart) -> bool:
            block = now.get((part.row, part.path or part.label))
            return part.row in FILE_ROWS and (block is None or content_fingerprint(block.text) != part.fingerprint)

        prelude.mark_edited(edited)
        return prelude, self._changes(held, now, view)

    def _restore(self, newest: Step, fresh: Prelude) -> None:
        """Knows the beginning of the newest request though another process sent it: where its files' text was stored,
        and all else of it is here again byte for byte."""
        if newest.fixed_fingerprint in self._built:
            return
        texts = {content_fingerprint(block.text): block.text for block in (*fresh.system, *fresh.documents)}
        blocks = []
        for part in newest.fixed:
            text = texts.get(part.fingerprint) if part.text is None else part.text
            if part.row == "tools" or part.change == "waiting":
                continue
            if text is None:
                return
            blocks.append(SystemBlock(part.row, text, part.group, part.label, part.path))
        then = build_prelude(blocks, fresh.offered)
        if then.fingerprint != newest.fixed_fingerprint:
            return
        pinned = frozenset(block.path for block in then.documents if block.path)
        self._keep(then, _Sent(then.system, then.documents, _others(then), pinned))

    def _warm(
        self, newest: Step, fresh: Prelude, pinned: frozenset[str], records: Sequence[CompactionRecord]
    ) -> _Sent | None:
        """The beginning of the newest request, while a provider may have it in its cache and nothing else of it has
        changed. None: it is built anew."""
        sent, sent_at = self._built.get(newest.fixed_fingerprint), newest.finished or newest.created
        if sent is None or self._now() - sent_at > COLD_SECONDS:
            return None
        if any(moment > sent_at for record in records for moment in (record.created, *record.switched)):
            return None
        return sent if (sent.pinned, sent.others) == (pinned, _others(fresh)) else None

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
                text = _difference(name, held[key].text if key in held else None, now[key].text, key in told)
            metadata = {_FINGERPRINT: is_now, "row": key[0]}
            changes.append(AttachmentPart(CHANGE, "text/plain", text, path=key[1], provider_metadata=metadata))
        return changes


def _difference(name: str, begins: str | None, text: str, told: bool) -> str:
    """The shorter of the new content and what is different in it from how it stands at the beginning. Every process
    knows that; what was ``told`` of it since is known only to the one that told it."""
    out_of_date = " What was told of it since is out of date." if told else ""
    if begins is None:
        return f"{name} is to be followed and known from now on.{out_of_date}\n{text}"
    lines = difflib.unified_diff(begins.splitlines(), text.splitlines(), "before", "now", lineterm="", n=2)
    difference = "\n".join(lines)
    if difference and len(difference) < len(text):
        return f"{name} has changed since it was sent at the beginning.{out_of_date}\n{difference}"
    return f"{name} has changed since it was sent at the beginning.{out_of_date} It now reads:\n{text}"


def _newest(steps: Sequence[Step], model: ModelInfo) -> Step | None:
    """The newest step of a turn that this model answered: no other has anything of it in its cache."""
    asked = (model.spec.key, model.target.model)
    return next((s for s in reversed(steps) if s.kind == "turn" and (s.model_key, s.model) == asked), None)


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
    return {(block.row, block.path or block.label): block for block in blocks if block.row in FILE_ROWS}


def _others(prelude: Prelude) -> str:
    """What else the beginning is made of: prompt, environment, skills and tools."""
    blocks = [content_fingerprint(block.text) for block in prelude.system if block.row not in FILE_ROWS]
    return fingerprint([*blocks, "tools", *(content_fingerprint(schema_text(tool)) for tool in prelude.tools)])
