"""``agent-tui auth``: the user's keys are checked and kept, listed, moved and removed."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, Any

from agent_tui import terminal_output
from agent_tui.cli.arguments import add_command
from agent_tui.errors import AgentError, ConfigError
from agent_tui.options import Options
from agent_tui.paths import user_paths
from agent_tui.text.clean import clean_line, one_line

if TYPE_CHECKING:
    from agent_tui.store.keys import KeyStore


def add_auth(commands: Any) -> None:
    auth = add_command(
        commands, "auth", "set, list, move or remove your keys", "set anthropic", "list", "move", "remove openai"
    )
    auth_actions = auth.add_subparsers(required=True)
    for name, text in (
        ("set", "check a key and store it: type it when asked, or pipe it in"),
        ("remove", "remove a key wherever it is kept"),
    ):
        action = add_command(auth_actions, name, text, "anthropic")
        action.add_argument("provider", metavar="PROVIDER", help="LiteLLM's name, e.g. anthropic")
        action.set_defaults(run=_auth_set if name == "set" else _auth_remove)
    add_command(auth_actions, "list", "list the providers with a key, and where it is", "").set_defaults(run=_auth_list)
    move = add_command(auth_actions, "move", "move keys from the file to the system's keyring", "")
    move.set_defaults(run=_auth_move)


def _key_store(values: argparse.Namespace) -> KeyStore:
    from agent_tui.bootstrap import load_settings
    from agent_tui.store.keys import KeyStore

    # The user's own settings: a project has no say in where keys are kept.
    paths = user_paths()
    settings = load_settings(Options(config=values.config), paths, None)
    return KeyStore(paths.data, keyring=not settings.agent.private_file)


def _auth_set(values: argparse.Namespace) -> None:
    from agent_tui.models.requests import ModelSpec
    from agent_tui.providers.catalog import dialect_of, key_variable
    from agent_tui.providers.key_check import check_key
    from agent_tui.providers.keys import pasted_key
    from agent_tui.providers.listing import unknown_provider

    provider, keys = values.provider, _key_store(values)
    if (why := unknown_provider(provider)) is not None:
        raise ConfigError(why)
    name = one_line(provider, 60)
    typed = terminal_output.ask_secret(f"Key for {name}: ") if sys.stdin.isatty() else sys.stdin.read(10_000)
    key = pasted_key(typed, provider)
    model = f"{provider}/{dialect_of(provider).default_model or 'any'}"

    async def keep() -> str:
        found = await check_key(ModelSpec(model, model), key)
        if found.result == "refused":
            raise ConfigError(f"{found.words} Nothing was stored.")
        return f"{found.words} It is kept in {await keys.put(provider, key)}."

    said = asyncio.run(keep())
    wins = key_variable(provider)
    terminal_output.tell(f"{said} {wins} is also set and takes precedence." if wins else said)


def _auth_remove(values: argparse.Namespace) -> None:
    from agent_tui.providers.catalog import key_variable

    keys, name = _key_store(values), one_line(values.provider, 60)
    places = asyncio.run(keys.remove(values.provider))
    wins = key_variable(values.provider)
    still = f" {wins} still has one." if wins else ""
    if not places:
        known = ", ".join(asyncio.run(keys.places())) or "none"
        raise AgentError(f"No key is stored for {name}.{still} Stored: {known}.")
    terminal_output.tell(f"Removed the key for {name} from {' and '.join(places)}.{still}")


def _auth_list(values: argparse.Namespace) -> None:
    from agent_tui.providers.catalog import key_variable

    for name, place in asyncio.run(_key_store(values).places()).items():
        wins = key_variable(name)
        also = f"; {wins} is also set and takes precedence" if wins else ""
        terminal_output.say(clean_line(f"{name}  {place}{also}"))


def _auth_move(values: argparse.Namespace) -> None:
    names = clean_line(", ".join(asyncio.run(_key_store(values).move())))
    terminal_output.tell(f"Moved to the system's keyring: {names}." if names else "The file has no keys to move.")
