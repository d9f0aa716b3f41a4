"""Why no connection came about, in words."""

from __future__ import annotations

import socket

import httpx2
import pytest

from agent_tui.providers.net import unreached
from tests.support.every import every

pytestmark = pytest.mark.quick


@every(
    ("cause", "said"),
    [
        (ConnectionRefusedError(111, "Connect call failed"), "a.example:9 refuses the connection"),
        (ExceptionGroup("", [ConnectionRefusedError(111, "no")]), "a.example:9 refuses the connection"),
        (socket.gaierror(-2, "Name or service not known"), "host not found: a.example:9"),
        (OSError("no route"), "a.example:9 cannot be reached: failed"),
    ],
)
def test_a_host_that_is_not_reached(cause: Exception, said: str) -> None:
    error = httpx2.ConnectError("failed")
    error.__cause__ = OSError("All connection attempts failed")
    error.__cause__.__cause__ = cause
    assert unreached("https://user:word@a.example:9/mcp", error) == said
