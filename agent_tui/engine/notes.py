"""What the program tells the model: notes that join a message which is sent anyway, and stay in the conversation. What
is sent says what the model knows, so that a compaction, a rewind or a restart needs no rule of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from agent_tui.models.messages import (
    PLAN_TOOL,
    TOLD_MODE,
    AttachmentPart,
    Message,
    Metadata,
    ToolResultPart,
)
from agent_tui.models.requests import SentMessage
from agent_tui.text.frames import NOTE, attribute, framed, without_tags
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import domain_for
from agent_tui.tools.sandbox.words import place_words

Teller: TypeAlias = Callable[[Sequence[SentMessage]], Callable[[Message], None]]
"""Given what is sent, returns what adds the news to each message that follows."""


def put_note(message: Message, name: str, text: str) -> None:
    """Adds a note to a message of the user's or to what a tool said, which is not sent yet."""
    if message.tool_result is None:
        message.parts.insert(0, AttachmentPart(name, "text/plain", text=text))
    else:
        # Not every provider takes anything but text between a call and the next answer.
        add_to_result(message, framed(NOTE, text, attribute("name", name)), {name: text})


def take_note_out(message: Message, name: str) -> None:
    """Takes a note out of a message that was not sent with it."""
    text, result = note_in(message, name), message.tool_result
    if text is None:
        return
    if result is None:
        message.parts = [part for part in message.parts if not (isinstance(part, AttachmentPart) and part.name == name)]
        return
    said = result.text.replace(f"\n\n{framed(NOTE, text, attribute('name', name))}", "")
    display = {key: value for key, value in (result.display or {}).items() if key != name} or None
    message.parts[message.parts.index(result)] = replace(result, text=said, display=display)


def add_to_result(message: Message, line: str, shown: Metadata | None = None) -> None:
    """Adds a line of ours to what a tool said."""
    result = message.tool_result
    assert result is not None, "the message of a tool has one"
    display = {**(result.display or {}), **(shown or {})} or None
    message.parts[message.parts.index(result)] = replace(result, text=f"{result.text}\n\n{line}", display=display)


def note_in(message: Message, name: str) -> str | None:
    """The note of this name that a message brings, as it is sent; None where it has none."""
    for part in message.parts:
        if isinstance(part, AttachmentPart) and part.name == name and part.text:
            return part.text
        if isinstance(part, ToolResultPart) and part.display and name in part.display:
            text = str(part.display[name])
            if without_tags(text) in part.text:  # as ``framed`` writes it
                return text
    return None


def newest_note(view: Sequence[SentMessage], name: str) -> str | None:
    """What the messages that are sent say last under a name; None where they do not."""
    notes = (note_in(sent.message, name) for sent in reversed(view))
    return next((note for note in notes if note is not None), None)


MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "ask": "You may look around; for each edit, and for what a command wants beyond looking, the user is asked.",
        "accept-edits": "Edits in the project, and commands that its sandbox holds, run unasked; the user is asked "
        "before the rest.",
        "plan": "Read only: whatever changes something is refused. Explore, settle what is unclear with ask, then hand "
        f"in a plan with {PLAN_TOOL} (which files, what changes, how it is checked). Begin nothing before the user "
        "has approved it.",
        "auto": "You are trusted to work unasked; the user is asked only about what is dangerous or out of the way.",
        "bypass": "Everything runs unasked and without a sandbox.",
    }
)
"""By mode, what the model has to know of it."""

NOBODY = (
    "Nobody can answer: what would need a question is refused. Decide yourself, say what you assumed, and finish: "
    "what runs in the background ends with the run."
)
NOBODY_PLANS = f"Nobody can answer: {PLAN_TOOL} ends the run, and the plan is your answer."
SUBAGENT = (
    "Nobody can answer you, and a plan is not yours to present: your last message is all that the caller gets. "
    "Put into it what was asked for, with paths and lines, and what you could not do."
)


class ToldMode:
    """Puts the mode into messages that go out while the model does not know it: what is sent says what it knows, so
    that a compaction, a rewind or a restart needs no rule of its own."""

    def __init__(self, permissions: Permissions, subagent: bool = False, jail: Jail | None = None) -> None:
        self._permissions = permissions
        self._subagent = subagent
        self._jail = jail

    @property
    def text(self) -> str:
        """The text on the mode that the model has to know now."""
        mode, domain = self._permissions.mode, domain_for(self._permissions.mode)
        meaning = MEANINGS.get(mode, "")
        if self._subagent and mode == "plan":
            meaning = "Read only: whatever changes something is refused."
        if self._jail is not None and domain != "free" and self._jail.expects(domain):
            ports = self._jail.sandbox is None or self._jail.has_ports()
            loopback = self._jail.config.loopback if ports else "deny"
            meaning += " " + place_words(domain, self._permissions.network, loopback, builds=mode == "ask")
        if self._subagent:
            meaning += f" {SUBAGENT}"
        elif not self._permissions.can_ask:
            meaning += f" {NOBODY_PLANS if mode == 'plan' else NOBODY}"
        return f"Permission mode: {mode}. {meaning}"

    def teller(self, view: Sequence[SentMessage]) -> Callable[[Message], None]:
        """Returns what adds it to each message that follows ``view``, of the user or of a tool, where those before it
        do not say it."""
        known = newest_note(view, TOLD_MODE)

        def tell(message: Message) -> None:
            nonlocal known
            if known != self.text:
                known = self.text
                put_note(message, TOLD_MODE, known)

        return tell
