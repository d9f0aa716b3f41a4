"""The summary that a compaction would write: which messages it stands for, and what is kept of them word for word."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from agent_tui.context.compaction.answers import model_sections
from agent_tui.context.compaction.keep import added_lines, missing_facts
from agent_tui.context.compaction.summary import assemble, cut_message, introduction_text
from agent_tui.context.compaction.summary_parts import file_lines
from agent_tui.context.tokens import char_tokens
from agent_tui.models.messages import (
    RECALL_TOOL,
    SUMMARY_ID,
    Message,
    Part,
    SummaryPart,
    TextPart,
    new_id,
    summary_text,
)
from agent_tui.models.requests import SentMessage
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.context.compaction.facts import Fact


@dataclass(slots=True, frozen=True)
class SummaryPlan:
    """The messages that a summary would replace. ``message_ids`` are all messages that it stands for, those of earlier
    summaries included: everything before the cut but the newest message of the user. ``fresh`` are the ones no model
    has summarised yet; ``previous`` is what the last summary says of the others. ``user_messages`` are kept word for
    word.

    ``approved`` are the lines of the plan the user agreed to. ``left_out`` above 0: no model is asked, so many
    messages are left out behind a placeholder. ``facts`` are those of all messages it stands for; those that stand
    neither in the summary nor in the messages that stay (``kept``) are added to it within ``facts_tokens``, the user's
    rules in any case.
    """

    message_ids: tuple[str, ...]
    kept_ids: tuple[str, ...]
    fresh: tuple[Message, ...]
    previous: str | None
    files: dict[str, list[str]]
    user_messages: tuple[str, ...]
    user_left_out: int
    tokens: int
    todo: tuple[str, ...] = ()
    left_out: int = 0
    approved: tuple[str, ...] = ()
    characters: int = 0
    """Of what it stands for, where the model can have it back (``recall``); 0: it cannot."""
    user_cut: str = ""
    """What is kept of a message that is too long to be kept whole."""
    facts: tuple[Fact, ...] = ()
    kept: tuple[Message, ...] = ()
    facts_tokens: float = 0.0
    rules_tokens: float = math.inf
    """Below that the user's rules are shortened to what fits: nothing else made room."""
    pinned: str = ""
    """The words that the user pinned (``pinned_text``)."""
    fold: bool = False
    """It stands for a range that the user chose, between messages that stay."""

    @property
    def needs_model(self) -> bool:
        return not self.left_out

    def message(self, sections: Mapping[str, str], record_id: str, created: float) -> Message:
        """The summary message, assembled from the model's sections and what is kept word for word, with the facts that
        would be missing without it."""
        carried: list[Part] = [SummaryPart(self.pinned, record_id, pinned=True)] if self.pinned else []
        made = SummaryPart(self.text(sections), record_id)
        return Message(new_id(SUMMARY_ID), "user", [made, *carried], created=created)

    def text(self, sections: Mapping[str, str], introduction: str = "") -> str:
        """The summary's text, which begins with an ``introduction`` of its own where there is none."""
        stays = (*self.kept, Message("", "user", [TextPart(self.pinned)]))
        missing = missing_facts(self.facts, self._text(sections, (), introduction), stays)
        return self._text(sections, added_lines(missing, self.facts_tokens, self.rules_tokens), introduction)

    def without_model(self) -> SummaryPlan:
        """The same plan where no model writes anything: of the messages stays what is kept word for word, with as many
        more facts as its summary would have been long."""
        left_out = self.left_out or max(1, len(self.fresh))
        return replace(self, left_out=left_out, tokens=0, facts_tokens=self.facts_tokens + self.tokens)

    def goes(self, view: Sequence[SentMessage]) -> list[str]:
        """Ids of what is sent now and would not be with this summary, earlier summaries included."""
        kept, ids = frozenset(self.kept_ids), frozenset(self.message_ids)
        ours = (item.message for item in view if item.message.id not in kept)
        return [m.id for m in ours if m.id in ids or any(isinstance(part, SummaryPart) for part in m.parts)]

    def with_facts(self, facts: tuple[Fact, ...], view: Sequence[SentMessage], tokens: float) -> SummaryPlan:
        """The plan with the facts of the messages that go and, of those in ``view``, the ones that stay; ``tokens`` are
        for what is added."""
        staying = frozenset(self.kept_ids)
        kept = tuple(sent.message for sent in view if sent.message.id in staying)
        return replace(self, facts=facts, kept=kept, facts_tokens=tokens)

    def _text(self, sections: Mapping[str, str], facts: Sequence[str], introduction: str) -> str:
        if self.left_out:
            sections = model_sections(self.previous or "")
            introduction = introduction or left_out_text(self.left_out, bool(self.characters))
        introduction = introduction or introduction_text(len(self.message_ids), self.characters, fold=self.fold)
        text = assemble(
            sections,
            file_lines(self.files),
            self.user_messages,
            self.user_left_out,
            self.todo,
            introduction,
            self.approved,
            facts,
        )
        return text + cut_message(self.user_cut) if self.user_cut else text


ReadFacts: TypeAlias = "Callable[[Sequence[Message]], list[Fact]]"


def facts_of(messages: Sequence[Message]) -> list[Fact]:
    """The facts that messages say."""
    from agent_tui.context.compaction.facts import read_facts

    return read_facts(messages)


def expected_message(summary: SummaryPlan, record_id: str) -> Message:
    """The summary as far as it is known before a model wrote its sections, as long as it is with their budget."""
    message = summary.message({}, record_id, 0.0)
    message.raw_tokens = int(char_tokens(summary_text(message))) + summary.tokens
    return message


def assembled_text(summary: Message) -> str:
    """The text of a summary message, without what it carries of the user's pins; empty of any other message."""
    return "".join(p.text for p in summary.parts if isinstance(p, SummaryPart) and not p.pinned)


def left_out_text(messages: int, recall: bool = False) -> str:
    """The placeholder of messages that were left out without a summary."""
    way = f" The tool {RECALL_TOOL} finds what they say." if recall else ""
    count = plural(messages, "older message")
    return f"[{count} left out here, without a summary.{way}]"
