"""The demo model as a Provider: it streams in this process and answers at once, whatever else is still loading."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agent_tui.errors import WorkerError
from agent_tui.models.failure import Failure
from agent_tui.models.messages import TOLD, AttachmentPart, Message, SummaryPart, TextPart, content_fingerprint
from agent_tui.models.requests import (
    Counter,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    Reckoned,
    Started,
    StreamItem,
    UsageReport,
)
from agent_tui.models.usage import Limits, Prices, TokenUsage
from agent_tui.paths import with_home
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.demo_script import Script, ScriptedAnswer, ScriptedStep, Witness, load_script
from agent_tui.providers.demo_tour import TOPICS, VERBS, on_tour
from agent_tui.text.clean import cut
from agent_tui.text.numbers import plural

READ_WORDS = re.compile(r"\b(read|open|show|cat|look at|explain)\b", re.I)
LIST_WORDS = re.compile(r"\b(list|files?|folder|directory|project|repo(sitory)?|ls)\b", re.I)
LONG_WORDS = re.compile(r"\b(long|fill|essay|a lot|everything|detail(s|ed)?)\b", re.I)
PATH = re.compile(r"(?<![\w/.-])([\w.-]+/)*[\w-]+\.[A-Za-z0-9]{1,8}(?![\w/])")
INSTRUCTION_WORDS = re.compile(r"\b(always|never|must|only)\b", re.I)
CALL = re.compile(r"^\[assistant calls (\w+)\] (.*)$", re.M)
MAX_RULES = 6


def compose(request: ModelRequest) -> ScriptedAnswer:
    if request.kind == "compaction":
        return ScriptedAnswer(text=summary(request))
    messages = [sent.message for sent in request.messages]
    last_user = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
    question = words_in(messages[last_user]) if last_user >= 0 else ""
    results = [m for m in messages[last_user + 1 :] if m.role == "tool"]
    offered = {tool.name for tool in request.tools}
    if (shown := on_tour(question, messages, offered, request.reckoned)) is not None:
        return shown
    calls = [] if results else choose_calls(question, offered)
    seed = int(content_fingerprint(f"{last_user}{question}{len(results)}")[:8], 16)
    if calls:
        names = " and ".join(f"`{name}`" for name, _ in calls)
        thought = (
            f"The user asks: {cut(question, 160)!r}. I cannot know this without looking, so I call {names} first "
            "and answer from what comes back."
        )
        return ScriptedAnswer(thought, "I'll look at that first.\n\n", calls)
    thought = (
        f"{'I have what I need: ' + str(len(results)) + ' tool result(s). ' if results else ''}"
        f"The question is {cut(question, 160)!r}. "
        "I should answer briefly, with one example, and say what the numbers in /context mean."
    )
    number = sum(1 for m in messages if m.role == "user")
    return ScriptedAnswer(thought, body(question, results, number, seed, request.reckoned))


def choose_calls(question: str, offered: set[str]) -> list[tuple[str, str]]:
    if "read" in offered and (path := PATH.search(question)) and READ_WORDS.search(question):
        return [("read", json.dumps({"path": path.group(0)}))]
    if "list" in offered and LIST_WORDS.search(question):
        return [("list", json.dumps({"path": "."}))]
    return []


def body(question: str, results: Sequence[Message], number: int, seed: int, reckoned: Reckoned | None) -> str:
    parts = [f"## Answer {number}\n"]
    for message in results:
        if (result := message.tool_result) is not None:
            lines = result.text.splitlines()
            verdict = "failed" if result.is_error else f"returned {plural(len(lines), 'line')}, starting with"
            parts.append(f"`{result.name}` {verdict}:\n")
            parts.append("```text\n" + cut("\n".join(lines[:6]), 400).replace("```", "'''") + "\n```\n")
    parts.append(
        f"You wrote **{plural(len(question.split()), 'word')}**. I am the *demo model*, a script without a key or "
        "a network, so this is no real answer. Everything around me is real: `take the tour` shows it, and `/model` "
        "chooses a model that can answer.\n"
    )
    parts.append(OPENERS[seed % len(OPENERS)])
    examples = EXAMPLES if reckoned is None else (*EXAMPLES, example_of(reckoned))
    parts.append(examples[seed // 7 % len(examples)])
    if number == 1 or seed % 3 == 0:
        parts.append(TABLE)
    if LONG_WORDS.search(question):
        parts.append(long_text(seed))
    parts.append(CLOSERS[seed // 11 % len(CLOSERS)])
    return "\n".join(parts)


def example_of(reckoned: Reckoned) -> str:
    """The numbers that ``/context`` had for the question, in the words of ``agent-tui context --json``."""
    return f"For your message `/context` counted this:\n\n```json\n{json.dumps(asdict(reckoned))}\n```\n"


def long_text(seed: int) -> str:
    """About a thousand tokens, to fill the small window quickly."""
    lines = []
    for i in range(24):
        topic, verb = TOPICS[(seed + i * 5) % len(TOPICS)], VERBS[(seed // 3 + i) % len(VERBS)]
        lines.append(
            f"{i + 1}. **{topic}**: the session {verb} it step by step; nothing is thrown away, so item {i + 1} can "
            "be looked up again later, also after a restart."
        )
    return "\n".join(lines) + "\n"


def summary(request: ModelRequest) -> str:
    """The answer to a summary call: the sections that were asked for, filled from the transcript that came along.
    What the previous summary said of the goal, the instructions and the work done goes on."""
    messages, form = [sent.message for sent in request.messages], "\n".join(b.text for b in request.system)
    text = "\n".join(map(words_in, messages))
    if len(messages) > 1:
        # The conversation itself, and the question as its last message.
        form = words_in(messages.pop())
        text = "\n".join(f"[{message.role}] {words_in(message)}" for message in messages)
    headings = re.findall(r"^## .+$", form, re.M)
    asked = [cut(" ".join(m.split()), 140) for m in re.findall(r"^\[user\] (.*)$", text, re.M)]
    said = [cut(" ".join(m.split()), 100) for m in re.findall(r"^\[assistant\] (?:## .*\n\s*)?(.+)$", text, re.M)]
    calls = [f"{name} {cut(arguments, 60)}" for name, arguments in CALL.findall(text)]
    rules = [a for a in asked if INSTRUCTION_WORDS.search(a)]
    fill = {
        "Goal": (entries(text, "Goal") or asked or ["Talk to the demo model."])[:1],
        "Instructions and constraints": unique(entries(text, "Instructions and constraints") + rules)[:MAX_RULES],
        "Decisions": unique(entries(text, "Decisions") + said[:2])[-4:],
        "Done": unique(entries(text, "Done") + calls[-6:] + said[-3:])[-9:],
        "In progress": asked[-1:],
        "Next steps": ["Go on with the newest request."],
    }
    lines: list[str] = []
    for heading in headings:
        lines += [heading, *(f"- {entry}" for entry in fill.get(heading[3:], []) or ["(nothing)"]), ""]
    return "\n".join(lines)


def entries(text: str, heading: str) -> list[str]:
    """The list below a heading of the previous summary, which comes first in the transcript."""
    found = re.search(rf"^## {re.escape(heading)}\n((?:- .*\n)+)", text, re.M)
    lines = found.group(1).splitlines() if found else []
    return [line[2:] for line in lines if line != "- (nothing)"]


def unique(items: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(items))


def words_in(message: Message) -> str:
    """A message's text, attachments named; what the program told the model with it is not of its author."""
    return "\n".join(
        part.text if isinstance(part, (TextPart, SummaryPart)) else part.name
        for part in message.parts
        if isinstance(part, (TextPart, SummaryPart)) or (isinstance(part, AttachmentPart) and part.name not in TOLD)
    )


