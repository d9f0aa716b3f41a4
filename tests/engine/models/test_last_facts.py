"""What a server said last of a model stands in while it does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.engine.last_facts import with_last_facts
from agent_tui.models.requests import ModelInfo, ModelSpec, Target
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.local_servers import served_before
from agent_tui.store.store import Store
from tests.support.every import every
from tests.support.model_calls import environment

UP = ModelInfo(
    ModelSpec("l", "openai/gemma", api_base="http://127.0.0.1:1/v1"),
    Target("openai", "chat", "gemma", "gemini"),
    Limits(8_192, None, 2_048, "server"),
    Prices(),
    images=False,
    tools=False,
    parallel=False,
)
GONE = replace(UP, limits=Limits(), images=None, tools=None, silent=True, unreachable=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "sessions.db") as opened:
        yield opened


def test_what_it_said_last_holds_while_it_does_not_answer(store: Store) -> None:
    assert with_last_facts(store, GONE) == GONE, "it never said anything"
    assert with_last_facts(store, UP) == UP
    found = with_last_facts(store, GONE)
    assert (found.limits.window, found.limits.max_output, found.limits.source) == (8_192, 2_048, "last")
    assert found.limits.origin.startswith("as its server said last on ")
    assert (found.images, found.tools, found.parallel) == (False, False, False)
    assert found.silent, "it is asked again"
    again = replace(UP, limits=Limits(16_384, source="server"), tools=None)
    assert with_last_facts(store, again) == again
    assert with_last_facts(store, GONE).limits.window == 16_384
    store.learned.forget_all()
    assert with_last_facts(store, GONE) == GONE


def test_it_is_of_a_model_at_a_server_and_the_configuration_wins(store: Store) -> None:
    with_last_facts(store, UP)
    elsewhere = replace(GONE, spec=replace(GONE.spec, api_base="http://127.0.0.1:2/v1"))
    other = replace(GONE, spec=replace(GONE.spec, model="openai/qwen"))
    assert with_last_facts(store, elsewhere) == elsewhere and with_last_facts(store, other) == other
    configured = replace(GONE, limits=Limits(4_096, source="config"))
    assert with_last_facts(store, configured).limits == configured.limits


@every(
    ("key", "named", "model", "base"),
    [
        ("local/gemma", None, "openai/gemma", "http://127.0.0.1:8080/v1"),
        ("local/gemma", "openai//models/gemma.gguf", "openai//models/gemma.gguf", "http://127.0.0.1:8080/v1"),
        ("lm_studio/qwen", None, "lm_studio/qwen", "http://127.0.0.1:1234/v1"),
        ("ollama/llama3", "ollama_chat/llama3", "ollama_chat/llama3", "http://127.0.0.1:11434"),
        ("ollama/a/b:7b", None, "ollama_chat/a/b:7b", "http://127.0.0.1:11434"),
    ],
)
def test_a_model_that_was_found_on_this_machine_is_known_by_its_name(
    key: str, named: str | None, model: str, base: str
) -> None:
    unset = dict.fromkeys(("OLLAMA_API_BASE", "OLLAMA_HOST", "LM_STUDIO_API_BASE", "LLAMAFILE_API_BASE"))
    with environment(unset):
        assert served_before(key, named) == ModelSpec(key, model, api_base=base)


@every("key", ["local", "demo", "openai/gpt-5", "anthropic/claude", "my-own", "locally/x"])
def test_no_other_name_is_taken_for_one(key: str) -> None:
    assert served_before(key) is None
