"""A key is taken out of what was pasted, known for another provider's, and checked with the one it is for."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from agent_tui.errors import AgentError, ConfigError
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog import DIALECTS
from agent_tui.providers.key_check import check_key
from agent_tui.providers.keys import pasted_key
from agent_tui.providers.secrets import redact
from agent_tui.store.keys import KEYRING, KeyStore
from tests.support.every import every
from tests.support.keyrings import no_keyring, use_keyring
from tests.support.loopback import Loopback, Reply, json_reply

KEY = "sk-proj-abcdefgh1234"


@every(
    "pasted",
    [
        *(KEY, f"  {KEY}\r\n", f'"{KEY}"', f"'{KEY}',", f"`{KEY}`", f"\ufeff{KEY}\u200b", f"Bearer {KEY}"),
        *(f"OPENAI_API_KEY={KEY}", f"export OPENAI_API_KEY='{KEY}'  # mine", f'  "OPENAI_API_KEY": "{KEY}",'),
        *(f"set -gx OPENAI_API_KEY {KEY}", f"setx OPENAI_API_KEY {KEY}", f"$env:OPENAI_API_KEY = '{KEY}'"),
        *(f"Authorization: Bearer {KEY}", f'-H "Authorization: Bearer {KEY}"', f"MY_TOKEN={KEY};"),
        f"ANTHROPIC_API_KEY=sk-ant-other\nOPENAI_API_KEY={KEY}\nPATH=/bin",
    ],
)
def test_a_key_is_what_stands_in_a_pasted_line(pasted: str) -> None:
    assert pasted_key(pasted, "openai") == KEY


@every("key", ["abc==", "abc=def", "id:secret", "a-key-of-my-gateway", "key_1=2"])
def test_signs_that_belong_to_a_key_stay(key: str) -> None:
    assert pasted_key(f" {key}\n", "openai") == key


@every(
    ("pasted", "words"),
    [
        *((empty, "is empty") for empty in ("", " \n", "''", "OPENAI_API_KEY=''")),
        *(
            (bad, "not a key")
            for bad in ("sk-one two", "sk-one\nsk-two", "sk-schl\u00fcssel", "sk-\x1b[0m", "sk-\x00x")
        ),
        *((part, "its middle is hidden") for part in ("sk-proj-****1234", "sk-...1234")),
        *(
            (other, "a key of anthropic, not of openai")
            for other in ("sk-ant-api03-abcdef", "ANTHROPIC_API_KEY=abcdefg")
        ),
    ],
)
def test_what_is_no_key_of_the_providers_is_refused_and_not_repeated(pasted: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        pasted_key(pasted, "openai")
    assert "api03" not in str(refused.value) and "abcdefg" not in str(refused.value)


def test_a_server_elsewhere_takes_any_key_and_beginnings_tell_providers_apart() -> None:
    assert pasted_key("sk-ant-api03-abc", "openai", elsewhere=True) == "sk-ant-api03-abc"
    for name, dialect in DIALECTS.items():
        for begin in dialect.key_begins:
            key = f"{begin}0123456789abcdefghijklmnopqrstuvwxyz"
            assert pasted_key(key, name) == key and key not in redact(f"the key {key}")


LISTED, REFUSED = json_reply({"data": [{"id": "m"}]}), json_reply({"error": {"message": f"No such key: {KEY}"}}, 401)


@every(
    ("replies", "result", "words"),
    [
        ([LISTED, REFUSED], "accepted", "openai accepted the key."),
        ([LISTED, json_reply({}, 403)], "accepted", "openai accepted the key."),
        ([REFUSED], "refused", "refused the key (HTTP 401): No such key: [secret]."),
        ([json_reply({"error": {"message": "API key not valid."}}, 400)], "refused", "API key not valid"),
        ([LISTED], "unknown", "lists its models for anybody"),
        ([json_reply({"error": {"message": "Missing scopes"}}, 403)], "unknown", "Missing scopes"),
        ([json_reply({"error": {"message": "Slow down"}}, 429)], "unknown", "Slow down"),
        ([json_reply({}, 404)], "unknown", "does not list its models"),
        ([json_reply({}, 500)], "unknown", "does not list its models"),
        ([Reply(b"<html>", 302, headers={"location": "http://127.0.0.1:1/"})], "unknown", "could not be checked"),
        ([Reply(drop=True)], "unknown", "could not be checked"),
    ],
)
async def test_a_key_is_checked_where_calls_go(replies: list[Reply], result: str, words: str) -> None:
    with Loopback() as server:
        server.serve("/v1/models", *replies)
        found = await check_key(ModelSpec("m", "openai/m", api_base=f"{server.url}/v1"), KEY)
    assert found.result == result and words in found.words.replace(f"The server at {server.url}", "openai"), found
    assert KEY not in found.words and server.requests[0].header("authorization") == f"Bearer {KEY}"


async def test_a_provider_that_cannot_be_asked_leaves_it_open() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        assert (await check_key(ModelSpec("m", "openai/m", api_base=gone), KEY)).result == "unknown"
    assert "not checked" in (await check_key(ModelSpec("m", "together_ai/m"), KEY)).words


async def test_a_key_is_in_one_place_and_removed_from_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_keyring(monkeypatch)
    file = tmp_path / "keys.json"
    assert await KeyStore(tmp_path).put("openai", "one") == await KeyStore(tmp_path).place()
    assert file.stat().st_mode & 0o777 == 0o600 and await KeyStore(tmp_path).get("openai") == "one"
    kept, keys = use_keyring(monkeypatch), KeyStore(tmp_path)
    kept["agent-tui", "openai"] = "old"
    assert await keys.get("openai") == "one" and (await keys.places())["openai"] == str(file)
    assert await keys.remove("openai") == [str(file), KEYRING] and await keys.remove("openai") == []
    await KeyStore(tmp_path, keyring=False).put("openai", "two")
    assert await keys.move() == ["openai"] and kept["agent-tui", "openai"] == "two" and file.read_text() == "{}"
    await KeyStore(tmp_path, keyring=False).put("openai", "three")
    assert await keys.put("openai", "four") == KEYRING and await keys.get("openai") == "four"
    file.write_text("damaged")
    assert await keys.get("openai") == "four"
    with pytest.raises(AgentError, match="damaged"):
        await keys.put("openai", "five")
    assert await keys.get("openai") == "four", "what was refused is not kept"
