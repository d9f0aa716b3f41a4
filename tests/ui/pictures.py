"""Pictures of every screen, to be looked at: ``python tests/ui/pictures.py FOLDER [--scenes chat,help] [--sizes 80x24]
[--themes agent-dark] [--text]``. Writes SVG; PNG beside it where the package cairosvg is installed or the program
rsvg-convert is; with ``--text`` also what stands on the screen as plain lines."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest

from agent_tui.ui.app import AgentApp
from tests.support.app import Clock, shown
from tests.support.scenes import SCENES, showcase_app, stage, stop_the_clock, strips_of
from tests.support.svg import Colors, drawing, to_png

SIZES = ("60x20", "80x24", "120x40", "200x50")
THEMES = ("agent-dark", "agent-light")


async def take(folder: Path, scene: str, size: str, theme: str, text: bool) -> Path:
    """One picture; its file."""
    width, height = (int(part) for part in size.split("x"))
    file = folder / f"{scene}-{size}-{theme}.svg"

    def keep(app: AgentApp) -> None:
        assert not app.net.errors, app.net.errors
        words = shown(app)
        file.write_text(drawing(strips_of(app), Colors(app.ansi_theme), file.stem), encoding="utf-8")
        if text:
            file.with_suffix(".txt").write_text(words + "\n", encoding="utf-8")

    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder_name,
        pytest.MonkeyPatch.context() as monkeypatch,
    ):
        stop_the_clock(monkeypatch)
        app, agent = showcase_app(Path(folder_name), Clock(), theme=theme)
        async with app.run_test(size=(width, height)) as pilot:
            await stage(app, pilot, agent, SCENES[scene])
            keep(app)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenes", default=",".join(SCENES))
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--themes", default=",".join(THEMES))
    parser.add_argument("--text", action="store_true")
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    for theme in wanted.themes.split(","):
        for size in wanted.sizes.split(","):
            for scene in wanted.scenes.split(","):
                file = asyncio.run(take(wanted.folder, scene, size, theme, wanted.text))
                drawn = to_png(file)
                print(file.with_suffix(".png") if drawn else file)


if __name__ == "__main__":
    main()
