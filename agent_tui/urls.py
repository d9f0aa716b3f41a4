"""The one reader of web addresses: what is shown, judged by rules, opened, fetched and connected to is its ``Url``, so
that it is the same address everywhere."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import quote, urljoin

from agent_tui.errors import ToolError
from agent_tui.records import dataclass

LONGEST = 4_000
"""Characters of an address that is read."""

_LONGEST_NAME = 300
_PORTS = {"http": 80, "https": 443}
_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".corp", ".intranet")

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")  # RFC 8215

# Patterns are texts, compiled when first used and then kept by ``re``.
_MISLEADING = r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ud800-\udfff]"
_PARTS = r"(https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?"
_PLACE = r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::([0-9]{0,5}))?"
_NAME = r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*"
_NUMBERS = r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}"
_IN_TEXT = r"https?://[^\s/?#'\"<>`|,;(){}│，。；、（）」』】》]+(?:[/?#][^\s<>\"'`│，。；、（）」』】》]*)?"
# Without a scheme only with an ending that no file has: `setup.py` and `README.md` are hosts, too.
BARE_HOST = r"(?<![\w@./:-])((?:[a-z0-9-]+\.)+(?:com|org|net|edu|gov|io|dev|app))(?![\w-]|\.\w)"
_NEEDLESS = r"%(?:3[0-9]|[46][1-9a-f]|[57][0-9a]|2d|2e|5f|7e)"  # RFC 3986: means the letter itself
_MAIL = r"mailto:[^\s\x00-\x20\x7f-\x9f\\]+"


class AddressError(ToolError, ValueError):
    """The address is not used. The text says why, without repeating it: a password may stand in it."""


@dataclass(slots=True, frozen=True)
class Url:
    """An ``http`` or ``https`` address in its one spelling. ``host`` is a name in ASCII, small letters and without a
    point at its end, or an IP address as it is usually written, without brackets; ``login`` is ``user:password``."""

    scheme: str
    host: str
    written_port: int | None
    path: str
    query: str = ""
    fragment: str = ""
    login: str = ""

    @property
    def port(self) -> int:
        return self.written_port or _PORTS[self.scheme]

    @property
    def place(self) -> str:
        """Host and port as they stand in an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.place}"

    @property
    def target(self) -> str:
        """Path and query, as a request asks for them."""
        return (self.path or "/") + (f"?{self.query}" if self.query else "")

    @property
    def text(self) -> str:
        """The whole address, as it is connected to."""
        login = f"{self.login}@" if self.login else ""
        query, fragment = f"?{self.query}" if self.query else "", f"#{self.fragment}" if self.fragment else ""
        return f"{self.scheme}://{login}{self.place}{self.path}{query}{fragment}"

    @property
    def loopback(self) -> bool:
        """Returns whether it leads to this machine."""
        names = ("localhost", "::1", "::", "0.0.0.0")
        return self.host in names or re.fullmatch(r"127(\.\d+){3}", self.host) is not None

    @property
    def public(self) -> bool:
        """False when the name or address is certainly not public. A name may still resolve to a private address."""
        return not is_local_name(self.host)

    def joined(self, reference: str) -> Url:
        """The address that a reference leads to from here, such as that of a redirect. Raises AddressError."""
        _check_characters(reference)
        if re.match(r"[a-z][a-z0-9+.-]*:", reference, re.IGNORECASE):
            return parse_url(reference)
        if reference.startswith("//"):
            return parse_url(f"{self.scheme}:{reference}")
        return parse_url(urljoin(f"{self.origin}{self.target}", reference))


def parse_url(text: str, *, login: bool = False) -> Url:
    """The address that a text is, in its one spelling. Raises AddressError for all that looks like another address than
    it is, and for a user's name or password in it, unless a ``login`` may be there."""
    text = text.strip(" \t\r\n")
    _check_characters(text)
    parts = re.fullmatch(_PARTS, text, re.IGNORECASE | re.DOTALL)
    if parts is None:
        raise AddressError("Only http:// and https:// addresses can be used.")
    user, at, place = parts[2].rpartition("@")
    if at and not login:
        raise AddressError("Addresses with a user name or password are not used.")
    if re.search(r"[^!-~]|[@\[\]]", user):
        raise AddressError("The user name or password holds characters that must be written as %40 and the like.")
    found = re.fullmatch(_PLACE, place)
    if found is None or (found[2] and not 0 < int(found[2]) < 65_536):
        raise AddressError("This is not an address: its host or port cannot be.")
    port = int(found[2]) if found[2] else None
    path, query, fragment = (_encoded(part or "") for part in parts.group(3, 4, 5))
    path = re.sub(_NEEDLESS, lambda code: chr(int(code[0][1:], 16)), path, flags=re.IGNORECASE)
    return Url(parts[1].lower(), _host(found[1]), port, _without_dots(path), query, fragment, user)


