"""Finds code that treats a provider or a family of models by its name instead of reading its record."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields

from agent_tui.providers.catalog import DIALECTS, MODEL_FAMILIES, UNKNOWN
from agent_tui.providers.dialects.record import Dialect, ModelFamily

NAMES = frozenset(DIALECTS) | (frozenset(MODEL_FAMILIES) - {UNKNOWN.name})
FIELDS = frozenset(f.name for record in (Dialect, ModelFamily) for f in fields(record)) - {"name"}
"""What a record says may be compared with a word, also one that is somebody's name: the word names a form."""

_BEGINNINGS = ("startswith", "endswith", "removeprefix", "removesuffix", "partition")
_LEAST = 5
"""Letters from which on the beginning of a name is taken for one."""
MAY_NAME = re.compile(rf"[\"'](?:{'|'.join(sorted({re.escape(name[:_LEAST]) for name in NAMES}))})")
"""What a source has that names one."""


def comparisons(source: str) -> Iterator[tuple[int, str]]:
    """Line and words of every comparison with a name, every test of its beginning, and every collection of names."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left, _, others):
                sides = [left, *others]
                if any(_says_name(side) for side in sides) and not any(_is_field(side) for side in sides):
                    yield node.lineno, ast.unparse(node)
            case ast.Call(ast.Attribute(_, method), arguments) if method in _BEGINNINGS:
                if any(_begins_name(word) for argument in arguments for word in _words(argument)):
                    yield node.lineno, ast.unparse(node)
            case ast.Match(subject, cases) if not _is_field(subject):
                for value in (v for case in cases for v in ast.walk(case.pattern) if isinstance(v, ast.MatchValue)):
                    if _says_name(value.value):
                        yield value.lineno, ast.unparse(value)
            case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
                if _says_name(node):
                    yield node.lineno, ast.unparse(node)[:100]
            case _:
                pass


def _is_field(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in FIELDS


def _says_name(node: ast.expr) -> bool:
    return any(word in NAMES for word in _words(node))


def _begins_name(word: str) -> bool:
    bare = word.rstrip("/")
    return bare in NAMES or (len(bare) >= _LEAST and any(name.startswith(bare) for name in NAMES))


def _words(node: ast.expr | None) -> Iterator[str]:
    match node:
        case ast.Constant(str(word)):
            yield word
        case ast.Tuple(items) | ast.List(items) | ast.Set(items):
            for item in items:
                yield from _words(item)
        case ast.Dict(keys):
            for key in keys:
                yield from _words(key)
        case ast.Call(ast.Name("frozenset" | "set" | "tuple" | "list" | "dict"), arguments):
            for argument in arguments:
                yield from _words(argument)
        case _:
            pass
