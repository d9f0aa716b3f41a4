"""Which tools rules name, and what they say when they name none."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import PermissionsConfig
from agent_tui.errors import ConfigError
from agent_tui.models.messages import SEARCH_TOOL
from agent_tui.tools.base import Intent, ServerTool
from agent_tui.tools.builtin.conversation import SkillTool
from agent_tui.tools.mcp_names import CALL, READ, SEARCH, tool_name
from agent_tui.tools.registry import builtin_tools
from agent_tui.tools.rules.rule import KNOWN, checked_rules
from tests.support.cli import REPOSITORY
from tests.support.every import every
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick

PAGE = (REPOSITORY / "docs/permissions.md").read_text("utf-8")


def test_every_tool_there_is_can_be_named() -> None:
    own = {tool.schema.name for tool in builtin_tools()} | {
        *("outside", "network", "mcp", SEARCH_TOOL, SkillTool.schema.name, SEARCH, CALL, READ),
    }
    assert own == KNOWN


@every(
    ("rule", "said"),
    [
        ("bsh(git *)", "did you mean bash?"),
        ("Bash(git *)", "did you mean bash?"),
        ("Edit(src/**)", "did you mean edit?"),
        ("webfetch(docs.python.org)", "did you mean fetch?"),
        ("nosuch(x)", "there are apply_patch, ask, bash, "),
        ("zzz", "there are apply_patch, ask, bash, "),
        ("git*", "names no tool"),
        ("todo(x)", "todo takes no pattern; write `todo`"),
        ("github__push(main)", "takes no pattern; write `github__push`"),
        ("bash(", "must be `tool` or `tool(pattern)`"),
    ],
)
def test_a_rule_that_names_no_tool_is_an_error_with_the_nearest(rule: str, said: str) -> None:
    for key in ("allow", "ask", "deny"):
        with pytest.raises(ConfigError) as caught:
            permissions_of(Path("/p"), PermissionsConfig(**{key: ["bash(ls)", rule]}))  # type: ignore[arg-type]
        line = str(caught.value)
        assert line.startswith(f"permissions.{key}: ") and said in line and "\n" not in line


@every("rule", ["bash", "*", "read(**/.env)", "g*(x)", "mcp__a__b", "a__*", "outside(npm test *)"])
def test_rules_that_name_tools_are_taken(rule: str) -> None:
    assert checked_rules([rule], "x")[0].tool == rule.partition("(")[0]


@every("name", ["github__*", "mcp__github__*", "github__push", "mcp__github__push"])
def test_a_servers_tools_are_named_with_and_without_what_they_begin_with(name: str) -> None:
    tool = tool_name("github", "push")
    for key, action in (("deny", "deny"), ("ask", "ask"), ("allow", "allow")):
        rules = PermissionsConfig("auto" if key != "allow" else "ask", **{key: [name]})
        assert permissions_of(Path("/p"), rules).decide(tool, Intent("mcp", "x")).action == action
    rules = PermissionsConfig("ask", allow=[name])
    assert permissions_of(Path("/p"), rules).decide("mcp__gitlab__push", Intent("mcp", "x")).action == "ask"


def test_what_plan_mode_may_use_are_tools_of_servers() -> None:
    with pytest.raises(ConfigError, match="mcp_read_only: 'bash' names no tool of an MCP server"):
        permissions_of(Path("/p"), PermissionsConfig(mcp_read_only=["bash"]))


def test_a_remembered_rule_for_a_tool_that_is_gone_allows_nothing_and_stops_nothing() -> None:
    permissions = permissions_of(Path("/p"), PermissionsConfig(), remembered=["oldtool(x)"])
    assert permissions.decide("bash", Intent("command", "x", command="x")).action == "ask"


def test_the_examples_of_the_docs_do_what_they_say(tmp_path: Path) -> None:
    blocks = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
    (rules,) = [block["permissions"] for block in blocks if "permissions" in block]
    (tmp_path / "src").mkdir()

    def decide(tool: str, intent: Intent, mode: str = "ask") -> str:
        config = PermissionsConfig(mode, **rules)  # type: ignore[arg-type]
        return permissions_of(tmp_path, config).decide(tool, intent).action

    def bash(command: str, mode: str = "ask") -> str:
        return decide("bash", Intent("command", command, command=command), mode)

    assert (bash("git status -s"), bash("npm test"), bash("npm test --evil")) == ("allow", "allow", "ask")
    assert bash("git push origin main", "auto") == "ask"
    assert decide("edit", Intent("edit", "x", [tmp_path / "src/deep/a.py"])) == "allow"
    assert decide("edit", Intent("edit", "x", [tmp_path / "a.py"])) == "ask"
    assert decide("fetch", Intent("network", "x", url="https://docs.python.org/3/")) == "allow"
    assert decide("fetch", Intent("network", "x", url="https://example.org/")) == "ask"
    assert decide("read", Intent("read", "x", [tmp_path / "deep/.env"]), "auto") == "deny"
    assert decide(tool_name("github", "push"), Intent("mcp", "x"), "auto") == "deny"
    assert (
        decide(
            tool_name("docs", "search"),
            Intent("mcp", "x", server=ServerTool("docs", "search", only_looks=True)),
            "plan",
        )
        == "allow"
    )
    assert decide(tool_name("other", "search"), Intent("mcp", "x"), "plan") == "deny"


TOOLS = {"github": {"push", "merge_pull_request"}, "my.docs": {"search"}, "late": None}
PUSH, MERGE, SEARCH_DOCS = ("github", "push"), ("github", "merge_pull_request"), ("my.docs", "search")


@every(
    ("written", "meant"),
    [
        ("mcp", [PUSH, MERGE, SEARCH_DOCS]),
        ("mcp(*)", [PUSH, MERGE, SEARCH_DOCS]),
        ("mcp__*", [PUSH, MERGE, SEARCH_DOCS]),
        ("mcp(github)", [PUSH, MERGE]),
        ("mcp(git*)", [PUSH, MERGE]),
        ("mcp(github.*)", [PUSH, MERGE]),
        ("mcp__github", [PUSH, MERGE]),
        ("mcp__github__*", [PUSH, MERGE]),
        ("github__*", [PUSH, MERGE]),
        ("mcp(github.push)", [PUSH]),
        ("mcp__github__push", [PUSH]),
        ("github__push", [PUSH]),
        ("mcp(github.merge_*)", [MERGE]),
        ("mcp(*.search)", [SEARCH_DOCS]),
        ("mcp(my.docs)", [SEARCH_DOCS]),
        ("mcp(my.docs.search)", [SEARCH_DOCS]),
        ("mcp__my.docs__search", [SEARCH_DOCS]),
        ("mcp(git)", []),
        ("mcp(github.pus)", []),
        ("mcp__github_push", []),
        ("mcp__git", []),
    ],
)
@every("which", ["allow", "ask", "deny"])
def test_rules_on_servers_mean_what_they_say(
    tmp_path: Path, written: str, meant: list[tuple[str, str]], which: str
) -> None:
    checked_rules([written], "permissions.allow")
    given: dict[str, Any] = {"allow": ["mcp(*)"], which: [written]}
    permissions = permissions_of(tmp_path, PermissionsConfig("auto", **given))
    for server, tool in (PUSH, MERGE, SEARCH_DOCS):
        intent = Intent("mcp", "call", server=ServerTool(server, tool))
        found = permissions.decide(tool_name(server, tool), intent).action
        named = (server, tool) in meant
        assert found == (which if named else "ask" if which == "allow" else "allow"), (server, tool)


@every(
    ("written", "said"),
    [
        ("mcp(githb)", "no MCP server: did you mean github?"),
        ("mcp__githb__push", "no MCP server: did you mean github?"),
        ("zzz__push", "no MCP server: there is github, my.docs, late"),
        ("mcp(github.pusch)", "no tool of github: did you mean push?"),
        ("mcp__github__zzz", "no tool of github"),
        ("mcp(github)", ""),
        ("mcp(github.*)", ""),
        ("mcp__github", ""),
        ("mcp(late.anything)", ""),
        ("mcp(*)", ""),
        ("mcp", ""),
        ("mcp__*", ""),
        ("bash(ls)", ""),
    ],
)
def test_a_rule_about_nothing_that_exists_is_named(tmp_path: Path, written: str, said: str) -> None:
    rules = permissions_of(tmp_path, PermissionsConfig("ask", deny=[written])).rules
    lines = rules.idle(TOOLS)
    assert (said in lines[0] and written in lines[0]) if said else not lines
    assert rules.waiting(["late"]) == (
        ["the rule mcp(late.anything) waits for late, which is not connected"] if "late" in written else []
    ) or written in ("mcp(*)", "mcp", "mcp__*")
