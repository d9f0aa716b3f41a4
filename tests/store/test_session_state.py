from __future__ import annotations

import dataclasses
import json

import pytest

from agent_tui.models.codec import dumps
from agent_tui.models.messages import JSON
from agent_tui.models.session import AskedCompaction, SessionInfo, SessionState
from agent_tui.store.database import UNREADABLE
from agent_tui.store.rows import COLUMNS, row_of, session_of
from tests.support.every import every

pytestmark = pytest.mark.quick

FULL = SessionState(
    pinned=("/p/notes.md", "/p/\ud800"),
    pinned_messages=("msg_1", "msg_2"),
    drops_waiting={"msg_3": 3.5, "msg_4#1": 4.0},
    agent_drops=("msg_3",),
    agent_asked=(AskedCompaction("msg_3", 4.5, "the numbers", ("msg_1", "msg_2"), "Read.", "it is too long"),),
    compaction_failures=3,
    compaction_paused=True,
    compaction_off=True,
    compaction_near=True,
    thinking="high",
    environment="Linux\x00",
    budget={"session": 5.0, "day": None},
    back="msg_1",
    going="msg_2",
    named_hosts=("example.org",),
    read_outside=("/etc/hosts", "/p/\ud800"),
    handed_from="ses_1",
    handed_to=("ses_2", "ses_3"),
)

WRONG: dict[str, list[JSON]] = {
    "pinned": [None, 1, True, ["/p", 1]],
    "drops_waiting": [None, "msg_1", 1, {"msg_1": "now"}],
    "agent_drops": [None, 1, True, ["msg_1", 1]],
    "agent_asked": [None, 1, ["msg_1"], [{"after": 1, "asked": 4.5}], [{"after": "msg_1", "asked": 4.5, "fold": [1]}]],
    "compaction_failures": [None, 1.5, "3", []],
    "compaction_off": [None, 1, "", {}],
    "thinking": ["most", 1, True, ["high"]],
    "environment": [1, False, ["Linux"], {}],
    "budget": [None, [], {"day": "5"}],
    "handed_to": [None, [1]],
}


def session(state: str) -> SessionInfo:
    row = dict(zip(COLUMNS.split(", "), row_of(SessionInfo("ses_1", "/p", state=FULL)), strict=True))
    return session_of(list({**row, "state": state}.values()))


def test_every_field_is_stored_under_its_name() -> None:
    stored = json.loads(dumps(FULL))
    names = {f.name for f in dataclasses.fields(SessionState)}
    assert set(stored) == names
    assert all(getattr(FULL, name) != getattr(SessionState(), name) for name in names)
    assert session(json.dumps(stored)).state == FULL


@every("name", WRONG)
def test_a_value_of_another_type_is_damage(name: str) -> None:
    stored = json.loads(dumps(FULL))
    for value in WRONG[name]:
        with pytest.raises(UNREADABLE):
            session(json.dumps({**stored, name: value}))


@every("data", ["null", "[]", '"x"', "1", "{", "\u00e9", '{"pinned": ["/p\u00e9"]}'])
def test_what_is_no_object_in_ascii_is_damage(data: str) -> None:
    with pytest.raises(UNREADABLE):
        session(data)


def test_what_is_not_stored_is_as_in_a_new_session() -> None:
    assert session("{}").state == SessionState()
    assert session('{"pinned": ["/p"], "gone": 1}').state == SessionState(pinned=("/p",))
