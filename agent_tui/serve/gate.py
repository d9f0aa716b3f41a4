"""Who may come in: whoever knows the address, with a page that this server gave them.

The address holds a random token, so that neither other users of the machine nor pages of other sites can guess it. A
page of another site that has it all the same is told apart by its origin, and a name that was made to point here (DNS
rebinding) by the host it asks for.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

TOKEN_BYTES = 32

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "agent-tui",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every answer: nothing is loaded from elsewhere, framed, kept, or told to others, the address above all."""


class Gate:
    """``host`` is what the server listens on."""

    def __init__(self, host: str, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(TOKEN_BYTES)
        self._names = {"localhost", host.lower().strip("[]")}
        if not is_loopback(host):
            self._names.add(socket.gethostname().lower())

    def refusal(self, token: str, host: str, origin: str | None, *, needs_origin: bool = False) -> str | None:
        """Why a request is refused; None where it is not. ``host`` and ``origin`` are its headers."""
        if not self._knows(host):
            return "This host name is not served here."
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            return "The address is not complete, or of an earlier start: open the one that agent-tui serve printed."
        if origin is None:
            return "Only pages of this server may connect." if needs_origin else None
        if origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            return "Only pages of this server may connect."
        return None

    def _knows(self, host: str) -> bool:
        """Whether a Host header names this server. Its port may be that of a tunnel; an address of numbers cannot have
        been made to point here by anybody's name server."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or _address(name) is not None


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches a server that listens there."""
    found = _address(host.strip("[]"))
    return host.lower() == "localhost" if found is None else found.is_loopback


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
