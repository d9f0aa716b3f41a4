"""What servers taught about taking reasoning back: stored for each model and server, learned from a refusal once."""

from __future__ import annotations

import logging
from dataclasses import replace

from agent_tui.engine.models.calibration import calibration_key
from agent_tui.errors import StoreError
from agent_tui.models.failure import Failure
from agent_tui.models.requests import ModelInfo, ModelRequest, ReplayRule
from agent_tui.providers.failure_lines import replay_fact
from agent_tui.store.store import Store

log = logging.getLogger(__name__)


def recalled_rule(store: Store, info: ModelInfo) -> ReplayRule:
    """The rule for a model with what its server taught before."""
    facts = store.learned.replay_facts(calibration_key(info), info.spec.api_base or "")
    return ReplayRule(bound="bound" in facts, ask_drop="no_drop_field" not in facts)


def adapt(store: Store, info: ModelInfo, request: ModelRequest, failure: Failure) -> str | None:
    """Learns from a refusal and changes the request so that it may be made once more. Returns the line for the user;
    None where there is nothing to learn, or to change."""
    fact = replay_fact(failure)
    if fact is None:
        return None
    rule = request.replay
    if fact == "no_drop_field":
        if not rule.ask_drop:
            return None
        request.replay = replace(rule, ask_drop=False)
        text = "This server cannot drop reasoning itself; agent-tui leaves out what no longer fits. Asked once more."
    else:
        answers = [i.message.id for i in request.messages if i.message.role == "assistant"]
        if set(rule.left_out).issuperset(answers):
            return None
        request.replay = replace(rule, bound=True, left_out=answers)
        text = "The server refused a reasoning signature; earlier reasoning is left out. Asked once more."
    try:
        store.learned.add_replay_fact(calibration_key(info), info.spec.api_base or "", fact)
    except StoreError as error:
        log.warning("What %s taught about reasoning could not be stored: %s", info.target.provider, error)
    return text
