"""The model is told its permission mode with the messages, so that the prompt's beginning stays the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from agent_tui.models.messages import PLAN_TOOL, TOLD_MODE, AttachmentPart, Message, ToolResultPart
from agent_tui.models.requests import SentMessage
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import domain_for
from agent_tui.tools.sandbox.words import place_words

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
    "commands in the background end with the run."
)
NOBODY_PLANS = f"Nobody can answer: {PLAN_TOOL} ends the run, and the plan is your answer."
SUBAGENT = (
    "Nobody can answer you, and a plan is not yours to present: your last message is all that the caller gets. "
    "Put into it what was asked for, with paths and lines, and what you could not do."
)


class ToldMode:
    """Puts the mode into messages that go out while the model does not know it: what is sent says what it knows, so
    that a compaction, a rewind or a restart needs no rule of its own. A ``subagent`` talks to nobody. ``jail``
    holds its commands."""

    def __init__(self, permissions: Permissions, subagent: bool = False, jail: Jail | None = None) -> None:
        self._permissions = permissions
        self._subagent = subagent
        self._jail = jail

    @property
    def text(self) -> str:
        """What the model has to know now."""
        mode = self._permissions.mode
        meaning = MEANINGS.get(mode, "")
        if self._subagent and mode == "plan":
            meaning = "Read only: whatever changes something is refused."
        domain = domain_for(mode)
        if self._jail is not None and domain != "free" and self._jail.expects(domain):
            ports = self._jail.sandbox is None or self._jail.has_ports()
            loopback = self._jail.config.loopback if ports else "deny"
            meaning += " " + place_words(domain, self._permissions.network, loopback, builds=mode == "ask")
        if self._subagent:
            return f"Permission mode: {mode}. {meaning} {SUBAGENT}"
        if self._permissions.can_ask:
            return f"Permission mode: {mode}. {meaning}"
        return f"Permission mode: {mode}. {meaning} {NOBODY_PLANS if mode == 'plan' else NOBODY}"

    def tell(self, message: Message, view: Callable[[], Sequence[SentMessage]]) -> None:
        """Adds it to ``message``, of the user or of a tool, where the messages of ``view`` do not say it already."""
        text = self.text
        if told(view()) == text:
            return
        result = message.tool_result
        if result is None:
            message.parts.insert(0, AttachmentPart(TOLD_MODE, "text/plain", text=text))
        else:
            # Not every provider takes anything but text between a call and the next answer.
            told_result = replace(
                result, text=f"{result.text}\n\n[{text}]", display={**(result.display or {}), TOLD_MODE: text}
            )
            message.parts[message.parts.index(result)] = told_result


def told(view: Sequence[SentMessage]) -> str | None:
    """What the messages that are sent say last of the mode; None when they do not."""
    for sent in reversed(view):
        for part in sent.message.parts:
            if isinstance(part, AttachmentPart) and part.name == TOLD_MODE and part.text:
                return part.text
            if isinstance(part, ToolResultPart) and part.display and TOLD_MODE in part.display:
                text = str(part.display[TOLD_MODE])
                if text in part.text:
                    return text
    return None
