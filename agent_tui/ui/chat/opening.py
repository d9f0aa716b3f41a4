"""Opens screens by name and does what they answer."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from agent_tui.commands.sessions import NOTHING_TO_REWIND
from agent_tui.errors import AgentError
from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.ui.app import AgentApp
    from agent_tui.ui.chat.actions import Actions
    from agent_tui.ui.screens.palette import Entry


def open_screen(actions: Actions, name: str, data: str) -> None:
    """Opens ``name``; what needs the agent says so while it is still starting."""
    from agent_tui.ui.app import AgentApp

    assert isinstance(actions, AgentApp)
    app, agent = actions, actions.agent
    match name:
        case "help":
            from agent_tui.ui.screens.help import HelpScreen

            app.push_screen(HelpScreen(agent, app.settings.keys, data), lambda name: _command(app, name))
        case "history":
            from agent_tui.ui.screens.past import HistoryPicker

            app.push_screen(HistoryPicker(app.history_file, data), lambda text: _into_prompt(app, text))
        case "themes":
            _themes(app, data)
        case "palette":
            from agent_tui.ui.screens.palette import Palette

            app.push_screen(Palette(agent), lambda entry: _palette(app, entry))
        case _ if agent is None:
            app.hint("Still starting…")
        case "context":
            from agent_tui.ui.screens.context import ContextScreen

            app.push_screen(ContextScreen(agent))
        case "sessions":
            from agent_tui.ui.screens.sessions import SessionPicker

            app.push_screen(SessionPicker(agent, data), lambda id: _resume(app, agent, id))
        case "models":
            from agent_tui.ui.screens.models import ModelPicker

            app.push_screen(ModelPicker(agent, data), lambda key: _command(app, f"model {key}" if key else None))
        case "rewind":
            _rewind(app)
        case _:
            app.say("warning", f"There is no screen {name}.")


def _work(app: AgentApp, work: Awaitable[object]) -> None:
    async def run() -> None:
        try:
            await work
        except AgentError as error:
            app.say("error", str(error))
        app.facts_changed()

    app.run_worker(run(), exit_on_error=False)


def _command(app: AgentApp, name: str | None) -> None:
    if name:
        app.run_worker(app.sender.command(f"/{name}"), exit_on_error=False)


def _into_prompt(app: AgentApp, text: str | None) -> None:
    if text:
        app.prompt.set_text(text)
    app.prompt.focus()


def _palette(app: AgentApp, entry: Entry | None) -> None:
    if entry is None:
        return
    if entry.action:
        app.call_later(app.run_action, entry.action)
    elif entry.needs_args:
        app.prompt.set_text(entry.command + " ")
    else:
        _command(app, entry.command.removeprefix("/"))


def _themes(app: AgentApp, name: str) -> None:
    from agent_tui.ui.screens.themes import ThemePicker
    from agent_tui.ui.theme import load_themes

    if name:
        found = load_themes(app.paths.themes)
        for problem in found.problems:
            app.say("warning", problem)
        theme = found.themes.get(name)
        if theme is not None:
            app.register_theme(theme)
            app.theme = theme.name
            _theme_kept(app, name)
            return
    app.push_screen(ThemePicker(app, name), lambda kept: _theme_kept(app, kept))


def _theme_kept(app: AgentApp, name: str | None) -> None:
    from agent_tui.ui.theme import keep_choice, wanted_theme

    if not name:
        return
    problem = keep_choice(name, app.paths.state)
    configured = app.settings.ui.theme
    if problem is not None:
        app.say("warning", problem)
    elif wanted_theme(configured, app.paths.state) != name:
        app.hint(f"Theme {one_line(name, 60)} until you leave: the configuration names {one_line(configured, 60)}")
    else:
        app.hint(f"Theme {one_line(name, 60)}, also next time")


def _resume(app: AgentApp, agent: Agent, session_id: str | None) -> None:
    if session_id:
        _work(app, agent.resume(session_id))


def _rewind(app: AgentApp) -> None:
    from agent_tui.ui.screens.rewind import RewindPicker

    agent = app.agent
    if agent is None:
        return
    if not any(m.role == "user" for m in agent.messages):
        app.hint(NOTHING_TO_REWIND)
        return

    async def go(message_id: str, files: bool, fork: bool) -> None:
        if fork:
            await agent.fork(message_id)
            app.say("info", "Now in a copy that ends there; the original is unchanged (/resume).")
        text = "" if fork else await agent.rewind(message_id, files)
        if text and app.prompt.is_empty:
            app.prompt.set_text(text)

    def done(answer: tuple[str, bool, bool] | None) -> None:
        if answer is not None:
            _work(app, go(*answer))

    app.push_screen(RewindPicker(agent, clock=app.clock), done)
