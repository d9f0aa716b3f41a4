"""The program does not grow by the way: its figures are held."""

from __future__ import annotations

import ast

import pytest

from tests import figures

pytestmark = [pytest.mark.quick, pytest.mark.versions]


@pytest.mark.slow
def test_no_figure_is_above_its_ceiling() -> None:
    found = figures.figures()
    above = {name: value for name, value in found.items() if value > figures.CEILINGS[name]}
    assert above == {}, "smaller, or a higher ceiling in tests/figures.py and the reason in the commit"
    assert [name for name, value in found.items() if value == 0 and figures.CEILINGS[name]] == []
    print(*figures.lower(found), sep="\n")


@pytest.mark.parametrize(
    ("source", "protocol", "parameters"),
    [
        ("class A(Protocol): ...", True, 0),
        ("class A(B, typing.Protocol[T]): ...", True, 0),
        ("class A(ProtocolError): ...", False, 0),
        ("if x:\n    async def f(self, a, /, b, *, c=1): ...", False, 3),
    ],
)
def test_what_is_counted(source: str, protocol: bool, parameters: int) -> None:
    found = list(figures.statements(ast.parse(source)))
    assert any(map(figures.is_protocol, found)) == protocol
    assert max(map(figures.parameters, found)) == parameters


def test_every_room_has_tests_that_are_not_slow() -> None:
    """``-m "not slow"`` tries some of every room: no folder's tests are all marked."""
    rooms: dict[str, bool] = {}
    for path, text in figures.sources("tests").items():
        if path.name.startswith("test_") and not rooms.get(path.parent.name):
            made = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
            tests = [node for node in made if node.name.startswith("test_")]
            slow = [any("mark.slow" in ast.unparse(mark) for mark in node.decorator_list) for node in tests]
            rooms[path.parent.name] = not all(slow)
    assert [room for room, tried in rooms.items() if not tried] == []
