from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin.edit import EditTool, WriteTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.files.diffs import unified
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_context(tmp_path / "project")


async def edit(context: ToolContext, *edits: tuple[str, str] | tuple[str, str, bool], path: str = "a") -> ToolOutcome:
    listed: list[Metadata] = [
        {"old_string": one[0], "new_string": one[1], "replace_all": one[2] if len(one) == 3 else False} for one in edits
    ]
    return await EditTool().run({"path": path, "edits": listed}, context)


async def test_several_edits_apply_in_order_and_are_shown_as_a_diff(context: ToolContext) -> None:
    file = context.root / "a"
    file.write_text("".join(f"line {n}\n" for n in range(30)))
    outcome = await edit(context, ("line 3\n", "three\n"), ("three", "THREE"), ("line 25\n", ""))
    assert "THREE\n" in file.read_text() and "line 25" not in file.read_text()
    assert outcome.text == "Edited a: 3 replacements."
    assert outcome.display == {
        "kind": "diff", "path": "a", "added": 1, "removed": 2,
        "text": "@@ -1,7 +1,7 @@\n line 0\n line 1\n line 2\n-line 3\n+THREE\n line 4\n line 5\n line 6\n"
        "@@ -23,7 +23,6 @@\n line 22\n line 23\n line 24\n-line 25\n line 26\n line 27\n line 28",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        ([("x", "y")], r"occurs 2 times in a \(lines 1, 3\)"),
        ([("nope", "y")], r"is not in a\. Nothing was changed\. Read it again and copy old_string"),
        ([("two  words", "2"), ("nope", "y")], "edit 2 of 2: old_string is not in a"),
        ([("", "y")], "old_string is empty"),
        ([("two", "two")], "are the same"),
        ([("two", "\ud83d")], "half of a surrogate pair"),
        ([], "edits is empty"),
    ],
)
async def test_an_edit_that_does_not_fit_changes_nothing(
    context: ToolContext, edits: list[tuple[str, str]], problem: str
) -> None:
    (context.root / "a").write_text("x\ntwo  words\nx\n")
    with pytest.raises(ToolError, match=problem):
        await edit(context, *edits)
    assert (context.root / "a").read_text() == "x\ntwo  words\nx\n"


async def test_replace_all_and_the_flat_form(context: ToolContext) -> None:
    (context.root / "a").write_text("x x x")
    await edit(context, ("x", "y", True))
    await EditTool().run({"path": "a", "old_string": "y y y", "new_string": "z"}, context)
    assert (context.root / "a").read_text() == "z"


async def test_line_ends_mode_and_foreign_bytes_survive(context: ToolContext) -> None:
    file = context.root / "a"
    file.write_bytes(b"one\r\ntwo\r\n\xff\xfe end\r\n")
    file.chmod(0o751)
    await edit(context, ("one\ntwo\n", "1\n2\n"))
    assert file.read_bytes() == b"1\r\n2\r\n\xff\xfe end\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751


async def test_hard_links_and_links_stay_links(context: ToolContext) -> None:
    file = context.root / "real"
    file.write_text("x")
    os.link(file, context.root / "hard")
    (context.root / "soft").symlink_to("real")
    await edit(context, ("x", "y"), path="soft")
    assert (context.root / "hard").read_text() == "y"
    assert (context.root / "soft").is_symlink()


async def test_a_file_changed_since_it_was_read_is_not_edited(context: ToolContext) -> None:
    file = context.root / "a"
    file.write_text("one\n")
    await ReadTool().run({"path": "a"}, context)
    await edit(context, ("one", "two"))
    await edit(context, ("two", "three"))
    file.write_text("three, by someone else\n")
    for attempt in (edit(context, ("three", "four")), WriteTool().run({"path": "a", "content": ""}, context)):
        with pytest.raises(ToolError, match="has changed since it was read"):
            await attempt
    await ReadTool().run({"path": "a"}, context)
    await edit(context, ("three", "four"))


async def test_write_creates_folders_and_replaces_only_what_was_read(context: ToolContext) -> None:
    outcome = await WriteTool().run({"path": "new/deep/a.txt", "content": "one\ntwo\n"}, context)
    assert outcome.text == "Created new/deep/a.txt: 2 lines."
    (context.root / "old").write_text("old\n")
    with pytest.raises(ToolError, match="Read it before replacing it"):
        await WriteTool().run({"path": "old", "content": "x"}, context)
    await ReadTool().run({"path": "old"}, context)
    outcome = await WriteTool().run({"path": "old", "content": "new\n"}, context)
    assert outcome.display is not None and outcome.display["text"] == "@@ -1 +1 @@\n-old\n+new"
    assert {entry.name for entry in context.root.iterdir()} == {"new", "old"}


@pytest.mark.parametrize("path", [".", "pipe", "old/x", "no\0"])
async def test_what_is_no_file_is_not_written(context: ToolContext, path: str) -> None:
    os.mkfifo(context.root / "pipe")
    (context.root / "old").write_text("")
    with pytest.raises(ToolError):
        await WriteTool().run({"path": path, "content": "x"}, context)


