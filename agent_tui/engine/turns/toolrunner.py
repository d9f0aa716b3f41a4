"""Runs the tool calls of one answer: judged first, reading ones side by side, the others one after the other."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from agent_tui.engine.hooks import Hooks
from agent_tui.engine.questions import CallVerdict
from agent_tui.engine.runtime import Emit
from agent_tui.engine.turns.checks import checked
from agent_tui.errors import AgentError, ToolError
from agent_tui.models.events import MessageAdded, Notice, ToolOutput, ToolStarted
from agent_tui.models.messages import (
    INTERRUPTED_RESULT,
    AttachmentPart,
    Message,
    Metadata,
    ToolCallPart,
    ToolResultPart,
    new_id,
    without_marks,
)
from agent_tui.providers.dialects.record import ImageLimits
from agent_tui.providers.secrets import Redactor, redact
from agent_tui.records import dataclass
from agent_tui.text.clean import cut, one_line, pictured, pictured_line
from agent_tui.text.secrets import MASK
from agent_tui.tools.aliases import read_call, understood
from agent_tui.tools.arguments import call_summary, read_arguments, unknown_arguments
from agent_tui.tools.base import Intent, Tool, ToolContext, ToolOutcome
from agent_tui.tools.files.beneath import at, info_of
from agent_tui.tools.files.pictures import fit_attachments, needs_fitting
from agent_tui.tools.files.text import version
from agent_tui.tools.registry import ToolRegistry
from agent_tui.tools.sandbox.words import Stopped

if TYPE_CHECKING:
    from agent_tui.tools.hooks import HookAnswer

log = logging.getLogger(__name__)

SIDE_BY_SIDE = frozenset({"read", "network", "internal"})
BEFORE_THE_ANSWER = "Not run: you wrote it before the user answered. Call it again if it still fits."
CUT_OFF = (
    "Not run: your answer was cut off at the output limit, perhaps within this call. Call it again, and write less at "
    "once: one call, or a long text in several."
)
NOBODY_ANSWERED = "Not run: you wrote it beside a question that nobody can answer. Call it again if it still fits."


Judge = Callable[[ToolCallPart, Tool, Intent], Awaitable[CallVerdict]]


class MakeContext(Protocol):
    """Makes the environment of a call, one of so many at once."""

    def __call__(self, calls: int = 1, /) -> ToolContext: ...


@dataclass(slots=True)
class _Job:
    call: ToolCallPart
    tool: Tool | None = None
    intent: Intent | None = None
    arguments: Metadata | None = None
    error: str | None = None
    note: str = ""
    versions: list[tuple[int, ...] | None] = field(default_factory=list)
    blocked: str | None = None
    """Why a hook does not let it run."""

    @property
    def kind(self) -> str | None:
        return self.intent.kind if self.intent is not None else None


class ToolRunner:
    """``context`` makes the environment of a call; ``judge`` asks the permissions, and the user where they say so.
    ``hooks`` are told of each call before and after it."""

    def __init__(self, registry: ToolRegistry, context: MakeContext, judge: Judge, hooks: Hooks | None = None) -> None:
        self._registry = registry
        self._context = context
        self._at_once = 1
        self._judge = judge
        self._hooks = hooks
        self._kept: dict[str, str] = {}

    async def run(
        self, calls: Sequence[ToolCallPart], emit: Emit, store: Callable[[Message], None], cut_off: bool = False
    ) -> bool:
        """Runs all calls and stores a result message for each, in the order of the calls. True when the turn ends with
        one of them. What follows a question may look, and ask more: what else there is was written without the answer.

        ``cut_off``: the answer hit its output limit, so no call of it is run: even one that parses may lack its end.
        Cancelling stores what has finished; calls without a result are the caller's to close (``interrupted``).
        """
        self._kept.clear()
        left, asked = list(calls), False
        while left:
            # What a call would do is looked at when its turn comes: the calls before it may have changed that.
            first = self._job(left.pop(0), cut_off)
            batch = [first]
            while left and (first.error is not None or first.kind in SIDE_BY_SIDE):
                following = self._job(left[0], cut_off)
                # What is wrong now may be right when its turn comes: a file is read first, then written.
                if following.error is not None or following.kind not in SIDE_BY_SIDE:
                    break
                batch.append(following)
                left.pop(0)
            if asked and first.kind not in (None, "question", *SIDE_BY_SIDE):
                first.error = NOBODY_ANSWERED if self._context().user is None else BEFORE_THE_ANSWER
            if await self._batch(batch, emit, store):
                return True
            asked = asked or first.kind == "question"
        return False

    def knows(self, name: str) -> bool:
        """Returns whether there is a tool that is called so, here or by other agents."""
        try:
            self._registry.get(name)
        except ToolError:
            return False
        return True

    def interrupted(self, call: ToolCallPart) -> Message:
        """The result of a call that was cut off, with what its tool had said until then."""
        kept = self._kept.get(call.call_id, "")
        text = f"{INTERRUPTED_RESULT} by the user. Its output until then:\n{kept}" if kept else INTERRUPTED_RESULT
        part = ToolResultPart(call.call_id, call.name, text, is_error=True)
        return Message(new_id("msg"), "tool", [part], created=time.time())

    def _job(self, call: ToolCallPart, cut_off: bool) -> _Job:
        job = _Job(call)
        if cut_off:
            job.error = CUT_OFF
            return job
        try:
            job.tool, job.arguments, fault = self._understood(call)
            job.note = "\n".join(filter(None, [_mended(fault), _passed_over(job.tool, job.arguments)]))
            job.intent = job.tool.intent(job.arguments, self._context())
            job.versions = _versions(job.intent)
        except ToolError as error:
            job.error = self._context().secrets(str(error))
        except Exception as error:
            job.error = _unexpected(call, error)
        return job

    def _understood(self, call: ToolCallPart) -> tuple[Tool, Metadata, str]:
        """The tool that is meant, its arguments in its words, and what was wrong with their JSON. What a server's tool
        takes is the server's to say."""
        tool = self._registry.get(call.name)
        if tool.group != "builtin":
            return tool, *read_arguments(call.arguments)
        read, fault = read_call(call.name, call.arguments)
        name, arguments = understood(call.name, read, self._context().cwd)
        return self._registry.get(name), arguments, fault

    async def _batch(self, jobs: list[_Job], emit: Emit, store: Callable[[Message], None]) -> bool:
        ends_turn, self._at_once = False, len(jobs)
        tasks = [asyncio.create_task(self._one(job, emit)) for job in jobs]
        try:
            for task in tasks:
                message, ends = await task
                ends_turn = ends_turn or ends
                store(message)
                emit(MessageAdded(message))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return ends_turn

    async def _one(self, job: _Job, emit: Emit) -> tuple[Message, bool]:
        """The result of a call, and whether the turn ends with it."""
        call, started = job.call, time.monotonic()
        said: HookAnswer | None = None
        if job.error is None and self._hooks is not None and "PreToolUse" in self._hooks.events:
            job, said = await self._before(job, self._hooks)
        outcome, allowed = ToolOutcome(job.error or "", is_error=True), False
        if job.error is not None:
            # No tool has made one line of it: these are the model's own words.
            emit(ToolStarted(call.call_id, call.name, one_line(call_summary(call.name, call.arguments))))
        elif job.tool is not None and job.intent is not None:
            verdict = await self._verdict(job, job.tool, job.intent)
            emit(ToolStarted(call.call_id, call.name, job.intent.summary))
            started = time.monotonic()
            if allowed := verdict.allowed:
                outcome = await self._execute(job, emit, verdict)
                if outcome.stopped is not None and verdict.again is not None:
                    outcome = await self._once_more(job, emit, verdict.again, outcome, outcome.stopped)
            else:
                outcome = ToolOutcome(verdict.text, is_error=True, display={"kind": "text", "text": verdict.text})
        lasted = time.monotonic() - started
        if job.kind == "question":
            outcome = replace(outcome, waited=lasted)
        if job.note:
            outcome = replace(outcome, text=f"{outcome.text}\n{job.note}")
        context = self._context()
        outcome = _masked(await _fitted(outcome, context.images), context.secrets)
        display = {"summary": job.intent.summary} if job.intent is not None else {}
        display |= outcome.display or {}
        seconds = round(max(0.0, lasted - outcome.waited), 3)
        result = ToolResultPart(call.call_id, call.name, outcome.text, outcome.is_error, display or None, seconds)
        message = Message(new_id("msg"), "tool", [result, *outcome.attachments], created=time.time())
        ends = said.ends if said is not None else None
        if self._hooks is not None and said is not None:
            self._hooks.put(message, "PreToolUse", said)
        if self._hooks is not None and "PostToolUse" in self._hooks.events and allowed and not outcome.is_error:
            self._kept[call.call_id] = outcome.text
            ends = await self._hooks.after_tool(*self._told(job), message) or ends
            del self._kept[call.call_id]
        if ends is not None:
            emit(Notice("warning", f"A hook stopped the turn: {ends}", "hook"))
        return message, outcome.ends_turn or ends is not None

    def _told(self, job: _Job) -> tuple[list[str], Metadata]:
        """The names and the input of a call, as hooks know them."""
        from agent_tui.tools.hooks import told_call

        assert job.tool is not None
        return told_call(job.tool.schema.name, job.arguments or {}, self._context().cwd)

    async def _before(self, job: _Job, hooks: Hooks) -> tuple[_Job, HookAnswer]:
        """A call as it is once hooks were asked about it, and what they said."""
        from agent_tui.tools.hooks import changed_input

        answer = await hooks.before_tool(*self._told(job), job.call.call_id)
        if answer.changed is not None and job.tool is not None:
            changed = json.dumps(changed_input(job.tool.schema.name, job.arguments or {}, answer.changed))
            job = self._job(replace(job.call, arguments=changed), cut_off=False)
            job.note = "\n".join(filter(None, [job.note, f"[A hook changed the input to {cut(changed, 1_000)}]"]))
        why = answer.blocked if answer.blocked is not None else answer.ends
        job.blocked = None if why is None else f"Blocked by the user's PreToolUse hook: {why}"
        if job.intent is not None:
            job.intent = replace(job.intent, hook=answer.choice, hook_reason=answer.why)
        return job, answer

    async def _verdict(self, job: _Job, tool: Tool, intent: Intent) -> CallVerdict:
        if job.blocked is not None:
            return CallVerdict(False, job.blocked)
        if self._hooks is not None and "PermissionRequest" in self._hooks.events:
            intent = replace(intent, ask_hooks=partial(self._hooks.permission, *self._told(job)))
        try:
            verdict = await self._judge(job.call, tool, intent)
        except Exception as error:
            return CallVerdict(False, _unexpected(job.call, error))
        if verdict.allowed and _versions(intent) != job.versions:
            return CallVerdict(False, "The file changed after the call was looked at. Read it again, then change it.")
        return verdict

    async def _once_more(
        self,
        job: _Job,
        emit: Emit,
        again: Callable[[Stopped], Awaitable[CallVerdict]],
        looked: ToolOutcome,
        stopped: Stopped,
    ) -> ToolOutcome:
        """Returns the outcome of a command that wanted more than to look: it runs again with that, or what it said
        stands."""
        self._kept[job.call.call_id] = self._context().secrets.mask(looked.text)
        asked = time.monotonic()
        try:
            verdict = await again(stopped)
        except Exception as error:
            verdict = CallVerdict(False, _unexpected(job.call, error))
        waited = time.monotonic() - asked
        self._kept.pop(job.call.call_id, None)
        if not verdict.allowed:
            text = f"{verdict.text}\n[It wanted {stopped.what}. Its output while it could only look:]\n{looked.text}"
            return replace(looked, text=text, is_error=True, waited=waited)
        emit(ToolOutput(job.call.call_id, "\n[started again, with what was allowed]\n"))
        outcome = await self._execute(job, emit, verdict)
        return replace(outcome, waited=outcome.waited + waited)

    async def _execute(self, job: _Job, emit: Emit, verdict: CallVerdict) -> ToolOutcome:
        assert job.tool is not None and job.intent is not None
        call = job.call
        allowed = frozenset(job.intent.paths) if job.intent.kind in ("read", "edit") else None
        context = self._context(self._at_once)
        if job.kind == "edit" and (problem := await asyncio.to_thread(_over_a_secret, call, job.intent, context)):
            return ToolOutcome(problem, is_error=True)
        live = context.secrets.stream()

        def show(text: str) -> None:
            if ready := live.feed(text):
                emit(ToolOutput(call.call_id, ready))

        def keep(text: str) -> None:
            self._kept[call.call_id] = context.secrets.mask(text)

        context = replace(
            context,
            emit=show,
            keep=keep,
            allowed_paths=allowed,
            domain=verdict.domain or context.domain,
            network=verdict.network or context.network,
            remotes=verdict.remotes,
            first_look=verdict.again is not None,
        )
        try:
            outcome = await job.tool.run(job.arguments or {}, context)
            if job.intent.kind == "edit":
                outcome = await checked(outcome, job.intent.paths, context)
            if rest := live.flush():
                emit(ToolOutput(call.call_id, rest))
            return outcome
        except AgentError as error:
            return ToolOutcome(context.secrets(str(error)), is_error=True)
        except Exception as error:
            return ToolOutcome(_unexpected(call, error), is_error=True)


