"""The question before a risky call: in the flow above the prompt, so that the transcript stays readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from rich.cells import cell_len, chop_cells
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from agent_tui.models.events import PermissionAsked
from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line, spelled
from agent_tui.ui.draw import Piece
from agent_tui.ui.guard import TypingGuard
from agent_tui.ui.safety import Guarded
from agent_tui.ui.textual_private import bindings_of
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.lines import Lines
from agent_tui.ui.widgets.rows import RowList

MAX_PATTERNS = 3
NEAR = 24
"""A word of a command is cut only when it is longer than this many characters."""
MAX_COMPARED = 100_000
SHORT_WORDS = {"y": "yes", "a": "always", "s": "session", "n": "no", "f": "no, because…"}
UNGUARDED = frozenset({"escape", "tab", "shift+tab", "pageup", "pagedown", "ctrl+c"})
"""Keys that leave or scroll; none of them allows anything."""
TRANSCRIPT_ROOM = 2
"""Lines of the transcript that stay visible when a panel is open."""


@dataclass(slots=True, frozen=True)
class Choice:
    key: str
    label: str
    allow: bool
    pattern: str | None = None
    feedback: bool = False


def choices_for(asked: PermissionAsked) -> list[Choice]:
    """What can be answered: once, always by pattern, no, no with a word about what to do instead."""
    shown = asked.patterns[:MAX_PATTERNS]
    always = [
        Choice(
            "a" if i == 0 else str(i + 2),
            f"Always allow {shorten(spelled(pattern, line=True), 120)} in this project",
            True,
            pattern,
        )
        for i, pattern in enumerate(shown)
    ]
    if len(asked.patterns) > len(shown):
        always[-1] = replace(always[-1], label=f"{always[-1].label} … and {len(asked.patterns) - len(shown)} more")
    session = [Choice(("s", "")[i > 0], _for_session(rule), True, rule) for i, rule in enumerate(asked.session)]
    return [
        Choice("y", "Yes, this once", True),
        *always,
        *session,
        Choice("n", "No", False),
        # Only a model can be told what to do instead; the screen itself asks about no call.
        *([Choice("f", "No, and say what to do instead", False, feedback=True)] if asked.call_id else []),
    ]


def _for_session(rule: str) -> str:
    """A rule like ``edit(./src/**)`` in words."""
    what, _, where = rule.removesuffix(")").partition("(")
    where = where.removesuffix("/**").removeprefix("./")
    verb = "edits" if what == "edit" else "reading"
    if where in (".", ""):
        return f"Yes, all {verb} in the project this session"
    return f"Yes, {verb} in {shorten(spelled(where, line=True), 100)} this session"


class TakesTyped(Protocol):
    def __call__(self, text: str, *, paste: bool = False) -> None:
        """Text that was meant for the prompt; empty for a key that writes nothing. Called at once, not by a message,
        so that keys keep their order."""


class _Header(Lines):
    def __init__(self, asked: PermissionAsked) -> None:
        super().__init__(height=2 if asked.reason else 1)
        self.asked = asked

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y == 1:
            return [(shorten(spelled(self.asked.reason, line=True), width), paint("muted"))]
        what = f"Allow {shorten(spelled(self.asked.tool, line=True), 40)}?"
        return [
            (what, paint("warning", bold=True)),
            ("  " + shorten(self._subject(), max(0, width - len(what) - 2)), paint("foreground")),
        ]

    def _subject(self) -> str:
        """What the tool would do it to; nothing when the body below says it word by word."""
        display = self.asked.display or {}
        summary = self.asked.summary.removeprefix(f"{self.asked.tool} ")
        subject = spelled(summary, line=True)
        if display.get("kind") == "diff":
            size = display.get("summary")
            return f"{subject}  {one_line(size, 40)}" if isinstance(size, str) and size else subject
        body = " ".join(str(display.get("text") or "")[:MAX_COMPARED].split())
        same = " ".join(summary.split()).rstrip("…") in body
        return "" if display.get("kind") == "command" and same else subject


class _Body(RowList, can_focus=False):
    """The diff or the command, whole: long lines are wrapped, never cut."""

    def __init__(self, asked: PermissionAsked) -> None:
        super().__init__(classes="body")
        display = asked.display or {}
        self.kind = str(display.get("kind") or "text")
        self.text = spelled(str(display.get("text") or "")).expandtabs(4).rstrip("\n")
        self.lines: list[tuple[str, str]] = []
        self._wrapped = 0

    def wrap(self, width: int) -> None:
        if width == self._wrapped or width <= 0:
            return
        self._wrapped = width
        self.lines = []
        for line in self.text.split("\n") if self.text else ():
            self.lines += [(piece, self._color(line)) for piece in _pieces(line, max(1, width - 1))]
        self.set_count(len(self.lines))

    def _color(self, line: str) -> str:
        if self.kind != "diff":
            return "foreground"
        if line.startswith(("@@", "--- ", "+++ ")):
            return "muted"
        return {"+": "diff-add", "-": "diff-remove"}.get(line[:1], "foreground")

    def selectable(self, index: int) -> bool:
        return False

    def on_resize(self) -> None:
        self.wrap(self.scrollable_content_region.width)

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        text, color = self.lines[index]
        return [(text, paint(color))]


def _pieces(line: str, width: int) -> list[str]:
    """A line in pieces of at most ``width`` cells that together are the line, broken behind a blank if one is near."""
    pieces: list[str] = []
    at = 0
    while True:
        window = line[at : at + 4 * width]
        head = window
        if cell_len(window) > width:
            head = chop_cells(window, width)[0] or window[:1]
            blank = head.rfind(" ", max(0, len(head) - NEAR)) + 1
            head = head[:blank] if blank else head
        pieces.append(head)
        at += len(head)
        if at >= len(line):
            return pieces


class _Choices(Lines):
    def __init__(self, choices: list[Choice]) -> None:
        super().__init__(height=len(choices))
        self.choices = choices
        self.cursor = 0
        self.short = False

    def set_short(self, short: bool) -> None:
        """All choices in one line, for low screens."""
        if short != self.short:
            self.short = short
            self.set_height(1 if short else len(self.choices))
            self.refresh(layout=True)

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self.short:
            pieces: list[Piece] = []
            for i, choice in enumerate(c for c in self.choices if c.key):
                word = SHORT_WORDS.get(choice.key)
                if word is None:
                    continue
                here = self.choices[self.cursor] is choice
                pieces += [(" " if i else "", paint()), (choice.key, paint("accent", bold=True))]
                pieces.append((f" {word} ", paint("primary" if here else "foreground", bold=here)))
            return pieces
        choice = self.choices[y]
        here = y == self.cursor
        return [
            ("❯ " if here else "  ", paint("primary", bold=True)),
            (f"{choice.key or ' '}  ", paint("accent", bold=True)),
            (shorten(choice.label, max(1, width - 5)), paint("primary" if here else "foreground", bold=here)),
        ]

    def on_click(self, event: events.Click) -> None:
        panel = self.parent
        if isinstance(panel, PermissionPanel) and not self.short and 0 <= event.y < len(self.choices):
            event.stop()
            panel.clicked(self.choices[event.y])


class PermissionPanel(Guarded, Vertical, can_focus=True):
    """Asks for one call. Answers by ``Answered``; the keyboard alone is enough.

    What was typed without having seen the question is no answer: ``typed`` takes it, for the prompt.
    """

    DEFAULT_CSS = """
    PermissionPanel {
        height: auto; margin: 0 1; padding: 0 1; border: round $warning; background: $background;
    }
    PermissionPanel.-tiny { border: none; margin: 0; }
    PermissionPanel .body { height: auto; max-height: 14; margin: 0; }
    PermissionPanel Input { height: 1; border: none; background: $surface; padding: 0 1; display: none; }
    PermissionPanel Input:focus { border: none; }
    PermissionPanel.-feedback Input { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('y')", "Yes", show=False, id="allow"),
        Binding("a", "answer('a')", "Always", show=False, id="always"),
        Binding("s", "answer('s')", "This session", show=False),
        Binding("n", "answer('n')", "No", show=False, id="deny"),
        Binding("f", "answer('f')", "No, with a word", show=False, id="feedback"),
        *(Binding(str(n), f"row({n})", f"Row {n}", show=False) for n in range(1, 10)),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("enter", "choose", "Choose", show=False),
        Binding("pageup", "page(-1)", "Scroll up", show=False),
        Binding("pagedown", "page(1)", "Scroll down", show=False),
        Binding("escape", "escape", "Interrupt", show=False),
        Binding("tab", "app.focus_prompt", "To the prompt", show=False),
    ]

    @dataclass
    class Answered(Message):
        asked: PermissionAsked
        allow: bool
        pattern: str | None
        feedback: str

    def __init__(self, asked: PermissionAsked, guard: TypingGuard, typed: TakesTyped) -> None:
        super().__init__()
        self.asked = asked
        self.guard = guard
        self._typed = typed
        self.choices = choices_for(asked)
        self._header = _Header(asked)
        self._body = _Body(asked)
        self._choices = _Choices(self.choices)
        self._done = False

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._body
        yield self._choices
        yield Input(placeholder="What to do instead · Enter sends · Esc back")

    def on_resize(self, event: events.Resize) -> None:
        self._arrange(self.screen.size.height)

    def on_mount(self) -> None:
        self._arrange(self.screen.size.height)
        self.guard.appeared()
        # Counted anew from when it is drawn: a busy screen shows it later.
        self.call_after_refresh(self.guard.appeared)

    async def on_key(self, event: events.Key) -> None:
        """Keys are answered here and now: those that came along with an answer are no answer to the next question."""
        if self.has_class("-feedback"):
            self._feedback_key(event)
            return
        action = None if event.key in UNGUARDED else self._bound(event.key)
        if event.key in UNGUARDED or (action is None and not event.is_printable):
            return
        event.stop()
        event.prevent_default()
        if self._done or self.guard.accidental() or action is None:
            self._typed(event.character or "" if event.is_printable else "")
        else:
            await self.app.run_action(action, self)

    def _feedback_key(self, event: events.Key) -> None:
        """What is typed before the line for it has the focus."""
        line = self.query_one(Input)
        if event.is_printable and event.character and not line.has_focus:
            event.stop()
            event.prevent_default()
            line.insert_text_at_cursor(event.character)

    def _bound(self, key: str) -> str | None:
        """The panel's own action for a key, as the user bound it."""
        return next((binding.action for binding in bindings_of(self, key)), None)

    async def on_paste(self, event: events.Paste) -> None:
        """A paste is never an answer."""
        event.stop()
        event.prevent_default()
        self._typed(event.text, paste=True)

    def clicked(self, choice: Choice) -> None:
        """A click on a choice; one that was aimed at what stood there before is none."""
        if not self.guard.accidental():
            self.choose(choice)

    def _arrange(self, height: int) -> None:
        """The choices are always to be seen; the diff or command takes what is left and scrolls."""
        short = height < 18
        self._choices.set_short(short)
        tiny = height < 14
        self.set_class(tiny, "-tiny")
        self._body.wrap(max(1, self._body.scrollable_content_region.width))
        self._header.set_height(2 if self.asked.reason and not tiny else 1)
        siblings = [w for w in self.screen.children if w is not self and w.display and w.id != "transcript"]
        others = sum(w.outer_size.height for w in siblings) + (TRANSCRIPT_ROOM if not short else 0)
        frame = (0 if tiny else 2) + self._header.line_count + (1 if short else len(self.choices))
        room = max(0, height - others - frame)
        lines = len(self._body.lines) or self._body.text.count("\n") + 1
        self._body.styles.height = min(lines, 16, room) if self._body.text else 0

    def action_move(self, by: int) -> None:
        self._choices.cursor = (self._choices.cursor + by) % len(self.choices)
        self._choices.refresh()

    def action_page(self, by: int) -> None:
        self._body.scroll_relative(y=by * max(1, self._body.size.height - 1), animate=False)

    def action_choose(self) -> None:
        self.choose(self.choices[self._choices.cursor])

    def action_answer(self, key: str) -> None:
        for choice in self.choices:
            if choice.key == key:
                self.choose(choice)

    def action_row(self, number: int) -> None:
        """The choice in that row, counted from 1, as long as rows are shown."""
        if not self._choices.short and number <= len(self.choices):
            self.choose(self.choices[number - 1])

    def action_escape(self) -> None:
        if self.has_class("-feedback"):
            self.remove_class("-feedback")
            self.focus()
        else:
            self.app.call_later(self.app.run_action, "interrupt")

    def choose(self, choice: Choice) -> None:
        if choice.feedback:
            self._choices.cursor = self.choices.index(choice)
            self._choices.refresh()
            self.add_class("-feedback")
            self.query_one(Input).focus()
        else:
            self._answer(choice.allow, choice.pattern, "")

    @on(Input.Submitted)
    def _feedback(self, event: Input.Submitted) -> None:
        event.stop()
        self._answer(False, None, event.value.strip())

    def _answer(self, allow: bool, pattern: str | None, feedback: str) -> None:
        if not self._done:
            self._done = True
            self.post_message(self.Answered(self.asked, allow, pattern, feedback))
