"""A file that only its owner can read, with what must not stand anywhere else: sign-ins and keys, by name. Several
programs may use it at once."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent_tui.errors import AgentError
from agent_tui.paths import private_dir
from agent_tui.store.locks import take

log = logging.getLogger(__name__)

MOST = 1_000_000
"""Bytes of the file: it never becomes longer, and a longer one is not read."""
_TRIES, _PAUSE = 200, 0.05
"""How often, and with how many seconds between, the file is tried while another program has it."""


class PrivateFile:
    """``what`` names what it keeps, ``mend`` says what to do once it was deleted. A file that cannot be read is an
    AgentError wherever it is needed: to write it anew would forget everything else in it."""

    def __init__(self, path: Path, what: str, mend: str) -> None:
        self.path = path
        self._what, self._mend = what, mend

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Keeps other programs from changing it meanwhile. One that has the file for ever is not waited for."""
        try:
            private_dir(self.path.parent)
            descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.warning("%s cannot be locked: %s", self.path, error)
            yield
            return
        try:
            for _ in range(_TRIES):
                try:
                    take(descriptor)
                    break
                except OSError:
                    await asyncio.sleep(_PAUSE)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> dict[str, Any]:
        """What it keeps; empty where there is no file. Raises AgentError where it does not say."""
        try:
            with self.path.open("rb") as file:
                data = file.read(MOST + 1)
            found = json.loads(data) if len(data) <= MOST else None
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise AgentError(f"{self.path} cannot be read: {error.strerror or error}.") from error
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise AgentError(f"{self.path} is damaged: delete it, and {self._mend}.")
        return found

    def write(self, entries: dict[str, Any]) -> None:
        """Keeps these from now on, and nothing else. Raises AgentError where that is impossible."""
        fresh, text = self.path.with_suffix(f".{os.getpid()}.new"), json.dumps(entries)
        if len(text) > MOST:
            raise AgentError(f"The {self._what} cannot be kept in {self.path}: too many are there already.")
        try:
            private_dir(self.path.parent)
            fresh.unlink(missing_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
            fresh.replace(self.path)
        except OSError as error:
            raise AgentError(f"The {self._what} cannot be kept in {self.path}: {error.strerror or error}.") from error
