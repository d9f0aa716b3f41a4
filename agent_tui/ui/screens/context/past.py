"""The context screen at a step of the past: which one is shown, and what."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent_tui.ui.screens.context.moment import Moment

if TYPE_CHECKING:
    from agent_tui.commands.past_words import PastView
    from agent_tui.context.past.history import History
    from agent_tui.engine.agent import Agent


class Travel:
    """Where in a session's time the screen is. ``at`` is the number of the step, None for now."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.session = agent.conversation.info.id
        self.history: History = agent.context.history()
        self.at: int | None = None

    def go(self, by: int) -> str:
        """Goes ``by`` steps further, backwards where that is negative; behind the last step is now. A line for the user
        where there is nowhere to go."""
        count = self.history.count
        here = count + 1 if self.at is None else self.at
        wanted = max(1, here + by)
        if not count:
            return "Nothing was sent yet: there are no steps to go back to."
        if wanted == here:
            return "This is the first step."
        if self.at is None and by > 0:
            return "This is now."
        self.at = None if wanted > count else wanted
        return ""

    def view(self) -> PastView:
        """The step it is at, compared with the one before."""
        from agent_tui.commands.past_output import past_view

        assert self.at is not None
        return past_view(self.history, self.at, None, {message.id for message in self._agent.conversation.path})

    def moment(self, now: Moment) -> Moment:
        """What the screen shows of it; ``now`` is the session as it is."""
        from agent_tui.commands.past_words import honesty, outcome, since, title

        view = self.view()
        moment, said = view.moment, honesty(view.moment)
        usage, info = moment.usage, self._agent.models.info
        shown = replace(now, title=title(view, now.now), in_flight=0, read_only="", records=moment.records)
        after = (outcome(moment), since(view))
        if usage is None:
            nothing = replace(now.usage, rows=[], window=None)
            return replace(shown, usage=nothing, records=(), told=tuple(filter(None, after)), problem=said)
        return replace(
            shown,
            usage=usage,
            before=view.before.usage if view.before is not None else None,
            told=tuple(filter(None, (said, *after))),
            trigger=moment.step.estimated_input,
            prices=info.prices if info is not None and info.spec.key == moment.step.model_key else None,
        )
