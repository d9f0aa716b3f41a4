from __future__ import annotations

import dataclasses
import json

import pytest

from agent_tui.models.messages import JSON
from agent_tui.models.session import SessionState
from agent_tui.store.rows import dump_state, load_state
from tests.support.every import every

pytestmark = pytest.mark.quick

FULL = SessionState(
    pinned=("/p/notes.md", "/p/\ud800"),
    pinned_messages=("msg_1", "msg_2"),
    drops_waiting={"msg_3": 3.5, "msg_4#1": 4.0},
    compaction_failures=3,
    compaction_paused=True,
    compaction_off=True,
    thinking="high",
    environment="Linux\x00",
    budget={"session": 5.0, "tokens": None},
    back="msg_1",
    going="msg_2",
    named_hosts=("example.org",),
    read_outside=("/etc/hosts", "/p/\ud800"),
    handed_from="ses_1",
    handed_to=("ses_2", "ses_3"),
    newer={"later": {"x": [1]}},
)

WRONG: dict[str, list[JSON]] = {
    "pinned": [None, "/p", 1, {}, ["/p", 1]],
    "pinned_messages": [None, "msg_1", 1, {}, ["msg_1", 1]],
    "drops_waiting": [None, "msg_1", 1, ["msg_1"], {"msg_1": -1.0}, {"msg_1": "now"}],
    "compaction_failures": [None, -1, 1.5, "3", True, []],
    "compaction_paused": [None, 0, "true", []],
    "compaction_off": [None, 1, "", {}],
    "thinking": ["most", 1, True, ["high"]],
    "environment": [1, False, ["Linux"], {}],
    "budget": [None, [], {"week": 1.0}, {"day": -1}, {"day": True}, {"day": "5"}, {"turn": 0}],
    "back": [1, False, ["msg"], {}],
    "going": [1, False, ["msg"], {}],
    "named_hosts": [None, "example.org", 1, {}, ["example.org", 1]],
    "read_outside": [None, "/etc/hosts", 1, {}, ["/etc/hosts", None]],
    "handed_from": [1, False, ["ses"], {}],
    "handed_to": [None, "ses", {}, [1]],
}


def test_every_field_is_stored_under_its_name() -> None:
    stored = json.loads(json.dumps(dump_state(FULL)))
    names = {f.name for f in dataclasses.fields(SessionState)} - {"newer"}
    assert set(stored) == {*names, "later"}
    assert names == set(WRONG)
    assert load_state(stored) == (FULL, ())
    assert all(getattr(FULL, name) != getattr(SessionState(), name) for name in names)


@every("name", WRONG)
def test_a_value_of_another_type_costs_its_field_alone(name: str) -> None:
    stored = json.loads(json.dumps(dump_state(FULL)))
    for value in WRONG[name]:
        found, lost = load_state({**stored, name: value})
        assert lost == (name,), value
        assert found == dataclasses.replace(FULL, **{name: getattr(SessionState(), name)}), value


@every("data", [None, [], "x", 1, [{}]])
def test_what_is_no_object_is_a_lost_state(data: JSON) -> None:
    assert load_state(data) == (SessionState(), ("state",))


def test_keys_that_older_versions_did_not_have_are_no_damage() -> None:
    assert load_state({}) == (SessionState(), ())
    assert load_state({"pinned": ["/p"]}) == (SessionState(pinned=("/p",)), ())
