"""Model requests and the items of their answers, for tests of the provider layer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent_tui.models.calibration import KINDS
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Message, user_message
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelRequest,
    ModelSpec,
    SentMessage,
    StreamItem,
    SystemBlock,
    ToolSchema,
    UsageReport,
)
from agent_tui.providers.catalog import KEY_VARIABLES

HELLO_WORLD = (1, 1, *[0] * (len(KINDS) - 2))
"""What the worker counts of ``hello world``, by kind of text."""

KEY = "sk-test-0123456789abcdef"


def no_provider_keys() -> dict[str, str | None]:
    """For ``environment``: every variable a provider's key could be found in, unset."""
    return {name: None for names in KEY_VARIABLES.values() for name in names}


def make_request(
    spec: ModelSpec,
    text: str = "hi",
    *,
    messages: list[Message] | None = None,
    tools: list[ToolSchema] | None = None,
    timeout: float = 30.0,
    session_id: str = "session",
) -> ModelRequest:
    conversation = messages if messages is not None else [user_message(text)]
    return ModelRequest(
        id="request",
        spec=spec,
        session_id=session_id,
        system=[SystemBlock("system", "Be brief.")],
        messages=[SentMessage(m, m.id) for m in conversation],
        tools=tools or [],
        max_output=1000,
        effort="off",
        timeout=timeout,
    )


@dataclass
class Answer:
    """A collected stream."""

    items: list[StreamItem] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(i.text for i in self.items if isinstance(i, Delta) and i.kind == "text")

    @property
    def arguments(self) -> str:
        return "".join(i.text for i in self.items if isinstance(i, Delta) and i.kind == "tool_call")

    @property
    def usage(self) -> UsageReport | None:
        return next((i for i in reversed(self.items) if isinstance(i, UsageReport)), None)

    @property
    def failure(self) -> Failure:
        last = self.items[-1]
        assert isinstance(last, Failed), last
        return last.failure

    @property
    def finish(self) -> Finished:
        last = self.items[-1]
        assert isinstance(last, Finished), last
        return last

    @property
    def ends(self) -> int:
        return sum(isinstance(i, (Finished, Failed)) for i in self.items)


async def collect(stream: AsyncIterator[StreamItem]) -> Answer:
    answer = Answer()
    async for item in stream:
        answer.items.append(item)
    return answer


@contextmanager
def environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Environment variables set (or unset, with None) for the time of the block."""
    before = {name: os.environ.get(name) for name in changes}
    try:
        _apply(changes)
        yield
    finally:
        _apply(before)


def _apply(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a new interpreter."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
