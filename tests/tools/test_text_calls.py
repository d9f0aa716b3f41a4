"""Calls that a model wrote as text: found in every notation, with the words around them; examples are none."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.tools.text_calls import TextCall, WrittenCalls, find_text_calls
from tests.support.every import every

pytestmark = pytest.mark.quick

NAMES = {"read", "bash", "mcp__docs__find"}
READ = TextCall("read", '{"path": "a.py"}')
CALL = '{"name": "read", "arguments": {"path": "a.py"}}'


def is_tool(name: str) -> bool:
    return name in NAMES


@every(
    "text",
    [
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        f"<function_call>{CALL}</function_call>",
        f"<tool_call>{CALL}}}</tool_call>",
        "<tool_call>{'name': 'read', 'arguments': {'path': 'a.py'}}</tool_call>",
        '<tool_call>{"name": "read", "arguments": "{\\"path\\": \\"a.py\\"}"}</tool_call>',
        '<tool_call>{"name": "functions.read", "parameters": {"path": "a.py"}}</tool_call>',
        f"[TOOL_CALLS] [{CALL}]",
        '[TOOL_CALLS]read[ARGS]{"path": "a.py"}',
        '<|python_tag|>{"name": "read", "parameters": {"path": "a.py"}}<|eom_id|>',
        f"<TOOLCALL>[{CALL}]</TOOLCALL>",
        f"functools[{CALL}]",
        "<tool_call>\n<function=read>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
        "<function=read><parameter=path>a.py</parameter></function>",
        '<function_calls>\n<invoke name="read">\n<parameter name="path">a.py</parameter>\n</invoke>\n</function_calls>',
        '<minimax:tool_call><invoke name="read"><parameter name="path">a.py</parameter></invoke></minimax:tool_call>',
        "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n</tool_call>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n"
        '{"path": "a.py"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
        '{"path": "a.py"}<|tool_call_end|><|tool_calls_section_end|>',
        '<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path": "a.py"}<|call|>',
        f"```json\n{CALL}\n```",
        f"```tool_call\n{CALL}\n```\n",
        f"```json\n[{CALL}]\n```",
        CALL,
        f"{CALL}}}",
        '{"function": {"name": "read", "arguments": {"path": "a.py"}}}',
        '{"type": "function", "function": {"name": "read", "arguments": "{\\"path\\": \\"a.py\\"}"}}',
        f'{{"tool_calls": [{CALL}]}}',
        '{"tool": "read", "args": {"path": "a.py"}}',
        'Thought: look.\nAction: read\nAction Input: {"path": "a.py"}',
    ],
)
def test_a_call_is_found_in_every_notation(text: str) -> None:
    found = find_text_calls(text, is_tool)
    assert found is not None and found.calls == (READ,)
    assert [sign for sign in "<{[`" if sign in found.text and not found.text.startswith("Thought")] in ([], ["<"])


def test_words_around_stay_and_several_calls_keep_their_order() -> None:
    second = '{"name": "bash", "arguments": {"command": "ls"}}'
    text = f"I look first.\n<tool_call>{CALL}</tool_call>\n<tool_call>{second}</tool_call>\n"
    found = find_text_calls(text, is_tool)
    assert found is not None and found.text == "I look first."
    assert [call.name for call in found.calls] == ["read", "bash"]
    invented = find_text_calls(
        f"Look.\n<tool_call>{CALL}</tool_call>\n<tool_response>x = 1</tool_response>\nSo x is 1.", is_tool
    )
    assert invented is not None and (invented.calls, invented.text) == ((READ,), "Look.")
    fenced = find_text_calls(f"I read it.\n\n```json\n{CALL}\n```", is_tool)
    assert fenced is not None and fenced.text == "I read it."


@every(
    "text",
    [
        "Nothing to do.",
        f"An example:\n```json\n{CALL}\n```\nThat is how one calls it.",
        f"Write `<tool_call>{CALL}</tool_call>` to call it.",
        f"```xml\n<tool_call>{CALL}</tool_call>\n```\nis the form.",
        '<tool_call>{"name": "nobody", "arguments": {}}</tool_call>',
        '{"name": "agent-tui", "version": "1"}',
        '{"name": "read"}',
        '```json\n{"name": "read", "arguments": "words"}\n```',
        "<tool_call>",
        "<function=read>",
        '{"path": "a.py"}',
        "[1, 2, 3]",
        "[]",
        "{" * 10_000,
        "<tool_call>{" * 3_000,
    ],
)
def test_what_is_no_call_of_a_tool_is_none(text: str) -> None:
    found = find_text_calls(text, is_tool)
    assert found is None or (text == "<function=read>" and found.calls == (TextCall("read", "{}"),))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=3), st.text(alphabet="abc .\n", max_size=40))
def test_arguments_arrive_as_they_were_written(arguments: dict[str, str], before: str) -> None:
    call = json.dumps({"name": "bash", "arguments": arguments})
    found = find_text_calls(f"{before}\n<tool_call>\n{call}\n</tool_call>", is_tool)
    assert found is not None and [json.loads(one.arguments) for one in found.calls] == [arguments]
    assert found.text == before.strip()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([*"<{[`\n", "tool_call>", "</tool_call>", CALL, "```json\n", '"name"', "<function=read>", "x"]),
        max_size=30,
    )
)
def test_no_text_breaks_the_reader(pieces: list[str]) -> None:
    found = find_text_calls("".join(pieces), is_tool)
    assert found is None or all(is_tool(call.name) for call in found.calls)


MARKED = f"<tool_call>{CALL}</tool_call>"
UNENDING = {
    "functions": "".join(f"<function=x{n}>\n" for n in range(12_000)),
    "objects": "".join(f'<tool_call>{{"a{n}\n' for n in range(5_000)),
    "parameters": "<function=read>" + "<parameter=path>" * 12_000,
    "arguments": "<tool_call>read" + "<arg_key>x</arg_key><arg_value>1</arg_value>" * 4_000 + "<",
    "ticks": "`" * 100_000 + "{",
    "spaces": " " * 150_000 + MARKED,
    "calls": MARKED * 3_000,
}


@every("text", UNENDING.values())
def test_a_text_that_never_ends_what_it_begins_is_read_at_once(text: str) -> None:
    begun = time.process_time()
    find_text_calls(text, is_tool)
    assert time.process_time() - begun < 4


def test_a_call_behind_code_that_is_full_of_marks_is_found() -> None:
    found = find_text_calls("```\n" + f"{MARKED}\n" * 500 + "```\n" + MARKED, is_tool)
    assert found is not None and len(found.calls) == 1


def test_a_parameter_may_hold_what_begins_another_call() -> None:
    text = "<function=bash>\n<parameter=content>\n<function=read>\n</parameter>\n</function>"
    assert find_text_calls(text, is_tool) == WrittenCalls((TextCall("bash", '{"content": "<function=read>"}'),), "")
