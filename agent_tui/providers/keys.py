"""Which environment variables hold a provider's key, and which providers need none.

Names as LiteLLM and the providers' own documentation use them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agent_tui.errors import AgentError, ConfigError
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog import DIALECTS, dialect_of
from agent_tui.providers.dialects.record import Dialect
from agent_tui.providers.net import is_loopback
from agent_tui.text.clean import printable

DUMMY_KEY = "no-key"
"""Sent to local servers, which ignore it; LiteLLM insists on some value."""

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {name: dialect.keys for name, dialect in DIALECTS.items() if dialect.keys}
)
"""Of every provider whose key has a variable of its own."""


@dataclass(slots=True, frozen=True)
class Key:
    """The key to use. ``value`` None: LiteLLM finds credentials by itself (AWS, Google). ``missing`` names the
    environment variable to set when a key is needed and there is none."""

    value: str | None = None
    missing: str | None = None

    @property
    def unfit(self) -> bool:
        """Whether it has characters that no header can carry: something else was pasted, or a part of it garbled."""
        return self.value is not None and not (self.value.isascii() and self.value.isprintable())


def needs_no_key(spec: ModelSpec, provider: str) -> bool:
    """Whether a model is served by a program of the user's own, which must not be sent a provider's key."""
    if spec.api_key_env:
        return False
    dialect = dialect_of(provider)
    return dialect.local or (dialect.compatible and is_loopback(spec.api_base))


def resolve_key(spec: ModelSpec, provider: str) -> Key:
    """The key for a model: from the keyring, from the variable the configuration names, or from the usual ones. White
    space around it is none of it: files that keys are read from end with a newline."""
    if key := (spec.api_key or "").strip():
        return Key(key)
    configured = spec.extra.get("api_key")
    if isinstance(configured, str) and (key := configured.strip()):
        return Key(key)
    if spec.api_key_env:
        value = _variable(spec.api_key_env)
        return Key(value) if value else Key(missing=spec.api_key_env)
    dialect = dialect_of(provider)
    if dialect.local:
        return Key(_variable(dialect.key_name) or DUMMY_KEY)
    if dialect.compatible and is_loopback(spec.api_base):
        return Key(DUMMY_KEY)
    for name in dialect.keys:
        if value := _variable(name):
            return Key(value)
    if dialect.keys:
        return Key(missing=dialect.key_name)
    return Key(_variable(dialect.key_name))


def _variable(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


@dataclass(slots=True, frozen=True)
class Called:
    """``address`` is the configured one, if any, and ``key_env`` the configured variable of the key."""

    provider: str
    address: str | None = None
    key_env: str | None = None

    @property
    def own(self) -> bool:
        """Whether the provider's name only says which language a server at a configured address speaks."""
        dialect = dialect_of(self.provider)
        if not dialect.compatible or not self.address:
            return False
        usual = dialect.base
        return usual is None or _host(usual) != _host(self.address)

    @property
    def name(self) -> str:
        return f"the server at {shown_origin(self.address)}" if self.own and self.address else self.provider

    @property
    def first(self) -> str:
        """The name where a sentence begins with it. Providers' names are written as they are configured."""
        return self.name[:1].upper() + self.name[1:] if self.own else self.name

    @property
    def place(self) -> str:
        """The name with all of the configured address, which may be what is wrong."""
        if not self.address:
            return self.provider
        shown = shown_address(self.address)
        return f"the server at {shown}" if self.own else f"{self.provider} at {shown}"

    @property
    def first_place(self) -> str:
        return self.place[:1].upper() + self.place[1:] if self.own else self.place

    @property
    def give_key(self) -> str:
        """What to do about a key that is refused."""
        if self.key_env:
            return f"Check the key in {self.key_env}."
        if self.own:
            return "Check the key: name the variable that holds it in api_key_env of the model."
        return f"Check the key: set {dialect_of(self.provider).key_name} or run `agent-tui auth set {self.provider}`."


def missing_key_line(spec: ModelSpec, provider: str, variable: str) -> str:
    """The one line for a missing key, naming the ways to give it. ``variable`` is the one that was looked for."""
    called = Called(provider, spec.api_base, spec.api_key_env)
    if spec.api_key_env and called.own:
        # No word of the keyring: what is stored there for the provider's name is meant for the provider itself.
        return f"No API key for {called.name}: set {variable}, which api_key_env of the model names."
    if called.own:
        return f"No API key for {called.name}: set {variable}, or name the variable that holds it in api_key_env."
    return f"No API key for {provider}: set {variable}, or run `agent-tui auth set {provider}`."


def shown_address(url: str) -> str:
    """A server's address without user, password, query and fragment."""
    return _shown(url, whole=True)


def shown_origin(url: str) -> str:
    """Scheme, host and port of a server's address."""
    return _shown(url, whole=False)


def _shown(url: str, whole: bool) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the address in api_base"
    path = parts.path if whole else ""
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
    return printable(shown)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


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


_EVERYWHERE = "0.0.0.0"


def variable_base(dialect: Dialect) -> str | None:
    """The address in the first of a provider's variables that is set, as a URL."""
    value = next((v for name in dialect.base_variables if (v := os.environ.get(name, "").strip())), None)
    return None if value is None else near_url(value, dialect)


def near_url(value: str, dialect: Dialect) -> str:
    """A URL of a value like ``localhost``, ``:11434`` or ``0.0.0.0:11434``. What it lacks is as usual for a server
    that people run themselves: Ollama reads its own variable so (docs.ollama.com/faq)."""
    whole = "://" in value
    parts = urlsplit(value if whole else f"http://{value}")
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return value
    usual = urlsplit(dialect.base or "").port if dialect.local and not whole else None
    if (host and host != _EVERYWHERE) and (port is not None or usual is None):
        return urlunsplit(parts)
    host = "127.0.0.1" if host in ("", _EVERYWHERE) else f"[{host}]" if ":" in host else host
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    port = port or usual
    return urlunsplit(parts._replace(netloc=f"{user}{host}{f':{port}' if port else ''}"))
