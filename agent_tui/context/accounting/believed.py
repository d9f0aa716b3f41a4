"""Judges a report of a call's input by what was expected of it and by the reports before: whether it can be true, and
where a server counts in a way of its own, in which.

Each way (``WAYS``) is a formula of what the input is in truth. One that explains two reports in a row which the truth
does not explain is named; a report that nothing explains is only doubted until the next one. Our own estimate
never refuses a second report that grew as the conversation did.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from agent_tui.models.requests import Target
from agent_tui.models.steps import Doubt, Step
from agent_tui.models.usage import ABSURD_WINDOWS, TokenUsage
from agent_tui.records import dataclass

LOOKED_AT = 6
"""Reports that the newest is compared with, itself included."""

SPREADS = 2
LEAST_OFF = 32
"""A report is as expected up to so many spreads, and so many tokens, which templates may put around anything."""

DOUBTED = 0.2
"""A single report that nothing explains is believed when it is off by less than this share of what was expected: an
estimate that was wrong once is likelier than a server that is."""

FLAT = 0.3
FLAT_LEAST = 40
"""Reports that grow by less than this share of what was added, which is at least so many tokens, stand still."""

HALF = 0.5
"""No vocabulary makes so little of a text, compared with its estimate."""

AROUND = 0.1
"""Where our account is off by more than this share of what a report is away from it, chance may explain that."""

TIMES_OFF, TOKENS_OFF = 3, 2_000
"""An output, and what a refusal states, is not believed when our own count is over so many times, and tokens, off."""

CALLS = range(2, 9)
"""How many calls of the same size one report may add up, to be looked for."""

SHARP = 0.4
"""A report is far off from this share of our account on."""

GUESSED = 0.15
"""The spread of what versions before estimated, who stored none, as a share of it."""


@dataclass(slots=True, frozen=True)
class Report:
    """A report and our own account. ``own``: the whole input, which goes on from earlier reports that were as expected
    by what was added since; ``spread``: half the interval of what was ``expected``; ``measured``: ``own`` begins at a
    report, not at an estimate of the whole. ``text``: new text in it and prefix parts that changed, as estimated;
    ``grown``: what was surely added since the report before (reasoning may have been left out), 0 where that is not
    known. ``model``: as the answer names it; ``doubt``: why it was not believed; ``added``: tokens that the server was
    known to add."""

    step_id: str
    reported: int
    expected: int
    own: int
    spread: int
    measured: bool
    text: int = 0
    grown: int = 0
    cached: int = 0
    model: str = ""
    doubt: Doubt | None = None
    added: float = 0.0

    @property
    def room(self) -> int:
        """By how much a number may differ from what was expected and still be as expected."""
        return SPREADS * self.spread + LEAST_OFF

    @property
    def odd(self) -> bool:
        return not self.like(self.reported)

    @property
    def sharp(self) -> bool:
        """True where the report is so far off, and our account so sure, that what explains it does not by chance."""
        away = abs(self.reported - self.own)
        return away >= SHARP * self.own and self.room <= AROUND * away

    def like(self, tokens: int) -> bool:
        """Returns whether so many tokens are our account of the input."""
        return abs(tokens - self.own) <= self.room


@dataclass(slots=True, frozen=True)
class Verdict:
    """``doubt``: why the newest report is not believed; None when it is. ``truth``: the true inputs of it and of
    earlier reports, by step, where they are known better now: None is as it was reported; ``counted``: they are made of
    the provider's numbers alone. ``keeps``: tokens that a server keeps which leaves out the rest. ``always``: tokens
    that it adds to each request. ``taken_back``: the first step whose report was believed until now."""

    doubt: Doubt | None
    truth: Mapping[str, int | None]
    counted: bool = False
    keeps: int | None = None
    always: int | None = None
    taken_back: str | None = None


TRUE = Verdict(None, {})


class _Evidence(NamedTuple):
    """What the readings ask about. ``grew``: the newest report is more than the one ``before`` by what was added;
    ``named``: what the first way of counting says that explains it; ``known``: why the one before was not believed;
    ``told``: the server was named for it."""

    reports: Sequence[Report]
    newest: Report
    before: Report | None
    grew: bool
    named: Verdict | None
    known: Doubt | None
    told: bool


def judge(reports: Sequence[Report]) -> Verdict:
    """The verdict on the newest of the reports, which are in their order: that of the first reading which fits."""
    newest, before = reports[-1], reports[-2] if len(reports) > 1 else None
    grew, known = before is not None and _grew(before, newest), before.doubt if before is not None else None
    told = known not in (None, "doubted", "another model")
    seen = _Evidence(reports, newest, before, grew, _named(reports), known, told)
    return next(verdict for reading in READINGS if (verdict := reading(seen)) is not None)


def _truncated(seen: _Evidence) -> Verdict | None:
    cut = _cut(seen.reports)
    doubted = seen.named is None or seen.named.doubt == "doubted"
    if not cut or not (seen.known == "truncated" or (seen.known in (None, "doubted", "unsteady") and doubted)):
        return None
    return Verdict("truncated", {r.step_id: r.own for r in cut}, keeps=max(r.reported for r in seen.reports))


def _as_expected(seen: _Evidence) -> Verdict | None:
    if abs(seen.newest.reported - seen.newest.expected) > seen.newest.room:
        return None
    return _goes_on(seen.reports) or (_shifted(seen.reports) if seen.grew else TRUE)


def _in_a_way(seen: _Evidence) -> Verdict | None:
    """As a way of counting says: cached twice, cached left out, summed."""
    if (named := seen.named) is None or (seen.told and named.doubt == "doubted"):
        return None
    sharp = seen.newest.sharp or (seen.before is not None and seen.before.sharp)
    sure = named.doubt != "doubted" and (sharp or named.doubt == seen.known)
    return named if sure or not seen.grew else None


def _still_named(seen: _Evidence) -> Verdict | None:
    """A server that was named is believed again once two reports in a row grew as the conversation did."""
    if not seen.told or (seen.grew and len(seen.reports) > 2 and _grew(*seen.reports[-3:-1])):
        return None
    return Verdict(seen.known, {seen.newest.step_id: seen.newest.own})


def _grown(seen: _Evidence) -> Verdict | None:
    return _shifted(seen.reports) if seen.grew else None


def _other_model(seen: _Evidence) -> Verdict | None:
    newest, before = seen.newest, seen.before
    other = before is not None and newest.model and before.model and newest.model != before.model
    return Verdict("another model", {newest.step_id: newest.expected}) if other else None


def _near(seen: _Evidence) -> Verdict | None:
    """A server may count less than we think for reasons of its own; only what it said before is held against it."""
    newest, off = seen.newest, seen.newest.reported - seen.newest.expected
    possible = seen.before is None or newest.reported >= HALF * newest.expected
    near = abs(off) <= DOUBTED * newest.expected or (off < 0 and not newest.measured and possible)
    return TRUE if near else None


def _doubted(seen: _Evidence) -> Verdict:
    unsteady = len(seen.reports) > 2 and all(r.odd for r in seen.reports[-3:])
    return Verdict("unsteady" if unsteady else "doubted", {seen.newest.step_id: seen.newest.expected})


READINGS: tuple[Callable[[_Evidence], Verdict | None], ...] = (
    _truncated,
    _as_expected,
    _in_a_way,
    _still_named,
    _grown,
    _other_model,
    _near,
    _doubted,
)
"""What a report may say, in the order in which it is read: the first that fits holds."""


def _named(reports: Sequence[Report]) -> Verdict | None:
    """The first way of counting that explains the newest reports, and they are not true; one alone is doubted."""
    for way in WAYS:
        run: dict[str, int | None] = {}
        for number in range(len(reports) - 1, -1, -1):
            truth = way.truth(reports[number], reports[number - 1] if number else None)
            if truth is None or not reports[number].odd:
                break
            run[reports[number].step_id] = truth
        if len(run) < 2 and len(reports) > 1:
            run = _growing(reports, way) or run
        if run:
            return Verdict(way.doubt if len(run) > 1 else "doubted", run, way.counted)
    return None


def _growing(reports: Sequence[Report], way: _Way) -> dict[str, int | None]:
    """The two newest reports where they grow by what was added once they are read in a way of counting, and do not as
    they are: the first of them may have been believed because our estimate of it was wide."""
    before, newest = reports[-2:]
    found = [(_missed(before, newest, read), read) for read in way.guesses(reports) if _possible(before, read[0])]
    if not found or not newest.odd or _grew(before, newest):
        return {}
    missed, (first, second) = min(found)
    away = abs(newest.reported - second - (before.reported - first))
    tolerance = _tolerance(before, newest)
    # What was learned from the first of them may be wrong, so the second is not held to what that makes sure.
    explained = missed <= max(tolerance, AROUND * _missed(before, newest)) and second > 0
    sure = tolerance <= AROUND * away or (before.odd and newest.like(second))
    if not explained or not sure:
        return {}
    read = ((before, first), (newest, second))
    return {report.step_id: truth for report, truth in read if truth != report.reported}


def _possible(report: Report, truth: int) -> bool:
    return truth > 0 and abs(truth - report.expected) <= report.room


def _goes_on(reports: Sequence[Report]) -> Verdict | None:
    """The verdict on the report before, where our estimate of the newest is so wide that this may be true as well as
    counted in the same way."""
    if len(reports) < 2 or (known := reports[-2].doubt) is None:
        return None
    before, newest = reports[-2:]
    for way in WAYS:
        named = known == way.doubt
        truth = way.truth(before, reports[-3] if len(reports) > 2 else None)
        if truth is None or not (named or (known == "doubted" and before.odd)):
            continue
        for first, second in way.guesses(reports):
            told = abs(newest.reported - second) > LEAST_OFF and _possible(newest, second)
            if told and (named or before.like(first)):
                return Verdict(way.doubt, {before.step_id: truth, newest.step_id: second}, way.counted)
    return None


Guesses = Callable[[Sequence[Report]], list[tuple[int, int]]]


def _with_cached(sign: int, reports: Sequence[Report]) -> list[tuple[int, int]]:
    before, newest = reports[-2:]
    return [(before.reported + sign * before.cached, newest.reported + sign * newest.cached)]


def _of_sums(reports: Sequence[Report]) -> list[tuple[int, int]]:
    """The last of all calls until now, or one of so many of the same size."""
    before, newest = reports[-2:]
    earlier = reports[-3].reported if len(reports) > 2 else 0
    found = [(before.reported - earlier, newest.reported - before.reported)]
    # One that adds up several calls may be of a call that was made again; the next is none then.
    if before.odd and (newest.odd or before.doubt == "summed"):
        found += [(before.reported // times, newest.reported // times) for times in CALLS]
    return found


def _none(reports: Sequence[Report]) -> list[tuple[int, int]]:
    return []


def _cached(sign: int, report: Report, before: Report | None) -> int | None:
    truth = report.reported + sign * report.cached
    return truth if report.cached > report.room and report.like(truth) else None


def _only_new(report: Report, before: Report | None) -> int | None:
    return report.own if report.measured and report.reported < FLAT * report.own else None


def _several(report: Report, before: Report | None) -> int | None:
    """So many calls of the same size, or the sum of all calls until now."""
    times = round(report.reported / max(1, report.own))
    near = abs(report.reported - times * report.own) <= min(times * report.room, report.own // 4)
    if times >= 2 and near:
        return report.own
    more = report.reported - before.reported if before is not None else 0
    return report.own if more > 0 and report.like(more) else None


class _Way(NamedTuple):
    """A way of counting: ``truth`` gives the true input of a report that was counted so, None of others; ``guesses``
    what the two newest would be if they were."""

    doubt: Doubt
    truth: Callable[[Report, Report | None], int | None]
    guesses: Guesses = _none
    counted: bool = False


WAYS = (
    _Way("cached twice", partial(_cached, -1), partial(_with_cached, -1), counted=True),
    _Way("cached left out", partial(_cached, 1), partial(_with_cached, 1), counted=True),
    _Way("cached left out", _only_new),
    _Way("summed", _several, _of_sums),
)


def _grew(before: Report, newest: Report) -> bool:
    """Returns whether the second report is more than the first by what was added, and not merely as large."""
    more, added = newest.reported - before.reported, newest.own - before.own
    return _missed(before, newest) <= _tolerance(before, newest) and (more > 0) == (added > 0)


def _missed(before: Report, newest: Report, inputs: tuple[int, int] | None = None) -> int:
    """By how much the growth from the first to the second, or between the ``inputs``, is not what was added."""
    first, second = inputs or (before.reported, newest.reported)
    return abs(second - first - (newest.own - before.own))


def _tolerance(before: Report, newest: Report) -> float:
    # Both are expected by the same estimates, as far as those are of the same text.
    estimated = newest.text if newest.measured else newest.own
    spread = newest.spread * min(1.0, abs(newest.own - before.own) / max(1, estimated))
    return SPREADS * spread + LEAST_OFF


def _shifted(reports: Sequence[Report]) -> Verdict:
    """Both of the newest reports are true: what is always more, or less, than expected is the server's own."""
    before, newest = reports[-2:]
    more = before.reported - before.own
    # What the texts may make, were they counted otherwise, is no constant of the server.
    others = min(2 * before.text, max(before.text, 2 * before.room))
    sure = before.odd and not before.measured and abs(more) > others
    always = round(before.added) + more if sure else None
    return Verdict(None, {before.step_id: None, newest.step_id: None}, always=always)


