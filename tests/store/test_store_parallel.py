"""Many programs at once that store large messages: each waits for the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.bootstrap import make_agent
from agent_tui.options import Options
from agent_tui.store.store import Store

pytestmark = pytest.mark.quick

WRITERS = 8
WRITER = """
import sys
from pathlib import Path
from agent_tui.models.messages import user_message
from agent_tui.store.store import UNSEEN_TIMEOUT, Store
sys.stdin.readline()
with Store.open(Path(sys.argv[1]), UNSEEN_TIMEOUT, UNSEEN_TIMEOUT) as store:
    session = store.sessions.create("/p", "demo").id
    for number in range(4):
        store.messages.add(session, user_message("x" * 4_000_000))
"""


@pytest.mark.slow
def test_large_messages_of_many_programs_are_all_stored(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    for writer in writers:
        _, said = writer.communicate()
        assert writer.returncode == 0, said.decode()
    with Store.open(path) as store:
        assert [len(store.messages.all(info.id)) for info in store.sessions.all()] == [4] * WRITERS


@pytest.mark.parametrize("ephemeral", [True, False])
async def test_a_run_without_a_screen_waits_for_others_far_longer_than_a_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ephemeral: bool
) -> None:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path))

    async def waits(options: Options) -> float:
        agent = await make_agent(options)
        try:
            return float(agent.parts.store.database.one("PRAGMA busy_timeout")[0]) / 1_000
        finally:
            await agent.close()

    chat = await waits(Options(model="demo", ephemeral=ephemeral))
    script = await waits(Options(model="demo", headless=True, can_ask=False, ephemeral=ephemeral))
    assert chat < 1 and script > 60
