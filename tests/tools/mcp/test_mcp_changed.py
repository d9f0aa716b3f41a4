"""With another version of the MCP SDK, in which what is private has other names, servers are connected all the same."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path

import pytest
from mcp.client.auth import OAuthClientProvider

import agent_tui.tools.mcp
from agent_tui.tools.mcp.connection import Connection
from agent_tui.tools.mcp.oauth import Bearer, _Asking
from agent_tui.tools.mcp.protocol import ServerChange
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.mcp_servers import stdio
from tests.support.starting import may_start
from tests.support.waiting import PATIENCE
from tests.tools.mcp.renamed import rename

ROOM = Path(agent_tui.tools.mcp.__file__).parent


@pytest.mark.usefixtures("forked_servers")
@pytest.mark.parametrize("name", one_of(["TextReceiveStream", "jsonrpc_message_adapter", "_dispatcher"]))
async def test_without_a_name_servers_connect_and_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for library in ("mcp", "mcp_types"):
        rename(monkeypatch, library, name)
    told: asyncio.Queue[ServerChange] = asyncio.Queue()
    connection = Connection("one", stdio(), told.put_nowait, may_start(stdio(), tmp_path))
    try:
        async with asyncio.timeout(PATIENCE):
            while (change := await told.get()).state == "starting":
                continue
            assert change.state == "connected" and change.offer is not None and change.offer.tools
            assert (await connection.call("add", {"a": 1, "b": 2}, lambda text: None)).text == "3"
    finally:
        await connection.close()


@pytest.mark.slow
@every("path", sorted(ROOM.glob("*.py")))
def test_nothing_private_to_the_sdk_is_imported_to_run(path: Path) -> None:
    """A name for the type checker alone may be gone."""
    tree = ast.parse(path.read_text("utf-8"))
    types = {id(each) for node in tree.body if isinstance(node, ast.If) for each in ast.walk(node)}
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and id(node) not in types]
    assert not [node.module for node in imported if (node.module or "").startswith("mcp") and "._" in str(node.module)]


@pytest.mark.quick
@every("name", [n for cls in (Bearer, _Asking) for n in vars(cls) if n[1:2] != "_" and n[0] == "_"])
def test_what_is_used_of_the_sdk_is_there(name: str) -> None:
    own = ("_refused", "_usable", "_take_refreshed")
    assert name in own or hasattr(OAuthClientProvider, name), "the SDK calls it otherwise now"
    assert "_auth_flow" in inspect.getsource(OAuthClientProvider.async_auth_flow), "our flow would not be used"
    used = ("_refresh_token", "_handle_refresh_response", "_get_token_endpoint", "_add_auth_header")
    assert [one for one in used if not hasattr(OAuthClientProvider, one)] == []
