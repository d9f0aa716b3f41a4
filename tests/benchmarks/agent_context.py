"""What it brings that the model knows its own context: a long task with and without the tool `context` and the lines.

    python tests/benchmarks/agent_context.py [--steps 200] [--window 200000] [--recording FILE.jsonl] [--json]

The task is scripted: reads of large files, logs of tests, small looks; or, with ``--recording``, the results of a
recorded agent's session (``next_input.dev.jsonl``), read one after the other. The demo model does the same work in both
runs. With the tool it does what the lines suggest: asks for the status, keeps what it will need, and lets go of results
that it has used. The cache is the demo server's; prices are those of a large model (dollars per million tokens).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.config import AgentConfig, ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.context.compaction.facts import FactReader
from agent_tui.context.compaction.keep import missing_facts
from agent_tui.engine.agent import Agent
from agent_tui.engine.notes import note_in
from agent_tui.models.events import CompactionEnded
from agent_tui.models.messages import CONTEXT_NOTE, Message, recall_id, summary_text
from agent_tui.models.requests import ModelRequest
from agent_tui.providers import demo
from agent_tui.providers.demo_script import ScriptedAnswer
from tests.support.agents import TokenCounter, parts_for, running

PRICES = {"input": 3.0, "output": 15.0, "cache_read": 0.30, "cache_write": 3.75}
FACTS = 20
"""Lines that the task will need in the end, planted at even distances."""
NAME = re.compile(r"^(\d{6}) ", re.MULTILINE)
FACT = re.compile(r"The port of service \d+ is \d+\.")


@dataclass
class Outcome:
    """One run."""

    run: str
    requests: int = 0
    compactions: int = 0
    sent: int = 0
    """Tokens of all requests, summaries included."""
    cached: float = 0.0
    dollars: float = 0.0
    planted: int = 0
    """Of the planted facts, those that stand in what is sent at the end; ``recall``, those that can be called back."""
    recall: int = 0
    read: int = 0
    """Of the facts that the program reads from the conversation, those that stand; ``lost``, those that do not."""
    lost: int = 0


def scripted(folder: Path, steps: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Writes the files of the task; the calls of its steps."""
    rng = random.Random(40)
    every = max(1, steps // FACTS)
    for step in range(steps):
        kind = rng.choices(("source", "log", "look"), (4, 2, 3))[0]
        lines = {"source": rng.randrange(200, 700), "log": rng.randrange(150, 500), "look": rng.randrange(5, 40)}[kind]
        body = [f"    value_{step}_{n} = compute({rng.randrange(10_000)}, name='item {n}')" for n in range(lines)]
        if kind == "log":
            body = [
                f"tests/test_{step}.py::test_{n} PASSED [{n * 100 // lines}%] {rng.random():.3f}s" for n in range(lines)
            ]
        if step % every == 0:
            body.insert(lines // 2, f"The port of service {step} is {4_000 + step * 7}.")
        (folder / f"f{step}.txt").write_text("\n".join(body))
        yield "read", {"path": f"f{step}.txt"}


def recorded(folder: Path, steps: int, recording: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The results of a recorded session, as files that are read."""
    rows = [json.loads(line) for line in recording.read_text("utf-8").splitlines()]
    rows = [row for row in rows if row["source"] == "agent-session"]
    rows.sort(key=lambda row: int(row["id"].rpartition("-")[2]))
    texts = [
        part["text"]
        for row in rows
        for message in row["new_messages"]
        for part in message["parts"]
        if part["type"] == "tool-result" and part.get("text", "").strip()
    ]
    for step, text in enumerate(texts[:steps]):
        (folder / f"f{step}.txt").write_text(text)
        yield "read", {"path": f"f{step}.txt"}


class Worker:
    """The model: works through its calls; ``tends`` its context, beside them, once it is told how full that is."""

    def __init__(self, calls: list[tuple[str, dict[str, Any]]], tends: bool) -> None:
        self.calls, self.tends = calls, tends
        self.kept: set[str] = set()
        self.told = self.asked = False

    def answer(self, request: ModelRequest) -> ScriptedAnswer:
        if request.kind != "turn":
            return self.usual(request)
        calls = [self.calls.pop(0)] if self.calls else []
        if not calls:
            return ScriptedAnswer(text="All read.")
        if self.tends:
            calls += [("context", act) for act in self._acts([sent.message for sent in request.messages])]
        return ScriptedAnswer(text="Next.", calls=[(name, json.dumps(arguments)) for name, arguments in calls])

    usual = staticmethod(demo.compose)

    def _acts(self, messages: list[Message]) -> Iterator[dict[str, Any]]:
        answered = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=-1)
        newest, texts = messages[answered + 1 :], [_words(message) for message in messages]
        told = any(note_in(message, CONTEXT_NOTE) for message in newest)
        self.told = self.told or told
        # It notes nothing before room is short: until then it all stands in what is sent.
        read = [fact for text in texts if self.told for fact in FACT.findall(text)]
        if found := [fact for fact in dict.fromkeys(read) if fact not in self.kept]:
            self.kept.update(found)
            yield {"action": "keep", "text": " ".join(found)}
        if self.asked:
            used = [message for message in messages if message.tool_result is not None][:-3]
            mine = {recall_id(message.id) for message in used}
            names = [name for text in texts[answered + 1 :] for name in NAME.findall(text) if name in mine]
            if names:
                yield {"action": "drop", "names": names}
        if told:
            yield {"action": "status"}
        self.asked = told


async def run(name: str, calls_of: Any, window: int, tends: bool) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="agent-context-") as folder:
        project = Path(folder, "p")
        project.mkdir()
        worker = Worker(list(calls_of(project)), tends)
        settings = Settings(
            default_model="task",
            models={"task": ModelConfig(model="demo", context_window=window, max_output=32_000, prices=PRICES)},
            permissions=PermissionsConfig(mode="auto"),
            agent=AgentConfig(step_limit=10_000),
            context=ContextConfig(tell_model=tends, agent_edits="auto" if tends else "off"),
        )
        parts = parts_for(Path(folder, "home"), project, settings=settings, counter=TokenCounter(), can_ask=False)
        with mock.patch.object(demo, "compose", worker.answer):
            async with running(parts) as (agent, seen):
                agent.turns.submit("Read all files and tell me the ports.")
                await agent.turns.join()
                made = [event for event in seen.of(CompactionEnded) if event.outcome == "done"]
                return _outcome(name, agent, len(made))


def _outcome(name: str, agent: Agent, compactions: int) -> Outcome:
    found = Outcome(name, compactions=compactions)
    read = 0
    for step in agent.conversation.steps:
        usage = step.usage
        if step.kind == "count" or usage is None:
            continue
        cached = usage.cache_read or 0
        found.requests += 1
        found.sent += usage.input
        read += cached
        found.dollars += (
            (usage.input - cached) * PRICES["cache_write"]
            + cached * PRICES["cache_read"]
            + usage.output * PRICES["output"]
        ) / 1e6
    found.cached, found.dollars = round(read / max(1, found.sent), 4), round(found.dollars, 3)
    sent = [item.message for item in agent.conversation.view()]
    text = "\n".join(_words(message) for message in sent)
    every = {fact for message in agent.conversation.path for fact in FACT.findall(_words(message))}
    past = agent.conversation.past()
    gone = "\n".join(_words(message) for message in past.path if message.id in past.gone)
    found.planted = sum(fact in text for fact in every)
    found.recall = sum(fact not in text and fact in gone for fact in every)
    facts = FactReader().read(agent.conversation.path)
    found.lost = len(missing_facts(facts, text, sent))
    found.read = len(facts) - found.lost
    return found


def _words(message: Message) -> str:
    result = message.tool_result
    calls = " ".join(call.arguments for call in message.tool_calls)
    return "\n".join([message.text, summary_text(message), calls, result.text if result is not None else ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--window", type=int, default=200_000)
    parser.add_argument("--recording", type=Path)
    parser.add_argument("--json", action="store_true")
    values = parser.parse_args()
    logging.disable(logging.WARNING)

    def calls_of(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        if values.recording is not None:
            return recorded(folder, values.steps, values.recording)
        return scripted(folder, values.steps)

    found = [
        asyncio.run(run(name, calls_of, values.window, tends)) for name, tends in (("without", False), ("with", True))
    ]
    if values.json:
        print(json.dumps([asdict(each) for each in found], indent=1))
        return
    print(f"{'':<8} requests compactions tokens-sent cached    cost  facts: sent recallable  all: kept lost")
    for each in found:
        print(
            f"{each.run:<8} {each.requests:>8} {each.compactions:>11} {each.sent:>11,} {each.cached:>6.1%} "
            f"{f'${each.dollars:.2f}':>7} {each.planted:>11} {each.recall:>10} {each.read:>10} {each.lost:>4}"
        )


if __name__ == "__main__":
    main()
