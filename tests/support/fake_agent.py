"""An agent without engine, store or provider: the same parts, answers that a test puts there, events on demand.

For the type checker each part is one of the real ones, so that what is faked keeps its signature. What no test of the
screen or of a command needs is not there: asking for it is an AttributeError.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui.config import PermissionMode, Settings
from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.lost import LostReasoning
from agent_tui.context.accounting.spending import BudgetLine, BudgetName
from agent_tui.context.compaction.plan import CompactionFigures
from agent_tui.context.past import SessionPast, StoredSession
from agent_tui.context.timeline import Timeline
from agent_tui.context.tokens import TokenCounterMetrics
from agent_tui.context.trust import State, TrustDetail
from agent_tui.engine.about import REMEMBERED
from agent_tui.engine.edit_plan import EditPlan
from agent_tui.engine.edits import Dropped, Edits
from agent_tui.engine.model_control import MissingKey
from agent_tui.engine.model_list import ModelList
from agent_tui.engine.models import EffortChoice
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextUsage, Draft
from agent_tui.models.events import (
    ApprovedMode,
    ContextChanged,
    Event,
    JobInfo,
    JobsChanged,
    MessageAdded,
    QueueChanged,
    RuleOffer,
    ServerAction,
    SessionChanged,
    WaitingKind,
    WaitingMessage,
)
from agent_tui.models.messages import AttachmentPart, Message, Metadata, TextPart, Written, user_message
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec, SentMessage, Target
from agent_tui.models.session import Branch, ConversationChange, FilesMoved, SessionInfo
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.models.usage import Cost, Limits, Prices
from agent_tui.paths import Paths, in_project
from agent_tui.providers.dialects.claude import IMAGES as CLAUDE
from agent_tui.providers.keys import pasted_key
from agent_tui.providers.listing import ListedModel
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.files.pictures import fit_attachments
from agent_tui.tools.starter import Ran, run_shell_line
from tests.support.fake_store import FakeStore
from tests.support.usages import sample_usage

if TYPE_CHECKING:
    from agent_tui.context.skills import UserCommand as AnyCommand
    from agent_tui.engine.about import Project
    from agent_tui.engine.agent import Agent
    from agent_tui.engine.budget import SpendingBudget
    from agent_tui.engine.context_control import ContextControl
    from agent_tui.engine.conversation import Conversation
    from agent_tui.engine.draft import Drafting
    from agent_tui.engine.model_control import ModeControl, ModelControl
    from agent_tui.engine.pins import Pinned, Pins
    from agent_tui.engine.questions import PermissionDesk, QuestionDesk
    from agent_tui.engine.runner import Runner
    from agent_tui.engine.servers import ServerDesk
    from agent_tui.engine.session_control import BranchControl, CompactionControl, SessionControl
    from agent_tui.engine.toolbox import Background
    from agent_tui.engine.waiting import Waiting
else:
    Agent = Project = ContextControl = BranchControl = ModeControl = ModelControl = CompactionControl = object
    Drafting = Pins = SessionControl = PermissionDesk = QuestionDesk = ServerDesk = object
    Background = Runner = Waiting = SpendingBudget = Conversation = object


@dataclass
class UserCommand:
    name: str
    description: str

    def expand(self, args: str) -> str:
        return f"{self.name}: {args}"


def _listed(
    name: str, window: int, into: float, out: float, cached: float | None = None, ends: str = ""
) -> ListedModel:
    return ListedModel(name, name.partition("/")[0], window, 64_000, into / 1e6, out / 1e6, cached, True, ends)


LISTED = {
    model.name: model
    for model in (
        _listed("anthropic/claude-opus-5-5", 1_000_000, 5.0, 25.0, 0.5e-6),
        _listed("anthropic/claude-sonnet-5-5", 1_000_000, 3.0, 15.0, 0.3e-6),
        _listed("anthropic/claude-haiku-5-5", 400_000, 1.0, 5.0, 0.1e-6),
        _listed("anthropic/claude-opus-3", 200_000, 15.0, 75.0, ends="2026-01-31"),
        _listed("openai/gpt-6-sol", 1_050_000, 2.5, 20.0, 0.25e-6),
        _listed("openai/gpt-6-luna", 400_000, 0.25, 2.0),
        _listed("gemini/gemini-4-pro", 2_000_000, 2.0, 12.0, 0.2e-6),
        _listed("groq/opus-on-chips-1", 131_072, 0.15, 0.6),
    )
}
"""What the list of models would say; the real one changes with each version of LiteLLM."""


async def no_keyring() -> dict[str, str]:
    return {}


def _info(key: str) -> ModelInfo:
    return ModelInfo(
        ModelSpec(key, key),
        Target("anthropic", "chat", key, "claude"),
        Limits(200_000, None, 64_000, "table"),
        Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6),
        reasoning=True,
        images=True,
    )


class FakeAgent(Agent):
    """The parts of the real one that the screen and the commands use; calls are kept in ``calls``."""

    settings: Settings
    store: FakeStore
    conversation: FakeConversation
    context: FakeContext
    edits: FakeEdits
    turns: FakeTurns
    waiting: FakeWaiting
    branches: FakeBranches
    models: FakeModels
    mode: FakeMode
    project: FakeProject
    background: FakeBackground
    budget: FakeBudget
    draft: FakeDraft

    def __init__(self, home: Path, messages: Sequence[Message] = (), usage: ContextUsage | None = None) -> None:
        self.paths = Paths(home / "config", home / "data", home / "state", home / "cache")
        self.settings = Settings()
        self.root = self.cwd = home
        self.store = FakeStore()
        self.calls: list[tuple[str, Any]] = []
        self.lost: LostReasoning | None = None
        self.moving = FilesMoved()
        self.usage = usage or sample_usage()
        self.conversation = FakeConversation(home, messages)
        self.context = FakeContext(self)
        self.pins = FakePins(self)
        self.edits = FakeEdits(self)
        self.turns = FakeTurns(self)
        self.waiting = FakeWaiting(self)
        self.draft = FakeDraft()
        self.sessions = FakeSessions(self)
        self.compaction = FakeCompaction(self)
        self.branches = FakeBranches(self)
        self.models = FakeModels(self)
        self.mode = FakeMode()
        self.permissions = FakePermissions(self)
        self.questions = FakeQuestions(self)
        self.servers = FakeServers(self)
        self.background = FakeBackground(self)
        self.project = FakeProject(self)
        self.budget = FakeBudget(self)
        self._subscribers: list[Callable[[Event], None]] = []

    def subscribe(self, callback: Callable[[Event], None], *, numbers: bool = True) -> Callable[[], None]:
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def publish(self, event: Event) -> None:
        for callback in tuple(self._subscribers):
            callback(event)

    def called(self, name: str) -> list[Any]:
        return [what for called, what in self.calls if called == name]

    def answer(self, text: str) -> Message:
        """Adds a complete answer without streaming it."""
        message = Message(f"msg_answer_{len(self.conversation.path)}", "assistant", [TextPart(text)])
        self.conversation.path.append(message)
        self.publish(MessageAdded(message))
        return message

    def reload(self) -> None:
        """Another conversation is in front."""
        self.publish(SessionChanged(self.conversation.info, reload=True))

    async def start(self) -> None:
        self.reload()
        self.publish(ContextChanged(self.usage))

    async def run_beside(self, line: str, told: bytes, seconds: float) -> Ran:
        return await run_shell_line(line, told, self.cwd, os.environ, seconds)

    async def shell(self, command: str) -> None:
        self.calls.append(("shell", command))

    async def close(self) -> None:
        self.calls.append(("close", None))


class Part:
    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent


class FakeConversation(Conversation):
    def __init__(self, home: Path, messages: Sequence[Message]) -> None:
        self.info = SessionInfo("ses_1", str(home), title="A session", model="demo")
        self.read_only = False
        self.path: list[Message] = list(messages)
        self.messages = {}
        self.own_records: list[CompactionRecord] = []
        self.steps: list[Step] = []
        self.inherited = 0

    def view(self) -> list[SentMessage]:
        return [SentMessage(message, message.id) for message in self.path]

    def sent_message(self, message_id: str) -> SentMessage | None:
        return next((SentMessage(m, m.id) for m in self.path if m.id == message_id), None)


class FakeContext(ContextControl):
    pinned: list[str]
    in_flight: int

    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent
        self.metrics = TokenCounterMetrics()
        self.texts: dict[str, str] = {}
        self.pinned = []
        self.exact: int | None = 84_211
        self.in_flight = 0

    def usage(self) -> ContextUsage:
        return self._agent.usage

    def part_text(self, fingerprint: str) -> str | None:
        return self.texts.get(fingerprint)

    def around(self, operation_id: str) -> list[ContextInputs]:
        return []

    def history(self) -> SessionPast:
        return SessionPast(StoredSession({}, [], [], {}))

    def timeline(self) -> Timeline:
        return Timeline(self._agent.conversation.steps, self._agent.conversation.own_records)

    def pin(self, path: str) -> None:
        self.pinned.append(path)

    def unpin(self, path: str) -> None:
        self.pinned.remove(path)

    async def count_exact(self) -> int | None:
        return self.exact

    async def refresh(self) -> bool:
        self._agent.calls.append(("refresh_context", None))
        return False


class FakePins(Pins):
    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent

    def all(self) -> list[Pinned]:
        from agent_tui.engine.pins import Pinned

        return [Pinned(path, in_project(path, self._agent.cwd), 0, "file") for path in self._agent.context.pinned]

    def message(self, id: str = "") -> Message | None:
        return next((m for m in self._agent.conversation.path if m.id == id), None)

    def words_price(self, message: Message) -> str:
        return ""

    def pin_message(self, message: Message) -> str:
        return f"pinned {message.id}"

    async def file_price(self, path: str) -> str:
        return ""

    def price(self, size: int) -> str:
        return ""


class FakeEdits(Edits):
    """Says what it was asked; ``gone`` is what is dropped."""

    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent
        self.gone: list[Dropped] = []
        self.refused = ""
        self.folds: tuple[str, ...] = ()
        self.done = asyncio.Event()
        self.done.set()

    def plan(self, ids: Sequence[str]) -> EditPlan:
        if self.refused:
            raise AgentError(self.refused)
        self._agent.calls.append(("plan", list(ids)))
        return EditPlan(tuple(ids), 1_200, 0, 0, 0, f"Drops {len(ids)} messages.")

    def refusal(self, ids: Sequence[str]) -> str:
        return self.refused

    @property
    def undoable(self) -> bool:
        return True

    async def plan_fold(self, first: str, last: str, focus: str = "") -> EditPlan:
        self._agent.calls.append(("plan_fold", (first, last)))
        return EditPlan(self.folds or (first, last), 1_200, 0, 0, 0, f"Folds {first} to {last}.\n~445 behind.")

    async def drop(self, ids: Sequence[str], *, later: bool = False) -> str:
        await self.done.wait()
        self._agent.calls.append(("drop", (list(ids), later)))
        return "Dropped."

    async def fold(self, first: str, last: str, focus: str = "") -> str:
        self._agent.calls.append(("fold", (first, last)))
        return "Folded."

    async def restore(self, ids: Sequence[str]) -> str:
        self._agent.calls.append(("restore", list(ids)))
        return "Restored."

    async def undo(self) -> str:
        self._agent.calls.append(("undo_edit", None))
        return "Taken back."

    def dropped(self) -> list[Dropped]:
        return self.gone


class FakeTurns(Runner):
    busy: bool

    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent
        self.busy = False

    def submit(
        self,
        text: str,
        attachments: Sequence[AttachmentPart] = (),
        pasted: Sequence[list[int]] = (),
        behind: str | None = None,
        typed: Sequence[list[int]] | None = None,
    ) -> None:
        agent = self._agent
        agent.calls.append(("submit", (text, list(attachments))))
        if self.busy:
            listed = agent.waiting.listed
            at = next((n + 1 for n, w in enumerate(listed) if w.id == behind), 0 if behind == "" else None)
            self._wait(Written(text, list(attachments), list(pasted)), "queued", at)
            return
        message = user_message(text, attachments=list(attachments))
        agent.conversation.path.append(message)
        agent.publish(MessageAdded(message))

    def _wait(self, typed: Written, kind: WaitingKind, at: int | None = None) -> None:
        agent, listed = self._agent, self._agent.waiting.listed
        waits = WaitingMessage(f"wait_{len(agent.calls)}", typed.text, kind)
        listed.insert(len(listed) if at is None else at, waits)
        agent.waiting.queued[waits.id] = typed
        agent.publish(QueueChanged(list(listed)))

    def steer(
        self,
        text: str,
        attachments: Sequence[AttachmentPart] = (),
        pasted: Sequence[list[int]] = (),
        typed: Sequence[list[int]] | None = None,
    ) -> None:
        self._agent.calls.append(("steer", (text, list(attachments))))
        self._wait(Written(text, list(attachments), list(pasted)), "steer")

    def can_send(self, waits: WaitingMessage) -> bool:
        return True

    def can_take_back(self, waits: WaitingMessage) -> bool:
        return True

    def take_back(self, message_id: str | None = None) -> Written | None:
        waiting = self._agent.waiting
        named = [waits for waits in waiting.listed if message_id in (None, waits.id)]
        if not named:
            return None
        waiting.listed.remove(named[-1])
        self._agent.publish(QueueChanged(list(waiting.listed)))
        return waiting.queued.pop(named[-1].id)

    def send_waiting(self, message_id: str | None = None) -> bool:
        if self.busy:
            return False
        self._agent.calls.append(("send_waiting", message_id))
        return bool(self._agent.waiting.listed)

    def interrupt(self) -> bool:
        self._agent.calls.append(("interrupt", None))
        was, self.busy = self.busy, False
        return was

    async def join(self) -> None:
        await asyncio.sleep(0)


class FakeWaiting(Waiting):
    listed: list[WaitingMessage]

    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent
        self.listed = []
        self.queued: dict[str, Written] = {}

    def move(self, message_id: str, by: int) -> bool:
        self._agent.calls.append(("move_waiting", (message_id, by)))
        return True


class FakeDraft(Drafting):
    """Says of whatever is typed what a test puts there."""

    def __init__(self) -> None:
        self.tokens: Draft | None = None
        self.heard: list[tuple[str, list[str], int]] = []

    def typed(
        self, text: str, pastes: Sequence[str] = (), images: Sequence[AttachmentPart] = (), find: object = None
    ) -> Draft | None:
        self.heard.append((text, list(pastes), len(images)))
        return self.tokens if text or pastes or images else None

    def look_at_files(self) -> None: ...


class FakeSessions(Part, SessionControl):
    async def clear(self) -> LostReasoning | None:
        self._agent.calls.append(("clear", None))
        self._agent.conversation.path.clear()
        self._agent.reload()
        return self._agent.lost

    async def resume(self, session_id: str) -> None:
        self._agent.calls.append(("resume", session_id))
        self._agent.reload()

    async def fork(self, message_id: str | None = None) -> None:
        self._agent.calls.append(("fork", message_id))

    def rename(self, title: str) -> None:
        self._agent.conversation.info.title = title


class FakeCompaction(Part, CompactionControl):
    async def now(self, focus: str = "") -> None:
        self._agent.calls.append(("compact", focus))

    async def preview(self, focus: str = "") -> CompactionFigures:
        return CompactionFigures(
            "Would summarise 12 messages.",
            {"tools": 900, "messages": 8_000},
            {"tools": 900, "messages": 1_200, "summary": 700},
            9_000,
        )

    async def undo(self) -> None:
        self._agent.calls.append(("compact_undo", None))


class FakeBranches(BranchControl):
    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent
        self.others: list[Branch] = []

    def all(self) -> list[Branch]:
        return self.others

    def lost(self, head: str | None) -> LostReasoning | None:
        return self._agent.lost

    def files(self, head: str | None) -> FilesMoved:
        return self._agent.moving

    async def rewind(self, message_id: str, restore_files: bool = False) -> ConversationChange:
        agent, path = self._agent, self._agent.conversation.path
        agent.calls.append(("rewind", (message_id, restore_files)))
        index = next(i for i, m in enumerate(path) if m.id == message_id)
        text, left = path[index].text, len(path) - index
        del path[index:]
        agent.reload()
        return ConversationChange(left, 0, text, agent.moving if restore_files else None)

    async def go_to(self, head: str | None, restore_files: bool = False) -> ConversationChange:
        return self._moved("go_to", (head, restore_files), restore_files)

    async def back(self, restore_files: bool = False) -> ConversationChange:
        return self._moved("go_back", restore_files, restore_files)

    def _moved(self, called: str, how: object, files: bool) -> ConversationChange:
        self._agent.calls.append((called, how))
        self._agent.reload()
        return ConversationChange(2, 4, files=self._agent.moving if files else None)


class FakeModels(ModelControl):
    known_keys: frozenset[str] = frozenset()
    spec: ModelSpec
    info: ModelInfo | None
    effort: Effort

    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent
        self.spec = ModelSpec("demo", "demo")
        self.info = _info("demo")
        self.effort = "medium"
        self.accepted: list[str] = []
        self.keys: set[str] = {"anthropic"}
        own = self.all()
        self.list = ModelList(
            lambda: own[:2], lambda: own[2:3], lambda name: name in self.keys, listed=lambda: LISTED, kept=no_keyring
        )

    def all(self) -> list[ModelSpec]:
        return [
            ModelSpec("sonnet", "anthropic/claude-sonnet-4-6"),
            ModelSpec("gpt", "openai/gpt-5"),
            ModelSpec("local", "ollama/qwen3", api_base="http://127.0.0.1:11434"),
            ModelSpec("demo", "demo"),
        ]

    async def look(self) -> None:
        await self.list.look()

    async def named(self, name: str) -> bool:
        await self.look()
        return name in (*(spec.key for spec in self.all()), "nonsense", *LISTED, *self.accepted)

    def accept(self, name: str) -> None:
        self.accepted.append(name)

    async def missing_key(self, name: str) -> MissingKey | None:
        provider = name.partition("/")[0]
        lacks = "/" in name and provider not in self.keys
        return MissingKey(provider, f"{provider.upper()}_API_KEY") if lacks else None

    async def take_key(self, name: str, typed: str, *, keep: bool = True) -> str:
        provider = name.partition("/")[0]
        pasted_key(typed, provider)
        self.keys.add(provider)
        self._agent.calls.append(("take_key", typed))
        return f"{provider} accepted the key. It is kept in the system's keyring."

    async def describe(self, key: str) -> ModelInfo:
        return _info(key)

    async def switch(self, key: str) -> tuple[ModelInfo, LostReasoning | None]:
        if key == "nonsense":
            raise AgentError("Unknown model nonsense.")
        self._agent.calls.append(("set_model", key))
        self.spec, info = ModelSpec(key, key), _info(key)
        self.info = info
        return info, self._agent.lost

    def lost_by(self, info: ModelInfo) -> LostReasoning | None:
        return self._agent.lost if info.spec.key != self.spec.key else None

    async def until_described(self) -> None: ...

    def levels(self) -> list[EffortChoice]:
        words: dict[Effort, str] = {"off": "does not think", "medium": "thinks up to 8.2k tokens a step"}
        return [EffortChoice(effort, said, effort == self.effort, (effort,)) for effort, said in words.items()]

    def set_effort(self, effort: Effort) -> LostReasoning | None:
        self.effort = effort
        return self._agent.lost

    async def forget_limits(self) -> int:
        self._agent.calls.append(("forget_limits", None))
        return 0


class FakeMode(ModeControl):
    now: PermissionMode

    def __init__(self) -> None:
        self.now = "ask"

    def set(self, mode: PermissionMode) -> None:
        self.now = mode


class FakePermissions(Part, PermissionDesk):
    def answer(self, request_id: str, allow: bool, offer: RuleOffer | None = None, feedback: str = "") -> None:
        self._agent.calls.append(("answer_permission", (request_id, allow, offer, feedback)))


class FakeQuestions(Part, QuestionDesk):
    def answer_plan(self, request_id: str, mode: ApprovedMode | None, plan: str, feedback: str = "") -> None:
        self._agent.calls.append(("answer_plan", (request_id, mode, plan, feedback)))

    def answer_question(self, request_id: str, chosen: Sequence[str] = (), text: str = "") -> None:
        self._agent.calls.append(("answer_question", (request_id, tuple(chosen), text)))


class FakeServers(Part, ServerDesk):
    def answer(self, request_id: str, action: ServerAction, values: Metadata | None = None) -> None:
        self._agent.calls.append(("answer_server", (request_id, action, values)))


class FakeProject(Project):
    branch: str
    files: FileAccess
    trust_state: State

    def __init__(self, agent: FakeAgent) -> None:
        self.sign_in_addresses: dict[str, str] = {}
        self._agent = agent
        self.branch = "main"
        self.files = FileAccess([agent.root])
        self.trust_state = "never"
        self.brings: tuple[str, ...] = ("echo hi",)
        self.own_commands: list[UserCommand] = []
        self.resources: list[tuple[str, str]] = []

    async def sandbox_lines(self) -> list[str]:
        return ["bubblewrap", "look (bubblewrap): reads only"]

    def user_commands(self) -> list[AnyCommand]:
        return [*self.own_commands]

    def hooks(self) -> list[tuple[str, Any, str, str]]:
        return [("your configuration", "on", "PreToolUse Bash", "check")]

    def skills(self) -> list[tuple[str, str, str]]:
        return [("pdf", "reads PDF files", "/skills/pdf/SKILL.md")]

    def agent_types(self) -> list[tuple[str, str, str]]:
        return [("explorer", "finds things · tools: read, grep", ".agent-tui/agents")]

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

    def mcp_may_sign_in(self, name: str) -> bool:
        return bool(self.sign_in_addresses)

    async def mcp_sign_in(self, name: str) -> str:
        return self.sign_in_addresses[name]

    async def mcp_paste(self, name: str, address: str) -> None:
        if address == "nonsense":
            raise AgentError("That is not where the browser ended.")
        self._agent.calls.append(("paste", address))

    async def mcp_reconnect(self, name: str) -> str:
        return f"{name} is connecting."

    def permission_rules(self) -> list[tuple[str, str, str]]:
        return [("allow", "bash(git status*)", REMEMBERED)]

    def add_permission_rule(self, which: str, rule: str) -> None:
        self._agent.calls.append((which, rule))

    def remove_permission_rule(self, rule: str) -> bool:
        return rule == "bash(git status*)"

    def trust_question(self) -> list[TrustDetail]:
        return [TrustDetail("Hooks", "hook Stop", self.brings)] if self.trust_state != "trusted" else []

    def trust(self) -> str:
        self.trust_state = "trusted"
        return "Trusted."

    def tell_pictures(self, detail: str) -> None:
        self._agent.calls.append(("tell_pictures", detail))

    def tell_drawing(self, problem: str) -> None:
        self._agent.calls.append(("tell_drawing", problem))

    async def doctor(self) -> list[tuple[str, str, str]]:
        return [("ok", "database", "opens"), ("warn", "keys", "none found")]


class FakeBackground(Background):
    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent
        self.known: dict[str, JobInfo] = {}
        self.outputs: dict[str, str] = {}
        self.waited_for = False

    def move(self) -> bool:
        self._agent.calls.append(("move_jobs", None))
        return self.waited_for

    def infos(self) -> list[JobInfo]:
        return list(self.known.values())

    def output(self, id: str) -> str:
        if id not in self.known:
            raise AgentError(f"There is nothing in the background called {id!r}.")
        return self.outputs.get(id, "")

    async def stop(self, id: str) -> str:
        self._agent.calls.append(("stop_job", id))
        return self._change(id, state="stopped", finished=self.known[id].started + 3, kept=False)

    def keep(self, id: str, going_on: bool = True) -> str:
        self._agent.calls.append(("keep_job", (id, going_on)))
        return self._change(id, kept=going_on)

    def _change(self, id: str, **facts: Any) -> str:
        self.known[id] = replace(self.known[id], **facts)
        self._agent.publish(JobsChanged(sum(job.state == "running" for job in self.known.values())))
        return f"{id} is {'kept' if facts['kept'] else 'stopped'}."

    def left_running(self) -> list[str]:
        return [f"Goes on: {job.command}" for job in self.known.values() if job.kept]


class FakeBudget(Part, SpendingBudget):
    def lines(self) -> list[BudgetLine]:
        return [BudgetLine("turn", None), BudgetLine("session", 5.0, Cost(0.42)), BudgetLine("day", None)]

    def set(self, name: BudgetName, limit: float | None) -> None:
        self._agent.calls.append(("budget", (name, limit)))