def _cut(reports: Sequence[Report]) -> list[Report]:
    """The newest reports in which text that was sent is missing, where two in a row show it; else none.

    Either they stand still while text is added; or one grew by less than what was added can have, and the next has not
    caught up. What a server keeps is never far below what it took before.
    """
    newest, pairs = reports[-1], list(itertools.pairwise(reports))
    if newest.reported < FLAT * max(r.reported for r in reports):
        return []
    behind = [after for _, after in itertools.takewhile(_is_behind, reversed(pairs))]
    odd = list(itertools.takewhile(lambda r: r.odd, reversed(reports)))
    for count in range(2, len(behind) + 1):
        run, first = behind[:count], reports[-count - 1]
        added, more = sum(r.grown for r in run), newest.reported - first.reported
        still = abs(more) <= FLAT * first.reported and more <= FLAT * added
        equal = all(r.reported == first.reported for r in run)
        if equal or (still and added >= max(FLAT_LEAST, 2 * math.hypot(*(r.spread for r in run)))):
            found = max(run, odd, key=len)
            # The first of equal reports was as large as the server keeps, too: its input is as was expected.
            return [*found, replace(first, own=first.expected)] if equal and first not in found else found
    for before, report in pairs[:-1]:
        missing = HALF * report.grown - (report.reported - before.reported)
        if report.grown and report in odd and missing > report.spread and newest.own - newest.reported >= missing:
            return odd
    return []


