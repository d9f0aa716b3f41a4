from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec, RegexPattern

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin import find as grep_tool
from agent_tui.tools.builtin.find import GlobTool, GrepTool
from agent_tui.tools.builtin.searcher import PIECE
from agent_tui.tools.files.walk import Glob, linear, walk
from tests.support.every import every
from tests.support.forms import examples
from tests.support.tool_context import make_context

RIPGREP = shutil.which("rg")
SEARCHERS = [
    pytest.param("", id="python"),
    pytest.param(RIPGREP or "", id="ripgrep", marks=pytest.mark.skipif(RIPGREP is None, reason="ripgrep is missing")),
]


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    context = make_context(tmp_path / "project")
    files = {
        "b.py": b"import os\nx = 1\ny = 2\nX = 3\n",
        "a/deep/c.py": b"def x():\n    return 'x = 1'\n",
        "a/z.txt": b"x = 1\r\nlast x = 1",
        "a.b/n.md": b"x = 1\n",
        "build/out.py": b"x = 1\n",
        "bin": b"x = 1\0\n",
        "latin": b"caf\xe9 x = 1\n",
        ".hidden/h.py": b"x = 1\n",
        ".git/config": b"x = 1\n",
        "dir.log/k.py": b"x = 1\n",
        ".gitignore": b"build/\n*.log\n",
    }
    for name, content in files.items():
        (context.root / name).parent.mkdir(parents=True, exist_ok=True)
        (context.root / name).write_bytes(content)
    (tmp_path / "outside").write_text("x = 1\n")
    (context.root / "link").symlink_to(tmp_path / "outside")
    return context


async def grep(searcher: str, project: ToolContext, pattern: str, **more: object) -> list[str]:
    arguments: Metadata = {"pattern": pattern, **more}
    return (await GrepTool(searcher).run(arguments, project)).text.splitlines()


@pytest.mark.forms(1)
@pytest.mark.parametrize("searcher", SEARCHERS)
async def test_matches_are_the_same_whoever_searches(searcher: str, context: ToolContext) -> None:
    assert await grep(searcher, context, "x = [0-9]$") == [
        ".hidden/h.py:1:x = 1", "a/z.txt:1:x = 1", "a/z.txt:2:last x = 1", "a.b/n.md:1:x = 1", "b.py:2:x = 1",
        "latin:1:caf\ufffd x = 1",
    ]  # fmt: skip
    assert await grep(searcher, context, "x = 1", glob="*.{py,md}") == [
        ".hidden/h.py:1:x = 1", "a/deep/c.py:2:    return 'x = 1'", "a.b/n.md:1:x = 1", "b.py:2:x = 1",
    ]  # fmt: skip
    assert await grep(searcher, context, "x = 1", glob="a/**/*.py", files_only=True) == ["a/deep/c.py"]
    assert await grep(searcher, context, "X =", ignore_case=True, path="b.py") == ["b.py:2:x = 1", "b.py:4:X = 3"]
    assert await grep(searcher, context, "x", path="a", files_only=True) == ["a/deep/c.py", "a/z.txt"]
    assert await grep(searcher, context, "^(import|X)", context=1, path="b.py") == [
        "b.py:1:import os", "b.py-2-x = 1", "b.py-3-y = 2", "b.py:4:X = 3",
    ]  # fmt: skip
    assert await grep(searcher, context, "x = 1", path="build") == ["build/out.py:1:x = 1"]
    assert await grep(searcher, context, "no such thing") == ["No matches."]
    assert await grep(searcher, context, "x = 1", glob="*.log") == ["No matches."]


