"""Records behave as the standard library's dataclasses do."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Any

import pytest

import agent_tui
from agent_tui.records import dataclass as record

pytestmark = [pytest.mark.quick, pytest.mark.versions]


def test_the_program_has_no_other_dataclasses() -> None:
    own = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    product = Path(agent_tui.__file__).parent
    other = [path for path in product.rglob("*.py") if own.search(path.read_text("utf-8"))]
    assert other == []


def classes(decorator: Any) -> dict[str, Any]:
    """The same classes, made by ``decorator``."""

    @decorator(slots=True, frozen=True)
    class Base:
        name: str
        items: list[int] = field(default_factory=list, compare=False)
        secret: str = field(default="s", repr=False, kw_only=True)

    @decorator(slots=True, frozen=True)
    class Derived(Base):
        """Has one more."""

        count: int = 1

    @decorator(slots=True)
    class Open:
        me: Any = None
        made: int = field(init=False)
        kept: list[int] = field(init=False, default_factory=lambda: [7])

        def __post_init__(self) -> None:
            self.made = 3

    @decorator
    class Own:
        name: str = ""

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    @decorator(slots=True, frozen=True)
    class Hashed:
        name: str
        items: list[int] = field(default_factory=list, hash=False)
        made: int = field(init=False, default=4)

    @decorator(frozen=True)
    class Alike:
        name: str
        note: str = field(default="", compare=False, hash=True)

        def __eq__(self, other: object) -> bool:
            return True

    @decorator(frozen=True)
    class Unhashed:
        __hash__ = None  # type: ignore[assignment]

    @decorator(frozen=True)
    class Constant:
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    made = (Base, Derived, Open, Own, Hashed, Alike, Unhashed, Constant, decorator(type("Empty", (), {})))
    return {cls.__name__: cls for cls in made}


def recursive(made: dict[str, Any]) -> str:
    one = made["Open"]()
    one.me = one
    return repr(one)


@pytest.mark.parametrize(
    "look",
    [
        lambda c: repr(c["Base"]("a", [1], secret="x")),
        lambda c: repr(c["Derived"]("a", [1], 2)),
        lambda c: (repr(c["Open"]()), repr(c["Own"]("n")), repr(c["Empty"]())),
        recursive,
        lambda c: c["Base"]("a", [1]) == c["Base"]("a", [2]),
        lambda c: c["Base"]("a", secret="x") == c["Base"]("a"),
        lambda c: (c["Base"]("a") == c["Derived"]("a"), c["Empty"]() == c["Empty"](), c["Own"]("a") == c["Own"]("b")),
        lambda c: hash(c["Derived"]("a", [1], secret="t")) == hash(c["Derived"]("a", [2], secret="t")),
        lambda c: (c["Open"].__hash__, c["Own"].__hash__, c["Unhashed"].__hash__, hash(c["Constant"]())),
        lambda c: hash(c["Hashed"]("a", [1])) == hash(c["Hashed"]("a", [2])),
        lambda c: c["Hashed"]("a", [1]) == c["Hashed"]("a", [2]),
        lambda c: (hash(c["Alike"]("a")) == hash(c["Alike"]("a")), hash(c["Alike"]("a")) == hash(c["Alike"]("a", "b"))),
        lambda c: (repr(c["Hashed"]("a")), dataclasses.replace(c["Hashed"]("a"), name="b").made),
        lambda c: dataclasses.replace(c["Derived"]("a", [1]), count=5).count,
        lambda c: dataclasses.asdict(c["Derived"]("a", [1])),
        lambda c: (c["Derived"].__match_args__, c["Open"].__match_args__, c["Derived"].__slots__),
        lambda c: [(f.name, f.init, f.kw_only, f.repr, f.compare) for f in dataclasses.fields(c["Derived"])],
        lambda c: c["Base"]("a").items is c["Base"]("a").items,
        lambda c: c["Derived"].__doc__,
    ],
)
def test_a_record_is_as_a_dataclass(look: Callable[[dict[str, Any]], object]) -> None:
    assert look(classes(record)) == look(classes(dataclasses.dataclass))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda c: setattr(c["Base"]("a"), "name", "b"), FrozenInstanceError),
        (lambda c: delattr(c["Derived"]("a"), "name"), FrozenInstanceError),
        (lambda c: c["Base"](), TypeError),
        (lambda c: c["Base"]("a", [], "secret by place"), TypeError),
        (lambda c: c["Base"]("a", nothing=1), TypeError),
        (lambda c: c["Open"](made=1), TypeError),
        (lambda c: hash(c["Open"]()), TypeError),
        (lambda c: c["Hashed"]("a", made=3), TypeError),
    ],
)
def test_and_refuses_the_same(wrong: Callable[[dict[str, Any]], object], error: type[Exception]) -> None:
    for decorator in (record, dataclasses.dataclass):
        with pytest.raises(error):
            wrong(classes(decorator))
