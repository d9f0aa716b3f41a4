"""The ground of a session's calculations, followed from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.context.accounting.given.accuracy import coarse_ratio
from agent_tui.context.accounting.given.ground import Ground, end_of, rule_of
from agent_tui.context.accounting.given.inputs import ContextInputs
from agent_tui.context.incremental.reasoning import FollowedReasoning
from agent_tui.context.incremental.scale import FollowedScale
from agent_tui.context.sent.anchor import SentPrefixes, common_prefix, extend_chain
from agent_tui.context.sent.result_states import ResultStates
from agent_tui.context.tokens.estimate import MessageEstimate, estimate_message
from agent_tui.context.tokens.families import Family, family_of
from agent_tui.models.messages import Message
from agent_tui.models.requests import Target
from agent_tui.models.steps import Step

Setting = tuple[Target, int | None]
Basis = tuple[Setting, float | None, float, tuple[str, ...]]


class FollowedGround:
    """``ground_of``, where only what is new since the last calculation is looked at.

    After ``follow``: ``settled`` leading messages weigh what they did then, provided that the ``basis`` is the same.
    """

    def __init__(self) -> None:
        self.settled = 0
        self.basis: Basis | None = None
        self._setting: Setting | None = None
        self._prefixes = SentPrefixes()
        self._keys: list[str] = []
        self._scale = FollowedScale()
        self._reasoning = FollowedReasoning()
        self._chain: list[Step] = []
        self._answered: dict[str, Step] = {}
        self._seen: list[str] = []
        self._passed = False
        self._reach = 0
        self._estimates: dict[str, tuple[int | None, bool, MessageEstimate]] = {}

    def follow(self, inputs: ContextInputs) -> Ground:
        """What ``ground_of`` gives for these inputs. It holds until the next call."""
        view, target, window = inputs.view, inputs.model.target, inputs.model.limits.window
        family, setting = family_of(target), (target, window)
        if setting != self._setting:
            self._setting = setting
            self._estimates.clear()
            self._keys, self._chain, self._seen, self._reach = [], [], [], 0
        scale = self._scale.follow(inputs.steps, target, family, view, inputs.records)
        self.basis = setting, scale, coarse_ratio(inputs.ratio), tuple(r.id for r in inputs.records)
        known = len(self._prefixes.ids)
        self._prefixes, kept = self._prefixes.moved_to(view)
        self._follow_steps(inputs.steps, target, window, known, kept)
        results = ResultStates(inputs.records)
        rule = rule_of(inputs, self._prefixes, results)
        reasoning = self._reasoning.follow(view, target, inputs.fixed_fingerprint, inputs.effort, rule)
        keys = [item.key for item in view]
        self.settled = min(common_prefix(self._keys, keys), self._reasoning.changed_from)
        self._keys = keys

        def estimate(message: Message, key: str, first: bool) -> MessageEstimate:
            return self._estimate(family, message, key, first)

        return Ground(
            inputs=inputs,
            family=family,
            prefixes=self._prefixes,
            chain=self._chain,
            answered=self._answered,
            measured_scale=scale,
            results=results,
            rule=rule,
            reasoning=reasoning,
            estimate=estimate,
        )

    def _estimate(self, family: Family, message: Message, key: str, first: bool) -> MessageEstimate:
        """The message's estimate, computed once for a key and a raw count."""
        known = self._estimates.get(key)
        if known is not None and known[0] == message.raw_tokens and known[1] == first:
            return known[2]
        made = estimate_message(message, family, first)
        self._estimates[key] = (message.raw_tokens, first, made)
        return made

    def _follow_steps(self, steps: Sequence[Step], target: Target, window: int | None, known: int, kept: int) -> None:
        """Bring the chain up to date with the steps; the view had ``known`` messages, and has ``kept`` of them."""
        finished = self._finished(steps)
        grown = len(self._prefixes.ids) > known
        if self._seen != finished[: len(self._seen)] or kept != known or (grown and self._reach > known):
            # Steps that did not fit may fit now: after an undo, or when messages came back.
            self._chain, self._seen, self._reach = [], [], 0
            self._answered = {}
        for step in steps[len(self._seen) :]:
            if step.message_id is not None:
                self._answered[step.message_id] = step
        if self._passed:
            chosen = set(finished[len(self._seen) :])
            new = [s for s in steps if s.id in chosen]
        else:
            new = list(steps[len(self._seen) : len(finished)])
        self._reach = max(self._reach, *(end_of(s) for s in new), 0)
        extend_chain(self._chain, new, self._prefixes, target, window)
        self._seen = finished

    def _finished(self, steps: Sequence[Step]) -> list[str]:
        """Ids of the steps that will not change any more. One that still runs is passed over (``_passed``): an exact
        count may come in meanwhile. When it ends, the list is another and the chain is made anew."""
        ids = [s.id for s in steps]
        start = 0 if self._passed else len(self._seen)
        self._passed = False
        for i, step in enumerate(steps[start:], start):
            if step.status == "running":
                self._passed = any(s.status != "running" for s in steps[i + 1 :])
                return [s.id for s in steps if s.status != "running"] if self._passed else ids[:i]
        return ids
