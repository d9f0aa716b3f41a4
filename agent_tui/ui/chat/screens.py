"""Opens screens by name and does what they answer; wears and keeps the theme that is chosen."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from agent_tui.errors import AgentError
from agent_tui.text.clean import one_line
from agent_tui.ui.chat.view import ChatPart

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.paths import Paths
    from agent_tui.ui.chat.key_actions import Finding
    from agent_tui.ui.chat.sending import Sender
    from agent_tui.ui.chat.session import SessionView
    from agent_tui.ui.chat.view import MainView, Opened
    from agent_tui.ui.screens.help import HelpEntry
    from agent_tui.ui.screens.sessions import ResumeAt, WayBack
    from agent_tui.ui.theme import Themes


class Screens(ChatPart):
    """Opens the other screens, also while the agent is still starting. ``rebound`` are the user's own keys."""

    def __init__(
        self,
        view: MainView,
        paths: Paths,
        finding: Finding,
        sender: Sender,
        session: SessionView,
        open_picture: Callable[[str], None],
        rebound: dict[str, str],
    ) -> None:
        super().__init__(view)
        self._paths = paths
        self._finding = finding
        self._sender = sender
        self._session = session
        self._open_picture = open_picture
        self._rebound = rebound

    def open(self, name: Opened, data: str = "") -> None:
        app, agent = self.app, self._agent
        if len(app.screen_stack) > 1 and name == "palette":
            return
        match name:
            case "help":
                from agent_tui.ui.screens.help import HelpScreen

                app.push_screen(HelpScreen(agent, self._rebound, data), self._write_command)
            case "history":
                from agent_tui.ui.screens.picker import HistoryPicker

                app.push_screen(HistoryPicker(self._view.history, data), self._into_prompt)
            case "themes":
                self._open_themes(data)
            case "vim":
                self._switch_vim(data)
            case "palette":
                from agent_tui.ui.screens.help import CommandPalette

                app.push_screen(CommandPalette(agent), self._palette)
            case _ if agent is None:
                self._view.hint("Still starting…")
            case "context":
                from agent_tui.ui.screens.context_screen import ContextScreen

                app.push_screen(ContextScreen(agent))
            case "compact":
                self._open_compaction(agent, data)
            case "sessions":
                self.choose_session(agent, data)
            case "models":
                from agent_tui.ui.screens.models import ModelPicker

                app.push_screen(ModelPicker(agent, data), lambda key: self._command(f"model {key}" if key else None))
            case "efforts":
                from agent_tui.ui.screens.models import EffortPicker

                app.push_screen(EffortPicker(agent), lambda key: self._command(f"thinking {key}" if key else None))
            case "jobs":
                from agent_tui.ui.screens.work import JobPicker

                app.push_screen(JobPicker(agent))
            case "queue":
                from agent_tui.ui.screens.work import QueuePicker

                app.push_screen(QueuePicker(agent, self._view.queue_view.paused), self._edit)
            case "rewind":
                self._open_rewind(agent)
            case "picture":
                self._open_picture(data)
            case "tidy":
                self._open_tidy(agent)
            case "key":
                self._ask_for_key(agent, data)
            case _:
                assert_never(name)

    def _ask_for_key(self, agent: Agent, name: str) -> None:
        from agent_tui.ui.screens.key import KeyScreen

        def taken(kept: str | None) -> None:
            if kept is None:
                self._view.hint(f"No key entered; still using {one_line(agent.models.spec.key, 60)}")
            else:
                self._view.say("info", kept)
                self._command(f"model {name}")

        async def ask() -> None:
            if (missing := await agent.models.missing_key(name)) is not None:
                self.app.push_screen(KeyScreen(agent, name, missing), taken)

        self._work(ask)

    def _open_compaction(self, agent: Agent, which: str) -> None:
        from agent_tui.commands.context_texts import PREVIEW, compaction_picture
        from agent_tui.ui.screens.compaction import DONE, WOULD, CompactionScreen

        async def show() -> None:
            picture = await compaction_picture(agent, which, time.time())
            if picture is not None:
                self.app.push_screen(CompactionScreen(WOULD if which == PREVIEW else DONE, picture))

        self._work(show)

    def _open_tidy(self, agent: Agent) -> None:
        from agent_tui.commands.tidy import dead_weight_in, drop_all
        from agent_tui.ui.screens.tidy import Ticked, TidyPicker

        async def drop(ticked: Ticked) -> None:
            self._view.say("info", await drop_all(agent, ticked.found, later=ticked.later))

        async def show() -> None:
            found = await dead_weight_in(agent)
            self.app.push_screen(TidyPicker(agent, found), lambda t: self._work(partial(drop, t)) if t else None)

        self._work(show)

    def _work(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            try:
                await work()
            except AgentError as error:
                self._view.say("error", str(error))
            self._session.facts_changed()

        self._view.begin(run)

    def _command(self, name: str | None) -> None:
        if name:
            self._view.begin(partial(self._sender.command, f"/{name}"))

    def _write_command(self, name: str | None) -> None:
        """Puts a command into the prompt, where Enter runs it; what is being written there stays."""
        if not name:
            return
        if self._view.prompt.is_empty:
            self._view.prompt.set_text(f"/{name} ")
        else:
            self._view.hint(f"The prompt is not empty: send or clear it, then type /{name}")

    def _into_prompt(self, text: str | None) -> None:
        if text:
            self._view.prompt.set_text(text)
        self._view.prompt.focus()

    def _edit(self, message_id: str | None) -> None:
        if message_id:
            self._sender.edit(message_id)
        self._view.prompt.focus()

    def _palette(self, entry: HelpEntry | None) -> None:
        if entry is None:
            return
        if entry.action:
            self.app.call_later(self.app.run_action, entry.action)
        elif entry.needs_args:
            self._write_command(entry.command.removeprefix("/"))
        else:
            self._command(entry.command.removeprefix("/"))

    def _switch_vim(self, wanted: str) -> None:
        prompt = self._view.prompt
        on = wanted == "on" or (not wanted and prompt.vim is None)
        prompt.use_vim(on)
        self._view.hint("Vim keys on: Esc for normal mode, i to type" if on else "Vim keys off")

    def _open_themes(self, name: str) -> None:
        from agent_tui.ui.screens.themes import ThemePicker

        if name and self._wear(name):
            return
        picker = ThemePicker(self._load_themes(), self.app.theme, name)
        if picker.entries(name):
            self.app.push_screen(picker, self._keep_theme)
        else:
            names = ", ".join(one_line(theme, 60) for theme in sorted(picker.themes))
            self._view.say("warning", f"Unknown theme {one_line(name, 60)}. Available: {names}.")

    def choose_session(self, agent: Agent, search: str = "", then: Callable[[bool], None] | None = None) -> None:
        """Asks which session to go on with; ``then`` learns whether that one is open now."""
        from agent_tui.ui.screens.sessions import SessionPicker

        self.app.push_screen(SessionPicker(agent, search), partial(self._resume, agent, then))

    def _resume(self, agent: Agent, then: Callable[[bool], None] | None, at: ResumeAt | None) -> None:
        async def go(at: ResumeAt) -> None:
            try:
                if at.session_id != agent.conversation.info.id or not at.query:
                    await agent.sessions.resume(at.session_id)
            finally:
                if then is not None:
                    then(agent.conversation.info.id == at.session_id)
            if at.left_behind:
                self._view.say("info", "That message is on another branch. Run /rewind to go there.")
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
            self._view.hint(NOTHING_TO_REWIND)
            return

        self.app.push_screen(RewindPicker(agent, self._view.clock), partial(self._go_back, agent))

    def _go_back(self, agent: Agent, choice: WayBack | None) -> None:
        if choice is not None:
            self._work(partial(self._rewind, agent, choice))

    async def _rewind(self, agent: Agent, choice: WayBack) -> None:
        from agent_tui.commands.sessions import moved_text

        message, branch = choice.message, choice.branch
        if choice.fork:
            await agent.sessions.fork(message.id if message is not None else branch.end if branch is not None else None)
            self._view.say("info", "Now in a copy that ends there; the original is unchanged (/resume).")
            return
        if message is not None:
            moved = await agent.branches.rewind(message.id, choice.files)
        elif branch is not None:
            moved = await agent.branches.go_to(branch.end, choice.files)
        else:
            return
        self._view.say("info", moved_text(moved, agent.root))
        if moved.text and self._view.prompt.is_empty:
            self._view.prompt.set_text(moved.text)

    # Themes

    def _load_themes(self) -> Themes:
        """All themes there are, ready to be worn."""
        from agent_tui.ui.theme import load_themes

        found = load_themes(self._paths.themes)
        for theme in found.themes.values():
            self.app.register_theme(theme)
        return found

    def _wear(self, name: str) -> bool:
        """Changes to a theme by its name and keeps it; False when there is none of that name."""
        from agent_tui.config import AUTO_THEME
        from agent_tui.ui.theme import load_themes

        if name == AUTO_THEME:
            self._keep_theme(name)
            return True
        found = load_themes(self._paths.themes)
        for problem in found.problems:
            self._view.say("warning", problem)
        theme = found.themes.get(name)
        if theme is None:
            return False
        self.app.register_theme(theme)
        self.app.theme = name
        self._keep_theme(name)
        return True

    def _keep_theme(self, name: str | None) -> None:
        """Remembers the theme for the next start, and says whether that works; nothing for None."""
        from agent_tui.config import AUTO_THEME
        from agent_tui.ui.first_frame import wanted_theme
        from agent_tui.ui.theme import keep_choice

        if not name:
            return
        problem = keep_choice(name, self._paths.state)
        if problem is not None:
            self._view.say("warning", problem)
        elif wanted_theme(self._view.settings.theme, self._paths.state) != name:
            configured = one_line(self._view.settings.theme, 60)
            self._view.hint(f"Theme {one_line(name, 60)} until you quit: the configuration sets {configured}")
        elif name == AUTO_THEME:
            self._view.hint("From the next start, the theme follows the terminal's background")
        else:
            self._view.hint(f"Theme {one_line(name, 60)}, saved")
