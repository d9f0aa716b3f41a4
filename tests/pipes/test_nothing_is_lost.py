"""Every message of every pipe, with every field other than its default, arrives as it was sent."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent_tui.pipes import pipe as lines
from agent_tui.pipes.pipe import BadLineError, PipeLanguage, UnknownNameError
from agent_tui.providers.worker import protocol
from agent_tui.tools.mcp import protocol as host_protocol
from tests.support.every import every
from tests.support.filled import every_field, filled

pytestmark = pytest.mark.quick

LANGUAGES = {
    "to worker": protocol.TO_WORKER,
    "from worker": protocol.FROM_WORKER,
    "to host": host_protocol.TO_HOST,
    "from host": host_protocol.FROM_HOST,
}
MESSAGES = [
    pytest.param(language, cls, id=f"{where}: {name}")
    for where, language in LANGUAGES.items()
    for name, cls in language.messages.items()
]


@dataclass
class _Inner:
    text: str = ""


@dataclass
class _Message:
    number: int = 0
    inner: list[_Inner] = field(default_factory=list)


@dataclass
class _LaterMessage:
    number: int = 0
    later: str = ""
    inner: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class _LaterInside:
    number: int = 0
    inner: list[dict[str, Any]] = field(default_factory=list)


@every(("language", "cls"), MESSAGES)
def test_every_message_arrives_whole(language: PipeLanguage, cls: type[Any]) -> None:
    sent = list(filled(cls))
    assert sent
    for message in sent:
        line = language.line(message, 12)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        call_id, arrived = language.read(line)
        assert call_id == 12
        assert every_field(arrived) == every_field(message)


OLD, NEW = PipeLanguage({"m": _Message}), PipeLanguage({"other": _Inner})
SURPRISES = [
    pytest.param(PipeLanguage({"m": _LaterMessage}).line(_LaterMessage(4, "x"), 9), "field _Message.later", id="field"),
    pytest.param(
        PipeLanguage({"m": _LaterInside}).line(_LaterInside(4, [{"text": "t", "odd": 1}]), 9),
        "field _Inner.odd",
        id="field of a field",
    ),
    pytest.param(NEW.line(_Inner("x"), 9), "operation other", id="operation"),
]


@pytest.mark.parametrize(("line", "named"), SURPRISES)
def test_an_unknown_name_is_an_error_in_tests(line: bytes, named: str) -> None:
    with pytest.raises(UnknownNameError, match=named) as error:
        OLD.read(line)
    assert error.value.id == 9


@pytest.mark.parametrize(("line", "named"), SURPRISES)
def test_an_unknown_name_is_one_line_of_the_log_in_production(
    line: bytes, named: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(lines.STRICT)
    monkeypatch.setattr(lines, "_told", set())
    known = json.loads(line)
    with caplog.at_level(logging.WARNING, "agent_tui"):
        for _ in range(3):
            call_id, message = OLD.read(line)
            assert call_id == 9
            if known["op"] == "m":
                assert message.number == 4
                assert [i.text for i in message.inner] == [i["text"] for i in known["v"]["inner"]]
            else:
                assert message is None
    (told,) = [r.getMessage() for r in caplog.records]
    assert f"unknown {named}" in told


@every("line", [b"", b"\xff", b"[]", b"{}", b'{"op":"m"}', b'{"op":"m","id":"x"}', b"42"])
def test_what_is_no_line_is_one_error(line: bytes) -> None:
    with pytest.raises(BadLineError):
        OLD.read(line)


def test_a_message_that_lacks_something_says_whose_it_is() -> None:
    with pytest.raises(BadLineError, match="seen") as error:
        protocol.FROM_WORKER.read(b'{"op":"failed","id":5,"v":{}}')
    assert error.value.id == 5
