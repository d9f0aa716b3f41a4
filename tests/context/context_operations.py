"""What may happen to a session, one operation after the other: the material of the calculator's properties."""

from __future__ import annotations

from typing import Literal

from hypothesis import strategies as st

from agent_tui.models.messages import Part, ReasoningPart, SummaryPart
from agent_tui.models.requests import Target
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import TokenUsage
from tests.support.contexts import CLAUDE, TARGET, Conversation, fixed_part

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
    "summary", "undo", "redo", "rewind", "uncounted", "drop", "drop", "restore", "fold",
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
            record = CompactionRecord(f"r{number}", f"o{number}", "prune", ids, created=number, clips=clips)
            record.recall = size % 2 == 0
            records.append(record)
    elif name in ("summary", "fold") and len(path) > 1:
        start = 1 + size % (len(path) - 1) if name == "fold" else 0
        ids = [m.id for m in path[start : start + 1 + size % len(path)]]
        parts: list[Part] = [SummaryPart("so far", f"r{number}")]
        parts += [SummaryPart("pinned " * (size % 5), f"r{number}", pinned=True)] if size % 2 else []
        message = conversation.append("user", parts, size)
        path.pop()
        conversation.summaries[message.id] = message
        records.append(
            CompactionRecord(f"r{number}", f"o{number}", "summary", ids, created=number, summary_id=message.id)
        )
        records[-1].reason = "edit" if name == "fold" else "auto"
    elif name in ("drop", "restore") and path:
        start = size % len(path)
        ids = [m.id for m in path[start : start + 1 + size % 4]]
        kind: Literal["drop", "restore"] = "drop" if name == "drop" else "restore"
        records.append(CompactionRecord(f"r{number}", f"o{number}", kind, ids, created=number, reason="edit"))
    elif name in ("undo", "redo") and records:
        records[size % number].active = name == "redo"
    elif name == "rewind" and path:
        del path[size % len(path) :]
