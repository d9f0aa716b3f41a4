"""The product as a script uses it: headless runs on one store, the exported session, the bodies that went out."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import context_json
from agent_tui.config import AgentConfig, ContextConfig, ModelConfig, PermissionsConfig, Settings, ToolsConfig
from agent_tui.engine.agent import Agent
from agent_tui.headless.run import run_headless
from agent_tui.options import Options
from agent_tui.paths import Paths
from agent_tui.providers.client import ModelClient
from agent_tui.store.export_data import to_json
from agent_tui.store.store import Store
from tests.support import recorded
from tests.support.agents import parts_for
from tests.support.loopback import Loopback, Recorded, Reply

KEY_VARIABLE = "TEST_PROVIDER_KEY"
"""Set in the environment of the tests' worker."""


@dataclass(slots=True)
class Product:
    """A home folder with a configuration. Every ``run`` is a process of its own as far as the store can tell; only
    the provider worker is shared."""

    home: Path
    worker: ModelClient
    models: dict[str, ModelConfig]
    step_limit: int = 1
    exact_counting: Any = "off"
    session: str = ""
    code: int = 0
    disabled: list[str] = field(default_factory=list)
    web_search: str = "off"
    deny: list[str] = field(default_factory=list)

    def agent(self, model: str | None = None, *, fresh: bool = False, extra_tools: Any = None) -> Agent:
        settings = Settings(
            default_model=next(iter(self.models)),
            models=self.models,
            context=ContextConfig(exact_counting=self.exact_counting),
            tools=ToolsConfig(disabled=self.disabled, web_search=self.web_search),
            permissions=PermissionsConfig(mode="ask", deny=self.deny),
            agent=AgentConfig(step_limit=self.step_limit, retries=1, timeout=30.0),
        )
        parts = parts_for(
            self.home,
            self.home / "project",
            settings=settings,
            provider=lambda counter: self.worker,
            can_ask=False,
            resume=self.session if self.session and not fresh else None,
        )
        parts.counter = self.worker
        parts.extra_tools = extra_tools
        parts.model_key = model
        return Agent(parts)

    async def run(self, prompt: str, model: str | None = None, *, fresh: bool = False, **flags: Any) -> dict[str, Any]:
        """``agent-tui -p PROMPT --output-format json`` (with ``--resume`` after the first time): what it printed."""

        async def make() -> Agent:
            return self.agent(model, fresh=fresh)

        out = io.StringIO()
        self.code = await run_headless(make, Options(prompt=prompt, output_format="json", **flags), out)
        summary: dict[str, Any] = json.loads(out.getvalue())
        self.session = summary["session_id"]
        return summary

    def export(self) -> dict[str, Any]:
        """``agent-tui export ID --format json``."""
        paths = Paths(self.home / "config", self.home / "data", self.home / "state", self.home / "cache")
        with Store.open(paths.database) as store:
            exported: dict[str, Any] = json.loads(to_json(store.export(self.session)))
        return exported

    async def context(self, model: str | None = None) -> dict[str, Any]:
        """``agent-tui context --session ID --json``."""
        agent = self.agent(model)
        try:
            return context_json(ContextReport(await agent.inspect()))
        finally:
            await agent.close()

    def answers(self) -> list[dict[str, Any]]:
        """The exported answers, in order."""
        return [m for m in self.export()["messages"] if m["role"] == "assistant"]

    def steps(self) -> list[dict[str, Any]]:
        return [s for s in self.export()["steps"] if s["kind"] == "turn"]


def model(name: str, server: Loopback, path: str = "", **more: Any) -> ModelConfig:
    """A configured model whose address is the loopback server."""
    return ModelConfig(name, api_base=server.url + path, api_key_env=KEY_VARIABLE, **more)


def calls(server: Loopback) -> list[Recorded]:
    """The model calls that arrived, without look-ups of local servers."""
    return [request for request in server.requests if request.method == "POST"]


def chain(name: str) -> list[str]:
    """A recording and the steps that continue it."""
    found = [name]
    while f"{name}.step{len(found) + 1}" in recorded.names():
        found.append(f"{name}.step{len(found) + 1}")
    return found


def first_steps() -> list[str]:
    return [name for name in recorded.names() if ".step" not in name]


def reply(name: str) -> Reply:
    return Reply(recorded.body(name), content_type=recorded.load(name)["content_type"])


def parts_of(answer: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [part for part in answer["parts"] if part["type"] == kind]


def export_differences(name: str, answer: Mapping[str, Any], step: Mapping[str, Any]) -> list[str]:
    """What of a recording is not in the exported answer and its step."""
    expected = recorded.load(name)["expected"]
    wrong = []
    for kind, said in (("text", expected["text"]), ("reasoning", recorded.reasoning_of(name))):
        if (got := "".join(p["text"] for p in parts_of(answer, kind))) != said:
            wrong.append(f"{kind} {got[:60]!r}")
    wanted = [c.get("function") or c for c in expected["tool_calls"]]
    found = parts_of(answer, "tool_call")
    if [c["name"] for c in found] != [w["name"] for w in wanted]:
        wrong.append("tool calls")
    for call, want in zip(found, wanted, strict=False):
        arguments = want["arguments"] if isinstance(want["arguments"], dict) else json.loads(want["arguments"] or "{}")
        if json.loads(call["arguments"] or "{}") != arguments:
            wrong.append(f"arguments of {call['name']}")
    stored = [leaf for part in answer["parts"] for leaf in leaves(part.get("provider_metadata"))]
    wrong += [f"metadata {key}" for key, value in recorded.opaque(name) if value not in stored]
    usage, said = step["usage"], expected["usage"]
    for key in ("input", "output", "reasoning", "cache_read", "cache_write"):
        if key == "reasoning" and usage.get("reasoning_source") == "estimated":
            continue
        if (usage[f"{key}_tokens"] or 0) != (said[key] or 0):
            wrong.append(f"{key} {usage[f'{key}_tokens']} for {said[key]}")
    if usage["source"] != "provider":
        wrong.append("usage is estimated")
    return wrong


def resent_differences(name: str, sent: Any) -> list[str]:
    """What of a recording's reasoning and metadata is not in the body of a later request."""
    there = list(leaves(sent))
    wrong = [
        key
        for key, value in recorded.opaque(name)
        if value not in there and (key != "id" or str(value).startswith("rs_"))
    ]
    text = recorded.reasoning_of(name)
    strings = [x for x in there if isinstance(x, str)]
    summaries = [x for x in strings if x and x in text]
    if text and text not in strings and text not in "\n\n".join(summaries):
        wrong.append("reasoning")
    return wrong


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value
