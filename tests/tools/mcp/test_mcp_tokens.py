"""Where sign-ins are kept: the keyring, or a file of which others see nothing."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from agent_tui.errors import AgentError
from agent_tui.store.private_file import MOST
from agent_tui.tools.mcp.tokens import ENTRY, FILE, Tokens
from tests.support.keyrings import no_keyring, use_keyring

pytestmark = pytest.mark.quick

KEPT = {"tokens": {"access_token": "very-secret"}}


async def test_the_keyring_has_the_token_and_the_file_only_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring, tokens = use_keyring(monkeypatch), Tokens(tmp_path)
    assert await tokens.put("docs https://a", KEPT) == "the system's keyring"
    assert "very-secret" not in (tmp_path / FILE).read_text()
    assert await tokens.get("docs https://a") == KEPT
    assert await tokens.get("docs https://b") == {}, "another address is another server"
    assert await tokens.drop("docs https://a") and not keyring
    assert not await tokens.drop("docs https://a")


async def test_a_keyring_is_asked_only_for_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: str) -> str:
        raise AssertionError("asked")

    use_keyring(monkeypatch, get_password=ask)
    assert await Tokens(tmp_path).get("docs https://a") == {}


async def test_a_keyring_that_takes_nothing_leaves_it_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: str) -> None:
        raise RuntimeError("locked")

    use_keyring(monkeypatch, set_password=refuse)
    tokens = Tokens(tmp_path / "data")
    assert await tokens.put("docs https://a", KEPT) == str(tmp_path / "data" / FILE)
    assert await tokens.get("docs https://a") == KEPT
    assert stat.S_IMODE((tmp_path / "data" / FILE).stat().st_mode) == 0o600


async def test_a_keyring_that_says_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: str) -> None:
        raise RuntimeError("locked")

    use_keyring(monkeypatch, get_password=refuse)
    tokens = Tokens(tmp_path)
    await tokens.put("docs https://a", KEPT)
    with pytest.raises(AgentError, match="refused: locked"):
        await tokens.get("docs https://a")


LONG = json.dumps({"other https://b": {"tokens": "x" * MOST}})


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "[" * 100_000, LONG])
async def test_a_file_that_is_damaged_is_told_and_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    keyring, tokens = use_keyring(monkeypatch), Tokens(tmp_path)
    (tmp_path / FILE).write_text(text)
    for work in (tokens.get("docs https://a"), tokens.put("docs https://a", KEPT), tokens.drop("docs https://a")):
        with pytest.raises(AgentError, match="is damaged: delete it, and sign in"):
            await work
    assert (tmp_path / FILE).read_text() == text and keyring == {}


async def test_a_file_that_cannot_be_read_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_keyring(monkeypatch)
    (tmp_path / FILE).mkdir()
    with pytest.raises(AgentError, match="cannot be read: Is a directory"):
        await Tokens(tmp_path).put("docs https://a", KEPT)


async def test_an_entry_that_is_damaged_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_keyring(monkeypatch)
    (tmp_path / FILE).write_text(json.dumps({"docs https://a": 7, "other https://b": KEPT}))
    tokens = Tokens(tmp_path)
    assert await tokens.get("docs https://a") == {}
    await tokens.put("docs https://a", KEPT)
    assert await tokens.get("docs https://a") == await tokens.get("other https://b") == KEPT


async def test_no_server_makes_the_file_longer_than_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_keyring(monkeypatch)
    tokens = Tokens(tmp_path)
    with pytest.raises(AgentError, match="too long to be kept"):
        await tokens.put("long https://a", {"tokens": "x" * ENTRY})
    with pytest.raises(AgentError, match="too many are there already"):
        for number in range(MOST // ENTRY + 1):
            await tokens.put(f"{number} https://a", {"tokens": "x" * (ENTRY - 100)})
    assert (tmp_path / FILE).stat().st_size <= MOST
    assert await tokens.get("0 https://a") != {}


async def test_a_file_that_others_could_read_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_keyring(monkeypatch)
    (tmp_path / FILE).write_text("{}")
    (tmp_path / FILE).chmod(0o644)
    await Tokens(tmp_path).put("docs https://a", KEPT)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


async def test_a_folder_that_takes_nothing_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_keyring(monkeypatch)
    (tmp_path / "data").write_text("a file")
    tokens = Tokens(tmp_path / "data")
    async with tokens.alone():
        with pytest.raises(AgentError, match="cannot be kept"):
            await tokens.put("docs https://a", KEPT)


async def test_who_changes_a_sign_in_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_keyring(monkeypatch)

    async def add(name: str) -> None:
        tokens = Tokens(tmp_path)
        async with tokens.alone():
            found = await tokens.get("docs")
            await asyncio.sleep(0)
            await tokens.put("docs", {**found, name: 1})

    await asyncio.gather(*(add(str(number)) for number in range(4)))
    assert sorted(json.loads((tmp_path / FILE).read_text())["docs"]) == ["0", "1", "2", "3"]
