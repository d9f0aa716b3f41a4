"""Themes: the package's are complete and legible, a user's broken file is one line and spoils nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color

from agent_tui.config import Settings
from agent_tui.ui.app import AgentApp, ChatStart
from agent_tui.ui.first_frame import DEFAULT_THEME
from agent_tui.ui.theme import VARIABLES, contrast, load_theme, load_themes, start_theme
from tests.support.app import running
from tests.support.every import every
from tests.support.fake_agent import FakeAgent

SHIPPED = load_themes(Path("/nonexistent")).themes


@pytest.mark.quick
def test_shipped_themes_load() -> None:
    found = load_themes(Path("/nonexistent"))
    assert found.problems == []
    assert {"agent-dark", "agent-light", "high-contrast", "nord", "solarized-dark", "ansi"} <= set(found.themes)


@pytest.mark.quick
@every("name", sorted(SHIPPED))
def test_shipped_themes_are_complete(name: str) -> None:
    """How legible: test_app_contrast."""
    theme = SHIPPED[name]
    assert set(VARIABLES) <= set(theme.variables)
    if not theme.ansi:
        assert contrast(Color.parse(theme.background or ""), Color.parse(theme.foreground or "")) >= 7.0


@pytest.mark.quick
def test_broken_user_themes_are_one_line_each(tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text('[colors]\nprimary = "#ff0000"\n')
    (tmp_path / "syntax.toml").write_text("[colors\n")
    (tmp_path / "colour.toml").write_text('[colors]\nprimary = "nice"\n')
    (tmp_path / "unknown.toml").write_text('colour = 1\n[colors]\nprimary = "red"\n')
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    found = load_themes(tmp_path)
    assert "good" in found.themes and "agent-dark" in found.themes
    assert len(found.problems) == 4
    assert all("\n" not in p and str(tmp_path) in p for p in found.problems)


@pytest.mark.quick
def test_the_default_theme_needs_no_file_and_is_the_shipped_one(tmp_path: Path) -> None:
    built_in, problem = start_theme(DEFAULT_THEME, tmp_path)
    assert problem is None
    assert built_in == SHIPPED[DEFAULT_THEME]


@pytest.mark.quick
def test_a_users_own_file_replaces_the_default_theme(tmp_path: Path) -> None:
    file = tmp_path / f"{DEFAULT_THEME}.toml"
    file.write_text('[colors]\nprimary = "#ff0000"\n')
    assert start_theme(DEFAULT_THEME, tmp_path) == (load_theme(file), None)
    file.write_text("[colors\n")
    theme, problem = start_theme(DEFAULT_THEME, tmp_path)
    assert theme == SHIPPED[DEFAULT_THEME] or problem is not None


@pytest.mark.quick
def test_a_theme_that_does_not_exist_is_said_and_the_default_used(tmp_path: Path) -> None:
    theme, problem = start_theme("nope", tmp_path)
    assert theme.name == "agent-dark"
    assert problem is not None and "nope" in problem and "agent-light" in problem


@pytest.mark.slow
async def test_every_theme_draws_every_screen(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for screen in ("context", "help", "themes"):
            run.app.open_screen(screen)
            await run.until(lambda: len(run.app.screen_stack) == 2 and run.app.screen.query("#rows"))
            for name, theme in sorted(SHIPPED.items()):
                run.app.register_theme(theme)
                run.app.theme = name
                await run.pilot.pause()
                assert not run.app.net.errors and len(run.app.screen_stack) == 2, (screen, name)
            await run.pilot.press("escape")
            await run.until(lambda: len(run.app.screen_stack) == 1)


async def test_no_color_keeps_segments_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(tmp_path) as run:
        run.app.open_screen("context")
        await run.until(lambda: "compacts in" in run.shown())
        bar = next(line for line in run.shown().splitlines() if "┊" in line)
        assert len({c for c in bar if c != " "}) >= 6


@pytest.mark.slow
async def test_a_chosen_theme_is_there_at_the_next_start(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("/theme nord")
        await run.pilot.press("enter")
        await run.until(lambda: run.app.theme == "nord")
        await run.until(lambda: ", saved" in run.shown())
    async with running(tmp_path) as run:
        assert run.app.theme == "nord"


async def test_a_theme_that_nothing_is_like_is_said_with_those_there_are(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("/theme zzz")
        await run.pilot.press("enter")
        await run.until(lambda: "Unknown theme zzz" in run.shown())
        assert "agent-light" in run.shown()
        assert len(run.app.screen_stack) == 1


async def test_a_configured_theme_wins_over_the_chosen_one(tmp_path: Path) -> None:
    settings = Settings()
    settings.ui.theme = "agent-light"
    async with running(tmp_path, settings=settings) as run:
        await run.type("/theme nord")
        await run.pilot.press("enter")
        await run.until(lambda: "the configuration sets agent-light" in run.shown())
    async with running(tmp_path, settings=settings) as run:
        assert run.app.theme == "agent-light"


@pytest.mark.forms(1)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"gone\n"])
async def test_a_broken_memory_of_the_theme_means_the_default(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "theme").write_bytes(content)
    async with running(tmp_path) as run:
        assert run.app.theme == "agent-dark"


async def test_auto_lets_the_terminal_say_again_which_theme(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("/theme nord")
        await run.pilot.press("enter")
        await run.until(lambda: run.app.theme == "nord")
        await run.type("/theme auto")
        await run.pilot.press("enter")
        await run.until(lambda: "follows the terminal's background" in run.shown())
    async with running(tmp_path) as run:
        assert run.app.theme == "agent-dark"


async def test_the_terminals_answer_changes_nothing_that_was_chosen_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    agent = FakeAgent(tmp_path)

    async def factory() -> FakeAgent:
        return agent

    for chosen, theme in (("", "agent-light"), ("nord", "nord")):
        app = AgentApp(factory, Settings(), agent.paths, tmp_path, ChatStart(detect_colors=True))
        async with app.run_test():
            if chosen:
                app.register_theme(SHIPPED[chosen])
                app.theme = chosen
            app.background_told(True)
            assert app.theme == theme
            app.background_told(False)
            assert app.theme == theme, "it is asked once"
