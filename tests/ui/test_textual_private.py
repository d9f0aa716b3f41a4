"""What is private to Textual: all of it in one package."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from textual.app import App
from textual.containers import Vertical
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.widgets import Input, Static, TextArea

from agent_tui.ui import textual_private
from tests.support.every import every

pytestmark = pytest.mark.quick

SEAM = Path(textual_private.__file__).parent
UI = SEAM.parent
FILES = [path for path in sorted(UI.rglob("*.py")) if path.parent != SEAM]
IMPORTED = re.compile(r"from textual\S* import [^\n]*(\b_|\()")
FUTURE = "from __future__ import annotations"
BASES: tuple[type, ...] = (App, ModalScreen, ScrollView, TextArea, Input, Static, Vertical, LinuxDriver)
"""What the screen's classes are made from."""


@cache
def given_to_instances(module: str) -> set[str]:
    """Private names that the classes of a module give their instances."""
    return set(re.findall(r"\bself\.(_[a-z]\w*)", inspect.getsource(importlib.import_module(module))))


@cache
def private_names(*owners: type) -> set[str]:
    """Names with an underscore that classes or their bases have or give their instances."""
    bases = {base for owner in owners for base in owner.__mro__ if base.__module__.startswith("textual")}
    names = {name for owner in owners for name in dir(owner) if is_private(name)}
    return names.union(*map(given_to_instances, {base.__module__ for base in bases}))


def is_private(name: str) -> bool:
    return re.match(r"_[a-z]", name) is not None


def of_itself(node: ast.expr) -> bool:
    """Tells ``self`` and ``super()`` from other expressions."""
    return ast.unparse(node) in ("self", "super()")


def uses_of_private_names(tree: ast.Module, textual: set[str]) -> Iterator[str]:
    """Private attributes of something else, private modules of Textual, and own names that Textual has too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual"):
            if "._" in (node.module or "") or any(is_private(name.name) for name in node.names):
                yield f"line {node.lineno}: import from {node.module}"
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own and node.attr in textual:
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ClassDef) and node.bases:
            for inner in ast.walk(node):
                name = inner.name if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) else ""
                if isinstance(inner, ast.Attribute) and is_private(inner.attr) and of_itself(inner.value):
                    name = inner.attr
                if is_private(name) and name in textual:
                    yield f"line {getattr(inner, 'lineno', node.lineno)}: {node.name}.{name}"


@every("path", FILES)
def test_nothing_else_uses_what_is_private_to_textual(path: Path) -> None:
    textual, text = private_names(*BASES), path.read_text("utf-8")
    if "textual._" in text or not textual.isdisjoint(re.findall(r"\b_[a-z]\w*", text)) or IMPORTED.search(text):
        assert list(uses_of_private_names(ast.parse(text), textual)) == []


@every(
    "source",
    [
        "from textual._xterm_parser import XTermParser",
        "driver = app._driver",
        "class A(Widget):\n    def _scroll_to(self): ...",
        "class A(Widget):\n    def go(self): self._scroll_update(1)",
        "class A(Widget):\n    def go(self): super()._dispatch_message(1)",
    ],
)
def test_a_use_elsewhere_would_be_found(source: str) -> None:
    textual = private_names(*BASES)
    assert list(uses_of_private_names(ast.parse(source), textual))
