"""Which environment variables hold a provider's key, and which providers need none.

Names as LiteLLM and the providers' own documentation use them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from agent_tui.models.requests import ModelSpec
from agent_tui.providers.dialects import DIALECTS, dialect_of
from agent_tui.providers.net.addresses import is_loopback

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
