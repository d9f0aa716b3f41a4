"""An agent without engine, store or provider: the same attributes, answers that a test puts there, events on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_tui.config import PermissionMode, Settings
from agent_tui.context.accounting.lost import LostReasoning
from agent_tui.context.accounting.spending import BudgetLine, BudgetName
from agent_tui.context.past.history import History
from agent_tui.context.past.rebuilt import Session
from agent_tui.engine.models.efforts import EffortChoice
from agent_tui.errors import AgentError
from agent_tui.models.branches import Branch, FilesMoved, Moved
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import (
    ContextChanged,
    Event,
    JobsChanged,
    MessageAdded,
    QueueChanged,
    SessionChanged,
    WaitingKind,
    WaitingMessage,
)
from agent_tui.models.jobs import JobInfo
from agent_tui.models.messages import AttachmentPart, Message, TextPart, Written, user_message
from agent_tui.models.money import Cost
from agent_tui.models.questions import ApprovedMode
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec, SentMessage, Target
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.models.usage import Limits, Prices
from agent_tui.paths import Paths
from agent_tui.providers.dialects.anthropic import IMAGES as CLAUDE
from agent_tui.tools.files.pictures import fit_attachments
from agent_tui.ui.agent_protocol import ChatAgent
from tests.support.fake_store import FakeStore
from tests.support.usages import sample_usage


@dataclass
class UserCommand:
    name: str
    description: str

    def expand(self, args: str) -> str:
        return f"{self.name}: {args}"


class FakeAgent:
    """What the UI and the commands use of the real one; calls are kept in ``calls``."""

    def __init__(self, home: Path, messages: Sequence[Message] = (), usage: ContextUsage | None = None) -> None:
        self.paths = Paths(home / "config", home / "data", home / "state", home / "cache")
        self.settings = Settings()
        self.root = self.cwd = home
        self.folders = [home]
        self.info = SessionInfo("ses_1", str(home), title="A session", model="demo")
        self.read_only = False
        self.read_only_reason = ""
        self.busy = False
        self.spec = ModelSpec("demo", "demo")
        self.model_info: ModelInfo | None = self._info("demo")
        self.lost: LostReasoning | None = None
        self.others: list[Branch] = []
        self.moving = FilesMoved()
        self.mode: PermissionMode = "ask"
        self.effort: Effort = "medium"
        self.messages: list[Message] = list(messages)
        self.records: list[CompactionRecord] = []
        self.parts: dict[str, str] = {}
        self.steps: list[Step] = []
        self.store = FakeStore()
        self.waiting: list[WaitingMessage] = []
        self.queued: dict[str, Written] = {}
        self.pinned: list[str] = []
        self.branch: str | None = "main"
        self.trusted = False
        self.usage = usage or sample_usage()
        self.calls: list[tuple[str, Any]] = []
        self.own_commands: list[UserCommand] = []
        self.resources: list[tuple[str, str]] = []
        self.exact: int | None = 84_211
        self.in_flight = 0
        self.background: dict[str, JobInfo] = {}
        self.outputs: dict[str, str] = {}
        self._subscribers: list[Callable[[Event], None]] = []

    def budgets(self) -> list[BudgetLine]:
        return [BudgetLine("turn", None), BudgetLine("session", 5.0, Cost(0.42)), BudgetLine("tokens", None)]

    def set_budget(self, name: BudgetName, limit: float | None) -> None:
        self.calls.append(("budget", (name, limit)))

    def _info(self, key: str) -> ModelInfo:
        return ModelInfo(
            ModelSpec(key, key),
            Target("anthropic", "chat", key, "claude"),
            Limits(200_000, None, 64_000, "table"),
            Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6),
            reasoning=True,
            images=True,
        )

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def publish(self, event: Event) -> None:
        for callback in tuple(self._subscribers):
            callback(event)

    def called(self, name: str) -> list[Any]:
        return [what for called, what in self.calls if called == name]

    async def start(self) -> None:
        self.publish(SessionChanged(self.info, reload=True))
        self.publish(ContextChanged(self.usage))

    def submit(
        self,
        text: str,
        attachments: Sequence[AttachmentPart] = (),
        pasted: Sequence[list[int]] = (),
        behind: str | None = None,
    ) -> None:
        self.calls.append(("submit", (text, list(attachments))))
        if self.busy:
            at = next((n + 1 for n, w in enumerate(self.waiting) if w.id == behind), 0 if behind == "" else None)
            self._wait(Written(text, list(attachments), list(pasted)), "queued", at)
            return
        message = user_message(text, attachments=list(attachments))
        self.messages.append(message)
        self.publish(MessageAdded(message))

    def answer(self, text: str) -> Message:
        """Adds a complete answer without streaming it."""
        message = Message(f"msg_answer_{len(self.messages)}", "assistant", [TextPart(text)])
        self.messages.append(message)
        self.publish(MessageAdded(message))
        return message

    def _wait(self, typed: Written, kind: WaitingKind, at: int | None = None) -> None:
        waits = WaitingMessage(f"wait_{len(self.calls)}", typed.text, kind)
        self.waiting.insert(len(self.waiting) if at is None else at, waits)
        self.queued[waits.id] = typed
        self.publish(QueueChanged(list(self.waiting)))

    def steer(self, text: str, attachments: Sequence[AttachmentPart] = (), pasted: Sequence[list[int]] = ()) -> None:
        self.calls.append(("steer", (text, list(attachments))))
        self._wait(Written(text, list(attachments), list(pasted)), "steer")

    def take_back(self, message_id: str | None = None) -> Written | None:
        named = [waits for waits in self.waiting if message_id in (None, waits.id)]
        if not named:
            return None
        self.waiting.remove(named[-1])
        self.publish(QueueChanged(list(self.waiting)))
        return self.queued.pop(named[-1].id)

    def send_waiting(self, message_id: str | None = None) -> bool:
        if self.busy:
            return False
        self.calls.append(("send_waiting", message_id))
        return bool(self.waiting)

    def move_waiting(self, message_id: str, by: int) -> bool:
        self.calls.append(("move_waiting", (message_id, by)))
        return True

    def interrupt(self) -> bool:
        self.calls.append(("interrupt", None))
        was, self.busy = self.busy, False
        return was

    def answer_permission(self, request_id: str, allow: bool, pattern: str | None = None, feedback: str = "") -> None:
        self.calls.append(("answer_permission", (request_id, allow, pattern, feedback)))

    def answer_plan(self, request_id: str, mode: ApprovedMode | None, plan: str, feedback: str = "") -> None:
        self.calls.append(("answer_plan", (request_id, mode, plan, feedback)))

    def answer_question(self, request_id: str, chosen: Sequence[str] = (), text: str = "") -> None:
        self.calls.append(("answer_question", (request_id, tuple(chosen), text)))

    def context_usage(self) -> ContextUsage:
        return self.usage

    def trigger_total(self) -> int:
        return self.usage.total

    def part_text(self, fingerprint: str) -> str | None:
        return self.parts.get(fingerprint)

    def history(self) -> History:
        return History(Session({}, [], [], {}))

    def sent_message(self, message_id: str) -> SentMessage | None:
        return next((SentMessage(m, m.id) for m in self.messages if m.id == message_id), None)

    async def set_model(self, key: str) -> tuple[ModelInfo, LostReasoning | None]:
        if key == "nonsense":
            raise AgentError("Unknown model nonsense.")
        self.calls.append(("set_model", key))
        self.spec, self.model_info = ModelSpec(key, key), self._info(key)
        return self.model_info, self.lost

    def lost_by_model(self, info: ModelInfo) -> LostReasoning | None:
        return self.lost if info.spec.key != self.spec.key else None

    def branches(self) -> list[Branch]:
        return self.others

    def lost_by_going(self, head: str | None) -> LostReasoning | None:
        return self.lost

    def files_by_going(self, head: str | None) -> FilesMoved:
        return self.moving

    def set_mode(self, mode: PermissionMode) -> None:
        self.mode = mode

    async def until_described(self) -> None: ...

    def levels(self) -> list[EffortChoice]:
        words: dict[Effort, str] = {"off": "does not think", "medium": "thinks up to 8.2k tokens a step"}
        return [EffortChoice(effort, said, effort == self.effort, (effort,)) for effort, said in words.items()]

    def efforts(self) -> list[EffortChoice]:
        return [level if level.current else replace(level, lost=self.lost) for level in self.levels()]

    def set_effort(self, effort: Effort) -> LostReasoning | None:
        self.effort = effort
        return self.lost

    async def sandbox_lines(self) -> list[str]:
        return ["bubblewrap", "look (bubblewrap): reads only"]

    def models(self) -> list[ModelSpec]:
        return [
            ModelSpec("sonnet", "anthropic/claude-sonnet-4-6"),
            ModelSpec("gpt", "openai/gpt-5"),
            ModelSpec("local", "ollama/qwen3", api_base="http://127.0.0.1:11434"),
            ModelSpec("demo", "demo"),
        ]

    async def describe(self, key: str) -> ModelInfo:
        return self._info(key)

    async def compact(self, focus: str = "") -> None:
        self.calls.append(("compact", focus))

    def compact_preview(self, focus: str = "") -> str:
        return "Would summarise 12 messages."

    async def compact_undo(self) -> None:
        self.calls.append(("compact_undo", None))

    async def clear(self) -> LostReasoning | None:
        self.calls.append(("clear", None))
        self.messages.clear()
        self.publish(SessionChanged(self.info, reload=True))
        return self.lost

    async def resume(self, session_id: str) -> None:
        self.calls.append(("resume", session_id))
        self.publish(SessionChanged(self.info, reload=True))

    def rename(self, title: str) -> None:
        self.info.title = title

    async def rewind(self, message_id: str, restore_files: bool = False) -> Moved:
        self.calls.append(("rewind", (message_id, restore_files)))
        index = next(i for i, m in enumerate(self.messages) if m.id == message_id)
        text, left = self.messages[index].text, len(self.messages) - index
        del self.messages[index:]
        self.publish(SessionChanged(self.info, reload=True))
        return Moved(left, 0, text, self.moving if restore_files else None)

    async def go_to(self, head: str | None, restore_files: bool = False) -> Moved:
        self.calls.append(("go_to", (head, restore_files)))
        self.publish(SessionChanged(self.info, reload=True))
        return Moved(2, 4, files=self.moving if restore_files else None)

    async def go_back(self, restore_files: bool = False) -> Moved:
        self.calls.append(("go_back", restore_files))
        self.publish(SessionChanged(self.info, reload=True))
        return Moved(2, 4, files=self.moving if restore_files else None)

    async def fork(self, message_id: str | None = None) -> None:
        self.calls.append(("fork", message_id))

    def pin(self, path: str) -> None:
        self.pinned.append(path)

    def unpin(self, path: str) -> None:
        self.pinned.remove(path)

    async def count_exact(self) -> int | None:
        return self.exact

    async def shell(self, command: str) -> None:
        self.calls.append(("shell", command))

    def user_commands(self) -> list[UserCommand]:
        return self.own_commands

    def skills(self) -> list[tuple[str, str, str]]:
        return [("pdf", "reads PDF files", "/skills/pdf/SKILL.md")]

    def tools(self) -> list[tuple[str, str, str, int | None, bool]]:
        return [("read", "builtin", "Reads a file", 180, True), ("issue", "mcp:github", "Shows an issue", 220, True)]

    def mcp_servers(self) -> list[tuple[str, str, str]]:
        return [("github", "connected", "12 tools")]

    def mcp_resources(self) -> list[tuple[str, str]]:
        return self.resources

    def heard(self, own_words: str) -> None:
        return None

    async def fit_images(self, parts: Sequence[AttachmentPart]) -> tuple[list[AttachmentPart], list[str], list[str]]:
        return fit_attachments(parts, CLAUDE)

    async def mcp_attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]:
        return [], []

    async def mcp_reconnect(self, name: str) -> str:
        return f"{name} is connecting."

    def permission_rules(self) -> list[tuple[str, str, str]]:
        return [("allow", "bash(git status*)", "project")]

    def remove_permission_rule(self, rule: str) -> bool:
        return rule == "bash(git status*)"

    def trust_details(self) -> str:
        return "  .mcp.json new"

    def trust(self, sure: bool = False) -> str:
        self.trusted = True
        return "Trusted."

    def context_stats(self) -> str:
        return "Token Counter Metrics:\n  Cache Hits: 90"

    async def refresh_context(self) -> bool:
        self.calls.append(("refresh_context", None))
        return False

    async def forget_limits(self) -> int:
        self.calls.append(("forget_limits", None))
        return 0

    def reset_context_stats(self) -> None:
        self.calls.append(("reset", None))

    def tell_pictures(self, detail: str) -> None:
        self.calls.append(("tell_pictures", detail))

    def tell_drawing(self, problem: str) -> None:
        self.calls.append(("tell_drawing", problem))

    async def doctor(self) -> list[tuple[str, str, str]]:
        return [("ok", "database", "opens"), ("warn", "keys", "none found")]

    def jobs(self) -> list[JobInfo]:
        return list(self.background.values())

    def job_output(self, job_id: str) -> str:
        if job_id not in self.background:
            raise AgentError(f"There is no background command {job_id!r}.")
        return self.outputs.get(job_id, "")

    async def stop_job(self, job_id: str) -> str:
        self.calls.append(("stop_job", job_id))
        return self._change(job_id, state="stopped", finished=self.background[job_id].started + 3, kept=False)

    def keep_job(self, job_id: str, keep: bool = True) -> str:
        self.calls.append(("keep_job", (job_id, keep)))
        return self._change(job_id, kept=keep)

    def _change(self, job_id: str, **facts: Any) -> str:
        self.background[job_id] = replace(self.background[job_id], **facts)
        self.publish(JobsChanged(sum(job.state == "running" for job in self.background.values())))
        return f"{job_id} is {'kept' if facts['kept'] else 'stopped'}."

    def left_running(self) -> list[str]:
        return [f"Goes on: {job.command}" for job in self.background.values() if job.kept]

    async def join(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        self.calls.append(("close", None))


def conforming(agent: FakeAgent) -> ChatAgent:
    """What the screen asks of an agent, this one has: the type check says what is missing."""
    return agent
