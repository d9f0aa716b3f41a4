"""Scripts for the demo model: a TOML file of answers, for tests, screenshots and trying out failures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, get_args

from agent_tui.errors import ConfigError
from agent_tui.models.calibration import raw_total
from agent_tui.models.failure import Failure, FailureKind
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    content_fingerprint,
)
from agent_tui.models.requests import Counter, Delta, FinishReason, ModelRequest
from agent_tui.records import dataclass

CHUNK = 14
KINDS = get_args(FailureKind)
FINISHES = get_args(FinishReason)


@dataclass(slots=True)
class ScriptedStep:
    """One scripted answer. ``delay`` is seconds between chunks of ``chunk`` characters; ``repeat`` how often it is
    used (0: for ever); ``after`` how many characters of it are streamed before ``failure``. ``usage``: numbers that
    replace the counted ones, or False for none."""

    kind: str = "turn"
    match: str = ""
    reasoning: str = ""
    text: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    delay: float = 0.0
    chunk: int = 24
    repeat: int = 1
    finish: FinishReason | None = None
    failure: Failure | None = None
    after: int = 0
    hang: bool = False
    usage: dict[str, int] | bool = True

    def fits(self, request: ModelRequest, newest: str) -> bool:
        return self.kind == request.kind and (not self.match or re.search(self.match, newest, re.I | re.S) is not None)


class Script:
    """The steps of a script; each request takes the first one that fits and is not used up."""

    def __init__(self, steps: list[ScriptedStep], window: int | None = None, max_output: int | None = None) -> None:
        self._steps = steps
        self._used = [0] * len(steps)
        self.window = window
        self.max_output = max_output

    def take(self, request: ModelRequest, newest: str) -> ScriptedStep | None:
        """The step for this request; None: the demo answers as it does without a script."""
        for number, step in enumerate(self._steps):
            if (step.repeat == 0 or self._used[number] < step.repeat) and step.fits(request, newest):
                self._used[number] += 1
                return step
        return None


def load_script(path: Path) -> Script:
    """Reads a script: ``[[step]]`` tables and, optionally, ``window`` and ``max_output`` in tokens.

    Raises ConfigError naming the file and what is wrong with it.
    """
    import tomllib

    try:
        data = tomllib.loads(path.read_text("utf-8"))
        steps = [_step(entry) for entry in data.pop("step", [])]
        script = Script(steps, data.pop("window", None), data.pop("max_output", None))
    except OSError as error:
        raise ConfigError(f"Demo script {path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"Demo script {path} is not valid: {error}.") from error
    if data:
        raise ConfigError(f"Demo script {path}: unknown key {next(iter(data))!r}; allowed: window, max_output, step.")
    return script


def _step(entry: dict[str, Any]) -> ScriptedStep:
    values = dict(entry)
    error = values.pop("error", None)
    if error is not None:
        if error["kind"] not in KINDS:
            raise ValueError(f"error kind {error['kind']!r}; allowed: {', '.join(KINDS)}")
        values["failure"] = Failure(
            error["kind"],
            error.get("message", f"The demo script says: {error['kind']}."),
            status=error.get("status"),
            retry_after=error.get("retry_after"),
        )
    if values.get("finish") not in (None, *FINISHES):
        raise ValueError(f"finish {values['finish']!r}; allowed: {', '.join(FINISHES)}")
    for call in values.get("tool_calls", []):
        if not isinstance(call.get("arguments", {}), str):
            call["arguments"] = json.dumps(call.get("arguments", {}))
    return ScriptedStep(**values)


CACHE_BLOCK = 64
"""Cache reads come in blocks of this many tokens, as several providers report them."""

BOS_TOKENS = 3
MEDIA_TOKENS = 258


class Witness:
    """Serialises requests in a chat template of its own and counts that. Remembers, per session, what it has seen,
    for cache reads. Texts are counted once."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._counts: dict[str, int] = {}
        self._seen: dict[str, list[str]] = {}

    async def input_tokens(self, request: ModelRequest) -> tuple[int, int]:
        """Tokens of the whole request, and how many of them a cache already held. Raises WorkerError."""
        texts = serialise(request)
        counts = await self.count(texts)
        total = BOS_TOKENS + sum(counts) + media_tokens(request)
        before, self._seen[request.session_id] = self._seen.get(request.session_id, []), texts
        same = 0
        for old, new, tokens in zip(before, texts, counts, strict=False):
            if old != new:
                break
            same += tokens
        return total, same // CACHE_BLOCK * CACHE_BLOCK

    async def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text. Raises WorkerError."""
        missing = list({t: None for t in texts if t and t not in self._counts})
        if missing:
            self._counts.update(zip(missing, map(raw_total, await self._counter.count(missing)), strict=True))
        return [self._counts[t] if t else 0 for t in texts]


def serialise(request: ModelRequest) -> list[str]:
    """The request as the demo model reads it, one text a message: its prefix as it is, then a chat template, at the end
    of which an answer begins. So what is known of the model (``context.tokens.FAMILIES``) is the whole truth. Reasoning
    of earlier turns is not read."""
    texts = [block.text for block in request.system]
    texts += [tool.text for tool in request.tools]
    texts += [block.text for block in request.documents]
    turn = max((i for i, sent in enumerate(request.messages) if sent.message.role == "user"), default=0)
    texts += (_message(sent.message, reasoning=i > turn) for i, sent in enumerate(request.messages))
    return [*texts, "<|assistant|>\n"]


def media_tokens(request: ModelRequest) -> int:
    """A flat price for every image or binary file."""
    parts = (part for sent in request.messages for part in sent.message.parts)
    return MEDIA_TOKENS * sum(isinstance(part, AttachmentPart) and part.text is None for part in parts)


def thought(text: str) -> str:
    """Reasoning as the model writes it."""
    return f"<think>{text}</think>\n" if text else ""


def spoken(pieces: Sequence[str]) -> str:
    """Text and calls as the model writes them, to the end of its answer."""
    return "\n".join([*(pieces or [""]), "<|end|>"])


def call(name: str, arguments: str) -> str:
    return f"<call>{name}({arguments})</call>"


@dataclass(slots=True)
class ScriptedAnswer:
    """One answer, in the order it is streamed: reasoning, text, tool calls (name and raw JSON arguments); in pieces of
    ``chunk`` characters, ``delay`` seconds apart."""

    reasoning: str = ""
    text: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    chunk: int = CHUNK
    delay: float = 0.0

    @property
    def written(self) -> list[str]:
        """Its reasoning, and all else, as the model writes them."""
        pieces = [self.text] if self.text else []
        return [thought(self.reasoning), spoken([*pieces, *(call(*made) for made in self.calls)])]

    def deltas(self, position: int) -> Iterator[tuple[Delta, float]]:
        """The pieces, each with the seconds before it. ``position`` tells the ids of equal calls apart."""
        if self.reasoning:
            for piece in self._pieces(self.reasoning):
                yield Delta(0, "reasoning", piece), self.delay
            signature = content_fingerprint(self.reasoning)
            metadata = {"demo": {"signature": signature, "id": f"rs_{signature[:10]}"}}
            yield Delta(0, "reasoning", metadata=metadata, closed=True), 0.0
        before = int(bool(self.reasoning))
        for piece in self._pieces(self.text):
            yield Delta(before, "text", piece), self.delay
        for index, (name, arguments) in enumerate(self.calls, before + bool(self.text)):
            call_id = f"call_{content_fingerprint(f'{position}.{index}{arguments}')[:12]}"
            yield Delta(index, "tool_call", call_id=call_id, name=name), self.delay
            for piece in self._pieces(arguments):
                yield Delta(index, "tool_call", piece), self.delay

    def _pieces(self, text: str) -> Iterator[str]:
        size = max(1, self.chunk)
        return (text[i : i + size] for i in range(0, len(text), size))


def _message(message: Message, reasoning: bool) -> str:
    pieces: list[str] = []
    thoughts = ""
    for part in message.parts:
        match part:
            case TextPart() | SummaryPart():
                pieces.append(part.text)
            case ReasoningPart():
                thoughts += thought(part.text) if reasoning else ""
            case ToolCallPart():
                pieces.append(call(part.name, part.arguments))
            case ToolResultPart():
                pieces.append(f"<result>{part.text}</result>")
            case AttachmentPart():
                pieces.append(part.text or f"[{part.name}]")
    return f"<|{message.role}|>\n{thoughts}{spoken(pieces)}"
