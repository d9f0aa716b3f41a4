"""How long the answer of one call may be."""

from __future__ import annotations

from dataclasses import replace

from agent_tui.models.requests import Delta, ModelInfo, ModelRequest, ModelSpec
from agent_tui.providers.net.bounds import DEFAULT_TOKENS, BoundError, answer_limit, stream_limit

_CALL_SIZE = 64
"""Characters of an answer that one tool call stands for, empty as it may be."""


class Length:
    """Counts the characters of an answer against the tokens that were asked for. ``stream_limit`` is the most bytes the
    provider may send for them."""

    def __init__(self, request: ModelRequest, info: ModelInfo) -> None:
        asked = max(_named_limits(request.spec), default=0)
        self._asked = asked or request.max_output or info.limits.max_output or DEFAULT_TOKENS
        self._room = answer_limit(self._asked)
        self.stream_limit = stream_limit(self._asked)

    @property
    def exceeded(self) -> bool:
        return self._room < 0

    def within(self, delta: Delta) -> Delta | None:
        """The delta, cut to what there is still room for; None when there is none."""
        if self._room < 0:
            return delta if delta.closed and not delta.text else None
        before, self._room = self._room, self._room - len(delta.text)
        if delta.call_id is not None:
            # Calls without end are an answer without end, too.
            self._room -= _CALL_SIZE + len(delta.name or "")
        return delta if self._room >= 0 else replace(delta, text=delta.text[:before])

    def error(self) -> BoundError:
        return BoundError(
            f"The answer is longer than the {self._asked:,} tokens asked for can be "
            f"(over {answer_limit(self._asked):,} characters), so it was stopped."
        )


def _named_limits(spec: ModelSpec) -> list[int]:
    """Limits of the answer that the model's own settings send instead of ours."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    return [value for name in names if isinstance(value := spec.extra.get(name), int) and value > 0]
