"""Keys: what may be one, and those in the operating system's keyring. The sign-ins of MCP servers lie beside them."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from agent_tui.errors import AgentError, ConfigError
from agent_tui.providers.catalog import DIALECTS, KEY_VARIABLES, dialect_of
from agent_tui.text.clean import without_format_signs
from agent_tui.text.secrets import names_secret

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


_ASSIGNED = re.compile(
    r"""(?:export\s+|setx?\s+(?:-\w+\s+)*|\$env:|-H\s+)?["']?([A-Za-z][\w-]*)["']?(?:\s*[=:]\s*|\s+)(.*)"""
)
"""A line of a shell, of a file with variables, or of a header, that gives something a value."""
_FIELDS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "api_key", "apikey")
_BEHIND = re.compile(r"\s+#.*|[\s;,]+$")


def pasted_key(text: str, provider: str, *, elsewhere: bool = False) -> str:
    """Returns the key in what was typed or pasted for a provider: without quotes, blanks and the name of its variable
    or header. Raises ConfigError for what can be no key, and for that of another provider; a server ``elsewhere``, at
    an address of its own, may take any."""
    lines = list(filter(None, map(str.strip, without_format_signs(text).splitlines())))
    named = {name: value for name, value in map(_value, lines) if name}
    own = dialect_of(provider)
    name, key = next(
        ((name, named[name]) for name in own.keys if name in named),
        _value(lines[0]) if len(lines) == 1 else ("", " ".join(lines)),
    )
    if not key:
        raise ConfigError("The key is empty; nothing was stored.")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError("That is not a key: it contains spaces, line breaks or non-ASCII characters.")
    if "***" in key or "..." in key:
        raise ConfigError("The key is not complete: its middle is hidden. Copy it from where it is shown in full.")
    owners = [other for other, names in KEY_VARIABLES.items() if name in names] or _owners(key)
    if owners and provider not in owners and not elsewhere:
        raise ConfigError(
            f"That is a key of {' or '.join(owners)}, not of {provider}; nothing was stored or sent. For {owners[0]}: "
            f"choose one of its models, or run `agent-tui auth set {owners[0]}`."
        )
    return key


def _value(line: str) -> tuple[str, str]:
    """Returns the name of what a line gives a value, empty where it names nothing, and the value."""
    line = _BEHIND.sub("", line).strip("\"'` ")
    found = _ASSIGNED.fullmatch(line)
    named = found is not None and (found[1].lower() in _FIELDS or (found[1].isupper() and names_secret(found[1])))
    name, value = (found[1], found[2]) if found is not None and named else ("", line)
    return name, re.sub(r"(?i)^bearer\s+", "", value.strip("\"'` ")).strip("\"'` ")


def _owners(key: str) -> list[str]:
    """Returns the providers whose keys begin so, by the longest beginning."""
    begins = {
        name: max((b for b in one.key_begins if key.startswith(b)), key=len, default="")
        for name, one in DIALECTS.items()
    }
    longest = max(begins.values(), key=len)
    return [name for name, begin in begins.items() if longest and begin == longest]


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


async def keep_key(provider: str, key: str) -> None:
    """Stores a key while other things go on: a keyring that is locked asks its owner first. Raises AgentError where the
    keyring does not take it."""

    def keep() -> None:
        keyring = _required()
        _try(lambda: keyring.set_password(SERVICE, provider, key))
        _name({*_names(), provider})

    await _aside(keep, UNLOCKED)


async def remove_key(provider: str) -> bool:
    """Removes a key; False where there is none. Raises AgentError where the keyring does not let go of it."""

    def remove() -> bool:
        keyring = _required()
        if _try(lambda: keyring.get_password(SERVICE, provider)) is None:
            return False
        _try(lambda: keyring.delete_password(SERVICE, provider))
        _name({*_names()} - {provider})
        return True

    return await _aside(remove, UNLOCKED)


def _names() -> list[str]:
    """The providers with a stored key. Raises AgentError where the keyring does not say."""
    names = _try(lambda: _required().get_password(SERVICE, PROVIDERS)) or ""
    return [name for name in names.split(",") if name]


def _name(providers: Iterable[str]) -> None:
    _try(lambda: _required().set_password(SERVICE, PROVIDERS, ",".join(sorted(providers))))


async def providers_with_keys() -> frozenset[str]:
    """The providers that the keyring has keys for. Raises AgentError where it does not say so soon."""
    return frozenset(await _aside(_names, SAID))


async def sign_in_kept(server: str) -> str | None:
    """What the keyring has of a server's sign-in. Raises AgentError where it does not say."""
    return await _aside(lambda: _try(lambda: _required().get_password(SIGN_INS, server)), UNLOCKED)


async def keep_sign_in(server: str, text: str) -> None:
    """Raises AgentError where the keyring does not take it."""
    await _aside(lambda: _try(lambda: _required().set_password(SIGN_INS, server, text)), UNLOCKED)


async def remove_sign_in(server: str) -> None:
    """Raises AgentError where the keyring does not let go of it."""
    await _aside(lambda: _try(lambda: _required().delete_password(SIGN_INS, server)), UNLOCKED)


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


def _required() -> Any:
    if (keyring := _keyring()) is None:
        raise AgentError("There is no keyring: install the keyring package (pip install keyring).")
    return keyring


def _try(action: Callable[[], str | None]) -> str | None:
    try:
        return action()
    except Exception as error:
        why = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise AgentError(f"The system's keyring refused: {why}.") from error
