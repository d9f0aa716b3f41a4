"""A diff as data: what is drawn must be what the files hold, whatever the text of the diff says."""

import random

import pytest

from agent_tui.text.diff import Diff, read_diff, spans_apart
from agent_tui.tools.files.diffs import diff_display

pytestmark = pytest.mark.quick


def marked(diff: Diff, index: int) -> list[str]:
    return [diff.lines[index].text[start:end] for start, end in diff.changed(index)]


def test_every_line_stands_in_the_file_under_its_number() -> None:
    chance = random.Random(7)
    words = ["--- a", "+++ b", "@@ -1 +1 @@", "", " x", "\\ No newline", "y = f(x)", "*** Update File: z", "-- old"]
    for _ in range(200):
        before = [chance.choice(words) for _ in range(chance.randrange(30))]
        after = [chance.choice(words) if chance.random() < 0.2 else line for line in before]
        if chance.random() < 0.5:
            after.insert(chance.randrange(len(after) + 1), chance.choice(words))
        display = diff_display("\n".join(before), "\n".join(after), "f")
        diff = read_diff(display["text"], "f")
        assert (diff.added, diff.removed) == (display["added"], display["removed"])
        for line in diff.lines:
            assert line.kind in ("same", "added", "removed", "gap") or line.text == "No newline at end of file"
            if line.old is not None:
                assert before[line.old - 1] == line.text
            if line.new is not None:
                assert after[line.new - 1] == line.text


def test_changed_words_are_marked_in_the_lines_that_became_each_other() -> None:
    diff = read_diff(
        "@@ -4,2 +4,3 @@\n-    x = total(one)\n-    return x\n+    x = total(one, two)\n+    # new\n+    return y"
    )
    assert [marked(diff, index) for index in range(5)] == [[], ["x"], [", two"], [], ["y"]]
    assert "".join("abcdef"[a:b].upper() if on else "abcdef"[a:b] for a, b, on in spans_apart(((1, 3),), 6)) == "aBCdef"
    unlike = read_diff("@@ -1 +1 @@\n-import os\n+class Stack(Generic[T]):")
    assert unlike.changed(0) == unlike.changed(1) == ()


def test_several_files_and_patches_without_numbers_are_read() -> None:
    files = read_diff("--- a.py\n+++ a.py\n@@ -1 +1 @@\n-1\n+2\n--- /dev/null\n+++ b.py\n@@ -0,0 +1 @@\n+x\n[… cut]")
    assert [(line.kind, line.text, line.number, line.path) for line in files.lines] == [
        ("file", "a.py", None, "a.py"),
        ("removed", "1", 1, "a.py"),
        ("added", "2", 1, "a.py"),
        ("file", "b.py (new file)", None, "b.py"),
        ("added", "x", 1, "b.py"),
        ("note", "[… cut]", None, "b.py"),
    ]
    patch = read_diff("*** Begin Patch\n*** Update File: a.py\n@@ def f():\n-1\n+2\n \n*** End Patch")
    assert [(line.kind, line.text) for line in patch.lines][1:6] == [
        ("file", "Update File: a.py"),
        ("gap", "def f():"),
        ("removed", "1"),
        ("added", "2"),
        ("same", ""),
    ]
    assert (patch.digits, patch.added, patch.removed) == (0, 1, 1)


def test_hostile_sizes_cost_no_more_work_than_is_bounded() -> None:
    chance = random.Random(1)
    lines = ["".join(chance.choice("()") for _ in range(990)) for _ in range(200)]
    diff = read_diff("@@ -1,100 +1,100 @@\n-" + "\n-".join(lines[:100]) + "\n+" + "\n+".join(lines[100:]))
    huge = read_diff(f"@@ -1 +1 @@\n-{'x' * 10_000_000}a\n+{'x' * 10_000_000}b")
    # Of so many pairs words are not compared one by one: only what stands between their ends is marked.
    assert all(len(diff.changed(index)) == 1 for index in range(200))
    assert huge.changed(0) == ((10_000_000, 10_000_001),)


def test_a_patch_with_absurd_numbers_is_drawn_as_what_it_is() -> None:
    for number in ("9" * 5_000, "9" * 1_000):
        diff = read_diff(f"*** Update File: f\n@@ -{number} +1 @@\n-a\n+b", "f")
        assert [(line.sign, line.text) for line in diff.lines[-2:]] == [("-", "a"), ("+", "b")]
        assert diff.digits == 0
