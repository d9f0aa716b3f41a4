"""What commands do to a project: looked at before and after each of them, so that it can be undone."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
from pathlib import Path

from agent_tui.errors import AgentError
from agent_tui.tools.files import history, kept
from agent_tui.tools.files.history import KeptHistory
from agent_tui.tools.files.kept import Change, KeptFiles
from agent_tui.tools.files.snapshots import Changed, Snapshotter, changed_since
from agent_tui.tools.git.repository import find_repository
from agent_tui.tools.sandbox.places import git_folders

log = logging.getLogger(__name__)

_REPOSITORIES = 20


class ProjectKeeping:
    """Satisfies ``Keeping`` of the tools: files that a command changed are recorded as if a tool had changed them, and
    what it destroyed of the repository's history is put back at once.

    ``folder`` is a private one, out of reach of commands. What cannot be kept is said once, and left out from then on.
    """

    def __init__(self, root: Path, folder: Path, snapshots: Snapshotter) -> None:
        self._root, self._folder, self._snapshots = root.resolve(), folder, snapshots
        self._files: KeptFiles | None = None
        self._histories: dict[Path, KeptHistory | None] = {}
        self._lock = asyncio.Lock()
        self._running = 0
        self._message = ""
        self._left_out = self._begun = False
        self._notes: list[str] = []
        self._told: set[str] = set()

    async def before(self) -> None:
        """Takes project and repository as they are."""
        async with self._lock:
            if self._running:  # what runs beside it has changed that, and none of it is this command's
                await self._record()
            await asyncio.to_thread(self._look)
            self._message = self._snapshots.message_id
            self._running += 1

    async def after(self) -> list[str]:
        """Records what has changed and puts back what may not be lost; what there is to say of it."""
        async with self._lock:
            self._running -= 1
            await self._record()
            notes, self._notes = self._notes, []
            return notes

    async def _record(self) -> None:
        changed = await asyncio.to_thread(self._mended)
        try:
            self._snapshots.changed(self._message, changed)
        except AgentError as error:
            self._say(f"what the command changed could not be recorded for /rewind: {error}")

    def _mended(self) -> list[Changed]:
        self._mend()
        return changed_since(self._changes())

    def _changes(self) -> list[Change]:
        if self._left_out:
            return []
        try:
            if self._files is None:
                self._files = KeptFiles(self._root, self._folder)
            return self._files.look()
        except (kept.TooMuchError, OSError) as error:
            self._left_out = True
            self._say(f"/rewind does not bring back what commands change in this project: {error}")
            if self._files is not None:
                self._files.close()
                self._files = None
            return []

    def _look(self) -> None:
        self._changes()
        for git in self._repositories():
            if git not in self._histories:
                name = hashlib.blake2b(os.fsencode(git), digest_size=8).hexdigest()
                self._histories[git] = KeptHistory(git, self._folder / name, self._root)
            known = self._histories[git]
            if known is None:
                continue
            try:
                known.look()
            except history.TooMuchError as error:
                self._say(f"not all of the repository's history is kept: {error}")
            except OSError as error:
                self._histories[git] = None
                self._say(f"the repository's history is not kept: {error.strerror or error}")

    def _mend(self) -> None:
        for git, known in self._histories.items():
            if known is None:
                continue
            where = "" if len(self._histories) == 1 else f" ({git.name})"
            try:
                if done := known.mend():
                    self._notes.append(f"[the repository's history was put back{where}: {done}]")
            except (OSError, history.TooMuchError) as error:
                log.warning("The history of %s cannot be put back: %s", git, error)
                self._notes.append(f"[the repository's history could not be put back{where}: {error}]")

    def _repositories(self) -> list[Path]:
        """The folder of git that the project is in, and those of its submodules."""
        found = find_repository(self._root)
        if found is None or found.stranger:
            return []
        places = [found.common]
        with contextlib.suppress(OSError):
            places += [git for git in git_folders(found.common) if (git / "objects").is_dir()]
        return list(dict.fromkeys(place.resolve() for place in places))[:_REPOSITORIES]

    def _say(self, text: str) -> None:
        """Once in a session."""
        if text not in self._told:
            self._told.add(text)
            self._notes.append(f"[{text}]")
