"""The program does not grow by the way: its figures are held."""

from __future__ import annotations

import ast

import pytest

from tests import figures

pytestmark = pytest.mark.quick


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
