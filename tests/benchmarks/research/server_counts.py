"""What a real llama.cpp is found to be, and how far the first request is from what the server then reports.

``python -m tests.benchmarks.research.server_counts [--json]``. Needs the packages xllamacpp, gguf, numpy and
mistral-common
(``tests/support/llama.py``). For each server (with and without a key, one slot and two) and each kind of text a new
session is opened, its first message sent, and the step's estimate held against the server's report; once with exact
counting, once without. ``before`` is what was shown before Enter, ``sent`` the estimate of the request.

Last figures (xllamacpp 2026.10.11549, Tekken; the window is found each time, of one slot and of two, with a key and
without): the first request of hello, code, CSV and digits is estimated 21, 15, 23 and 28 % too low without counting,
0 tokens off with it; what is shown before the first word goes from 1,541 to 1,953 (all but the message and its date).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from agent_tui.config import ContextConfig, ModelConfig, PermissionsConfig, Settings  # noqa: E402
from agent_tui.providers.client import ModelClient  # noqa: E402
from tests.support import llama  # noqa: E402
from tests.support.agents import parts_for, running  # noqa: E402

KEY_VARIABLE, KEY = "LLAMA_KEY", "secret"
TEXTS = {
    "hello": "hello",
    "code": "def area(width: float, height: float) -> float:\n    return width * height\n\n\n" * 40,
    "csv": "".join(f"2026-11-{n % 28 + 1:02},{n * 7919 % 100000},{n * 104729 % 1000 / 7:.3f}\n" for n in range(80)),
    "digits": "\n".join(f"{n * 2654435761 % 10**12:012}" for n in range(120)),
}


@dataclass(slots=True)
class Row:
    """One first request: in tokens, what was shown before Enter and sent with it, and what the server says of it."""

    server: str
    text: str
    counting: str
    window: int | None
    shown: int
    estimated: int
    reported: int

    @property
    def error(self) -> int:
        return self.estimated - self.reported


async def first_request(
    worker: ModelClient, home: Path, url: str, key: bool, text: str, exact: Literal["auto", "off"], server: str
) -> Row:
    """A new session's first turn."""
    model = ModelConfig(model="openai/tiny", api_base=f"{url}/v1", api_key_env=KEY_VARIABLE if key else None)
    settings = Settings(
        default_model="local",
        models={"local": model},
        context=ContextConfig(exact_counting=exact),
        permissions=PermissionsConfig(mode="auto"),
    )
    parts = parts_for(home, home / "project", settings=settings, provider=lambda counter: worker, counter=worker)
    async with running(parts) as (agent, _):
        await agent.context.ready()
        await agent.events.settled()
        before = agent.context.usage()
        agent.turns.submit(TEXTS[text])
        await agent.turns.join()
        step = next(s for s in agent.conversation.steps if s.kind == "turn")
        assert step.usage is not None and step.usage.source == "provider", step.failure
        return Row(
            server,
            text,
            exact,
            before.window,
            before.total,
            step.estimated_input or 0,
            step.usage.input,
        )


async def measure(home: Path, model: Path) -> list[Row]:
    worker = ModelClient()
    rows = []
    try:
        for slots, key in ((1, None), (2, KEY)):
            server = f"{slots} slot{'s' * (slots > 1)}{', key' * bool(key)}"
            with llama.serving(model, 16_384, slots=slots, key=key) as url:
                for number, (text, exact) in enumerate((t, e) for t in TEXTS for e in ("off", "auto")):
                    place = home / f"{slots}-{number}"
                    rows.append(await first_request(worker, place, url, bool(key), text, exact, server))  # type: ignore[arg-type]
    finally:
        await worker.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if (why := llama.missing()) is not None:
        raise SystemExit(why)
    os.environ[KEY_VARIABLE] = KEY
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "tekken.gguf")
        llama.make_model(model, llama.tekken())
        rows = asyncio.run(measure(Path(folder), model))
    if options.json:
        found: list[dict[str, Any]] = [{**{n: getattr(r, n) for n in r.__slots__}, "error": r.error} for r in rows]
        print(json.dumps(found, indent=1))
        return
    print(f"{'server':14} {'text':8} {'counting':8} {'window':>7} {'before':>7} {'sent':>7} {'reported':>8}")
    for row in rows:
        print(
            f"{row.server:14} {row.text:8} {row.counting:8} {row.window or 0:7,} {row.shown:7,} {row.estimated:7,} "
            f"{row.reported:8,} {row.error:+6,} ({row.error / row.reported:+.1%})"
        )


if __name__ == "__main__":
    main()
