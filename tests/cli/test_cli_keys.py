"""Keys: checked when they are entered, kept in one place, used where the environment has none, found nowhere else."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator

import pytest

from agent_tui.config import ModelConfig, Settings
from agent_tui.engine.models import ModelCatalogue
from tests.support.cli import Cli
from tests.support.keyrings import use_keyring
from tests.support.loopback import Loopback, json_reply

pytestmark = [pytest.mark.quick, pytest.mark.versions]

LISTED = json_reply({"data": [{"id": "gpt-5"}]})
REFUSED = json_reply({"error": {"message": "Incorrect API key: sk-wrong-***"}}, 401)


@pytest.fixture
def provider(cli: Cli) -> Iterator[Loopback]:
    """A provider that takes a key and lists nothing without one."""
    with Loopback() as server:
        server.serve("/v1/models", LISTED, REFUSED)
        cli.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        yield server


def test_a_key_is_checked_kept_listed_moved_and_removed(
    cli: Cli, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cli.home / "data" / "keys.json"
    stored = cli.run("auth", "set", "openai", stdin=b"export OPENAI_API_KEY='sk-secret-1234'\n")
    assert (stored.code, stored.out) == (0, "") and "sk-secret" not in stored.err
    assert stored.error.startswith("openai accepted the key. It is kept in ") and str(file) in stored.error
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert cli.run("auth", "list").out == f"openai  {file}\n"
    assert cli.run("auth", "move").code == 1, "there is no keyring yet"
    kept = use_keyring(monkeypatch)
    assert "Moved to the system's keyring: openai." in cli.run("auth", "move").error
    assert kept["agent-tui", "openai"] == "sk-secret-1234" and "sk-secret" not in file.read_text()
    assert cli.run("auth", "list").out == "openai  the system's keyring\n"
    assert cli.run("auth", "remove", "openai").code == 0
    assert cli.run("auth", "list").out == "" and ("agent-tui", "openai") not in kept
    again = cli.run("auth", "remove", "openai")
    assert again.code == 1 and "No key is stored for openai" in again.error


def test_a_provider_that_nobody_knows_gets_no_key(cli: Cli) -> None:
    outcome = cli.run("auth", "set", "opanai", stdin=b"sk-secret-1234\n")
    assert outcome.code == 2 and outcome.error == "agent-tui: Unknown provider 'opanai'. Did you mean openai?"
    assert cli.run("auth", "list").out == ""


def test_a_key_that_is_refused_is_not_kept(cli: Cli, provider: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = use_keyring(monkeypatch)
    provider.serve("/v1/models", REFUSED)
    outcome = cli.run("auth", "set", "openai", stdin=b"sk-wrong-1234\n")
    assert outcome.code == 2 and "Incorrect API key" in outcome.error and "Nothing was stored." in outcome.error
    assert not kept and "sk-wrong" not in outcome.err
    assert provider.requests[0].header("authorization") == "Bearer sk-wrong-1234"
    provider.serve("/v1/models", LISTED, REFUSED)
    cli.config("[agent]\nprivate_file = true\n")
    assert "keys.json" in cli.run("auth", "set", "openai", stdin=b"sk-secret-1234\n").error and not kept


@pytest.mark.parametrize(
    ("set_to", "words"), [(None, "No API key for openai: set OPENAI_API_KEY, or"), (" ", "OPENAI_API_KEY is set, but")]
)
def test_a_run_without_a_key_sends_nothing(cli: Cli, provider: Loopback, set_to: str | None, words: str) -> None:
    if set_to is not None:
        cli.setenv("OPENAI_API_KEY", set_to)
    for flags in (("-p", "hi"), ("-p", "hi", "--output-format", "json")):
        outcome = cli.run(*flags, "-m", "openai/gpt-5")
        assert outcome.code == 2 and words in outcome.err + outcome.out
    assert provider.requests == []


def test_a_keyring_that_fails_leaves_it_to_the_file(
    cli: Cli, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: str) -> str:
        raise RuntimeError("No backend. See\nthe manual.")

    use_keyring(monkeypatch, get_password=fail, set_password=fail)
    assert "keys.json" in cli.run("auth", "set", "openai", stdin=b"sk-secret-1234\n").error
    outcome = cli.run("auth", "list")
    assert outcome.code == 1 and "The system's keyring refused: No backend." in outcome.error


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
