"""A name of a closed list is compared with members of that list alone.

mypy says so of ``==``, but not of ``in`` beside strings: there a name that the list no longer has is never found. So in
a copy each ``in`` is written as comparisons, and the copy is checked.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import REPOSITORY

PROBE = """
from typing import Literal
def found(word: Literal["setting", "paused"]) -> bool:
    return word in ("paused", "off")
"""


class EachCompared(ast.NodeTransformer):
    """``x in ("a", "b")`` becomes ``any((x == "a", x == "b"))``."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Compare(left, [ast.In() | ast.NotIn()], [ast.Tuple(names) | ast.Set(names) | ast.List(names)]):
                if all(isinstance(name, ast.Constant) and isinstance(name.value, str) for name in names):
                    compared: list[ast.expr] = [ast.Compare(left, [ast.Eq()], [name]) for name in names]
                    return ast.Call(ast.Name("any", ast.Load()), [ast.Tuple(compared, ast.Load())], [])
        return node


@pytest.mark.slow
def test_no_name_is_looked_for_that_a_closed_list_does_not_have(tmp_path: Path) -> None:
    files = {path.relative_to(REPOSITORY): path.read_text("utf-8") for path in REPOSITORY.glob("agent_tui/**/*.py")}
    files[Path("agent_tui/probe.py")] = PROBE
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        changed = ast.fix_missing_locations(EachCompared().visit(ast.parse(text)))
        (tmp_path / path).write_text(ast.unparse(changed), "utf-8")
    config = str(REPOSITORY / "pyproject.toml")
    mypy = [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", str(tmp_path / "cache"), "agent_tui"]
    said = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    wrong = [line for line in said.splitlines() if "[comparison-overlap]" in line]
    assert len(wrong) == 1 and wrong[0].startswith("agent_tui/probe.py:"), "\n".join(wrong)
