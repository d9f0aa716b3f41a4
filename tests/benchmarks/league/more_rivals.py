"""Who takes part beside those of ``rivals.py``."""

from __future__ import annotations

import json

from tests.benchmarks.league.rivals import MODEL, NUMBER, WINDOW, Place, Rival, Shown, last, npm_program, number

# Gemini CLI: its window is that of its model in its own table, and nowhere told.

GEMINI_WINDOW = 1_048_576


def _gemini_config(place: Place) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "ui": {"footer": {"hideContextPercentage": False}},
    }
    place.write(".gemini/settings.json", json.dumps(settings))


def _read_gemini(screen: str) -> Shown | None:
    found = last(r"(\d+)% used", screen)
    return Shown(round(float(found[1]) / 100 * GEMINI_WINDOW), float(found[1]), found[0]) if found else None


GEMINI = Rival(
    name="gemini",
    title="Gemini CLI",
    package="@google/gemini-cli",
    dialect="gemini",
    told="nowhere: gemini-2.5-pro has 1,048,576 in its own table",
    prepare=_gemini_config,
    command=lambda place: [npm_program(place, "gemini"), "--model", "gemini-2.5-pro", "--approval-mode", "yolo"],
    environment=lambda place: {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": place.url},
    ready=r"Type your message",
    read=_read_gemini,
    again=("--resume",),
    shell_left=("Escape",),
    leave=("/quit", "Enter"),
    compact="/compress",
    window=GEMINI_WINDOW,
    notes=(
        "its footer, which has to be switched on, shows whole percents of a million: tokens are that share",
        "after --resume it sends every tool's result twice",
    ),
)


# Qwen Code


def _qwen_config(place: Place) -> None:
    settings = {
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"name": MODEL, "generationConfig": {"contextWindowSize": WINDOW}},
    }
    place.write(".qwen/settings.json", json.dumps(settings))


def _read_qwen(screen: str) -> Shown | None:
    found = last(rf"Used +{NUMBER} tokens \((\d+(?:\.\d+)?)%\)", screen)
    return Shown(number(found[1], found[2]), float(found[3]), " ".join(found[0].split())) if found else None


QWEN = Rival(
    name="qwen",
    title="Qwen Code",
    package="@qwen-code/qwen-code",
    dialect="chat",
    told="contextWindowSize in its settings",
    prepare=_qwen_config,
    command=lambda place: [npm_program(place, "qwen"), "--approval-mode", "yolo"],
    environment=lambda place: {
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": f"{place.url}/v1",
        "OPENAI_MODEL": MODEL,
    },
    ready=r"Type your message",
    ask="/context",
    read=_read_qwen,
    notes=("after a compaction it puts the files that were read last back in",),
    shell_left=("Escape",),
    leave=("/quit", "Enter"),
    compact="/compress",
)


# Mistral Vibe: what it compacts at is what it shows its context against.


def _vibe_config(place: Place) -> None:
    place.write(
        ".vibe/config.toml",
        'active_model = "league"\nenable_update_checks = false\nenable_telemetry = false\n'
        f'[[providers]]\nname = "league"\napi_base = "{place.url}/v1"\napi_key_env_var = "LEAGUE_KEY"\n'
        'api_style = "openai"\nbackend = "generic"\n'
        f'[[models]]\nname = "{MODEL}"\nprovider = "league"\nalias = "league"\nauto_compact_threshold = {WINDOW}\n',
    )


def _read_vibe(screen: str) -> Shown | None:
    found = last(rf"(\d+)% of {NUMBER} tokens", screen)
    if found is None:
        return None
    return Shown(round(float(found[1]) / 100 * number(found[2], found[3])), float(found[1]), found[0])


VIBE = Rival(
    name="vibe",
    title="Mistral Vibe",
    package="mistral-vibe",
    dialect="chat",
    told="auto_compact_threshold in its configuration, which its footer shows the context against",
    prepare=_vibe_config,
    command=lambda place: [str(place.installed / "vibe"), "--agent", "auto-approve", "--trust"],
    environment=lambda place: {"LEAGUE_KEY": "x"},
    ready=r"% of .* tokens",
    read=_read_vibe,
    notes=("shows whole percents: its tokens are that share of the window",),
)

# Copilot CLI, with a provider of the user's own, for which it needs no account


def _copilot_config(place: Place) -> None:
    place.write(".copilot/config.json", json.dumps({"trustedFolders": [str(place.project)]}))


def _read_copilot(screen: str) -> Shown | None:
    found = last(rf"{NUMBER}/{NUMBER} tokens \((\d+)%\)", screen)
    return Shown(number(found[1], found[2]), float(found[5]), found[0]) if found else None


COPILOT = Rival(
    name="copilot",
    title="Copilot CLI",
    package="@github/copilot",
    dialect="chat",
    told="COPILOT_PROVIDER_MAX_PROMPT_TOKENS in its environment",
    prepare=_copilot_config,
    command=lambda place: [npm_program(place, "copilot"), "--allow-all"],
    environment=lambda place: {
        "COPILOT_PROVIDER_BASE_URL": f"{place.url}/v1",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": str(WINDOW),
        "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "32000",
        "COPILOT_MODEL": MODEL,
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    },
    ready=r"(?m)^❯",
    ask="/context",
    read=_read_copilot,
)

MORE = (COPILOT, GEMINI, QWEN, VIBE)