async def test_the_intent_shows_the_diff_and_changes_nothing(context: ToolContext) -> None:
    (context.root / "a").write_text("x\x1b[31m\n")
    intent = EditTool().intent({"path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}, context)
    assert (intent.kind, intent.summary, intent.paths) == ("edit", "edit a", [context.root / "a"])
    assert intent.display is not None and intent.display["text"] == "@@ -1 +1 @@\n-x␛[31m\n+y␛[31m"
    assert (context.root / "a").read_text() == "x\x1b[31m\n"
    # What would fail is said at once where the file may be read anyway, and not a word of it where it may not.
    with pytest.raises(ToolError, match="is not in a"):
        EditTool().intent({"path": "a", "edits": [{"old_string": "q", "new_string": "y"}]}, context)
    with pytest.raises(ToolError, match="Read it before replacing"):
        WriteTool().intent({"path": "a", "content": "y"}, context)
    outside = context.root.parent / "outside"
    outside.write_text("x")
    intent = EditTool().intent({"path": str(outside), "edits": [{"old_string": "q", "new_string": "y"}]}, context)
    assert intent.paths == [outside]
    context.hidden = lambda path: path.name == "a"
    assert WriteTool().intent({"path": "a", "content": "y"}, context).kind == "edit"
    intent = WriteTool().intent({"path": "new", "content": "x"}, context)
    assert intent.display is not None and intent.display["text"] == "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file"
    assert not (context.root / "new").exists()


async def test_every_change_is_announced_before_it_happens(context: ToolContext) -> None:
    seen: list[tuple[str, str]] = []

    def content(path: Path) -> str:
        return path.read_text() if path.exists() else "-"

    context.before_change = lambda path: seen.append(("before", content(path)))
    context.after_change = lambda path: seen.append(("after", content(path)))
    await WriteTool().run({"path": "a", "content": "x"}, context)
    await edit(context, ("x", "y"))
    assert seen == [("before", "-"), ("after", "x"), ("before", "x"), ("after", "y")]


async def test_a_ten_megabyte_line_can_be_edited(context: ToolContext) -> None:
    (context.root / "a").write_text("x" * 10_000_000 + "needle" + "x" * 100)
    outcome = await edit(context, ("needle", "pin"))
    assert outcome.display is not None and len(outcome.display["text"]) < 101_000
    assert (context.root / "a").stat().st_size == 10_000_103


def patched(before: list[str], hunks: Iterable[str]) -> list[str]:
    """Applies a diff of lines without line ends."""
    result, at = [], 0
    for line in hunks:
        if line.startswith("@@"):
            first, _, length = line.split()[1][1:].partition(",")
            start = int(first) - (length != "0")
            result += before[at:start]
            at = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert before[at] == line[1:]
            at += 1
            if line[0] == " ":
                result.append(line[1:])
    return result + before[at:]


lines = st.lists(st.sampled_from("abc"), max_size=30)


@given(lines, lines)
def test_a_diff_can_be_applied(before: list[str], after: list[str]) -> None:
    hunks, added, removed = unified("".join(f"{x}\n" for x in before), "".join(f"{x}\n" for x in after))
    assert patched(before, hunks) == after
    assert added == sum(h[0] == "+" for h in hunks) and removed == sum(h[0] == "-" for h in hunks)


@pytest.mark.parametrize(
    ("before", "content", "after", "kept"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n", "CRLF line ends"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n", "byte order mark"),
        (b"\xef\xbb\xbfa\r\n", "x\n", b"\xef\xbb\xbfx\r\n", "CRLF line ends and byte order mark"),
        (b"a\r\n", "x\r\ny\n", b"x\r\ny\n", ""),  # whoever writes line ends means them
        (b"a\r\nb\n", "x\ny\n", b"x\r\ny\n", "mix of LF and CRLF line ends"),
        (b"a\r\nb\nc\r\n", "a\nnew\nb\nc\n", b"a\r\nnew\r\nb\nc\r\n", "mix of LF and CRLF line ends"),
        (b"a\n", "x\n", b"x\n", ""),
    ],
)
async def test_what_is_not_seen_of_a_file_is_kept(
    context: ToolContext, before: bytes, content: str, after: bytes, kept: str
) -> None:
    (context.root / "a").write_bytes(before)
    await ReadTool().run({"path": "a"}, context)
    arguments = {"path": "a", "content": content}
    intent = WriteTool().intent(arguments, context)
    outcome = await WriteTool().run(arguments, context)
    assert (context.root / "a").read_bytes() == after
    assert (f"It keeps its {kept};" in outcome.text) if kept else ("keeps" not in outcome.text)
    assert intent.display == outcome.display, "what was asked about is what is done"


async def test_a_repository_that_was_moved_is_changed_by_no_tool(tmp_path: Path) -> None:
    context = make_context(tmp_path / "project")
    for name in ("objects", "refs", "hooks"):
        (context.root / "moved" / name).mkdir(parents=True)
    (context.root / "moved/HEAD").write_text("ref: refs/heads/main\n")
    (context.root / "moved/config").write_text("[core]\n")
    await ReadTool().run({"path": "moved/config"}, context)
    for name in ("moved/config", "moved/hooks/pre-commit"):
        with pytest.raises(ToolError, match="only git may change it"):
            await WriteTool().run({"path": name, "content": "x"}, context)
    assert (context.root / "moved/config").read_text() == "[core]\n"
    (context.root / "moved").rename(context.root / ".git")  # a name that is asked about
    await ReadTool().run({"path": ".git/config"}, context)
    await WriteTool().run({"path": ".git/config", "content": "x"}, context)
    assert (context.root / ".git/config").read_text() == "x"
