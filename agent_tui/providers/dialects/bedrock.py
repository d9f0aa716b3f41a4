"""What is known of Amazon Bedrock, which the gateway calls."""

from __future__ import annotations

from agent_tui.providers.dialects.record import Dialect, ImageLimits, Source

RECORDS = (
    Dialect(
        "bedrock",
        credentials_elsewhere=True,
        call_ids="plain",
        cache="markers",
        merging=True,
        thinking_blocks=True,
        guessed_reasoning=True,
        limits=("maxTokens", "inferenceConfig.maxTokens", "additionalModelRequestFields.max_tokens"),
        # 3.75 MB before base64.
        images=ImageLimits(
            5_000_000,
            8_000,
            count=20,
            source=Source("docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html", "2026-11-21"),
        ),
    ),
)
