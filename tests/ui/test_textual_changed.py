"""Where drawing in the program's own way fails, Textual draws, and the chat works all the same."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent_tui.models.messages import Message, user_message
from agent_tui.models.requests import Delta
from agent_tui.ui.textual_private.drawing import EchoingScreen
from tests.support.forms import one_of, some
from tests.support.real_app import make_home
from tests.ui.drawn import Drawn, drawn


class PrivateName(NamedTuple):
    owner: str
    name: str


DRAWING = [
    PrivateName("textual._compositor", "Compositor"),
    PrivateName("textual._compositor", "CompositorUpdate"),
    PrivateName("textual._compositor.Compositor", "_dirty_regions"),
    PrivateName("textual.screen.Screen", "_compositor"),
    PrivateName("textual.screen.Screen", "_compositor_refresh"),
    PrivateName("textual.screen.Screen", "_dirty_widgets"),
    PrivateName("textual.widget.Widget", "_layout_required"),
    PrivateName("textual.app.App", "_batch_count"),
    PrivateName("textual.screen.Screen", "_on_timer_update"),
    PrivateName("textual.widget.Widget", "_set_dirty"),
]
IDS = {each: ".".join(each) for each in DRAWING}
SIZE = (90, 30)
FRAMES = "agent_tui.ui.textual_private.frames"


FAILURE = "another kind of region"


async def use(window: Drawn) -> None:
    """Types, sends, reads an answer as it comes, opens a dialog and leaves it, scrolls, types on."""
    run, app = window.run, window.run.app

    def shows(text: str) -> bool:
        return any(text in row for row in window.terminal.text())

    await run.until(lambda: shows("Ask anything"))
    await run.type("hello")
    await run.until(lambda: shows("hello"))
    await run.pilot.press("enter")
    await run.until(lambda: shows("Ask anything"))
    app.transcript.add_message(user_message("hello"))
    app.transcript.begin_answer(Message("s", "assistant", status="streaming"))
    for word in ("first\n\n", "second\n\n", *(f"line {n}\n\n" for n in range(SIZE[1])), "third"):
        app.transcript.apply_delta("s", Delta(0, "text", word))
        await run.pilot.pause()
    await run.until(lambda: shows("third"))
    app.open_screen("help")
    await run.until(lambda: shows("/resume"))
    app.transcript.apply_delta("s", Delta(0, "text", " and last"))
    await run.pilot.pause()
    await run.pilot.press("escape")
    await run.until(lambda: not shows("/resume") and shows("third and last"))
    await run.pilot.press("pageup", "pageup")
    await run.until(lambda: shows("second"))
    await run.type("more")
    await run.until(lambda: shows("more"))


def told(window: Drawn) -> str:
    """What the agent's checks can say."""
    return next((str(call[1]) for call in window.run.agent.calls if call[0] == "tell_drawing"), "")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "agent_tui.ui.app"]


async def test_as_it_is_installed_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with drawn(tmp_path, monkeypatch, SIZE) as window:
        await use(window)
        assert not window.run.app.drawing.problem and told(window) == ""
    assert warnings(caplog) == []


@pytest.mark.slow
@pytest.mark.parametrize("broken", one_of([(each,) for each in some(DRAWING, 2)]), ids=IDS.__getitem__)
async def test_a_private_name_fails_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: PrivateName
) -> None:
    """Where the program uses it; Textual itself can."""
    fail_for_us(monkeypatch, broken)
    async with drawn(tmp_path, monkeypatch, SIZE) as window:
        await use(window)
        assert "Textual's own way" in told(window)
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("when", one_of([0, 3, 10]))
async def test_drawing_fails_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, when: int
) -> None:
    fail_after(monkeypatch, when)
    async with drawn(tmp_path, monkeypatch, SIZE) as window:
        await use(window)
        assert FAILURE in told(window)
    assert len(warnings(caplog)) == 1


def fail_after(monkeypatch: pytest.MonkeyPatch, frames: int) -> None:
    """Has the program's own way of drawing fail after about so many whole frames."""
    module = importlib.import_module(FRAMES)
    parts, asked = module.FrameCompositor.parts, []

    def fails(self: object, y: int) -> object:
        asked.append(y)
        if len(asked) > frames * SIZE[1]:
            raise TypeError(FAILURE)
        return parts(self, y)

    monkeypatch.setattr(module.FrameCompositor, "parts", fails)


@pytest.mark.slow
async def test_the_whole_program_says_so_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the demo model, asked by keys, and its ``/doctor``."""
    fail_after(monkeypatch, 3)
    async with make_home(tmp_path, monkeypatch).chat(size=(140, 60)) as chat:
        await chat.say("hello")
        await chat.shows("You wrote 1 word")
        await chat.say("/doctor")
        await chat.until(lambda: any("textual" in row and FAILURE in row for row in chat.screen().splitlines()))


def fail_for_us(monkeypatch: pytest.MonkeyPatch, broken: PrivateName) -> None:
    if broken.name == "_compositor_refresh":  # what fails in Textual's own fails in Textual's way too
        monkeypatch.setattr(EchoingScreen, "refresh_behind", lambda screen: screen.no_such_thing)
        return
    module, _, last = broken.owner.rpartition(".")
    if not last[0].isupper():  # a class
        made = getattr(importlib.import_module(broken.owner), broken.name)
        own = importlib.import_module(FRAMES)

        def fails(*arguments: object, **more: object) -> None:
            raise RuntimeError(f"{broken.name} is made in another way")

        for each in vars(own).values():
            if isinstance(each, type) and issubclass(each, made) and each is not made:
                monkeypatch.setattr(each, "__init__", fails)
        return
    owner = getattr(importlib.import_module(module), last)
    monkeypatch.setattr(owner, broken.name, FailsForUs(broken.name, vars(owner).get(broken.name)), raising=False)


class FailsForUs:
    """An attribute or a method that fails for the program and nobody else."""

    def __init__(self, name: str, method: Any) -> None:
        self.name = name
        self.method = method

    def check(self) -> None:
        if sys._getframe(2).f_globals["__name__"].startswith("agent_tui."):
            raise RuntimeError(f"{self.name} is something else")

    def __get__(self, node: Any, kind: type) -> Any:
        if node is None:
            return self
        self.check()
        return self.method.__get__(node, kind) if self.method is not None else vars(node)[self.name]

    def __set__(self, node: Any, value: Any) -> None:
        self.check()
        vars(node)[self.name] = value
