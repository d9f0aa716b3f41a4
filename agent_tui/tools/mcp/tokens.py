"""Where the sign-ins of MCP servers are kept: in the system's keyring, else in a file that only its owner can read.

The file lists them all and says which of them the keyring has, so that nobody has to unlock a keyring for a server that
never asked for a sign-in. Several programs may use it at once.
"""

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
from agent_tui.providers.keys import keep_sign_in, keyring_ready, remove_sign_in, sign_in_kept
from agent_tui.store.locks import take

log = logging.getLogger(__name__)

FILE = "mcp-tokens.json"
IN_KEYRING = "keyring"
MOST = 1_000_000
"""Bytes of the file: it never becomes longer, and a longer one is not read."""
ENTRY = 64_000
"""Bytes that one server may take of it."""
_TRIES, _PAUSE = 200, 0.05
"""How often, and with how many seconds between, the file is tried while another program has it."""


class Tokens:
    """``folder`` is the user's data folder. Who changes something must be ``alone``. A file that cannot be read is an
    AgentError wherever it is needed: to write it anew would forget every other sign-in."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Keeps other programs from changing a sign-in meanwhile. One that has the file for ever is not waited for."""
        try:
            private_dir(self._path.parent)
            descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.warning("%s cannot be locked: %s", self._path, error)
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

    async def get(self, server: str) -> dict[str, Any]:
        """What is kept of a server; empty where nothing is. Raises AgentError where file or keyring do not say it."""
        kept = self._read().get(server)
        if kept == IN_KEYRING:
            try:
                kept = json.loads(await sign_in_kept(server) or "{}")
            except ValueError:
                kept = None
        return kept if isinstance(kept, dict) else {}

    async def put(self, server: str, kept: dict[str, Any]) -> str:
        """Keeps this of a server from now on, and says where. Raises AgentError where that is impossible."""
        self._read()  # what makes the writing below impossible is told before the keyring takes anything
        text = json.dumps(kept)
        if len(text) > ENTRY:
            raise AgentError(f"The sign-in is too long to be kept: {len(text):,} bytes of at most {ENTRY:,}.")
        entry: object = kept
        if await keyring_ready():
            try:
                await keep_sign_in(server, text)
            except AgentError as error:
                log.warning("The sign-in of %s goes to a file: %s", server, error)
            else:
                entry = IN_KEYRING
        self._write({**self._read(), server: entry})
        return "the system's keyring" if entry == IN_KEYRING else str(self._path)

    async def drop(self, server: str) -> bool:
        """Forgets a server; False where nothing is kept of it. Raises AgentError where that is impossible."""
        entries = self._read()
        kept = entries.pop(server, None)
        if kept is None:
            return False
        self._write(entries)
        if kept == IN_KEYRING:
            await remove_sign_in(server)
        return True

    def _read(self) -> dict[str, Any]:
        try:
            with self._path.open("rb") as file:
                data = file.read(MOST + 1)
            found = json.loads(data) if len(data) <= MOST else None
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise AgentError(f"{self._path} cannot be read: {error.strerror or error}.") from error
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise AgentError(f"{self._path} is damaged: delete it, and sign in to your MCP servers again.")
        return found

    def _write(self, entries: dict[str, Any]) -> None:
        fresh, text = self._path.with_suffix(f".{os.getpid()}.new"), json.dumps(entries)
        if len(text) > MOST:
            raise AgentError(f"The sign-in cannot be kept in {self._path}: too many are there already.")
        try:
            private_dir(self._path.parent)
            fresh.unlink(missing_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
            fresh.replace(self._path)
        except OSError as error:
            raise AgentError(f"The sign-in cannot be kept in {self._path}: {error.strerror or error}.") from error
