"""How large the program is, in figures that are held: ``python -m tests.figures`` prints them.

``CEILINGS`` is what they are today. A change that needs more raises one and says why, one that needs less lowers it.
Nothing limits a single file: it has one subject, and is as long as that.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.entered import to_the_provider

ROOT = Path(__file__).resolve().parents[1]
MANY_PARAMETERS = 8

CEILINGS = {
    "files of the program": 529,
    "lines of the program": 116_783,
    "protocols": 22,
    f"functions with more than {MANY_PARAMETERS} parameters": 2,
    "private names of Textual": 35,
    "files entered from Agent.submit to the provider": 82,
    "files entered by one Anthropic call": 27,
    "lines of tests/support": 13_711,
}


def sources(folder: str) -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in sorted((ROOT / folder).rglob("*.py"))}


def lines(texts: Mapping[Path, str]) -> int:
    return sum(text.count("\n") for text in texts.values())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node: no expression holds one."""
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, block, ()):
            yield inner
            yield from statements(inner)


def is_protocol(node: ast.AST) -> bool:
    """Whether this is ``class A(Protocol)`` or ``class A(Protocol[T])``."""
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    plain = [base.value if isinstance(base, ast.Subscript) else base for base in bases]
    return any(ast.unparse(base).rpartition(".")[2] == "Protocol" for base in plain)


def parameters(node: ast.AST) -> int:
    """How many a function takes beside its object."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return 0
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([argument for argument in named if argument.arg not in ("self", "cls")])


def private_to_textual(product: Mapping[Path, str]) -> set[str]:
    """Names that the one place for them uses; ``tests/ui/test_textual_private.py`` finds them anywhere else."""
    places = [text for path, text in product.items() if "textual_private" in str(path)]
    assert places, "where is what is private to Textual?"
    found: set[str] = set()
    for node in (node for text in places for node in ast.walk(ast.parse(text))):
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("textual")
            and "._" in (node.module or "")
        ):
            found |= {name.name for name in node.names}
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", None) or ""
        if name.startswith("_") and not name.startswith("__"):
            found.add(name)
    return found


def figures() -> dict[str, int]:
    product = sources("agent_tui")
    inside = [node for text in product.values() for node in statements(ast.parse(text))]
    with tempfile.TemporaryDirectory() as folder:
        asked = to_the_provider(Path(folder))
    found = [
        len(product),
        lines(product),
        sum(map(is_protocol, inside)),
        sum(parameters(node) > MANY_PARAMETERS for node in inside),
        len(private_to_textual(product)),
        len(asked),
        entered_in_a_call(),
        lines(sources("tests/support")),
    ]
    return dict(zip(CEILINGS, found, strict=True))


def entered_in_a_call() -> int:
    """Counted in a process of its own: where tests had LiteLLM loaded, what it is watched by is entered, too."""
    code = "from tests.support.entered import in_a_call; print(len(in_a_call()))"
    return int(
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    )


def lower(found: Mapping[str, int]) -> list[str]:
    """The ceilings that are above what was found, with the value to put there."""
    return [f"{name}: {value:_} (not {CEILINGS[name]:_})" for name, value in found.items() if value < CEILINGS[name]]


def main() -> None:
    found = figures()
    for name, value in found.items():
        print(f"{name:50} {value:7,} {CEILINGS[name]:7,}")
    print(*("To lower in CEILINGS:", *lower(found)) if lower(found) else ("No ceiling is to be lowered.",), sep="\n")


if __name__ == "__main__":
    main()
