"""What a step sent of the reasoning of earlier answers: stored with it, compactly, and read again.

This is about the past, as it was; how many tokens that reasoning has, and which of it the *next* request brings back,
is in ``context.accounting.reasoning``.

A run ``[index, share, resent]`` says of all answers with reasoning from that index of the view on, up to the next run,
which share of it the provider counts and whether it was sent at all. A conversation of thousands of answers has a
handful of runs: what was left out, what was kept, the open turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from agent_tui.context.sent.anchor import SentPrefixes
from agent_tui.context.sent.result_states import ResultStates
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import SentRun, Step
from agent_tui.providers.dialects.encoding import ReplayPlan
from agent_tui.providers.reasoning import carries_reasoning


def runs_of(view: Sequence[SentMessage], plan: ReplayPlan, family: str) -> list[SentRun]:
    """The runs of a request that is sent with this plan."""
    runs: list[SentRun] = []
    for index, item in enumerate(view):
        message = item.message
        if message.role != "assistant" or not carries_reasoning(message, family):
            continue
        status = plan.message_status(message.id)
        share = round(status.counted, 4) if status is not None else 0.0
        sent = int(status is not None and status.resent)
        if not runs or (runs[-1][1], runs[-1][2]) != (share, sent):
            runs.append((index, share, sent))
    return runs


def without(runs: Sequence[SentRun], dropped: Sequence[int], end: int) -> list[SentRun]:
    """The runs after the provider said that it dropped the blocks of the answers at these indexes."""
    result = list(runs)
    for index in sorted(dropped):
        after = run_at(result, index + 1)
        result = [r for r in result if r[0] not in (index, index + 1)]
        result.append((index, 0.0, 0))
        if index + 1 < end and after is not None:
            result.append((index + 1, after[1], after[2]))
        result.sort(key=lambda run: run[0])
    joined: list[SentRun] = []
    for run in result:
        if not joined or joined[-1][1:] != run[1:]:
            joined.append(run)
    return joined


def dropped_indexes(view: Sequence[SentMessage], paths: Sequence[str]) -> list[int]:
    """Answers whose blocks a provider names by their places in the request, ``messages.1.content.0``. On the wire
    neighbours of one side are one message, and results are the user's."""
    named = {int(p[1]) for path in paths if len(p := path.split(".")) > 1 and p[0] == "messages" and p[1].isdigit()}
    if not named:
        return []
    found: list[int] = []
    place, side = -1, ""
    for index, item in enumerate(view):
        own = "assistant" if item.message.role == "assistant" else "user"
        if own != side:
            place, side = place + 1, own
        if own == "assistant" and place in named:
            found.append(index)
    return found


def run_at(runs: Sequence[SentRun], index: int) -> SentRun | None:
    """The run an answer at an index belongs to; None before the first."""
    number = bisect_right(runs, index, key=lambda run: run[0])
    return runs[number - 1] if number else None


def share_at(runs: Sequence[SentRun], index: int) -> float:
    run = run_at(runs, index)
    return run[1] if run is not None else 0.0


def differences(before: Sequence[SentRun], after: Sequence[SentRun], end: int) -> Iterator[tuple[int, int, float]]:
    """Stretches ``[start, stop)`` below ``end`` of which another share counted after than before, and how much less."""
    places = sorted({0, *(r[0] for r in before), *(r[0] for r in after)} - {end})
    for number, start in enumerate(places):
        if start >= end:
            return
        stop = min(end, places[number + 1]) if number + 1 < len(places) else end
        less = share_at(before, start) - share_at(after, start)
        if less:
            yield start, stop, less


def left_out(
    view: Sequence[SentMessage],
    steps: Sequence[Step],
    prefixes: SentPrefixes,
    results: ResultStates,
    target: Target,
) -> list[str]:
    """Answers whose reasoning the newest request to this model left out, if its messages are how the next one begins.

    They stay out when more results are cleared, although the cache is rewritten then: what came back would take the
    room that was just made. A summary, a rewind or the undo of a compaction goes back to what was sent before.
    """
    ids = prefixes.ids
    for step in reversed(steps):
        if step.kind != "turn" or step.status not in ("complete", "stopped") or step.sent_reasoning is None:
            continue
        if (step.model, step.provider, step.api) != (target.model, target.provider, target.api):
            continue
        count = step.sent_count
        if count > len(ids) or prefixes.at(count) != step.sent_fingerprint:
            continue
        if not results.within(step.prune_ids):
            continue
        runs = step.sent_reasoning
        if all(run[2] for run in runs):
            return []
        return [
            view[i].message.id
            for number, (start, _, sent) in enumerate(runs)
            if not sent
            for i in range(start, runs[number + 1][0] if number + 1 < len(runs) else count)
            if view[i].message.role == "assistant"
        ]
    return []
