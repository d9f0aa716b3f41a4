"""Addresses: whether they are near, and as environment variables give them, with or without scheme, host and port."""

from __future__ import annotations

import os
from urllib.parse import urlsplit, urlunsplit

from agent_tui.providers.dialects import Dialect

_EVERYWHERE = "0.0.0.0"
"""Where a server listens; nobody can be called there."""


def is_loopback(url: str | None) -> bool:
    """Whether a URL points at this machine."""
    host = (urlsplit(url).hostname or "") if url else ""
    return host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")


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
