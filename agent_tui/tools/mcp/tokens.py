"""Where the sign-ins of MCP servers are kept: in the system's keyring, else in a file that only its owner can read.

The file lists them all and says which of them the keyring has, so that nobody has to unlock a keyring for a server that
never asked for a sign-in. Several programs may use it at once.
"""

from __future__ import annotations

import json
import logging
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from agent_tui.errors import AgentError
from agent_tui.providers.keys import keep_sign_in, keyring_ready, remove_sign_in, sign_in_kept
from agent_tui.store.keys import KEYRING
from agent_tui.store.private_file import PrivateFile

log = logging.getLogger(__name__)

FILE = "mcp-tokens.json"
IN_KEYRING = "keyring"
ENTRY = 64_000
"""Bytes that one server may take of it."""


class Tokens:
    """``folder`` is the user's data folder. Who changes something must be ``alone``."""

    def __init__(self, folder: Path) -> None:
        self._file = PrivateFile(folder / FILE, "sign-in", "sign in to your MCP servers again")

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Keeps other programs from changing a sign-in meanwhile."""
        return self._file.alone()

    async def get(self, server: str) -> dict[str, Any]:
        """What is kept of a server; empty where nothing is. Raises AgentError where file or keyring do not say it."""
        kept = self._file.read().get(server)
        if kept == IN_KEYRING:
            try:
                kept = json.loads(await sign_in_kept(server) or "{}")
            except ValueError:
                kept = None
        return kept if isinstance(kept, dict) else {}

    async def put(self, server: str, kept: dict[str, Any]) -> str:
        """Keeps this of a server from now on, and says where. Raises AgentError where that is impossible."""
        self._file.read()  # what makes the writing below impossible is told before the keyring takes anything
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
        self._file.write({**self._file.read(), server: entry})
        return KEYRING if entry == IN_KEYRING else str(self._file.path)

    async def drop(self, server: str) -> bool:
        """Forgets a server; False where nothing is kept of it. Raises AgentError where that is impossible."""
        entries = self._file.read()
        kept = entries.pop(server, None)
        if kept is None:
            return False
        self._file.write(entries)
        if kept == IN_KEYRING:
            await remove_sign_in(server)
        return True
