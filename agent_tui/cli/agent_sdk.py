"""The options of the Claude Agent SDK, as its client writes them on the command line: taken where they mean the same
here, else refused in a sentence that its user reads as the error of the call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_tui import terminal_output
from agent_tui.cli.arguments import CLAUDE_LINES
from agent_tui.driver_options import DriverOptions
from agent_tui.errors import ConfigError
from agent_tui.tools.mcp_names import is_mcp_name
from agent_tui.tools.rules.foreign import LARGEST, is_not_here, own_rules, parts_of

_REFUSED: Mapping[str, tuple[str, str]] = {
    "--betas": ("betas", "no header asks a provider for a beta here; a model's window is the one it has"),
    "--fallback-model": ("fallback_model", "no other model takes over by itself; call set_model() and ask again"),
    "--task-budget": ("task_budget", "no model is told of a budget of tokens; max_budget_usd and max_turns hold"),
    "--include-hook-events": ("include_hook_events", "hooks are not told in the stream; yours see it themselves"),
    "--resume-session-at": ("resume_session_at", "a session is resumed at its end; /rewind in the chat goes back"),
    "--resume-drops-turn": ("resume_drops_turn", "a session is resumed at its end; /rewind in the chat goes back"),
    "--session-mirror": ("session_store", "sessions are kept in the program's own database; `resume` finds them"),
    "--plugin-dir": (
        "plugins",
        "there are none; put what it brings into skills, commands, agents or hooks",
    ),
    "--agents": ("agents", "give them as the option `agents` of the SDK"),
}
"""By flag: the option, and why it is not taken."""
_WITH_IT: Mapping[str, tuple[str, ...]] = {"edit": ("apply_patch",), "bash": ("jobs",)}
"""Tools of ours that are one there."""
_LEVELS = ("low", "medium", "high")
_ALL_SOURCES = frozenset({"user", "project"})


def say_refused(text: str) -> None:
    """Prints why the program ends, as the result that the SDK makes an exception of."""
    from agent_tui.headless.claude_lines import failed_result

    terminal_output.say(json.dumps(failed_result(text)))


def in_flags(arguments: Sequence[str]) -> tuple[list[str], DriverOptions]:
    """The arguments as those of ours that say the same, and what none says. Raises ConfigError, in a sentence, for an
    option that means nothing here."""
    reader = _Reader()
    flags: list[str] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        flag, sign, value = argument.partition("=")
        if flag in _REFUSED:
            option, why = _REFUSED[flag]
            raise ConfigError(f"{option} is not taken: {why}.")
        take = reader.takes.get(flag)
        if take is None:
            flags.append(argument)
            continue
        if not sign and flag not in reader.switches:
            if not waiting:
                raise ConfigError(f"{flag} needs a value.")
            value = waiting.pop(0)
        flags += take(value)
    if reader.never_asks and "--permission-prompt-tool" in flags:
        at = flags.index("--permission-prompt-tool")
        del flags[at : at + 2]
    return [*flags, "--output-format", CLAUDE_LINES], reader.driver


class _Reader:
    """Takes flags one by one: into others of ours, which it returns, or into ``driver``."""

    switches = frozenset({"--strict-mcp-config", "--fork-session", "--replay-user-messages"})

    def __init__(self) -> None:
        self.driver = DriverOptions()
        self.never_asks = False
        self.takes: Mapping[str, Callable[[str], list[str]]] = {
            "--output-format": lambda value: [],
            "--tools": self._tools,
            "--allowedTools": self._allowed,
            "--mcp-config": self._servers,
            "--strict-mcp-config": lambda _: self._say(strict_mcp=True),
            "--fork-session": lambda _: self._say(fork=True),
            "--replay-user-messages": lambda _: self._say(replays=True),
            "--permission-prompt-tool": self._asked_by,
            "--permission-mode": self._mode,
            "--settings": self._settings,
            "--setting-sources": self._sources,
            "--effort": self._effort,
            "--thinking": self._thinking,
            "--max-thinking-tokens": self._thinking_tokens,
            "--thinking-display": self._display,
        }

    def _say(self, **said: Any) -> list[str]:
        for name, value in said.items():
            setattr(self.driver, name, value)
        return []

    def _tools(self, listed: str) -> list[str]:
        if listed == "default":
            return []
        own = [name for part in parts_of(listed) if (name := _own_tool(part, "tools"))]
        self.driver.tools = [each for name in own for each in (name, *_WITH_IT.get(name, ()))]
        return []

    def _allowed(self, listed: str) -> list[str]:
        """The skill tool asks nobody, so it needs no rule: which skills there are comes with ``initialize``."""
        parts = [part for part in parts_of(listed) if part.partition("(")[0].lower() != "skill"]
        return ["--allowedTools", ",".join(parts)] if parts else []

    def _servers(self, value: str) -> list[str]:
        if not value.lstrip().startswith("{"):
            return ["--mcp-config", value]
        servers = _object(value, "mcp_servers").get("mcpServers")
        if not isinstance(servers, dict):
            raise ConfigError("mcp_servers: it has no object `mcpServers`.")
        for name, entry in servers.items():
            if isinstance(entry, dict) and entry.get("type") == "sdk":
                self.driver.inside.append(name)
            else:
                self.driver.mcp_servers[name] = entry
        return []

    def _asked_by(self, value: str) -> list[str]:
        if value != "stdio":
            raise ConfigError(
                "permission_prompt_tool_name is not taken: a tool cannot answer for the user; use can_use_tool."
            )
        return ["--permission-prompt-tool", value]

    def _mode(self, value: str) -> list[str]:
        self.never_asks = value == "dontAsk"
        return ["--permission-mode", "ask" if self.never_asks else value]

    def _sources(self, value: str) -> list[str]:
        named = {part for part in value.split(",") if part}
        if unknown := named - _ALL_SOURCES - {"local"}:
            raise ConfigError(f"setting_sources: {sorted(unknown)[0]!r} is none of user, project and local.")
        if not named >= _ALL_SOURCES:
            raise ConfigError(
                "setting_sources is not taken without both user and project: the configuration of the user is always "
                "read, that of the project once its folder is trusted; leave the option out."
            )
        return []

    def _effort(self, value: str) -> list[str]:
        if value not in _LEVELS:
            raise ConfigError(f"effort {value!r} is not taken: the levels are {', '.join(_LEVELS)}.")
        return self._say(effort=value)

    def _thinking(self, value: str) -> list[str]:
        if value not in ("adaptive", "disabled"):
            raise ConfigError(f"thinking {value!r} is not taken: adaptive and disabled are.")
        return self._say(effort="off") if value == "disabled" else []

    def _thinking_tokens(self, value: str) -> list[str]:
        if value != "0":
            raise ConfigError(
                "max_thinking_tokens, and thinking with budget_tokens, are not taken: models think by level; use "
                "effort low, medium or high."
            )
        return self._say(effort="off")

    def _display(self, value: str) -> list[str]:
        if value != "summarized":
            raise ConfigError(f"thinking with display {value!r} is not taken: what a provider shows is passed on.")
        return []

    def _settings(self, value: str) -> list[str]:
        text = value if value.lstrip().startswith("{") else _text_of(Path(value).expanduser())
        settings, flags = _object(text, "settings"), list[str]()
        rules = _table(settings, "permissions")
        for key, entry in settings.items():
            if key == "model":
                flags += ["--model", _word(entry, "settings: model")]
            elif key == "sandbox":
                flags += self._sandbox(_table(settings, "sandbox"))
            elif key not in ("permissions", "$schema"):
                raise ConfigError(f"settings: {key!r} is not taken; permissions, model and sandbox are.")
        for key, entry in rules.items():
            name = f"settings: permissions.{key}"
            if key == "defaultMode":
                flags += self._mode(_word(entry, name))
            elif key in ("allow", "deny"):
                flags += [word for rule in _rules(entry, name) for word in (f"--{key}", rule)]
            elif key == "ask":
                self.driver.ask += _rules(entry, name)
            elif key == "additionalDirectories":
                flags += [word for folder in _words(entry, name) for word in ("--add-dir", folder)]
            else:
                raise ConfigError(f"{name} is not taken; allow, deny, ask, defaultMode and additionalDirectories are.")
        return flags

    def _sandbox(self, said: Mapping[str, Any]) -> list[str]:
        flags: list[str] = []
        for key, value in said.items():
            match key, value:
                case "enabled", bool():
                    self.driver.sandbox = "auto" if value else "off"
                case "allowUnsandboxedCommands", bool():
                    flags += [] if value else ["--deny", "outside"]
                case "autoAllowBashIfSandboxed", False:
                    pass
                case "autoAllowBashIfSandboxed", _:
                    raise ConfigError(
                        "sandbox: autoAllowBashIfSandboxed is not taken: commands run unasked in the sandbox with "
                        "permission_mode='auto'."
                    )
                case _:
                    raise ConfigError(
                        f"sandbox: {key!r} is not taken; set it as [sandbox] in the configuration (docs/sandbox.md)."
                    )
        return flags


def _own_tool(named: str, option: str) -> str:
    """A tool of ours by what it is called there; empty where there is none of its kind here."""
    from agent_tui.tools.aliases import own_name
    from agent_tui.tools.rules.rule import KNOWN

    name = named.partition("(")[0]
    if is_mcp_name(name) or is_not_here(name):
        return ""
    if (own := own_name(name)) not in KNOWN:
        raise ConfigError(f"{option}: {named!r} is no tool here.")
    return own


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{option}: not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{option}: must be a JSON object.")
    return value


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(f"settings {path}: larger than 1 MB.")
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"settings {path}: {why}.") from None


def _table(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = settings.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"settings: {key} must be an object.")
    return value


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{name} must be a text.")
    return value


def _words(value: Any, name: str) -> list[str]:
    if not isinstance(value, list):
        raise ConfigError(f"{name} must be a list of texts.")
    return [_word(entry, name) for entry in value]


def _rules(value: Any, name: str) -> list[str]:
    return [rule for entry in _words(value, name) for rule in own_rules(entry)]
