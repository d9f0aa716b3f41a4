"""Code that is named in a string (started in a child, patched, listed) is not seen by any checker: it must exist."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

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


def names_in(text: str) -> set[str]:
    """The names of our own code that stand in a text."""
    names = set(DOTTED.findall(text))
    for imported in IMPORTED.finditer(text):
        names |= {f"{imported[1]}.{name.strip()}" for name in imported[2].split(",")}
    return names - LOGGERS


def named(source: str) -> set[str]:
    """Those that stand in the strings of a source."""
    nodes = ast.walk(ast.parse(source))
    strings = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return set().union(*map(names_in, strings))


def test_the_walk_finds_what_it_looks_for() -> None:
    assert named("x = 'from agent_tui.paths import gone, user_paths'") == {
        "agent_tui.paths",
        "agent_tui.paths.gone",
        "agent_tui.paths.user_paths",
    }
    assert not exists("agent_tui.paths.gone") and exists("agent_tui.paths.user_paths") and not exists("agent_tui.gone")


def test_what_a_string_names_is_there() -> None:
    """Only files that have a name that is not there, at whatever place, are parsed."""
    files = [path for room in ("agent_tui", "tests") for path in (ROOT / room).rglob("*.py") if path != Path(__file__)]
    sources = {path: path.read_text("utf-8") for path in files}
    here = {path: names_in(source) for path, source in sources.items()}
    missing = {name for name in set().union(*here.values()) if not exists(name)}
    suspected = [path for path, names in here.items() if names & missing]
    assert [(str(path), name) for path in suspected for name in named(sources[path]) & missing] == []


MARKED = re.compile(r"``([A-Za-z_][\w.]*)``")
FOREIGN = {"mcp__server__tool", "skip_thought_signature_validator", "input_cost_per_token_above_200k_tokens_priority"}
"""Forms and words of others that no code of ours holds whole."""


@pytest.mark.slow
def test_what_a_comment_names_is_there() -> None:
    """A word with an underscore, in double backticks, is a name: of a module, or of something in the code."""
    files = {path: path.read_text("utf-8") for path in (ROOT / "agent_tui").rglob("*.py")}
    known = {path.stem for path in files} | {path.parent.name for path in files} | FOREIGN
    for source in files.values():
        known |= set(re.findall(r"\w+", MARKED.sub("", source)))
    missing = [
        (str(path.relative_to(ROOT)), name)
        for path, source in files.items()
        for name in MARKED.findall(source)
        for word in name.split(".")
        if "_" in word.strip("_") and word not in known
    ]
    assert missing == []


def test_the_map_names_files_that_are_there() -> None:
    """A file without a folder lies beside the one named before it, or in the folder."""
    gone: list[str] = []
    for line in (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines():
        beside = ROOT
        for name in re.findall(r"`([\w./*]+(?:\.py|/))`", line):
            found = next((p for f in (beside, ROOT / "agent_tui", ROOT) if (p := next(f.glob(name), None))), None)
            if found is None:
                gone.append(name)
            else:
                beside = found if name.endswith("/") else found.parent
    assert gone == []
