from __future__ import annotations

import gzip
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin import markdown
from agent_tui.tools.builtin.fetch import FetchTool
from agent_tui.tools.builtin.markdown import to_markdown
from agent_tui.urls import is_local_name, parse_url
from tests.support.every import every
from tests.support.tool_context import make_context

PAGE = """<!doctype html><html><head><title>A  page</title><style>x{}</style><script>evil()</script></head><body>
<nav><a href="/">home</a></nav><h2>Head &amp; shoulders</h2><p>Some <b>bold</b> and <em>fine</em> text,
<code>code</code>, a <a href="sub/x?y=1">link</a> and <a href="javascript:evil()">another</a>.</p>
<ul><li>one</li><li>two<ol><li>deep</li></ol></li></ul><pre>a  b
 c</pre><table><tr><th>k</th><td>v</td></tr></table></body></html>"""

ROUTES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/page": (200, {"Content-Type": "text/html; charset=utf-8"}, PAGE.encode()),
    "/zip": (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, gzip.compress(b"packed")),
    "/bomb": (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, gzip.compress(b"x" * 20_000_000)),
    "/big": (200, {"Content-Type": "text/plain"}, b"y" * 6_000_000),
    "/latin": (200, {"Content-Type": "text/plain; charset=latin-1"}, b"caf\xe9\x1b[31m"),
    "/binary": (200, {"Content-Type": "application/pdf"}, b"%PDF\0"),
    "/image": (200, {"Content-Type": "image/png"}, b"\x89PNG\r\n\x1a\nx"),
    "/slow": (200, {"Content-Type": "text/html"}, b"<!--" * 250_000),
    "/gone": (404, {"Content-Type": "text/plain"}, b"no"),
    "/loop": (302, {"Location": "/loop"}, b""),
    "/moved": (301, {"Location": "/zip"}, b""),
    "/away": (302, {"Location": "http://169.254.169.254/latest"}, b""),
    "/port": (302, {"Location": "http://127.0.0.1:1/"}, b""),
    "/file": (302, {"Location": "file:///etc/passwd"}, b""),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path not in ROUTES:
            self.close_connection = True
            return
        status, headers, body = ROUTES[self.path]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_context(tmp_path / "project")


async def fetch(context: ToolContext, url: str) -> ToolOutcome:
    return await FetchTool().run({"url": url}, context)


@pytest.mark.quick
async def test_a_page_becomes_markdown(context: ToolContext, site: str) -> None:
    text = (await fetch(context, f"{site}/page")).text
    assert text.splitlines()[:3] == ["# A page", "", "## Head & shoulders"]
    assert f"Some **bold** and *fine* text, `code`, a [link]({site}/sub/x?y=1) and another." in text
    assert "- one" in text and "  1. deep" in text and "```\na  b\n c\n```" in text and "| k | v" in text
    assert "evil" not in text and "home" not in text


async def test_sizes_encodings_and_kinds(context: ToolContext, site: str) -> None:
    assert (await fetch(context, f"{site}/zip")).text == "packed"
    assert (await fetch(context, f"{site}/moved")).text == "packed"
    assert (await fetch(context, f"{site}/latin")).text == "café␛[31m"
    for path in ("bomb", "big"):
        text = (await fetch(context, f"{site}/{path}")).text
        assert len(text) < 31_000 and "larger than 5 MB" in text
    (image,) = (await fetch(context, f"{site}/image")).attachments
    assert image.media_type == "image/png"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("path", "problem"),
    [("gone", "404"), ("binary", "binary"), ("loop", "redirects"), ("file", "Only http"), ("nowhere", "cannot")],
)
async def test_what_cannot_be_fetched_is_said(context: ToolContext, site: str, path: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        await fetch(context, f"{site}/{path}")


@pytest.mark.parametrize("path", ["away", "port"])
async def test_a_redirect_elsewhere_is_not_followed(context: ToolContext, site: str, path: str) -> None:
    outcome = await fetch(context, f"{site}/{path}")
    assert "redirects to http://" in outcome.text


@pytest.mark.quick
async def test_a_public_name_that_leads_inside_is_refused(
    context: ToolContext, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(site.rpartition(":")[2])
    monkeypatch.setattr("socket.getaddrinfo", lambda *a, **k: [(2, 1, 6, "", ("127.0.0.1", port))])
    monkeypatch.setattr("urllib.request.getproxies", dict)
    with pytest.raises(ToolError, match=r"leads to the private address 127\.0\.0\.1"):
        await fetch(context, f"http://public.example.org:{port}/page")


@pytest.mark.quick
@every(
    "url",
    ["file:///etc/passwd", "ftp://x.org", "javascript:x", "http://", "//x.org", "http://a@b.org", "http://x.org/\x1b",
     "http://x.org\\@evil.com", "http://x.org:99999/", "http://x .org", "http://[::1", "data:text/html,x"],
)  # fmt: skip
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ToolError):
        parse_url(url)


@pytest.mark.quick
def test_names_inside_networks() -> None:
    for host in ("localhost", "x.localhost", "printer", "a.local", "10.0.0.1", "0x7f.1", "0177.0.0.1", "::1", "fe80::1",
                 "::ffff:192.168.0.1", "64:ff9b:1::1", "64:ff9b::7f00:1", "100.64.0.1", "0.0.0.0"):  # fmt: skip
        assert is_local_name(host), host
    for host in ("example.org", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"):
        assert not is_local_name(host), host


@every("html", ["<" * 5_000, "<ul>" * 5_000 + "x", "<a href=x>" * 5_000, "<!--", "<![CDATA[", "\0<p>x"])
def test_broken_html_is_read_as_far_as_it_goes(html: str) -> None:
    to_markdown(html, "http://x.org/")


def test_what_reads_a_foreign_page_is_a_python_with_nothing_else_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    run = subprocess.run

    def noted(command: list[str], **options: object) -> object:
        commands.append(command)
        return run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", noted)
    assert markdown.read_page(b"<p>a <b>page</b>", "http://x.org/", "text/html") == "a **page**"
    ((python, options, *_),) = commands
    flags = "import sys; print(sys.flags.isolated, sys.flags.no_site)"
    assert run([python, options, "-c", flags], capture_output=True, check=True).stdout == b"1 1\n"


async def test_a_page_that_is_built_to_take_for_ever_ends(
    context: ToolContext, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown, "SECONDS", 1)
    with pytest.raises(ToolError, match="took longer than 1 s"):
        await fetch(context, site + "/slow")
