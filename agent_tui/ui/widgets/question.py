"""Panels with a question, what they have in common: a text, choices, a line for words, and no answer by accident."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Generic, Protocol, TypeAlias, TypeVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from agent_tui.models.events import PermissionAsked, PlanPresented, QuestionAsked, ServerAsked, StopAsked
from agent_tui.text.cells import shorten
from agent_tui.ui.keys import BURST, PAUSE, LoneKey, TypingGuard
from agent_tui.ui.safety import Guarded
from agent_tui.ui.textual_private.terminal import action_of
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.bodies import Body, More, pieces_of
from agent_tui.ui.widgets.drawn_lines import Lines

UNGUARDED = frozenset({"escape", "tab", "shift+tab", "pageup", "pagedown", "home", "end", "ctrl+c"})
"""Keys that leave or scroll; none of them allows anything."""
_ANSWERS = re.compile(r"(answer|row)\('?(\w)'?\)")
_MOVES = ("move(", "mark")
TRANSCRIPT_ROOM = 2
"""Lines of the transcript that stay visible when a panel is open."""
BODY_ROWS = 20
AIRY = 9
"""Lines of a text that are enough to leave an empty one above it and one below."""
LEAST_BODY = 6
"""Lines that wrapped choices leave to the text above them."""
LEAD, MOST_LINES = 5, 4
"""Cells before a choice's words, and the most lines of one."""
SHORT, TINY = 18, 14
"""Below so many lines of the screen choices stand in one line, and frames go."""


