"""How long a press of ← or → takes on /context: 1 000 steps, calculation and what is said of it, without the drawing.

    python tests/benchmarks/past.py [--steps N] [--presses N]

``ready``: what ← shows next was made beside the screen, as it is while one looks. ``unready`` is the worst case: a
moment that nothing was prepared for. Medians and worst of the presses, in milliseconds of processor time.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.commands.past_words import honesty, outcome, past_view, since, title
from agent_tui.context.past import SessionPast, StoredSession, given_of
from tests.benchmarks.context import LIMITS, FastConversation, build


def history_of(steps: int) -> tuple[SessionPast, FastConversation]:
    conversation, _ = build(steps * 2)
    assert isinstance(conversation, FastConversation)
    inputs = conversation.inputs(limits=LIMITS)
    for number, step in enumerate(conversation.steps):
        head = conversation.path[step.sent_count - 1].id
        step.created, step.window, step.given = float(number), LIMITS.window, given_of(inputs, head)
    parents = [None, *(m.id for m in conversation.path)]
    for message, parent in zip(conversation.path, parents, strict=False):
        message.parent_id = parent
    messages = {m.id: m for m in conversation.path}
    return SessionPast(StoredSession(messages, conversation.steps, [], {})), conversation


def press(history: SessionPast, number: int, path: set[str]) -> float:
    start = time.process_time()
    view = past_view(history, number, None, path)
    assert view.moment.usage is not None
    _ = title(view), outcome(view.moment), honesty(view.moment), since(view)
    return 1_000 * (time.process_time() - start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--presses", type=int, default=60)
    values = parser.parse_args()
    history, conversation = history_of(values.steps)
    path = {m.id for m in conversation.path}
    unready = press(history, history.count, path)
    back, forth = [], []
    for number in range(history.count - 1, history.count - values.presses, -1):
        history.prepare(number + 1)
        back.append(press(history, number, path))
    for number in range(history.count - values.presses + 1, history.count):
        forth.append(press(history, number, path))
    print(f"unready {unready:.1f}")
    print(f"back    {median(back):.1f} (worst {max(back):.1f})")
    print(f"forth   {median(forth):.1f} (worst {max(forth):.1f})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
