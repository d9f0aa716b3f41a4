"""A program that is killed while it puts files as they are on another branch: after the first of them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from agent_tui.tools.files import snapshots
from tests.support.agents import parts_for, running
from tests.support.scripts import step

SCRIPT = (
    step(write={"path": "a", "content": "a1"}, write2={"path": "b", "content": "b1"})
    + step("one")
    + step(edit={"path": "a", "edits": [{"old_string": "a1", "new_string": "a2"}]})
    + step("two")
)


def die_after_one(restore: snapshots.FileRestore) -> int:
    others = _restore(restore)
    os.kill(os.getpid(), signal.SIGKILL)
    return others


async def main(folder: Path) -> None:
    async with running(parts_for(folder / "home", folder / "p", script=SCRIPT)) as (agent, _):
        agent.turns.submit("write both")
        await agent.turns.join()
        (folder / "session").write_text(agent.conversation.info.id)
        (folder / "end").write_text(str(agent.conversation.info.head_id))
        snapshots._restore = die_after_one
        await agent.branches.rewind(agent.conversation.path[0].id, restore_files=True)


_restore = snapshots._restore

if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
