"""Refusals that say how a server takes reasoning back, or that it takes no schema of an answer: learned from once, then
avoided."""

from __future__ import annotations

import re
from typing import Literal

from agent_tui.models.failure import Failure

ReplayFact = Literal["bound", "no_drop_field"]
"""``bound``: it refuses signatures behind another prefix. ``no_drop_field``: it does not know ``block_binding``."""

_FIELD = re.compile(r"block_binding|prefix_mismatch_behavior|thinking-binding-controls", re.I)
_SIGNATURE = re.compile(
    r"invalid.{0,40}signature.{0,80}(?:thinking|reasoning|block)|(?:thinking|reasoning).{0,80}signature.{0,60}invalid|"
    r"bound to a different conversation",
    re.I | re.S,
)


_SCHEMA = re.compile(
    r"response[_ ]?(?:format|mime[_ ]?type|json[_ ]?schema|schema)|output[_ ]config|output[_ ]format|text\.format|"
    r"json[_ ]?schema|structured[_ ]output|\bgrammar|guided|unmarshal\b.{0,80}\bformat\b|\bformat\b.{0,40}\bjson\b|"
    r"schema.{0,40}(?:complex|too large|compil)",
    re.I | re.S,
)
_TOOL = re.compile(r"\btools?[.\[]|for function|input_schema|function_declarations", re.I)


def refuses_schema(failure: Failure) -> bool:
    """Whether a request was refused for the schema that its answer was to be held to."""
    if failure.kind != "invalid_request" or failure.status not in (400, 422, 500, 501, None):
        return False
    text = f"{failure.detail}\n{failure.message}"
    return _SCHEMA.search(text) is not None and _TOOL.search(text) is None


def replay_fact(failure: Failure) -> ReplayFact | None:
    """What a refused request teaches; None where it was refused for anything else."""
    if failure.kind != "invalid_request" or failure.status not in (400, 422, None):
        return None
    text = f"{failure.detail}\n{failure.message}"
    if _SIGNATURE.search(text):
        return "bound"
    return "no_drop_field" if _FIELD.search(text) else None
