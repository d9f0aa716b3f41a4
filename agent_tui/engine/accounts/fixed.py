"""The fixed parts of the next request: built from prompt, files and tools as they are, or as they were sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent_tui.context.prompt import Stamp
from agent_tui.engine.project.prefix import StablePrefix, change_row, with_changes
from agent_tui.engine.project.prelude import Prelude, build_prelude, with_documents
from agent_tui.engine.project.small_window import fewer_tools_text, fitting_tools
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.engine.project.trusting import Trusting
from agent_tui.engine.project.workspace import Workspace
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.models.events import Notice
from agent_tui.models.messages import AttachmentPart, Message
from agent_tui.models.rows import RowId


class FixedParts:
    """Gives the runtime its prelude, and the user's messages what has become of files since they were sent."""

    def __init__(
        self, hub: Hub, bindings: Bindings, workspace: Workspace, toolbox: Toolbox, trusting: Trusting
    ) -> None:
        self._hub = hub
        self._bindings = bindings
        self._workspace = workspace
        self._toolbox = toolbox
        self._trusting = trusting
        self._prefix = StablePrefix()
        self._stamps: dict[Path, Stamp | None] = {}
        self._left_out: tuple[str, ...] = ()
        self._grounds: list[object] = []
        self._problems: list[str] = []

    @property
    def pinned(self) -> list[str]:
        """The files that go with every request, as absolute paths."""
        return list(self._bindings.current.conversation.info.state.pinned)

    @property
    def stale(self) -> bool:
        """Whether files were pinned or something was compacted since all was last taken as it is (the next message
        begins the prompt anew then), or pinned files alone were looked at."""
        return self._grounds != self._grounds_now()

    def _grounds_now(self) -> list[object]:
        return [self.pinned, [(r.id, r.active) for r in self._bindings.current.conversation.records]]

    @property
    def tools_starting(self) -> bool:
        """Whether tools of servers that are starting may still come."""
        return self._toolbox.starting

    def begin(self) -> None:
        """Another binding is in force: nothing of it is in a provider's cache yet."""
        self._prefix.forget()
        self._workspace.adopt(self._bindings.current.conversation.info.state.environment)
        self.refresh()

    def look_at_trust(self) -> None:
        """A folder that is no longer as it was trusted is not trusted any more, and the user is told."""
        line = self._trusting.lapsed()
        if line is not None:
            self._hub.publish(Notice("warning", line, "untrusted"))

    async def look_at_files(self, *, documents_only: bool) -> bool:
        """Takes memory files and pinned files as they are now; ``documents_only``: pinned files. True when that changed
        what the next request is made of."""
        binding = self._bindings.current
        now = await asyncio.to_thread(self._workspace.stamps, self.pinned)
        if not self._bindings.is_current(binding):
            return False
        changed = {path for path in now.keys() | self._stamps.keys() if now.get(path) != self._stamps.get(path)}
        if documents_only:
            changed &= {Path(path) for path in self.pinned}
        if not changed:
            return False
        runtime = binding.runtime
        before = [part.fingerprint for part in runtime.prelude.fixed]
        if documents_only:
            self.refresh_documents()
            self._stamps |= {path: now[path] for path in changed if path in now}
        else:
            self.refresh()
        return [part.fingerprint for part in runtime.prelude.fixed] != before

    def refresh(self, message: Message | None = None) -> None:
        """Builds the fixed parts anew, and counts what is new in them. What has become of files that stay as they were
        sent goes into ``message``, or waits for one."""
        self.look_at_trust()
        runtime = self._bindings.current.runtime
        self._stamps, self._grounds = self._workspace.stamps(self.pinned), self._grounds_now()
        documents, problems = self._workspace.documents(self.pinned)
        blocks, limits = self._workspace.blocks(), runtime.info.limits
        every = self._toolbox.offered(runtime.info)
        offered = fitting_tools(blocks, every, limits.window)
        fresh = build_prelude([*blocks, *documents], offered)
        fresh.set_counts(runtime.prelude.counts())
        changes = self._take(fresh, waiting=message is None)
        if message is not None:
            message.parts[0:0] = changes
        for problem in problems:
            if problem not in self._problems:
                self._hub.publish(Notice("warning", problem, "document"))
        self._problems = problems
        left_out = tuple(o.schema.name for o in every if o not in offered)
        if left_out and left_out != self._left_out:
            self._hub.publish(Notice("warning", fewer_tools_text(limits.window or 0, left_out), "fewer_tools"))
        self._left_out = left_out

    def refresh_documents(self, message: Message | None = None, *, waiting: bool = True) -> list[str]:
        """The same of pinned files alone: a running turn keeps its tools and memory. A line for each file that cannot
        be read."""
        documents, problems = self._workspace.documents(self.pinned)
        fresh = with_documents(self._bindings.current.runtime.prelude, documents)
        changes = self._take(fresh, waiting and message is None, ("documents",))
        self._grounds = []
        if message is not None:
            message.parts[0:0] = changes
        return problems

    def _take(
        self, fresh: Prelude, waiting: bool, rows: Sequence[RowId] = ("memory", "documents")
    ) -> list[AttachmentPart]:
        """Makes it the beginning of the next request, or what was sent where that is still cached: what has become of
        files since is returned. ``waiting`` shows it, for it goes with the user's next message."""
        binding = self._bindings.current
        runtime, conversation = binding.runtime, binding.conversation
        counts, before = runtime.prelude.counts(), runtime.prelude.fixed
        prelude, changes = self._prefix.settle(
            fresh, self.pinned, runtime.info, conversation.view(), conversation.steps, conversation.records
        )
        changes = [change for change in changes if change_row(change) in rows]
        prelude.keep_edited(before, rows)
        runtime.begin_with(with_changes(prelude, changes) if waiting else prelude)
        runtime.prelude.set_counts(counts)
        return changes
