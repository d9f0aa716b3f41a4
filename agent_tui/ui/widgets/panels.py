"""The questions above the prompt: a risky call to be allowed, a plan to be approved, a question of the model's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from agent_tui.commands.questions import (
    PLAN_CHOICES,
    PROJECT_KEYS,
    SESSION_KEYS,
    PermissionAnswer,
    PermissionChoice,
    PermissionDialog,
    PlanChoice,
    question_text,
)
from agent_tui.commands.tool_words import about_a_path
from agent_tui.models.events import ApprovedMode, PermissionAsked, PlanPresented, QuestionAsked, StopAsked, Way
from agent_tui.records import dataclass
from agent_tui.text.cells import shorten, shorten_path, whole_parts
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import lines_changed, lines_in, plural
from agent_tui.ui.keys import TypingGuard
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.bodies import Body, DiffBody, pieces_of
from agent_tui.ui.widgets.drawn_lines import Lines
from agent_tui.ui.widgets.question import ChoiceRow, Choices, QuestionPanel, TakesTyped, Title, WholeInput

MAX_COMPARED = 100_000
PARTS = " · "
"""What stands between the parts of a reason."""
REASON, SHORT_REASON = 3, 2
"""Lines of the reason that are shown, and on low screens."""
PERMISSION_WORDS = {"y": "yes", "a": "always", "s": "session", "n": "no", "f": "no, because…"}
SHORT_RULE = 18
"""Cells of a rule that tells answers apart where several are remembered."""


class _PermissionHeader(Lines):
    def __init__(self, asked: PermissionAsked) -> None:
        super().__init__(height=1)
        self.asked = asked
        self._instead = self._confirms = ""
        self._reason: list[str] = []

    def fit(self, width: int, most: int) -> int:
        """Wraps the reason into at most so many lines, the last for where the call would run. Returns the lines of
        all."""
        reason = "" if self._confirms else spelled(self.asked.reason, line=True)
        self._reason = _at_most(reason, width, most) if reason else []
        head, between, tail = reason.rpartition(PARTS)
        if len(self._reason) > 1 and between:
            self._reason = [*_at_most(head, width, most - 1), shorten(tail, width)]
        return 1 + len(self._reason)

    def tell(self, words: str) -> None:
        """Words that stand where the question does, until there are none."""
        self._instead = words
        self.refresh()

    def confirm(self, title: str) -> None:
        """The question of the second step; empty for that of the first."""
        self._confirms, self._instead = title, ""

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y:
            return [(self._reason[y - 1], paint("muted"))] if y <= len(self._reason) else []
        if title := self._instead or self._confirms:
            return [(shorten(title, width), paint("warning", bold=True))]
        what = f"Allow {shorten(spelled(self.asked.tool, line=True), 40)}?"
        return [
            (what, paint("warning", bold=True)),
            ("  " + self._subject(max(0, width - len(what) - 2)), paint("foreground")),
        ]

    def _subject(self, width: int) -> str:
        """What the tool would work on, in at most ``width`` cells; nothing where the body says it word by word."""
        display = self.asked.display or {}
        summary = self.asked.summary.removeprefix(f"{self.asked.tool} ")
        subject = spelled(summary, line=True)
        if display.get("kind") == "diff":
            added, removed = display.get("added"), display.get("removed")
            known = f"  {lines_changed(added, removed)}" if isinstance(added, int) and isinstance(removed, int) else ""
            room = width - len(known)
            return (shorten_path if about_a_path(self.asked.tool) else shorten)(subject, room) + known
        body = " ".join(str(display.get("text") or "")[:MAX_COMPARED].split())
        same = " ".join(summary.split()).rstrip("…") in body
        return "" if display.get("kind") == "command" and same else shorten(subject, width)


def _at_most(text: str, width: int, most: int) -> list[str]:
    pieces = pieces_of(text, width)
    return pieces if len(pieces) <= most else [*pieces[: most - 1], shorten("".join(pieces[most - 1 :]), width)]


def _words(choices: Sequence[PermissionChoice]) -> dict[str, str]:
    """A word or two for each answer."""
    words = dict(PERMISSION_WORDS)
    for lasts in ("project", "session"):
        offers = [(choice.key, choice.offer) for choice in choices if choice.offer and choice.offer.lasts == lasts]
        if len(offers) > 1:
            words |= {key: shorten(spelled(offer.rules[0], line=True), SHORT_RULE) for key, offer in offers}
    return words


class PermissionPanel(QuestionPanel[PermissionAsked]):
    """Asks for one call, and in a second step for the rules that are added. What does not fit is allowed when its end
    was seen, or with a second press of the key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('y')", "Yes", show=False, id="allow"),
        Binding("a", "answer('a')", "Always", show=False, id="always"),
        *(Binding(key, f"answer('{key}')", "Always", show=False) for key in PROJECT_KEYS[1:]),
        *(Binding(key, f"answer('{key}')", "This session", show=False) for key in SESSION_KEYS),
        Binding("n", "answer('n')", "No", show=False, id="deny"),
        Binding("f", "answer('f')", "No, and say why", show=False, id="feedback"),
    ]

    def __init__(
        self,
        asked: PermissionAsked,
        guard: TypingGuard,
        typed: TakesTyped,
        answer: Callable[[PermissionAsked, PermissionAnswer], None],
    ) -> None:
        display = asked.display or {}
        text = str(display.get("text") or "")
        self._question = _PermissionHeader(asked)
        self._dialog = PermissionDialog(asked)
        self._rules = Body("")
        self._rules.display = False
        choices = self._dialog.choices
        super().__init__(
            asked,
            guard,
            typed,
            self._question,
            DiffBody(text, str(display.get("path") or "")) if display.get("kind") == "diff" else Body(text),
            Choices(choices, _words(choices)),
            "What to do instead · Enter send · Esc back",
        )
        self._tell = answer
        self._call = self._body
        self._whole = False

    def compose(self) -> ComposeResult:
        header, *rest = super().compose()
        yield header
        yield self._rules
        yield from rest

    def on_mount(self) -> None:
        for body in (self._body, self._rules):
            self.watch(body, "scroll_y", self._look, init=False)

    def _drawn(self) -> None:
        super()._drawn()
        self.call_after_refresh(self._look)

    def _header_rows(self, width: int, short: bool) -> int:
        return self._question.fit(width, SHORT_REASON if short else REASON)

    def _look(self) -> None:
        """Notes when the end of the text is on the screen."""
        if not self._whole and self._body.below <= 0:
            self._whole = True
            self._question.tell("")

    def choose(self, choice: ChoiceRow) -> None:
        assert isinstance(choice, PermissionChoice)
        self._look()
        if choice.feedback:
            self.ask_for_words(choice)
            return
        before = self._dialog.offer
        if answer := self._dialog.choose(choice, self._whole):
            self._answer(answer)
        elif self._dialog.warned(choice):
            self._question.tell(f"{self._unseen}; {choice.key} again allows")
            self.guard.appeared()  # a key that is held, or pressed twice at once, has not read that
        elif self._dialog.offer != before:
            self._show_step()

    @property
    def _unseen(self) -> str:
        """What was not seen to its end, and how it can be."""
        if not self._dialog.call_unseen:
            return "PgDn shows the rest" if self._body.size.height else "No room to show it"
        return "End of the call not seen" if self._whole else "Ends of both not seen"

    def _show_step(self) -> None:
        """Shows the rules that are to be confirmed, or again what is asked; whoever answers has to have seen it."""
        adds = self._dialog.offer is not None
        if adds:
            self._rules.set_text(self._dialog.text)
        self._question.confirm(self._dialog.title if adds else "")
        self.show_body(self._rules if adds else self._call)
        self._body.scroll_to(y=0, animate=False, force=True)
        self._whole = False
        self._choices.choices = self._dialog.choices
        self._to(0)
        self.guard.appeared()
        self.call_after_refresh(self._drawn)

    def action_escape(self) -> None:
        if not self._letters and self._dialog.back():
            self._show_step()
        else:
            super().action_escape()

    def decline(self) -> None:
        self._answer(PermissionAnswer(False))

    def say(self, words: str) -> None:
        self._answer(PermissionAnswer(False, feedback=words))

    def _answer(self, answer: PermissionAnswer) -> None:
        if self.first_answer():
            self._tell(self.asked, answer)


