from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

import pytest

from agent_tui.errors import SessionBusyError
from agent_tui.models.messages import ReasoningPart, TextPart
from agent_tui.store.store import Store
from tests.store.store_child import mark
from tests.support.forms import examples

CHILD = Path(__file__).with_name("store_child.py")
KILLS = examples(10, 40)


def child(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Acknowledged(TypedDict):
    id: str
    status: str
    texts: list[list[int]]


def check(path: Path, session_id: str, acknowledged: dict[str, Acknowledged]) -> None:
    """The session reopens, is consistent, and holds at least what its writer said was stored."""
    with Store.open(path) as store, store.locks.take(session_id):
        store.recover(session_id)
        messages, info, steps = (
            store.messages.all(session_id),
            store.sessions.get(session_id),
            store.steps.all(session_id),
        )
        conversation = store.messages.path(session_id, info.head_id)
    assert info.messages == len(messages) == len(conversation)
    assert {step.status for step in steps} <= {"complete", "stopped"}
    for message_id, said in acknowledged.items():
        message = messages[message_id]
        texts = [p.text for p in message.parts if isinstance(p, (TextPart, ReasoningPart))]
        if said["status"] == "complete":
            assert (message.status, [mark(text) for text in texts]) == ("complete", said["texts"])
        else:
            assert message.status in ("stopped", "complete")
            assert len(texts) >= len(said["texts"])
            assert [mark(text[:length]) for text, (length, _) in zip(texts, said["texts"], strict=False)] == said[
                "texts"
            ]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    rng = random.Random(20)
    with Store.open(path) as store:
        session_id = store.sessions.create("/p", "demo").id
    acknowledged: dict[str, Acknowledged] = {}
    for _ in range(KILLS):
        process = child(path, session_id)
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(rng.randint(1, 60)):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said: Acknowledged = json.loads(line)
            acknowledged[said["id"]] = said
        process.kill()
        for line in process.stdout.readlines():
            if line.endswith("\n"):
                said = json.loads(line)
                acknowledged[said["id"]] = said
        process.communicate()
        check(path, session_id, acknowledged)
    with Store.open(path) as store:
        assert store.database.one("PRAGMA integrity_check") == ("ok",)
    assert len(acknowledged) > KILLS


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        session_id = store.sessions.create("/p", "demo").id
        process = child(path, session_id, "hold")
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(SessionBusyError, match=f"process {process.pid}" if os.name == "posix" else "open in"):
            store.locks.take(session_id)
        with pytest.raises(SessionBusyError):
            store.delete(session_id)
        assert store.messages.all(session_id) == {} and store.locks.in_use(session_id)
        process.kill()
        process.communicate()
        assert not store.locks.in_use(session_id)
        store.locks.take(session_id).release()


@pytest.mark.slow
def test_processes_may_create_and_write_the_same_database_at_once(tmp_path: Path) -> None:
    path = tmp_path / "data" / "sessions.db"
    processes = [child(path, f"/p{n}", "create", 40) for n in range(3)]
    ids: list[str] = []
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        ids += out.split()
    with Store.open(path) as store:
        assert {info.id for info in store.sessions.all()} == set(ids)
        assert [len(store.sessions.all(f"/p{n}", empty=False)) for n in range(3)] == [40, 40, 40]
