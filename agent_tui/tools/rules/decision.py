"""The decisions about calls: allowed, asked or denied, and why; and one decision made of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from agent_tui.records import dataclass
from agent_tui.tools.git.remotes import RemoteReach
from agent_tui.tools.rules.rule import Rule
from agent_tui.tools.sandbox.policy import DOMAINS, Domain

Action = Literal["allow", "ask", "deny"]

CHANGES_FILE, CREATES_FILE = "changes a file", "creates a file"
MOST_REASONS = 8
"""Of a line of many commands so many are named with their reasons."""

PLAN_REASON = "plan mode is read-only"
RULE_ASKS = "a rule says to ask"

PLAN_MESSAGE = f"Refused: {PLAN_REASON}. Finish the plan and present it; the user leaves plan mode when they agree."


@dataclass(slots=True, frozen=True)
class RemoteGit:
    """A git command that talks to a remote: its words, beginning with ``git``, and the folder it is to run in.
    ``reach`` is what comes of them there."""

    argv: tuple[str, ...]
    folder: Path
    reach: RemoteReach | None = None


@dataclass(slots=True, frozen=True)
class Decision:
    """``reason`` is for the user, ``message`` for the model when the call is denied. ``patterns`` are the rules that
    allow all of it together, for good; empty where that cannot be. ``session`` are rules of which each allows all of it
    until the program ends. ``domain`` is that of the sandbox in which a
    command runs, at once or once it was asked about; ``network``: it needs to reach out of it. ``if_stopped`` is the
    question for a command that runs unasked in ``look``, asked only when the sandbox stopped what it did there: after a
    yes it runs again in the question's domain. Nothing it did in ``look`` stays, so nothing is done twice.
    ``remotes`` are the git commands of the line that talk to a remote: the line itself runs in ``domain``, and these
    alone outside of it, as they stand here and with options of our own. ``shows`` is what a command could read, once
    the user said yes, though a rule denies it."""

    action: Action
    reason: str = ""
    message: str = ""
    patterns: list[str] = field(default_factory=list)
    session: list[str] = field(default_factory=list)
    domain: Domain = "look"
    network: bool = False
    if_stopped: Decision | None = None
    remotes: tuple[RemoteGit, ...] = ()
    shows: str = ""


ALLOWED = Decision("allow")


def worst(decisions: Sequence[Decision]) -> Decision:
    """One decision for several: a denial wins over a question, and all questions are asked as one. If one of them
    may not be remembered, nothing is. What may be looked at first is asked about with the rest where something is
    asked, or where the line has an effect that must not come twice."""
    for decision in decisions:
        if decision.action == "deny":
            return decision
    asked = [decision for decision in decisions if decision.action == "ask"]
    later = [decision.if_stopped for decision in decisions if decision.if_stopped is not None]
    domain: Domain = "look"
    for decision in decisions:
        domain = max(domain, decision.domain, key=DOMAINS.index)
    network = any(decision.network for decision in decisions)
    remotes = tuple(remote for decision in decisions for remote in decision.remotes) if domain != "free" else ()
    together = Decision("allow", domain=domain, network=network, remotes=remotes)
    if later and not asked and not remotes and not network and domain != "free":
        return replace(ALLOWED, if_stopped=_asked(later, replace(together, domain="work")))
    every = [found for each in decisions if (found := each if each.action == "ask" else each.if_stopped) is not None]
    return _asked(every, together) if every else together


def _asked(asked: Sequence[Decision], together: Decision) -> Decision:
    reasons = sorted(dict.fromkeys(decision.reason for decision in asked), key=lambda why: RULE_ASKS not in why)
    rememberable = all(decision.patterns for decision in asked)
    patterns = list(dict.fromkeys(p for d in asked for p in d.patterns)) if rememberable else []
    session = [rule for rule in asked[0].session if all(rule in decision.session for decision in asked)]
    domain = max((together.domain, *(decision.domain for decision in asked)), key=DOMAINS.index)
    more = [f"and {len(reasons) - MOST_REASONS} more"] if len(reasons) > MOST_REASONS else []
    reason = "; ".join([*reasons[:MOST_REASONS], *more])
    return replace(together, action="ask", reason=reason, patterns=patterns, session=session, domain=domain)


def denied_by(rule: Rule) -> Decision:
    text = rule.written
    return Decision(
        "deny", f"the rule {text} denies it", f"Refused: the user's rule {text} denies this. Do not retry it."
    )
