"""What was seen in pictures of the screens, each as a rule: ends of paths are shown, choices are whole, columns stay,
lines are counted as people count them, and keys are named whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style
from textual.pilot import Pilot

from agent_tui.commands.questions import LONG
from agent_tui.commands.tool_words import call_label
from agent_tui.models.events import QuestionAsked
from agent_tui.models.messages import NO_OUTPUT, OWN_OUTPUT, AttachmentPart, user_message
from agent_tui.text.cells import shorten_path, whole_parts, wrapped
from agent_tui.text.numbers import lines_in
from agent_tui.tools.arguments import call_summary
from agent_tui.tools.registry import builtin_tools
from agent_tui.ui.app import AgentApp
from agent_tui.ui.flow.layout import Flow, wrap
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.prompt.placeholders import Placeholders
from agent_tui.ui.transcript.entry import Tools, blocks_of
from agent_tui.ui.transcript.parts import UserBlock
from agent_tui.ui.transcript.tools import ToolBlock
from agent_tui.ui.widgets.bodies import Body
from tests.support.app import Clock, shown
from tests.support.every import every
from tests.support.fake_agent import FakeAgent
from tests.support.forms import one_of
from tests.support.scenes import SCENES, Scene, showcase_app, stage
from tests.support.state_scenes import LONG_NAME
from tests.support.tool_context import make_context

PALETTE = Palette({}, Style())
FILE = "模块_日本語_🎉_module.py"
text = st.text(st.sampled_from("ab日🎉 /·\n"), max_size=60)
width = st.integers(1, 40)


def laid(flow: Flow, width: int) -> list[str]:
    return [line.plain for line in flow.lay(0, width, PALETTE)]


@given(text, width)
def test_a_path_loses_its_beginning_only(path: str, width: int) -> None:
    short = shorten_path(path, width)
    assert cell_len(short) <= width
    assert short == path or (short[0] == "…" and path.endswith(short[1:]))


@given(st.lists(st.text(st.sampled_from("ab日 "), min_size=1, max_size=9), min_size=1, max_size=5), width)
def test_a_line_of_keys_loses_whole_ones(parts: list[str], width: int) -> None:
    line = whole_parts(" · ".join(parts), width)
    assert cell_len(line) <= width
    assert line in [" · ".join(parts[:n]) for n in range(1, len(parts) + 1)] or cell_len(parts[0]) > width


@given(text)
def test_lines_are_those_that_can_be_seen(text: str) -> None:
    assert lines_in(text) == len(text.splitlines()) == lines_in(text.removesuffix("\n") + "\n" * bool(text))


def test_a_paste_has_as_many_lines_in_the_prompt_as_in_the_conversation() -> None:
    pasted = "line\n" * 30
    assert "30 lines" in Placeholders().collapse(pasted)
    (flow,) = UserBlock(pasted, [], [[0, len(pasted)]]).pieces(False)[0].make()
    assert flow.text == "[Pasted 30 lines]"


@every("name", ["read", "edit", "write", "list"])
@every("width", [44, 60, 80, 120])
def test_the_line_of_a_call_shows_which_file_it_is_about(name: str, width: int) -> None:
    block = ToolBlock("k", "c", name, json.dumps({"path": LONG_NAME}))
    block.waiting = True
    (flow,) = block._header(False)
    (line,) = laid(flow, width)
    assert cell_len(line) <= width and line.rstrip().endswith("▸")
    assert line.strip().startswith(f"? {name} …") and "_module.py" in line
    assert width < 60 or FILE in line or "日本語" in line
    (whole,) = flow.lay(0, width, PALETTE)
    told = "".join(whole.text[at : at + len(s)] for s, _, at in whole.segments if at >= 0)
    assert told.endswith("_module.py"), "what is copied is the text that stands there"


ARGUMENTS = {
    "bash": {"command": "git status"},
    "glob": {"pattern": "**/*.py"},
    "grep": {"pattern": "def greet", "path": "src"},
    "read": {"path": "src/greet.py"},
    "list": {"path": "src"},
    "fetch": {"url": "https://example.com/a"},
    "subagent": {"description": "find the greeting", "prompt": "Look into every file and tell."},
    "skill": {"name": "pdf"},
}


def test_a_call_is_called_the_same_while_it_runs_and_when_it_is_opened_again(tmp_path: Path) -> None:
    context = make_context(tmp_path / "p")
    tools = {tool.schema.name: tool for tool in builtin_tools()}
    for name, arguments in ARGUMENTS.items():
        if name in tools:
            running = call_label(name, tools[name].intent(arguments, context).summary)
            assert call_label(name, call_summary(name, json.dumps(arguments))) == running, name


@pytest.mark.parametrize(
    "line", ["        +242  summary: of what was said before (compacted)", "  a b c d e f g h i j k l"]
)
def test_a_line_that_goes_on_stands_below_its_beginning(line: str) -> None:
    pieces = wrapped(line, 24)
    indent = len(line) - len(line.lstrip())
    assert len(pieces) > 1 and all(cell_len(piece) <= 24 for piece in pieces)
    assert all(piece.startswith(" " * min(indent, 12)) for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(line.split())


CHOICES = ("SQLite", "One JSON file " + "that is easy to look at " * 5, "x" * LONG)


def asking(question: QuestionAsked) -> Scene:
    async def scene(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
        agent.publish(question)

    return scene


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "several"),
    one_of([(size, several) for size in ((60, 20), (80, 24), (120, 40)) for several in (False, True)], every=5),
)
async def test_every_choice_can_be_read_whole(tmp_path: Path, size: tuple[int, int], several: bool) -> None:
    clock = Clock()
    app, agent = showcase_app(tmp_path, clock)
    async with app.run_test(size=size) as pilot:
        await stage(app, pilot, agent, asking(QuestionAsked("q", "Which?", CHOICES, several)))
        clock.now += 5.0
        seen = ""
        for _ in CHOICES:
            await pilot.pause()
            screen = shown(app)
            seen += "".join(screen.replace("│", "").split()) + "\n"
            assert "Waiting for your answer" in screen and "Ask anything" in screen
            await pilot.press("down")
        for choice in CHOICES:
            assert "".join(choice.split()) in seen, choice


async def test_what_is_always_allowed_is_shown_whole(tmp_path: Path) -> None:
    clock = Clock()
    app, agent = showcase_app(tmp_path, clock)
    async with app.run_test(size=(60, 20)) as pilot:
        await stage(app, pilot, agent, SCENES["running"])
        clock.now += 5.0
        asked = next(line for line in shown(app).splitlines() if "Allow edit?" in line)
        assert FILE in asked, "which file the question is about"
        await pilot.press("down")
        await pilot.pause()
        rule = f"edit({LONG_NAME})"[:80]
        assert rule in "".join(shown(app).replace("│", "").split())


@pytest.mark.slow
@pytest.mark.parametrize("size", one_of([((80, 24),), ((120, 40),)]))
async def test_columns_of_hits_and_of_what_waits_do_not_jump(tmp_path: Path, size: tuple[int, int]) -> None:
    for scene, word in (("found", "you:"), ("queue", "Then"), ("failed", "Then")):
        app, agent = showcase_app(tmp_path / scene, Clock())
        async with app.run_test(size=size) as pilot:
            await stage(app, pilot, agent, SCENES[scene])
            await app.workers.wait_for_complete()
            await pilot.pause()
            lines = shown(app).splitlines()
            if scene == "found":
                places = {cell_len(line[: line.index(word)]) for line in lines if word in line and "parser" in line}
            else:
                texts = [w.text[:12] for w in agent.waiting.listed]
                places = {line.index(t) for line in lines if line.startswith(" ⋯") for t in texts if t in line}
            assert len(places) == 1, lines


async def test_the_hit_that_is_looked_at_looks_different(tmp_path: Path) -> None:
    app, agent = showcase_app(tmp_path, Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await stage(app, pilot, agent, SCENES["find"])
        strips = app.screen._compositor.render_strips()
        marks = [s.style for strip in strips for s in strip if s.text.lower() == "greet" and s.style is not None]
        assert sum(bool(style.reverse) for style in marks) == 1 and sum(bool(style.underline) for style in marks) > 2


@pytest.mark.slow
async def test_keys_are_named_whole_where_there_is_little_room(tmp_path: Path) -> None:
    app, agent = showcase_app(tmp_path, Clock())
    async with app.run_test(size=(60, 20)) as pilot:
        await stage(app, pilot, agent, SCENES["failed"])
        assert "Enter sends again the first of 2 " in shown(app)
        await stage(app, pilot, agent, SCENES["several"])
        assert "Space marks, Enter sends · Esc declines " in shown(app)


@pytest.mark.slow
async def test_a_question_is_never_drawn_as_narrow_as_a_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    was = Body.set_count

    def counted(body: Body, count: int, *more: Any) -> None:
        drawn.append(count)
        was(body, count, *more)

    monkeypatch.setattr(Body, "set_count", counted)
    app, agent = showcase_app(tmp_path, Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await stage(app, pilot, agent, SCENES["permission"])
    assert drawn and max(drawn) == drawn[-1]


@pytest.mark.parametrize("said", ["", NO_OUTPUT])
def test_a_command_of_the_users_that_printed_nothing_says_so_once(said: str) -> None:
    message = user_message("!true", attachments=[AttachmentPart(OWN_OUTPUT, "text/plain", text=said)])
    block = blocks_of(message, Tools(Path("/project")))[1]
    (piece,) = block.pieces(True)
    (flow,) = piece.make()
    assert flow.text == "output · no output" and not block.foldable


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(["/compact undo", "run", "it", "~/notes/", "kept", "…", "日本"]), max_size=30),
    st.integers(16, 60),
)
def test_a_command_stays_on_one_line_with_its_word(words: list[str], width: int) -> None:
    text = " ".join(words)
    lines = [text[start:end] for start, end in wrap(text, width)]
    assert "".join(lines) == text
    assert sum(line.count("/compact undo") for line in lines) == words.count("/compact undo")


def test_a_long_path_is_cut_between_its_folders() -> None:
    path = "/home/ann/.local/share/agent-tui/exports/ses_01a20ad4bb5de38aaa61eb.html"
    lines = [path[start:end] for start, end in wrap(path, 50)]
    assert lines == ["/home/ann/.local/share/agent-tui/exports/", "ses_01a20ad4bb5de38aaa61eb.html"]
    assert "".join(path[start:end] for start, end in wrap(path * 3_000, 50))[: len(path)] == path
