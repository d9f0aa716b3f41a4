"""Reads URLs, checks that they may be used, and tells whether a host is on the public internet."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from agent_tui.errors import ToolError
from agent_tui.records import dataclass

_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".corp", ".intranet")

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")  # RFC 8215


@dataclass(slots=True, frozen=True)
class Url:
    """A checked ``http`` or ``https`` URL. ``host`` is lower case, without brackets; ``port`` always given."""

    text: str
    scheme: str
    host: str
    port: int
    target: str

    @property
    def public(self) -> bool:
        """False when the name or address is certainly not public. A name may still resolve to a private address."""
        return not is_local_name(self.host)


def parse_url(text: str) -> Url:
    """Raises ToolError for anything but a plain http(s) URL: user names, odd characters and other schemes make URLs
    look like what they are not."""
    text = text.strip()
    if len(text) > 4_000 or re.search(r"[\x00-\x20\x7f-\x9f\\]", text):
        raise ToolError("The URL is too long or contains spaces, control characters or backslashes.")
    try:
        parts = urlsplit(text)
        port, name = parts.port, (parts.hostname or "").rstrip(".")
        host = name.encode("ascii" if name.isascii() else "idna").decode()
    except (ValueError, UnicodeError) as error:
        raise ToolError(f"This is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ToolError("Only http:// and https:// URLs can be fetched.")
    if "@" in parts.netloc:
        raise ToolError("URLs with a user name or password are not fetched.")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Url(text, parts.scheme, host.lower(), port or (443 if parts.scheme == "https" else 80), target)


def is_local_name(host: str) -> bool:
    """True for loopback, private and other addresses outside the public internet, in any spelling the system's
    resolver takes (``127.1``, ``0x7f000001``, ``2130706433``), and for names used inside networks only."""
    address = _literal(host)
    if address is not None:
        return not is_public(address)
    return host == "localhost" or host.endswith(_LOCAL_SUFFIXES) or "." not in host


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64_LOCAL:
            return False
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    if not re.fullmatch(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}", host.lower()):
        return None
    import socket

    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None
