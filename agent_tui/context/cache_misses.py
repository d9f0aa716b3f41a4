"""Judges what of a request a provider's cache should have given back, and why it gave less.

The facts, with the documentation they are from, are in ``providers.dialects``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from agent_tui.context.anchor import differences
from agent_tui.context.request_differences import (
    CACHE_KEY,
    COMPACTED,
    IMAGES,
    MODEL,
    OTHERWISE,
    SERVER,
    TTL,
    Difference,
    SentHistory,
    differing_settings,
    edit_words,
    fixed_difference,
    fixed_words,
    message_difference,
    model_of,
    named,
    same_fixed,
    sent_fixed,
    setting_difference,
)
from agent_tui.models.steps import CacheMiss, MissCause, Step
from agent_tui.models.usage import Prices, TokenUsage
from agent_tui.providers.dialects.record import HOUR, Caching
from agent_tui.records import dataclass
from agent_tui.text.numbers import duration


def life_of(step: Step, caching: Caching) -> float | None:
    """Seconds that what a step left in the cache is kept without being used; None where that is not known for sure.
    The clock runs from the beginning of the request."""
    usage = step.counted
    if caching.life is None or usage is None:
        return None
    if usage.cache_write_1h:
        return HOUR
    # Asked for an hour, and nobody says that it was written for less.
    return HOUR if wants_hour(step) and not (usage.cache_write and usage.cache_write_1h == 0) else caching.life


def wants_hour(step: Step) -> bool:
    """Returns whether a request asks its provider to keep it for an hour."""
    return step.sent is not None and step.sent.settings.get(TTL) == "1h"


def held(step: Step, caching: Caching) -> int:
    """Tokens of a step's input that its provider keeps."""
    usage = step.counted
    if usage is None or usage.source != "provider" or not usage.context:
        return 0
    if caching.keeping == "markers":
        read, write = usage.cache_read, usage.cache_write
        kept = usage.input if read is None or write is None else read + write
        return kept if kept >= caching.minimum else 0
    return usage.input if usage.input >= caching.minimum else 0


@dataclass(slots=True, frozen=True)
class PrefixSizes:
    """Tokens of the beginnings of a request: of its first fixed parts in the order on the wire, and of all of them with
    its first messages. They are asked for only where a request is not just longer than the one before."""

    fixed: Callable[[int], int]
    messages: Callable[[int], int]


@dataclass(slots=True, frozen=True)
class Reach:
    """The part of a request that an earlier step left in the cache. ``tokens`` can be read as long as it lives;
    ``touched`` is when that was last used, ``life`` how long it is kept from then on. ``place`` is the number of
    messages before its end. ``whole``: the request begins with all of that step, and the tokens are no estimate."""

    step: Step
    tokens: int
    touched: float
    life: float | None
    place: int
    whole: bool

    def alive(self, now: float, gone: float | None) -> bool:
        """False only where it is documented that it is gone."""
        limit = self.life if self.life is not None else gone
        return limit is None or now - self.touched <= limit


def reaches(
    step: Step, earlier: Sequence[Step], history: SentHistory, caching: Caching, sizes: PrefixSizes, most: int = 32
) -> list[Reach]:
    """Returns what earlier steps, newest first, left for this one in the same cache. Where it goes on from the newest
    of them no other is looked at; beyond ``most`` of them only those that end where this one has a marker, up to the
    first that it goes on from: what they left is known to the token."""
    found: list[Reach] = []
    marks, looked = step.sent.marks if step.sent is not None else [], 0
    for other in reversed(earlier):
        sent = other.sent_keys
        if looked >= most and (sent is None or sent.kept + len(sent.keys) not in marks):
            continue
        if not arrived(other) or not same_cache(other, step):
            continue
        new = reach(step, other, history, caching, sizes)
        found, looked = found + new, looked + 1
        if any(one.whole for one in new) and (looked == 1 or looked > most):
            break
    known = {one.place: one.tokens for one in found if one.whole}
    return [replace(one, tokens=known.get(one.place, one.tokens)) for one in found]


def arrived(step: Step) -> bool:
    """Returns whether it is known what a step sent, and that it arrived: a summary asked for as the next message of the
    conversation, too."""
    return step.sent is not None and step.counted is not None and step.status != "running"


def comparable(step: Step) -> bool:
    """The same of the steps that the next one goes on from."""
    return step.kind == "turn" and arrived(step)


def same_cache(one: Step, other: Step) -> bool:
    """Returns whether two steps went to the same model at the same place."""
    return not {MODEL, SERVER} & set(differing_settings(one, other))


