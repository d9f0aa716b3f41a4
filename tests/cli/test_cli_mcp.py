"""Signing in to an MCP server from the shell, and runs that need it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cli import Cli, answers
from tests.support.lazily import LazyModule
from tests.support.starting import stand_alone

if TYPE_CHECKING:
    from tests.support.oauth_server import OAuthServer

sign_ins = LazyModule("tests.support.oauth_server")

BROWSER = """\
#!{python}
import sys, urllib.request
urllib.request.urlopen(sys.argv[1]).read()
"""

pytestmark = pytest.mark.usefixtures("forked_host")


@pytest.fixture
def server(cli: Cli, tmp_path: Path) -> Iterator[OAuthServer]:
    """A server that is configured as ``docs``, and a browser that agrees to everything."""
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o755)
    stand_alone(cli.monkeypatch, tmp_path)
    cli.setenv("BROWSER", str(browser))
    with sign_ins.oauth_server() as made:
        cli.config(f'[mcp.docs]\nurl = "{made.url}/mcp"\nrequired = true\n')
        yield made


@pytest.mark.slow
def test_a_run_works_once_the_user_signed_in_and_the_token_is_nowhere_else(cli: Cli, server: OAuthServer) -> None:
    cli.script(
        '[[step]]\ntool_calls = [{ name = "mcp__docs__add", arguments = { a = 20, b = 3 } },'
        ' { name = "mcp__docs__repeat", arguments = {} }]\n' + answers("Done.")
    )
    refused = cli.run("-p", "go", "-m", "demo")
    assert refused.code == 57
    assert "it asks you to sign in: /mcp login docs (in a shell: agent-tui mcp login docs)" in refused.err

    signed = cli.run("mcp", "login", "docs")
    assert signed.code == 0, signed.err
    assert signed.out.startswith(f"{server.url}/authorize?") and signed.out.count("\n") == 1
    assert "Signed in to docs. The token is kept in" in signed.err

    ran = cli.run("-p", "go", "-m", "demo", "--allow", "mcp(docs.*)", "--output-format", "stream-json")
    assert ran.code == 0 and '"23"' in ran.out and "Bearer [secret]" in ran.out, ran.err
    exported = cli.run("export", cli.newest())
    secrets = [*server.given]
    assert secrets and not any(secret in text for secret in secrets for text in (ran.out, ran.err, exported.out))
    for file in cli.home.rglob("*"):
        if file.is_file() and file.name != "mcp-tokens.json":
            found = file.read_bytes()
            assert not any(secret.encode() in found for secret in secrets), file

    out = cli.run("mcp", "logout", "docs")
    assert out.code == 0 and out.error == "Signed out of docs: its token is revoked and forgotten."
    assert cli.run("mcp", "logout", "docs").error == "You are not signed in to docs."
    assert cli.run("-p", "go", "-m", "demo").code == 57


def test_a_sign_in_that_is_refused_is_one_line(cli: Cli, server: OAuthServer) -> None:
    server.denies = True
    refused = cli.run("mcp", "login", "docs")
    assert refused.code == 1
    assert refused.err.splitlines()[-1] == "agent-tui: MCP server docs: the sign-in was refused: You said no."


@pytest.mark.forms(1)
@pytest.mark.parametrize("wild", ["\n\x1b]0;", "\u20ac"])
def test_a_token_that_is_none_is_not_repeated(cli: Cli, server: OAuthServer, wild: str) -> None:
    server.wild = wild
    refused = cli.run("mcp", "login", "docs")
    assert refused.err.splitlines()[-1] == "agent-tui: MCP server docs: what it gave is no token."
    parts = [word for token in server.given for word in token.split("-")[1:] if len(word) > 8]
    written = [refused.out, refused.err, *(f.read_text("utf-8", "replace") for f in cli.home.rglob("*") if f.is_file())]
    assert parts and not any(part in text for part in parts for text in written)


def test_servers_that_are_not_there_are_one_line(cli: Cli, server: OAuthServer) -> None:
    cli.refused(2, "mcp", "login", "dogs", words="There is no MCP server dogs. There are: docs.")
    (cli.project / ".mcp.json").write_text('{"mcpServers": {"theirs": {"url": "https://example.com/mcp"}}}')
    cli.refused(2, "mcp", "login", "theirs", words="The MCP server theirs is untrusted")