def _is_behind(pair: tuple[Report, Report]) -> bool:
    before, report = pair
    more = report.reported - before.reported
    return report.grown > 0 and (more == 0 or more < report.grown - report.spread)


def reports_of(steps: Sequence[Step], target: Target) -> list[Report]:
    """The newest reports of a model's calls in a session, with our account of each; the last is that of the newest
    step."""
    chosen = list(itertools.islice((s for s in reversed(steps) if _reports(s, target)), LOOKED_AT))[::-1]
    found: dict[str, Report] = {}
    accounts: dict[str, int] = {}
    before: Step | None = None
    for step in chosen:
        usage, expected = step.usage, step.estimated_input
        assert usage is not None and expected is not None, "only such steps are chosen"
        base = found.get(step.anchor_step or "") if step.built_on is not None else None
        added = expected - (step.built_on or 0)
        spread = step.estimated_spread if step.estimated_spread is not None else round(GUESSED * added)
        own = expected if base is None else base.own + added
        accounts[step.id] = expected if base is None else accounts[base.step_id] + added
        grown = 0
        alike = step.anchor_step is None and before is not None and before.anchor_step is None
        if before is not None and (base is not None or alike):
            grown = max(0, accounts[step.id] - accounts[before.id] - _may_be_gone(before))
        report = Report(
            step.id,
            usage.input,
            expected,
            own,
            spread,
            step.anchor_step is not None,
            (step.estimated_growth or 0) + abs(step.estimated_change[0] if step.estimated_change is not None else 0),
            grown,
            usage.cache_read or 0,
            step.answered_by or "",
            step.doubt,
            _added(step),
        )
        # Our account goes on from what is believed: small errors must not add up.
        if step is not chosen[-1] and step.doubt is not None and step.counted is not None and step.counted.anchors:
            report = replace(report, own=step.counted.input)
        elif not report.odd:
            report = replace(report, own=usage.input)
        found[step.id] = report
        before = step
    return list(found.values())


