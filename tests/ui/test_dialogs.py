"""Dialogs take the size of what is in them and leave the chat to be seen; nothing that opens makes it narrower."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.screen import Screen

import agent_tui.ui.screens
from agent_tui.ui.screens.help import HelpScreen
from agent_tui.ui.screens.picker import TALLEST, WIDEST, Picker, fitting
from agent_tui.ui.screens.text import TextScreen
from agent_tui.ui.screens.work import FollowedPicker
from tests.support.app import Clock, shown
from tests.support.forms import one_of, only_long
from tests.support.scenes import SCENES, showcase_app, stage

SIZES = [(60, 20), (80, 24), (120, 40), (200, 50)]
PICKERS = (
    *(
        "model",
        "theme",
        "resume",
        "rewind",
        "help",
        "palette",
        "history",
        "jobs",
        "cache",
        "thinking",
        "failed-queue",
        "tidy",
    ),
)


def behind_and_before(app: App[int]) -> str:
    """What the terminal shows, other screens behind the dialog included."""
    return app.export_screenshot().replace("&#160;", " ")


def screens() -> set[type[Screen[Any]]]:
    """All kinds of screens there are."""
    kinds: list[type[Screen[Any]]] = [Screen]
    found: set[type[Screen[Any]]] = set()
    for module in pkgutil.walk_packages(agent_tui.ui.screens.__path__, "agent_tui.ui.screens."):
        importlib.import_module(module.name)
    while kinds:
        kinds += (kind := kinds.pop()).__subclasses__()
        if kind.__module__.startswith("agent_tui.ui.screens.") and kind not in (Picker, FollowedPicker):
            found.add(kind)
    return found


@pytest.mark.slow
async def test_every_screen_has_its_scene(tmp_path: Path) -> None:
    seen = set()
    for scene in (*PICKERS, "context", "text", "job-output", "picture", "compact-preview", "status", "key"):
        app, agent = showcase_app(tmp_path / scene, Clock())
        async with app.run_test(size=(80, 24)) as pilot:
            await stage(app, pilot, agent, SCENES[scene])
            seen.add(type(app.screen))
    assert seen == screens()


EMPTY = {
    "no-sessions": ("No sessions yet.", "Ctrl+A all projects · Esc close"),
    "nothing-found": ("No session matches.", "Ctrl+A all projects · Esc close"),
    "jobs-none": ("Nothing runs in the background.", "Esc close"),
    "queue-none": ("The queue is empty.", "Esc close"),
    "cache-none": ("No answered calls yet.", "Esc close"),
    "history": ("No prompts in this project yet.", "Esc close"),
    "palette-none": ("Nothing matches.", "Esc close"),
}


@pytest.mark.slow
async def test_what_holds_nothing_says_so_and_offers_what_can_be_done(tmp_path: Path) -> None:
    app, agent = showcase_app(tmp_path, Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        for scene, (said, keys) in EMPTY.items():
            await stage(app, pilot, agent, SCENES[scene])
            await app.workers.wait_for_complete()
            await pilot.pause()
            frame, text = app.screen.query_one("#frame"), shown(app)
            assert said in text and str(frame.border_subtitle) == keys, scene
            assert not any(names.display for names in app.screen.query("#headings")), "no columns of nothing"
            assert scene == "palette-none" or frame.region.height == 7, "no larger than that"
            while len(app.screen_stack) > 1:
                await app.pop_screen()


@pytest.mark.slow
@pytest.mark.parametrize("size", [SIZES[0], SIZES[2], *only_long(SIZES[1], SIZES[3])])
async def test_dialogs_are_as_large_as_their_content(tmp_path: Path, size: tuple[int, int]) -> None:
    for scene in PICKERS:
        app, agent = showcase_app(tmp_path / scene, Clock())
        async with app.run_test(size=size) as pilot:
            await stage(app, pilot, agent, SCENES[scene])
            frame, rows = app.screen.query_one("#frame"), app.screen.query_one("#rows")
            assert app.screen.region.contains_region(frame.region), scene
            assert frame.region.width <= WIDEST + 8 and frame.region.height <= TALLEST, scene
            count = rows.count  # type: ignore[attr-defined]
            free = rows.region.height - count
            assert free <= 2 or scene == "history", (scene, free, "empty lines")
            assert rows.region.height >= min(count, 3), (scene, "rows to choose from")
            subtitle = str(frame.border_subtitle)
            assert "Esc" in subtitle and "…" not in subtitle, scene
            high = frame.region.height
            await pilot.press(*"zzzz")
            await pilot.pause()
            assert frame.region.height == high, (scene, "stays as large while one types")
        assert not app.net.errors


@pytest.mark.slow
async def test_the_chat_is_seen_behind_a_dialog(tmp_path: Path) -> None:
    app, agent = showcase_app(tmp_path, Clock())
    async with app.run_test() as pilot:
        await stage(app, pilot, agent, SCENES["key"])
        for size in SIZES[1:]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            both = behind_and_before(app)
            assert "The tests pass" in both and "needs an API key" in both, size


@pytest.mark.slow
@pytest.mark.parametrize("size", one_of([(size,) for size in SIZES]))
async def test_a_theme_is_previewed_by_a_sample_and_the_chat_and_esc_goes_back(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app, agent = showcase_app(tmp_path, Clock(), theme="nord")
    async with app.run_test(size=size) as pilot:
        worn: list[str] = []
        app.theme_changed_signal.subscribe(app, lambda theme: worn.append(theme.name), immediate=True)
        await stage(app, pilot, agent, SCENES["theme"])
        assert worn == [], "opening it changes nothing"
        picture = behind_and_before(app)
        assert "def " in picture and "-    return name" in picture and "+    return name.strip()" in picture
        assert "Ann" in picture or "greet" in picture.replace("def greet", ""), "the conversation stays to be seen"
        front, base = app.theme_variables["foreground"], app.transcript.rich_style.bgcolor
        await pilot.press("up")
        await pilot.pause()
        assert app.theme == "high-contrast" and app.theme_variables["foreground"] != front
        await pilot.pause()
        assert app.transcript.rich_style.bgcolor != base, "the chat behind wears it too"
        await pilot.press("escape")
        await pilot.pause()
        assert app.theme == "nord" and app.transcript.rich_style.bgcolor == base


@pytest.mark.slow
async def test_a_text_to_read_is_framed_as_large_as_it_is(tmp_path: Path) -> None:
    app, agent = showcase_app(tmp_path, Clock())
    async with app.run_test(size=(120, 40)) as pilot:
        await stage(app, pilot, agent, SCENES["chat"])
        for lines, width in ((3, 60), (3, 500), (200, 60)):
            await app.push_screen(TextScreen("Read this", "\n".join("§" * width for _ in range(lines))))
            await pilot.pause()
            frame = app.screen.query_one("#frame")
            wrapped = lines * -(-width // (frame.region.width - 5))
            assert frame.region.width == min(width + 5, 116)
            assert frame.region.height == min(wrapped + 2, 36)
            assert shown(app).count("§") == min(lines * width, 34 * min(width, 111))
            await pilot.press("escape")


@pytest.mark.slow
@pytest.mark.parametrize(
    "scene", one_of(["permission", "completions", "question", "find", "server-form", "plan", "queue"], every=3)
)
async def test_what_opens_beside_the_conversation_does_not_make_it_narrower(tmp_path: Path, scene: str) -> None:
    app, agent = showcase_app(tmp_path, Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await stage(app, pilot, agent, SCENES["chat"])
        assert app.transcript.region.width == 80
        await SCENES[scene](app, pilot, agent)
        await pilot.pause()
        assert app.transcript.region.width == 80


def test_keys_are_left_out_whole_before_the_one_that_leaves() -> None:
    hint = "Enter go back · Ctrl+R files too · Ctrl+F fork there · Esc close"
    assert fitting(hint, 80) == hint
    assert fitting(hint, 50) == "Enter go back · Ctrl+R files too · Esc close"
    assert fitting(hint, 12) == "Esc close"


def test_every_list_says_what_enter_does_also_on_a_narrow_screen() -> None:
    for module in pkgutil.iter_modules(agent_tui.ui.screens.__path__):
        importlib.import_module(f"agent_tui.ui.screens.{module.name}")
    waiting: list[type[Any]] = [Picker]
    lists: list[type[Any]] = []
    while waiting:
        lists += (found := waiting.pop().__subclasses__())
        waiting += found
    assert len(lists) > 5
    for one in lists:
        if one is HelpScreen:
            continue  # There Enter does nothing.
        assert "Enter " in fitting(one.HINT, 54), one
