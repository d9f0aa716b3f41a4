"""What a call's body starts from: the arguments that ``wire.request.build_call`` made, sorted by where they go."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_tui.models.messages import Metadata

_OURS = frozenset(
    {"model", "messages", "tools", "stream", "stream_options", "drop_params", "max_retries", "num_retries"}
    | {
        "extra_body",
        "extra_headers",
        "api_key",
        "api_base",
        "base_url",
        "timeout",
        "api_version",
        "custom_llm_provider",
    }
)
"""Arguments of a call that are not fields of its body, or have a place of their own."""


@dataclass(slots=True)
class Fields:
    """``rest`` are the body's other fields, what the user configured in ``extra`` among them; ``extra_body`` wins over
    everything, as in LiteLLM."""

    messages: list[Metadata]
    tools: list[Metadata]
    rest: Metadata
    extra_body: Metadata
    extra_headers: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(kwargs: Metadata) -> Fields:
        headers = kwargs.get("extra_headers") or {}
        return Fields(
            list(kwargs.get("messages") or ()),
            list(kwargs.get("tools") or ()),
            {name: value for name, value in kwargs.items() if name not in _OURS},
            dict(kwargs.get("extra_body") or {}),
            {str(name): str(value) for name, value in headers.items()},
        )
