"""What must be known before the first frame: theme and keys, without validation; and whether there is to be one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agent_tui.config import Settings
from agent_tui.config.files import Layer, build_settings, env_layer, file_layer, merge
from agent_tui.errors import ConfigError
from agent_tui.paths import Paths

SCREEN_READERS = ("ACCESSIBLE", "SCREEN_READER", "ACCESSIBILITY_ENABLED")
"""Variables that people who use a screen reader set for programs in the terminal. ``ACCESSIBLE`` is what forms and
prompts of many command-line tools go by, ``ACCESSIBILITY_ENABLED`` what is set for desktop programs beside Orca. No
screen reader sets one by itself: the terminal cannot know of it."""

_NO = frozenset({"", "0", "false", "no", "off"})


def early_settings(file: Path | None, paths: Paths) -> Settings:
    """Theme and keys for the first frame, ``file`` being the one named on the command line: read without validation, a
    broken file counts as absent until it is checked."""
    layers: list[Layer] = []
    for path in (paths.config_file, file):
        try:
            layer = file_layer(path) if path is not None else None
        except ConfigError:
            continue
        if layer is not None:
            layers.append(layer)
    with suppress(ConfigError):
        layers.append(env_layer())
    return build_settings(merge(layers))


def why_plain(flag: bool | None, setting: bool | None, environ: Mapping[str, str]) -> str:
    """Why the chat is to be plain, empty where it is not: the flag wins over the setting, the setting over what the
    environment suggests."""
    if flag is not None:
        return "by --plain" if flag else ""
    if setting is not None:
        return "by [ui] plain" if setting else ""
    if environ.get("TERM", "").lower() == "dumb":
        return "because TERM is dumb"
    for name in SCREEN_READERS:
        if environ.get(name, "").strip().lower() not in _NO:
            return f"because {name} is set"
    return ""
