"""Identities that hold for any conversation, and that a kept cache never changes an answer."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.context.accounting.budget import fits_to_send
from agent_tui.context.accounting.inputs import CompactPolicy
from agent_tui.context.accounting.reuse import ContextCache
from agent_tui.context.accounting.shares import window_shares
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.models.messages import ReasoningPart, SummaryPart
from agent_tui.models.requests import Target
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.text.numbers import largest_remainder
from tests.support.contexts import CLAUDE, TARGET, Conversation, assert_identities, fixed_part

TARGETS = [
    TARGET,
    CLAUDE,
    Target("anthropic", "chat", "claude-sonnet-4-5", "claude"),
    Target("gemini", "chat", "gemini-3-pro", "gemini"),
    Target("openai", "responses", "gpt-5", "gpt"),
    Target("deepseek", "chat", "deepseek-v4", "deepseek"),
]
OPERATIONS = [
    "say", "turn", "loop", "parallel", "stop", "fail", "missing", "count", "model", "tool", "prompt", "prune", "clip",
    "summary", "undo", "redo", "rewind", "uncounted",
]  # fmt: skip
tokens = st.integers(0, 60_000)
usages = st.builds(
    TokenUsage,
    input=tokens,
    output=st.integers(0, 5_000),
    reasoning=st.none() | st.integers(0, 6_000),
    cache_read=st.none() | tokens,
    source=st.sampled_from(["provider", "provider", "provider", "estimated"]),
    context=st.sampled_from([True, True, True, False]),
    reasoning_source=st.sampled_from(["provider", "estimated"]),
)
operations = st.lists(st.tuples(st.sampled_from(OPERATIONS), usages, st.integers(0, 4_000)), max_size=25)
limits = st.builds(
    Limits,
    window=st.none() | st.integers(0, 300_000),
    max_input=st.none() | st.integers(1, 300_000),
    max_output=st.none() | st.integers(1, 200_000),
)
policies = st.builds(
    CompactPolicy,
    auto_compact=st.booleans(),
    compact_at=st.none() | st.floats(0.01, 1.0) | st.integers(2, 200_000).map(float),
    max_output_reserve=st.integers(0, 100_000),
    paused=st.booleans(),
    off=st.booleans(),
)


def apply(conversation: Conversation, name: str, usage: TokenUsage, size: int) -> None:
    thought = ReasoningPart("thought " * (size % 7), {"signature": "s", "encrypted_content": "e"}, "now")
    reasoning = thought if size % 3 else None
    call = f"c{conversation.number}"
    if name == "say":
        conversation.say(raw=size)
    elif name == "uncounted":
        conversation.say("text é " * (size % 50), raw=None)
    elif name in ("turn", "stop", "fail", "missing"):
        status = {"stop": "stopped", "fail": "failed"}.get(name, "complete")
        conversation.answer(None if name == "missing" else usage, reasoning=reasoning, raw=size, status=status)
    elif name in ("loop", "parallel"):
        calls = (call, call + "b") if name == "parallel" else (call,)
        conversation.answer(usage, reasoning=reasoning, calls=calls, raw=size)
        for each in calls:
            conversation.result(each, raw=size)
    elif name == "count":
        conversation.answer(usage, kind="count")
    elif name == "model":
        conversation.target = TARGETS[size % len(TARGETS)]
    elif name == "tool":
        conversation.fixed.append(fixed_part("tools", size, f"t{conversation.number}", "builtin"))
    elif name == "prompt":
        conversation.fixed_fingerprint = f"prompt{size % 3}"
    else:
        compact(conversation, name, size)


def compact(conversation: Conversation, name: str, size: int) -> None:
    records, path = conversation.records, conversation.path
    number = len(records)
    if name in ("prune", "clip"):
        ids = [m.id for m in path if m.role == "tool"][: 1 + size % 3]
        clips = dict.fromkeys(ids, size % 5) if name == "clip" else {}
        if ids:
            records.append(CompactionRecord(f"r{number}", f"o{number}", "prune", ids, created=number, clips=clips))
    elif name == "summary" and len(path) > 1:
        ids = [m.id for m in path[: 1 + size % len(path)]]
        message = conversation.append("user", [SummaryPart("so far", f"r{number}")], size)
        path.pop()
        conversation.summaries[message.id] = message
        records.append(
            CompactionRecord(f"r{number}", f"o{number}", "summary", ids, created=number, summary_id=message.id)
        )
    elif name in ("undo", "redo") and records:
        records[size % number].active = name == "redo"
    elif name == "rewind" and path:
        del path[size % len(path) :]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(operations, limits, policies, st.integers(0, 20_000), st.floats(0.7, 1.5))
def test_identities_hold_and_the_cache_changes_nothing(
    steps: list[tuple[str, TokenUsage, int]], window: Limits, policy: CompactPolicy, fixed: int, ratio: float
) -> None:
    conversation = Conversation(fixed=[fixed_part(raw=fixed), fixed_part("memory", None, "AGENTS.md", "AGENTS.md")])
    cache = ContextCache()
    for name, usage, size in steps:
        apply(conversation, name, usage, size)
        options = {"limits": window, "policy": policy, "ratio": ratio}
        fresh = conversation.usage(**options)
        assert_identities(fresh)
        inputs = conversation.inputs(cache=cache, **options)  # type: ignore[arg-type]
        kept = calculate_context_usage(inputs)
        assert kept == fresh
        assert fresh.would_compact == (
            fresh.limit is not None
            and fresh.total > fresh.limit
            and policy.auto_compact
            and not policy.paused
            and not policy.off
        ) or (policy.auto_compact and not fits_to_send(fresh))
        shown = window_shares(fresh)
        if shown is not None:
            assert shown.total + shown.free + shown.reserve - shown.over == 1_000
            assert sum(shown.rows) == shown.total


@given(st.integers(0, 10_000), st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_parts_sum_to_their_whole(parent: int, children: list[int]) -> None:
    assert sum(largest_remainder(parent, children)) == parent
