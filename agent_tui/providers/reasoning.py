"""The one rule about old reasoning: what of it goes into the next request and what the provider counts there. And how
the model is asked to think anew: from our four effort levels to every provider's own parameter.

The calculator asks it, the conversion to the wire obeys it, the screen shows its reasons. Pure and O(n).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from agent_tui.models.messages import Message, Metadata, ReasoningPart, SummaryPart, extend
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest, ReplayRule, SentMessage, Target
from agent_tui.models.search import is_paused
from agent_tui.providers.catalog import at_least, dialect_of, family_record, retention
from agent_tui.providers.dialects import anthropic, gemini, ollama, responses
from agent_tui.providers.dialects.chat import is_openai_reasoning
from agent_tui.providers.dialects.conversation import objects_in, text_in
from agent_tui.providers.dialects.openai import effort_word
from agent_tui.providers.dialects.record import ModelFamily
from agent_tui.providers.dialects.search import declares_search, sent_back
from agent_tui.providers.dialects.shared import ReplayPlan, ReplayStatus, Thinking, is_spoken

RESENT = "resent"
OTHER_MODEL = "not resent: other model"
COMPACTED = "not resent: context was compacted"
FIXED_CHANGED = "not resent: system prompt or tools changed"
UNSIGNED = "not resent: not signed"
UNFINISHED = "not resent: the answer was cut off"
THINKING_OFF = "not resent: thinking is off"
LEFT_OUT = "not resent: left out earlier, and resending it would rewrite the provider's cache"
NEVER_SHOWN = "not resent: the provider keeps it private"
DROPPED_AFTER_TURN = "not counted: dropped by the provider after a user turn"
NOT_COUNTED = "not counted: dropped by the provider"
REFUSED = "not resent: the server refused it"

ANY_RULE = ReplayRule()
_extend = lru_cache(maxsize=65_536)(extend)


def plan_replay(
    items: Sequence[SentMessage],
    target: Target,
    fixed_fingerprint: str = "",
    effort: Effort | None = None,
    rule: ReplayRule = ANY_RULE,
) -> ReplayPlan:
    """Decide about every reasoning part of ``items`` if they were sent to ``target`` now.

    ``effort`` None means that thinking is on or not known; ``off`` makes blocks useless that only go with thinking.
    """
    left_out = frozenset(rule.left_out)
    plan = ReplayPlan()
    effort = "off" if rule.needs("no thinking") else effort
    refused_before = _refused_before(items, rule)
    last_user = max((i for i, item in enumerate(items) if item.message.role == "user"), default=-1)
    if turn_is_closed(items):
        last_user = len(items)
    prefixes = _Prefixes(items, fixed_fingerprint)
    bound = prefix_bound(target) or rule.bound
    in_loop, after_user = retention(target)
    by_signature = family_record(target.family).thought_signatures
    for i, item in enumerate(items):
        message = item.message
        if message.role != "assistant":
            continue
        share = in_loop if i > last_user else after_user
        lost = REFUSED if i < refused_before else None
        if not _same_origin(message, target):
            lost = OTHER_MODEL
        if lost is not None:
            plan.foreign.add(message.id)
        own_share = 0.0 if by_signature and not _has_thought_signature(message) else share
        statuses: dict[int, ReplayStatus] = {}
        for n, part in enumerate(message.parts):
            if isinstance(part, ReasoningPart):
                reason = lost or _unusable(message, part, n, target, effort)
                if reason is None and bound and part.prefix is not None:
                    reason = prefixes.difference(i, part.prefix)
                if reason is None and message.id in left_out:
                    reason = LEFT_OUT
                statuses[n] = _status(reason, own_share, after_turn=i < last_user)
        if statuses:
            plan.parts[message.id] = statuses
        plan.messages[message.id] = _of_message(message, statuses, lost, target.family, own_share, i < last_user)
    own = [item.message for item in items if item.message.role == "assistant" and item.message.id not in plan.foreign]
    if any(declares_search(message) for message in own):
        plan.searches = sent_back(items, own)
    if effort != "off" and not rule.needs("calls as text"):
        plan.thinking_off = _loop_note(items[last_user + 1 :], plan, target)
    return plan


def _refused_before(items: Sequence[SentMessage], rule: ReplayRule) -> int:
    """The index before which nothing that its maker signed goes back."""
    if rule.needs("no reasoning"):
        return len(items)
    return max(behind_mark(items, rule.until), text_before(items, rule))


def text_before(items: Sequence[SentMessage], rule: ReplayRule) -> int:
    """The index before which calls and their results go as text."""
    return len(items) if rule.needs("calls as text") else behind_mark(items, rule.text_until)


def behind_mark(items: Sequence[SentMessage], marks: Sequence[str]) -> int:
    """The index behind the last of these messages; 0 where there is none of them."""
    return max((i + 1 for i, item in enumerate(items) if item.message.id in marks), default=0) if marks else 0


def fits_where_it_was_made(items: Sequence[SentMessage], target: Target, fixed_fingerprint: str) -> bool:
    """Returns whether some reasoning of the model's own stands behind exactly what it was made behind: who refuses that
    refuses all of it."""
    prefixes = _Prefixes(items, fixed_fingerprint)
    return any(
        part.prefix is None or prefixes.difference(i, part.prefix) is None
        for i, item in enumerate(items)
        if item.message.role == "assistant" and _same_origin(item.message, target)
        for part in item.message.parts
        if isinstance(part, ReasoningPart)
    )


def turn_is_closed(items: Sequence[SentMessage]) -> bool:
    """Returns whether the model has finished its turn: what is sent next can only begin with a new user message. One
    that a provider has paused goes on."""
    last = items[-1].message if items else None
    return last is not None and last.role == "assistant" and not last.tool_calls and not is_paused(last)


def prefix_fingerprint(items: Sequence[SentMessage], fixed_fingerprint: str = "") -> str:
    """Returns the value that ``ReasoningPart.prefix`` holds for an answer to ``items``: the fixed parts and every id
    that was sent."""
    value = fixed_fingerprint
    for item in items:
        value = _extend(value, item.key)
    return value


def prefix_bound(target: Target) -> bool:
    """Returns whether signatures are only valid after exactly what was sent before them, wherever the model is
    served."""
    return at_least(target, family_record(target.family).binds_from)


def asks_to_drop(target: Target, rule: ReplayRule) -> bool:
    """Returns whether the provider is asked to drop the blocks itself that do not fit their prefix, instead of refusing
    the request: not everybody who serves such a model knows how."""
    return dialect_of(target.provider).drops_unfit and prefix_bound(target) and rule.ask_drop


def carries_reasoning(message: Message, family: str) -> bool:
    """Returns whether the answer holds anything by which its reasoning could go back."""
    if any(isinstance(part, ReasoningPart) for part in message.parts):
        return True
    return family_record(family).thought_signatures and _has_thought_signature(message)


def _same_origin(message: Message, target: Target) -> bool:
    known, own = message.origin, (target.provider, target.api, target.model)
    return known is not None and (known.provider, known.api, known.model) == own


def _unusable(message: Message, part: ReasoningPart, index: int, target: Target, effort: Effort | None) -> str | None:
    metadata = part.provider_metadata or {}
    if family_record(target.family).signed_blocks:
        if effort == "off":
            return THINKING_OFF
        return None if is_signed(metadata) else UNSIGNED
    if target.api == "responses":
        # Thoughts that are shown whole go back so: DeepSeek insists on it (api-docs.deepseek.com/guides/responses_api,
        # read 2026-11-22).
        if not text_in(metadata, "encrypted_content") and not objects_in(metadata, "content"):
            return UNSIGNED
        if not any(is_spoken(part) for part in message.parts[index + 1 :]):
            return UNFINISHED
    return None


def _has_thought_signature(message: Message) -> bool:
    """Returns whether any part of the answer carries a signature, which stands for thoughts where they are never shown
    whole."""
    return any((part.provider_metadata or {}).get("thought_signature") for part in message.parts)


def is_signed(metadata: Metadata) -> bool:
    """Returns whether a block carries what its provider checks: a signature, opaque data, or details with either."""
    if any(text_in(metadata, name) for name in ("signature", "data", "reasoning_opaque")):
        return True
    return any(one.get("signature") or one.get("data") for one in objects_in(metadata, "reasoning_details"))


def _status(reason: str | None, share: float, *, after_turn: bool) -> ReplayStatus:
    if reason is not None:
        return ReplayStatus(False, 0.0, reason)
    if share == 0.0:
        return ReplayStatus(True, 0.0, DROPPED_AFTER_TURN if after_turn else NOT_COUNTED)
    return ReplayStatus(True, share, RESENT)


def _of_message(
    message: Message, statuses: dict[int, ReplayStatus], lost: str | None, family: str, share: float, after_turn: bool
) -> ReplayStatus:
    """What holds for all reasoning of an answer, by the length of its parts where they differ."""
    if lost is None and not statuses and not carries_reasoning(message, family):
        lost = NEVER_SHOWN
    if lost is not None or not statuses:
        return _status(lost, share, after_turn=after_turn)
    values = list(statuses.values())
    if all(value == values[0] for value in values):
        return values[0]
    sizes = [len(getattr(message.parts[n], "text", "")) + 1 for n in statuses]
    counted = sum(v.counted * s for v, s in zip(values, sizes, strict=True)) / sum(sizes)
    worst = min(values, key=lambda v: (v.resent, v.counted))
    return ReplayStatus(any(v.resent for v in values), counted, worst.reason)


def _loop_note(loop: Sequence[SentMessage], plan: ReplayPlan, target: Target) -> str | None:
    """Claude with a budget of thinking refuses a tool loop whose first block is missing; that step then runs without
    thinking. Models that adapt their thinking take any history, so it stays on for them."""
    if not loops_whole(target) or not loop or loop[-1].message.role != "tool":
        return None
    answers = [item.message for item in loop if item.message.role == "assistant" and item.message.tool_calls]
    for message in answers:
        for n, part in enumerate(message.parts):
            status = plan.status(message.id, n)
            if status is not None and not status.resent and isinstance(part, ReasoningPart):
                return f"Thinking is off until your next message: {_CAUSES.get(status.reason, status.reason)}."
    if answers and not plan.resent(answers[0].id, 0):
        return "Thinking is off until your next message: this tool loop began without it."
    return None


def loops_whole(target: Target) -> bool:
    """Returns whether a tool loop is judged as a whole: the model thinks in it only where its first answer began so."""
    return family_record(target.family).loops_whole and not adaptive_thinking(target)


def adaptive_thinking(target: Target) -> bool:
    """Models that decide themselves how long to think; they take no token budget."""
    return at_least(target, family_record(target.family).adapts_from)


_CAUSES = {
    COMPACTED: "the context was compacted",
    FIXED_CHANGED: "the system prompt or the tools changed",
    OTHER_MODEL: "the model was changed",
    UNSIGNED: "an answer was cut off",
    LEFT_OUT: "this tool loop continued without it",
    REFUSED: "the server refused its reasoning",
}


class _Prefixes:
    """Rolling fingerprints of the view, computed once and only when some part asks."""

    def __init__(self, items: Sequence[SentMessage], fixed: str) -> None:
        self._items = items
        self._rolling = [fixed]
        self._compacted = False

    def difference(self, index: int, prefix: str) -> str | None:
        """Why what precedes message ``index`` now is not what ``prefix`` stands for; None when it is."""
        while len(self._rolling) <= index:
            item = self._items[len(self._rolling) - 1]
            self._rolling.append(_extend(self._rolling[-1], item.key))
            self._compacted = self._compacted or is_compacted(item)
        if self._rolling[index] == prefix:
            return None
        return COMPACTED if self._compacted else FIXED_CHANGED


def is_compacted(item: SentMessage) -> bool:
    """Returns whether this message is sent otherwise than it was first: cleared, clipped, or a summary."""
    return item.key.partition("#")[2].startswith(("cleared", "clip")) or any(
        isinstance(part, SummaryPart) for part in item.message.parts
    )


_ALWAYS_THINKS = re.compile(
    r"gpt-5(?!\.\d)|gpt-oss|(?:^|/)o[134](?:-|$)|gemini-(?:2\.5|3\S*)-pro|grok-4(?!-fast|\.)|deepseek-r1|thinking|minimax-m"
)
"""Models that refuse to be switched off; they are asked for the least instead (openrouter.ai/docs, reasoning)."""


def decide(request: ModelRequest, info: ModelInfo) -> tuple[ReplayPlan, Thinking]:
    """The replay rule applied to a request and the way its thinking is asked for, each knowing of the other."""
    messages, fixed, rule = request.messages, request.fixed_fingerprint, request.replay
    plan = plan_replay(messages, info.target, fixed, request.effort, rule)
    thinking = thinking_for(request, info, forced_off=plan.thinking_off)
    if thinking.off and request.effort != "off":
        # Without thinking, Claude's old blocks are of no use in this step.
        plan = plan_replay(messages, info.target, fixed, "off", rule)
    if info.target.api != "responses" and not any(tool.provider for tool in request.tools):
        # Blocks of a tool that is not declared.
        plan.searches = {}
    return plan, thinking


def thinking_for(request: ModelRequest, info: ModelInfo, forced_off: str | None = None) -> Thinking:
    """Returns how to ask this model to think as hard as the request says. ``forced_off`` is the replay rule's note when
    its open tool loop forbids thinking. Models that are not known to reason are asked for nothing."""
    if request.replay.needs("no thinking"):
        return Thinking(off=True)
    effort: Effort = "off" if forced_off else request.effort
    notes = (forced_off,) if forced_off and request.effort != "off" else ()
    target, model = info.target, info.target.model.lower()
    family, style = family_record(target.family), dialect_of(target.provider).thinking
    if family.thinking == "budget or effort":
        if info.reasoning is False or effort == "off" or _too_old(target, family):
            return Thinking(off=True, notes=notes)
        if style == "object":
            return Thinking(_field(info, effort).kwargs, notes=notes)
        drop, adapts = asks_to_drop(target, request.replay), adaptive_thinking(target)
        found = anthropic.thinking(request, info, effort, adapts=adapts, drop=drop)
        return replace(found, notes=(*notes, *found.notes))
    if target.api == "responses":
        return responses.thinking(info, effort, model)
    if style == "object":
        return _field(info, effort)
    if info.reasoning is False:
        return Thinking(off=effort == "off")
    known = info.reasoning is True
    if family.thinking == "budget or level":
        return gemini.thinking(request, effort, model, known)
    levels = family.thinking == "levels"
    switch: Metadata = {"thinking": {"type": "disabled" if effort == "off" else "enabled"}}
    match style:
        case "effort" if levels or is_openai_reasoning(model):
            return Thinking({"reasoning_effort": effort_word(model, effort)}, effort == "off")
        case "grok":
            # Only grok-3-mini takes it; the others refuse it.
            level = "low" if effort in ("off", "low") else "high"
            return Thinking({"reasoning_effort": level} if "grok-3-mini" in model else {}, False)
        case "levels" if levels:
            return Thinking({"reasoning_effort": "low" if effort == "off" else effort})
        case "switch" if known:
            return Thinking(switch, effort == "off")
        case "extra switch" if known:
            return Thinking({"extra_body": switch}, effort == "off")
        case "think" if known or ollama.THINKS.search(model):
            return Thinking({"reasoning_effort": "none" if effort == "off" else effort}, effort == "off")
    return Thinking(off=effort == "off")


def _too_old(target: Target, family: ModelFamily) -> bool:
    """Models below a certain version refuse to be asked for thinking; one without a version is taken for new."""
    known, floor = family.version(target.model), family.thinks_from
    return known is not None and floor is not None and known[1] < floor


def _field(info: ModelInfo, effort: Effort) -> Thinking:
    if info.reasoning is False or (effort == "off" and info.reasoning is None):
        return Thinking(off=effort == "off")
    wanted: Metadata = {"effort": effort}
    if effort == "off":
        wanted = {"effort": "low"} if _ALWAYS_THINKS.search(info.target.model.lower()) else {"enabled": False}
    return Thinking({"extra_body": {"reasoning": wanted, "usage": {"include": True}}}, effort == "off")
