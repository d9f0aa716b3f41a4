"""present_plan: ends plan mode, when the user agrees."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.errors import ToolError
from agent_tui.models.messages import APPROVED, FEEDBACK, PLAN_TOOL, Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.tools.arguments import validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome

MAX_PLAN = 40_000
"""Characters."""

UNREACHABLE = "Nobody can approve a plan here. Do your task, or give what you found as your answer."


@dataclass(slots=True)
class PresentPlanArguments:
    plan: str


class PresentPlanTool:
    """Always offered, so that a change of the mode leaves the prompt's beginning as it is; it works in plan mode. The
    result's ``display`` holds the plan as it was approved: what a summary keeps of it."""

    group = "builtin"
    schema = ToolSchema(
        PLAN_TOOL,
        "In plan mode only: submit the finished plan for the user's approval.",
        {
            "type": "object",
            "properties": {"plan": {"type": "string", "description": "Markdown"}},
            "required": ["plan"],
        },
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        _checked(arguments)
        return Intent("question", "present plan")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _checked(arguments)
        if context.user is None:
            raise ToolError(UNREACHABLE)
        answer = await context.user.approve(args.plan)
        if answer is None:
            text = "Nobody can approve the plan here: it is the answer, and the turn ends with it."
            return ToolOutcome(text, display=_display("presented", args.plan), ends_turn=True)
        if answer.mode is not None:
            display = {**_display(f"approved · {answer.mode}", answer.plan), APPROVED: True}
            if answer.plan.strip() == args.plan.strip():
                return ToolOutcome("The user approved the plan. Carry it out.", display=display)
            text = f"The user changed the plan and approved it. Carry out this version:\n\n{answer.plan}"
            return ToolOutcome(text, display=display)
        changed = f"\nTheir version of it:\n\n{answer.plan}" if answer.plan.strip() != args.plan.strip() else ""
        if words := answer.feedback.strip():
            text = (
                f"The user does not approve the plan yet. {FEEDBACK} {words}\nRevise it and present it again.{changed}"
            )
            return ToolOutcome(text, display=_display("not approved", args.plan))
        text = f"The user does not approve the plan, and will say what they want.{changed}"
        return ToolOutcome(text, display=_display("not approved", args.plan), ends_turn=True)


def _display(summary: str, plan: str) -> Metadata:
    return {"kind": "text", "summary": summary, "answer": summary, "text": plan}


def _checked(arguments: Metadata) -> PresentPlanArguments:
    args = validate(PresentPlanArguments, arguments, PLAN_TOOL)
    if not args.plan.strip():
        raise ToolError(f"{PLAN_TOOL}: the plan is empty.")
    if len(args.plan) > MAX_PLAN:
        raise ToolError(f"{PLAN_TOOL}: a plan may have {MAX_PLAN:,} characters at most; shorten it.")
    return args
