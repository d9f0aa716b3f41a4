"""The next request of a session, and the step that records what was sent with it."""

from __future__ import annotations

import time
from collections.abc import Callable

from agent_tui.context.anchor import runs_of
from agent_tui.context.past import given_of
from agent_tui.context.view import active_prune_ids
from agent_tui.engine.runtime.runtime import Runtime
from agent_tui.models.messages import fingerprint, new_id
from agent_tui.models.requests import ModelRequest
from agent_tui.models.steps import Step
from agent_tui.providers.reasoning import decide, prefix_fingerprint


def build_request(runtime: Runtime, request_id: str, max_output: int | None) -> ModelRequest:
    """The next request of a session as it stands."""
    return ModelRequest(
        id=request_id,
        spec=runtime.info.spec,
        session_id=runtime.conversation.info.id,
        system=runtime.prelude.system,
        messages=list(runtime.conversation.view()),
        tools=runtime.prelude.tools,
        max_output=max_output,
        effort=runtime.effort,
        fixed_fingerprint=runtime.prelude.fingerprint,
        timeout=runtime.settings.agent.timeout,
        content_timeout=runtime.settings.agent.content_timeout,
        answer_timeout=runtime.settings.agent.answer_timeout,
        documents=runtime.prelude.documents,
        replay=runtime.rule(),
        output_schema=None if runtime.schema_refused else runtime.output_schema,
        output_due=runtime.output_due,
    )


def record_sent(step: Step, request: ModelRequest, runtime: Runtime) -> Callable[[], None]:
    """Store with the step what of the reasoning its request sends, as the sender decides it. What is returned stores
    what else the request is made of: it can wait until that is on its way."""
    info = runtime.info
    plan, thinking = decide(request, info)
    step.sent_reasoning = runs_of(request.messages, plan, info.target.family)
    step.thinking = "off" if thinking.off else request.effort

    def remember() -> None:
        runtime.sent_log.record(step, request, info, plan, thinking, runtime.conversation.steps)
        runtime.expect_cold(None)

    return remember


def new_step(runtime: Runtime, kind: str) -> Step:
    """A step that records what is sent now: ids, fixed parts, prune records in force."""
    conversation, info = runtime.conversation, runtime.info
    view = conversation.view()
    return Step(
        id=new_id("step"),
        kind="count" if kind == "count" else "turn",
        model_key=info.spec.key,
        provider=info.target.provider,
        api=info.target.api,
        model=info.target.model,
        created=time.time(),
        sent_count=len(view),
        sent_fingerprint=fingerprint(sent.message.id for sent in view),
        prefix_fingerprint=prefix_fingerprint(view, runtime.prelude.fingerprint),
        fixed=conversation.fixed_sets.one(runtime.prelude.fixed),
        prune_ids=active_prune_ids(conversation.records),
        fixed_fingerprint=runtime.prelude.fingerprint,
        thinking=runtime.effort,
        cost_usd=info.prices.unreported,
        window=info.limits.window,
        given=given_of(runtime.inputs(), conversation.info.head_id),
    )
