"""A program that is killed in the middle of an edit: while a model writes, while it is stored, right after."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from agent_tui.models.requests import ModelRequest, StreamItem
from agent_tui.providers.demo import DemoProvider
from agent_tui.store.steps import Compactions
from tests.support.agents import parts_for, running, say

TURNS = 4


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Killed(DemoProvider):
    """Dies at the first words of a summary."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async for item in super().stream(request):
            if request.kind == "compaction":
                die()
            yield item


async def main(folder: Path, edit: str, moment: str) -> None:
    kind = Killed if moment == "asked" else DemoProvider
    async with running(parts_for(folder / "home", folder / "p", provider=lambda counter: kind(counter, pace=0.0))) as (
        agent,
        _,
    ):
        for number in range(TURNS):
            await say(agent, f"read notes.txt, please ({number})")
        path = agent.conversation.path
        (folder / "session").write_text(agent.conversation.info.id)
        commit, insert = Compactions.commit, Compactions.insert

        def stored(self: Compactions, *values: Any) -> None:
            commit(self, *values)
            die()

        def storing(self: Compactions, *values: Any) -> None:
            insert(self, *values)
            die()

        if moment == "stored":
            Compactions.commit = stored  # type: ignore[assignment, method-assign]
        elif moment == "storing":
            Compactions.insert = storing  # type: ignore[assignment, method-assign]
        if edit == "drop":
            await agent.edits.drop([path[1].id])
        else:
            await agent.edits.fold(path[0].id, path[7].id)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
