"""Small helpers: whatever they do, they end, and how is said."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.children.bounded import BoundedEnd, Buffer, run_bounded
from agent_tui.tools.sandbox.policy import Launch, free
from agent_tui.tools.sandbox.processes import descendants
from tests.support.every import every

pytestmark = pytest.mark.quick


def shell(line: str) -> Launch:
    return free(["/bin/sh", "-c", line], {"PATH": os.defpath})


@every(
    ("line", "end", "said", "complained"),
    [
        ("cat; echo no >&2; exit 3", BoundedEnd("", 3), "given", "no\n"),
        ("sleep 100", BoundedEnd("time"), "", ""),
        ("while :; do echo more; done", BoundedEnd("room"), None, ""),
        ("while :; do echo more >&2; done", BoundedEnd("room"), "", None),
        ("echo said; sleep 100 & exit 0", BoundedEnd("", 0), "said\n", ""),
    ],
)
async def test_it_ends_and_says_how(
    tmp_path: Path, line: str, end: BoundedEnd, said: str | None, complained: str | None
) -> None:
    before = set(descendants(os.getpid()))
    output, errors = Buffer(1_000), Buffer(1_000)
    seconds = 0.2 if end.why == "time" else 60
    assert await run_bounded(shell(line), tmp_path, seconds, output.take, errors.take, given=b"given") == end
    assert said in (None, output.text) and complained in (None, errors.text)
    assert set(descendants(os.getpid())) <= before


async def test_nobody_waits_for_what_is_not_wanted_any_more(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def take(data: bytes) -> bool:
        gone.set()
        return True

    end = await run_bounded(shell("echo begun; sleep 100"), tmp_path, None, take, unwanted=gone.wait())
    assert end == BoundedEnd("unwanted")


async def test_what_reads_its_output_may_fail(tmp_path: Path) -> None:
    async def take(data: bytes) -> bool:
        raise ToolError("cannot be read")

    before, opened = set(descendants(os.getpid())), len(os.listdir("/dev/fd"))  # noqa: PTH208
    with pytest.raises(ToolError, match="cannot be read"):
        await run_bounded(shell("echo begun; sleep 100"), tmp_path, 60, take)
    with pytest.raises(ToolError, match="cannot be started"):
        await run_bounded(free(["/no/such/program"], {}), tmp_path, 60, Buffer(10).take)
    await asyncio.sleep(0)
    assert set(descendants(os.getpid())) <= before
    assert len(os.listdir("/dev/fd")) <= opened  # noqa: PTH208
