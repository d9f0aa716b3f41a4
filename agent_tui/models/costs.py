"""What a report settles: the tokens of each item of a request, as they are stored with the step that it came of.

An item is a part of the prefix, a message in the form in which it is sent, or the reasoning of an answer. Its key names
it wherever it is sent: ``tools:FINGERPRINT``, ``msg_1``, ``msg_1#cleared``, ``msg_1/reasoning``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from agent_tui.models.calibration import Content
from agent_tui.records import dataclass

REASONING = "/reasoning"
"""Ends the key of an answer's reasoning, which is sent, or counted, beside the answer or not at all."""


@dataclass(slots=True)
class SentKeys:
    """The keys of the messages of a request, in their order, as the difference to an earlier step: the first ``kept``
    are those of the step ``base``. ``digests``: what the others were on the wire, treatment included (cleared, clipped,
    reasoning left out); none before it is sent."""

    base: str = ""
    kept: int = 0
    keys: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)


@dataclass(slots=True)
class NewItem:
    """An item that had no cost yet when it was sent: what it was estimated at, and how much it takes of what a report
    is off by (``weight``). ``content``: what the estimate consists of."""

    key: str
    tokens: int
    weight: float
    content: Content


@dataclass(slots=True)
class Split:
    """An answer of whose reasoning, which nobody counted, not all is sent: ``spoken`` is what the rest of it was
    estimated at. ``weight`` and ``content`` as of a new item."""

    answer: str
    spoken: int
    content: Content
    weight: float = 0.0


@dataclass(slots=True)
class Part:
    """Items that one report settled together with others, and that come or go without those. ``weight`` as of a new
    item."""

    keys: list[str]
    weight: float


@dataclass(slots=True)
class Settlement:
    """What was not known of a request when it was sent, and what its report made of that.

    ``splits`` are answers whose reasoning nobody counted and of which another share was sent than before; ``content``:
    what the error of the whole estimate consisted of. ``costs``: what the report settled, new items and those known
    before that it corrected; empty until then, and where it is not believed. ``again``: what the first report settled,
    as it was shared out with what was known by now.
    """

    items: list[NewItem] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    content: Content = field(default_factory=Content)
    costs: dict[str, int] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)
    settled: bool = False
    spoken: int | None = None
    """Tokens of the answer beside its reasoning (``thought``); None where nobody knows how long it was."""
    thought: int = 0
    thought_counted: bool = True
    """False where the provider did not count it: of the two only the sum is a fact, until a request is sent without
    all of the reasoning (``Split``)."""


def kept_keys(before: Sequence[str], now: Sequence[str]) -> int:
    """How many leading keys two requests share."""
    least = min(len(before), len(now))
    if before[:least] == now[:least]:
        return least
    return next(place for place in range(least) if before[place] != now[place])
