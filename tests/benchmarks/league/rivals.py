"""Who takes part: what each agent needs to run without an account, where it is told the window, how it is asked what
its context is, and how its answer is read."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.league.driving import ROOT

WINDOW = 200_000
MODEL = "league-model"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one agent runs: its packages, a home of its own, the project, the server, the folder of Node."""

    installed: Path
    home: Path
    project: Path
    url: str
    node: Path

    def write(self, path: str, text: str) -> None:
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


@dataclass(frozen=True, slots=True)
class Shown:
    """What an agent says of its context: tokens, its share of the window, the words, its interval where it has one."""

    tokens: int
    percent: float | None
    text: str
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Rival:
    """``command`` starts it, ``again`` are the arguments with which it opens its last session. ``ready`` stands on the
    screen when it takes keys. ``ask`` is typed to see the context (nothing: it always stands there), ``close`` are the
    keys that put it away; ``headless`` are the arguments with which a process of its own is asked about the last
    session. ``shell_left`` are the keys that leave the mode for commands, ``stop`` those that stop an answer, ``leave``
    those that end it. ``window`` is what it knows, in tokens."""

    name: str
    title: str
    package: str
    dialect: str
    told: str
    prepare: Callable[[Place], None]
    command: Callable[[Place], list[str]]
    environment: Callable[[Place], dict[str, str]]
    ready: str
    read: Callable[[str], Shown | None]
    ask: str = ""
    close: tuple[str, ...] = ()
    again: tuple[str, ...] = ("--continue",)
    compact: str = "/compact"
    headless: tuple[str, ...] = ()
    shell_left: tuple[str, ...] = ()
    stop: tuple[str, ...] = ("Escape",)
    leave: tuple[str, ...] = ("C-c", "C-c")
    window: int = WINDOW
    notes: tuple[str, ...] = field(default=())


NUMBER = r"(\d[\d,]*(?:\.\d+)?)\s*([kKmM]?)"


def number(text: str, unit: str) -> int:
    return round(float(text.replace(",", "")) * {"": 1, "k": 1_000, "m": 1_000_000}[unit.lower()])


def last(pattern: str, screen: str) -> re.Match[str] | None:
    """The lowest place of a pattern on the screen."""
    found = list(re.finditer(pattern, screen))
    return found[-1] if found else None


def npm_program(place: Place, name: str) -> str:
    return str(place.installed / "node_modules" / ".bin" / name)


# agent-tui


def _ours_config(dialect: str) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        base = {"chat": f"openai/{MODEL}", "anthropic": "anthropic/claude-sonnet-4-5"}[dialect]
        url = place.url + ("/v1" if dialect == "chat" else "")
        place.write(
            "config/config.toml",
            f'default_model = "league"\n[models.league]\nmodel = "{base}"\napi_base = "{url}"\n'
            f'api_key_env = "LEAGUE_KEY"\ncontext_window = {WINDOW}\n',
        )

    return prepare


def _ours_environment(place: Place) -> dict[str, str]:
    return {"AGENT_TUI_HOME": str(place.home), "LEAGUE_KEY": "x", "PYTHONPATH": str(ROOT)}


def _read_ours(screen: str) -> Shown | None:
    """The window less what is free and what is kept for the answer, to the token, with the interval and the share of
    its first line."""
    headline = re.search(rf"{NUMBER}(?: ± {NUMBER})? of {WINDOW // 1_000}k", screen)
    if headline is None:
        return None
    free, reserve = (last(rf"■ {name}\s+~?([\d,]+)", screen) for name in ("Free", "Reserve"))
    tokens = number(headline[1], headline[2])
    if free and reserve:
        tokens = WINDOW - number(free[1], "") - number(reserve[1], "")
    percent = last(rf"(\d+(?:\.\d+)?) %  ~?{NUMBER}(?: ± {NUMBER})? of {WINDOW // 1_000}k", screen)
    low, high = None, None
    if headline[3]:
        spread = number(headline[3], headline[4])
        low, high = tokens - spread, tokens + spread
    return Shown(tokens, float(percent[1]) if percent else None, headline[0], low, high)


def _ours(dialect: str) -> Rival:
    return Rival(
        name=f"ours-{dialect}",
        title=f"agent-tui ({dialect})",
        package="",
        dialect=dialect,
        told="context_window in its configuration",
        prepare=_ours_config(dialect),
        command=lambda place: [sys.executable, "-m", "agent_tui"],
        environment=_ours_environment,
        ready=r"(?m)^\s*[>❯›]|Ask|Message",
        ask="/context",
        read=_read_ours,
        close=("Escape",),
        headless=("context", "--json"),
        again=("-c",),
        leave=("C-q",),
    )


# Claude Code: onboarding, trust and the key are answered in its state file; a model that has 200k in its own table.

_CLAUDE_KEY = "sk-ant-api03-league-0000"
_CLAUDE_MODEL = "claude-sonnet-4-5"


