"""Pieces of very many calls: the work for each is the same however many there were."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from agent_tui.providers.dialects.chat import ChatStream
from agent_tui.providers.dialects.parts import PartBuilder
from tests.support.every import every


def work(calls: int, ids: bool, places: bool) -> tuple[int, int]:
    """How many functions are called for the pieces of so many calls, and how many calls come of them."""
    out, entered = PartBuilder(), 0
    stream = ChatStream(out)
    pieces: list[dict[str, Any]] = []
    for number in range(calls):
        piece: dict[str, Any] = {"function": {"name": "read", "arguments": f'{{"path": "a{number}"}}'}}
        piece |= ({"id": f"c{number}"} if ids else {}) | ({"index": number} if places else {})
        pieces.append(piece)

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal entered
        entered += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for piece in pieces:
            stream.event({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]})
    finally:
        sys.setprofile(None)
    return entered, len({delta.index for delta in out.take()})


@pytest.mark.slow
@every(("ids", "places"), [(True, True), (True, False), (False, True), (False, False)])
def test_each_piece_is_the_same_work(ids: bool, places: bool) -> None:
    few, made = work(100, ids, places)
    many, all_made = work(400, ids, places)
    assert (made, all_made) == (100, 400)
    assert many < 4.5 * few
