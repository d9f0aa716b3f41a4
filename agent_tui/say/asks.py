"""The one question: what it asks, and the answers it can get, whole sentences. Every face draws this value."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.models.events import (
    ApprovedMode,
    PermissionAsked,
    PlanPresented,
    QuestionAsked,
    RuleOffer,
    ServerAction,
    ServerAsked,
    StopAsked,
    Way,
)
from agent_tui.models.forms import FormField
from agent_tui.models.messages import new_id
from agent_tui.records import dataclass
from agent_tui.say.rules import rule_sentence
from agent_tui.text.cells import shorten
from agent_tui.text.clean import spelled

AskKind = Literal["permission", "plan", "choice", "server", "stop"]
BodyKind = Literal["text", "command", "diff", "plan"]
AskRole = Literal["yes", "rule", "no", "words", "edit", "mark", "send", "field", "value", "back", "way"]
"""What choosing does: ``yes`` and ``no`` answer; ``rule`` leads to the step that adds rules, ``back`` out of it;
``words`` are written first; ``mark`` is one of the model's choices, ``send`` sends those that are marked; ``field`` is
one of a form, ``value`` one that such a field takes; ``way`` leads on from where a turn stopped."""
Asked: TypeAlias = PermissionAsked | PlanPresented | QuestionAsked | ServerAsked | StopAsked

LONG = 160
"""Characters; choices of a question that are longer than this stand in its text too, whole."""
PROJECT_KEYS, SESSION_KEYS = "abc", "stu"
"""The keys of the answers that add rules: of so many one each."""


@dataclass(slots=True, frozen=True)
class AskChoice:
    """An answer to choose, by its ``key`` as well; ``word`` stands for the sentence where there is no room."""

    key: str
    label: str
    role: AskRole
    word: str = ""
    offer: RuleOffer | None = None
    """The rules it adds."""
    mode: ApprovedMode | None = None
    """The mode to carry a plan out in."""
    action: ServerAction | None = None
    opens: bool = False
    """The address is opened with it."""
    field: FormField | None = None
    value: str = ""
    """What the model, or a field, calls this choice."""
    way: Way | None = None


@dataclass(slots=True, frozen=True)
class Ask:
    """A question as a value. ``why`` is the reason in a line, whose last part says where a call would run; ``subject``
    is what the title is about; ``body`` is what somebody has to have seen to say yes."""

    id: str
    kind: AskKind
    title: str
    choices: tuple[AskChoice, ...]
    subject: str = ""
    why: str = ""
    body: str = ""
    body_kind: BodyKind = "text"
    path: str = ""
    words_for: str = ""
    """What the line for words asks for."""
    several: bool = False
    fields: tuple[FormField, ...] = ()
    tool: str = ""
    call_id: str = ""
    asked: Asked | None = None
    """What was asked, as it came."""


_TITLES = {
    "bash": "Run this command?",
    "edit": "Make this change?",
    "write": "Write this file?",
    "read": "Read this file?",
    "fetch": "Fetch this page?",
    "attaching": "Attach this file?",
}
_YES = {
    "bash": "Yes, run it",
    "edit": "Yes, make it",
    "write": "Yes, write it",
    "read": "Yes, read it",
    "fetch": "Yes, fetch it",
    "attaching": "Yes, attach it",
}
PLAN_CHOICES = (
    AskChoice("y", "Yes, and ask before changes", "yes", "yes", mode="ask"),
    AskChoice("e", "Yes, and accept edits", "yes", "edits", mode="accept-edits"),
    AskChoice("a", "Yes, and don't ask again (auto)", "yes", "auto", mode="auto"),
    AskChoice("c", "Edit the plan", "edit", "change"),
    AskChoice("f", "No, and say what to plan instead", "words", "no, because…"),
    AskChoice("n", "No, end the turn", "no", "no"),
)
DECLINE = AskChoice("n", "No", "no", "no", action="decline")
_SERVER = {
    "form": ("asks for input", (AskChoice("s", "Send it", "yes", "send", action="accept"), DECLINE)),
    "url": (
        "asks you to open an address",
        (
            AskChoice("y", "Yes, open it in the browser", "yes", "yes", action="accept", opens=True),
            AskChoice("o", "Yes, I open it myself", "yes", "myself", action="accept"),
            DECLINE,
        ),
    ),
}


def ask_of(asked: Asked) -> Ask:
    """The question that an event puts."""
    match asked:
        case PermissionAsked():
            return _permission(asked)
        case PlanPresented(name, plan):
            words = "What to plan instead"
            return Ask(
                name, "plan", "Carry out this plan?", PLAN_CHOICES, "", "", plan, "plan", words_for=words, asked=asked
            )
        case QuestionAsked(name, _, choices, several):
            rows = [
                AskChoice(str(n), spelled(text, line=True), "mark", value=text) for n, text in enumerate(choices, 1)
            ]
            rows += [AskChoice("s", "Send the marked answers", "send")] if several else []
            rows.append(AskChoice("o", "Other words…", "words"))
            keys = "Space marks, Enter sends" if several else "Enter or a number"
            return Ask(
                name,
                "choice",
                "The model asks",
                tuple(rows),
                keys,
                body=question_text(asked),
                words_for="In your own words",
                several=several,
                asked=asked,
            )
        case ServerAsked():
            what, ends = _SERVER[asked.kind]
            needed = any(each.required for each in asked.fields)
            keys = f"at {asked.about}" if asked.url else "* required" if needed else ""
            said = [asked.text, asked.url] if asked.url else [asked.about, asked.text]
            return Ask(
                asked.request_id,
                "server",
                f"{asked.server} {what}",
                ends,
                keys,
                body="\n\n".join(filter(None, said)),
                fields=asked.fields,
                asked=asked,
            )
        case StopAsked(name, question, ways):
            title, _, why = question.partition(": ")
            rows = [AskChoice(way.key, way.label, "words" if way.asks else "way", way=way) for way in ways]
            return Ask(name, "stop", title, tuple(rows), body=why, asked=asked)


def _permission(asked: PermissionAsked) -> Ask:
    display, tool = asked.display or {}, asked.tool
    name = spelled(tool, line=True)
    keys = {"project": iter(PROJECT_KEYS), "session": iter(SESSION_KEYS)}
    offers = sorted(asked.offers, key=lambda offer: offer.lasts == "session")
    several = {lasts for lasts in keys if sum(offer.lasts == lasts for offer in offers) > 1}
    named = {"project": "always", "session": "session"}
    lasting = [
        AskChoice(key, rule_sentence(offer, tool), "rule", word, offer)
        for offer in offers
        if (key := next(keys[offer.lasts], ""))
        # Where several are remembered, the beginning of a rule tells them apart.
        and (word := shorten(spelled(offer.rules[0], line=True), 18) if offer.lasts in several else named[offer.lasts])
    ]
    # Only a model can be told what to do instead; the program itself asks about no call.
    words = [AskChoice("f", "No, and say what to do instead", "words", "no, because…")] if asked.call_id else []
    kind = display.get("kind")
    return Ask(
        asked.request_id,
        "permission",
        _TITLES.get(tool, f"Allow {name[:40]}?"),
        (
            AskChoice("y", _YES.get(tool, "Yes, this once"), "yes", "yes"),
            *lasting,
            AskChoice("n", "No", "no", "no"),
            *words,
        ),
        asked.summary.removeprefix(f"{tool} "),
        asked.reason,
        str(display.get("text") or ""),
        "diff" if kind == "diff" else "command" if kind == "command" else "text",
        str(display.get("path") or ""),
        "What to do instead",
        tool=tool,
        call_id=asked.call_id,
        asked=asked,
    )


def attach_ask(path: Path) -> Ask:
    """The program's own question: whether a file outside the project may go with a message."""
    reason = "it is outside the project, and attachments are sent to the model"
    whole = {"kind": "text", "text": spelled(str(path), line=True)}
    return ask_of(PermissionAsked(new_id("ask"), "", "attaching", path.name, whole, reason=reason))


def question_text(asked: QuestionAsked) -> str:
    """The question, and the choices that are too long for a row."""
    text = asked.question.strip()
    if any(len(choice) > LONG for choice in asked.choices):
        text += "\n" + "".join(f"\n{n}. {choice}" for n, choice in enumerate(asked.choices, 1))
    return text
