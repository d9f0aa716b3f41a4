from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest

from agent_tui.config import ToolsConfig
from agent_tui.models.messages import SEARCH_TOOL
from agent_tui.tools.builtin.conversation import SubagentTool
from agent_tui.tools.registry import builtin_tools
from tests.benchmarks.tool_tokens import encoding, tool_tokens
from tests.support.every import every

# o200k tokens; every one is sent with every request.
BUDGETS = {
    "read": 80,
    "write": 55,
    "edit": 110,
    "apply_patch": 75,
    "list": 55,
    "glob": 60,
    "grep": 122,
    "bash": 110,
    "jobs": 65,
    "fetch": 40,
    "todo": 80,
    "subagent": 80,
    "ask": 95,
    "present_plan": 50,
    "recall": 65,
    "context": 140,
}


@pytest.mark.slow
def test_every_schema_keeps_its_budget() -> None:
    counts = tool_tokens()
    if counts is None:
        pytest.skip("no tokenizer can be had")
    assert list(counts) == list(BUDGETS)
    assert {name: tokens for name, tokens in counts.items() if tokens > BUDGETS[name]} == {}
    sent = sum(counts.values())
    assert sent - counts["apply_patch"] <= 1_140 and sent - counts["edit"] <= 1_140, "a model gets one of the two"


SEARCHING = ToolsConfig(web_search="https://search.example/?q={query}")


def test_the_search_is_there_when_it_has_an_endpoint_and_is_short() -> None:
    assert SEARCH_TOOL not in {tool.schema.name for tool in builtin_tools(ToolsConfig(web_search="provider"))}
    (tool,) = (tool for tool in builtin_tools(SEARCHING) if tool.schema.name == SEARCH_TOOL)
    assert (counter := encoding()) is None or len(counter.encode(tool.schema.text)) <= 40


def test_types_of_subagents_cost_little_more_than_their_descriptions() -> None:
    counter = encoding()
    if counter is None:
        pytest.skip("no tokenizer can be had")

    def cost(types: dict[str, str]) -> int:
        return len(counter.encode(SubagentTool(lambda: types).schema.text))

    types = {f"type-{n}": f"Looks after the matters of number {n} and says what it found." for n in range(30)}
    said = len(counter.encode(json.dumps("\n".join(f"{name}: {what}" for name, what in types.items()))))
    assert cost({}) < cost({"explore": "Finds."}) <= cost({}) + 20
    assert cost(types) <= cost({}) + said + 15
    more = types | {f"more-{n}": "Is told by its name alone. " * 20 for n in range(20)}
    assert cost(more) <= cost(types) + 20 * 8, "beyond the first ones only names are told"


@every("tool", builtin_tools(SEARCHING, types=lambda: {"explore": "Finds."}))
def test_the_schema_says_what_the_arguments_are(tool: object) -> None:
    module = sys.modules[type(tool).__module__]
    schema = tool.schema  # type: ignore[attr-defined]
    arguments = getattr(module, f"{schema.name.title().replace('_', '')}Arguments")
    fields = dataclasses.fields(arguments)
    assert list(schema.parameters["properties"]) == [f.name for f in fields]
    needed = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING]
    if schema.name == "edit":  # taken without, in the flat form
        needed.append("edits")
    assert schema.parameters.get("required", []) == needed


def test_tools_load_without_anything_heavy() -> None:
    code = (
        "import sys; from agent_tui.tools.registry import builtin_tools; builtin_tools();"
        "import agent_tui.tools.rules.decision, agent_tui.tools.judge.commands;"
        "print(sorted({'pydantic', 'httpx', 'litellm', 'mcp', 'tiktoken', 'textual', 'http', 'pathspec', 'tree_sitter'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