def reach(step: Step, other: Step, history: SentHistory, caching: Caching, sizes: PrefixSizes) -> list[Reach]:
    """Returns what one earlier step left for this one: with markers every marked place is kept by itself."""
    end, begun = history.of(step), history.of(other)
    if end is None or begun is None or step.sent is None or other.sent is None:
        return []
    life = life_of(other, caching)
    losses = {caching.loses.get(name) for name in differing_settings(other, step)}
    mine, theirs = sent_fixed(step), sent_fixed(other)
    same = same_fixed(theirs, mine)
    fixed_whole = same == len(mine) == len(theirs)
    if "all" in losses:
        return []
    depth = 0
    if fixed_whole and "messages" not in losses:
        depth = _counted(step, other, end.shared(begun))
    whole = fixed_whole and depth == len(begun.digests)
    if caching.keeping == "ends" and not whole:
        return []
    if caching.keeping != "markers":
        if whole:
            tokens = held(other, caching)
        else:
            tokens = sizes.messages(depth) if fixed_whole else sizes.fixed(same)
        enough = tokens and tokens >= caching.minimum
        return [Reach(other, tokens, other.created, life, depth, whole)] if enough else []
    found: list[Reach] = []
    for mark in other.sent.marks:
        if mark > depth:
            continue
        before_documents = sum(part.row != "documents" for part in mine)
        if not mark and same < min(before_documents, sum(part.row != "documents" for part in theirs)):
            continue
        last = whole and mark == other.sent.marks[-1]
        tokens = held(other, caching) if last else sizes.messages(mark) if mark else sizes.fixed(before_documents)
        if tokens >= caching.minimum:
            found.append(Reach(other, tokens, other.created, life, mark, last))
    return sorted(found, key=lambda one: -one.tokens)


def _counted(step: Step, other: Step, depth: int) -> int:
    """Returns how many of the first ``depth`` messages the provider read alike: where it leaves out what it was sent of
    earlier reasoning, the prompt that it reads differs from there on, although what we sent is the same."""
    if other.sent_reasoning is None or step.sent_reasoning is None:
        return depth
    first = next(differences(other.sent_reasoning, step.sent_reasoning, depth), None)
    return depth if first is None else min(depth, first[0])


LEAST_TOKENS = 2_000
LEAST_SHARE = 0.1
"""Less than so much, and less than such a share of the input, is not worth a word."""


@dataclass(slots=True, frozen=True)
class Judged:
    """``expected``: tokens of a step's input that earlier steps had sent to where it could be read; None where that is
    not known, or the provider does not tell what it reads."""

    expected: int | None = None
    miss: CacheMiss | None = None


NOTHING = Judged()


def judge(
    step: Step,
    earlier: Sequence[Step],
    history: SentHistory,
    caching: Caching,
    sizes: PrefixSizes,
    prices: Prices,
    summaries: Collection[str] = (),
) -> Judged:
    """Returns what of a finished step's input should have been read, and why it was not. ``earlier`` are the session's
    steps before it, oldest first; ``history`` has all of them; ``summaries`` are the ids of messages that stand for
    compacted ones."""
    newest = next((s for s in reversed(earlier) if comparable(s)), None)
    if newest is None or step.counted is None or history.of(step) is None:
        return NOTHING
    if (read := read_of(step, earlier, newest, caching)) is None:
        return NOTHING
    repeats = repeats_of(step, step.counted.input, newest, earlier, history, caching, sizes, summaries)
    short = repeats.expected - read
    if short < LEAST_TOKENS or short < LEAST_SHARE * step.counted.input:
        return Judged(repeats.expected)
    alive = most(reach for reach in repeats.found if reach.alive(step.created, caching.gone))
    cause, what = cause_of(step, newest, caching, repeats, alive, read)
    cost = extra_cost(step.counted, short, prices)
    return Judged(repeats.expected, CacheMiss(cause, what, repeats.expected, read, cost))


@dataclass(slots=True, frozen=True)
class Repeats:
    """What of a step's input had been sent before, in tokens."""

    expected: int
    """What should be read again."""
    could: int
    """What could be read, whatever time passes."""
    found: Sequence[Reach]
    ours: str
    """What of ours differs first from the newest step, in words."""


def repeats_of(
    step: Step,
    total: int,
    newest: Step,
    earlier: Sequence[Step],
    history: SentHistory,
    caching: Caching,
    sizes: PrefixSizes,
    summaries: Collection[str],
) -> Repeats:
    """Returns what of the ``total`` tokens of a step's input had been sent before."""
    found = reaches(step, earlier, history, caching, sizes)
    could = most(found)
    difference = changed(step, newest, history, summaries)
    again = max(could, repeated(step, newest, history, sizes)) if matters(difference, caching) else could
    return Repeats(min(again, total), could, found, "" if difference is None else difference.what)


def most(found: Iterable[Reach]) -> int:
    """The tokens of the longest."""
    return max((reach.tokens for reach in found), default=0)


def read_of(step: Step, earlier: Sequence[Step], newest: Step, caching: Caching) -> int | None:
    """The tokens that a step read from the cache, where its provider tells them and has shown that it caches; where it
    was switched to, it need not have shown that yet."""
    usage = step.counted
    if step.kind != "turn" or usage is None or usage.source != "provider" or not usage.context:
        return None
    shown = caches(usage) or any(caches(s.counted) for s in reversed(earlier) if s.provider == step.provider)
    if usage.cache_read is None:
        return 0 if shown and caching.zero_unsaid else None
    return usage.cache_read if shown or model_of(newest) != model_of(step) else None