PLAN_ROWS = 30


PLAN_WORDS = {"y": "yes", "e": "edits", "a": "auto", "c": "change", "f": "no, because…", "n": "no"}


def _plan_color(line: str) -> str:
    return "accent" if line.startswith("#") else "muted" if line.startswith(("```", ">")) else "foreground"


class PlanPanel(QuestionPanel[PlanPresented]):
    """Asks about one plan, which is the model's text, drawn and never interpreted."""

    DEFAULT_CSS = """
    PlanPanel { border: round $accent; }
    PlanPanel TextArea {
        height: auto; border: none; padding: 0; background: $surface; display: none; scrollbar-size-vertical: 1;
    }
    PlanPanel TextArea:focus { border: none; }
    PlanPanel.-editing TextArea { display: block; }
    PlanPanel.-editing .body { display: none; }
    PlanPanel.-editing More { max-height: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g", "editor", "Change it in $EDITOR", show=False, id="editor"),
        *(Binding(choice.key, f"answer('{choice.key}')", choice.label, show=False) for choice in PLAN_CHOICES),
    ]

    def __init__(
        self,
        asked: PlanPresented,
        guard: TypingGuard,
        typed: TakesTyped,
        answer: Callable[[PlanPresented, ApprovedMode | None, str, str], None],
        edit: Callable[[str, str], Awaitable[str | None]],
    ) -> None:
        self._plan = asked.plan
        self._tell = answer
        self._edit = edit
        self._title = Title("Carry out this plan?", plural(lines_in(asked.plan), "line"))
        super().__init__(
            asked,
            guard,
            typed,
            self._title,
            Body(asked.plan, _plan_color),
            Choices(PLAN_CHOICES, PLAN_WORDS),
            "What to plan instead · Enter send · Esc back",
            body_rows=PLAN_ROWS,
        )

    def compose(self) -> ComposeResult:
        header, body, *rest = super().compose()
        yield header
        yield body
        # What the model wrote may drive no terminal here either; a plan left as it is goes back as it came.
        yield TextArea(spelled(self._plan), show_line_numbers=False, tab_behavior="focus")
        yield from rest

    @property
    def writing(self) -> bool:
        return super().writing or self.has_class("-editing")

    def _written_key(self, event: events.Key) -> None:
        if not self.has_class("-editing"):
            super()._written_key(event)

    def _arrange(self, height: int) -> None:
        super()._arrange(height)
        room = self._body.styles.height
        rows = int(room.value) if room is not None else 1
        self.query_one(TextArea).styles.height = rows + self._choices.line_count

    async def on_paste(self, event: events.Paste) -> None:
        if not self.has_class("-editing"):
            await super().on_paste(event)

    async def action_editor(self) -> None:
        area = self.query_one(TextArea)
        changed = await self._edit(area.text, "plan.md")
        if changed is not None and self.is_attached:
            area.text = changed
            self.add_class("-editing")
            self.action_escape()

    def choose(self, choice: ChoiceRow) -> None:
        assert isinstance(choice, PlanChoice)
        if choice.edit:
            self.add_class("-editing")
            self._choices.display = False
            self._title.tell("change it · Esc when done · Ctrl+G in $EDITOR")
            self.query_one(TextArea).focus()
        elif choice.feedback:
            self.ask_for_words(choice)
        else:
            self._answer(choice.mode, "")

    def say(self, words: str) -> None:
        self._answer(None, words)

    def action_escape(self) -> None:
        if not self.has_class("-editing"):
            super().action_escape()
            return
        area = self.query_one(TextArea)
        if area.text.strip():
            if area.text != spelled(self._plan):
                self._plan = area.text
                self._body.set_text(self._plan)
            changed = self._plan != self.asked.plan
            self._title.tell("changed by you" if changed else plural(lines_in(self._plan), "line"))
        else:
            area.text = spelled(self._plan)
            self._title.tell("empty, so unchanged")
        self.remove_class("-editing")
        self._choices.display = True
        self._arrange(self.screen.size.height)
        self.focus()

    def left(self) -> None:
        """Escape declines without a word: the turn ends, and the user says what they want."""
        self._answer(None, "")

    def _answer(self, mode: ApprovedMode | None, feedback: str) -> None:
        if self.first_answer():
            self._tell(self.asked, mode, self._plan, feedback)


@dataclass(slots=True, frozen=True)
class AskChoice:
    """``choice`` is what the model gave, empty for the rows that are ours; ``done`` sends what was chosen."""

    key: str
    label: str
    choice: str = ""
    feedback: bool = False
    done: bool = False


def choices_for(asked: QuestionAsked) -> list[AskChoice]:
    rows = [AskChoice(str(n), spelled(text, line=True), text) for n, text in enumerate(asked.choices, 1)]
    if asked.several:
        rows.append(AskChoice("s", "Send the marked answers", done=True))
    return [*rows, AskChoice("o", "Other words…", feedback=True)]


class AskPanel(QuestionPanel[QuestionAsked]):
    """Puts one question; the model's words are drawn and never interpreted."""

    DEFAULT_CSS = """
    AskPanel { border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Choose one of several", show=False),
        Binding("s", "answer('s')", "Send", show=False),
        Binding("o", "answer('o')", "Other words", show=False),
    ]

    def __init__(
        self,
        asked: QuestionAsked,
        guard: TypingGuard,
        typed: TakesTyped,
        answer: Callable[[QuestionAsked, tuple[str, ...], str], None],
    ) -> None:
        self._chosen: set[str] = set()
        self._tell = answer
        keys = "Space marks, Enter sends" if asked.several else "Enter or a number"
        super().__init__(
            asked,
            guard,
            typed,
            Title("The model asks", f"{keys} · Esc declines", whole_parts),
            Body(question_text(asked)),
            Choices(choices_for(asked), {}, self._mark),
            "In your own words · Enter send · Esc back",
        )

    def _mark(self, choice: ChoiceRow) -> str:
        if not self.asked.several or not isinstance(choice, AskChoice) or not choice.choice:
            return ""
        return "[x] " if choice.choice in self._chosen else "[ ] "

    def choose(self, choice: ChoiceRow) -> None:
        assert isinstance(choice, AskChoice)
        if choice.feedback:
            self.ask_for_words(choice)
        elif choice.done:
            self.say("")
        elif self.asked.several:
            self._toggle(choice)
        else:
            self._answer((choice.choice,), "")

    def action_choose(self) -> None:
        """Enter sends; where several may be chosen and none is yet, it takes the row it stands on."""
        if self._markable is not None:
            self._chosen = self._chosen or {self._markable.choice}
            self.say("")
        else:
            self.choose(self.here)

    def action_mark(self) -> None:
        if self._markable is not None:
            self._toggle(self._markable)

    @property
    def _markable(self) -> AskChoice | None:
        """The choice under the cursor, where several may be chosen and it is one of them."""
        here = self.here
        return here if self.asked.several and isinstance(here, AskChoice) and here.choice else None

    def _toggle(self, choice: AskChoice) -> None:
        self._chosen ^= {choice.choice}
        self._to(self._choices.cursor)

    def say(self, words: str) -> None:
        chosen = tuple(choice for choice in self.asked.choices if choice in self._chosen)
        if words or chosen:
            self._answer(chosen, words)

    def left(self) -> None:
        """Escape declines; the model goes on without an answer."""
        self._answer((), "")

    def _answer(self, chosen: tuple[str, ...], text: str) -> None:
        if self.first_answer():
            self._tell(self.asked, chosen, text)


class StopPanel(QuestionPanel[StopAsked]):
    """Asks what to do about what stopped the turn. ``answer`` takes the way, and what was written for it."""

    DEFAULT_CSS = """
    StopPanel { border: round $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"answer('{key}')", f"Choose {key}", show=False) for key in "yokstcdmn"
    ]

    def __init__(
        self,
        asked: StopAsked,
        guard: TypingGuard,
        typed: TakesTyped,
        answer: Callable[[StopAsked, Way | None, str], None],
    ) -> None:
        what, _, self._words = spelled(asked.question, line=True).partition(": ")
        super().__init__(
            asked, guard, typed, Title(what, ""), Body(self._words, self._color), Choices(asked.ways, {}), ""
        )
        self._tell = answer

    def _color(self, line: str) -> str:
        return "foreground" if line == self._words else "error"

    def choose(self, choice: ChoiceRow) -> None:
        assert isinstance(choice, Way)
        if not choice.feedback:
            self._tell(self.asked, choice, "")
            return
        line = self.query_one(WholeInput)
        line.placeholder, line.password, line.value = f"{choice.asks} · Enter use it · Esc back", choice.secret, ""
        self.ask_for_words(choice)

    async def on_paste(self, event: events.Paste) -> None:
        """Where a key is asked for, what is pasted is one, and goes where nobody can read it."""
        way = next((way for way in self.asked.ways if way.secret), None)
        if way is None:
            return
        event.stop()
        event.prevent_default()
        if not self.writing:
            self.choose(way)
        self.query_one(WholeInput).take(event.text)

    def say(self, words: str) -> None:
        here = self.here
        assert isinstance(here, Way)
        if words:
            self._tell(self.asked, here, words)
        else:
            self.action_escape()

    def problem(self, text: str) -> None:
        """Says why an answer could not be taken; empty: it is being tried."""
        self._body.set_text("\n".join(filter(None, [self._words, text])))
        self._arrange(self.screen.size.height)

    def left(self) -> None:
        """Escape leaves it as it is."""
        self._tell(self.asked, None, "")
