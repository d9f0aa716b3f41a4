"""One reader of addresses: what is shown, judged, opened and connected to is the same."""

from __future__ import annotations

import ast

import pytest

from agent_tui.errors import ToolError
from agent_tui.providers.catalog import dialect_of, near_url, shown_address
from agent_tui.providers.net import origin
from agent_tui.tools.rules.rule import url_matches
from agent_tui.urls import AddressError, hosts_in, is_loopback, page_address, parse_place, parse_url, urls_in
from tests.support.every import every
from tests.support.sources import with_any

pytestmark = pytest.mark.quick

READ = {
    "HtTpS://EXAMPLE.com:443/a/../b?x#y": "https://example.com/b?x#y",
    "https://example.com./": "https://example.com/",
    "https://example.com:/x": "https://example.com/x",
    "https://example.com:0443/": "https://example.com/",
    "https://аррӏе.com/": "https://xn--80ak6aa92e.com/",
    "https://faß.de": "https://xn--fa-hia.de",
    "https://example。com/": "https://example.com/",
    "https://ｅｘａｍｐｌｅ.com/": "https://example.com/",
    "https://exa\u00admple\u200b.com/": "https://example.com/",
    "http://2130706433/": "http://127.0.0.1/",
    "http://0x7f.1:8080/": "http://127.0.0.1:8080/",
    "http://0177.0.0.1": "http://127.0.0.1",
    "http://127.1.": "http://127.0.0.1",
    "http://[::ffff:127.0.0.1]/": "http://127.0.0.1/",
    "http://[0:0::1]:8/": "http://[::1]:8/",
    "https://a.b/%2e%2E/%61dmin/./": "https://a.b/admin/",
    "https://a.b/x\u202egpj.exe": "https://a.b/x%E2%80%AEgpj.exe",
    'https://a.b/"><b>': "https://a.b/%22%3E%3Cb%3E",
    "https://a.b/東京?q=é": "https://a.b/東京?q=é",
    "https://a.b/@user/x:y": "https://a.b/@user/x:y",
    " https://a.b/ \n": "https://a.b/",
}

REFUSED = (
    *("https://example.com\\@evil.test/", "https:\\\\evil.test\\x", "https://user:hunter2@a.b/", "https://a.b@evil.test/"),
    *("https:///evil.test", "https:evil.test", "//evil.test", "evil.test", "", "https://", "https://@a.b", "https://:80/"),
    *("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vscode://x", "https.evil://x", "ftp://a.b/"),
    *("https://a.b:99999/", "https://a.b:0/", "https://a.b:0x50/", "https://a.b:-1", "https://a.b:+80", "https://a.b:８０"),
    *("https://ex\tample.com/", "https://a.b/\n\rHost: x", "https://a.b/ x", "https://a.b/\x1b]8;;", "https://a\x00.b"),
    *("https://ex%61mple.com/", "https://a.b%2eevil.test/", "https://a..b/", "https://.a.b/", "https://a.b../", "https://-a.b"),
    *(f"https://{'a' * 64}.com/", f"https://{'a.' * 130}com/", f"https://a.b/{'x' * 4_000}", "https://a_b\u2028.c/"),
    *("http://[::1", "http://::1/", "http://[::1%25eth0]/", "http://[v1.x]/", "http://1.2.3.4.5/", "http://256.1/", "http://08.1"),
    *("https://a.b∕c@evil.test/", "https://a.b＠evil.test/", "https://a.b／evil.test", "https://☃.net/", "https://a.b\ud800/"),
)  # fmt: skip


@every("text", READ)
def test_an_address_has_one_spelling(text: str) -> None:
    url = parse_url(text)
    assert url.text == READ[text]
    assert parse_url(url.text).text == url.text
    assert page_address(text) == READ[text]
    assert url.text.startswith(url.origin) and url.host.isascii()


@every("text", REFUSED)
def test_what_looks_like_another_address_is_none_and_is_not_repeated(text: str) -> None:
    with pytest.raises(AddressError) as refused:
        parse_url(text)
    assert "hunter2" not in str(refused.value)
    assert page_address(text) is None
    assert not url_matches("*", text) and not is_loopback(text)
    assert not [url for _, _, url in urls_in(text) if url.text == text and not url.login]


def test_an_error_that_is_caught_as_a_tools_or_as_a_values() -> None:
    assert issubclass(AddressError, ToolError) and issubclass(AddressError, ValueError)


