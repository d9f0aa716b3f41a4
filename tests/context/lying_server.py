"""A talk with a server that counts by a real vocabulary, and says something else: the ways in which servers and
gateways report an input that is not the input."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import tiktoken
from tokenizers import Tokenizer

from agent_tui.context.accounting.believed import Verdict, believe
from agent_tui.context.accounting.reports import after_step, before_step, relearned, verified_growth
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.past import given_of
from agent_tui.context.tokens import family_of, message_text_for_count
from agent_tui.models.calibration import Calibration, raw_total
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message, SummaryPart
from agent_tui.models.requests import Target
from agent_tui.models.steps import CompactionRecord, FixedPart, Step
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.providers.counting import by_kind, use_bundled_vocabulary
from tests.support.contexts import Conversation

LOCAL = Target("openai", "chat", "unheard-of", "unknown")
AROUND = 5
"""Tokens of this server's template around each message."""


@cache
def vocabularies() -> dict[str, Callable[[str], int]]:
    """How many tokens a text has by vocabularies that packages ship."""
    use_bundled_vocabulary()
    claude = Tokenizer.from_file(str(Path(os.environ["TIKTOKEN_CACHE_DIR"]) / "anthropic_tokenizer.json"))
    older = tiktoken.get_encoding("cl100k_base")
    return {
        "claude": lru_cache(None)(lambda text: len(claude.encode(text).ids)),
        "cl100k": lru_cache(None)(lambda text: len(older.encode(text, disallowed_special=()))),
        "o200k": raw,
    }


counts = cache(by_kind)


def raw(text: str) -> int:
    return raw_total(counts(text))


@cache
def _sources() -> list[list[str]]:
    """Lines of prose, of one sentence or several, of code and configuration, always the same: how far a vocabulary is
    off in a talk depends on its words, so they are not those of files that change."""
    chance = random.Random(24)
    made: list[list[str]] = []
    stems = ["".join(chance.choices(SYLLABLES, k=chance.choice([1, 2, 2, 3]))) for _ in range(300)]
    for forms in FORMS:
        said = [[chance.choice(COMMON if chance.random() < 0.6 else stems) for _ in range(9)] for _ in range(400)]
        lines = [chance.choice(forms).format(*w, number=chance.randrange(10_000), N=w[0].title()) for w in said]
        made.append([" ".join(lines[n : n + chance.choice([1, 6])]) for n in range(400)] if len(made) < 2 else lines)
    return made


SYLLABLES = (
    *("an", "ba", "con", "der", "en", "fi", "gra", "hol", "in", "ject", "kon", "lo", "men", "nor", "or", "per", "qua"),
    *("re", "sta", "tion", "ul", "ver", "wick", "xy", "zo"),
)
COMMON = (
    *("the", "a", "of", "to", "and", "is", "in", "that", "which", "every", "before", "after", "when", "keeps", "file"),
    *("model", "cache", "token", "answer", "error", "message", "count", "name", "value", "input", "output", "line"),
    *("session", "window", "summary", "tool", "result", "path", "text", "request", "server", "changed"),
)
FORMS = (
    ("- **{0} {1}**: {2} {3} {4} {5}, {6} {7} {8}.", "{N} {1} {2} {3} {4} {5} {6} {7} {8}.", "", "## {N} {1} {2}"),
    ("{N} {1} {2} {3} ({4} {5}) {6} {7} {8}; {0} {1} {2} {3}.", "> {0} {1} `{2}_{3}` {4} {5}.", "", "| {0} | {1} |"),
    ("{0}_{1} = {number}", '{0} = "{1}-{2}>={number}.0"', "[{0}.{1}]", "# {2} {3} {4} {5} {6}"),
    ("    def {0}_{1}(self, {2}: int) -> {N}:", "        return self.{3}.{4}[{number}]", "", "    # {5} {6} {7} {8}"),
    ("        if {0}_{1} is not None and {2} > {number}:", "    {3}: list[{N}] = field(default_factory=list)", "@{4}"),
)
"""What a line of each source looks like."""


def texts(seed: int) -> Iterator[str]:
    """Texts as agents send them, without end: of 1 to 4,000 tokens, now and then a table of numbers."""
    chance = random.Random(seed)
    while True:
        if chance.random() < 0.08:
            rows = chance.choice([5, 40])
            yield "\n".join(",".join(str(chance.randint(0, 99_999)) for _ in range(8)) for _ in range(rows))
            continue
        lines = chance.choice(_sources())
        count = chance.choice([1, 3, 20, 120])
        start = chance.randrange(max(1, len(lines) - count))
        yield "\n".join(lines[start : start + count]) or "Go on."


@dataclass
class Exchange:
    """One request: what it held in truth, what the server said, what was expected and is believed, and the verdict."""

    true: int
    said: int
    usage: ContextUsage
    verdict: Verdict


Lie = Callable[["Talk", int, int], TokenUsage]
"""Of the true input and output; what a server reports."""


