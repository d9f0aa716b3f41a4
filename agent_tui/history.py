"""Keeps what was typed before, per project, and the draft that was not sent yet: small files in the state folder."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TextIO

from agent_tui.paths import private_dir

KEPT = 1_000
"""Entries of a project that can be reached; the file is cut to ``FILE_LIMIT`` lines when it has twice as many."""
FILE_LIMIT = 5_000
WINDOWS = 20
"""Windows of one project that keep a draft each."""


class Recall:
    """Goes back and forth in earlier entries, the newest last, and from there to what had been typed. What is changed
    on the way stays changed until something is sent (``end``). Entries may be added meanwhile."""

    def __init__(self, entries: list[str]) -> None:
        self.entries = entries
        self._at: int | None = None
        """The entry that is shown; None at the end, where nothing is recalled."""
        self._changed: dict[int | None, str] = {}

    @property
    def browsing(self) -> bool:
        return self._at is not None

    @property
    def shown(self) -> str | None:
        """The entry that is shown, as it was."""
        return self.entries[self._at] if self._at is not None else None

    def older(self, current: str) -> str | None:
        """The entry before the one that is shown as ``current``. None at the oldest."""
        at = len(self.entries) if self._at is None else self._at
        return self._go(current, at - 1) if at > 0 else None

    def newer(self, current: str) -> str | None:
        """The entry after the one that is shown as ``current``, or what had been typed; None when that is shown
        already."""
        if self._at is None:
            return None
        return self._go(current, self._at + 1 if self._at + 1 < len(self.entries) else None)

    def _go(self, current: str, to: int | None) -> str:
        self._changed[self._at] = current
        self._at = to
        return self._changed.get(to, self.entries[to] if to is not None else "")

    def leave(self) -> str:
        """Goes back to the end, where nothing is typed now, and returns what was. The change of what was shown is
        gone, others stay."""
        if self._at is None:
            return ""
        self._changed.pop(self._at, None)
        self._at = None
        return self._changed.pop(None, "")

    def end(self) -> None:
        """Something was sent: nothing is changed any more."""
        self._at = None
        self._changed.clear()


class PromptHistory:
    """Prompt history of one project. Reading never fails: a file that is not there or broken has no entries.

    ``problem`` is the last reason why writing did not work.
    """

    def __init__(self, state: Path, project: str) -> None:
        self.path = state / "history.jsonl"
        self.draft_path = state / "drafts.json"
        self.project = project
        self.problem = ""
        self._recall: Recall | None = None
        self._unsent: set[str] = set()
        self._draft_name = ""
        self._lock = -1

    @property
    def recall(self) -> Recall:
        """The way through the entries. They are read when they are first wanted."""
        if self._recall is None:
            self._recall = Recall(self._read())
        return self._recall

    @property
    def entries(self) -> list[str]:
        """Oldest first, repeats next to each other once."""
        return self.recall.entries

    def add(self, text: str) -> None:
        """Remembers what was sent and goes back to the end."""
        self.recall.end()
        newest = self.entries[-1] if self.entries else ""
        if not text.strip() or (newest == text and text not in self._unsent):
            return
        self._unsent.discard(text)
        if newest != text:
            self.entries.append(text)
        del self.entries[:-KEPT]
        import json  # here and below: not before the first frame

        line = json.dumps({"time": round(time.time()), "project": self.project, "text": text})
        try:
            private_dir(self.path.parent)
            with self._open(self.path, os.O_APPEND) as file:
                file.write(line + "\n")
        except OSError as error:
            self.problem = f"prompt history is not saved: {error.strerror or error}"

    def set_aside(self, text: str) -> None:
        """Goes back to the end and makes what was cleared the newest entry, so that ↑ brings it back. It was not sent:
        it is gone with the program. What came from the history itself is there already."""
        shown = self.recall.shown
        for each in (self.recall.leave(), text):
            if each.strip() and each != shown and each not in self.entries[-1:]:
                self.entries.append(each)
                self._unsent.add(each)

    def search(self, text: str, limit: int = 500) -> list[str]:
        """Entries that contain every word, newest first, each once."""
        words = text.lower().split()
        unique = dict.fromkeys(reversed(self.entries))
        return [e for e in unique if all(w in e.lower() for w in words)][:limit]

    def _read(self) -> list[str]:
        import json

        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        if len(lines) > 2 * FILE_LIMIT:
            lines = lines[-FILE_LIMIT:]
            self._replace(self.path, "\n".join(lines) + "\n")
        entries: list[str] = []
        for line in lines:
            try:
                item = json.loads(line)
                text = item["text"] if item["project"] == self.project else None
            except (ValueError, KeyError, TypeError):
                continue
            if isinstance(text, str) and text and (not entries or entries[-1] != text):
                entries.append(text)
        return entries[-KEPT:]

    def load_draft(self) -> str:
        """Returns the text that stood in the prompt when the program was left in this project."""
        draft = self._drafts().get(self._place(), "")
        return draft if isinstance(draft, str) else ""

    def save_draft(self, text: str) -> None:
        """Keeps, or forgets when empty, what stands in the prompt."""
        drafts, place = self._drafts(), self._place()
        if drafts.get(place, "") == text:
            return
        drafts.pop(place, None)
        if text:
            drafts[place] = text
        kept = dict(list(drafts.items())[-100:])
        import json

        self._replace(self.draft_path, json.dumps(kept))

    def _place(self) -> str:
        """The name this window keeps its draft under: the project's, or the next where a window that runs has it."""
        if not self._draft_name:
            names = (self.project if n == 0 else f"{self.project}#{n}" for n in range(WINDOWS))
            self._draft_name = next((name for name in names if self._take(name)), self.project)
        return self._draft_name

    def _take(self, name: str) -> bool:
        """Returns whether a name for a draft was free; it is taken until the program ends, however it does."""
        import fcntl
        import weakref
        import zlib

        try:
            private_dir(self.draft_path.parent)
            if self._lock < 0:
                self._lock = os.open(self.draft_path.with_suffix(".lock"), os.O_WRONLY | os.O_CREAT, 0o600)
                weakref.finalize(self, os.close, self._lock)
        except OSError:
            return True  # nothing can be kept here: saving says so
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, zlib.crc32(name.encode(errors="replace")))
        except OSError:
            return False
        return True

    def _drafts(self) -> dict[str, object]:
        import json

        try:
            found = json.loads(self.draft_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _replace(self, path: Path, text: str) -> None:
        fresh = path.with_suffix(f".{os.getpid()}.new")
        try:
            private_dir(path.parent)
            with self._open(fresh, os.O_TRUNC) as file:
                file.write(text)
            fresh.replace(path)
        except OSError as error:
            self.problem = f"cannot write {path.name}: {error.strerror or error}"

    @staticmethod
    def _open(path: Path, flag: int) -> TextIO:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | flag, 0o600), "w", encoding="utf-8")