@pytest.mark.parametrize(
    ("login", "shown"),
    [
        ("https://user:hunter2@Host:8443/v1?key=x", "https://host:8443/v1"),
        ("http://tok3n@127.0.0.1:1/", "http://127.0.0.1:1/"),
    ],
)
def test_a_login_that_may_be_there_is_never_shown(login: str, shown: str) -> None:
    assert parse_url(login, login=True).login in login
    assert shown_address(login) == shown
    assert origin(login) in shown
    with pytest.raises(AddressError):
        parse_url("https://a:b@c@d/", login=True)


@every(
    ("base", "reference", "led"),
    [
        ("https://a.b/c/d?e", "../x", "https://a.b/x"),
        ("https://a.b/c", "//e.f/g", "https://e.f/g"),
        ("https://a.b/c", "?q", "https://a.b/c?q"),
        ("https://u:p@a.b/c", "/x", "https://a.b/x"),
    ],
)
def test_where_a_redirect_leads(base: str, reference: str, led: str) -> None:
    assert parse_url(base, login=True).joined(reference).text == led


@every("reference", ["/\\evil.test", "\\\\evil.test", "https://u@a.b", "javascript:x", "/a\tb", "https:///x"])
def test_redirects_are_read_the_same_way(reference: str) -> None:
    with pytest.raises(AddressError):
        parse_url("https://a.b/").joined(reference)


@every("text", ["a.b/", "a.b?x", "a.b#", "u@a.b", "a.b:80@c.d", "a b", "", "http://a.b", "a.b\\c"])
def test_what_is_more_than_a_host_is_none(text: str) -> None:
    with pytest.raises(AddressError):
        parse_place(text)


@every(
    ("pattern", "url", "fits"),
    [
        ("EXAMPLE.com.", "https://example.com/", True),
        ("example.com", "https://example.com./x", True),
        ("bücher.example", "https://xn--bcher-kva.example/", True),
        ("*.bücher.example", "https://a.bücher.example/", True),
        ("127.0.0.1", "http://2130706433/", True),
        ("127.0.0.1", "http://[::ffff:7f00:1]/", True),
        ("localhost:8080", "http://localhost:8080/", True),
        ("localhost:8080", "http://localhost:9090/", False),
        ("https://example.com", "http://example.com/", False),
        ("docs.python.org/3/*", "https://docs.python.org/3/../private", False),
        ("docs.python.org/3/*", "https://docs.python.org/3/%2e%2e/private", False),
        ("a.b/admin/*", "https://a.b/%61dmin/x", True),
        ("example.com", "https://example.com@evil.test/", False),
        ("example.com", "https://example.com\\.evil.test/", False),
    ],
)
def test_rules_and_addresses_are_spelled_alike(pattern: str, url: str, fits: bool) -> None:
    assert url_matches(pattern, url) is fits


def test_hosts_that_stand_in_a_text() -> None:
    text = "see https://docs.a.dev/x), HTTP://Bücher.example。 and b.org; not https://good.com@evil.test/ nor https://c.d\\x"
    assert hosts_in(text) == ["docs.a.dev", "xn--bcher-kva.example", "b.org"]
    assert [text[start:end] for start, end, _ in urls_in(text)][:2] == ["https://docs.a.dev/x", "HTTP://Bücher.example"]


@every(
    ("value", "url"),
    [
        (":11434", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://0.0.0.0:1/v1", "http://127.0.0.1:1/v1"),
        ("box.lan", "http://box.lan:11434"),
        ("[::1]:5", "http://[::1]:5"),
        ("https://a.b/x", "https://a.b/x"),
    ],
)
def test_what_people_write_of_a_server_of_their_own(value: str, url: str) -> None:
    assert near_url(value, dialect_of("ollama")) == url


READERS = {"urlsplit", "urlparse", "urljoin", "urlunsplit", "urlunparse", "urldefrag", "SplitResult", "ParseResult"}
EXCEPTIONS = {
    "urls.py": "the reader itself",
    "tools/builtin/markdown.py": "the links of a page for the model to read; fetch reads them anew",
}


def test_no_other_place_reads_addresses() -> None:
    found = set[str]()
    for file, text in with_any(*READERS, "URL").items():
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            called = node.attr if isinstance(node, ast.Attribute) else ""
            library = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and "httpx" in node.value.id
            if READERS & {*names, called} or (called == "URL" and library):
                found.add(file)
    assert found == EXCEPTIONS.keys()
