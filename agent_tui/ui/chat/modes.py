"""The permission mode, by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.config import NEXT_MODES

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.ui.chat.needs import ShowsFacts, Tells


def next_mode(agent: Agent, facts: ShowsFacts, tells: Tells) -> None:
    """Goes to the mode after this one and says what it means."""
    from agent_tui.commands.project import MODE_HELP

    at = NEXT_MODES.index(agent.mode.now) + 1 if agent.mode.now in NEXT_MODES else 0
    following = NEXT_MODES[at % len(NEXT_MODES)]
    agent.mode.set(following)
    facts.facts_changed()
    tells.hint(f"Permission mode {following}: {MODE_HELP[following]}")
