"""The tools of the running session, what they may use, the files they changed, and what the model is told of
its mode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from agent_tui.config import Settings
from agent_tui.engine.conversation import Conversation
from agent_tui.models.messages import PLAN_TOOL, TOLD_MODE, AttachmentPart, Message, ToolResultPart
from agent_tui.models.requests import ModelInfo, OfferedTool, SentMessage
from agent_tui.models.session import FilesMoved
from agent_tui.models.usage import Limits
from agent_tui.paths import Paths, private_dir
from agent_tui.providers.catalog import patches_files
from agent_tui.providers.dialects.record import ImageLimits
from agent_tui.providers.secrets import Redactor
from agent_tui.tools.base import Subagent, Tool, ToolContext, ToolMemory, User
from agent_tui.tools.children.jobs import Jobs
from agent_tui.tools.files.snapshots import FileHistory, ProjectKeeping, RestorePlan, Snapshotter, apply_restore
from agent_tui.tools.files.text import remember_attached
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.registry import ToolRegistry, builtin_tools
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain, domain_for
from agent_tui.tools.sandbox.words import place_words

EDIT, PATCH = "edit", "apply_patch"


class ExtraTools(Protocol):
    """Tools from outside, such as MCP servers; ``offered`` decides which of them are deferred."""

    @property
    def starting(self) -> bool:
        """True when some tools are on their way and may still come."""

    def late(self) -> list[str]:
        """The servers without whose tools the next request goes out because they are still starting; each once."""

    def tools(self) -> list[Tool]: ...

    def offered(self, limits: Limits) -> list[OfferedTool]: ...

    def start(self, changed: Callable[[], None]) -> None: ...

    def recall(self) -> bool:
        """Instead of a start: has the tools as they were last seen. False where that is not known of all."""
        ...

    async def close(self) -> None: ...


class Toolbox:
    """Makes tool contexts for the current session and keeps what lives as long as it: todo list, files read."""

    def __init__(
        self,
        settings: Settings,
        paths: Paths,
        root: Path,
        cwd: Path,
        added: Sequence[Path],
        conversation: Callable[[], Conversation],
        *,
        extra: ExtraTools | None,
        subagent: Subagent,
        secrets: Redactor,
        hidden: Callable[[Path], bool],
        jail: Jail | None,
        domain: Callable[[], Domain],
        images: Callable[[], ImageLimits],
        jobs: Jobs,
        user: User,
    ) -> None:
        self._settings = settings
        self._paths = paths
        self._root = root
        self._cwd = cwd
        self._added = list(added)
        self._conversation = conversation
        self.memory = ToolMemory()
        self._snapshots = Snapshotter(self._save, lambda: self._conversation().store.transaction())
        self._keeping = ProjectKeeping(root, paths.cache / "history", self._snapshots)
        self._extra = extra
        self._subagent = subagent
        self._secrets = secrets
        self._hidden = hidden
        self._jail = jail
        self._domain = domain
        self._images = images
        self._jobs = jobs
        self._user = user
        self.registry = ToolRegistry(
            builtin_tools(settings.tools),
            lambda: extra.tools() if extra is not None else [],
            settings.tools.disabled,
        )

    def offered(self, model: ModelInfo) -> list[OfferedTool]:
        """The tools of the next request to ``model``, in the order they are sent. Of the two ways to change a part of a
        file it gets the one it is trained on; who switches ``edit`` off has neither."""
        tools = {t.schema.name: t for t in self.registry.tools() if t.group == "builtin"}
        if EDIT not in tools:
            tools.pop(PATCH, None)
        elif PATCH in tools:
            del tools[EDIT if patches_files(model.target) else PATCH]
        builtin = [OfferedTool(t.schema, t.group) for t in tools.values()]
        limits = model.limits
        return builtin + (self._extra.offered(limits) if self._extra is not None else [])

    @property
    def starting(self) -> bool:
        """True when tools of servers that are starting may still come."""
        return self._extra is not None and self._extra.starting

    def late(self) -> list[str]:
        """The servers without whose tools the next request goes out; each is named once."""
        return self._extra.late() if self._extra is not None else []

    def context(self) -> ToolContext:
        """Returns the context of a call made now: what it may use."""
        session = self._conversation().info.id
        return ToolContext(
            cwd=self._cwd,
            root=self._root,
            session_id=session,
            config=self._settings.tools,
            spill_dir=private_dir(self._paths.cache / "output" / session),
            added_dirs=self._added,
            before_change=self._snapshots.before_change,
            after_change=self._snapshots.after_change,
            subagent=self._subagent,
            hidden=self._hidden,
            memory=self.memory,
            jail=self._jail,
            domain=self._domain(),
            secrets=self._secrets,
            images=self._images(),
            jobs=self._jobs,
            keeping=self._keeping,
            user=self._user,
        )

    def _save(self, message_id: str, path: str, content: bytes | None, mode: int | None) -> None:
        current = self._conversation()
        current.store.snapshots.add(current.info.id, message_id, path, content, mode)

    def message_added(self, message: Message) -> None:
        if message.role == "user":
            self._snapshots.begin_turn(message.id)
            remember_attached(self.memory, message)

    def session_changed(self) -> None:
        self.memory = ToolMemory()

    def files(self) -> FileHistory:
        """Returns the history that is kept of the files that tools and commands changed in this session."""
        current = self._conversation()
        return FileHistory(current.store.snapshots.all(current.info.id))

    def keep_files(self, history: FileHistory, plan: RestorePlan | None, leaving: Sequence[str]) -> None:
        """Keeps the files of a branch that is left as they are: what its messages changed, and all that ``plan`` would
        write over. ``leaving`` are the ids of its messages. Raises StoreError."""
        paths = dict.fromkeys(history.to_keep(leaving))
        paths.update(dict.fromkeys(restore.path for restore in plan.restores) if plan is not None else {})
        with self._conversation().store.transaction():
            self._snapshots.keep(paths, leaving[-1] if leaving else "")

    async def restore_files(self, plan: RestorePlan) -> FilesMoved:
        """Does what ``plan`` says."""
        problems = await asyncio.to_thread(apply_restore, plan)
        failed = {line.partition(": ")[0] for line in problems}
        return FilesMoved([r.path for r in plan.restores if str(r.path) not in failed], problems)


MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "ask": "You may look around; for each edit, and for what a command wants beyond looking, the user is asked.",
        "accept-edits": "Edits in the project, and commands that its sandbox holds, run unasked; the user is asked "
        "before the rest.",
        "plan": "Read only: whatever changes something is refused. Explore, settle what is unclear with ask, then hand "
        f"in a plan with {PLAN_TOOL} (which files, what changes, how it is checked). Begin nothing before the user "
        "has approved it.",
        "auto": "You are trusted to work unasked; the user is asked only about what is dangerous or out of the way.",
        "bypass": "Everything runs unasked and without a sandbox.",
    }
)
"""By mode, what the model has to know of it."""

NOBODY = (
    "Nobody can answer: what would need a question is refused. Decide yourself, say what you assumed, and finish: "
    "commands in the background end with the run."
)
NOBODY_PLANS = f"Nobody can answer: {PLAN_TOOL} ends the run, and the plan is your answer."
SUBAGENT = (
    "Nobody can answer you, and a plan is not yours to present: your last message is all that the caller gets. "
    "Put into it what was asked for, with paths and lines, and what you could not do."
)


class ToldMode:
    """Puts the mode into messages that go out while the model does not know it: what is sent says what it knows, so
    that a compaction, a rewind or a restart needs no rule of its own. A ``subagent`` talks to nobody. ``jail``
    holds its commands."""

    def __init__(self, permissions: Permissions, subagent: bool = False, jail: Jail | None = None) -> None:
        self._permissions = permissions
        self._subagent = subagent
        self._jail = jail

    @property
    def text(self) -> str:
        """The text on the mode that the model has to know now."""
        mode = self._permissions.mode
        meaning = MEANINGS.get(mode, "")
        if self._subagent and mode == "plan":
            meaning = "Read only: whatever changes something is refused."
        domain = domain_for(mode)
        if self._jail is not None and domain != "free" and self._jail.expects(domain):
            ports = self._jail.sandbox is None or self._jail.has_ports()
            loopback = self._jail.config.loopback if ports else "deny"
            meaning += " " + place_words(domain, self._permissions.network, loopback, builds=mode == "ask")
        if self._subagent:
            return f"Permission mode: {mode}. {meaning} {SUBAGENT}"
        if self._permissions.can_ask:
            return f"Permission mode: {mode}. {meaning}"
        return f"Permission mode: {mode}. {meaning} {NOBODY_PLANS if mode == 'plan' else NOBODY}"

    def tell(self, message: Message, view: Callable[[], Sequence[SentMessage]]) -> None:
        """Adds it to ``message``, of the user or of a tool, where the messages of ``view`` do not say it already."""
        text = self.text
        if told(view()) == text:
            return
        result = message.tool_result
        if result is None:
            message.parts.insert(0, AttachmentPart(TOLD_MODE, "text/plain", text=text))
        else:
            # Not every provider takes anything but text between a call and the next answer.
            told_result = replace(
                result, text=f"{result.text}\n\n[{text}]", display={**(result.display or {}), TOLD_MODE: text}
            )
            message.parts[message.parts.index(result)] = told_result


def told(view: Sequence[SentMessage]) -> str | None:
    """Returns what the messages that are sent say last of the mode; None when they do not."""
    for sent in reversed(view):
        for part in sent.message.parts:
            if isinstance(part, AttachmentPart) and part.name == TOLD_MODE and part.text:
                return part.text
            if isinstance(part, ToolResultPart) and part.display and TOLD_MODE in part.display:
                text = str(part.display[TOLD_MODE])
                if text in part.text:
                    return text
    return None
