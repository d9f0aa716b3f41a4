"""Taking a provider's key: what is typed is not shown, and where it is kept is said before."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from agent_tui.errors import AgentError
from agent_tui.text.clean import one_line
from agent_tui.ui.safety import Guarded
from agent_tui.ui.widgets.answers import WholeInput

if TYPE_CHECKING:
    from textual.worker import Worker

    from agent_tui.engine.agent import Agent
    from agent_tui.engine.model_control import MissingKey


KEYS = "Enter use it · Esc cancel"


class KeyScreen(Guarded, ModalScreen[str]):
    """Answers with a sentence about where the key is now, once it is in use; with None where there is none."""

    DEFAULT_CSS = """
    KeyScreen { align: center middle; background: $background 60%; }
    KeyScreen #frame {
        width: 76; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
        background: $surface; border: round $primary; border-title-color: $primary; border-title-style: bold;
        border-subtitle-color: $muted;
    }
    KeyScreen Static { height: auto; padding: 0 1; }
    KeyScreen #key { height: 1; border: none; padding: 0 1; background: $panel; margin: 1 0; }
    KeyScreen #said { color: $muted; }
    KeyScreen #said.-wrong { color: $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close", show=False)]

    def __init__(self, agent: Agent, name: str, missing: MissingKey) -> None:
        super().__init__()
        self.agent, self.model_name, self.missing = agent, name, missing
        self._storing: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="frame") as frame:
            frame.border_title = Content(f"Key for {one_line(self.missing.owner, 40)}")
            frame.border_subtitle = Content(KEYS)
            yield Static(Content(f"{one_line(self.model_name, 60)} needs an API key."))
            yield WholeInput(password=True, placeholder="paste the key", id="key")
            yield Static(Content(self._where), id="said")

    @property
    def _where(self) -> str:
        return (
            f"The key is checked with {one_line(self.missing.owner, 40)} and kept in the system's keyring, or else "
            f"in a file that only you can read. You can also set {self.missing.variable}."
        )

    def on_mount(self) -> None:
        self.query_one(WholeInput).focus()

    def action_close(self) -> None:
        """Esc: no key; while provider or keyring keep one waiting, the key as it is."""
        if self._storing is None:
            self.dismiss(None)
        else:
            self._take(keep=False)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value and self._storing is None:
            self._say(self._where)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._storing is None:
            self._say("Checking and storing the key… The keyring may ask you to unlock it.")
            self._tell_keys("Esc use it now, unchecked and not kept")
            self._take(keep=True)

    def _take(self, *, keep: bool) -> None:
        line = self.query_one(WholeInput)
        line.disabled = True
        self._storing = self.run_worker(self._taken(line.value, keep), exclusive=True, exit_on_error=False)

    async def _taken(self, typed: str, keep: bool) -> None:
        try:
            kept = await self.agent.models.take_key(self.model_name, typed, keep=keep)
        except AgentError as error:
            self._storing, line = None, self.query_one(WholeInput)
            self._say(str(error), wrong=True)
            self._tell_keys(KEYS)
            line.disabled, line.value = False, ""
            line.focus()
        else:
            self.dismiss(kept)

    def _tell_keys(self, keys: str) -> None:
        self.query_one("#frame").border_subtitle = Content(keys)

    def _say(self, text: str, wrong: bool = False) -> None:
        said = self.query_one("#said", Static)
        said.set_class(wrong, "-wrong")
        said.update(Content(text))
