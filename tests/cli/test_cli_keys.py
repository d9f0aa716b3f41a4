"""Keys: kept in the keyring, used where the environment has none, found nowhere else."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace

import pytest

from agent_tui.config import ModelConfig, Settings
from agent_tui.engine.models import ModelCatalogue
from agent_tui.providers.keys import stored_key
from tests.support.cli import Cli


@pytest.fixture
def keyring(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], str]:
    """A keyring in memory."""
    kept: dict[tuple[str, str], str] = {}
    monkeypatch.delenv("PYTHON_KEYRING_BACKEND")
    monkeypatch.setitem(
        sys.modules,
        "keyring",
        SimpleNamespace(
            get_password=lambda service, name: kept.get((service, name)),
            set_password=lambda service, name, key: kept.__setitem__((service, name), key),
            delete_password=lambda service, name: kept.__delitem__((service, name)),
        ),
    )
    return kept


@pytest.mark.quick
def test_a_key_is_stored_listed_and_removed(cli: Cli, keyring: dict[tuple[str, str], str]) -> None:
    stored = cli.run("auth", "set", "anthropic", stdin=b"sk-secret\n")
    assert (stored.code, stored.out) == (0, "")
    assert "sk-secret" not in stored.err
    assert stored_key("anthropic") == "sk-secret"
    assert cli.run("auth", "list").out == "anthropic\n"
    assert cli.run("auth", "remove", "anthropic").code == 0
    assert cli.run("auth", "list").out == ""
    again = cli.run("auth", "remove", "anthropic")
    assert again.code == 1
    assert "No key is stored for anthropic" in again.error


@pytest.mark.parametrize("typed", [b"\n", b"sk-one two\n", "sk-schl\u00fcssel\n".encode(), b"sk-\x1b[31m\n"])
def test_what_is_no_key_is_refused(cli: Cli, keyring: dict[tuple[str, str], str], typed: bytes) -> None:
    outcome = cli.run("auth", "set", "anthropic", stdin=typed)
    assert outcome.code == 2
    assert keyring == {}


def test_a_keyring_that_fails_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: str) -> str:
        raise RuntimeError("No backend. See\nthe manual.")

    monkeypatch.delenv("PYTHON_KEYRING_BACKEND")
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=fail, set_password=fail))
    for arguments in (("auth", "list"), ("auth", "set", "openai")):
        outcome = cli.run(*arguments, stdin=b"sk-secret\n")
        assert outcome.code == 1
        assert "The system's keyring refused: No backend." in outcome.error
    assert stored_key("openai") is None


def catalogue(asked: list[str], **models: ModelConfig) -> ModelCatalogue:
    async def look_up(provider: str) -> str:
        asked.append(provider)
        return "sk-kept"

    return ModelCatalogue(Settings(models=models), look_up)


def key_of(found: ModelCatalogue, name: str) -> str | None:
    """The key that goes with a model's calls."""
    return asyncio.run(found.with_key(found.find(name))).api_key


def test_the_environment_wins_over_the_keyring(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    assert key_of(catalogue(asked), "openai/gpt-5") == "sk-kept"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    assert key_of(catalogue(asked), "openai/gpt-5") is None
    own = ModelConfig("openai/gpt-5", api_key_env="OWN_KEY")
    assert key_of(catalogue(asked, own=own), "own") == "sk-kept"
    monkeypatch.setenv("OWN_KEY", "sk-own")
    assert key_of(catalogue(asked, own=own), "own") is None
    assert asked == ["openai", "openai"]


def test_a_key_that_was_given_in_the_chat_goes_to_that_server_alone(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-refused")
    found = catalogue([], own=ModelConfig("openai/x", api_base="https://llm.example/v1"))
    found.use_key(found.find("openai/gpt-5"), "sk-new")
    assert key_of(found, "openai/gpt-5") == key_of(found, "openai/gpt-4.1") == "sk-new"
    assert key_of(found, "own") is None


def test_servers_of_the_users_own_get_no_providers_key(cli: Cli) -> None:
    asked: list[str] = []
    models = {
        "vllm": ModelConfig("openai/x", api_base="http://127.0.0.1:8000/v1"),
        "ollama": ModelConfig("ollama_chat/x"),
    }
    for key in (*models, "demo"):
        assert key_of(catalogue(asked, **models), key) is None
    assert asked == []


def test_a_key_is_in_no_session_log_or_export(cli: Cli) -> None:
    cli.setenv("OPENAI_API_KEY", "sk-very-secret-key-0123456789")
    cli.config(
        "[agent]\nretries = 1\n[models.own]\nmodel = 'openai/x'\napi_base = 'http://127.0.0.1:9'\n"
        "api_key_env = 'OPENAI_API_KEY'\ncontext_window = 8000\n"
    )
    outcome = cli.run("-p", "hi", "-m", "own", "--output-format", "json")
    exported = cli.run("export", outcome.json["session_id"]).out
    files = [path.read_bytes() for path in cli.home.rglob("*") if path.is_file()]
    for text in (outcome.out, outcome.err, exported, *(data.decode("latin-1") for data in files)):
        assert "sk-very-secret" not in text
