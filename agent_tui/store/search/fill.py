"""Keeps the index up in the background, in a thread that waits for nobody and that nobody waits for."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from pathlib import Path

from agent_tui.store.search.index import NoIndex, SearchIndex, remove_damaged

log = logging.getLogger(__name__)

_PAUSE = 0.25
"""Seconds between two slices of work, each as long: half of one core at most."""
_AGAIN = 60.0
"""Seconds until it is tried again where something was in the way."""


class Filler:
    """Adds to the index of a database what is missing, until it is closed. ``wake``: there is something new."""

    def __init__(self, database: Path, pause: float = _PAUSE) -> None:
        self._database = database
        self._pause = pause
        self._ended = threading.Event()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        self.whole = threading.Event()
        """Set while nothing is missing."""

    def begin(self) -> None:
        self._news.set()
        self._thread = threading.Thread(target=self._run, name="search-index", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There are new messages, or old ones are finished."""
        self.whole.clear()
        self._news.set()

    def close(self) -> None:
        """Ends it; what it was adding is added once more the next time."""
        self._ended.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        if sys.platform == "linux":
            # The number of a thread is that of a process of its own here: the chat comes first.
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        anew = -_AGAIN
        while not self._ended.is_set():
            try:
                self._fill()
            except NoIndex as error:
                # Damaged again at once: it is the database.
                if error.damaged and time.monotonic() - anew > _AGAIN:
                    anew = time.monotonic()
                    with contextlib.suppress(OSError):
                        remove_damaged(self._database)
                        continue
                log.warning("The search goes without an index: %s", error)
                if "FTS5" in str(error):
                    return
                self._ended.wait(_AGAIN)

    def _fill(self) -> None:
        """Until it is closed, or the file is another."""
        with contextlib.closing(SearchIndex(self._database)) as index:
            index.check()
            while not self._ended.is_set():
                self._news.wait()
                if not index.is_there:
                    return
                self._news.clear()
                while not self._ended.is_set() and index.step(self._ended.is_set):
                    self._ended.wait(self._pause)
                if not self._news.is_set():
                    self.whole.set()
