"""``new_messages`` and the head: what no provider's number covers, estimated message by message."""

from __future__ import annotations

from agent_tui.context.accounting.given.coverage import Reading
from agent_tui.context.accounting.given.ground import Ground
from agent_tui.context.accounting.messages.grouping import add_group, add_message
from agent_tui.context.accounting.messages.tally import Tally
from agent_tui.context.accounting.messages.weigh import weigh


def new_messages(ground: Ground) -> Tally:
    """Everything after the anchor, its own tool results included (without an anchor: everything), at its estimates."""
    new = Tally(ground.measured, ground.measured)
    estimate_rest(ground, new)
    return new


def estimate_rest(ground: Ground, new: Tally) -> None:
    """Add the messages from where the tally ends to the end of the view."""
    view, ratio, reading = ground.view, ground.ratio, Reading(ground.coverage)
    for index in range(new.end, len(view)):
        weighed = weigh(ground, index)
        add_message(view, new, weighed, index, weighed.corrected(ratio), "estimated", reading)
        new.text += weighed.exact - weighed.given
        new.given += weighed.given
    new.end = len(view)


def estimated_head(ground: Ground) -> tuple[int, bool]:
    """What the messages before the first measured answer are estimated at, and whether a count is still missing."""
    weighed = [weigh(ground, i) for i in range(ground.head)]
    return sum(w.corrected(ground.ratio) for w in weighed), any(w.approximate for w in weighed)


def split_messages(ground: Ground, end: int, cost: int, reading: Reading) -> Tally:
    """The messages before ``end``, which together cost so much, split by their estimates."""
    tally = Tally()
    group = [weigh(ground, i) for i in range(end)]
    if group:
        add_group(ground.view, tally, group, 0, cost, reading)
    tally.end = end
    return tally
