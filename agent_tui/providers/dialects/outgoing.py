"""A request as each API's file makes its body of it: what is said, the tools, and the arguments beside both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from agent_tui.models.messages import AttachmentPart, Metadata, Part
from agent_tui.models.requests import ALL_MEDIA, Media, ReplayRule, SentMessage, Target
from agent_tui.providers.dialects.conversation import (
    EMPTY_USER,
    AssistantTurn,
    Result,
    Said,
    ToolNames,
    entries,
    said_in,
    stricter,
)
from agent_tui.providers.dialects.record import CallIds, Dialect, ModelFamily
from agent_tui.providers.dialects.shared import ReplayPlan
from agent_tui.records import dataclass

_BEGUN = "[The conversation began earlier.]"
"""What the user is to have said where what is left of a conversation begins with an answer."""


_NOT_OF_A_BODY = frozenset(
    {"model", "messages", "tools", "stream", "stream_options", "drop_params", "max_retries", "num_retries"}
    | {"extra_body", "extra_headers", "api_key", "api_base", "base_url", "timeout", "api_version"}
    | {"custom_llm_provider"}
)
"""Arguments of a call that are not fields of its body, or have a place of their own."""


def extra_headers(arguments: Metadata) -> dict[str, str]:
    """The headers among the arguments of a call, or among a model's ``extra``."""
    return {str(name): str(value) for name, value in (arguments.get("extra_headers") or {}).items()}


Turn = AssistantTurn | Result | Said
"""What the model said, what a tool did, or what the user says."""


@dataclass(slots=True, frozen=True)
class CacheMarks:
    """Up to where the provider is to keep a prompt. ``stable``: so many of the system's texts are the same all session
    long; ``sent_before`` as in ``ModelRequest``."""

    ttl: str | None
    stable: int
    starts_with_summary: bool
    forgets: bool
    sent_before: int


@dataclass(slots=True)
class OutgoingRequest:
    """``items`` are sent as ``plan`` and ``names`` say, behind the texts of ``system``. ``arguments`` are what else is
    asked for, by the names of the chat API or, where the user configured them in ``extra``, of the provider's own. One
    that is not ``whole`` holds some messages alone, without what stands around a conversation."""

    target: Target
    dialect: Dialect
    family: ModelFamily
    items: Sequence[SentMessage]
    plan: ReplayPlan
    names: ToolNames
    media: Media = ALL_MEDIA
    rule: ReplayRule = field(default_factory=ReplayRule)
    system: Sequence[str] = ()
    marks: CacheMarks | None = None
    whole: bool = True
    arguments: Metadata = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """For the user."""

    @property
    def tools(self) -> list[Metadata]:
        return list(self.arguments.get("tools") or ())

    @property
    def rest(self) -> Metadata:
        """The body's other fields."""
        return {name: value for name, value in self.arguments.items() if name not in _NOT_OF_A_BODY}

    @property
    def extra_body(self) -> Metadata:
        """Fields of the body that win over all others."""
        return dict(self.arguments.get("extra_body") or {})

    @property
    def marked(self) -> bool:
        """Whether texts are sent as content blocks, so that cache markers can be put on them without changing anything
        else."""
        return self.dialect.cache == self.family.cache == "markers"

    @property
    def ids(self) -> CallIds:
        if self.rule.needs("short call ids"):
            return "short"
        return stricter(self.dialect.call_ids, self.family.call_ids)

    @property
    def renamed(self) -> Mapping[str, str]:
        """The tools that go under another name than their own, by that."""
        return self.names.replaced

    @property
    def signed(self) -> bool:
        """Whether thoughts go back as signed blocks, and results take pictures along."""
        return self.dialect.thinking_blocks and self.family.signed_blocks

    def turns(self, items: Sequence[SentMessage] | None = None) -> Iterator[Turn]:
        """The conversation, or some messages of it, in the order and with the names that every API takes. Pictures of
        results that are only text come behind all of these, as if the user showed them."""
        items, seen = self.items if items is None else items, list[AttachmentPart]()
        for entry in entries(items, self.names, ids=self.ids, own=self.plan.same_origin):
            if isinstance(entry, Result):
                yield entry
                seen += [] if self.signed else entry.attachments
                continue
            if seen:
                yield self._said(seen)
                seen = []
            yield entry if isinstance(entry, AssistantTurn) else self._said(entry.parts) or [EMPTY_USER]
        if seen:
            yield self._said(seen)

    def _said(self, parts: Sequence[Part]) -> Said:
        """What the user says: one text, where cache markers need no blocks and nothing else stands between."""
        said = said_in(parts, self.media)
        texts = [one for one in said if isinstance(one, str)]
        return said if self.marked or len(texts) < len(said) or not said else ["\n\n".join(texts)]

    def beginning(self, first: str | None) -> str | None:
        """What the user is to have said before everything, where the ``first`` role is not theirs: no API takes a
        conversation without a message, and many none that begins with an answer."""
        if not self.whole or first == "user":
            return None
        return EMPTY_USER if first is None else _BEGUN
