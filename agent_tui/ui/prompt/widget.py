"""The prompt: several lines, history, completion, long pastes as placeholders, an undo that the shell's keys reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, assert_never

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea

from agent_tui.completion import CompletionQuery, query_at
from agent_tui.terminal_input import ESCAPE_WAIT
from agent_tui.ui.first_frame import PLACEHOLDER
from agent_tui.ui.prompt.placeholders import Placeholders, is_long
from agent_tui.ui.safety import Guarded
from agent_tui.ui.textual_private.terminal import action_of, wait_after_escape

if TYPE_CHECKING:
    from agent_tui.history import PromptHistory
    from agent_tui.models.messages import Written
    from agent_tui.ui.prompt.completing import Completer, Completions
    from agent_tui.ui.prompt.vim_keys import VimKeys
    from agent_tui.ui.vim.machine import Ask, Mode

FAST_ESCAPE = 0.05
"""Seconds, as Neovim waits. With vim's keys Esc is typed fast before a letter, and alone it must not be waited for."""

Outside: TypeAlias = Literal["escape", "quit", "history", "editor", "paste", "keys", "panel", "find"]


class PromptHost(NamedTuple):
    """The calls that have to be answered before the next key: a message would come too late for keys in a burst."""

    typed: Callable[[], None]
    """A key was pressed here. Tab is none: it leaves."""
    sent: Callable[[Written, bool], None]
    """Enter, and whether it is meant for the running turn."""
    take_back: Callable[[], None]
    """↑ on an empty prompt."""
    send_waiting: Callable[[], None]
    """Enter on an empty prompt."""
    pasted: Callable[[str], None]
    """Text came from the terminal's paste; it may name an image file."""
    refused: Callable[[str], bool]
    """Returns whether a text cannot be sent now; then it stays in the prompt."""
    copied: Callable[[str], None]
    """Text is meant for the clipboard."""
    mode_shown: Callable[[str], None]
    """The mode of vim's keys, with what was typed of a command; empty without them."""


ASKED_ABOVE = "The question above comes first · Tab to write here"


