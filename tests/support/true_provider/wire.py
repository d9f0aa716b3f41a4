"""What the dialects share: the model behind them, a request as understood, a refusal, a record of what happened."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.true_provider.tokens import Tokenizer

Refusal = Literal["", "input", "output", "invalid", "failed", "told to", "only counted"]


@dataclass(slots=True, frozen=True)
class Model:
    """A model as its provider knows it. ``factor`` and ``noise`` are its tokenizer's; ``thinks``: it can reason;
    ``summarised``: the thinking it shows is shorter than what it thought and is counted for; ``details``: usage tells
    the reasoning tokens; ``templates``: a local server's, which shows its reasoning; ``alternates``: roles must;
    ``hits``: it reports the cache as DeepSeek does; ``max_output`` is the most it may be asked for."""

    name: str
    window: int
    max_output: int
    factor: float = 1.0
    noise: float = 0.015
    thinks: bool = True
    summarised: bool = False
    details: bool = False
    templates: bool = False
    alternates: bool = False
    hits: bool = False


class Refused(Exception):
    """The request is refused with this status, in the provider's own words."""

    def __init__(self, message: str, *, status: int = 400, code: str = "", why: Refusal = "invalid") -> None:
        super().__init__(message)
        self.message, self.status, self.code, self.why = message, status, code, why


@dataclass(slots=True)
class Segment:
    """A piece of the prompt in the order in which it is read. ``key`` identifies its content for the prefix cache;
    ``marked``: the client asked to cache up to here; ``block`` False: it is no content block, but what frames some."""

    kind: str
    key: str
    tokens: int
    marked: bool = False
    block: bool = True


@dataclass(slots=True)
class Question:
    """A request as the provider understood it."""

    segments: list[Segment]
    max_output: int | None
    thinking: bool
    system: str
    last_user: str
    tools: list[str]
    newest_user: int = 0
    dropped: list[dict[str, str]] = field(default_factory=list)
    may_think: bool = True

    @property
    def input(self) -> int:
        return sum(s.tokens for s in self.segments)

    def of(self, *kinds: str) -> int:
        return sum(s.tokens for s in self.segments if s.kind in kinds)


@dataclass(slots=True)
class Call:
    """A tool call of the scripted model."""

    id: str
    name: str
    arguments: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.arguments)


@dataclass(slots=True)
class Answer:
    """What the model answers. ``reasoning`` is what it shows of its thinking, ``reasoning_tokens`` what it cost.
    ``refused``: the text says that it will not."""

    text: str = ""
    reasoning: str = ""
    reasoning_tokens: int = 0
    calls: list[Call] = field(default_factory=list)
    cut: bool = False
    refused: bool = False


@dataclass(slots=True)
class Usage:
    """The truth about one answered request; ``input`` includes the cache, ``output`` the reasoning."""

    input: int
    output: int
    reasoning: int
    cache_read: int
    cache_write: int


@dataclass(slots=True)
class Exchange:
    """One request and what became of it, as the provider knows it. ``kind`` is ``turn``, ``summary`` or ``count``;
    ``fixed`` are the tokens of system prompt and tools, ``newest_user`` of the newest message of the user,
    ``thought`` of earlier thinking. ``usage`` is true; ``lied``: something else was reported."""

    number: int
    turn: int
    kind: str
    refusal: Refusal
    message: str
    input: int
    max_output: int | None
    fixed: int
    tools: int
    newest_user: int
    thinking: bool
    may_think: bool
    usage: Usage | None = None
    dropped: int = 0
    thought: int = 0
    verdict: Any = None
    lied: bool = False


class Signer:
    """Signatures over thoughts, and what each stands for. ``bound`` is what came before the thought."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self.known: dict[str, Thought] = {}

    def sign(self, text: str, tokens: int, bound: str = "", partners: Iterable[str] = ()) -> str:
        digest = hmac.new(self._secret, f"{text}\0{tokens}\0{bound}\0{len(self.known)}".encode(), hashlib.sha256)
        signature = "Eq" + digest.hexdigest()
        self.known[signature] = Thought(text, tokens, bound, tuple(partners))
        return signature


@dataclass(slots=True, frozen=True)
class Thought:
    """A thought that the provider made: shown text, real tokens, what preceded it, the calls that followed."""

    text: str
    tokens: int
    bound: str
    partners: tuple[str, ...]


@dataclass(slots=True)
class Tools:
    """What a dialect works with."""

    model: Model
    tokenizer: Tokenizer
    signer: Signer

    def count(self, text: str) -> int:
        return self.tokenizer.count(text)


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


def digest(*parts: str) -> str:
    value = hashlib.blake2b(digest_size=12)
    for part in parts:
        value.update(part.encode("utf-8", "surrogatepass"))
        value.update(b"\0")
    return value.hexdigest()


def canonical(value: Any) -> str:
    """A JSON value as text that does not depend on the order of keys, without cache markers."""
    return json.dumps(unmarked(value), sort_keys=True, ensure_ascii=False)


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(v) for v in value] if isinstance(value, list) else value


def only(value: Mapping[str, Any], allowed: Iterable[str], where: str, wording: str) -> None:
    """Refuses unknown fields in the dialect's own words."""
    for name in value:
        if name not in allowed:
            raise Refused(wording.format(name=f"{where}{name}"))


def declared(name: str, description: str | None, parameters: Mapping[str, Any]) -> str:
    """A tool as OpenAI's models read it: a type in TypeScript's manner."""
    lines = [f"// {line}" for line in (description or "").splitlines()]
    required = parameters.get("required") or ()
    fields = parameters.get("properties") or {}
    lines.append(f"type {name} = (_: {{" if fields else f"type {name} = () => any;")
    for key, value in fields.items():
        lines += [f"// {line}" for line in str(value.get("description", "")).splitlines()]
        lines.append(f"{key}{'' if key in required else '?'}: {_type(value)},")
    return "\n".join([*lines, *(["}) => any;"] if fields else [])])


def _type(value: Mapping[str, Any]) -> str:
    if "enum" in value:
        return " | ".join(json.dumps(v) for v in value["enum"])
    kind = value.get("type")
    if kind == "array":
        return f"{_type(value.get('items') or {})}[]"
    if kind == "object" and value.get("properties"):
        return "{ " + ", ".join(f"{k}: {_type(v)}" for k, v in value["properties"].items()) + " }"
    return {"integer": "number", None: "any"}.get(kind, str(kind))
