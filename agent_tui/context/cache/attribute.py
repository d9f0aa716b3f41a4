"""Why a step read less from its provider's cache than earlier steps had left there, and what that cost.

False alarms are worse than silence: nothing is said below ``LEAST_TOKENS`` or a tenth of the input, of providers that
do not say what they read, and before a provider has shown that it caches at all. Nothing is guessed: ``expired`` is
what its documentation says is gone, ``unknown`` means that our bytes were the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from agent_tui.context.cache.expected import Reach, Sizes, comparable, life_of, reaches, same_cache
from agent_tui.context.cache.paths import SentPaths
from agent_tui.context.cache.prefix import (
    CACHE_KEY,
    MODEL,
    SERVER,
    Difference,
    differing_settings,
    fixed_difference,
    fixed_words,
    message_difference,
    model_of,
    sent_fixed,
    setting_difference,
)
from agent_tui.models.cache import CacheMiss, MissCause
from agent_tui.models.steps import Step
from agent_tui.models.usage import Prices, TokenUsage
from agent_tui.providers.dialects.record import Caching
from agent_tui.text.numbers import duration

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
    paths: SentPaths,
    caching: Caching,
    sizes: Sizes,
    prices: Prices,
    summaries: Collection[str] = (),
) -> Judged:
    """What of a finished step's input should have been read, and why it was not. ``earlier`` are the session's steps
    before it, oldest first; ``paths`` has all of them; ``summaries`` are the ids of messages that stand for compacted
    ones."""
    newest = next((s for s in reversed(earlier) if comparable(s)), None)
    if newest is None or step.counted is None or paths.end(step) is None:
        return NOTHING
    if (read := read_of(step, earlier, newest, caching)) is None:
        return NOTHING
    found = reaches(step, earlier, paths, caching, sizes)
    could = max((reach.tokens for reach in found), default=0)
    alive = max((r.tokens for r in found if r.alive(step.created, caching.gone)), default=0)
    difference = changed(step, newest, paths, summaries)
    ours = "" if difference is None else difference.what
    expected = min(
        max(could, repeated(step, newest, paths, sizes)) if matters(difference, caching) else could, step.counted.input
    )
    short = expected - read
    if short < LEAST_TOKENS or short < LEAST_SHARE * step.counted.input:
        return Judged(expected)
    cause, what = cause_of(step, newest, caching, ours, Parts(expected, could, alive, read, found))
    return Judged(expected, CacheMiss(cause, what, expected, read, extra_cost(step.counted, short, prices)))


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
    """Whether a call was read from a cache or written to it."""
    return usage is not None and bool(usage.cache_read or usage.cache_write)


def repeated(step: Step, newest: Step, paths: SentPaths, sizes: Sizes) -> int:
    """Tokens of a step's input that the newest one had sent too, wherever they stood in it, and no more than that one
    had; of another model's, all that was said before."""
    end, begun = paths.end(step), paths.end(newest)
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
        keys = set(paths.messages(begun).keys)
        for number, key in enumerate(paths.messages(end).keys):
            if key in keys:
                tokens += sizes.messages(number + 1) - sizes.messages(number)
        return tokens
    shared = paths.shared(end, begun)
    tokens += sizes.messages(shared) - sizes.messages(0)
    left = Counter(paths.digests(begun, shared))
    for number, digest in enumerate(paths.digests(end, shared), shared):
        if left[digest] > 0:
            left[digest] -= 1
            tokens += sizes.messages(number + 1) - sizes.messages(number)
    return min(tokens, newest.counted.input)


@dataclass(slots=True, frozen=True)
class Parts:
    """What was expected, what of it could be read whatever time had passed, what was still alive, what was read."""

    expected: int
    could: int
    alive: int
    read: int
    found: Sequence[Reach]


def cause_of(
    step: Step,
    newest: Step,
    caching: Caching,
    ours: str,
    parts: Parts,
) -> tuple[MissCause, str]:
    """Why less was read than expected, with words; ``ours`` is what differs from the newest step (``changed``)."""
    least = max(LEAST_TOKENS, LEAST_SHARE * (step.counted.input if step.counted is not None else 0))
    idle = step.created - newest.created
    life = life_of(newest, caching)
    limit = life if life is not None else caching.gone
    # What had expired anyway was not lost by a change; another model never had it.
    over = limit is not None and idle > limit and same_cache(step, newest)
    by_time = max(0, parts.could - parts.alive)
    by_us = max(0, parts.expected - max(parts.could, parts.read))
    if over and parts.alive - parts.read < least:
        return "expired", f"idle for {duration(idle)}"
    if ours and (by_us >= least or (by_time >= least and not over)):
        return "ours", ours
    if by_time >= least and parts.alive - parts.read < least:
        touched = max(reach.touched for reach in parts.found)
        return "expired", f"idle for {duration(step.created - touched)}"
    # Whether a setting matters to the cache is not always documented: it is named where it may.
    return ("ours", ours) if ours else ("unknown", "")


def matters(difference: Difference | None, caching: Caching) -> bool:
    """Whether all that was repeated could have been read but for a difference. Where we changed nothing that is known
    to cost the cache, no more can be missing than could be read: providers leave out old reasoning themselves."""
    if difference is None or difference.where != "setting":
        return difference is not None
    return difference.name in (MODEL, SERVER) or difference.name in caching.loses


def changed(step: Step, before: Step, paths: SentPaths, summaries: Collection[str] = ()) -> Difference | None:
    """What of ours differs first from an earlier step, of the fixed parts in words for all; None where it only goes on
    from it."""
    names = differing_settings(before, step)
    first = next((name for name in names if name in (MODEL, SERVER)), None)
    if first is not None:
        return setting_difference(first, before, step)
    fixed = fixed_difference(sent_fixed(before), sent_fixed(step))
    if fixed is not None:
        return replace(fixed, what=fixed_words(sent_fixed(before), sent_fixed(step)))
    # A cache key is no part of the prompt: it says where the provider looks, and what is another there comes first.
    setting = next((name for name in names if name != CACHE_KEY), None)
    if setting is not None:
        return setting_difference(setting, before, step)
    end, begun = paths.end(step), paths.end(before)
    if end is None or begun is None:
        return None
    messages = message_difference(paths, begun, end, summaries)
    return setting_difference(CACHE_KEY, before, step) if messages is None and names else messages


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