def _claude_config(place: Place) -> None:
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(place.project): trusted}}
    state["customApiKeyResponses"] = {"approved": [_CLAUDE_KEY[-20:]], "rejected": []}
    place.write(".claude.json", json.dumps(state))
    place.write(".claude/settings.json", json.dumps({"permissions": {"allow": ["Read", "Bash(cat:*)"]}}))


def _claude_environment(place: Place) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_API_KEY": _CLAUDE_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }


def _read_claude(screen: str) -> Shown | None:
    found = last(rf"{NUMBER}/{NUMBER} tokens \((\d+)%\)", screen)
    return Shown(number(found[1], found[2]), float(found[5]), found[0]) if found else None


CLAUDE = Rival(
    name="claude",
    title="Claude Code",
    package="@anthropic-ai/claude-code",
    dialect="anthropic",
    told=f"nowhere: {_CLAUDE_MODEL} has 200k in its own table",
    prepare=_claude_config,
    command=lambda place: [
        str(place.installed / "node_modules/@anthropic-ai/claude-code-linux-x64/claude"),
        *("--model", _CLAUDE_MODEL),
    ],
    environment=_claude_environment,
    ready=r"(?m)^❯",
    ask="/context",
    read=_read_claude,
    headless=("--continue", "-p", "/context"),
)


# Codex


def _codex_config(place: Place) -> None:
    place.write(
        ".codex/config.toml",
        f'model = "{MODEL}"\nmodel_provider = "league"\nmodel_context_window = {WINDOW}\n'
        'approval_policy = "never"\nsandbox_mode = "danger-full-access"\ncheck_for_update_on_startup = false\n'
        f'[model_providers.league]\nname = "league"\nbase_url = "{place.url}/v1"\nenv_key = "LEAGUE_KEY"\n'
        f'wire_api = "responses"\n[projects."{place.project}"]\ntrust_level = "trusted"\n',
    )


def _read_codex(screen: str) -> Shown | None:
    found = last(rf"Context window:\s+(\d+)% left \({NUMBER} used / {NUMBER}\)", screen)
    return Shown(number(found[2], found[3]), 100.0 - float(found[1]), found[0]) if found else None


CODEX = Rival(
    name="codex",
    title="Codex",
    package="@openai/codex",
    dialect="responses",
    told="model_context_window in its configuration (it shows 95 % of it)",
    prepare=_codex_config,
    command=lambda place: [npm_program(place, "codex")],
    environment=lambda place: {"LEAGUE_KEY": "x"},
    ready=r"(?m)^› ",
    ask="/status",
    read=_read_codex,
    again=("resume", "--last"),
)


# OpenCode


def _opencode_config(place: Place) -> None:
    model = {"name": "League", "limit": {"context": WINDOW, "output": 32_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "League",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": "x"},
        "models": {MODEL: model},
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": f"league/{MODEL}",
        "small_model": f"league/{MODEL}",
        "provider": {"league": provider},
        "permission": {"*": "allow"},
    }
    place.write(".config/opencode/opencode.json", json.dumps(config))


def _read_opencode(screen: str) -> Shown | None:
    found = last(rf"{NUMBER} tokens", screen)
    share = last(r"(\d+)% used", screen)
    return Shown(number(found[1], found[2]), float(share[1]) if share else None, found[0]) if found else None


OPENCODE = Rival(
    name="opencode",
    title="OpenCode",
    package="opencode-ai",
    dialect="chat",
    told="limit.context in its configuration",
    prepare=_opencode_config,
    command=lambda place: [npm_program(place, "opencode")],
    environment=lambda place: {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    },
    ready=r"ctrl\+p commands",
    read=_read_opencode,
)


# pi


def _pi_config(place: Place) -> None:
    model = {"id": MODEL, "name": "League", "reasoning": False, "input": ["text"], "contextWindow": WINDOW}
    model |= {"maxTokens": 32_000, "cost": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}}
    provider = {"baseUrl": f"{place.url}/v1", "api": "openai-completions", "apiKey": "x", "models": [model]}
    place.write(".pi/agent/models.json", json.dumps({"providers": {"league": provider}}))


def _read_pi(screen: str) -> Shown | None:
    found = last(rf"(\d+\.\d+|\?)%?/{NUMBER}", screen)
    if found is None or found[1] == "?":
        return None
    return Shown(round(float(found[1]) / 100 * number(found[2], found[3])), float(found[1]), found[0])


PI = Rival(
    name="pi",
    title="pi",
    package="@mariozechner/pi-coding-agent",
    dialect="chat",
    told="contextWindow in its models.json",
    prepare=_pi_config,
    command=lambda place: [npm_program(place, "pi"), "--provider", "league", "--model", MODEL],
    environment=lambda place: {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"},
    ready=r"/200k",
    read=_read_pi,
    notes=("shows a percentage with one decimal only: its tokens are that share of the window",),
)

FIRST = (_ours("chat"), _ours("anthropic"), CLAUDE, CODEX, OPENCODE, PI)