OPENERS = (
    "Three things to try:\n\n- `/context` shows what the next request will cost, row by row\n"
    "- `read README.md` makes me call a real tool\n- `tell me a lot` fills my small window until it is compacted\n",
    "Where the number in the status line comes from:\n\n1. what was **sent** last time, as the model counted it\n"
    "2. plus what it **answered**\n3. plus an estimate of what is *new* since then\n",
    "> A context window is not a database. What is in it costs tokens in *every* request.\n\n"
    "That is why old tool results go first when the window fills up:\n\n- they are long\n- they can be read again\n"
    "  - with the same tool\n  - at any time\n",
)

EXAMPLES = (
    "```python\ndef next_input(sent: int, answered: int, new: int) -> int:\n"
    '    """Tokens of the next request."""\n    return sent + answered + new\n```\n',
    "```bash\nagent-tui context --json | jq .total\n```\n",
)

TABLE = (
    "| row | measured | what it is |\n|---|:-:|---|\n| system prompt | no | the same in every request |\n"
    "| messages | yes | from the difference between two steps |\n| free | yes | what is left before compaction |\n"
)

CLOSERS = (
    "Anything else?",
    "I understand `read FILE`, `edit FILE`, `ask me`, `fill the window` and `tell me a lot`.",
    "My reasoning in this turn is dropped with your next message; `/context` will say so.",
)


WINDOW = 16_000
MAX_OUTPUT = 2_000
PACE_SECONDS = 0.012
COUNT_SECONDS = 20.0


