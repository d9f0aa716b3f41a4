"""Where keys are said to be, and where one that is typed goes: into the keyring, or nowhere but this run."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import ModelConfig, Settings
from agent_tui.engine.model_list import ModelList
from agent_tui.engine.models import ModelCatalogue
from agent_tui.errors import ConfigError
from agent_tui.models.requests import ModelSpec
from agent_tui.providers import keys
from agent_tui.store.keys import KeyStore
from tests.support.agents import parts_for, running
from tests.support.fake_agent import LISTED
from tests.support.keyrings import Kept, use_keyring

pytestmark = pytest.mark.quick

NEW = "anthropic/claude-opus-4-5"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    """A keyring in memory, and providers that cannot be reached."""
    for name in ("ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_BASE", "http://127.0.0.1:9")
    return use_keyring(monkeypatch)


async def test_a_key_is_kept_and_used_or_used_until_one_leaves(
    tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ModelConfig("openai/x", api_base="http://127.0.0.1:9/v1", api_key_env="OWN_KEY")
    settings = Settings(default_model="demo", models={"own": own})
    async with running(parts_for(tmp_path / "home", tmp_path, settings=settings)) as (agent, _):
        models = agent.models
        await models.look()
        assert models.list.key_of("anthropic") is None
        missing = await models.missing_key(NEW)
        assert missing is not None and (missing.owner, missing.variable) == ("anthropic", "ANTHROPIC_API_KEY")
        for typed in ("", " \n", "sk one", "sk-\u00fc", "sk-\x1b[0m"):
            with pytest.raises(ConfigError):
                await models.take_key(NEW, typed)
        assert await models.missing_key(NEW) is not None and not kept
        said = await models.take_key(NEW, " sk-mine\n")
        assert said.startswith("The key could not be checked. No connection to anthropic")
        assert said.endswith("It is kept in the system's keyring.")
        assert kept["agent-tui", "anthropic"] == "sk-mine" and await models.missing_key(NEW) is None
        assert models.list.key_of("anthropic") == "key given in this session"
        assert "until you quit" in await models.take_key("own", "sk-other") and ("agent-tui", "openai") not in kept
        monkeypatch.setattr(keys, "UNLOCKED", 0.01)
        locked = threading.Event()
        monkeypatch.setattr(sys.modules["keyring"], "set_password", lambda *_: locked.wait())
        said = await models.take_key("gemini/gemini-2.5-pro", "sk-third")
        locked.set()
        assert f"{tmp_path}/home/data/keys.json, which only you can read" in said
        assert await models.missing_key("gemini/gemini-2.5-pro") is None


async def test_a_locked_keyring_and_an_empty_list_hold_nothing_up(
    tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = threading.Event()
    monkeypatch.setattr(sys.modules["keyring"], "get_password", lambda *_: locked.wait())
    monkeypatch.setattr(keys, "SAID", 0.01)
    own = [ModelSpec("mine", "openai/gpt-5")]
    listed = ModelList(lambda: own, list, lambda name: False, listed=dict, kept=KeyStore(tmp_path).places)
    await listed.look()
    locked.set()
    assert listed.groups()[0].title == "Configured"
    assert [choice.name for choice in listed.search("mine")] == ["mine"]
    assert [choice.name for choice in listed.usable()] == ["mine", "demo"]


async def test_what_can_be_called_comes_before_what_lacks_a_key_and_what_is_gone_last(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-x")
    listed = ModelList(list, list, lambda name: False, listed=lambda: LISTED, kept=_nothing)
    await listed.look()
    found = [choice.name for choice in listed.search("opus")]
    assert found == ["groq/opus-on-chips-1", "anthropic/claude-opus-5-5", "anthropic/claude-opus-3"]
    assert listed.groups()[0].note == "key in GROQ_API_KEY"
    assert [choice.name for choice in listed.search("sunnet")] == []


async def test_a_name_finds_its_provider_first_also_without_signs_and_the_model_in_use_is_there() -> None:
    listed = dict(LISTED)
    template = next(iter(LISTED.values()))
    for provider in ("azure", "openai"):
        for plain in ("gpt-5.9", "gpt-5"):
            name = f"{provider}/{plain}"
            listed[name] = replace(template, name=name, provider=provider)
    mine = ModelSpec("openai/tiny-chat", "openai/tiny-chat")
    models = ModelList(list, list, lambda name: False, listed=lambda: listed, kept=_nothing, current=lambda: mine)
    await models.look()
    for typed in ("gpt5", "gpt-5", "GPT5"):
        assert [one.name for one in models.search(typed)][:2] == ["openai/gpt-5", "azure/gpt-5"], typed
    assert models.groups()[0].choices[0].name == models.search("tiny")[0].name == mine.key


async def _nothing() -> dict[str, str]:
    return {}


async def test_a_locked_keyring_keeps_nothing_else_from_going_on(
    tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = threading.Event()

    def get_password(service: str, name: str) -> str:
        locked.wait()
        return "sk-kept"

    monkeypatch.setattr(sys.modules["keyring"], "get_password", get_password)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    settings = Settings(default_model="demo")
    parts = parts_for(tmp_path / "home", tmp_path, settings=settings)
    async with running(replace(parts, catalogue=ModelCatalogue(settings, keys.key_in_keyring))) as (agent, _):
        found = asyncio.create_task(agent.models.missing_key(NEW))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not found.done(), "its owner unlocks it in their own time"
        monkeypatch.setattr(keys, "UNLOCKED", 0.01)
        locked.set()
        assert await found is None
        locked.clear()
        missing = await agent.models.missing_key("gemini/gemini-2.5-pro")
        locked.set()
        assert missing is not None and missing.variable == "GEMINI_API_KEY"