def read_address(url: str | None) -> Url | None:
    """A server's address; None where there is none, or none that is used."""
    try:
        return parse_url(url, login=True) if url else None
    except AddressError:
        return None


def is_loopback(url: str | None) -> bool:
    """Returns whether a URL points at this machine."""
    found = read_address(url)
    return found is not None and found.loopback


def parse_place(text: str) -> Url:
    """The host and port that a text such as a header ``Host`` is, and nothing else. Raises AddressError."""
    url = parse_url(f"http://{text}")
    if url.path or url.query or url.fragment or re.search(r"[/?#]", text):
        raise AddressError("This is not a host.")
    return url


def urls_in(text: str) -> Iterator[tuple[int, int, Url]]:
    """The addresses that stand in a text, each with where it begins and ends; signs that end a sentence are not theirs.
    What is not used as an address (``parse_url``) is left out."""
    for match in re.finditer(_IN_TEXT, text, re.IGNORECASE):
        written = match[0].rstrip(".,;:!?)]}*_")
        try:
            yield match.start(), match.start() + len(written), parse_url(written, login=True)
        except AddressError:
            continue


def hosts_in(text: str) -> list[str]:
    """The hosts that a text names, in small letters and without ``www.``, each once."""
    found = [url.host for _, _, url in urls_in(text) if not url.login]
    found += [match[1].lower() for match in re.finditer(BARE_HOST, text, re.IGNORECASE)]
    return list(dict.fromkeys(host.removeprefix("www.") for host in found))


def page_address(text: str) -> str | None:
    """The address, as it is opened, if opening it can do no more than show a page or begin a mail."""
    if len(text) <= 2_000 and re.fullmatch(_MAIL, text, re.IGNORECASE):
        return text
    try:
        return parse_url(text).text
    except AddressError:
        return None


def _check_characters(text: str) -> None:
    if len(text) > LONGEST or re.search(_MISLEADING, text):
        raise AddressError("The address is too long or contains spaces, control characters or backslashes.")


def _host(written: str) -> str:
    if written.startswith("["):
        try:
            address = ipaddress.IPv6Address(written[1:-1])
        except ValueError:
            raise AddressError("This is not an address: its host is no IPv6 address.") from None
        return str(address.ipv4_mapped or address)
    name = written.lower()
    if not name.isascii() and len(name) <= _LONGEST_NAME:
        import idna

        try:
            name = idna.encode(name, uts46=True).decode()
        except UnicodeError:
            raise AddressError("This is not an address: its host cannot be.") from None
    name = name.removesuffix(".")
    if re.fullmatch(_NAME, name) is None:
        raise AddressError("This is not an address: its host cannot be.")
    if re.fullmatch(r"0x[0-9a-f]*|[0-9]+", name.rpartition(".")[2]) is None:
        return name
    # What ends in a number is an IPv4 address, in any spelling (``127.1``, ``0x7f000001``), or cannot be reached.
    if (number := _literal(name)) is None:
        raise AddressError("This is not an address: its host is no IPv4 address.")
    return str(number)


def _encoded(part: str) -> str:
    """Part of an address without anything that is not seen or could end it where it is written."""
    if re.fullmatch(r"[!#-;=?-~]*", part):
        return part
    return re.sub(
        r"[\s\S]", lambda char: char[0] if char[0].isprintable() and char[0] not in '"<>' else quote(char[0]), part
    )


def _without_dots(path: str) -> str:
    """A path without ``.`` and ``..``, which servers follow: a rule for one folder must not match another."""
    steps = path.split("/")[1:]
    if not {".", ".."} & set(steps):
        return path
    kept: list[str] = []
    for step in steps:
        if step == "..":
            del kept[-1:]
        elif step != ".":
            kept.append(step)
    return "/" + "/".join([*kept, ""] if steps[-1] in (".", "..") else kept)


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
    if not re.fullmatch(_NUMBERS, host.lower()):
        return None
    import socket

    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None
