"""Patches: what their format says, where they find their place, and that they are made whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.errors import ToolError
from agent_tui.store.facts import Snapshot
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin.edit import ApplyPatchTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.files.diffs import apply_chunks, parse_patch
from agent_tui.tools.files.snapshots import FileHistory, Snapshotter, apply_restore
from tests.support.every import every
from tests.support.tool_context import make_context, permissions_of

pytestmark = pytest.mark.quick

APP = """\
import os


class First:
    def run(self):
        return 1


class Second:
    def run(self):
        return 2
"""


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    context = make_context(tmp_path / "project")
    (context.root / "app.py").write_text(APP)
    return context


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


async def run(context: ToolContext, *lines: str) -> ToolOutcome:
    return await ApplyPatchTool().run({"input": patch(*lines)}, context)


def updated(text: str, *lines: str) -> str:
    (one,) = parse_patch(patch("*** Update File: a", *lines))
    return apply_chunks(text, one.chunks, "a").text


async def test_several_files_change_at_once(context: ToolContext) -> None:
    (context.root / "old.txt").write_text("gone\n")
    (context.root / "run.sh").write_text("#!/bin/sh\necho a\n")
    (context.root / "run.sh").chmod(0o751)
    lines = (
        "*** Update File: app.py", "@@ class Second:", "     def run(self):", "-        return 2", "+        return 3",
        "*** Add File: docs/new.md", "+# New", "+", "+text", "*** Delete File: old.txt",
        "*** Update File: run.sh", "*** Move to: bin/run.sh", "@@", "-echo a", "+echo b",
    )  # fmt: skip
    intent = ApplyPatchTool().intent({"input": patch(*lines)}, context)
    assert intent.kind == "edit" and intent.summary == "apply_patch app.py, docs/new.md, old.txt and 2 more"
    named = ["app.py", "docs/new.md", "old.txt", "run.sh", "bin/run.sh"]
    assert intent.paths == [context.root / name for name in named]
    outcome = await run(context, *lines)
    assert outcome.text == "Changed 4 files:\nM app.py\nA docs/new.md\nD old.txt\nR run.sh → bin/run.sh"
    assert (context.root / "app.py").read_text() == APP.replace("return 2", "return 3")
    assert (context.root / "docs/new.md").read_text() == "# New\n\ntext\n"
    assert not (context.root / "old.txt").exists() and not (context.root / "run.sh").exists()
    assert (context.root / "bin/run.sh").read_text() == "#!/bin/sh\necho b\n"
    assert stat.S_IMODE((context.root / "bin/run.sh").stat().st_mode) == 0o751
    assert outcome.display == intent.display, "what was asked about is what is done"
    assert outcome.display is not None
    shown = outcome.display["text"]
    assert "--- app.py\n+++ app.py\n@@" in shown and "--- /dev/null\n+++ docs/new.md" in shown
    assert "--- old.txt\n+++ /dev/null" in shown and "-        return 2\n+        return 3" in shown


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["*** Update File: app.py", "@@", "-    def walk(self):", "+    x"], r"'    def walk\(self\):', is not in"),
        (["*** Update File: app.py", "@@", "-        retrun 1", "+    x"], "is not in the file. Nothing was"),
        (["*** Update File: app.py", "@@ class Third:", "+x"], "the line after @@ of the chunk in line 5"),
        (
            ["*** Update File: app.py", "@@", "-        return 2", "+        pass", "@@", "-        return 1", "+x"],
            "stands in line 6 of the file, above the place .* in the order of the file",
        ),
        (["*** Update File: none.py", "@@", "-a", "+b"], "none.py does not exist; list or glob"),
        (["*** Delete File: none.py"], "none.py does not exist"),
        (["*** Add File: app.py", "+x"], r"app.py exists. Change it with \*\*\* Update File:"),
        (["*** Update File: app.py", "*** Move to: other.py", "@@", "-import os", "+import sys"], "other.py exists"),
        (["*** Update File: app.py", "@@", " import os"], "leaves every file as it is"),
        (["*** Update File: bin", "@@", "-a", "+b"], "binary file"),
        (["*** Delete File: ."], "is a folder"),
    ],
)  # fmt: skip
async def test_where_one_file_does_not_fit_none_is_changed(
    context: ToolContext, lines: list[str], problem: str
) -> None:
    (context.root / "other.py").write_text("x\n")
    (context.root / "bin").write_bytes(b"a\0")
    before = {p: p.read_bytes() for p in context.root.iterdir()}
    arguments = {"input": patch("*** Add File: made.py", "+x", *lines)}
    if problem == "leaves every file as it is":
        arguments = {"input": patch(*lines)}
    with pytest.raises(ToolError, match=problem):
        ApplyPatchTool().intent(arguments, context)
    with pytest.raises(ToolError, match=problem):
        await ApplyPatchTool().run(arguments, context)
    assert {p: p.read_bytes() for p in context.root.iterdir()} == before


@every(
    ("text", "problem"),
    [
        ("", "Line 1 of the patch, '': a patch begins with"),
        ("*** Begin Patch\n*** Update File: a\n-x", "a patch ends with .*; perhaps it was cut off"),
        ("*** Begin Patch\n*** End Patch", "changes no file"),
        (patch("*** Update File: a", "@@", "x"), "Line 4 of the patch, 'x': lines of a chunk begin with"),
        (patch("*** Add File: a", "x"), "every line of a new file begins with"),
        (patch("*** Update File: a"), "changes nothing in a"),
        (patch("*** Update File:", "@@", "-x"), "the path is missing"),
        (patch("--- a/x", "+++ b/x"), "a file begins here"),
    ],
)
def test_what_is_no_patch_is_told_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        parse_patch(text)


def test_ways_of_writing_that_mean_the_same_are_taken() -> None:
    body = patch("*** Update File: a", "@@", "-x", "+y")
    for written in (body, f"<<'EOF'\n{body}\nEOF", f"```\n{body}\n```", f"\n{body}\n\n", body.replace("\n", "\r\n")):
        (one,) = parse_patch(written)
        assert apply_chunks("x\n", one.chunks, "a").text == "y\n"


def test_no_line_of_a_new_file_gets_lost() -> None:
    (one, two) = parse_patch(patch("*** Add File: a", "", "+x", "", "  ", "+y", "", "*** Add File: b", "+z", ""))
    assert (one.content, two.content) == ("x\n\n\ny\n", "z\n")


def test_marks_of_other_ways_of_writing_are_passed_over() -> None:
    (one,) = parse_patch(patch("  *** Update File: a", "@@", "-x", "\\ No newline at end of file", "+y"))
    assert apply_chunks("x", one.chunks, "a").text == "y"


def test_the_place_is_found_by_what_stands_above_and_around() -> None:
    assert updated(
        APP, "@@ class Second:", "@@     def run(self):", "-        return 2", "+        pass"
    ) == APP.replace("return 2", "pass")
    assert updated("a\nb\na\nb\n", "@@", "-b", "+c") == "a\nc\na\nb\n", "the first"
    assert updated("a\nb\na\nb\n", "@@", " a", "-b", "+c", "*** End of File") == "a\nb\na\nc\n", "the last"
    assert updated("a\nb\na\nb\n", "@@", "-b", "+c", "@@", "-b", "+d") == "a\nc\na\nd\n", "one after the other"
    assert updated("a\n", "@@", "+b") == "a\nb\n" and updated("a", "@@", "+b") == "a\nb"
    assert updated("a\nb\n", "@@ a", "+x") == "a\nx\nb\n"
    assert updated("a\nb\n", "@@ -1,2 +1,2 @@", "-b", "+c") == "a\nc\n", "numbers are no context"
    assert updated("a\n", "-a", "+b", "") == "b\n", "the first @@ may be missing"


@every(
    ("text", "lines", "after", "note"),
    [
        ("a  \nb\n", ["@@", " a", "-b", "+c"], "a  \nc\n", "white space at the end"),
        ("say “a”\nb\n", ["@@", ' say "a"', "-b", "+c"], "say “a”\nc\n", "quotes, dashes"),
        ("\tif a:\n\t\tb\n", ["@@", " if a:", "-b", "+\t\tc"], "\tif a:\n\t\tc\n", "indentation"),
        ("a\nx\na\n", ["@@", "-a", "+b"], "b\nx\na\n", "also stands at line 3"),
    ],
)
def test_context_that_is_nearly_right_is_found_kept_as_it_is_and_told(
    text: str, lines: list[str], after: str, note: str
) -> None:
    (one,) = parse_patch(patch("*** Update File: a", *lines))
    done = apply_chunks(text, one.chunks, "a")
    assert done.text == after and note in " ".join(done.notes)


LINES = st.lists(st.sampled_from(["a", "b", "  c", "", "d\te"]), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(LINES, LINES, st.booleans())
def test_a_patch_of_whole_files_makes_one_of_the_other(before: list[str], after: list[str], ended: bool) -> None:
    text = "\n".join(before) + "\n" * ended
    lines = [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    if not ended and not before[-1]:
        return  # its last line is no line
    assert updated(text, "@@", *lines) == "\n".join(after) + "\n" * ended


async def test_line_ends_and_mark_are_kept(context: ToolContext) -> None:
    file = context.root / "win.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n\xff\r\n")
    await run(context, "*** Update File: win.txt", "@@", " one", "-two", "+2", "+3")
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n3\r\n\xff\r\n"


async def test_a_file_changed_since_it_was_read_is_left_alone(context: ToolContext) -> None:
    await ReadTool().run({"path": "app.py"}, context)
    (context.root / "app.py").write_text(APP + "# by another\n")
    for lines in (["*** Update File: app.py", "@@", "-import os", "+import sys"], ["*** Delete File: app.py"]):
        with pytest.raises(ToolError, match="has changed since it was read"):
            await run(context, *lines)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
async def test_what_was_written_is_taken_back_when_a_later_file_cannot_be(context: ToolContext) -> None:
    locked = context.root / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    with pytest.raises(ToolError, match=r"cannot be written.*Nothing was changed"):
        await run(context, "*** Update File: app.py", "@@", "-import os", "+x", "*** Add File: locked/b", "+x")
    assert (context.root / "app.py").read_text() == APP


async def test_a_failure_in_the_middle_takes_everything_back(context: ToolContext) -> None:
    (context.root / "gone.txt").write_text("g\n")
    changed: list[Path] = []

    def late(path: Path) -> None:
        changed.append(path)
        if path.name == "gone.txt":  # another program is faster
            (context.root / "gone.txt").unlink()

    context.before_change = late
    with pytest.raises(ToolError, match=r"gone.txt cannot be removed.*Nothing was changed"):
        await run(
            context, "*** Delete File: gone.txt", "*** Add File: b/new", "+x",
            "*** Update File: app.py", "@@", "-import os", "+x",
        )  # fmt: skip
    assert (context.root / "app.py").read_text() == APP and not (context.root / "b/new").exists()
    assert changed[0].name != "gone.txt", "what goes goes last"


async def test_everything_a_patch_did_can_be_rewound(context: ToolContext) -> None:
    rows: list[Snapshot] = []

    def save(message_id: str, path: str, content: bytes | None, mode: int | None) -> None:
        rows.append(Snapshot(message_id, path, content, mode, 0.0))

    snapshots = Snapshotter(save)
    snapshots.message_id = "m"
    context.before_change, context.after_change = snapshots.before_change, snapshots.after_change
    (context.root / "old.txt").write_text("old\n")
    await run(
        context, "*** Update File: app.py", "*** Move to: lib/app.py", "@@", "-import os", "+import sys",
        "*** Delete File: old.txt", "*** Add File: new.txt", "+x",
    )  # fmt: skip
    assert apply_restore(FileHistory(rows).plan(["m"])) == []
    files = {p.relative_to(context.root).as_posix(): p.read_text() for p in context.root.rglob("*") if p.is_file()}
    assert files == {"app.py": APP, "old.txt": "old\n"}


@pytest.mark.parametrize(
    ("mode", "path", "rules", "action"),
    [
        ("ask", "app.py", {}, "ask"),
        ("accept-edits", "app.py", {}, "allow"),
        ("plan", "app.py", {}, "deny"),
        ("auto", ".git/hooks/pre-commit", {}, "ask"),
        ("auto", "../outside.py", {}, "ask"),
        ("auto", "app.py", {"deny": ["edit(*.py)"]}, "deny"),
        ("auto", "app.py", {"deny": ["write(*.py)"]}, "deny"),
        ("auto", "app.py", {"deny": ["apply_patch(*.py)"]}, "deny"),
        ("ask", "app.py", {"allow": ["edit(./app.py)"]}, "ask"),
        ("ask", "app.py", {"allow": ["edit(./app.py)", "edit(*.txt)"]}, "allow"),
    ],
)
def test_each_file_is_judged_like_one_of_edit(
    context: ToolContext, mode: PermissionMode, path: str, rules: dict[str, list[str]], action: str
) -> None:
    permissions = permissions_of(context.root, PermissionsConfig(mode=mode, **rules))
    (context.root / "free.txt").write_text("a\n")
    lines = ["*** Update File: free.txt", "@@", "-a", "+b"]
    lines += (
        ["*** Update File: app.py", "@@", "-import os", "+x"] if path == "app.py" else [f"*** Add File: {path}", "+x"]
    )
    intent = ApplyPatchTool().intent({"input": patch(*lines)}, context)
    assert permissions.decide("apply_patch", intent).action == action


async def test_a_link_that_leads_elsewhere_after_the_question_is_not_followed(context: ToolContext) -> None:
    lines = ("*** Update File: app.py", "@@", "-import os", "+x")
    context.allowed_paths = frozenset(ApplyPatchTool().intent({"input": patch(*lines)}, context).paths)
    (context.root / "app.py").unlink()
    (context.root / "else.py").write_text(APP)
    (context.root / "app.py").symlink_to("else.py")
    with pytest.raises(ToolError, match="leads elsewhere"):
        await run(context, *lines)


def test_hostile_text_does_not_act(context: ToolContext) -> None:
    name = "a\x1b]0;x\x07.py"
    intent = ApplyPatchTool().intent({"input": patch(f"*** Add File: {name}", "+\x1b[31mred")}, context)
    assert "\x1b" not in f"{intent.summary}{intent.display}" and "\x07" not in intent.summary
    with pytest.raises(ToolError) as error:
        parse_patch(patch("*** Update File: a", "@@", "\x1b[31m"))
    assert "\x1b" not in str(error.value)
    with pytest.raises(ToolError, match="half of a surrogate"):
        ApplyPatchTool().intent({"input": patch("*** Add File: a", "+\ud83d")}, context)