@pytest.mark.forms(1)
@pytest.mark.parametrize("searcher", SEARCHERS)
async def test_a_match_may_go_over_several_lines(searcher: str, context: ToolContext) -> None:
    (context.root / "f.py").write_text("def one(\n    a,\n    b,\n):\n    pass\n\ndef two(c):\n    pass\n")
    ones = ["f.py:1:def one(", "f.py:2:    a,", "f.py:3:    b,", "f.py:4:):"]
    assert await grep(searcher, context, r"def one\((\n +\w,)+\n\)", path="f.py") == ones
    assert await grep(searcher, context, "def one\\(\n    a", path="f.py") == ones[:2]
    assert await grep(searcher, context, r"one.+?\)", path="f.py", multiline=True) == ones
    assert await grep(searcher, context, r"one.+?\)", path="f.py") == ["No matches."]
    assert await grep(searcher, context, r"^def two.*\n.*$", path="f.py") == ["f.py:7:def two(c):", "f.py:8:    pass"]
    assert await grep(searcher, context, r"pass\n\ndef", path="f.py", context=1) == [
        "f.py-4-):", "f.py:5:    pass", "f.py:6:", "f.py:7:def two(c):", "f.py-8-    pass",
    ]  # fmt: skip
    assert await grep(searcher, context, r"\n    pass", path="f.py", context=1) == [
        "f.py-3-    b,", "f.py:4:):", "f.py:5:    pass", "f.py-6-", "f.py:7:def two(c):", "f.py:8:    pass",
    ]  # fmt: skip
    assert await grep(searcher, context, r"a,\n", files_only=True) == ["f.py"]
    assert await grep(searcher, context, r"pass\n\Z" if not searcher else r"pass\n\z", path="f.py") == [
        "f.py:8:    pass"
    ]
    (context.root / "g.py").write_text("x\n" * 50 + "y" * 600 + "\nend\n" + "z" * 600)
    *_, last, more = await grep(searcher, context, r"x\nx.*end\nz", path="g.py", multiline=True)
    assert (last, more) == ("g.py:30:x", "[… 23 more lines of this match]")
    first, second = await grep(searcher, context, r"end\nz", path="g.py")
    assert first == "g.py:52:end" and second.endswith("z…") and len(second) < 520


@pytest.mark.parametrize("searcher", SEARCHERS)
async def test_hostile_patterns_names_and_lines(searcher: str, context: ToolContext) -> None:
    name = os.fsencode(context.root) + b"/\x1b[31m\n\xff"
    Path(os.fsdecode(name)).write_bytes(b"needle\x1b]0;owned\x07\n" + b"y" * 2_000_000 + b"needle" + b"y" * 9_000)
    first, second = await grep(searcher, context, "needle")
    assert first.endswith(":1:needle␛]0;owned␇") and "\x1b" not in first and "␊" in first
    assert "needle" in second and len(second) < 700
    for pattern in ("-e", "--pre=evil", "-f/etc/passwd", "$(touch owned)"):
        assert await grep(searcher, context, pattern) == ["No matches."]
    with pytest.raises(ToolError, match="grep: "):
        await grep(searcher, context, "(")
    with pytest.raises(ToolError, match="NUL"):
        await grep(searcher, context, "a\0b")
    with pytest.raises(ToolError, match="does not exist"):
        await grep(searcher, context, "x", path="nowhere")


@pytest.mark.slow
async def test_a_line_of_any_length_is_searched_in_pieces(context: ToolContext) -> None:
    text = bytearray(b"y" * (5 * PIECE) + b"\nshort\n")
    for place in (PIECE - 3, 2 * PIECE - 70_000, 3 * PIECE + 5):
        text[place : place + 6] = b"needle"
        (context.root / "long").write_bytes(text)
        (line,) = await grep("", context, "needle", path="long")
        assert line.startswith("long:1:…") and "needle" in line and line.endswith(f"[{5 * PIECE:,} bytes]")
        assert len(line) < 700
        text[place : place + 6] = b"yyyyyy"
    (context.root / "long").write_bytes(text)
    assert await grep("", context, "^short", path="long") == ["long:2:short"]
    for inside in ("yz$", "^yz", "y\\Z(?<!y)"):
        assert await grep("", context, inside, path="long") == ["No matches."]
    assert await grep("", context, "^y", path="long", context=1) != ["No matches."]
    assert (await grep("", context, "z+", path="long"))[1].startswith("[in lines of more than 1,048,576 bytes")


async def test_an_expression_without_end_is_ended(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep_tool, "TIMEOUT", 0.5)
    (context.root / "trap").write_bytes(b"a" * 60 + b"b\n")
    assert await grep("", context, "(a+)+$", path="trap") == ["[stopped after 0.5 s; narrow the search]"]


@pytest.mark.quick
@pytest.mark.parametrize("searcher", SEARCHERS)
async def test_many_matches_are_cut(searcher: str, context: ToolContext) -> None:
    (context.root / "many").write_text("needle\n" * 5_000)
    lines = await grep(searcher, context, "needle")
    assert len(lines) == 201
    assert lines[-1] == "[more matches than the 200 shown; narrow the search]"


async def test_the_searched_folder_supplies_no_code(context: ToolContext) -> None:
    for name in ("json.py", "re.py", "agent_tui/__init__.py", "sitecustomize.py", "pathspec.py"):
        (context.root / name).parent.mkdir(exist_ok=True)
        (context.root / name).write_text("from pathlib import Path; Path('owned').touch(); raise SystemExit(9)\n")
    assert await grep("", context, "import os") == ["b.py:1:import os"]
    assert not (context.root / "owned").exists()