def caches(usage: TokenUsage | None) -> bool:
    """Returns whether a call read from a cache or wrote to it."""
    return usage is not None and bool(usage.cache_read or usage.cache_write)


def repeated(step: Step, newest: Step, history: SentHistory, sizes: PrefixSizes) -> int:
    """Tokens of a step's input that the newest one had sent too, wherever they stood in it, and no more than that one
    had; of another model's, all that was said before."""
    end, begun = history.of(step), history.of(newest)
    if end is None or begun is None or newest.counted is None:
        return 0
    known = Counter(part.fingerprint for part in sent_fixed(newest))
    tokens = 0
    for number, part in enumerate(sent_fixed(step)):
        if known[part.fingerprint] > 0:
            known[part.fingerprint] -= 1
            tokens += sizes.fixed(number + 1) - sizes.fixed(number)
    if not same_cache(step, newest):
        # Another model may get the same messages in another form.
        keys = set(begun.keys)
        for number, key in enumerate(end.keys):
            if key in keys:
                tokens += sizes.messages(number + 1) - sizes.messages(number)
        return tokens
    shared = end.shared(begun)
    tokens += sizes.messages(shared) - sizes.messages(0)
    left = Counter(begun.digests[shared:])
    for number, digest in enumerate(end.digests[shared:], shared):
        if left[digest] > 0:
            left[digest] -= 1
            tokens += sizes.messages(number + 1) - sizes.messages(number)
    return min(tokens, newest.counted.input)


def cause_of(
    step: Step, newest: Step, caching: Caching, repeats: Repeats, alive: int, read: int
) -> tuple[MissCause, str]:
    """Why less was read than expected, with words; ``alive`` tokens were still kept."""
    ours = repeats.ours
    least = max(LEAST_TOKENS, LEAST_SHARE * (step.counted.input if step.counted is not None else 0))
    idle = step.created - newest.created
    life = life_of(newest, caching)
    limit = life if life is not None else caching.gone
    # What had expired anyway was not lost by a change; another model never had it.
    over = limit is not None and idle > limit and same_cache(step, newest)
    by_time = max(0, repeats.could - alive)
    by_us = max(0, repeats.expected - max(repeats.could, read))
    if over and alive - read < least:
        return "expired", f"idle for {duration(idle)}"
    if ours and (by_us >= least or (by_time >= least and not over)):
        return "ours", ours
    if by_time >= least and alive - read < least:
        touched = max(reach.touched for reach in repeats.found)
        return "expired", f"idle for {duration(step.created - touched)}"
    # Whether a setting matters to the cache is not always documented: it is named where it may.
    if ours:
        return "ours", ours
    late = caching.sure is not None and idle > caching.sure
    return "unknown", f"idle for {duration(idle)}, kept for at least {duration(caching.sure or 0.0)}" if late else ""


def matters(difference: Difference | None, caching: Caching) -> bool:
    """Returns whether all that was repeated could have been read but for a difference. Where we changed nothing that is
    known to cost the cache, no more can be missing than could be read: providers leave out old reasoning themselves."""
    if difference is None or difference.where != "setting":
        return difference is not None
    return difference.name in (MODEL, SERVER) or difference.name in caching.loses


def changed(step: Step, before: Step, history: SentHistory, summaries: Collection[str] = ()) -> Difference | None:
    """Returns what of ours differs from an earlier step, all of it in words; None where it only goes on from it. What
    was done to the conversation is named first: it often brings the rest with it, as a compaction does that has
    files read anew."""
    names = differing_settings(before, step)
    first = next((name for name in names if name in (MODEL, SERVER)), None)
    if first is not None:
        return setting_difference(first, before, step)
    end, begun = history.of(step), history.of(before)
    messages = message_difference(history, begun, end, step, summaries) if end and begun else None
    if messages is not None and messages.what != COMPACTED and (edit := edit_words(before.prune_ids, step.prune_ids)):
        messages = replace(messages, what=edit)
    found = [messages] if messages is not None and messages.what != OTHERWISE else []
    fixed = fixed_difference(sent_fixed(before), sent_fixed(step))
    if fixed is not None:
        found.append(replace(fixed, what=fixed_words(sent_fixed(before), sent_fixed(step))))
    found += [setting_difference(name, before, step) for name in names if name not in (CACHE_KEY, IMAGES)]
    if found:
        return replace(found[0], what=named([one.what for one in found]))
    if messages is not None:
        return messages
    # A cache key is no part of the prompt: it says where the provider looks, and what is another there comes first.
    return setting_difference(names[-1], before, step) if names else None


def extra_cost(usage: TokenUsage, short: int, prices: Prices) -> float | None:
    """Dollars that a step cost more than if ``short`` tokens more had been read; None where a price is not known."""
    write = usage.cache_write
    less = min(write or 0, short)
    hour = usage.cache_write_1h
    would = replace(
        usage,
        cache_read=(usage.cache_read or 0) + short,
        cache_write=None if write is None else write - less,
        cache_write_1h=None if hour is None else max(0, hour - less),
    )
    paid, otherwise = prices.cost(usage), prices.cost(would)
    return None if paid is None or otherwise is None else max(0.0, paid - otherwise)
