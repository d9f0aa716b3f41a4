"""Questions as numbered choices: the agent's, and those of the program's own lists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from agent_tui.commands.questions import (
    PLAN_CHOICES,
    PermissionChoice,
    PlanChoice,
    permission_choices,
    question_text,
)
from agent_tui.models.events import PermissionAsked, PlanPresented, QuestionAsked
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.models.questions import ApprovedMode
    from agent_tui.plain.voice import Voice

Taken: TypeAlias = Literal["answered", "again", "other"]
"""What a line was to a question: its answer, something that leaves it open, or nothing that concerns it."""

BODY_LINES = 120
"""Lines of a diff or a plan that are told at once; the rest on demand."""
PART = 20
"""Rows of a long list that are told at once."""
WORDS = {"yes": "y", "no": "n"}


class Question:
    """One open question. ``give_up`` is called where nobody can answer it any more."""

    def __init__(self, request_id: str, voice: Voice) -> None:
        self.request_id = request_id
        self.voice = voice

    prompt = ""

    def put(self) -> None:
        """Says it."""
        raise NotImplementedError

    def take(self, line: str) -> Taken:
        """A line was typed."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Answers as somebody who says nothing."""
        raise NotImplementedError


@dataclass(slots=True, frozen=True)
class Row:
    """A numbered choice; ``key`` answers as well."""

    label: str
    key: str = ""


class Numbered(Question):
    """Choices by number, by key, or yes and no; one of them may ask for words first."""

    def __init__(self, request_id: str, voice: Voice, rows: Sequence[Row], words_prompt: str = "") -> None:
        super().__init__(request_id, voice)
        self.rows = rows
        self._words_prompt = words_prompt
        self._writing = False
        self._all_said = False

    @property
    def _long(self) -> bool:
        """Whether the text above the choices is said in two parts."""
        return self.body().count("\n") >= BODY_LINES

    @property
    def unsaid(self) -> bool:
        """Whether the second of them was not said."""
        return self._long and not self._all_said

    @property
    def prompt(self) -> str:  # type: ignore[override]
        if self._writing:
            return f"{self._words_prompt}, an empty line goes back: "
        return f"Answer, 1 to {len(self.rows)}: " if len(self.rows) > 1 else "Answer, 1: "

    def body(self) -> str:
        """The text above the choices."""
        return ""

    def say_rows(self, begin: int = 0, end: int | None = None) -> None:
        for number, row in enumerate(self.rows[begin:end], begin + 1):
            self.voice.quote(f"{number}. {spelled(row.label, line=True)}")

    def put(self) -> None:
        self.voice.quote(_beginning(self.body()), indent="  ") if self.body() else None
        self.say_rows()

    def take(self, line: str) -> Taken:
        text = line.strip()
        if self._writing:
            self._writing = False
            if text:
                self.words(text)
            return "answered" if text else "again"
        if not text:
            return "again"
        if text.lower() == "m" and self._long:
            self._all_said = True
            self.voice.quote("\n".join(self.body().split("\n")[BODY_LINES:]), indent="  ")
            return "again"
        at = self._row(text.lower())
        if at is None:
            return self.no_row(text)
        return self.choose(at)

    def _row(self, text: str) -> int | None:
        if text.isdecimal() and len(text) < 6 and 1 <= int(text) <= len(self.rows):
            return int(text) - 1
        key = WORDS.get(text, text)
        return next((at for at, row in enumerate(self.rows) if row.key and row.key == key), None)

    def no_row(self, text: str) -> Taken:
        """Something was typed that names no choice."""
        if text.rstrip(".").isdecimal():
            self.voice.say(f"There is no choice {text}.")
            return "again"
        return "other"

    def ask_for_words(self) -> Taken:
        self._writing = True
        return "again"

    def choose(self, at: int) -> Taken:
        """A row was chosen."""
        raise NotImplementedError

    def words(self, text: str) -> None:
        """What was written instead of choosing."""
        raise NotImplementedError


def _beginning(body: str) -> str:
    lines = body.split("\n")
    if len(lines) <= BODY_LINES:
        return body
    more = plural(len(lines) - BODY_LINES, "more line", "more lines")
    return "\n".join([*lines[:BODY_LINES], f"… {more}: m says them"])


class PermissionQuestion(Numbered):
    """May this call be made? What was not said to its end is allowed by the second of two equal answers."""

    def __init__(self, asked: PermissionAsked, voice: Voice, answer: Callable[[bool, str | None, str], None]) -> None:
        self._choices: list[PermissionChoice] = permission_choices(asked)
        super().__init__(
            asked.request_id, voice, [Row(c.label, c.key) for c in self._choices], "Say what to do instead"
        )
        self._asked = asked
        self._answer = answer
        self._warned: int | None = None

    def body(self) -> str:
        display = self._asked.display or {}
        return spelled(str(display.get("text") or "")).expandtabs(4).rstrip("\n")

    def put(self) -> None:
        asked = self._asked
        subject = asked.summary.removeprefix(f"{asked.tool} ")
        self.voice.quote(spelled(f"{asked.tool} {subject}", line=True), "Permission needed")
        if asked.reason:
            self.voice.quote(spelled(asked.reason, line=True), "Reason")
        what = {"diff": "The change", "command": "The command"}.get(str((asked.display or {}).get("kind")), "The whole")
        if self.body():
            self.voice.say(f"{what}, {plural(self.body().count(chr(10)) + 1, 'line')}:")
        super().put()

    def choose(self, at: int) -> Taken:
        choice = self._choices[at]
        if choice.feedback:
            return self.ask_for_words()
        if choice.allow and self.unsaid and at != self._warned:
            self._warned = at
            self.voice.say(f"its end was not said: m says it, {choice.key or at + 1} again allows.", "Note")
            return "again"
        self._answer(choice.allow, choice.pattern, "")
        return "answered"

    def words(self, text: str) -> None:
        self._answer(False, None, text)

    def give_up(self) -> None:
        self._answer(False, None, "")