class Prompt(Guarded, TextArea, inherit_css=True):
    """The text field in which the user types. It knows nothing of sessions and hands its text to its host."""

    host: PromptHost

    DEFAULT_CSS = """
    Prompt {
        height: auto; max-height: 12; min-height: 1; padding: 0 1; margin: 0;
        border: none; border-left: outer $primary; background: $surface;
        scrollbar-size-vertical: 1;
    }
    Prompt.-roomy { padding: 1 1; max-height: 16; }
    Prompt:focus { border: none; border-left: outer $primary; }
    Prompt.-edits, Prompt.-edits:focus { border-left: outer $success; }
    Prompt.-plan, Prompt.-plan:focus { border-left: outer $accent; }
    Prompt.-auto, Prompt.-auto:focus { border-left: outer $error; }
    Prompt.-shell, Prompt.-shell:focus { border-left: outer $warning; }
    Prompt .text-area--placeholder { color: $faint; }
    Prompt:light .text-area--cursor { color: $input-cursor-foreground; background: $input-cursor-background; }
    Prompt.-inserting:focus .text-area--cursor { background: $surface; color: $foreground; text-style: underline; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", show=False, id="send"),
        Binding("ctrl+j,shift+enter,alt+enter", "newline", "New line", show=False, id="newline"),
        Binding("ctrl+s", "steer", "Send into the running turn", show=False, id="steer"),
        Binding("up", "up", "Older", show=False, id="older"),
        Binding("down", "down", "Newer", show=False, id="newer"),
        Binding("tab", "tab", "Complete", show=False, id="complete"),
        Binding("escape", "escape", "Interrupt or close", show=False, id="escape"),
        Binding("ctrl+r", "history", "Search history", show=False, id="history"),
        Binding("ctrl+g", "editor", "External editor", show=False, id="editor"),
        Binding("ctrl+v", "paste_any", "Paste text or image", show=False, id="paste"),
        Binding("ctrl+d", "delete_or_quit", "Delete, quit on empty", show=False, id="quit"),
        Binding("ctrl+z", "app.suspend_process", "Suspend", show=False, id="suspend"),
        Binding("ctrl+underscore,ctrl+minus,ctrl+shift+minus,ctrl+slash", "undo", "Undo", show=False, id="undo"),
        Binding("alt+underscore,alt+shift+minus,ctrl+y", "redo", "Redo", show=False, id="redo"),
        Binding("pageup", "app.scroll_transcript(-1)", "Transcript up", show=False, id="page_up"),
        Binding("pagedown", "app.scroll_transcript(1)", "Transcript down", show=False, id="page_down"),
        Binding("ctrl+home", "app.scroll_transcript(-1000)", "Transcript start", show=False, id="start"),
        Binding("ctrl+end", "app.scroll_transcript(1000)", "Transcript end", show=False, id="end"),
    ]

    class Asked(Message):
        """A key whose meaning lies outside the prompt."""

        def __init__(self, what: Outside) -> None:
            super().__init__()
            self.what = what

    class Completing(Message):
        """Another text is to be completed now; ``query`` is None when nothing is."""

        def __init__(self, query: CompletionQuery | None) -> None:
            super().__init__()
            self.query = query

    def __init__(self, history: PromptHistory) -> None:
        self.history_file = history
        self.completer: Completer | None = None
        self._asked = False
        self.placeholders = Placeholders()
        self.vim: VimKeys | None = None
        super().__init__(
            id="prompt", highlight_cursor_line=False, placeholder=Content(PLACEHOLDER), max_checkpoints=200
        )
        self.cursor_blink = False

    def stand_below(self, asked: bool) -> None:
        """Says, while a question stands above, that it comes first; it has the keys then, or they are in here."""
        self._asked = asked
        self._say_placeholder(self.has_focus)

    def _say_placeholder(self, here: bool) -> None:
        waits = "A message for later; the question above waits" if here else ASKED_ABOVE
        self.placeholder = Content(waits if self._asked else PLACEHOLDER)

    def on_focus(self) -> None:
        self._say_placeholder(True)

    def on_blur(self) -> None:
        self._say_placeholder(False)

    # Text

    @property
    def is_empty(self) -> bool:
        return self.document.line_count == 1 and not self.document.get_line(0)

    @property
    def whole_text(self) -> str:
        return self.placeholders.expand(self.text).text

    def set_text(self, text: str) -> None:
        """Replaces everything (undoable) and puts the cursor at the end; long text becomes a placeholder."""
        self.replace(self.placeholders.collapse(text), (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def clear_text(self) -> None:
        """Empties the prompt (undoable); ↑ shows what stood there, then what was sent last."""
        self.history_file.set_aside(self.whole_text)
        self.set_text("")

    def offer(self, text: str) -> None:
        """Puts in what the user may want to send next. A short text gives way to what is typed; a long one is there to
        be read: whole and from its beginning, before what is typed."""
        typed = self.text
        if not is_long(text):
            if not typed:
                self.set_text(text)
            return
        self.replace(f"{text}\n\n{typed}" if typed else text, (0, 0), self.document.end)
        self.move_cursor((0, 0))

    def type_here(self, character: str) -> None:
        """A character that was typed while something else had the focus."""
        if self.vim is None or not self.vim.takes(character, character):
            self.insert_text(character)

    def insert_text(self, text: str) -> None:
        self.move_cursor(self.replace(text, *self.selection, maintain_selection_offset=False).end_location)

    def give_back(self, message: Written) -> None:
        """Puts a message that was not sent in front of what has been typed since."""
        text, typed = self.placeholders.restore(message), self.text
        self.set_text(f"{text}\n{typed}" if typed else text)

    def take(self) -> Written:
        """Empties the prompt and returns what was typed, with pastes and images, without empty lines around it."""
        typed = self.placeholders.expand(self.text.strip("\n"))
        self.close_completions()
        self.load_text("")
        self.placeholders.clear()
        self.history_file.recall.end()
        if self.vim is not None:
            self.vim.begin()
        return typed

    # Vim

    def use_vim(self, on: bool) -> None:
        """Puts vim's keys on the prompt, in insert mode, or takes them off."""
        if on == (self.vim is not None):
            return
        if on:
            from agent_tui.ui.prompt.vim_keys import VimKeys

            self.vim = VimKeys(self, self._vim_asks, self._vim_shows, self.placeholders.places)
            self.vim.settle()
        else:
            self.vim = None
            self.remove_class("-inserting")
            self.selection = type(self.selection).cursor(self.cursor_location)
            self.host.mode_shown("")
        if self.is_mounted:
            self._set_escape_wait()

    def on_mount(self) -> None:
        self._set_escape_wait()

    def _set_escape_wait(self) -> None:
        wait_after_escape(self.app, ESCAPE_WAIT if self.vim is None else FAST_ESCAPE)

    def _vim_asks(self, ask: Ask) -> None:
        what, text = ask
        match what:
            case "older":
                self.action_up()
            case "newer":
                self.action_down()
            case "copy":
                self.host.copied(text)
            case "paste":
                if text == "p":
                    self.move_cursor_relative(columns=1)
                self.post_message(self.Asked("paste"))
            case "escape" | "find":
                self.post_message(self.Asked(what))
            case _:
                assert_never(what)

    def _vim_shows(self, mode: Mode, words: str) -> None:
        self.set_class(mode == "insert", "-inserting")
        if mode != "insert":
            self.close_completions()
        self.host.mode_shown(words)

    @property
    def selected_text(self) -> str:
        """The selected text; in visual mode the character under the cursor is selected, too."""
        if self.vim is not None and self.vim.vim.selecting:
            vim = self.vim.vim
            return vim.text.between(vim.selection.start, vim.selection.end)
        return super().selected_text

    # Keys

    async def on_key(self, event: events.Key) -> None:
        if event.key != "tab":
            self.host.typed()
        # Alt and a letter may be bound as one key; else it is Esc and then the letter.
        bound_as_one = event.key.startswith("alt+") and event.key in self.screen.active_bindings
        if self.vim is not None and not bound_as_one and self.vim.takes(event.key, event.character):
            event.prevent_default()
            event.stop()
        elif event.character == "?" and self.is_empty:
            event.prevent_default()
            event.stop()
            self.post_message(self.Asked("keys"))
        elif event.is_printable:
            if self.completer is not None and self.completer.closes_gap(self.cursor_location, event.character or ""):
                row, column = self.cursor_location
                self.delete((row, column - 1), (row, column), maintain_selection_offset=False)
        else:
            if event.key == "enter":
                # Not a character here: the binding decides, so that it can be bound to something else.
                event.prevent_default()
            action = action_of(self, event.key)
            if action is not None and not action.startswith("app."):
                # Textual runs bindings when the key has gone up to the app: keys that came with it are text by then.
                event.prevent_default()
                event.stop()
                await self.app.run_action(action, self)

    async def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.host.pasted(event.text)

    def action_send(self) -> None:
        if self.offered and self._accept(sending=True):
            return
        line, column = self.cursor_location
        if line == self.document.line_count - 1 and self.document.get_line(line)[:column].endswith("\\"):
            self.replace("\n", (line, column - 1), (line, column))
            return
        self._send(steer=False)

    def action_steer(self) -> None:
        self._send(steer=True)

    def _send(self, steer: bool) -> None:
        if self.host.refused(self.text):
            return
        if not self.text.strip():
            self.host.send_waiting()
            return
        typed = self.take()
        self.history_file.add(typed.text)
        self.host.sent(typed, steer)

    def action_newline(self) -> None:
        self.insert_text("\n")

    def action_tab(self) -> None:
        if self.offered:
            self._accept()
        else:
            self.post_message(self.Asked("panel"))

    def action_escape(self) -> None:
        if self.completer is not None and self.offered:
            self.completer.dismiss()
        else:
            self.post_message(self.Asked("escape"))

    def action_undo(self) -> None:
        if self.vim is not None and not self.vim.inserting:
            self.vim.undo()
        else:
            super().action_undo()

    def action_redo(self) -> None:
        if self.vim is not None and not self.vim.inserting:
            self.vim.redo()
        else:
            super().action_redo()

    def action_history(self) -> None:
        self.post_message(self.Asked("history"))

    def action_editor(self) -> None:
        self.post_message(self.Asked("editor"))

    def action_paste_any(self) -> None:
        self.post_message(self.Asked("paste"))

    def action_delete_or_quit(self) -> None:
        if self.is_empty:
            self.post_message(self.Asked("quit"))
        else:
            self.action_delete_right()

    def action_delete_left(self) -> None:
        row, column = self.selection.end
        start = self.placeholders.before(self.document.get_line(row), column) if self.selection.is_empty else None
        if start is None:
            super().action_delete_left()
        else:
            self.delete((row, start), (row, column), maintain_selection_offset=False)

    def action_up(self) -> None:
        if self.offered and not self.history_file.recall.browsing:
            self.offered.action_move(-1)
        elif self.is_empty and not self.history_file.recall.browsing:
            self.host.take_back()
        elif self.navigator.is_first_wrapped_line(self.cursor_location):
            self.recall_older()
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        if self.offered and not self.history_file.recall.browsing:
            self.offered.action_move(1)
        elif self.navigator.is_last_wrapped_line(self.cursor_location) and self.history_file.recall.browsing:
            newer = self.history_file.recall.newer(self.text)
            if newer is not None:
                self.set_text(newer)
        else:
            self.action_cursor_down()

    def recall_older(self) -> None:
        older = self.history_file.recall.older(self.text)
        if older is not None:
            self.set_text(older)

    def render_line(self, y: int) -> Strip:
        """Nothing where nothing has room: Textual would break the placeholder into lines of no cells."""
        return super().render_line(y) if self.content_size.width > 0 else Strip.blank(self.size.width)

    # Completion

    def on_text_area_changed(self) -> None:
        self.set_class(self.document.get_line(0).startswith("!"), "-shell")

    def watch_selection(self) -> None:
        if self.completer is None:
            return
        query = None
        moving = self.vim is not None and not self.vim.inserting
        if not self.history_file.recall.browsing and self.selection.is_empty and not moving:
            row, column = self.cursor_location
            query = query_at(self.document.get_line(row), column, row == 0)
        if self.completer.look(query):
            self.post_message(self.Completing(self.completer.wanted))

    def complete_with(self, popup: Completions) -> None:
        """From now on what is typed is completed, and what has been typed already."""
        from agent_tui.ui.prompt.completing import Completer

        self.completer = Completer(popup)
        self.watch_selection()

    @property
    def offered(self) -> Completions | None:
        """The popup while it has something for what stands before the cursor."""
        return self.completer.offered if self.completer is not None else None

    def close_completions(self) -> None:
        if self.completer is not None:
            self.completer.close()

    def _accept(self, sending: bool = False) -> bool:
        """Inserts the chosen proposal. When Enter was pressed, a finished command is to be sent instead: False."""
        row, column = self.cursor_location
        completer = self.completer
        choice = completer.choose(self.document.get_line(row), column, sending) if completer is not None else None
        if completer is None or choice is None:
            return False
        self.replace(choice.insert, (row, choice.start), (row, column), maintain_selection_offset=False)
        end = (row, choice.start + len(choice.insert))
        self.move_cursor(end)
        completer.put(choice, end)
        return not (sending and choice.runs)