def _mended(fault: str) -> str:
    """A line on arguments that were no JSON and plainly meant."""
    return f"[The arguments were not valid JSON ({fault}); they were read as what they plainly mean.]" if fault else ""


def _passed_over(tool: Tool, arguments: Metadata) -> str:
    """A line on arguments that a tool does not know. What a server's tool takes is the server's to say."""
    if tool.group.startswith("mcp:"):
        return ""
    parameters = tool.schema.parameters
    unknown = [pictured_line(name)[:60] for name in unknown_arguments(parameters, arguments)[:5]]
    if not unknown:
        return ""
    takes = ", ".join(parameters.get("properties", {})) or "none"
    return f"[{tool.schema.name} has no argument {', '.join(unknown)}: ignored. It takes: {takes}]"


def _unexpected(call: ToolCallPart, error: Exception) -> str:
    log.exception("Tool %s failed", call.name)
    return pictured(redact(f"{call.name} failed: {type(error).__name__}: {error}"))[:2_000]


async def _fitted(outcome: ToolOutcome, limits: ImageLimits) -> ToolOutcome:
    """Returns a tool's answer with its images as the model takes them, and a line for each that is not what it was."""
    if not needs_fitting(outcome.attachments, limits):
        return outcome
    kept, changed, refused = await asyncio.to_thread(fit_attachments, outcome.attachments, limits)
    notes = [pictured(line) for line in (*changed, *(f"not attached: {line}" for line in refused))]
    display = dict(outcome.display) if outcome.display else None
    if display is not None:
        display["summary"] = "; ".join([*filter(None, [str(display.get("summary") or "")]), *notes])
    text = "\n".join([outcome.text, *(f"[{note}]" for note in notes)])
    return replace(outcome, text=text, display=display, attachments=kept)


