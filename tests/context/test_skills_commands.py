from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.skills import DESCRIPTION, BadHead, Skills, UserCommands, split_head
from agent_tui.errors import AgentError, ToolError
from agent_tui.tools.builtin.conversation import SkillTool
from agent_tui.tools.files.access import FileAccess
from tests.context.accepting import Accepting
from tests.support.every import every
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_heads_are_read_as_people_write_them() -> None:
    text = """---
name: pdf   # which
description: >
  Reads
  and writes
quoted: "a: \\"b\\""
single: 'it''s'
block: |
  one
  two
list:
- a
- b
empty:
---

# Body
"""
    values, body = split_head(text)
    assert values == {
        "name": "pdf",
        "description": "Reads and writes",
        "quoted": 'a: "b"',
        "single": "it's",
        "block": "one\ntwo",
        "list": "- a - b",
        "empty": "",
    }
    assert body == "# Body"
    assert split_head("just text") == ({}, "just text")


@every(
    ("text", "error"),
    [
        ("---\nname: x\n", "no end"),
        ("---\nnonsense\n---\n", "line 2"),
        ("---\na: 1\na: 2\n---\n", "twice"),
        ('---\na: "x\n---\n', "line 2: the quoted value"),
        ("---\n  a: 1\n---\n", "line 2"),
    ],
)
def test_a_broken_head_says_where(text: str, error: str) -> None:
    with pytest.raises(BadHead, match=error):
        split_head(text)


