"""A tool whose definition a server refuses would fail every request: it is left out, which is told, counted and
remembered until the definition is another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.models.failure import Failure
from agent_tui.models.requests import OfferedTool, ToolSchema
from agent_tui.models.usage import Limits
from agent_tui.providers.client import ModelClient
from agent_tui.providers.refusals import refused_tools
from tests.providers.failures.test_refused_for_ever import CHAT, fine, path_of
from tests.support.agents import say
from tests.support.end_to_end import Product, calls, model
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.loopback import Loopback, Reply, json_reply
from tests.support.tool_context import Tickets

pytestmark = pytest.mark.asyncio(loop_scope="session")

REFUSED_TOOLS: list[tuple[str, str, list[str]]] = [
    # who says it, its words, the tools it means
    (
        "OpenAI",
        "Invalid schema for function 'find_all': In context=('properties', 'read'), array schema missing items.",
        ["find_all"],
    ),
    ("OpenAI, by place", "Invalid 'tools[2].function.name': string does not match pattern.", ["find_all"]),
    (
        "Anthropic",
        "tools.3.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
        ["look.up"],
    ),
    (
        "Gemini",
        "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties: should be non-empty for "
        "OBJECT type\n* GenerateContentRequest.tools[0].function_declarations[3].parameters.properties[a].items: "
        "missing field.",
        ["find_all", "look.up"],
    ),
    (
        "Vertex",
        "Unable to submit request because `look.up` functionDeclaration `parameters.a` schema didn't specify the "
        "schema type field.",
        ["look.up"],
    ),
    ("vLLM", "[{'type': 'missing', 'loc': ('body', 'tools', 2, 'function'), 'msg': 'Field required'}]", ["find_all"]),
    (
        "llama.cpp",
        'JSON schema conversion failed:\nUnrecognized schema: {"not": {"type": "string"}}',
        ["look.up"],
    ),
    ("llama.cpp now", "Failed to initialize samplers: failed to parse grammar", ["find_all", "look.up"]),
    (
        "Ollama",
        "json: cannot unmarshal array into Go struct field ChatRequest.tools.function.parameters.properties.type of "
        "type string",
        ["find_all", "look.up"],
    ),
    ("a parameter", "temperature: must be below 2. See the tools.", []),
    ("a marker", "tools.2.cache_control.ttl: must not come after a shorter one", []),
    ("a call", "tool call validation failed: parameters for tool read did not match schema (tool_use_failed)", []),
    ("a call's place", "messages.3.content.1.tool_use.name: String should match pattern", []),
]


@every(("who", "words", "meant"), REFUSED_TOOLS)
async def test_a_refusal_names_tools_by_place_by_name_or_by_what_it_quotes(
    who: str, words: str, meant: list[str]
) -> None:
    tools = [
        ToolSchema("read", "", {"type": "object", "properties": {"path": {"type": "string"}}}),
        ToolSchema("edit", "", {"type": "object", "properties": {"path": {"type": "string"}}}),
        ToolSchema("find_all", "", {"type": "object", "properties": {"read": {"type": "array"}}}),
        ToolSchema("look.up", "", {"type": "object", "properties": {"a": {"not": {"type": "string"}}}}),
    ]
    found = refused_tools(Failure("invalid_request", "It refused.", words, 400), tools, ["find_all", "look.up"])
    assert found == meant


BAD_TOOLS = {
    "openai/local": (
        400,
        "Invalid schema for function 'NAME': In context=('properties',), array schema missing items.",
    ),
    "anthropic/claude-sonnet-4-6": (400, "tools.PLACE.custom.input_schema: JSON schema is invalid."),
    "gemini/gemini-3-flash": (400, "* GenerateContentRequest.tools[0].function_declarations[PLACE].parameters: bad"),
    "openai/llama": (500, "JSON schema conversion failed: Unrecognized schema of tool NAME"),
}


def tools_in(body: Any) -> list[str]:
    tools = body["tools"]
    if "functionDeclarations" in tools[0]:
        tools = tools[0]["functionDeclarations"]
    return [tool["name"] if "name" in tool else tool["function"]["name"] for tool in tools]


def refusal(name: str, tool: str, place: int) -> Reply:
    status, words = BAD_TOOLS[name]
    said = words.replace("NAME", tool).replace("PLACE", str(place))
    return json_reply({"error": {"message": said, "type": "invalid_request_error"}}, status=status)


@pytest.mark.forms(1)
@pytest.mark.parametrize("name", one_of(BAD_TOOLS, 2))
async def test_tools_that_a_server_refuses_are_left_out_counted_so_and_remembered(
    name: str, worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    path, prefix = path_of(name)
    product = Product(tmp_path, worker, {"m": model(name, server, prefix, context_window=64_000)})
    server.serve(path, fine(name))
    await product.run("hello")
    offered = tools_in(calls(server)[0].json)
    first = refusal(name, "grep", offered.index("grep"))
    offered.remove("grep")
    server.serve(path, first, refusal(name, "glob", offered.index("glob")), *[fine(name)] * 3)
    summary = await product.run("look")
    assert (product.code, summary["text"]) == (0, "Fine.")
    (line,) = [note["text"] for note in summary["notices"] if note["code"] == "tools_refused"]
    assert "no longer gets grep; it no longer gets glob" in line and "Remembered" in line
    await product.run("and now?")
    sent = [set(tools_in(call.json)) for call in calls(server)[1:]]
    assert [sorted({"grep", "glob"} & one) for one in sent] == [["glob", "grep"], ["glob"], [], []]
    assert "read" in sent[-1]
    counted = tools_counted(await product.context())
    assert "read" in counted and not {"grep", "glob"} & counted, "what is not sent is not counted"
    agent = product.agent()
    await agent.start()
    try:
        assert {row[0] for row in agent.project.tools() if "refuses" in row[2]} == {"grep", "glob"}
        assert await agent.models.forget_limits() == 1
        await say(agent, "once more")
    finally:
        await agent.close()
    assert "grep" in tools_in(calls(server)[-1].json), "what was forgotten is tried again"


def tools_counted(report: dict[str, Any]) -> set[str]:
    def leaves(row: dict[str, Any]) -> Iterator[str]:
        yield row["label"]
        for child in row.get("children", ()):
            yield from leaves(child)

    return {label for row in report["rows"] if row["id"] == "tools" for label in leaves(row)}


async def test_a_tool_is_offered_again_where_something_else_was_wrong(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    first = refusal("openai/local", "grep", 0)
    other = json_reply({"error": {"message": "temperature: must be below 2"}}, status=400)
    server.serve(CHAT, first, other, *[fine("openai")] * 2)
    product = Product(tmp_path, worker, {"m": model("openai/local", server, "/v1")})
    await product.run("look")
    assert (product.code, len(calls(server))) == (1, 2)
    await product.run("again")
    assert ["grep" in tools_in(call.json) for call in calls(server)] == [True, False, True]


@pytest.mark.slow
async def test_a_grammar_that_cannot_be_made_leaves_out_the_tools_of_others_until_they_are_defined_otherwise(
    worker: ModelClient, tmp_path: Path, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "Failed to initialize samplers: failed to parse grammar"
    refused = json_reply({"error": {"code": 400, "message": words, "type": "invalid_request_error"}}, status=400)
    server.serve(CHAT, refused, *[fine("openai")] * 3)
    product = Product(tmp_path, worker, {"m": model("openai/local", server, "/v1", context_window=64_000)})
    tool = Tickets(on=True).offered(Limits())[0].schema
    for description in ("", "", "It is another one now."):
        tickets = Tickets(on=True)
        changed = replace(tool, description=tool.description + description)
        monkeypatch.setattr(tickets, "offered", lambda _, changed=changed: [OfferedTool(changed, "mcp:tickets")])
        agent = product.agent(extra_tools=tickets)
        await agent.start()
        try:
            await say(agent, "look")
        finally:
            await agent.close()
    sent = [tools_in(call.json) for call in calls(server)]
    assert [tool.name in one for one in sent] == [True, False, False, True] and all("read" in one for one in sent)
