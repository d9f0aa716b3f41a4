"""Keys in the operating system's keyring: what may be one, and storing, finding and removing it. The sign-ins of MCP
servers lie beside them."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from agent_tui.errors import AgentError, ConfigError
from agent_tui.providers.catalog import dialect_of

log = logging.getLogger(__name__)

SERVICE = "agent-tui"
SIGN_INS = "agent-tui-mcp"
PROVIDERS = "providers"
SAID, UNLOCKED = 2.0, 60.0
"""Seconds a keyring may take to say for whom it has keys, and to take one: its owner may have to unlock it."""

T = TypeVar("T")


def stored_key(provider: str) -> str | None:
    """A provider's key; None when there is none, no keyring package or no keyring to talk to."""
    keyring = _keyring()
    try:
        key: str | None = keyring.get_password(SERVICE, provider) if keyring is not None else None
    except Exception as error:
        log.warning("The keyring cannot be read: %s", error)
        return None
    return key


async def key_in_keyring(provider: str) -> str | None:
    """The same while other things go on: a keyring that is locked asks its owner first."""
    try:
        return await _aside(lambda: stored_key(provider), UNLOCKED)
    except AgentError as error:
        log.warning("No key for %s: %s", provider, error)
        return None


def checked_key(text: str) -> str:
    """Returns the key that was typed or pasted, without the blanks around it. Raises ConfigError for what no key can
    be."""
    key = text.strip()
    if not key:
        raise ConfigError("The key is empty; nothing was stored.")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError("That is not a key: it contains spaces, line breaks or non-ASCII characters.")
    return key


async def keyring_ready() -> bool:
    """Returns whether there is a keyring to store keys in, and it says so soon."""
    try:
        return await _aside(_is_there, SAID)
    except AgentError as error:
        log.info("No keyring: %s", error)
        return False


def _is_there() -> bool:
    keyring = _keyring()
    try:
        # Without one, the package has a backend that only fails; of a priority below 1 none is meant to be used.
        return keyring is not None and getattr(keyring.get_keyring(), "priority", 1) >= 1
    except Exception as error:
        log.info("No keyring: %s", error)
        return False


def set_key(provider: str, key: str) -> None:
    """Stores a key. Raises ConfigError for what is no key, AgentError when there is no keyring to store it in."""
    keyring, key = _required(provider), checked_key(key)
    _try(lambda: keyring.set_password(SERVICE, provider, key))
    names = ",".join(sorted({*list_providers(), provider}))
    _try(lambda: keyring.set_password(SERVICE, PROVIDERS, names))


def remove_key(provider: str) -> None:
    """Removes a key. Raises AgentError when there is none."""
    keyring = _required(provider)
    if _try(lambda: keyring.get_password(SERVICE, provider)) is None:
        raise AgentError(f"No key is stored for {provider}. Stored: {', '.join(list_providers()) or 'none'}.")
    _try(lambda: keyring.delete_password(SERVICE, provider))
    names = ",".join(name for name in list_providers() if name != provider)
    _try(lambda: keyring.set_password(SERVICE, PROVIDERS, names))


def list_providers() -> list[str]:
    """Providers with a stored key. Raises AgentError when there is no keyring."""
    keyring = _required("openai")
    names = _try(lambda: keyring.get_password(SERVICE, PROVIDERS)) or ""
    return [name for name in names.split(",") if name]


async def keep_key(provider: str, key: str) -> None:
    """Stores a key while other things go on: a keyring that is locked asks its owner first. Raises ConfigError for what
    is no key, AgentError where the keyring does not take it."""
    await _aside(lambda: set_key(provider, key), UNLOCKED)


async def providers_with_keys() -> frozenset[str]:
    """The providers that the keyring has keys for; none where it does not say so soon."""
    try:
        return frozenset(await _aside(list_providers, SAID))
    except AgentError as error:
        log.info("The keyring does not say for whom it has keys: %s", error)
        return frozenset()


async def sign_in_kept(server: str) -> str | None:
    """What the keyring has of a server's sign-in. Raises AgentError where it does not say."""
    return await _aside(lambda: _try(lambda: _required().get_password(SIGN_INS, server), ""), UNLOCKED)


async def keep_sign_in(server: str, text: str) -> None:
    """Raises AgentError where the keyring does not take it."""
    await _aside(lambda: _try(lambda: _required().set_password(SIGN_INS, server, text), ""), UNLOCKED)


async def remove_sign_in(server: str) -> None:
    """Raises AgentError where the keyring does not let go of it."""
    await _aside(lambda: _try(lambda: _required().delete_password(SIGN_INS, server), ""), UNLOCKED)


async def _aside(work: Callable[[], T], seconds: float) -> T:
    """The result of work with the keyring, in a thread that nobody waits for at the end. Raises what the work raises,
    AgentError where that takes longer."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # who waits no more cancels nothing: the work ends in its own time

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="keyring", daemon=True).start()
    try:
        return await asyncio.wait_for(asyncio.wrap_future(done), seconds)
    except TimeoutError:
        raise AgentError("The system's keyring does not answer: it may be locked.") from None


def _keyring() -> Any:
    if os.environ.get("PYTHON_KEYRING_BACKEND") == "keyring.backends.null.Keyring":
        return None
    try:
        import keyring
    except ImportError:
        return None
    return keyring


def _required(provider: str = "") -> Any:
    keyring = _keyring()
    if keyring is None:
        instead = f" Or set the environment variable {dialect_of(provider).key_name}." if provider else ""
        raise AgentError(f"Storing keys needs the keyring package: pip install keyring.{instead}")
    return keyring


def _try(
    action: Callable[[], str | None], instead: str = " Set the key as an environment variable instead."
) -> str | None:
    try:
        return action()
    except Exception as error:
        why = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise AgentError(f"The system's keyring refused: {why}.{instead}") from error