def _masked(outcome: ToolOutcome, secrets: Redactor) -> ToolOutcome:
    """Returns a tool's answer without the user's keys: from here on it is stored, shown and sent."""
    return replace(
        outcome,
        text=without_marks(secrets.mask(outcome.text)),
        display=secrets.mask_all(outcome.display),
        attachments=mask_attachments(outcome.attachments, secrets),
    )


def mask_attachments(attachments: Sequence[AttachmentPart], secrets: Redactor) -> list[AttachmentPart]:
    """Attached texts without the user's keys."""
    return [replace(part, text=secrets.mask(part.text)) if part.text else part for part in attachments]


def _over_a_secret(call: ToolCallPart, intent: Intent, context: ToolContext) -> str:
    """Why an edit would write the mask over a key that it stands for; else empty."""
    if MASK not in call.arguments:
        return ""
    for path in intent.paths:
        try:
            with at(path) as place:
                text = place.read()[0].decode("utf-8", "replace")
        except OSError:
            continue
        if context.secrets.mask(text) != text:
            return (
                f"{path.name} holds a key of the user, which is shown to you as {MASK}. Writing {MASK} would destroy "
                "it: edit the lines around it, without it."
            )
    return ""


def _versions(intent: Intent) -> list[tuple[int, ...] | None]:
    """Returns the versions that the files of an edit have now, so that nothing is changed but what was looked at."""
    infos = map(info_of, intent.paths if intent.kind == "edit" else ())
    return [None if info is None else version(info) for info in infos]