@pytest.mark.quick
async def test_glob(context: ToolContext) -> None:
    async def glob(pattern: str, **more: str) -> list[str]:
        return (await GlobTool().run({"pattern": pattern, **more}, context)).text.splitlines()

    assert await glob("*.py") == [".hidden/h.py", "a/deep/c.py", "b.py"]
    assert await glob("**/*.py") == [".hidden/h.py", "a/deep/c.py", "b.py"]
    assert await glob("a/*") == ["a/z.txt"]
    assert await glob("*.{md,txt}", path="a") == ["a/z.txt"]
    assert await glob("nothing") == ["No files match."]
    assert await glob("link") == ["link"]

    root = context.root
    assert await glob(f"{root}/**/*.py") == await glob("**/*.py")
    assert await glob(f"{root}/a/*") == ["a/z.txt"] and await glob(f"{root}/b.py") == ["b.py"]
    assert await glob("/b.py") == ["b.py"] and await glob("/c.py") == ["No files match."], "the top of the project"
    assert await glob("../a/*.txt", path="a.b") == ["a/z.txt"]
    for outside in (f"{root.parent}/*", "../*", "~/*"):
        intent = GlobTool().intent({"pattern": outside}, context)
        assert not intent.paths[0].is_relative_to(root), "it is judged by where it leads"


@pytest.mark.quick
@every(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a/b/c.py", True),
        ("/*.py", "a/c.py", False),
        ("src/**", "src/a/b", True),
        ("src/**", "srcs/a", False),
        ("src/**/x", "src/x", True),
        ("src/*", "src/a/b", False),
        ("**/t/*.py", "a/t/b.py", True),
        ("[a-c].py", "b.py", True),
        ("{a,b}/{c,d}", "b/c", True),
        ("a?c", "abc", True),
        ("a.c", "abc", False),
        ("*a" * 30 + "b", "a" * 200, False),
        ("**/" * 40 + "x", "/".join("a" * 40), False),
    ],
)
def test_globs(pattern: str, path: str, matches: bool) -> None:
    assert Glob(pattern).matches(path) is matches


@pytest.mark.quick
def test_too_many_alternatives_are_refused() -> None:
    with pytest.raises(ToolError, match="alternatives"):
        Glob("{a,b}" * 10)


@pytest.mark.quick
@pytest.mark.parametrize(("searcher", "dialect"), [("", "Python's syntax"), ("/usr/bin/rg", "no lookaround")])
def test_the_dialect_and_the_cap_are_said(searcher: str, dialect: str) -> None:
    said = GrepTool(searcher).schema.description
    assert dialect in said and "at most 200 matches" in said


@pytest.mark.parametrize("searcher", SEARCHERS)
async def test_a_pattern_that_cannot_be_used_names_the_dialect(searcher: str, context: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"The pattern is a regex \((Rust|Python)'s syntax.*backslash"):
        await grep(searcher, context, "f(")


def test_ignore_files_take_no_time_whatever_they_say(tmp_path: Path) -> None:
    """Matched by a search that goes back, each of these lines takes longer than anybody lives."""
    stars, folders = "*a" * 30, "/".join(["**/a"] * 30)
    (tmp_path / ".gitignore").write_text(f"{stars}b\n{folders}/b\n*[!x]{stars}[b]\n**{stars.replace('*', '**')}b/\n")
    deep = tmp_path.joinpath(*["a"] * 100)
    deep.mkdir(parents=True)
    for folder in (tmp_path, deep):
        (folder / ("a" * 200)).touch()
    found = [entry.path for entry in walk(tmp_path, tmp_path) if not entry.is_dir]
    assert found == [".gitignore", "/".join(["a"] * 100 + ["a" * 200]), "a" * 200]


@pytest.mark.slow
def test_ignore_files_mean_what_pathspec_makes_of_them() -> None:
    chosen = random.Random(7)
    for _ in range(examples(1_000, 20_000)):
        line = "".join(
            chosen.choices(["a", "b", "*", "**", "/", "?", "[ab]", "**/", "/**/", "\\*"], k=chosen.randint(1, 9))
        )
        try:
            patterns = [p for p in GitIgnoreSpec.from_lines([line]).patterns if isinstance(p, RegexPattern)]
        except ValueError:
            continue
        for regex in (p.regex for p in patterns if p.regex is not None):
            names = ("".join(chosen.choices("ab*", k=chosen.randint(1, 4))) for _ in range(chosen.randint(1, 6)))
            path = "/".join(names) + chosen.choice(["", "/"])
            assert bool(regex.search(path)) == bool(linear(regex).search(path)), (line, path)
