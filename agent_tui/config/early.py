"""What must be known before the first frame: theme and keys, without validation."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from agent_tui.config import Settings
from agent_tui.config.files import Layer, build_settings, env_layer, file_layer, merge
from agent_tui.errors import ConfigError
from agent_tui.paths import Paths


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