class ChoiceRow(Protocol):
    """A row to choose: ``key`` (or empty) answers with it, ``feedback`` asks for words first."""

    @property
    def key(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def feedback(self) -> bool: ...


A = TypeVar("A", PermissionAsked, PlanPresented, QuestionAsked, ServerAsked, StopAsked)
TakesTyped: TypeAlias = Callable[[str, bool], None]
"""Takes text that was meant for the prompt (empty: a key that writes nothing), and whether it was pasted. Called at
once, so that keys keep their order."""


class Choices(Lines):
    """The rows, with a cursor. ``words`` stand for them in one line on low screens, by key; without them rows stay.
    ``mark`` is drawn before a label. Where long labels leave too little room, only that under the cursor is wrapped."""

    def __init__(
        self,
        choices: Sequence[ChoiceRow],
        words: Mapping[str, str],
        mark: Callable[[ChoiceRow], str] = lambda choice: "",
    ) -> None:
        super().__init__(height=len(choices))
        self.choices = choices
        self._words = words
        self._mark = mark
        self.cursor = 0
        self.short = False
        self._rows: list[tuple[int, str]] = []
        self._packed: list[list[ChoiceRow]] = []
        self._top = 0

    def fit(self, short: bool, room: int, text: int, width: int) -> None:
        """``short``: several in a line. ``text`` are the lines of what stands above; without ``room`` rows are scrolled
        to."""
        self.short = short and bool(self._words)
        self._packed = self._in_lines(width) if self.short else []
        whole = self._laid(width, all_whole=True)
        self._rows = whole if len(whole) <= room - min(text, LEAST_BODY) else self._laid(width, all_whole=False)
        height = len(self._packed) if self.short else max(1, min(len(self._rows), room))
        ends = [n for n, (index, _) in enumerate(self._rows) if index <= self.cursor]
        self._top = max(0, (ends[-1] if ends else 0) - height + 1)
        if height != self.line_count:
            self.set_height(height)
            self.refresh(layout=True)
        self.refresh()

    def _in_lines(self, width: int) -> list[list[ChoiceRow]]:
        """The choices by their words, as many in a line as have room there."""
        lines: list[list[ChoiceRow]] = []
        left = 0
        for choice in self.choices:
            cells = cell_len(f"{choice.key} {self._word(choice)}  ")
            if not lines or cells > left:
                lines.append([])
                left = width
            lines[-1].append(choice)
            left -= cells
        return lines

    def _word(self, choice: ChoiceRow) -> str:
        return self._words.get(choice.key, choice.label)

    def _laid(self, width: int, *, all_whole: bool) -> list[tuple[int, str]]:
        """The lines: which choice each is of, and its text."""
        rows: list[tuple[int, str]] = []
        for index, choice in enumerate(self.choices):
            label, room = self._mark(choice) + choice.label, max(1, width - LEAD)
            pieces = pieces_of(label, room) if all_whole or index == self.cursor else [shorten(label, room)]
            if len(pieces) > MOST_LINES:
                pieces[MOST_LINES - 1 :] = [shorten("".join(pieces[MOST_LINES - 1 :]), room)]
            rows += [(index, piece) for piece in pieces]
        return rows

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self.short:
            pieces: list[Piece] = []
            for choice in self._packed[y] if y < len(self._packed) else ():
                here, word = self.choices[self.cursor] is choice, self._word(choice)
                pieces += [(" " if pieces else "", paint()), (choice.key, paint("accent", bold=True))]
                pieces.append((f" {word} ", paint("primary" if here else "foreground", bold=here)))
            return pieces
        if y + self._top >= len(self._rows):
            return []
        index, text = self._rows[y + self._top]
        here, goes_on = index == self.cursor, y + self._top and self._rows[y + self._top - 1][0] == index
        return [
            ("❯ " if here and not goes_on else "  ", paint("primary", bold=True)),
            (" " * (LEAD - 2) if goes_on else f"{self.choices[index].key or ' '}  ", paint("accent", bold=True)),
            (text, paint("primary" if here else "foreground", bold=here)),
        ]

    def on_click(self, event: events.Click) -> None:
        panel = self.parent
        if isinstance(panel, QuestionPanel) and not self.short and 0 <= event.y < self.line_count:
            event.stop()
            panel.clicked(self.choices[self._rows[event.y + self._top][0]])


class Title(Lines):
    """What is asked, and words beside it; ``fit`` brings those into the room there is."""

    def __init__(self, what: str, words: str, fit: Callable[[str, int], str] = shorten) -> None:
        super().__init__(height=1)
        self._what = what
        self._words = words
        self._fit = fit

    def tell(self, words: str) -> None:
        self._words = words
        self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        words = self._fit(f"  {self._words}", max(0, width - len(self._what)))
        return [(self._what, paint("warning", bold=True)), (words, paint("muted"))]


class WholeInput(Input):
    """A line in which all of what is pasted counts: the lines of a text become one, and a key that came in two of them
    is refused and not cut."""

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.take(event.text)

    def take(self, pasted: str) -> None:
        self.replace(" ".join(pasted.strip().splitlines()), *self.selection)


class QuestionPanel(Guarded, Vertical, Generic[A], can_focus=True):
    """Asks; subclasses say what. What was typed without having seen the question is no answer: ``typed`` takes it."""

    DEFAULT_CSS = """
    QuestionPanel {
        height: auto; padding: 0 1; border: round $warning; background: $background;
    }
    QuestionPanel.-tiny { border: none; }
    QuestionPanel .body { height: auto; margin: 0; }
    QuestionPanel Input { height: 1; border: none; background: $surface; padding: 0 1; display: none; }
    QuestionPanel Input:focus { border: none; }
    QuestionPanel.-feedback Input { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"row({n})", f"Row {n}", show=False) for n in range(1, 10)),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("enter", "choose", "Choose", show=False),
        Binding("pageup", "page(-1)", "Scroll up", show=False),
        Binding("pagedown", "page(1)", "Scroll down", show=False),
        Binding("home", "edge(False)", "Scroll to the beginning", show=False),
        Binding("end", "edge(True)", "Scroll to the end", show=False),
        Binding("escape", "escape", "Interrupt", show=False),
        Binding("tab", "prompt", "To the prompt", show=False),
    ]

    def __init__(
        self,
        asked: A,
        guard: TypingGuard,
        typed: TakesTyped,
        header: Lines,
        body: Body,
        choices: Choices,
        placeholder: str,
        *,
        body_rows: int = BODY_ROWS,
    ) -> None:
        super().__init__()
        self.asked: A = asked
        self.guard = guard
        self._typed = typed
        self._header = header
        self._body = body
        self._more = More(body)
        self._body_rows = body_rows
        self._choices = choices
        self._placeholder = placeholder
        self._done = False
        self._letters = ""
        """What was typed and may be the beginning of words."""
        self._pending = ""
        """The action of the last of them, where it answers."""
        self._lone = LoneKey(guard.clock, lambda seconds, then: self.set_timer(seconds, then))
        self._cursor_before = 0

    @property
    def choices(self) -> Sequence[ChoiceRow]:
        return self._choices.choices

    @abstractmethod
    def choose(self, choice: ChoiceRow) -> None:
        """A row was chosen."""

    @abstractmethod
    def say(self, words: str) -> None:
        """Words were written in the line for them."""

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._body
        yield self._more
        yield self._choices
        yield WholeInput(placeholder=self._placeholder)

    def on_resize(self, event: events.Resize) -> None:
        self._arrange(self.screen.size.height)

    def on_focus(self) -> None:
        self.border_subtitle = ""
        self._more.say_way("")

    def on_blur(self) -> None:
        """Keys are the prompt's, or those of a line in here."""
        self.give_letters()
        self.call_after_refresh(self._say_the_way)

    on_descendant_blur = on_blur

    def _say_the_way(self) -> None:
        here = self.has_focus or self.has_focus_within
        self.border_subtitle = "" if here else "Tab to answer"
        self._more.say_way("" if here else "Tab, then ")

    def on_mount(self) -> None:
        self._arrange(self.screen.size.height)
        self._say_the_way()
        self.guard.appeared()
        # Counted anew from when it is drawn: a busy screen shows it later.
        self.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        self.guard.appeared()
        # What else is on the screen has its height only now.
        self._arrange(self.screen.size.height)

    @property
    def writing(self) -> bool:
        return self.has_class("-feedback")

    def show_body(self, body: Body) -> None:
        """Another text stands above the choices."""
        self._body.display = False
        self._body = body
        body.display = True
        self._more.follow(body)

    async def on_key(self, event: events.Key) -> None:
        """Keys are taken here and now: those that came along with an answer are no answer to the next question. A
        letter answers when nothing follows it."""
        if self.writing:
            self._written_key(event)
            return
        action = None if event.key in UNGUARDED else action_of(self, event.key)
        takes_back = event.key == "backspace" and self._letters != ""
        if event.key in UNGUARDED or (action is None and not event.is_printable and not takes_back):
            return
        event.stop()
        event.prevent_default()
        letter = event.character or "" if event.is_printable else ""
        if takes_back:
            self._take_back()
        elif self._done or self.guard.accidental() or action is None:
            self._take_for_words(letter)
        elif letter:
            await self._take_letter(letter, action)
        elif event.key == "enter" and self._letters and (self._pending or self._lone.age < PAUSE):
            # Nobody looks at the row that letters moved to and decides in less: it ends a line of words.
            if self._lone.age < BURST:  # pasted
                self._take_for_words("")
        else:
            self._take_back()
            await self.app.run_action(action, self)

    async def _take_letter(self, letter: str, action: str) -> None:
        """A letter answers where nothing follows it, and then only. What goes up and down answers nothing."""
        moves = action.startswith(_MOVES)
        row = None if moves else self._row_of(action)
        if self._pending or (not moves and (self._letters or row is None)):
            self._take_for_words(letter)
            return
        if not self._letters:
            self._cursor_before = self._choices.cursor
        self._letters += letter
        self._lone.wait(partial(self.call_after_refresh, self._letter_was_alone, self._letters))
        if row is None:
            await self.app.run_action(action, self)
            return
        self._pending = action
        self._to(row)

    def _row_of(self, action: str) -> int | None:
        """The row that a letter's action answers with."""
        found = _ANSWERS.fullmatch(action)
        if found is None:
            return None
        kind, key = found.groups()
        if kind == "row":
            return int(key) - 1 if not self._choices.short and int(key) <= len(self.choices) else None
        return next((at for at, choice in enumerate(self.choices) if choice.key == key), None)

    async def _letter_was_alone(self, letters: str) -> None:
        """Nothing followed, nor waits to be read."""
        if self._letters != letters or not self.is_attached or self._done:
            return
        pending, self._pending, self._letters = self._pending, "", ""
        if pending:
            await self.app.run_action(pending, self)

    def _take_back(self) -> None:
        """What was typed is no word and no answer."""
        if self._pending:
            self._cursor_back()
        self._pending = self._letters = ""
        self._lone.forget()

    def _cursor_back(self) -> None:
        self._to(min(self._cursor_before, len(self.choices) - 1))

    def _take_for_words(self, letter: str) -> None:
        """What was typed is no answer: all of it goes to the prompt, and no letter of it has moved anything."""
        words = self._letters + letter
        if self._letters:
            self._cursor_back()
        self._pending = ""
        self._take_back()
        # The prompt has the focus only some keys later: until then the rest of a word must not answer.
        self.guard.appeared()
        self._typed(words, False)

    def give_letters(self) -> None:
        """The keys are the prompt's from now on: a letter that waits goes there."""
        if self._pending:
            self._take_for_words("")
        self._take_back()

    def action_prompt(self) -> None:
        self.give_letters()
        self.app.call_later(self.app.run_action, "focus_prompt")

    def _written_key(self, event: events.Key) -> None:
        """Puts what is typed before the line for it has the focus into that line."""
        line = self.query_one(WholeInput)
        if event.is_printable and event.character and not line.has_focus:
            event.stop()
            event.prevent_default()
            line.insert_text_at_cursor(event.character)

    async def on_paste(self, event: events.Paste) -> None:
        """A paste is never an answer."""
        event.stop()
        event.prevent_default()
        self.give_letters()
        self._typed(event.text, True)

    def clicked(self, choice: ChoiceRow) -> None:
        """A click on a choice; one that was aimed at what stood there before is none."""
        if not self.guard.accidental():
            self._take_back()
            self.choose(choice)

    def _arrange(self, height: int) -> None:
        """The choices are always to be seen; the text takes what is left and scrolls."""
        short, tiny = height < SHORT, height < TINY
        self.set_class(tiny, "-tiny")
        # Nothing has a width before it is laid out; the first frame shows it as it will be.
        width = self.content_region.width or self.screen.size.width - (2 if tiny else 4)
        self._body.wrap(self._body.scrollable_content_region.width or width)
        self._header.set_height(1 if tiny else self._header_rows(width, short))
        siblings = [w for w in self.screen.children if w is not self and w.display and w.id != "transcript"]
        others = sum(w.outer_size.height for w in siblings) + (1 if short else TRANSCRIPT_ROOM)
        room = max(0, height - others - (0 if tiny else 2) - self._header.line_count)
        lines = self._body.count or self._body.text.count("\n") + 1
        self._choices.fit(short, room, lines if self._body.text else 0, width)
        room = max(0, room - self._choices.line_count)
        air = bool(self._body.text) and room - 2 >= min(lines, AIRY)
        room -= 2 * air
        shown = min(lines, max(self._body_rows, height // 2), room) if self._body.text else 0
        long = lines > shown > 1
        self._more.set_height(int(long))
        self._body.styles.height = shown - 1 if long and shown == room else shown
        # Without a text the empty line is between the question and the choices.
        bare = not self._body.text and not short and room > 0
        self._body.styles.margin = (int(air or bare), 0, int(air and not long), 0)
        self._more.styles.margin = (0, 0, int(air), 0)

    def _header_rows(self, width: int, short: bool) -> int:
        return 1

    def action_move(self, by: int) -> None:
        self._to((self._choices.cursor + by) % len(self.choices))

    def _to(self, row: int) -> None:
        self._choices.cursor = row
        self._arrange(self.screen.size.height)

    def action_page(self, by: int) -> None:
        self._body.scroll_relative(y=by * max(1, self._body.size.height - 1), animate=False)

    def action_edge(self, end: bool) -> None:
        self._body.scroll_to(y=self._body.max_scroll_y if end else 0, animate=False, force=True)

    def action_choose(self) -> None:
        self.choose(self.here)

    def action_answer(self, key: str) -> None:
        for choice in self.choices:
            if choice.key == key:
                self.choose(choice)

    def action_row(self, number: int) -> None:
        """The choice in that row, counted from 1, as long as rows are shown."""
        if not self._choices.short and number <= len(self.choices):
            self.choose(self.choices[number - 1])

    def action_escape(self) -> None:
        if self._letters:
            self._take_back()
        elif self.has_class("-feedback"):
            self.remove_class("-feedback")
            self.focus()
        else:
            self.left()

    def left(self) -> None:
        """Escape, outside of the line for words: the turn is interrupted."""
        self.app.call_later(self.app.run_action, "interrupt")

    @property
    def here(self) -> ChoiceRow:
        return self.choices[self._choices.cursor]

    def ask_for_words(self, choice: ChoiceRow) -> None:
        self._to(self.choices.index(choice))
        self.add_class("-feedback")
        self.query_one(WholeInput).focus()

    @on(Input.Submitted)
    def _feedback(self, event: Input.Submitted) -> None:
        event.stop()
        self.say(event.value.strip())

    def first_answer(self) -> bool:
        """Returns whether nothing was answered yet, and notes that from now on something is."""
        first, self._done = not self._done, True
        return first
