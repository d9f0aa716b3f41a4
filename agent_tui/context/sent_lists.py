"""What the steps of a session sent, as one list of messages each: their keys, and what they were on the wire."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.context.anchor import common_prefix
from agent_tui.models.costs import SentKeys, kept_keys
from agent_tui.models.steps import Step
from agent_tui.records import dataclass


@dataclass(slots=True, frozen=True)
class SentMessages:
    """The messages of a request: their keys (``models.costs.SentKeys``), and the digests of what they were on the wire;
    none of what was counted and not sent."""

    keys: list[str]
    digests: list[str]

    def shared(self, other: SentMessages) -> int:
        """Returns how many messages two requests begin with in common."""
        return common_prefix(self.digests, other.digests)


class SentLists:
    """The messages of each step of a session. The newest lists are kept, so that one costs what is new in it."""

    MOST = 32

    def __init__(self) -> None:
        self._known: dict[str, SentMessages] = {}

    def of(self, step: Step, steps: Sequence[Step]) -> SentMessages | None:
        """What a step of these sent; None where that is not known."""
        way: list[Step] = []
        at: Step | None = step
        earlier = reversed(steps)
        while at is not None and at.id not in self._known:
            if (sent := at.sent_keys) is None:
                return None
            way.append(at)
            # A base stands before what was sent after it, but for steps that came from another session.
            at = next((each for each in earlier if each.id == sent.base), None) if sent.base else None
            if at is None and sent.base:
                earlier = reversed(steps)
                at = next((each for each in earlier if each.id == sent.base), None)
            if at is None and sent.base:
                return None
        known = self._known[at.id] if at is not None else SentMessages([], [])
        if not way:
            return known
        keys, digests = list(known.keys), list(known.digests)
        for each in reversed(way):
            assert each.sent_keys is not None
            kept = each.sent_keys.kept
            keys[kept:], digests[kept:] = each.sent_keys.keys, each.sent_keys.digests
        return self._keep(step.id, SentMessages(keys, digests if len(digests) == len(keys) else []))

    def keys(self, step: Step, steps: Sequence[Step]) -> list[str] | None:
        """The keys of a step of these; None where that is not known."""
        found = self.of(step, steps)
        return None if found is None else found.keys

    def begins(self, step: Step, steps: Sequence[Step], now: Sequence[str]) -> bool:
        """Returns whether messages with these keys begin with those that a step sent, each in whichever form."""
        count, sent = step.sent_count, step.sent_keys
        if sent is None or count > len(now) or (sent.keys and not is_same_message(sent.keys[-1], now[count - 1])):
            return False
        keys, begin = self.keys(step, steps), list(now[:count])
        return keys is not None and (keys == begin or all(map(is_same_message, keys, begin)))

    def record(self, step: Step, messages: SentMessages, steps: Sequence[Step]) -> None:
        """Stores with a step what it sends."""
        # A copy of the conversation has the steps of its answers, and no others.
        sent, keys, digests = set(messages.keys), messages.keys, messages.digests
        before_it = (each for each in reversed(steps) if each is not step and each.sent_keys is not None)
        base = next((each for each in before_it if each.message_id in sent), None)
        before = self.of(base, steps) if base is not None else None
        kept = kept_keys(before.keys, keys) if before is not None else 0
        if digests and before is not None:
            kept = min(kept, before.shared(messages))
        step.sent_keys = SentKeys(base.id if base is not None and kept else "", kept, keys[kept:], digests[kept:])
        self._keep(step.id, messages)

    def _keep(self, step_id: str, messages: SentMessages) -> SentMessages:
        self._known[step_id] = messages
        while len(self._known) > self.MOST:
            del self._known[next(iter(self._known))]
        return messages


def message_id(key: str) -> str:
    """The message that a key is of, in whichever form."""
    return key.partition("#")[0]


def is_same_message(one: str, other: str) -> bool:
    return one == other or message_id(one) == message_id(other)
