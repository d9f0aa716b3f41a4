"""A fixed conversation and fixed sessions for pictures of the screens: no times, no paths of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_tui.context.accounting.spending import session_totals
from agent_tui.models.events import JobInfo, PermissionAsked, PlanPresented, QuestionAsked, RuleOffer, ServerAsked
from agent_tui.models.forms import Choice, FormField
from agent_tui.models.messages import (
    Message,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    user_message,
)
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CacheForecast, CompactionRecord, Step
from agent_tui.models.usage import Cost, TokenUsage
from tests.support.fake_agent import FakeAgent

NOW = 1_750_000_000.0

DIFF = """--- a/src/greet.py
+++ b/src/greet.py
@@ -1,4 +1,5 @@
 def greet(name: str) -> str:
-    return "hello " + name
+    name = name.strip()
+    return f"Hello, {name}!"

 print(greet("world"))
"""

ANSWER = """The greeting is fixed. What changed:

1. `greet` strips blanks **before** it uses the name,
2. it says *Hello* with a comma, as the test expects,
   - and nothing else.

| case | before | after |
|:-----|:------:|------:|
| `" Ann "` | hello  Ann | Hello, Ann! |
| 日本 | hello 日本 | Hello, 日本! |

```python
def greet(name: str) -> str:
    name = name.strip()  # typed by people
    return f"Hello, {name}!"
```

