"""Which addresses are opened in a browser, and by what."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_tui.commands.desktop import open_address
from tests.support.starting import stand_alone

pytestmark = pytest.mark.quick


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that are run; an ``xdg-open`` is the only program there is."""
    commands: list[list[str]] = []
    program = tmp_path / "xdg-open"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    stand_alone(monkeypatch, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **_: commands.append([Path(command[0]).name, *command[1:]])
    )
    return commands


@pytest.mark.parametrize("address", ["https://a.example/?x=1", "http://127.0.0.1:81/", "http://localhost:1/"])
def test_pages_are_opened(opened: list[list[str]], address: str) -> None:
    assert open_address(address)
    assert opened == [["xdg-open", address]]


@pytest.mark.parametrize(
    "address",
    ["http://a.example/", "javascript:alert(1)", "file:///etc/passwd", "https.evil://x", "", "--help", "ftp://a/"],
)
def test_nothing_else_is(opened: list[list[str]], address: str) -> None:
    assert not open_address(address)
    assert opened == []


@pytest.mark.parametrize("address", ["http://a.example/", "mailto:a@b.example"])
def test_more_is_of_what_was_clicked(opened: list[list[str]], address: str) -> None:
    assert open_address(address, clicked=True)
    assert opened == [["xdg-open", address]]
    assert not open_address("file:///etc/passwd", clicked=True)


def test_without_a_screen_the_users_own_browser_is_asked(
    opened: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY")
    assert not open_address("https://a.example/")
    monkeypatch.setenv("BROWSER", f"{tmp_path / 'xdg-open'} --there")
    assert open_address("https://a.example/")
    assert opened == [["xdg-open", "--there", "https://a.example/"]]
