"""The question above the prompt: what is asked, why, what has to be seen, the answers, a line for words."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, TextArea

from agent_tui.say.answering import Answering, Reply, Step
from agent_tui.say.asks import AskChoice
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import lines_in, plural
from agent_tui.ui.keys import BURST, PAUSE, LoneKey, TypingGuard
from agent_tui.ui.safety import Guarded
from agent_tui.ui.textual_private.terminal import action_of
from agent_tui.ui.widgets.answers import Choices, Header, WholeInput
from agent_tui.ui.widgets.bodies import Body, More, body_of

UNGUARDED = frozenset({"escape", "tab", "shift+tab", "pageup", "pagedown", "home", "end", "ctrl+c", "ctrl+g"})
"""Keys that leave, scroll or open the editor; none of them allows anything."""
_ANSWERS = re.compile(r"(answer|row)\('?(\w)'?\)")
_MOVES = ("move(", "mark")
TRANSCRIPT_ROOM = 2
"""Lines of the transcript that stay visible when a panel is open."""
BODY_ROWS = 20
PLAN_ROWS = 30
AIRY = 9
"""Lines of a text that are enough to leave an empty one above it and one below."""
SHORT, TINY = 18, 14
"""Below so many lines of the screen choices stand in one line, and frames go."""
REASON, SHORT_REASON = 3, 2
"""Lines of the reason that are shown, and on low screens."""
COLORS = {"permission": "warning", "stop": "warning", "plan": "accent"}
"""The frames."""

TakesTyped: TypeAlias = Callable[[str, bool], None]
"""Takes text that was meant for the prompt (empty: a key that writes nothing), and whether it was pasted. Called at
once, so that keys keep their order."""


class QuestionPanel(Guarded, Vertical, can_focus=True):
    """Puts one question. What was typed without having seen it is no answer: ``typed`` takes it. ``reply`` takes the
    answer; ``edit`` lets a plan be changed in the user's editor."""

    DEFAULT_CSS = """
    QuestionPanel { height: auto; padding: 0 1; border: round $primary; background: $background; }
    QuestionPanel.-warning { border: round $warning; }
    QuestionPanel.-accent { border: round $accent; }
    QuestionPanel.-tiny { border: none; }
    QuestionPanel .body { height: auto; margin: 0; }
    QuestionPanel Input { height: 1; border: none; background: $surface; padding: 0 1; display: none; }
    QuestionPanel Input:focus { border: none; }
    QuestionPanel.-feedback Input { display: block; }
    QuestionPanel TextArea {
        height: auto; border: none; padding: 0; background: $surface; display: none; scrollbar-size-vertical: 1;
    }
    QuestionPanel TextArea:focus { border: none; }
    QuestionPanel.-editing TextArea { display: block; }
    QuestionPanel.-editing .body { display: none; }
    QuestionPanel.-editing More { max-height: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"row({n})", f"Row {n}", show=False) for n in range(1, 10)),
        Binding("y", "answer('y')", "Yes", show=False, id="allow"),
        Binding("a", "answer('a')", "Always", show=False, id="always"),
        Binding("n", "answer('n')", "No", show=False, id="deny"),
        Binding("f", "answer('f')", "No, and say why", show=False, id="feedback"),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("enter", "choose", "Choose", show=False),
        Binding("space", "mark", "Mark", show=False),
        Binding("pageup", "page(-1)", "Scroll up", show=False),
        Binding("pagedown", "page(1)", "Scroll down", show=False),
        Binding("home", "edge(False)", "Scroll to the beginning", show=False),
        Binding("end", "edge(True)", "Scroll to the end", show=False),
        Binding("escape", "escape", "Interrupt", show=False),
        Binding("tab", "prompt", "To the prompt", show=False),
        Binding("ctrl+g", "editor", "Change a plan in $EDITOR", show=False, id="editor"),
    ]

    def __init__(
        self,
        answering: Answering,
        guard: TypingGuard,
        typed: TakesTyped,
        reply: Callable[[Reply], None],
        edit: Callable[[str, str], Awaitable[str | None]],
    ) -> None:
        super().__init__(classes=f"-{COLORS.get(answering.ask.kind, 'primary')}")
        self.answering, self.ask = answering, answering.ask
        self.guard = guard
        self._typed, self._reply, self._edit = typed, reply, edit
        plan = self.ask.kind == "plan"
        self._header = Header(answering, plural(lines_in(self.ask.body), "line") if plan else self.ask.subject)
        self._call = self._body = body_of(self.ask)
        self._rules = Body("")
        self._rules.display = False
        self._more = More(self._body)
        self._body_rows = PLAN_ROWS if plan else BODY_ROWS
        self._choices = Choices(answering, self.clicked)
        self._whole = self._done = False
        self._letters = ""
        """What was typed and may be the beginning of words."""
        self._pending = ""
        """The action of the last of them, where it answers."""
        self._lone = LoneKey(guard.clock, lambda seconds, then: self.set_timer(seconds, then))
        self._cursor_before = 0

    @property
    def choices(self) -> Sequence[AskChoice]:
        return self._choices.choices

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._rules
        yield self._body
        if self.ask.kind == "plan":
            # What the model wrote may drive no terminal here either; a plan left as it is goes back as it came.
            yield TextArea(spelled(self.ask.body), show_line_numbers=False, tab_behavior="focus")
        yield self._more
        yield self._choices
        yield WholeInput()

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
        for body in (self._body, self._rules):
            self.watch(body, "scroll_y", self._look, init=False)
        self._arrange(self.screen.size.height)
        self._say_the_way()
        self.guard.appeared()
        # Counted anew from when it is drawn: a busy screen shows it later.
        self.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        self.guard.appeared()
        # What else is on the screen has its height only now.
        self._arrange(self.screen.size.height)
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        """Notes when the end of the text is on the screen."""
        if not self._whole and self._body.below <= 0:
            self._whole = True
            self._header.tell("")

    @property
    def writing(self) -> bool:
        return self.has_class("-feedback") or self.has_class("-editing")

    async def on_key(self, event: events.Key) -> None:
        """Keys are taken here and now: those that came along with an answer are no answer to the next question. A
        letter answers when nothing follows it."""
        if self.writing:
            self._written_key(event)
            return
        action = None if event.key in UNGUARDED else self._action_of(event.key)
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

    def _action_of(self, key: str) -> str | None:
        """What a key does: the row that it names, where nothing else has the key."""
        action = action_of(self, key)
        if action == "mark":
            return action if self.ask.fields or self.ask.several else None
        if (action is None or action.startswith("move(")) and any(row.key == key for row in self.choices):
            return f"answer('{key}')"
        return action

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
        if self.has_class("-editing"):
            return
        line = self.query_one(WholeInput)
        if event.is_printable and event.character and not line.has_focus:
            event.stop()
            event.prevent_default()
            line.insert_text_at_cursor(event.character)

    async def on_paste(self, event: events.Paste) -> None:
        """A paste is never an answer. Where a key is asked for it is one, and goes where nobody can read it."""
        if self.has_class("-editing"):
            return
        event.stop()
        event.prevent_default()
        secret = next((row for row in self.choices if row.way is not None and row.way.secret), None)
        if secret is None:
            self.give_letters()
            self._typed(event.text, True)
            return
        if not self.writing:
            self._choose(secret)
        self.query_one(WholeInput).take(event.text)

    def clicked(self, choice: AskChoice) -> None:
        """A click on a choice; one that was aimed at what stood there before is none."""
        if not self.guard.accidental():
            self._take_back()
            self._choose(choice)

    def _arrange(self, height: int) -> None:
        """The choices are always to be seen; the text takes what is left and scrolls."""
        short, tiny = height < SHORT, height < TINY
        self.set_class(tiny, "-tiny")
        # Nothing has a width before it is laid out; the first frame shows it as it will be.
        width = self.content_region.width or self.screen.size.width - (2 if tiny else 4)
        self._body.wrap(self._body.scrollable_content_region.width or width)
        self._header.set_height(1 if tiny else self._header.fit(width, SHORT_REASON if short else REASON))
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
        for area in self.query(TextArea):
            area.styles.height = max(1, shown) + self._choices.line_count

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
        self._look()
        self._take(self.here, self.answering.enter(self.here, self._whole))

    def action_mark(self) -> None:
        self._take(self.here, self.answering.toggle(self.here))

    def action_answer(self, key: str) -> None:
        for choice in self.choices:
            if choice.key == key:
                self._choose(choice)
                return

    def action_row(self, number: int) -> None:
        """The choice in that row, counted from 1, as long as rows are shown."""
        if not self._choices.short and number <= len(self.choices):
            self._choose(self.choices[number - 1])

    def _choose(self, row: AskChoice) -> None:
        self._look()
        self.answering.at = self.choices.index(row)
        self._take(row, self.answering.choose(row, self._whole))

    def _take(self, row: AskChoice, came: Reply | Step) -> None:
        """What came of a choice."""
        match came:
            case Reply():
                self._answer(came)
            case "words":
                self._ask_for_words()
            case "edit":
                self.add_class("-editing")
                self._choices.display = False
                self._header.tell_beside("change it · Esc when done · Ctrl+G in $EDITOR")
                self.query_one(TextArea).focus()
            case "step":
                self._show_step()
            case "unseen":
                self._header.tell(f"{self._unseen}; {row.key} again allows")
                self.guard.appeared()  # a key that is held, or pressed twice at once, has not read that
            case "stay":
                self._show_rows()

    @property
    def _unseen(self) -> str:
        """What was not seen to its end, and how it can be."""
        if not self.answering.call_unseen:
            return "PgDn shows the rest" if self._body.size.height else "No room to show it"
        return "End of the call not seen" if self._whole else "Ends of both not seen"

    def _show_step(self) -> None:
        """Shows the rules that are to be confirmed, or again what is asked; whoever answers has to have seen it."""
        adds = self.answering.offer is not None
        if adds:
            self._rules.set_text(self.answering.body)
        self._body.display = False
        self._body = self._rules if adds else self._call
        self._body.display = True
        self._more.follow(self._body)
        self._body.scroll_to(y=0, animate=False, force=True)
        self._whole = False
        self._header.tell("")
        self._show_rows()
        self.guard.appeared()
        self.call_after_refresh(self._drawn)

    def _show_rows(self) -> None:
        """Shows the rows as they are now, and what is wrong."""
        if self.ask.kind == "server":
            self._header.tell_beside(self.answering.problem or self.ask.subject)
        if self.answering.writing is None and self.has_class("-feedback"):
            self.remove_class("-feedback")
            self.focus()
        at = self._choices.cursor if self.ask.kind == "choice" else self.answering.at
        self._choices.choices = self.answering.rows
        self._to(min(at, len(self.choices) - 1))

    def _ask_for_words(self) -> None:
        row, line = self.answering.writing, self.query_one(WholeInput)
        if self.ask.kind == "server":
            self._header.tell_beside(self.answering.problem or self.ask.subject)
        if row is None or self.has_class("-feedback"):
            return
        wants, value, does = self.ask.words_for, "", "Enter send"
        if (each := row.field) is not None:
            wants = " · ".join(filter(None, [spelled(each.title, line=True), each.wants]))
            value, does = each.written(self.answering.values.get(each.name)), "Enter keeps it"
        elif row.way is not None:
            wants, does = row.way.asks, "Enter use it"
        line.placeholder = f"{wants} · {does} · Esc back"
        line.password = row.way is not None and row.way.secret
        line.value = value
        self._to(self.choices.index(row))
        self.add_class("-feedback")
        line.focus()

    @on(Input.Submitted)
    def _say(self, event: Input.Submitted) -> None:
        event.stop()
        row = self.answering.writing
        if row is not None:
            self._take(row, self.answering.say(event.value))

    async def action_editor(self) -> None:
        if self.ask.kind != "plan":
            return
        area = self.query_one(TextArea)
        changed = await self._edit(area.text, "plan.md")
        if changed is not None and self.is_attached:
            area.text = changed
            self.add_class("-editing")
            self.action_escape()

    def _end_editing(self) -> None:
        area, answering = self.query_one(TextArea), self.answering
        if answering.edited(area.text):
            self._body.set_text(answering.plan)
            changed = answering.plan != self.ask.body
            self._header.tell_beside("changed by you" if changed else plural(lines_in(answering.plan), "line"))
        else:
            area.text = spelled(answering.plan)
            self._header.tell_beside("empty, so unchanged")
        self.remove_class("-editing")
        self._choices.display = True
        self._arrange(self.screen.size.height)
        self.focus()

    def action_escape(self) -> None:
        if self._letters:
            self._take_back()
        elif self.has_class("-editing"):
            self._end_editing()
        elif (reply := self.answering.leave()) is None:
            if self.ask.kind == "permission" and not self.has_class("-feedback"):
                self._show_step()
            else:
                self._show_rows()
        elif self.ask.kind == "permission":
            self.app.call_later(self.app.run_action, "interrupt")  # which declines, and ends the turn
        else:
            self._answer(reply)

    def decline(self) -> None:
        self._answer(Reply())

    @property
    def here(self) -> AskChoice:
        return self.choices[self._choices.cursor]

    def problem(self, text: str) -> None:
        """Says why an answer could not be taken; empty: it is being tried."""
        self._body.set_text("\n".join(filter(None, [self.ask.body, text])))
        self._arrange(self.screen.size.height)

    def _answer(self, reply: Reply) -> None:
        """A stop can be answered again: it waits until that could be done."""
        if not self._done:
            self._done = self.ask.kind != "stop"
            self._reply(reply)