> The tests pass: see [the runner's page](https://example.com/runs/7).
"""

GALLERY = """# Heading one

A paragraph with **bold**, *italic*, ***both***, `code`, ~~struck~~, a [link](https://example.com) and a long line that
wraps where the window ends because it has many words in it.
A soft break above, a hard one here\\
and the next line.

## Heading two

- a list
  - inside a list
    1. numbered
    2. twice
- an item of two paragraphs

  this is the second one

### Heading three

3. starts at three
4. goes on

> A quote with `code`
>
> > and a quote inside

```rust
fn main() {
    println!("{}", 1 + 2); // code
}
```

    indented code

| left | centre | right |
|:-----|:------:|------:|
| a | b | 1 |
| long cell with words | **bold** | 1,234 |

- [ ] open task
- [x] done task

---

![an image](https://example.com/a.png) and <b>html</b> &amp; an entity

#### Heading four
##### Heading five
###### Heading six
"""

PLAN = """\
# Greet in the user's language

## What changes

1. `src/greet.py`: take the language from the environment, English where it names none we know
2. `src/words.toml`: a greeting for each of the five languages of the site
3. `tests/test_greet.py`: each language, an unknown one, and none at all

## How it is checked

- `python -m pytest tests/test_greet.py`, then the whole suite
- by hand: `LANG=de_DE python -m greet Ann`

> Not part of it: right-to-left scripts.
"""


def conversation() -> list[Message]:
    """A finished turn with reasoning, a call with a diff, a command, a todo list and a Markdown answer."""
    calls = [
        ToolCallPart("c1", "edit", '{"path": "src/greet.py"}'),
        ToolCallPart("c2", "bash", '{"command": "pytest -q"}'),
        ToolCallPart("c3", "todo", "{}"),
    ]
    items = [
        {"text": "fix greet", "status": "completed"},
        {"text": "run the tests", "status": "in_progress"},
        {"text": "write the changelog", "status": "pending"},
    ]
    edited = ToolResultPart("c1", "edit", "Edited.", display={"kind": "diff", "text": DIFF, "path": "src/greet.py"})
    tested = ToolResultPart("c2", "bash", "3 passed in 0.12s\n", seconds=1.4)
    listed = ToolResultPart("c3", "todo", "Updated.", display={"kind": "list", "text": "", "items": items})
    thought = "The test wants a comma, and names come with blanks around them."
    return [
        user_message("Why does the greeting test fail? Please fix it."),
        Message("m1", "assistant", [ReasoningPart(thought), TextPart("I will look at `greet` first."), *calls]),
        Message("t1", "tool", [edited]),
        Message("t2", "tool", [tested]),
        Message("t3", "tool", [listed]),
        Message("m2", "assistant", [TextPart(ANSWER)]),
    ]


def agent(home: Path, messages: list[Message] | None = None) -> FakeAgent:
    """An agent with the conversation, sessions of two projects and a compaction behind it."""
    made = FakeAgent(home, conversation() if messages is None else messages)
    made.root = made.cwd = Path("/project")
    made.conversation.info = SessionInfo("ses_1", "/project", title="Fix the greeting", model="demo")
    for message in made.conversation.path:
        message.created = NOW - 600
    made.store.kept = {"sum_1": Message("sum_1", "user", [SummaryPart("# Goal\n\nThe greeting.", "cmp_1")])}
    made.conversation.own_records = [
        CompactionRecord(
            "cmp_1",
            "op_1",
            "summary",
            ["old_1", "old_2"],
            created=NOW - 3_600,
            reason="auto",
            summary_id="sum_1",
            before_tokens=171_000,
            after_tokens=24_000,
            kept_messages=6,
            seconds=8.2,
            cost=Cost(0.031),
        )
    ]
    titles = [
        ("ses_1", "/project", "Fix the greeting", 6, 30),
        ("ses_2", "/project", "Rename the parser's states 日本語", 48, 3_600),
        ("ses_3", "/project", "", 2, 86_400 * 2),
        ("ses_4", "/elsewhere/site", "Why is the page [bold]slow[/bold]?", 212, 86_400 * 40),
    ]
    made.store.listed = [
        SessionInfo(id, project, title=title, model="sonnet", messages=count, updated=NOW - ago, preview="How do I…")
        for id, project, title, count, ago in titles
    ]
    return made


def course(agent: FakeAgent) -> None:
    """Gives it 26 steps behind it, with a compaction and a branch that was left."""
    made: list[Step] = []
    for number in range(26):
        size = 3_000 + 8_800 * number if number < 17 else 45_000 + 3_400 * (number - 17)
        rows = {"system": 2_600, "environment": 500, "memory": 1_400, "tools": 9_800}
        if number > 16:
            rows["summary"] = 9_000
        rows |= {"user": size // 20, "messages": size // 4, "reasoning": size // 12}
        rows["tool_results"] = size - sum(rows[name] for name in ("user", "messages", "reasoning"))
        total = sum(rows.values())
        step = Step(f"s{number}", "turn", "m", "anthropic", "chat", "claude", f"m{number}", "complete")
        step.created, step.estimated_input, step.estimated_rows = NOW - 3_600 + 60.0 * (number - 16.5), total, rows
        read = 0 if number in (0, 9, 17) else int(0.93 * total)
        step.usage, step.cost_usd = TokenUsage(total, 400, cache_read=read), (total - 0.9 * read) * 3e-6
        made.append(step)
    agent.conversation.steps += made
    agent.conversation.path += [
        Message(f"m{number}", "assistant", [TextPart("")]) for number in range(26) if number not in (12, 13)
    ]
    agent.usage.growth = 9_000.0
    (record,) = agent.conversation.own_records
    record.before_tokens, record.after_tokens, record.before_estimated = 165_000, 59_300, False
    agent.usage.forecast = CacheForecast(80_000, 0.04)


def turns(agent: FakeAgent) -> None:
    """Gives the steps of ``course`` the user's messages that they answer, and a second model."""
    asked = (
        "Fix the greeting",
        "Why does the test fail?",
        "Write the changelog line, and look at the others",
        "日本 too",
    )
    for number, text in enumerate(asked):
        message = user_message(text)
        message.created = NOW - 3_600 + 60.0 * (7 * number - 17)
        agent.conversation.messages[message.id] = message
    for step in agent.conversation.steps[20:]:
        step.model_key, step.cost_usd = "haiku", None if step.id == "s25" else (step.cost_usd or 0) / 3
    agent.usage.session = session_totals(agent.conversation.steps, agent.conversation.own_records)


def plan() -> PlanPresented:
    """A plan that waits for the user's word."""
    return PlanPresented("plan_1", PLAN)


def choice(several: bool = False) -> QuestionAsked:
    """A question of the model's, with one choice that is longer than a row."""
    choices = (
        "SQLite, as the store does already",
        "One JSON file for each entry: nothing to migrate, slow to search, easy to look at while something is wrong",
        "In memory only",
    )
    return QuestionAsked("ask_1", "Where should the cache of greetings live?", choices, several)


def form() -> ServerAsked:
    """A form that an MCP server asks to be filled in."""
    seats = (Choice("window", "Window"), Choice("aisle", "Aisle"), Choice("any", "Whichever is left"))
    fields = (
        FormField("city", "City", about="As it is written there", required=True, least=2),
        FormField("days", "Days", "integer", least=1, most=30, default=3),
        FormField("train", "By train", "boolean", default=False),
        FormField("seat", "Seat", "choice", choices=seats, default="window"),
        FormField("meals", "Meals", "choices", choices=(Choice("b", "Breakfast"), Choice("d", "Dinner"))),
    )
    return ServerAsked("srv_1", "trips", "form", "Where do you want to go?", fields)


def question() -> PermissionAsked:
    """A permission that is asked for the edit."""
    return PermissionAsked(
        "req_1",
        "c9",
        "edit",
        "edit src/greet.py",
        {"kind": "diff", "text": DIFF, "path": "src/greet.py"},
        [RuleOffer(("edit(./src/greet.py)",)), RuleOffer(("edit(./**)",), "session")],
        "Edits ask in this mode.",
    )


def background() -> dict[str, JobInfo]:
    """Commands in the background: two that run, one of them kept, and three that have ended."""

    def job(id: str, command: str, ago: float, last: str, **more: Any) -> JobInfo:
        facts: dict[str, Any] = {"state": "running", "can_stay": True, **more}
        return JobInfo(
            id, command, started=NOW - ago, pid=4_000 + int(id[1:]), log=f"/cache/{id}.txt", last_line=last, **facts
        )

    jobs = [
        job("b1", "npm run dev", 754, "  ➜  Local: http://localhost:5173/", kept=True),
        job("b2", "python -m pytest -q", 75, "41 passed in 62.03s", state="ended", code=0, finished=NOW - 12),
        job("b3", "make docs", 40, "make: *** [docs] Error 1", state="ended", code=2, finished=NOW - 38),
        job("b4", "tail -f log/development.log", 30, "GET /日本 200", state="stopped", code=-15, finished=NOW - 3),
        job("b5", "python -m pytest -q --lf", 8, "collecting ..."),
    ]
    return {info.id: info for info in jobs}