def _reports(step: Step, target: Target) -> bool:
    usage, complete = step.usage, step.kind == "turn" and step.status == "complete"
    if not complete or usage is None or usage.source != "provider" or not usage.context or usage.input <= 0:
        return False
    same = (step.model, step.provider, step.api) == (target.model, target.provider, target.api)
    return same and step.estimated_input is not None


def _added(step: Step) -> float:
    known = step.given.calibration if step.given is not None else None
    return known.added if known is not None else 0.0


def _may_be_gone(step: Step | None) -> int:
    """Tokens of an answer that the next request may not hold: its reasoning."""
    usage = step.counted if step is not None else None
    if step is None or usage is None:
        return 0
    thought = usage.output if step.thinking not in (None, "off") and usage.reasoning is None else 0
    return usage.reasoning or thought


def believe(steps: Sequence[Step], target: Target, window: int | None, answer: int) -> Verdict:
    """Judge the report of the newest step, which has ended, and store with it and those before what is believed. The
    ``truth`` of the verdict names the steps of which something else is believed than before.

    ``answer`` is our estimate of what came back, in tokens. A report that did not come, and more than the window can
    hold, are of no use to any account.
    """
    step = steps[-1]
    usage = step.usage
    if usage is None or usage.source != "provider":
        step.doubt = "none" if usage is not None else None
        return Verdict(step.doubt, {})
    if (step.believed is not None or absurd(usage, window)) and not _as_long_as_sent(step, usage):
        step.believed = step.believed or _estimate(step.estimated_input or 0, answer)
        step.doubt = "absurd"
        return Verdict(step.doubt, {})
    step.believed, step.doubt = _with_output(usage, answer), None
    if not _reports(step, target):
        return TRUE
    verdict = judge(reports_of(steps, target))
    if verdict.always is not None:
        _only_growth(step, next(other for other in reversed(steps[:-1]) if other.id in verdict.truth))
    by_id = {s.id: s for s in steps if s.id in verdict.truth}
    taken_back = next((s.id for s in by_id.values() if s is not step and s.doubt is None), None)
    changed: dict[str, int | None] = {}
    for step_id, truth in verdict.truth.items():
        told = by_id[step_id]
        before = told.believed, told.doubt
        assert told.usage is not None, "only steps with a report are judged"
        made = told.believed if told.believed is not None and told.believed.output_source == "estimated" else told.usage
        if truth is None:
            told.believed = made if made is not told.usage and told.doubt is None else None
            told.doubt = None
        else:
            told.believed = replace(made, input=truth) if verdict.counted else _estimate(truth, made.output)
            told.doubt = verdict.doubt
        if (told.believed, told.doubt) != before:
            changed[step_id] = truth
    return replace(verdict, truth=changed, taken_back=taken_back if verdict.doubt is not None else None)


