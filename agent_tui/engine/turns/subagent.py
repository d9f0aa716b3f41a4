"""Work beside the conversation's own steps: a subagent with one task, and the user's own shell command."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import Conversation, patiently
from agent_tui.engine.questions import Verdict
from agent_tui.engine.request_prefix import build_request_prefix
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.engine.state import AgentState
from agent_tui.engine.toolbox import ToldMode, Toolbox
from agent_tui.engine.turns.executor import TurnExecutor
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.errors import READ_ONLY, AgentError, ToolError
from agent_tui.models.events import (
    OWN_COMMAND,
    CompactionEnded,
    MessageAdded,
    Notice,
    StepEnded,
    ToolOutput,
    ToolStarted,
    TurnEnded,
)
from agent_tui.models.messages import OWN_OUTPUT, PLAN_TOOL, AttachmentPart, ToolCallPart, new_id, user_message
from agent_tui.text.clean import pictured
from agent_tui.tools.base import Intent, Tool, ToolContext, ToolMemory, ToolOutcome
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.registry import ToolRegistry

STEP_LIMIT = 40
"""Steps a subagent may take: enough for a search through a project, too few to burn money unseen."""

NOT_FOR_SUBAGENTS = ("subagent", "todo")
NOT_OFFERED = (*NOT_FOR_SUBAGENTS, "ask", PLAN_TOOL)


async def run_subagent(
    state: AgentState,
    toolbox: Toolbox,
    judge: Callable[[ToolCallPart, Tool, Intent, str], Awaitable[Verdict]],
    title: str,
    prompt: str,
    emit: Callable[[str], None],
    counted: Callable[[], None],
) -> ToolOutcome:
    """Runs ``prompt`` in a session of its own, with the tools and permissions of the parent but no subagents.

    Its steps are added to the parent's session as kind ``subagent``: they cost, but never anchor. ``emit`` gets a line
    for each tool it uses; ``counted`` is called when a call has ended and its cost is among the parent's.
    """
    parts, runtime, parent = state.parts, state.runtime, state.conversation
    store, told_mode = parent.store, ToldMode(parts.permissions, subagent=True, jail=parts.jail)
    project, model = parent.info.project, runtime.info.spec.key
    info = await patiently(lambda: store.sessions.create(project, model, parent=parent.info.id, kind="subagent"))
    info.title = f"↳ {title}"[:80]
    await patiently(lambda: store.sessions.save(info))
    child = Conversation(store, info)
    tools = [t for t in toolbox.registry.tools() if t.schema.name not in NOT_FOR_SUBAGENTS]
    offered = [o for o in runtime.request_prefix.offered if o.schema.name not in NOT_OFFERED]
    settings = replace(runtime.settings, agent=replace(runtime.settings.agent, step_limit=STEP_LIMIT))
    own = Runtime(
        conversation=child,
        provider=runtime.provider,
        counts=runtime.counts,
        settings=settings,
        info=runtime.info,
        effort=runtime.effort,
        request_prefix=build_request_prefix(runtime.request_prefix.system, offered),
        calibration=runtime.calibration,
        parent=parent,
        budget=runtime.budget,
        replay=runtime.replay,
    )

    async def prepare() -> None:
        await own.counts.ensure(child, own.request_prefix)

    memory = ToolMemory()

    def context() -> ToolContext:
        return replace(toolbox.context(), session_id=info.id, subagent=None, user=None, memory=memory, past=child.past)

    compaction = CompactionService(own, parts.counter, prepare)
    asker = f"subagent “{' '.join(pictured(title).split())[:60]}”"

    waited = 0.0

    async def timed(verdict: Awaitable[Verdict]) -> Verdict:
        nonlocal waited
        begun = time.monotonic()
        try:
            return await verdict
        finally:
            waited += time.monotonic() - begun

    async def judged(call: ToolCallPart, tool: Tool, intent: Intent) -> Verdict:
        verdict = await timed(judge(call, tool, intent, asker))
        again = verdict.again
        return verdict if again is None else replace(verdict, again=lambda stopped: timed(again(stopped)))

    hooks = state.hooks.inside(info.id, "general-purpose")
    runner = ToolRunner(ToolRegistry(tools), context, judged, hooks)
    executor = TurnExecutor(own, runner, compaction, told_mode=told_mode, hooks=hooks)
    message = user_message(prompt)
    told_mode.tell(message, child.view())
    ended, stopped = TurnEnded("error"), ""
    with store.locks.take(info.id):
        try:
            async with aclosing(executor.run(message)) as events:
                async for event in events:
                    if isinstance(event, ToolStarted):
                        emit(f"{event.summary}\n")
                    elif isinstance(event, StepEnded):
                        own.learn_growth(event.step)
                        counted()
                    elif isinstance(event, CompactionEnded):
                        counted()
                    elif isinstance(event, Notice) and event.code == "budget":
                        stopped = event.text
                    elif isinstance(event, TurnEnded):
                        ended = event
        finally:
            parent.save_if_possible()
    answer = next((m.text for m in reversed(child.path) if m.role == "assistant" and m.text.strip()), "")
    failed = True
    if ended.failure is not None:
        text = f"The subagent failed: {ended.failure.message}\n{answer}"
    elif stopped:
        # As an error, with the numbers: another subagent would be stopped just so.
        text = f"The subagent was stopped. {stopped}\n\n{answer}"
    else:
        early = f"\n\n(The subagent stopped early: {ended.stop_reason}.)" if ended.stop_reason != "end" else ""
        text, failed = f"{answer}{early}" or "The subagent gave no answer.", not (answer or early)
    return ToolOutcome(text.strip(), is_error=failed, waited=waited)


TIMEOUT = 3_600.0
"""Seconds a user's command may run: they can interrupt it."""


async def run_shell(command: str, context: ToolContext, conversation: Conversation, publish: Emit) -> None:
    """Runs ``command`` without asking and outside the sandbox: it is the user's. Its output arrives as events and is
    added to the conversation with it, so the model sees it with the next message. Cancelling ends it; what it said so
    far is kept.

    Raises AgentError when the conversation is read-only or the command cannot be started.
    """
    if conversation.read_only:
        raise AgentError(READ_ONLY)
    command = command.strip()
    if not command:
        raise AgentError("! needs a command, e.g. !git status.")
    call = new_id("shell")
    kept: list[str] = []
    line = " ".join(pictured(command).split())
    publish(ToolStarted(call, OWN_COMMAND, f"! {line if len(line) <= 100 else line[:99] + '…'}"))
    try:
        context = replace(context, emit=lambda text: publish(ToolOutput(call, text)), keep=kept.append)
        text = (await BashTool(own=True).run({"command": command, "timeout": TIMEOUT}, context)).text
    except asyncio.CancelledError:
        text = context.secrets.mask("".join(kept))
        _add(conversation, publish, command, f"{text}\n[interrupted by the user]".lstrip("\n"))
        raise
    except ToolError as error:
        text = context.secrets.mask(str(error))
    _add(conversation, publish, command, text)


def _add(conversation: Conversation, publish: Emit, command: str, text: str) -> None:
    output = AttachmentPart(OWN_OUTPUT, "text/plain", text=text)
    message = user_message(f"!{command}", attachments=[output])
    # The text comes first here: the output belongs to the command.
    message.parts.reverse()
    conversation.append(message)
    publish(MessageAdded(message))
