"""What the eye needs: every text can be read where it stands, selected or not, in every theme."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.segment import Segment
from textual.app import App
from textual.color import Color
from textual.geometry import Region

from agent_tui.ui.theme import COLORS, LEAST_FAINT, LEAST_TEXT, contrast, load_theme, load_themes
from tests.support.app import Clock
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.scenes import SCENES, selected, showcase_app, stage

SHIPPED = load_themes(Path("/nonexistent")).themes
COLORED = sorted(name for name, theme in SHIPPED.items() if not theme.ansi)
BACKGROUNDS = ("background", "surface", "panel")
TEXTS = ("foreground", "primary", "secondary", "accent", "success", "warning", "error")
OWN_TEXTS = ("muted", "user", "diff-add", "diff-remove")
LEAST_IN_16 = 3.0
"""Least contrast of text in the 16 colours, which are what the terminal makes of them."""
TOLD_APART = 1.3
"""Least contrast of a selection with what is around it."""


def on_screen(app: App[Any], region: Region) -> Iterator[Segment]:
    """What stands in a part of the screen."""
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        if region.y <= y < region.bottom:
            yield from strip.crop(region.x, region.right)


def words(segments: Iterator[Segment]) -> Iterator[Segment]:
    """Those with letters or digits: lines and bars are no text."""
    return (each for each in segments if each.style is not None and any(c.isalnum() for c in each.text))


def legible(segment: Segment) -> float:
    assert segment.style is not None and segment.style.color is not None and segment.style.bgcolor is not None
    pair = [Color.from_rich_color(color) for color in (segment.style.color, segment.style.bgcolor)]
    return contrast(*pair)


@pytest.mark.quick
@every("name", COLORED)
def test_all_text_colours_can_be_read_on_all_backgrounds(name: str) -> None:
    theme = SHIPPED[name]
    found = {**{key: getattr(theme, key) for key in COLORS}, **theme.variables}
    for back in BACKGROUNDS:
        on = Color.parse(found[back])
        assert contrast(Color.parse(found["faint"]), on) >= LEAST_FAINT, (back, "faint")
        for front in (*TEXTS, *OWN_TEXTS):
            assert contrast(Color.parse(found[front]), on) >= LEAST_TEXT, (back, front)
        assert contrast(Color.parse(found["selection"]), on) >= TOLD_APART, back
    assert contrast(Color.parse(found["selection"]), Color.parse(found["selection-text"])) >= LEAST_TEXT


PALETTES = {
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
    "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
    "vga": "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa "
    "555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff",
    "campbell": "0c0c0c c50f1f 13a10e c19c00 0037da 881798 3a96dd cccccc "
    "767676 e74856 16c60c f9f1a5 3b78ff b4009e 61d6d6 f2f2f2",
}
"""What the 16 colours are in xterm, on the console of Linux, in the terminal of Windows."""
ANSI_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


@pytest.mark.quick
@every("palette", PALETTES)
@every("name", ["ansi", "ansi-light"])
def test_texts_of_few_colours_can_be_read_in_real_terminals(name: str, palette: str) -> None:
    theme, hexes = SHIPPED[name], PALETTES[palette].split()
    shades = dict(zip([f"ansi_{n}" for n in (*ANSI_NAMES, *(f"bright_{n}" for n in ANSI_NAMES))], hexes, strict=True))
    on = Color.parse("#000000" if theme.dark else "#ffffff")
    found = {**{key: getattr(theme, key) for key in COLORS}, **theme.variables}
    for front in (*TEXTS, *OWN_TEXTS):
        if found[front] != "ansi_default":
            assert contrast(Color.parse(f"#{shades[found[front]]}"), on) >= LEAST_IN_16, front


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("primary", ["#808080", "#ff0000", "#0000ff", "#00ff00", "#f0f0f0", "#101010"])
def test_what_a_users_theme_leaves_out_can_be_read(tmp_path: Path, dark: bool, primary: str) -> None:
    front, back, surface = ("#d0d0d0", "#101010", "#202020") if dark else ("#202020", "#f4f4f4", "#e8e8e8")
    file = tmp_path / "own.toml"
    file.write_text(
        f"dark = {str(dark).lower()}\n[colors]\nprimary = '{primary}'\nforeground = '{front}'\n"
        f"background = '{back}'\nsurface = '{surface}'\n"
    )
    variables = load_theme(file).variables
    for on in (back, surface):
        assert contrast(Color.parse(variables["faint"]), Color.parse(on)) >= LEAST_FAINT
    selection, text = (Color.parse(variables[key]) for key in ("selection", "selection-text"))
    assert contrast(selection, text) >= LEAST_TEXT


FIRST = ("agent-dark", "ansi")


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FIRST else [pytest.mark.slow]) for name in sorted(SHIPPED)]
)
async def test_what_is_selected_can_be_read_over_prose_code_and_diffs(tmp_path: Path, name: str) -> None:
    app, agent = showcase_app(tmp_path, Clock(), theme=name)
    async with app.run_test(size=(100, 60)) as pilot:
        await stage(app, pilot, agent, selected)
        variables = app.theme_variables
        for region, told in (
            (
                app.transcript.region,
                ("def greet", "return", "typed by people", "Hello, Ann!", "+", "the runner's page"),
            ),
            (app.prompt.region, ("of it selected",)),
        ):
            marked = []
            for segment in on_screen(app, region):
                style = segment.style
                if style is None or style.color is None or style.bgcolor is None:
                    assert not segment.text.strip()
                elif SHIPPED[name].ansi:
                    if style.reverse:
                        assert style.bgcolor.is_default and style.color.is_default, segment
                        marked.append(segment.text)
                elif Color.from_rich_color(style.bgcolor) == Color.parse(variables["selection"]):
                    assert not segment.text.strip() or legible(segment) >= LEAST_TEXT, segment
                    marked.append(segment.text)
            assert all(text in "".join(marked) for text in told), marked
        assert not app.net.errors


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of(COLORED))
async def test_what_stands_on_the_screens_can_be_read(tmp_path: Path, name: str) -> None:
    app, agent = showcase_app(tmp_path, Clock(), theme=name)
    async with app.run_test(size=(100, 40)) as pilot:
        await stage(app, pilot, agent, SCENES["opened"])
        for scene in ("permission", "context", "help", "theme", "model", "resume", "find"):
            await stage(app, pilot, agent, SCENES[scene])
            on = app.screen.query("#frame")
            found = list(words(on_screen(app, (on.first() if on else app.screen).region)))
            assert found
            for segment in found:
                assert legible(segment) >= LEAST_FAINT - 0.01, (scene, segment, legible(segment))
            if len(app.screen_stack) > 1:
                await pilot.press("escape")
        assert not app.net.errors