class PlanQuestion(Numbered):
    """Is the plan to be carried out? ``edit`` lets the user change it and calls back with what became of it."""

    def __init__(
        self,
        asked: PlanPresented,
        voice: Voice,
        answer: Callable[[ApprovedMode | None, str, str], None],
        edit: Callable[[str, Callable[[str], None]], None],
    ) -> None:
        self._choices: Sequence[PlanChoice] = PLAN_CHOICES
        super().__init__(
            asked.request_id, voice, [Row(c.label, c.key) for c in PLAN_CHOICES], "Say what to plan instead"
        )
        self._plan = asked.plan
        self._answer = answer
        self._edit = edit

    def body(self) -> str:
        return spelled(self._plan).rstrip("\n")

    def put(self) -> None:
        self.voice.say(f"the model has finished its plan, {plural(self.body().count(chr(10)) + 1, 'line')}:", "Plan")
        super().put()

    def choose(self, at: int) -> Taken:
        choice = self._choices[at]
        if choice.feedback:
            return self.ask_for_words()
        if choice.edit:
            self._edit(self._plan, self._changed)
            return "again"
        self._answer(choice.mode, self._plan, "")
        return "answered"

    def _changed(self, plan: str) -> None:
        if plan.strip():
            self._plan = plan
        self.put()

    def words(self, text: str) -> None:
        self._answer(None, self._plan, text)

    def give_up(self) -> None:
        self._answer(None, self._plan, "")


class AskQuestion(Numbered):
    """What the model asks. A line that is no number is an answer in other words."""

    DECLINE = "Decline to answer"

    def __init__(self, asked: QuestionAsked, voice: Voice, answer: Callable[[Sequence[str], str], None]) -> None:
        super().__init__(asked.request_id, voice, [*(Row(c) for c in asked.choices), Row(self.DECLINE)])
        self._asked = asked
        self._answer = answer

    @property
    def prompt(self) -> str:  # type: ignore[override]
        several = ", or several such as 1,3" if self._asked.several else ""
        return f"Answer, 1 to {len(self.rows)}{several}, or in your own words: "

    def put(self) -> None:
        self.voice.quote(spelled(question_text(self._asked)), "Question")
        self.say_rows()

    def choose(self, at: int) -> Taken:
        chosen = self._asked.choices[at : at + 1]
        self._answer(chosen, "")
        return "answered"

    def no_row(self, text: str) -> Taken:
        numbers = text.replace(",", " ").split()
        if not all(number.isdecimal() and len(number) < 6 for number in numbers):
            self._answer((), text)
            return "answered"
        wanted = sorted({int(number) for number in numbers})
        if not self._asked.several or not 1 <= wanted[0] <= wanted[-1] <= len(self._asked.choices):
            self.voice.say(f"There is no choice {text}.")
            return "again"
        self._answer(tuple(self._asked.choices[number - 1] for number in wanted), "")
        return "answered"

    def give_up(self) -> None:
        self._answer((), "")


class Pick(Numbered):
    """One of the program's own lists: ``answer`` becomes the number of the row, from 0, or None for none. A long one is
    said in parts; every number can be typed at any time."""

    def __init__(self, request_id: str, voice: Voice, title: str, rows: Sequence[Row]) -> None:
        super().__init__(request_id, voice, rows)
        self._title = title
        self._said = 0
        self.answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    @property
    def prompt(self) -> str:  # type: ignore[override]
        more = ", m says more" if self._said < len(self.rows) else ""
        return f"Number, 1 to {len(self.rows)}{more}; an empty line leaves it: "

    def put(self) -> None:
        self._said = 0
        self.voice.say(self._title)
        self._say_part()

    def _say_part(self) -> None:
        begin, self._said = self._said, min(self._said + PART, len(self.rows))
        self.say_rows(begin, self._said)
        if rest := len(self.rows) - self._said:
            self.voice.say(f"… {plural(rest, 'more row', 'more rows')}: m says them")

    def take(self, line: str) -> Taken:
        if not line.strip():
            self.give_up()
            return "answered"
        if line.strip().lower() == "m" and self._said < len(self.rows):
            self._say_part()
            return "again"
        return super().take(line)

    def choose(self, at: int) -> Taken:
        if not self.answer.done():
            self.answer.set_result(at)
        return "answered"

    def give_up(self) -> None:
        if not self.answer.done():
            self.answer.set_result(None)
