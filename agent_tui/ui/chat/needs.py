"""What the parts of the chat need of each other, one small protocol for each need.

Who provides one proves it by a typed assignment at its end. For the type checker alone: nothing imports this at run
time, so that it costs nothing before the first frame.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from agent_tui.engine.agent import Agent
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import PermissionAsked, PlanPresented, QuestionAsked
from agent_tui.models.messages import Written
from agent_tui.models.steps import CompactionRecord


class HasAgent(Protocol):
    @property
    def agent(self) -> Agent | None:
        """The agent, once its session is open."""


class Tells(Protocol):
    """Lines for the user."""

    def say(self, level: str, text: str) -> None:
        """A line in the transcript that is not part of the conversation."""

    def hint(self, text: str) -> None:
        """A short line above the prompt, gone with the next key."""


class LetsChoose(Protocol):
    def choose_session(self, agent: Agent, then: Callable[[bool], None]) -> None:
        """Asks which session to go on with; ``then`` learns whether that one is open now."""


class FindsWords(Protocol):
    async def go_on(self, query: str, message_id: str | None) -> None:
        """Goes on in the transcript with what was searched in all sessions."""


class OpensPictures(Protocol):
    def open_picture(self, which: str) -> None:
        """Shows the newest picture of the conversation whose name has ``which`` in it on a screen of its own."""


class Task(Protocol):
    def cancel(self) -> None: ...


class StartsTasks(Protocol):
    def begin(
        self, work: Callable[[], Coroutine[Any, Any, None]], *, group: str = "default", exclusive: bool = False
    ) -> Task:
        """Does ``work`` beside everything else; an error in it is shown. ``exclusive`` ends the others of its group."""


class Copies(Protocol):
    def copy(self, text: str, what: str) -> None:
        """Into the clipboard; ``what`` names it for the user."""


class ShowsFacts(Protocol):
    def facts_changed(self) -> None:
        """Mode, model, branch or title may be others now."""


class CallsUser(Protocol):
    def call_user(self, text: str) -> None:
        """Rings when the user looks elsewhere."""


class TakesPaste(Protocol):
    def pasted(self, text: str) -> None:
        """Text came from a paste; it may name an image file."""


class AsksToAttach(Protocol):
    async def may_attach(self, path: Path) -> bool:
        """Whether the user lets a file outside the project go with a message."""


class ForgetsQuestions(Protocol):
    def clear(self) -> None:
        """The turn is over; it can ask nothing any more."""


class RunsCommands(Protocol):
    async def command(self, line: str) -> None:
        """Runs a slash command and shows what it answers."""


class EditsWaiting(RunsCommands, Protocol):
    def edit(self, message_id: str) -> None:
        """Takes a message that waits into the prompt."""


class Sends(Protocol):
    def send(self, typed: Written, steer: bool = False) -> None:
        """Takes what was typed; returns at once."""

    def take_back(self) -> Written | None:
        """The newest message that has not gone out yet."""


class GivesBack(Protocol):
    """What is on its way to the agent, such as files that are read."""

    @property
    def is_preparing(self) -> bool: ...

    def cancel(self) -> bool:
        """Gives it back to the prompt; False when there is nothing."""


class Closes(Protocol):
    def close(self) -> bool:
        """Closes what is open; False when nothing is."""


class HasTitle(Protocol):
    def set_title(self, text: str) -> None: ...


class GoesStale(Protocol):
    def stale(self) -> None:
        """What is listed may be otherwise now."""


class FollowsSession(Protocol):
    """What changes around the transcript."""

    def session_changed(self, reload: bool) -> None: ...
    def turn_started(self) -> None: ...
    def turn_ended(self, reason: str) -> None: ...
    def context_changed(self, usage: ContextUsage, in_flight: int) -> None: ...
    def jobs_changed(self, running: int) -> None: ...
    def compaction_ended(self, outcome: str, text: str, records: list[CompactionRecord]) -> None: ...


class ShowsQuestions(Protocol):
    def ask(self, asked: PermissionAsked) -> None: ...
    def ask_plan(self, asked: PlanPresented) -> None: ...
    def ask_question(self, asked: QuestionAsked) -> None: ...
    def answered(self, request_id: str) -> None:
        """The question is settled, here or elsewhere."""


class Notifies(Protocol):
    def notify(self, text: str) -> None: ...


class HasContext(Protocol):
    @property
    def agent(self) -> Agent | None: ...


class HasAsker(Protocol):
    @property
    def agent(self) -> Agent | None: ...


class HasWords(Protocol):
    @property
    def agent(self) -> Agent | None: ...


class AnswersCommands(Protocol):
    async def run(self, agent: Agent, line: str) -> None:
        """Runs ``/name args`` and shows the answer."""