@dataclass
class Talk:
    """``lie`` makes the report; ``hidden`` tokens are added to each request by the server."""

    lie: Lie
    seed: int = 1
    vocabulary: str = "claude"
    hidden: int = 0
    window: int = 200_000
    conversation: Conversation = field(init=False)
    accounts: Calculator = field(init=False)
    exchanges: list[Exchange] = field(default_factory=list)
    model: str = "unheard-of"
    calibration: Calibration | None = None
    number: int = 0
    thinking: str | None = "off"

    def __post_init__(self) -> None:
        self.count = vocabularies()[self.vocabulary]
        self.random = random.Random(self.seed)
        self.texts = texts(self.seed)
        self.contents: dict[str, str] = {}
        self.conversation = Conversation(target=LOCAL)
        self.accounts = self.conversation.calculator
        self.use("system", "\n".join(_sources()[0][:60]), *("\n".join(_sources()[3][n : n + 20]) for n in (0, 50, 90)))

    def use(self, *texts: str) -> None:
        self.conversation.fixed = [self.part("system" if n < 2 else "tools", text) for n, text in enumerate(texts)]

    def part(self, row: str, text: str) -> FixedPart:
        name = f"{row} {hash(text)}"
        self.contents[name] = text
        return FixedPart(row, "base", name, len(text), name, raw(text), counts=counts(text))  # type: ignore[arg-type]

    def usage(self, *, anew: bool = False) -> ContextUsage:
        limits, kept = Limits(self.window, None, 8_000), None if anew else self.accounts
        return self.conversation.usage(kept, limits=limits, effort="off", calibration=self.calibration)

    def true(self) -> int:
        """What the next request holds, by the server's vocabulary."""
        parts = sum(self.count(self.contents[part.fingerprint]) for part in self.conversation.fixed)
        messages = (i.message for i in self.conversation.view())
        return self.hidden + parts + sum(self.weight(message) for message in messages)

    def weight(self, message: Message) -> int:
        return self.count(message_text_for_count(message)) + AROUND

    def say(self, text: str | None = None) -> None:
        text = next(self.texts) if text is None else text
        self.count_up(self.conversation.say(text, raw=raw(text)))

    def step(self, calls: int = 0) -> Exchange:
        """One request and its answer, judged as the engine does."""
        usage, true = self.usage(), self.true()
        text = next(self.texts)
        self.number += 1
        names = tuple(f"c{self.number}_{n}" for n in range(calls))
        output = self.count(text) + 20 * calls
        said = self.lie(self, true, output)
        step = self.conversation.answer(
            said, text=text, calls=names, raw=raw(text) + 12 * calls, before=usage, settles=False
        )
        self.count_up(self.conversation.path[-1])
        step.answered_by, step.thinking = self.model, self.thinking
        before_step(step, usage)
        step.given = given_of(self.conversation.inputs(calibration=self.calibration), None)
        verdict = believe(self.conversation.steps, LOCAL, self.window, output)
        for other in self.conversation.steps[:-1]:
            if other.id in verdict.truth:
                after_step(other)
        after_step(step)
        self.conversation.settle(step, self.calibration, verdict)
        self.learn(step, verdict)
        for name in names:
            text = next(self.texts)
            self.count_up(self.conversation.result(name, text, raw(text)))
        self.exchanges.append(Exchange(true, said.input, usage, verdict))
        return self.exchanges[-1]

    def learn(self, step: Step, verdict: Verdict) -> None:
        if verdict.taken_back is not None:
            known = family_of(LOCAL).beginning
            self.calibration = relearned(self.conversation.steps, verdict.taken_back, known)
        known, growth = self.calibration or family_of(LOCAL).beginning, verified_growth(step)
        if growth is not None:
            self.calibration = known = known.learned(*growth)
        if verdict.always is not None:
            self.calibration = known.adding(verdict.always)

    @staticmethod
    def count_up(message: Message) -> None:
        text = message_text_for_count(message)
        message.raw_tokens, message.counts = raw(text), counts(text)

    def turn(self, tool_steps: int = 0) -> None:
        self.say()
        for _ in range(tool_steps):
            self.step(1)
        self.step()

    def summarise(self) -> None:
        """A summary in the place of all but the newest turn."""
        path = self.conversation.path
        last = max(n for n, message in enumerate(path) if message.role == "user")
        if last:
            name = f"summary{self.number}"
            part = SummaryPart("\n".join(_sources()[1][:30]), name)
            summary = self.conversation.summaries[name] = Message(name, "user", [part])
            self.count_up(summary)
            record = CompactionRecord(
                name, name, "summary", [m.id for m in path[:last]], summary_id=name, created=float(len(path))
            )
            self.conversation.records.append(record)

    def doubts(self) -> list[str]:
        return [e.verdict.doubt or "" for e in self.exchanges]


def honest(talk: Talk, true: int, output: int) -> TokenUsage:
    before = talk.exchanges[-1] if talk.exchanges else None
    return TokenUsage(true, output, cache_read=min(true, before.true) if before else 0)


def silent_of_cache(talk: Talk, true: int, output: int) -> TokenUsage:
    return TokenUsage(true, output)


def cached_twice(talk: Talk, true: int, output: int) -> TokenUsage:
    usage = honest(talk, true, output)
    return TokenUsage(true + (usage.cache_read or 0), output, cache_read=usage.cache_read)


def cached_left_out(talk: Talk, true: int, output: int) -> TokenUsage:
    usage = honest(talk, true, output)
    return TokenUsage(true - (usage.cache_read or 0), output, cache_read=usage.cache_read)


def summed(talk: Talk, true: int, output: int) -> TokenUsage:
    """A gateway that asks again and again by itself, and adds that up."""
    return TokenUsage(true * (3 if talk.exchanges else 1), output)


def all_summed(talk: Talk, true: int, output: int) -> TokenUsage:
    return TokenUsage(true + sum(e.true for e in talk.exchanges), output)


def keeps(window: int) -> Lie:
    """A server that leaves out the oldest messages until the rest fits, and says nothing."""

    def lie(talk: Talk, true: int, output: int) -> TokenUsage:
        weights = [talk.weight(i.message) for i in talk.conversation.view()]
        while true > window and len(weights) > 1:
            true -= weights.pop(0)
        return TokenUsage(min(true, window), output)

    return lie


def cuts(window: int) -> Lie:
    """One that cuts to the token."""
    return lambda talk, true, output: TokenUsage(min(true, window), output)
