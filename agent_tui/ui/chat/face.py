"""The empty chat: the name, first steps for who is new here, and the way back to the last session of the project."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from agent_tui.errors import AgentError
from agent_tui.paths import home_as_tilde
from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import age
from agent_tui.ui.chat.view import ChatPart
from agent_tui.ui.first_frame import is_small

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.session import SessionInfo
    from agent_tui.ui.chat.view import MainView
    from agent_tui.ui.transcript.entry import Entry

NEW_HERE = 3
"""Who has fewer sessions than this is shown first steps."""
LOOKED_AT = 10
"""Sessions among which the last one with an answer is looked for."""
DEMO_STEPS: Sequence[tuple[str, str]] = (
    ("take the tour", "see what it can do, in two minutes"),
    ("/model", "choose a model or set a key"),
    ("/context", "see what fills the context"),
)
STEPS: Sequence[tuple[str, str]] = (
    ("explain this project", "let the model look around"),
    ("/context", "see what fills the context"),
    ("/model", "choose another model or key"),
)


class Face(ChatPart):
    """Stands in the transcript until the conversation has a message. While it does, the number of a step stands for
    the step, and Enter on an empty prompt for the last session."""

    def __init__(self, view: MainView) -> None:
        super().__init__(view)
        self._entry: Entry | None = None
        self._steps: Sequence[tuple[str, str]] = ()
        self._last = self._problem = ""
        self._hinted = False

    def begin(self) -> None:
        """A new session is about to be opened: its name stands already."""
        from agent_tui.ui.transcript.face import FaceBlock

        self._entry = self._view.transcript.show_block(FaceBlock("", (), (), "", small=is_small(*self.app.size)))

    def show(self, agent: Agent) -> None:
        """The session in front has no message."""
        from agent_tui.ui.transcript.face import FaceBlock, FirstStep

        sessions, demo = agent.store.sessions, is_demo(agent)
        known = sessions.all(limit=NEW_HERE, empty=False)
        recent = sessions.all(str(agent.root), limit=LOOKED_AT, empty=False, runs=False)
        last = next((info for info in recent if info.messages > 1 and not info.preview.startswith("!")), None)
        self._steps = () if len(known) >= NEW_HERE else DEMO_STEPS if demo else STEPS
        self._last = last.id if last is not None and last.id != agent.conversation.info.id else ""
        notes = ["The built-in demo model: no key, no network. Everything else is real."] if demo else []
        block = FaceBlock(
            f"{one_line(agent.models.spec.key, 80)} in {home_as_tilde(agent.root)}",
            notes,
            [FirstStep(*step) for step in self._steps],
            _way_back(last) if last is not None and self._last else "",
            self._problem,
            small=is_small(*self.app.size),
        )
        self._entry = self._view.transcript.show_block(block, self._entry)

    def warn(self, problem: str) -> bool:
        """Says with the first steps what is wrong with the model; False once the conversation has begun."""
        agent = self._agent
        if self._entry is None or agent is None:
            return False
        self._problem = problem
        self.show(agent)
        return True

    def leave(self) -> None:
        """The conversation has begun."""
        if self._entry is not None:
            self._view.transcript.take_away(self._entry)
            self.forget()

    def forget(self) -> None:
        """The transcript shows something else."""
        self._entry, self._steps, self._last = None, (), ""

    def draw(self, agent: Agent) -> None:
        """The model is another one: what is said of it, too."""
        self._problem = ""
        if self._entry is not None:
            self.show(agent)

    def step_of(self, typed: str) -> str:
        """What is sent where ``typed`` is the number of a step; else empty."""
        at = int(typed) - 1 if typed in ("1", "2", "3") else -1
        return self._steps[at][0] if 0 <= at < len(self._steps) else ""

    def typed(self, text: str) -> None:
        """Says what Enter would do now."""
        step = self.step_of(text)
        if step:
            self._view.hint(f"Enter sends: {step}", seconds=60)
        elif self._hinted:
            self._view.hint("")
        self._hinted = bool(step)

    def go_on(self) -> bool:
        """Opens the last session; False where none is offered."""
        last, agent = self._last, self._agent
        if not last or agent is None:
            return False
        self._last = ""
        self._view.begin(partial(self._resume, agent, last))
        return True

    async def _resume(self, agent: Agent, session_id: str) -> None:
        try:
            await agent.sessions.resume(session_id)
        except AgentError as error:
            self._view.say("error", str(error))


def is_demo(agent: Agent) -> bool:
    return agent.models.spec.model == "demo"


def _way_back(info: SessionInfo) -> str:
    title = shorten(one_line(info.title or info.preview, 200) or "untitled", 48)
    ago = age(info.updated)
    return f"resume “{title}” · {ago if ago == 'now' else f'{ago} ago'}"
