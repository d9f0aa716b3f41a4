"""Hooks of a session: tells them what happens, and says what follows from their answers.

Where none is set for an event nothing is done: whoever fires one looks into ``events`` first.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agent_tui.errors import ToolError
from agent_tui.models.events import (
    Event,
    Notice,
    NoticeLevel,
    PermissionAsked,
    PlanPresented,
    QuestionAsked,
    ServerAsked,
)
from agent_tui.models.messages import AttachmentPart, Message, Metadata, ToolResultPart, summary_text, user_message
from agent_tui.providers.secrets import Redactor
from agent_tui.records import dataclass
from agent_tui.text.clean import cut, encodable, one_line, plain_line, program_output
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.tools.hooks import Hook, HookAnswer
    from agent_tui.tools.starter import Starter

T = TypeVar("T")

MOST_ADDED = 10_000
"""Characters of what one hook adds; the rest is in a file."""
MOST_STOPS = 8
"""Times in a row that a hook makes a turn go on."""
MODES_OF_HOOKS = {
    "ask": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "auto": "auto",
    "bypass": "bypassPermissions",
}
"""What scripts know the permission modes by."""
_LINE = 300


@dataclass(slots=True, frozen=True)
class Facts:
    """The session as it is when an event is fired. ``environment`` is that of hooks; of the ``own`` ones all that the
    program has; ``starter`` starts them. ``numbers`` makes the JSON of the context and ``transcript`` the file of the
    conversation, both in a thread."""

    session: str
    root: Path
    cwd: Path
    mode: str
    spill: Path
    secrets: Redactor
    environment: Callable[[bool], Mapping[str, str]]
    starter: Starter
    numbers: Callable[[], Metadata] | None = None
    transcript: Callable[[], Path] | None = None


class Hooks:
    """``read`` finds the hooks that are in force; ``events`` are those of which there is one. What a hook adds where no
    message takes it waits for the next one. ``inside`` is what tells a subagent from the session itself."""

    def __init__(
        self,
        read: Callable[[], Sequence[Hook]] | None,
        publish: Callable[[Event], None],
        keep: Callable[[asyncio.Task[Any]], None],
        listen: Callable[[Callable[[Event], None]], object],
        facts: Callable[[], Facts],
        inside: Mapping[str, str] = {},
    ) -> None:
        self._read = read
        self._publish = publish
        self._background = keep
        self._listen = listen
        self._facts = facts
        self._hooks: Sequence[Hook] = ()
        self._brought: Sequence[Hook] = ()
        self._inside = inside
        self._pending: list[AttachmentPart] = []
        self._starting: asyncio.Task[None] | None = None
        self._told: set[tuple[Hook, str]] = set()
        self._begun = self._notified = self._untold = False
        self.events: frozenset[str] = frozenset()
        self.reload()

    def reload(self) -> None:
        """Finds them again: the folder was trusted, or is not any more."""
        self._hooks = [*(self._read() if self._read is not None else ()), *self._brought]
        self.events = frozenset(hook.event for hook in self._hooks)
        if "Notification" in self.events and not self._notified:
            self._notified = True
            self._listen(self._notify)

    def bring(self, hooks: Sequence[Hook]) -> None:
        """Runs these too from now on: those of the program that drives the run."""
        self._brought = hooks
        self.reload()

    @property
    def all(self) -> Sequence[Hook]:
        """Those in force."""
        return self._hooks

    def inside(self, agent_id: str, agent_type: str) -> Hooks:
        """Returns the hooks as a subagent has them."""
        inside = {"agent_id": agent_id, "agent_type": agent_type}
        return Hooks(lambda: self._hooks, self._publish, self._background, lambda _: None, self._facts, inside)

    def begin(self, source: str) -> None:
        """A session is in front: what hooks say of it goes with its first message, which waits for them."""
        self._begun = True
        self._pending.clear()
        if "SessionStart" in self.events:
            self._starting = self._beside(self._started(source))

    def _beside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name="hook")
        self._background(task)
        return task

    async def _started(self, source: str) -> None:
        self._keep("SessionStart", await self.fire("SessionStart", (source,), source=source))

    async def end(self, reason: str) -> None:
        """The session is left."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        begun, self._begun = self._begun, False
        if begun and "SessionEnd" in self.events:
            await self.fire("SessionEnd", (reason,), reason=reason)

    async def prompt(self, message: Message) -> str | None:
        """The user's message is about to be sent: what hooks add is put into it. Returns why it may not be; None where
        it may."""
        if self._starting is not None:
            try:
                await asyncio.wait({self._starting})
            except asyncio.CancelledError:
                self._starting.cancel()
                raise
            self._starting = None
        added = list(self._pending)
        if "UserPromptSubmit" in self.events:
            answer = await self.fire("UserPromptSubmit", prompt=message.text)
            if (why := answer.blocked if answer.blocked is not None else answer.ends) is not None:
                return why
            added += self._parts("UserPromptSubmit", answer)
        message.parts[:0] = added
        return None

    def sent(self) -> None:
        """It is part of the conversation, and what waited with it."""
        self._pending.clear()

    async def before_tool(self, names: Sequence[str], told: Metadata, call_id: str) -> HookAnswer:
        """A tool is about to be called."""
        return await self.fire("PreToolUse", names, tool_name=names[0], tool_input=told, tool_use_id=call_id)

    async def after_tool(self, names: Sequence[str], told: Metadata, message: Message) -> str | None:
        """A tool has done its work: what hooks say of it is put into the ``message`` with its result. Returns why all
        is to stop."""
        result = message.tool_result
        assert isinstance(result, ToolResultPart)
        response = {"text": result.text, "stdout": result.text, "stderr": "", "success": True, "interrupted": False}
        if path := told.get("file_path"):
            response["filePath"] = path
        said = {"tool_name": names[0], "tool_input": told, "tool_response": response, "tool_use_id": result.call_id}
        answer = await self.fire("PostToolUse", names, **said)
        if answer.blocked is not None:
            answer.adds.insert(0, answer.blocked)
        self.put(message, "PostToolUse", answer)
        return answer.ends

    def put(self, message: Message, event: str, answer: HookAnswer) -> None:
        """Puts what hooks add into a message."""
        message.parts += self._parts(event, answer)

    async def permission(self, names: Sequence[str], told: Metadata) -> tuple[str, str]:
        """The user is about to be asked whether a call may run. Returns ``allow``, ``deny`` or nothing, and why."""
        answer = await self.fire("PermissionRequest", names, tool_name=names[0], tool_input=told)
        return ("deny", answer.blocked) if answer.blocked is not None else (answer.choice, answer.why)

    async def stop(self, times: int, text: str) -> Message | None:
        """The model is done, and went on ``times`` times for a hook: what it is told where it is to go on again."""
        event = "SubagentStop" if self._inside else "Stop"
        if event not in self.events:
            return None
        subjects = [self._inside["agent_type"]] if self._inside else []
        answer = await self.fire(event, subjects, stop_hook_active=times > 0, last_assistant_message=text)
        if answer.ends is not None or answer.blocked is None:
            self._keep(event, answer)
            return None
        if times >= MOST_STOPS:
            self._say("warning", f"A {event} hook made the turn go on {times} times in a row: it ends now.")
            return None
        answer.adds.insert(0, answer.blocked)
        return user_message("", attachments=self._parts(event, answer, "the model goes on"))

    async def before_compaction(self, reason: str, focus: str) -> str | None:
        """Returns the line that says why the conversation is not compacted; None where it may be. A part that the user
        folds by hand is no compaction."""
        trigger = "manual" if reason == "manual" else "auto"
        if "PreCompact" not in self.events or reason == "edit":
            return None
        answer = await self.fire("PreCompact", (trigger,), trigger=trigger, custom_instructions=focus or None)
        self._keep("PreCompact", answer)
        why = answer.blocked if answer.blocked is not None else answer.ends
        return None if why is None else f"Not compacted: a hook blocked it: {one_line(why, _LINE)}"

    async def after_compaction(self, reason: str, summary: Message | None) -> None:
        """It was compacted."""
        trigger, text = "manual" if reason == "manual" else "auto", "" if summary is None else summary_text(summary)
        if reason == "edit":
            return
        if "PostCompact" in self.events:
            self._keep("PostCompact", await self.fire("PostCompact", (trigger,), trigger=trigger, compact_summary=text))
        if "SessionStart" in self.events:
            await self._started("compact")

    def _notify(self, event: Event) -> None:
        """Something happened that may want the user."""
        if "Notification" not in self.events:
            return
        match event:
            case PermissionAsked(_, _, _, summary):
                kind, text = "permission_prompt", f"agent-tui needs your permission: {summary}"
            case PlanPresented() | QuestionAsked() | ServerAsked():
                kind, text = "elicitation_dialog", "agent-tui has a question"
            case _:
                return
        self._beside(self.fire("Notification", (kind,), message=text, title="agent-tui", notification_type=kind))

    async def fire(self, event: str, subjects: Sequence[str] = (), **said: object) -> HookAnswer:
        """Runs the hooks of an event side by side; what they answer together. What there is to tell of them is told."""
        from agent_tui.tools.hooks import HookAnswer, answer_of, run_callback, run_refused

        hooks = [hook for hook in self._hooks if hook.event == event and hook.concerns(subjects)]
        hooks = list({(hook.command, hook.refused): hook for hook in reversed(hooks)}.values())[::-1]
        together = HookAnswer()
        if not hooks:
            return together
        facts = self._facts()
        told = {
            "session_id": facts.session,
            "transcript_path": await self._transcript(facts),
            "cwd": str(facts.cwd),
            "permission_mode": MODES_OF_HOOKS.get(facts.mode, facts.mode),
            "hook_event_name": event,
            **self._inside,
            **said,
        }
        if facts.numbers is not None:
            told["context"] = await asyncio.to_thread(facts.numbers)
        payload = json.dumps(told).encode() + b"\n"
        root, run = {"CLAUDE_PROJECT_DIR": str(facts.root)}, facts.starter.run
        running = (
            run(hook.command, payload, facts.cwd, {**facts.environment(hook.own), **root}, hook.seconds)
            if hook.call is None and not hook.refused
            else (run_refused(hook) if hook.refused else run_callback(hook, told))
            for hook in hooks
        )
        for hook, ran in zip(hooks, await asyncio.gather(*running), strict=True):
            answer = answer_of(hook, ran, told)
            if answer.choice == "allow" and not hook.own:
                answer = replace(answer, choice="", problem="only hooks of your own configuration can allow")
            self._told_of(hook, answer.problem, facts)
            for line in answer.tells:
                self._say("info", f"{hook.label}: {line}", facts)
            together.join(answer)
        blocked, ends, why = (
            text and cut(_harmless(text, facts), MOST_ADDED) for text in (together.blocked, together.ends, together.why)
        )
        return replace(together, blocked=blocked, ends=ends, why=why or "")

    async def _transcript(self, facts: Facts) -> str:
        """The file of the conversation; one that cannot be written is told once, and is not there."""
        try:
            return str(await asyncio.to_thread(facts.transcript)) if facts.transcript is not None else os.devnull
        except OSError as error:
            if not self._untold:
                self._untold = True
                self._say("warning", f"The transcript for hooks cannot be written: {error}.", facts, "hook_failed")
            return os.devnull

    def _told_of(self, hook: Hook, problem: str, facts: Facts) -> None:
        """One line on what is wrong with a hook, until it is right again."""
        if not problem:
            self._told = {told for told in self._told if told[0] != hook}
        elif (hook, problem) not in self._told:
            self._told.add((hook, problem))
            self._say("warning", f"{hook.label}: {problem}.", facts, "hook_failed")

    def _say(self, level: NoticeLevel, text: str, facts: Facts | None = None, code: str = "hook") -> None:
        secrets = (facts or self._facts()).secrets
        self._publish(Notice(level, plain_line(secrets.mask(text), _LINE), code))

    def _keep(self, event: str, answer: HookAnswer) -> None:
        self._pending += self._parts(event, answer)

    def _parts(self, event: str, answer: HookAnswer, does: str = "") -> list[AttachmentPart]:
        """What hooks add, as parts of a message. It is told how much that is, or what it ``does``."""
        from agent_tui.tools.output import cap

        facts, parts = self._facts(), list[AttachmentPart]()
        for text in answer.adds:
            if not (said := _harmless(text, facts)):
                continue
            try:
                said = cap(said, MOST_ADDED, facts.spill, "hook").text
            except ToolError:
                said = cut(said, MOST_ADDED)
            parts.append(AttachmentPart(f"{event} hook", "text/plain", text=said))
        if parts:
            count = sum(len(part.text or "") for part in parts)
            line = one_line(parts[0].text or "", 80)
            told = f"{event} hook: {does}" if does else f"{event} hook added {plural(count, 'character')}"
            self._say("info", f"{told}: {line}", facts, "hook_added")
        return parts


def _harmless(text: str, facts: Facts) -> str:
    return encodable(facts.secrets.mask(program_output(text))).strip()
