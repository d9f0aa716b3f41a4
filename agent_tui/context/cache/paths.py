"""What all steps of a session sent, as one tree of messages: what begins the same is held once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent_tui.models.cache import Sent
from agent_tui.models.steps import Step

ROOT = 0


@dataclass(slots=True, frozen=True)
class SentMessages:
    """The messages of a request as its body has them: keys, digests and content blocks, see ``models.cache.Sent``. The
    first ``same`` of them are those of the request that was given before to whoever made this."""

    keys: Sequence[str]
    digests: Sequence[str]
    blocks: Sequence[int]
    same: int = 0


@dataclass(slots=True)
class SentPaths:
    """A tree whose nodes are messages as they were sent; a step is the node at which it ends.

    Nodes are numbers, ``ROOT`` stands for no message. Adding a step costs what is new in it.
    """

    _parent: list[int] = field(default_factory=lambda: [ROOT])
    _depth: list[int] = field(default_factory=lambda: [0])
    _key: list[str] = field(default_factory=lambda: [""])
    _digest: list[str] = field(default_factory=lambda: [""])
    _blocks: list[int] = field(default_factory=lambda: [0])
    _made_by: list[str] = field(default_factory=lambda: [""])
    _next: dict[tuple[int, str], int] = field(default_factory=dict)
    _ends: dict[str, int] = field(default_factory=dict)
    _lost: set[str] = field(default_factory=set)
    _last: int = ROOT

    def take(self, steps: Sequence[Step]) -> None:
        """Adds the steps that are not here yet; they are looked for at the end."""
        new: list[Step] = []
        for step in reversed(steps):
            if step.id in self._ends or step.id in self._lost:
                break
            new.append(step)
        for step in reversed(new):
            if step.sent is not None:
                self._add(step.id, step.sent)
            else:
                self._lost.add(step.id)

    def _add(self, step_id: str, sent: Sent) -> None:
        """A step as it is stored. Where what it is a difference to is not here, as in a copy of a part of the session,
        nothing is known of it."""
        start = ROOT
        if sent.base:
            base = self._ends.get(sent.base)
            if base is None or self._depth[base] < sent.kept:
                self._lost.add(step_id)
                return
            start = self.ancestor(base, sent.kept)
        self._ends[step_id] = self._grow(start, sent.keys, sent.digests, sent.blocks, step_id)

    def record(self, step_id: str, messages: SentMessages, settings: dict[str, str], marks: list[int]) -> Sent:
        """Adds what a step sends, and returns how it is stored with it."""
        self._lost.discard(step_id)
        depth = min(messages.same, self._depth[self._last])
        node = self.ancestor(self._last, depth)
        while depth < len(messages.digests) and (found := self._next.get((node, messages.digests[depth]))) is not None:
            node, depth = found, depth + 1
        while self._made_by[node] == step_id:
            # Sent once more, changed: it is no difference to itself.
            node, depth = self._parent[node], depth - 1
        keys, digests = list(messages.keys[depth:]), list(messages.digests[depth:])
        blocks = list(messages.blocks[depth:])
        self._ends.pop(step_id, None)
        self._last = self._ends[step_id] = self._grow(node, keys, digests, blocks, step_id)
        return Sent(settings, self._made_by[node], depth, keys, digests, blocks, marks)

    @contextmanager
    def ahead(self, step_id: str, messages: SentMessages) -> Iterator[None]:
        """What a step would send that is not sent yet: it is here inside the block only."""
        length, last = len(self._parent), self._last
        depth = min(messages.same, self._depth[last])
        start = self.ancestor(last, depth)
        self._ends[step_id] = self._grow(
            start, messages.keys[depth:], messages.digests[depth:], messages.blocks[depth:], step_id
        )
        try:
            yield
        finally:
            del self._ends[step_id]
            for node in range(length, len(self._parent)):
                del self._next[self._parent[node], self._digest[node]]
            for column in (self._parent, self._depth, self._blocks):
                del column[length:]
            for names in (self._key, self._digest, self._made_by):
                del names[length:]

    def _grow(self, node: int, keys: Sequence[str], digests: Sequence[str], blocks: Sequence[int], by: str) -> int:
        for number, (key, digest) in enumerate(zip(keys, digests, strict=True)):
            found = self._next.get((node, digest))
            if found is None:
                found = len(self._parent)
                self._next[node, digest] = found
                self._parent.append(node)
                self._depth.append(self._depth[node] + 1)
                self._key.append(key)
                self._digest.append(digest)
                self._blocks.append(self._blocks[node] + (blocks[number] if number < len(blocks) else 1))
                self._made_by.append(by)
            node = found
        return node

    def end(self, step: Step) -> int | None:
        """Where a step ends; None where what it sent is not known."""
        return self._ends.get(step.id)

    def depth(self, node: int) -> int:
        """How many messages lead to a node, itself included."""
        return self._depth[node]

    def blocks(self, node: int) -> int:
        """How many content blocks they are on the wire."""
        return self._blocks[node]

    def ancestor(self, node: int, depth: int) -> int:
        """The node at a depth on the way to another."""
        while self._depth[node] > depth:
            node = self._parent[node]
        return node

    def shared(self, one: int, other: int) -> int:
        """How many messages two ways begin with in common."""
        depth = min(self._depth[one], self._depth[other])
        one, other = self.ancestor(one, depth), self.ancestor(other, depth)
        while one != other:
            one, other = self._parent[one], self._parent[other]
        return self._depth[one]

    def messages(self, node: int) -> SentMessages:
        """All messages on the way to a node."""
        nodes: list[int] = []
        while node != ROOT:
            nodes.append(node)
            node = self._parent[node]
        nodes.reverse()
        return SentMessages(
            [self._key[n] for n in nodes],
            [self._digest[n] for n in nodes],
            [self._blocks[n] - self._blocks[self._parent[n]] for n in nodes],
        )

    def key(self, node: int) -> str:
        """The key of the message at a node."""
        return self._key[node]

    def digests(self, node: int, start: int = 0) -> list[str]:
        """The digests of the messages on the way to a node, from the ``start``-th on."""
        found: list[str] = []
        while self._depth[node] > start:
            found.append(self._digest[node])
            node = self._parent[node]
        found.reverse()
        return found