class DemoProvider:
    """Deterministic for the same conversation. ``pace`` is seconds between chunks of unscripted answers; a script
    (the model's ``extra.script``, or ``script`` here) sets its own."""

    def __init__(self, counter: Counter, script: Path | None = None, pace: float = PACE_SECONDS) -> None:
        self._witness = Witness(counter)
        self._pace, self._default_script = pace, script
        self._scripts: dict[Path, Script] = {}

    def _script(self, spec: ModelSpec) -> Script | None:
        name = spec.extra.get("script") or self._default_script
        if not name:
            return None
        path = with_home(name)
        if path not in self._scripts:
            self._scripts[path] = load_script(path)
        return self._scripts[path]

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        """The demo's own limits, unless configuration or script say otherwise. Raises ConfigError for a bad script."""
        script = self._script(spec)
        window = spec.context_window or (script.window if script else None) or WINDOW
        output = spec.max_output or (script.max_output if script else None) or MAX_OUTPUT
        limits = Limits(window, None, output, "config" if spec.context_window else "demo")
        prices = Prices.per_million(spec.prices) if spec.prices else Prices(0.0, 0.0, 0.0, 0.0)
        return ModelInfo(spec, resolve_target(spec), limits, prices, reasoning=True, images=True)

    async def count_exact(self, request: ModelRequest) -> int | None:
        """None: like most local models, the demo has no counting endpoint."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        yield Started(resolve_target(request.spec))
        script = self._script(request.spec)
        newest = next((words_in(s.message) for s in reversed(request.messages) if s.message.role == "user"), "")
        scripted = script.take(request, newest) if script is not None else None
        step = scripted or ScriptedStep()
        info = await self.describe(request.spec)
        counting = asyncio.create_task(self._witness.input_tokens(request))
        try:
            if step.failure is not None and step.after == 0:
                yield Failed(step.failure)
                return
            overflow = await self._overflow(request, counting, info.limits.window)
            if overflow is not None:
                yield Failed(overflow)
                return
            if scripted is not None:
                calls = [(call["name"], call.get("arguments", "{}")) for call in step.tool_calls]
                answer = ScriptedAnswer(step.reasoning, step.text, calls, step.chunk, step.delay)
            else:
                answer = replace(compose(request), delay=self._pace)
            breaks = step.failure is not None or step.hang
            sent = 0
            for delta, delay in answer.deltas(len(request.messages)):
                if breaks and sent >= step.after:
                    break
                if delay:
                    await asyncio.sleep(delay)
                sent += len(delta.text)
                yield delta
            if step.failure is not None:
                yield Failed(step.failure)
                return
            if step.hang:
                await asyncio.Event().wait()
            report = await self._report(answer, counting, step.usage)
            if report is not None:
                yield report
            yield Finished(step.finish or ("tool_calls" if answer.calls else "stop"))
        finally:
            counting.cancel()

    async def _overflow(
        self, request: ModelRequest, counting: asyncio.Task[tuple[int, int]], window: int | None
    ) -> Failure | None:
        """Refuses what does not fit, as real models do. Only a request that could be too long waits for the count."""
        chars = sum(len(str(s.message.parts)) for s in request.messages) + sum(len(b.text) for b in request.system)
        if window is None or chars < window:
            return None
        try:
            async with asyncio.timeout(COUNT_SECONDS):
                tokens, _ = await asyncio.shield(counting)
        except (WorkerError, TimeoutError):
            return None
        asked = request.max_output or 0
        if tokens + asked <= window:
            return None
        return Failure(
            "context_overflow",
            f"The request is too long for the model: {tokens:,} tokens and {asked:,} of output, window {window:,}. "
            "Nothing is lost; /compact makes room.",
            detail=f"demo: maximum context length is {window} tokens, got {tokens} + {asked}",
            status=400,
        )

    async def _report(
        self, answer: ScriptedAnswer, counting: asyncio.Task[tuple[int, int]], told: dict[str, int] | bool
    ) -> UsageReport | None:
        if told is False:
            return None
        try:
            async with asyncio.timeout(COUNT_SECONDS):
                tokens, cached = await asyncio.shield(counting)
            reasoning, rest = await self._witness.count(answer.written)
        except (WorkerError, TimeoutError):
            return None
        counted: dict[str, Any] = {"input": tokens, "output": reasoning + rest, "reasoning": reasoning}
        counted |= {"cache_read": cached, "cache_write": tokens - cached}
        said = told if isinstance(told, dict) else {}
        return UsageReport(TokenUsage(**{name: said.get(name, number) for name, number in counted.items()}))
