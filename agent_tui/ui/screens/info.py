"""What a command has to say, as a dialog: sections of rows that are read, and keys that change them. Each key runs the
slash command that does the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult

from agent_tui.commands import registry
from agent_tui.commands.info import Action, Info, Line, Row, layout
from agent_tui.errors import AgentError
from agent_tui.ui.screens.text import KEYS, NO_MATCH, WIDEST, TextRows, TextScreen
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.rows import RowList

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent

SECOND = "t"
"""The key for what was not shown: another one, so that a key held down too long accepts nothing."""

NAMES = {"enter": "Enter"}
"""Keys as they are called; others are called as they are."""


class InfoRows(TextRows):
    """The rows of an info. Where there are actions for rows the cursor goes from one of those to the next."""

    def __init__(self, info: Info) -> None:
        super().__init__()
        self.info = info
        self._drawn: set[int] = set()

    @property
    def unseen(self) -> int:
        """The lines that were not on the screen yet."""
        return self.count - len(self._drawn)

    def laid_out(self, width: int) -> Sequence[Line]:
        self._drawn.clear()
        return layout(self.info.matching(self.searched), width) or [Line(((NO_MATCH, "muted"),))]

    def size_in(self, width: int, room: int) -> tuple[int, int]:
        longest = max((sum(cell_len(text) for text, _ in line.pieces) for line in layout(self.info, WIDEST)), default=0)
        return longest, len(layout(self.info, min(longest, width)))

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        return self.lines[self.cursor].row if self.selectable(self.cursor) else None

    def selectable(self, index: int) -> bool:
        line = self.lines[index] if index < len(self.lines) else None
        return line is not None and line.first and line.row is not None and bool(line.row.keys)

    def is_marked(self, index: int) -> bool:
        return self.current is not None and self.lines[index].row is self.current

    def action_move(self, by: int) -> None:
        """To the next row, or on through what is only read."""
        before = self.cursor
        RowList.action_move(self, by)
        if self.cursor == before:
            super().action_move(by)

    def action_page(self, by: int) -> None:
        before = self.cursor
        RowList.action_page(self, by)
        if self.cursor == before:
            super().action_page(by)

    def action_first(self) -> None:
        RowList.action_first(self)
        super().action_first()

    def action_last(self) -> None:
        RowList.action_last(self)
        super().action_last()

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        self._drawn.add(index)
        pieces = [*super().row(index, width, paint)]
        if index == self.cursor and self.is_marked(index) and pieces[0][0].startswith("  "):
            pieces[0] = (pieces[0][0][2:], pieces[0][1])
            return [("❯ ", paint("primary", bold=True)), *pieces]
        return pieces


class InfoScreen(TextScreen):
    """Shows an info. ``changed`` is called once an action has changed something, with what it said where nothing is
    left to be shown."""

    BINDINGS: ClassVar = []

    def __init__(self, agent: Agent, info: Info, changed: Callable[[str], None]) -> None:
        super().__init__(info.title, "")
        self.agent, self.info = agent, info
        self._changed = changed
        self._asking: tuple[Action, str] | None = None
        self._offered = False
        self._unseen: Action | None = None
        self._tell()

    def _tell(self) -> None:
        self.text = self.info.text
        own = dict.fromkeys(f"{NAMES.get(action.key, action.key)} {action.label}" for action in self.info.actions)
        self.keys = " · ".join([*own, KEYS])

    def compose_rows(self) -> ComposeResult:
        yield InfoRows(self.info)

    @property
    def _rows(self) -> InfoRows:
        return self.query_one("#rows", InfoRows)

    @property
    def line_keys(self) -> str:
        return super().line_keys if self._asking is None and not self._offered else "Enter do it · Esc cancel"

    # Actions

    def on_key(self, event: events.Key) -> None:
        """Keys of actions, as far as they are not typed into the line."""
        if not self.rows.has_focus:
            return
        unseen, self._unseen = self._unseen, None
        if unseen is not None and event.key == SECOND:
            event.stop()
            self._run(unseen.command)
        elif any(action.key == event.key for action in self.info.actions):
            event.stop()
            self._act(event.key)

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self._act("enter")

    def _act(self, key: str) -> None:
        row = self._rows.current
        fitting = [action for action in self.info.actions if action.key == key]
        action = next((one for one in fitting if not one.row or (row is not None and key in row.keys)), None)
        if action is None:
            return
        on_row = row.key if row is not None else ""
        if action.whole and not self._was_seen(action):
            return
        if action.typed:
            self._asking = (action, on_row)
            self.say("")
            self.ask(action.hint or action.typed)
        else:
            self._run(action.command.replace("{row}", on_row))

    def typed(self, text: str) -> None:
        if self._asking is None and not self._offered:
            super().typed(text)

    def entered(self, text: str) -> None:
        asking, offered = self._asking, self._offered
        self._asking, self._offered = None, False
        if asking is not None and text.strip():
            action, on_row = asking
            self._run(action.command.replace("{row}", on_row).replace("{typed}", text.strip()))
        elif offered and text.strip():
            self._run(text.strip())

    def action_leave_line(self) -> None:
        if self._asking is None and not self._offered:
            super().action_leave_line()
        else:
            self._asking, self._offered = None, False
            self.close_line()

    def _was_seen(self, action: Action) -> bool:
        """Says what was not shown, which another key than the action's own accepts."""
        if self._rows.searched:
            self._rows.search("")
        if not (words := action.unseen(self._rows.unseen)):
            return True
        self._unseen = action
        self.say(f"{words} ↓ reads on, {SECOND} trusts it unseen.")
        return False

    def _run(self, line: str) -> None:
        self.run_worker(self._carry_out(line), exit_on_error=False)

    async def _carry_out(self, line: str) -> None:
        """Runs a command and shows what is there afterwards."""
        if waits := registry.waits_for_server(line):
            self.say(f"{waits}… · Esc closes this and cancels it")
        try:
            result = await registry.run(self.agent, line)
            if isinstance(result, registry.Copy):
                self.app.copy_to_clipboard(result.text)
                self.say(f"Copied {result.what}.")
                return
            if isinstance(result, Info) and result.title != self.info.title:
                self.say("")
                self.app.push_screen(InfoScreen(self.agent, result, self._changed))
                return
            again = result if isinstance(result, Info) else await registry.run(self.agent, self.info.command)
        except AgentError as error:
            self.say(str(error))
            return
        said = result.text if isinstance(result, registry.Text) else ""
        if not isinstance(again, Info):
            # Nothing is left to be shown.
            self.dismiss(None)
            self._changed(said)
            return
        self._changed("")
        self.info = self._rows.info = again
        self._tell()
        self._rows.again()
        if isinstance(result, registry.Text):
            self.say(result.text)
            if result.then:
                self._offered = True
                self.ask("", result.then)
