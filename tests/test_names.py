"""Code that is named in a string (started in a child, patched, listed) is not seen by any checker: it must exist."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = re.compile(r"from (agent_tui[\w.]*) import (\w+(?:, *\w+)*)")
DOTTED = re.compile(r"(?<![\w./@-])agent_tui(?:\.[A-Za-z_]\w*)+")
LOGGERS = {"agent_tui.host", "agent_tui.worker"}
"""Names of loggers that are not modules."""


def exists(name: str) -> bool:
    """Whether a dotted name is a module or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def named(source: str) -> set[str]:
    """The names of our own code in the strings of a source."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for imported in IMPORTED.finditer(node.value):
                names |= {f"{imported[1]}.{name.strip()}" for name in imported[2].split(",")}
            names |= set(DOTTED.findall(node.value))
    return names - LOGGERS


def test_the_walk_finds_what_it_looks_for() -> None:
    assert named("x = 'from agent_tui.paths import gone, user_paths'") == {
        "agent_tui.paths",
        "agent_tui.paths.gone",
        "agent_tui.paths.user_paths",
    }
    assert not exists("agent_tui.paths.gone") and exists("agent_tui.paths.user_paths") and not exists("agent_tui.gone")


def test_what_a_string_names_is_there() -> None:
    files = (path for room in ("agent_tui", "tests") for path in (ROOT / room).rglob("*.py"))
    found = {path: named(path.read_text("utf-8")) for path in files if path != Path(__file__)}
    missing = {name for name in set().union(*found.values()) if not exists(name)}
    assert [(str(path), name) for path, names in found.items() for name in names & missing] == []
