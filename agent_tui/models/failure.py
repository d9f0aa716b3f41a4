"""Provider failures as values: they cross the worker's pipe, end up in events and on the stored step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FailureKind = Literal[
    "auth",
    "not_found",
    "rate_limit",
    "overloaded",
    "context_overflow",
    "invalid_request",
    "timeout",
    "connection",
    "interrupted_stream",
    "content_refused",
    "worker",
    "store",
]

RETRYABLE: frozenset[str] = frozenset(
    {"rate_limit", "overloaded", "timeout", "connection", "interrupted_stream", "worker"}
)


@dataclass(slots=True, frozen=True)
class Failure:
    """Why a step failed. ``message`` is one line for the user, secrets removed; ``detail`` is the provider's own text.

    ``retry_after`` is in seconds, where the provider said so. ``status`` is the HTTP status where there was one.
    """

    kind: FailureKind
    message: str
    detail: str = ""
    status: int | None = None
    retry_after: float | None = None

    @property
    def retryable(self) -> bool:
        return self.kind in RETRYABLE
