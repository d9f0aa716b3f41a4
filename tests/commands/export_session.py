"""A stored session with one of everything that an export shows, some of it hostile."""

from __future__ import annotations

from agent_tui.models.messages import (
    OWN_OUTPUT,
    UPDATE,
    AttachmentPart,
    Message,
    Part,
    ReasoningPart,
    Role,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord, Given, Step
from agent_tui.models.usage import TokenUsage
from agent_tui.store.content import SessionContent

START = 1_763_900_000.0
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
HOSTILE = (
    "<script>alert(1)</script> </details></article></main> [x](javascript:alert(1)) ![x](https://e.example/x.png) "
    '[y](https://e.example/"onmouseover="alert(1)) <javascript:alert(1)> '
    "\x1b]0;title\x07\x1b[31m\x00\ud800\u202e\x9b0m"
)
DIFF = "@@ -1,2 +1,2 @@\n def greet():\n-    return 'hello world'\n+    return 'hello there'\n"


def example_session() -> tuple[SessionInfo, SessionContent]:
    """Two answers, the second dropped; a compaction; a branch that was left; an edit, a command that failed."""
    messages: dict[str, Message] = {}

    def add(name: str, role: Role, *parts: Part, parent: str | None) -> Message:
        message = Message(name, role, list(parts), "complete", parent, START + 60 * len(messages))
        messages[name] = message
        return message

    told = AttachmentPart(UPDATE, "text/plain", text="the program told this")
    picture = AttachmentPart("x.png", "image/png", data=PIXEL)
    add("ask", "user", told, picture, TextPart(f"Fix it. My key is {KEY}. {HOSTILE}"), parent=None)
    add(
        "act",
        "assistant",
        ReasoningPart(f"I think {HOSTILE}", {"signature": "c2ln"}),
        ToolCallPart("call_1", "edit", '{"path": "src/greet.py"}'),
        ToolCallPart("call_2", "bash", '{"command": "make test"}'),
        parent="ask",
    )
    edited = {"kind": "diff", "text": DIFF, "path": "src/greet.py"}
    add("edited", "tool", ToolResultPart("call_1", "edit", "Edited.", display=edited), parent="act")
    failed = ToolResultPart("call_2", "bash", "2 errors\n````\nin a fence", True, seconds=1.4)
    add("failed", "tool", failed, parent="edited")
    add("done", "assistant", TextPart(f"# Done\n\n{HOSTILE}\n\n```\n</code></pre><script>\n```"), parent="failed")
    add("left", "user", TextPart("Not like this"), parent="done")
    add("left answer", "assistant", TextPart("left behind by a rewind"), parent="left")
    command = AttachmentPart(OWN_OUTPUT, "text/plain", text="On branch main\n")
    add("own", "user", TextPart("!git status"), command, parent="done")
    pasted = "line\n" * 20
    add("paste", "user", TextPart(f"See:\n{pasted}", pasted=[[5, 5 + len(pasted)]]), parent="own")
    broken = add("broken", "assistant", TextPart("Half"), parent="paste")
    broken.status, broken.note = "failed", "The server closed the connection."
    record = CompactionRecord("r1", "o1", "summary", ["ask", "act"], created=START + 485, summary_id="sum")
    record.before_tokens, record.before_estimated, record.after_tokens, record.after_spread = 90_000, False, 12_000, 400
    records = [record, CompactionRecord("drop_1", "o2", "drop", ["broken"], created=START + 900)]
    summary = Message("sum", "user", [SummaryPart(f"## Goal\n\n{HOSTILE}", "r1")])
    steps = [_step(number) for number in range(6)]
    info = SessionInfo("ses_1", "/home/ann/greeter", "Fix the greeting", "sonnet", START, START + 900, "broken")
    return info, SessionContent(messages, {"sum": summary}, steps, records, "broken")


def _step(number: int) -> Step:
    answer = ("act", "act", "done", "left answer", "broken", "broken")[number]
    size = (10_000, 50_000, 90_000, 91_000, 12_000, 20_000)[number]
    step = Step(f"s{number}", "turn", "sonnet", "anthropic", "messages", "claude-sonnet-4-6", answer, "complete")
    step.given = Given(None, "off", "claude", reserve=32_000)
    step.created, step.window, step.estimated_input, step.cost_usd = START + 125 * number, 100_000, size, 0.01
    step.estimated_rows = {"system": 4_000, "messages": size - 4_000}
    step.usage = TokenUsage(size, 100, cache_read=size // 2)
    return step


def harmless(text: str) -> None:
    """Fails where a text could drive a terminal, turn its own direction, or cannot be encoded."""
    assert all(c in "\n\t" or ord(c) >= 32 for c in text)
    assert not any(0x7F <= ord(c) < 0xA0 or c in "\u202e\ufeff" for c in text)
    text.encode()
