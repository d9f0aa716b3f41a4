"""Opens screens by name and does what they answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agent_tui.errors import AgentError
from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.history import History
    from agent_tui.ui.chat.host import PilesScreens
    from agent_tui.ui.chat.needs import (
        EditsWaiting,
        FindsWords,
        HasAgent,
        LetsChoose,
        OpensPictures,
        ShowsFacts,
        StartsTasks,
    )
    from agent_tui.ui.chat.stage import Stage
    from agent_tui.ui.chat.themes import ThemeChoice
    from agent_tui.ui.screens.help import Entry
    from agent_tui.ui.screens.sessions import Choice, ResumeAt

R = TypeVar("R")


class Screens:
    """What needs the agent says so while it is still starting. ``rebound`` are the user's own keys."""

    def __init__(
        self,
        pile: PilesScreens,
        seat: HasAgent,
        stage: Stage,
        tasks: StartsTasks,
        themes: ThemeChoice,
        history: History,
        finding: FindsWords,
        sender: EditsWaiting,
        facts: ShowsFacts,
        pictures: OpensPictures,
        rebound: dict[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._pile = pile
        self._seat = seat
        self._stage = stage
        self._tasks = tasks
        self._themes = themes
        self._history = history
        self._finding = finding
        self._sender = sender
        self._facts = facts
        self._pictures = pictures
        self._rebound = rebound
        self._clock = clock

    def open(self, name: str, data: str = "") -> None:
        pile, agent = self._pile, self._seat.agent
        if len(pile.screen_stack) > 1 and name == "palette":
            return
        match name:
            case "help":
                from agent_tui.ui.screens.help import HelpScreen

                pile.push_screen(HelpScreen(agent, self._rebound, data), self._command)
            case "history":
                from agent_tui.ui.screens.picker import HistoryPicker

                pile.push_screen(HistoryPicker(self._history, data), self._into_prompt)
            case "themes":
                self._open_themes(data)
            case "vim":
                self._switch_vim(data)
            case "palette":
                from agent_tui.ui.screens.help import Palette

                pile.push_screen(Palette(agent), self._palette)
            case _ if agent is None:
                self._stage.hint("Still starting…")
            case "context":
                from agent_tui.ui.screens.context.screen import ContextScreen

                pile.push_screen(ContextScreen(agent))
            case "sessions":
                self._open_sessions(agent, data)
            case "models":
                from agent_tui.ui.screens.models import ModelPicker

                pile.push_screen(ModelPicker(agent, data), lambda key: self._command(f"model {key}" if key else None))
            case "efforts":
                from agent_tui.ui.screens.models import EffortPicker

                pile.push_screen(EffortPicker(agent), lambda key: self._command(f"thinking {key}" if key else None))
            case "jobs":
                from agent_tui.ui.screens.work import JobPicker

                pile.push_screen(JobPicker(agent))
            case "queue":
                from agent_tui.ui.screens.work import QueuePicker

                pile.push_screen(QueuePicker(agent, self._stage.queue_view.paused), self._edit)
            case "rewind":
                self._open_rewind(agent)
            case "picture":
                self._pictures.open_picture(data)
            case _:
                self._stage.say("warning", f"There is no screen {name}.")

    def _work(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            try:
                await work()
            except AgentError as error:
                self._stage.say("error", str(error))
            self._facts.facts_changed()

        self._tasks.begin(run)

    def _command(self, name: str | None) -> None:
        if name:
            self._tasks.begin(partial(self._sender.command, f"/{name}"))

    def _into_prompt(self, text: str | None) -> None:
        if text:
            self._stage.prompt.set_text(text)
        self._stage.prompt.focus()

    def _edit(self, message_id: str | None) -> None:
        if message_id:
            self._sender.edit(message_id)
        self._stage.prompt.focus()

    def _palette(self, entry: Entry | None) -> None:
        if entry is None:
            return
        if entry.action:
            self._pile.call_later(self._pile.run_action, entry.action)
        elif entry.needs_args:
            self._stage.prompt.set_text(entry.command + " ")
        else:
            self._command(entry.command.removeprefix("/"))

    def _switch_vim(self, wanted: str) -> None:
        prompt = self._stage.prompt
        on = wanted == "on" or (not wanted and prompt.vim is None)
        prompt.use_vim(on)
        self._stage.hint("Vim's keys: Esc for normal mode, i to type" if on else "Vim's keys are off")

    def _open_themes(self, name: str) -> None:
        from agent_tui.ui.screens.themes import ThemePicker

        if name and self._themes.wear(name):
            return
        picker = ThemePicker(self._themes.load(), self._themes.current, name)
        if picker.entries(name):
            self._pile.push_screen(picker, self._themes.keep)
        else:
            names = ", ".join(one_line(theme, 60) for theme in sorted(picker.themes))
            self._stage.say("warning", f"No theme is called {one_line(name, 60)}. There are: {names}.")

    def choose_session(self, agent: Agent, then: Callable[[bool], None]) -> None:
        """Asks which session to go on with; ``then`` learns whether that one is open now."""
        self._open_sessions(agent, "", then)

    def _open_sessions(self, agent: Agent, search: str, then: Callable[[bool], None] | None = None) -> None:
        from agent_tui.ui.screens.sessions import SessionPicker

        self._pile.push_screen(SessionPicker(agent, search), partial(self._resume, agent, then))

    def _resume(self, agent: Agent, then: Callable[[bool], None] | None, at: ResumeAt | None) -> None:
        async def go(at: ResumeAt) -> None:
            try:
                if at.session_id != agent.conversation.info.id or not at.query:
                    await agent.sessions.resume(at.session_id)
            finally:
                if then is not None:
                    then(agent.conversation.info.id == at.session_id)
            if at.left_behind:
                self._stage.say("info", "That was said on another branch of this session: /rewind goes there.")
            if at.query:
                await self._finding.go_on(at.query, at.message_id)

        if at is not None:
            self._work(partial(go, at))
        elif then is not None:
            then(False)

    def _open_rewind(self, agent: Agent) -> None:
        from agent_tui.commands.sessions import NOTHING_TO_REWIND
        from agent_tui.ui.screens.sessions import RewindPicker

        if not any(m.role == "user" for m in agent.conversation.path) and not agent.branches.all():
            self._stage.hint(NOTHING_TO_REWIND)
            return

        def done(answer: Choice | None) -> None:
            if answer is not None:
                self._work(partial(self._rewind, agent, answer))

        self._pile.push_screen(RewindPicker(agent, clock=self._clock), done)

    async def _rewind(self, agent: Agent, choice: Choice) -> None:
        from agent_tui.commands.branch_words import moved_text

        message, branch = choice.message, choice.branch
        if choice.fork:
            await agent.sessions.fork(message.id if message is not None else branch.end if branch is not None else None)
            self._stage.say("info", "Now in a copy that ends there; the original is unchanged (/resume).")
            return
        if message is not None:
            moved = await agent.branches.rewind(message.id, choice.files)
        elif branch is not None:
            moved = await agent.branches.go_to(branch.end, choice.files)
        else:
            return
        self._stage.say("info", moved_text(moved, agent.root))
        if moved.text and self._stage.prompt.is_empty:
            self._stage.prompt.set_text(moved.text)


_CHOOSES: type[LetsChoose] = Screens