def _only_growth(step: Step, before: Step) -> None:
    """Store what is learned from the second of two whole inputs that had a constant beside them: what it grew by."""
    if step.growth is None or before.growth is None or step.known_input is None or before.known_input is None:
        return
    content = step.growth.copy()
    content.add(before.growth, -1)
    # The texts of the first are the same in both.
    content.squares = max(0.0, step.growth.squares - before.growth.squares)
    content.rough = max(0.0, step.growth.rough - before.growth.rough)
    step.growth = content.rounded()
    step.known_input += (before.usage.input if before.usage is not None else 0) - before.known_input


def far_off(estimate: int, stated: int) -> bool:
    """Returns whether a number of tokens that a refusal states is too far from our own to be believed."""
    low, high = sorted((estimate, stated))
    return high > TIMES_OFF * low and high - low > TOKENS_OFF


def _as_long_as_sent(step: Step, usage: TokenUsage) -> bool:
    """Returns whether a report is about what was sent by our own account, so that the window may be what is wrong."""
    expected = step.estimated_input or 0
    return 0 < usage.input <= ABSURD_WINDOWS * expected and usage.output >= 0 and usage.context


def absurd(usage: TokenUsage, window: int | None) -> bool:
    """Returns whether so much cannot have been sent at all. A sum of several rounds may be as long as it likes."""
    return bool(window) and usage.context and usage.input + usage.output > ABSURD_WINDOWS * (window or 0)


def _estimate(tokens: int, output: int) -> TokenUsage:
    return TokenUsage(tokens, output, source="estimated", reasoning_source="estimated", output_source="estimated")


def _with_output(usage: TokenUsage, answer: int) -> TokenUsage | None:
    """The report with our estimate of the output where it says next to nothing of a full answer; else None."""
    if not answer or (usage.output and not (answer > usage.output and far_off(answer, usage.output))):
        return None
    reasoning = usage.reasoning or None
    return replace(usage, output=max(answer, reasoning or 0), reasoning=reasoning, output_source="estimated")
