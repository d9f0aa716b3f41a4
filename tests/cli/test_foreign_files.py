"""What a project brings for other agents: commands with shell commands in them, skills, and types of subagents."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent_tui import Session
from agent_tui.commands import registry
from agent_tui.commands.info import Info
from tests.support.cli import Cli, answers, came


@pytest.fixture
def project(cli: Cli) -> Cli:
    commands, skill = cli.project / ".claude" / "commands", cli.project / ".claude" / "skills" / "ship"
    commands.mkdir(parents=True)
    skill.mkdir(parents=True)
    (commands / "look.md").write_text("---\nmodel: opus\n---\nIt says !`echo so $((1+1))` of $1")
    (commands / "make.md").write_text("Made !`touch made`")
    (skill / "SKILL.md").write_text("---\ndescription: Ships it\n---\nShip with care.")
    return cli


def test_what_a_command_says_is_sent(project: Cli) -> None:
    project.script(came("It says so 2\\n?.* of x"))
    run = project.run("-p", "/look x", "-m", "demo", "--trust")
    assert (run.code, run.out) == (0, "Came.\n")


def test_a_command_of_a_folder_has_the_name_it_has_elsewhere_too(project: Cli) -> None:
    (project.project / ".claude/commands/dev").mkdir()
    (project.project / ".claude/commands/dev/review.md").write_text("Look hard at $1")
    for name in ("dev/review", "dev:review"):
        project.script(came("Look hard at a.py"))
        assert project.run("-p", f"/{name} a.py", "-m", "demo", "--trust").out == "Came.\n"


def test_what_may_not_run_is_not_sent(project: Cli) -> None:
    project.script(answers("Never."))
    run = project.run("-p", "/make", "-m", "demo", "--trust", "--deny", "bash(touch *)")
    assert (run.code, run.out) == (1, "") and run.err.endswith("Not sent: `touch made` in it may not run.\n")
    assert not (project.project / "made").exists()


@pytest.mark.quick
def test_a_skill_is_a_command_and_all_need_trust(project: Cli) -> None:
    project.script(came("Ship with care"))
    project.refused(2, "-p", "/ship", "-m", "demo", words="Unknown command /ship")
    assert project.run("-p", "/ship", "-m", "demo", "--trust").out == "Came.\n"


@pytest.mark.slow
def test_the_check_lists_what_was_found_and_what_of_it_means_nothing(project: Cli) -> None:
    project.run("-p", "hi", "-m", "demo", "--trust")
    lines = project.run("doctor").out.splitlines()
    assert any(".claude/commands" in line and "2 commands; not used: model (1)" in line for line in lines)
    assert any(".claude/skills" in line and "1 skill" in line for line in lines)


AGENT = """---
name: reviewer
description: Use this agent to review. Examples:\\n\\n<example>Long talk</example>
tools: Read, Grep, SlashCommand
model: sonnet
color: blue
---
You review."""


@pytest.mark.slow
def test_types_of_subagents_are_told_to_the_model_listed_and_copied(project: Cli) -> None:
    folder = project.project / ".claude" / "agents"
    folder.mkdir()
    (folder / "reviewer.md").write_text(AGENT)
    (folder / "broken.md").write_text("---\nname: x\n")
    call = '{ name = "subagent", arguments = { description = "x", prompt = "y", subagent_type = "reviewer" } }'
    project.script(f"[[step]]\ntool_calls = [{call}]\n" + answers("Fine.") + answers("Done."))
    before = project.run("-p", "go", "-m", "demo", "--output-format", "stream-json")
    assert "no argument type" in next(one["text"] for one in before.lines if one["type"] == "tool_result")
    run = project.run("-p", "go", "-m", "demo", "--trust", "--output-format", "stream-json")
    assert run.code == 0 and "no argument" not in run.out and "works with demo, not sonnet" in run.out
    numbers = json.loads(project.run("context", "--json").out)
    (used,) = numbers["session"]["subagents"]
    assert (used["type"], used["task"], used["calls"], used["running"]) == ("reviewer", "x", 1, False)
    assert used["context_tokens"] > 0 and used["window"] > 0
    assert "Subagents    1, $0: reviewer: x · " in project.run("context").out
    lines = project.run("doctor").out.splitlines()
    assert any(
        ".claude/agents" in one and "1 subagent type; not used: color (1), tool SlashCommand (1)" in one
        for one in lines
    )
    assert any("not used" in one and "broken.md: line 1" in one for one in lines)
    assert project.run("import", "--yes").code == 0
    assert (project.project / ".agent-tui" / "agents" / "reviewer.md").read_text() == AGENT


SETTINGS = """{
  "permissions": {
    "allow": ["Bash(touch:*)", "NotebookEdit"],
    "deny": ["Read(./secrets/**)", "Bash(curl:*)"],
    "defaultMode": "acceptEdits"
  },
  "env": {"A": "b"}
}"""


def test_rules_of_other_agents_narrow_at_once_and_widen_only_when_taken(project: Cli) -> None:
    (project.project / ".claude" / "settings.json").write_text(SETTINGS)
    (project.project / ".claude" / "settings.local.json").write_text("{nonsense")
    project.script(
        '[[step]]\ntool_calls = [{ name = "bash", arguments = { command = "curl x" } }, '
        '{ name = "bash", arguments = { command = "touch made" } }]\n' + answers("Done.")
    )
    run = project.run("-p", "go", "-m", "demo", "--trust", "--output-format", "stream-json")
    results = [entry["text"] for entry in run.lines if entry["type"] == "tool_result"]
    assert "a rule of the user denies" in results[0]
    assert len(results) == 2 and not (project.project / "made").exists()
    lines = project.run("doctor").out
    assert ".claude/settings.json: allow NotebookEdit" in lines
    assert ".claude/settings.json: env, permissions.defaultMode" in lines
    assert ".claude/settings.local.json: cannot be read" in lines


@pytest.mark.slow
def test_import_copies_for_good_and_keeps_what_is_there(project: Cli) -> None:
    (project.project / ".claude" / "settings.json").write_text(SETTINGS)
    ours = project.project / ".agent-tui" / "commands"
    ours.mkdir(parents=True)
    (ours / "make.md").write_text("ours")
    (project.project / ".claude" / "commands" / "out.md").symlink_to("/etc/hostname")
    dry = project.run("import", "--dry-run")
    assert ".claude/commands/look.md -> .agent-tui/commands/look.md" in dry.out
    assert "make.md -> .agent-tui/commands/make.md  (is there already, kept)" in dry.out
    assert (
        ".claude/settings.json -> rules that allow in this project: bash(touch *)\n" in dry.out
        and not (ours / "look.md").exists()
    )
    done = project.run("import", "--yes")
    assert done.code == 0 and "not copied" in done.err and "Imported 2 files and 3 rules." in done.err
    assert (ours / "make.md").read_text() == "ours" and (ours / "look.md").is_file()
    assert (project.project / ".agents" / "skills" / "ship" / "SKILL.md").is_file()
    project.script(
        '[[step]]\ntool_calls = [{ name = "bash", arguments = { command = "touch made" } }]\n' + answers("Done.")
    )
    assert project.run("-p", "go", "-m", "demo").code == 0
    assert (project.project / "made").exists()


async def test_what_a_folder_denies_holds_from_the_moment_it_is_trusted_and_is_shown_before(project: Cli) -> None:
    (project.project / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Read(./.env)"]}}')
    (project.project / ".agent-tui").mkdir()
    (project.project / ".agent-tui" / "config.toml").write_text('[permissions]\ndeny = ["read(./key.txt)"]\n')
    for name in (".env", "key.txt", "open.txt"):
        (project.project / name).write_text("words")
    call = '[[step]]\ntool_calls = [{ name = "read", arguments = { path = "%s" } }]\n' + answers("Done.")
    project.script("".join(call % name for name in (".env", "key.txt", "open.txt")))
    async with Session(project.project, "demo") as session:
        shown = await registry.run(session.agent, "/trust")
        assert isinstance(shown, Info) and session.agent.project.trust_state == "never"
        assert ".claude/settings.json" in str(shown.sections)
        await registry.run(session.agent, "/trust yes")
        for _ in range(3):
            async for _event in session.send("look"):
                pass
        results = [m.tool_result.text for m in session.agent.conversation.path if m.tool_result is not None]
    assert ["words" in result for result in results] == [False, False, True]


def test_import_writes_over_no_link_and_copies_what_a_skill_has_and_no_more(project: Cli, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    ship = project.project / ".claude" / "skills" / "ship"
    (ship / "run.sh").write_text("#!/bin/sh\n")
    (ship / "run.sh").chmod(0o755)
    ours = project.project / ".agent-tui" / "commands"
    ours.parent.mkdir()
    ours.symlink_to(outside)
    refused = project.run("import", "--yes")
    assert refused.code == 1 and f"{ours} is a link. Name the place it leads to, or remove it." in refused.err
    ours.unlink()
    assert project.run("import", "--yes").code == 0 and list(outside.iterdir()) == []
    assert os.access(project.project / ".agents" / "skills" / "ship" / "run.sh", os.X_OK)