@given(st.text(alphabet="-:ab'\"|> \n#\t", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        split_head(text)
    except BadHead as error:
        assert str(error).startswith("line ")


def test_skills_are_listed_loaded_and_broken_ones_named(tmp_path: Path) -> None:
    config, home, root = tmp_path / "config", tmp_path / "home", tmp_path / "project"
    write(config / "skills" / "pdf" / "SKILL.md", "---\nname: pdf\ndescription: own\n---\nown text")
    write(home / ".agents/skills/other/SKILL.md", "---\ndescription: \x1b[31mred " + "x" * 900 + "\n---\ntext")
    write(root / ".agents/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: the project's\n---\nproject text")
    write(root / ".agents/skills/bad/SKILL.md", "---\nname: bad\n---\n")
    write(root / ".agents/skills/wo rse/SKILL.md", "---\nname: ../x\ndescription: d\n---\n")
    write(root / ".agents/skills/titled/SKILL.md", "---\nname: A Title\ndescription: d\n---\ntitled text")
    accepting = Accepting(False)
    skills = Skills(config, home, FileAccess([root]), accepting)
    (block,) = skills.blocks()
    assert block.row == "skills" and "- pdf: own" in block.text
    assert skills.names() == ["other", "pdf"] and skills.failed == []
    assert "\x1b" not in block.text and len(block.text) < DESCRIPTION + 200
    accepting.all = True
    assert "the project's" in skills.blocks()[0].text
    assert skills.find("pdf") == ("project text", root / ".agents/skills/pdf")
    assert skills.find("titled") == ("titled text", root / ".agents/skills/titled")
    assert skills.find("nothing") is None
    assert len(skills.failed) == 2 and "no description" in skills.failed[0]


def test_a_new_skill_counts_at_once(tmp_path: Path) -> None:
    skills = Skills(tmp_path / "config", tmp_path / "home", FileAccess([tmp_path / "project"]), Accepting())
    assert skills.blocks() == []
    write(tmp_path / "project/.agents/skills/new/SKILL.md", "---\ndescription: d\n---\ntext")
    assert "- new: d" in skills.blocks()[0].text


async def test_the_skill_tool_loads_a_skill(tmp_path: Path) -> None:
    tool = SkillTool(lambda name: ("Do \x1b[31mthis.", tmp_path) if name == "a" else None, lambda: ["a"])
    context = make_context(tmp_path / "project")
    assert tool.intent({"name": "a"}, context).kind == "internal"
    text = (await tool.run({"name": "a"}, context)).text
    assert str(tmp_path) in text and "Do ␛[31mthis." in text
    with pytest.raises(ToolError, match="Available: a"):
        await tool.run({"name": "b"}, context)


def test_user_commands_fill_in_their_arguments(tmp_path: Path) -> None:
    config, root = tmp_path / "config", tmp_path / "project"
    write(config / "commands/fix.md", "---\ndescription: Fixes an issue\n---\nFix #$1 in $2. All: $ARGUMENTS. $10 $ARG")
    write(config / "commands/plain.md", "# Look around\nwell")
    write(config / "commands/Bad Name.md", "text")
    write(config / "commands/empty.md", "---\ndescription: d\n---\n")
    write(root / ".agent-tui/commands/fix.md", "theirs")
    write(root / ".agent-tui/commands/git/tidy.md", "tidy")
    accepting = Accepting(False)
    commands = UserCommands(config, tmp_path / "home", FileAccess([root]), accepting)
    found = {c.name: c for c in commands.all()}
    assert set(found) == {"fix", "plain"} and len(commands.failed) == 2
    assert found["fix"].description == "Fixes an issue" and found["plain"].description == "Look around"
    assert found["fix"].expand('12 "my file"') == 'Fix #12 in my file. All: 12 "my file". 120 $ARG'
    assert found["fix"].expand("$2 $ARGUMENTS") == "Fix #$2 in $ARGUMENTS. All: $2 $ARGUMENTS. $20 $ARG"
    assert found["plain"].expand("now") == "# Look around\nwell\n\nnow"
    accepting.all = True
    found = {c.name: c for c in commands.all()}
    assert set(found) == {"fix", "git/tidy", "plain"} and found["fix"].expand("") == "theirs"


def test_links_out_of_the_project_are_not_followed(tmp_path: Path) -> None:
    root, secret = tmp_path / "project", tmp_path / "secret.md"
    secret.write_text("secret")
    (root / ".agent-tui/commands").mkdir(parents=True)
    (root / ".agent-tui/commands/x.md").symlink_to(secret)
    commands = UserCommands(tmp_path / "config", tmp_path / "home", FileAccess([root]), Accepting())
    assert commands.all() == [] and "leads out" in commands.failed[0]


def test_what_was_written_for_other_agents_is_read_where_it_stands(tmp_path: Path) -> None:
    config, home, root = tmp_path / "config", tmp_path / "home", tmp_path / "project"
    head = "---\nallowed-tools: Bash(git status:*)\nargument-hint: [issue]\ndescription: Fix it\nmodel: opus\n---\n"
    write(root / ".claude/commands/fix.md", head + "Fix $1 of $ARGUMENTS")
    write(root / ".claude/commands/git/pr.md", "Open a pull request")
    write(root / ".claude/commands/git/deep/down.md", "Deep")
    write(root / ".claude/commands/svelte/svelte:test.md", "Test")
    write(root / ".agent-tui/commands/git/pr.md", "ours")
    write(home / ".codex/prompts/draft.md", "Draft $FILE for $$5, see $1. $OTHER")
    write(home / ".claude/commands/fix.md", "the user's")
    accepting = Accepting(False)
    commands = UserCommands(config, home, FileAccess([root]), accepting)
    assert [(c.name, c.description) for c in commands.all()] == [
        ("draft", "Draft $FILE for $$5, see $1. $OTHER"),
        ("fix", "the user's"),
    ]
    accepting.all = True
    found = {c.name: c for c in commands.all()}
    assert {"git/deep/down", "svelte/svelte:test"} <= set(found)
    assert found["git/pr"].expand("") == "ours" and found["fix"].description == "[issue] Fix it"
    assert found["fix"].expand("12 now") == "Fix 12 of 12 now"
    assert next(c for c in commands.loaded if c.name == "fix").unused == ("allowed-tools", "model")
    assert found["draft"].expand("FILE=a.md OTHER='b c'") == "Draft a.md for $5, see FILE=a.md. b c"
    with pytest.raises(AgentError, match=r"Usage: /draft OTHER=…"):
        found["draft"].expand("FILE=a.md")


async def test_the_output_of_commands_takes_their_place_and_what_is_typed_runs_nothing(tmp_path: Path) -> None:
    ran: list[str] = []

    async def shell(command: str) -> str:
        ran.append(command)
        return f"<{command}>"

    root = tmp_path / "project"
    write(root / ".claude/commands/look.md", "Now: !`git status $1`\nLog: !`git log`\nFor $ARGUMENTS")
    commands = UserCommands(tmp_path / "config", tmp_path / "home", FileAccess([root]), Accepting(), shell=shell)
    (command,) = commands.all()
    text = command.expand("!`rm`")
    assert not isinstance(text, str)
    assert await text == "Now: <git status !`rm`>\nLog: <git log>\nFor !`rm`"
    assert ran == ["git status !`rm`", "git log"]


def test_skills_of_other_agents_are_listed_unless_only_the_user_may_call_them(tmp_path: Path) -> None:
    root, home = tmp_path / "project", tmp_path / "home"
    write(root / ".claude/skills/pdf/SKILL.md", "---\nname: pdf\nallowed-tools: Read\n---\n# Reads PDFs\nSo.")
    write(home / ".claude/skills/ship/SKILL.md", "---\ndescription: Ships\ndisable-model-invocation: true\n---\nShip.")
    skills = Skills(tmp_path / "config", home, FileAccess([root]), Accepting())
    assert skills.names() == [] and skills.blocks()[0].text.endswith("- pdf: Reads PDFs")
    assert skills.names() == ["pdf"] and skills.find("ship") is None
    assert [(s.name, s.listed, s.unused) for s in skills.loaded] == [
        ("pdf", True, ("allowed-tools",)),
        ("ship", False, ()),
    ]
