"""Where the user's keys are: in the system's keyring where there is one, else in a file that only they can read."""

from __future__ import annotations

import logging
from pathlib import Path

from agent_tui.errors import AgentError
from agent_tui.paths import home_as_tilde
from agent_tui.providers import keys
from agent_tui.store.private_file import PrivateFile

log = logging.getLogger(__name__)

FILE = "keys.json"
KEYRING = "the system's keyring"


class KeyStore:
    """``folder`` is the user's data folder. A key is in one place: where it was put last."""

    def __init__(self, folder: Path, *, keyring: bool = True) -> None:
        self._file = PrivateFile(folder / FILE, "key", "enter your keys again")
        self._keyring = keyring

    async def get(self, provider: str) -> str | None:
        """A provider's key; None where there is none, or nobody says it."""
        try:
            kept = self._file.read().get(provider)
        except AgentError as error:
            log.warning("No key from the file: %s", error)
            kept = None
        return kept if isinstance(kept, str) else await keys.key_in_keyring(provider)

    async def place(self) -> str:
        """Where a key would go now."""
        return KEYRING if self._keyring and await keys.keyring_ready() else self._own_file

    @property
    def _own_file(self) -> str:
        return f"{home_as_tilde(self._file.path)}, which only you can read"

    async def put(self, provider: str, key: str) -> str:
        """Keeps a key from now on, and says where. Raises AgentError where that is impossible."""
        if await self.place() == KEYRING:
            self._file.read()  # one that cannot be read keeps what it has, which would be used then
            try:
                await keys.keep_key(provider, key)
            except AgentError as error:
                log.warning("The key of %s goes to a file: %s", provider, error)
            else:
                await self._change(provider, None)
                return KEYRING
        await self._change(provider, key)
        return self._own_file

    async def remove(self, provider: str) -> list[str]:
        """Forgets a key wherever it is, and says where it was. Raises AgentError where that is impossible."""
        found = [home_as_tilde(self._file.path)] if await self._change(provider, None) else []
        if await keys.keyring_ready() and await keys.remove_key(provider):
            found.append(KEYRING)
        return found

    async def places(self) -> dict[str, str]:
        """The providers with a key, and where it is. Raises AgentError where file or keyring do not say it."""
        found = dict.fromkeys(self._file.read(), home_as_tilde(self._file.path))
        kept = await keys.providers_with_keys() if await keys.keyring_ready() else frozenset[str]()
        return {name: found.get(name, KEYRING) for name in sorted({*found, *kept})}

    async def move(self) -> list[str]:
        """Puts the keys of the file into the keyring, and says whose. Raises AgentError where there is none."""
        if await self.place() != KEYRING:
            why = "install the keyring package (pip install keyring)" if self._keyring else "remove agent.private_file"
            raise AgentError(f"There is no keyring to move keys to: {why}.")
        moved: list[str] = []
        for provider, key in self._file.read().items():
            await keys.keep_key(provider, str(key))
            await self._change(provider, None)
            moved.append(provider)
        return moved

    async def _change(self, provider: str, key: str | None) -> bool:
        """Writes a provider's key into the file, or takes it out; False where there was none."""
        if key is None and provider not in self._file.read():
            return False
        async with self._file.alone():
            entries = self._file.read()
            entries.pop(provider, None)
            self._file.write(entries if key is None else {**entries, provider: key})
        return True
