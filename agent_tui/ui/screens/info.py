"""What a command has to say, as a dialog: sections of rows that are read, and keys that change them. Each key runs the
slash command that does the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.message import Message

from agent_tui.commands import registry
from agent_tui.commands.info import Action, Info, InfoLine, Row, layout
from agent_tui.errors import AgentError
from agent_tui.ui.screens.text import KEYS, NO_MATCH, WIDEST, TextRows, TextScreen
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.rows import RowList

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent

SECOND = "t"
"""The key for what was not shown: another one, so that a key held down too long accepts nothing."""

TO_UNSEEN = "u"
"""The key that goes to the first line that was not shown."""

NAMES = {"enter": "Enter"}
"""Keys as they are called; others are called as they are."""


class InfoRows(TextRows):
    """The rows of an info. Where there are actions for rows the cursor goes from one of those to the next."""

    class Seen(Message):
        """Other lines are on the screen now."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, InfoRows.Seen)

    def __init__(self, info: Info) -> None:
        super().__init__()
        self.info = info
        self._unseen: set[int] | None = None
        self._pages: list[int] = []
        self._measured: tuple[int, Info] | None = None

    @property
    def unseen(self) -> Sequence[int]:
        """The lines of all, whatever is searched for, that were not on the screen yet; a first one before there are
        any."""
        return (0,) if self._unseen is None else sorted(self._unseen)

    def laid_out(self, width: int) -> Sequence[InfoLine]:
        if self._measured is None or self._measured[0] != width or self._measured[1] is not self.info:
            self._measured = width, self.info
            self._pages.clear()
            self._unseen = set(range(len(layout(self.info, width))))
        return layout(self.info.matching(self.searched), width) or [InfoLine(((NO_MATCH, "muted"),))]

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

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Seen())

    def action_page(self, by: int) -> None:
        before = self.cursor
        RowList.action_page(self, by)
        if self.cursor == before:
            self._pages.append(by)
            self._turn()

    def _turn(self) -> None:
        """Turns the pages that were asked for, each once the one before was drawn: none is skipped unseen."""
        while self._pages and (self.searched or not self._is_drawing):
            super().action_page(self._pages.pop(0))

    @property
    def _is_drawing(self) -> bool:
        top = round(self.scroll_offset.y)
        return not (self._unseen or set()).isdisjoint(range(top, top + self.size.height))

    def on_info_rows_seen(self) -> None:
        self._turn()

    def action_first(self) -> None:
        self._pages.clear()
        RowList.action_first(self)
        super().action_first()

    def action_last(self) -> None:
        self._pages.clear()
        RowList.action_last(self)
        super().action_last()

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self._unseen and not self.searched and index in self._unseen:
            self._unseen.remove(index)
            self.post_message(self.Seen())
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
        super().__init__(info.title, info.text)
        self.agent, self.info = agent, info
        self._changed = changed
        self._asking: tuple[Action, str] | None = None
        self._offered = False
        self._noticed = ""
        self._tell()

    def _tell(self, unseen: bool = True, notice: bool = False) -> None:
        """Names the keys; of an action on the whole the one that is taken now. None is before lines are shown."""
        own: list[str] = []
        for action in self.info.actions:
            if not action.whole or not (unseen or action.hidden):
                own.append(f"{NAMES.get(action.key, action.key)} {action.label}")
            elif notice:
                own += [f"{SECOND} trust it unseen", *[f"{TO_UNSEEN} go to unseen"] * unseen]
        self.keys = " · ".join([*dict.fromkeys(own), KEYS])

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
        whole = self._whole
        if whole is not None and self._noticed and event.key == SECOND:
            event.stop()
            self._run(whole.command)
        elif whole is not None and (unseen := self._rows.unseen) and event.key == TO_UNSEEN:
            event.stop()
            self._rows.search("")
            self._rows.scroll_to(y=unseen[0], animate=False, force=True)
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

    # What was not shown

    @property
    def _whole(self) -> Action | None:
        return next((action for action in self.info.actions if action.whole), None)

    @on(InfoRows.Seen)
    def _follow(self, event: InfoRows.Seen) -> None:
        """Says below the rows what was not shown so far, and in the frame which key accepts."""
        event.stop()
        if (whole := self._whole) is None:
            return
        unseen, top = self._rows.unseen, round(self._rows.scroll_offset.y)
        up = sum(index < top for index in unseen)
        before, self._noticed = self._noticed, whole.unseen(up, len(unseen) - up)
        self._tell(bool(unseen), bool(self._noticed))
        if before != self._noticed:
            self.say(self._noticed)

    def _was_seen(self, action: Action) -> bool:
        """Whether all was shown. Where it was not, what was not is said, which another key accepts."""
        if self._rows.searched:
            self._rows.search("")
        if self._rows.unseen or action.hidden:
            self.say(self._noticed)
            return False
        return True

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
        self._noticed, self.text = "", again.text
        self._tell()
        self._rows.again()
        if isinstance(result, registry.Text):
            self.say(result.text)
            if result.then:
                self._offered = True
                self.ask("", result.then)
