"""Keys in the operating system's keyring, where the optional ``keyring`` package is installed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from agent_tui.errors import AgentError, ConfigError
from agent_tui.providers.dialects import dialect_of

log = logging.getLogger(__name__)

SERVICE = "agent-tui"
PROVIDERS = "providers"


def stored_key(provider: str) -> str | None:
    """A provider's key; None when there is none, no keyring package or no keyring to talk to."""
    keyring = _keyring()
    if keyring is None:
        return None
    try:
        key: str | None = keyring.get_password(SERVICE, provider)
    except Exception as error:
        log.warning("The keyring cannot be read: %s", error)
        return None
    return key


def set_key(provider: str, key: str) -> None:
    """Stores a key. Raises AgentError when there is no keyring to store it in."""
    keyring = _required(provider)
    if not key.strip():
        raise ConfigError("The key is empty; nothing was stored.")
    _try(lambda: keyring.set_password(SERVICE, provider, key.strip()))
    names = sorted({*list_providers(), provider})
    _try(lambda: keyring.set_password(SERVICE, PROVIDERS, ",".join(names)))


def remove_key(provider: str) -> None:
    """Removes a key. Raises AgentError when there is none."""
    keyring = _required(provider)
    if _try(lambda: keyring.get_password(SERVICE, provider)) is None:
        raise AgentError(f"No key is stored for {provider}. Stored: {', '.join(list_providers()) or 'none'}.")
    _try(lambda: keyring.delete_password(SERVICE, provider))
    names = [name for name in list_providers() if name != provider]
    _try(lambda: keyring.set_password(SERVICE, PROVIDERS, ",".join(names)))


def list_providers() -> list[str]:
    """Providers with a stored key. Raises AgentError when there is no keyring."""
    keyring = _required("openai")
    names = _try(lambda: keyring.get_password(SERVICE, PROVIDERS)) or ""
    return [name for name in names.split(",") if name]


def _keyring() -> Any:
    if os.environ.get("PYTHON_KEYRING_BACKEND") == "keyring.backends.null.Keyring":
        return None
    try:
        import keyring
    except ImportError:
        return None
    return keyring


def _required(provider: str) -> Any:
    keyring = _keyring()
    if keyring is None:
        raise AgentError(
            "Storing keys needs the keyring extra: pip install 'agent-tui[keyring]'. "
            f"Or set the environment variable {dialect_of(provider).key_name}."
        )
    return keyring


def _try(action: Callable[[], str | None]) -> str | None:
    try:
        return action()
    except Exception as error:
        why = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise AgentError(f"The system's keyring refused: {why}. An environment variable works too.") from error
