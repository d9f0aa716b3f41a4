"""Types of subagents, as they are read from files of ours and of Claude Code."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.context.agents import DESCRIPTION, TEXT_LIMIT, AgentType, AgentTypes
from agent_tui.tools.files.access import FileAccess
from tests.context.accepting import Accepting
from tests.support.every import every

pytestmark = pytest.mark.quick


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def head(**values: str) -> str:
    lines = [f"{key}: {value}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---", "Look closely."])


def types(tmp_path: Path, accepting: Accepting | None = None) -> AgentTypes:
    files = FileAccess([tmp_path / "project"])
    found = AgentTypes(tmp_path / "config", tmp_path / "home", files, accepting or Accepting())
    found.refresh()
    return found


def one(tmp_path: Path, **values: str) -> AgentType:
    write(tmp_path / "project/.claude/agents/one.md", head(**{"description": "Does it", **values}))
    (found,) = types(tmp_path).loaded
    return found


def test_ours_win_in_the_same_place_and_the_project_over_the_user(tmp_path: Path) -> None:
    places = ("project/.agent-tui/agents", "project/.claude/agents", "config/agents", "home/.claude/agents")
    for number, place in enumerate(places):
        for name in ("a", "b", "c", "d")[: number + 1]:
            write(tmp_path / place / f"{name}.md", head(name=name, description=place))
    assert types(tmp_path).told() == dict(zip("abcd", places, strict=True))
    accepting = Accepting(False)
    untrusted = types(tmp_path, accepting)
    assert untrusted.told() == {"a": places[2], "b": places[2], "c": places[2], "d": places[3]}
    accepting.all = True
    untrusted.refresh()
    assert untrusted.told()["a"] == places[0]


def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    found = types(tmp_path)
    assert found.loaded == [] and found.find("late") is None
    path = write(tmp_path / "config/agents/deep/late.md", head(description="Comes late"))
    kind = found.find("late")
    assert kind is not None and (kind.prompt, kind.model, kind.restricted) == ("Look closely.", "", False)
    path.unlink()
    assert found.find("late") is None


@every(
    ("listed", "allowed", "refused", "strange"),
    [
        ("Read, Grep, Glob", "read grep glob", "bash edit write subagent mcp_call", ()),
        ("[Read, 'Bash']", "read bash", "edit", ()),
        ("\n- Read\n- Edit", "read edit apply_patch", "write bash", ()),
        ("Read, SlashCommand, Nonsense", "read", "bash", ("tool SlashCommand", "tool Nonsense")),
        ("Bash(git diff:*), Read", "read", "bash", ("tool Bash(git diff:*)",)),
        ("mcp__github__search, mcp__linear", "mcp__github__search mcp__linear__any", "mcp__github__other read", ()),
        ("mcp(github), mcp(linear.any)", "mcp__github__search mcp__linear__any", "mcp__linear__other read", ()),
        ("mcp(*)", "mcp__github__search mcp__linear__any", "read", ()),
        ("mcp, read", "mcp__github__search read", "bash", ()),
        ("mcp(git*), mcp(linear.get_*)", "mcp__github__search mcp__linear__get_x", "mcp__linear__put_x", ()),
        ("*", "read bash mcp__github__search", "", ()),
        ("Nonsense", "", "read bash edit", ("tool Nonsense",)),
    ],
)
def test_tools_are_known_by_their_other_names(
    tmp_path: Path, listed: str, allowed: str, refused: str, strange: tuple[str, ...]
) -> None:
    kind = one(tmp_path, tools=listed)
    assert {tool for tool in [*allowed.split(), *refused.split()] if kind.allows(tool)} == set(allowed.split())
    assert kind.unused == strange


def test_what_is_taken_away_is_taken_whole(tmp_path: Path) -> None:
    kind = one(tmp_path, disallowedTools="Bash(rm *), Edit, mcp__github")
    assert kind.restricted and kind.allows("read") and kind.allows("write")
    assert not any(map(kind.allows, ("bash", "edit", "apply_patch", "mcp__github__search")))


@every(
    ("listed", "taken", "left"),
    [
        ("Write", "write apply_patch", "edit bash"),
        ("mcp__github", "mcp__github__search mcp__github__read_resource mcp_read", "mcp__linear__search"),
        ("mcp__github__read_resource", "mcp__github__read_resource mcp_read", "mcp__github__search"),
        ("mcp__github__search", "mcp__github__search", "mcp__github__read_resource mcp_read"),
        ("mcp(github)", "mcp__github__search mcp_read", "mcp__linear__search"),
    ],
)
def test_what_does_the_same_by_another_name_is_taken_with_it(
    tmp_path: Path, listed: str, taken: str, left: str
) -> None:
    kind = one(tmp_path, disallowedTools=listed)
    assert not any(map(kind.allows, taken.split())) and all(map(kind.allows, left.split()))


def test_what_means_nothing_is_named_and_the_model_kept(tmp_path: Path) -> None:
    kind = one(tmp_path, model="opus", color="red", permissionMode="bypassPermissions")
    assert (kind.model, kind.unused) == ("opus", ("color", "permissionMode"))
    assert one(tmp_path, model="inherit").model == ""


def test_each_broken_file_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "project/.claude/agents"
    write(folder / "good.md", head(description="x" * 1_000))
    write(folder / "README.md", "What these are.")
    write(folder / "open.md", "---\nname: x\n")
    write(folder / "plain.md", "No head.")
    write(folder / "silent.md", "---\ndescription: d\n---\n")
    write(folder / "huge.md", head(description="d") + "y" * TEXT_LIMIT)
    write(folder / "named.md", head(name="a\x1b[2Jb", description="d"))
    (folder / "binary.md").write_bytes(b"---\0")
    outside = write(tmp_path / "outside/secret.md", head(description="d"))
    (folder / "linked.md").symlink_to(outside)
    (folder / "folder.md").mkdir()
    found = types(tmp_path)
    assert list(found.told()) == ["good"] and len(found.told()["good"]) <= DESCRIPTION
    assert sorted(Path(line.partition(": ")[0]).stem for line in found.failed) == sorted(
        ["open", "plain", "silent", "huge", "named", "binary", "linked", "folder"]
    )
    assert any("leads out of the project" in line for line in found.failed)
    assert all("\n" not in line for line in found.failed)
