"""Names and ids of calls in the form an API takes: the same each time, and nobody's but theirs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.models.messages import Message, TextPart, ToolCallPart, ToolResultPart
from agent_tui.models.requests import Delta, ModelSpec, ToolSchema
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.dialects.conversation import NAME_FORMS, ToolNames
from agent_tui.providers.dialects.record import ToolNames as NameForm
from agent_tui.providers.request import build_call
from tests.support import recorded, wire
from tests.support.every import every
from tests.support.hostile_histories import IDS, NAMES, called
from tests.support.loopback import Reply, sse

pytestmark = pytest.mark.quick

FORMS: list[NameForm] = ["plain", "google", "cohere"]
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


@every(
    ("name", "form", "sent"),
    [
        ("functions.bash", "plain", "functions_bash_9c38ac5c3509"),
        ("bash<|channel|>commentary", "plain", "bash_channel_commentary_aa5be9def789"),
        ("", "plain", "tool_8435cce15afc"),
        ("1st", "google", "tool_1st_"),
        ("mcp__my-server__get", "cohere", "mcp__my_server__get_"),
        ("mcp__my-server__get", "plain", "mcp__my-server__get"),
        ("commentary", "plain", "commentary"),
    ],
)
def test_a_name_is_sent_in_a_form_that_is_taken_the_same_in_every_process(name: str, form: NameForm, sent: str) -> None:
    assert ToolNames(form=form).sent(name).startswith(sent) and ToolNames(form=form).sent(name) == ToolNames(
        ["read", "bash"], form
    ).sent(name)


@pytest.mark.parametrize("form", FORMS)
@given(
    offered=st.lists(st.sampled_from(NAMES) | st.text(max_size=70), unique=True, max_size=8),
    invented=st.lists(st.sampled_from(NAMES) | st.text(max_size=70), max_size=8),
)
def test_no_two_tools_have_one_name(form: NameForm, offered: list[str], invented: list[str]) -> None:
    names = ToolNames(offered, form)
    sent = {name: names.sent(name) for name in (*offered, *invented)}
    assert len({*sent.values()}) == len(sent) and all(NAME_FORMS[form].fullmatch(one) for one in sent.values())
    assert all(sent[name] == name for name in offered if NAME_FORMS[form].fullmatch(name))
    assert {names.replaced.get(one, one): one for one in sent.values()} == sent


def test_a_tool_that_has_the_name_made_of_anothers_keeps_it() -> None:
    made = ToolNames().sent("my tool")
    names = ToolNames(["my tool", made])
    assert names.sent(made) == made and names.sent("my tool") not in (made, "my tool")


def test_a_call_by_the_name_that_was_sent_is_a_call_of_the_tool() -> None:
    spec = wire.spec("cohere_chat/command-a-03-2025")
    tool = ToolSchema("mcp__my-server__get", "", EMPTY)
    request = recorded.request_for(spec, [wire.user("u", "go")], tools=[tool])
    info = recorded.info_for(spec)
    names = build_call(request, info).renamed
    ((sent, real),) = names.items()
    assert real == tool.name and re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", sent)
    calls = [{"index": n, "id": f"c{n}", "function": {"name": name}} for n, name in enumerate([sent, "read"])]
    delta = {"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    answer = recorded.stream(request, info, Reply(sse([delta])), via="auto")
    assert [item.name for item in answer.items if isinstance(item, Delta) and item.name] == [tool.name, "read"]


@pytest.mark.parametrize("model", ["openai/gpt-5", "anthropic/claude-sonnet-4-5", "mistral/mistral-large-latest"])
def test_what_was_sent_of_a_conversation_stays_as_it_grows(model: str) -> None:
    spec = ModelSpec("m", model, api="chat")
    history = called(*((call_id, name, "{}") for call_id, name in zip(IDS, NAMES, strict=False)))[:-1]
    more = [replace(message, id=f"{message.id}.2") for message in history]

    def messages(items: list[Message]) -> list[Any]:
        sent: list[Any] = wire.for_litellm(recorded.request_for(spec, items), recorded.info_for(spec))["messages"]
        for message in sent:
            message.pop("cache_control", None)
            for block in message["content"] if isinstance(message["content"], list) else ():
                block.pop("cache_control", None)
        return sent

    before = messages(history)
    assert messages([*history, *more])[: len(before)] == before
    assert messages(history) == before


def test_ids_of_its_own_go_back_as_they_came_where_any_are_taken() -> None:
    kimi = ModelSpec("m", "moonshot/kimi-k2.5", api="chat")
    own, stranger = wire.origin(resolve_target(kimi)), wire.origin(resolve_target(wire.spec("zai/glm-4.7")))
    for origin, kept in ((own, True), (stranger, False)):
        answer = Message("a", "assistant", [TextPart("I do."), ToolCallPart("functions.read:0", "read", "{}")])
        answer.origin = origin
        result = Message("r", "tool", [ToolResultPart("functions.read:0", "read", "done")])
        items = [wire.user("u", "go"), answer, result]
        sent = wire.for_litellm(recorded.request_for(kimi, items), recorded.info_for(kimi))["messages"]
        assert (sent[-1]["tool_call_id"] == "functions.read:0") is kept
        assert sent[-1]["tool_call_id"] == sent[-2]["tool_calls"][0]["id"]


def test_ids_that_begin_alike_and_ids_that_come_again_are_told_apart() -> None:
    spec = ModelSpec("m", "openai/gpt-5", api="chat")
    long = [f"{'a' * 90}{n}" for n in range(3)]
    twice = [("call_0", "read", "{}"), ("call_0", "read", "{}"), ("", "read", "{}"), ("", "read", "{}")]
    history = called(*((one, "read", "{}") for one in long), *twice)
    sent = wire.for_litellm(recorded.request_for(spec, history), recorded.info_for(spec))["messages"]
    calls = next(m["tool_calls"] for m in sent if m.get("tool_calls"))
    ids = [call["id"] for call in calls]
    assert len({*ids}) == len(ids) == 7 and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", one) for one in ids)
    assert ids == [m["tool_call_id"] for m in sent if m["role"] == "tool"]
