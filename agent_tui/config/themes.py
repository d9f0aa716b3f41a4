"""Which themes there are, by name: for checking the configuration, without reading a colour of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent_tui.config import AUTO_THEME
from agent_tui.config.files import Layer
from agent_tui.errors import ConfigError


def theme_names(*folders: Path) -> list[str]:
    """The names of the themes in ``folders``, sorted. A file that cannot be read as one goes by its own name: what is
    wrong with it is said where it is worn."""
    return sorted({_name(path) for folder in folders if folder.is_dir() for path in folder.glob("*.toml")})


def check_theme(layers: Sequence[Layer], *folders: Path) -> None:
    """Raises ConfigError, with its place, for a theme that no file in ``folders`` is."""
    for layer in layers:
        name = (layer.values.get("ui") or {}).get("theme")
        if name in (None, AUTO_THEME):
            continue
        names = theme_names(*folders)
        if name not in names:
            raise ConfigError(
                f"{layer.place('ui.theme')}: {layer.name('ui.theme')}: no theme is called {name!r}; "
                f"allowed: {AUTO_THEME}, {', '.join(names)}, or a file of yours in {folders[-1]}."
            )


def _name(path: Path) -> str:
    import tomllib

    try:
        name = tomllib.loads(path.read_text("utf-8")).get("name", path.stem)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return path.stem
    return name if isinstance(name, str) and name.strip() else path.stem
