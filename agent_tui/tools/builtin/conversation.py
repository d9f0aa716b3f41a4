"""ask, present_plan, todo, skill, subagent: the tools that reach no file and run no command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.events import QuestionAnswer
from agent_tui.models.messages import APPROVED, FEEDBACK, PLAN_TOOL, Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured, pictured_line, plain_line
from agent_tui.text.numbers import lines_in, plural
from agent_tui.tools.arguments import FLAG, TEXT, described, listed, parameters, validate
from agent_tui.tools.base import GENERAL, Intent, Task, TodoItem, ToolContext, ToolOutcome
from agent_tui.tools.output import cap

MIN_CHOICES, MAX_CHOICES = 2, 6
MAX_QUESTION = 2_000
MAX_CHOICE = 300
"""Characters; what is longer is no question that can be read beside the conversation."""

NOBODY = "Nobody can answer here. Decide yourself and say what you assumed."
DECLINED = "The user declined to answer. Decide yourself where that is safe, else stop and say what you need."


@dataclass(slots=True)
class AskArguments:
    question: str
    choices: list[str]
    several: bool = False


class AskTool:
    """Works in every mode, where somebody can answer."""

    group = "builtin"
    schema = ToolSchema(
        "ask",
        "Ask the user what only they can decide. They may also answer in their own words.",
        parameters(
            {
                "question": TEXT,
                "choices": described(listed(TEXT), "2-6, your advice first"),
                "several": described(FLAG, "more than one may be chosen"),
            },
            "question",
            "choices",
        ),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        return Intent("question", f"ask: {pictured_line(_checked_question(arguments).question)[:100]}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _checked_question(arguments)
        if context.user is None:
            raise ToolError(NOBODY)
        answer = await context.user.choose(args.question, tuple(args.choices), args.several)
        summary, text = said(answer)
        return ToolOutcome(text, display={"kind": "text", "summary": summary, "answer": summary})


def said(answer: QuestionAnswer) -> tuple[str, str]:
    """An answer in a few words for people, and as the model is told of it."""
    if answer.declined:
        return "declined", DECLINED
    words = answer.text.strip()
    lines = [f"The user chose: {'; '.join(answer.chosen)}"] if answer.chosen else []
    if words:
        lines.append(f"The user wrote: {words}")
    return pictured_line("; ".join([*answer.chosen, *([words] if words else [])]))[:100], "\n".join(lines)


def _checked_question(arguments: Metadata) -> AskArguments:
    """Raises ToolError for what cannot be put as a question."""
    args = validate(AskArguments, arguments, "ask")
    if not args.question.strip() or len(args.question) > MAX_QUESTION:
        raise ToolError(f"ask: the question must have 1 to {MAX_QUESTION} characters.")
    if not MIN_CHOICES <= len(args.choices) <= MAX_CHOICES:
        raise ToolError(f"ask: give {MIN_CHOICES} to {MAX_CHOICES} choices, not {len(args.choices)}.")
    if any(not choice.strip() or len(choice) > MAX_CHOICE for choice in args.choices):
        raise ToolError(f"ask: every choice must have 1 to {MAX_CHOICE} characters.")
    if len({choice.strip() for choice in args.choices}) < len(args.choices):
        raise ToolError("ask: two of the choices are the same.")
    return args


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
        parameters({"plan": described(TEXT, "Markdown")}, "plan"),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        _checked_plan(arguments)
        return Intent("question", PLAN_TOOL)

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _checked_plan(arguments)
        if context.user is None:
            raise ToolError(UNREACHABLE)
        answer = await context.user.approve(args.plan)
        if answer is None:
            text = "Nobody can approve the plan here: it is the answer, and the turn ends with it."
            return ToolOutcome(text, display=_plan_display("presented", args.plan), ends_turn=True)
        if answer.mode is not None:
            display = {**_plan_display(f"approved · {answer.mode}", answer.plan), APPROVED: True}
            if answer.plan.strip() == args.plan.strip():
                return ToolOutcome("The user approved the plan. Carry it out.", display=display)
            text = f"The user changed the plan and approved it. Carry out this version:\n\n{answer.plan}"
            return ToolOutcome(text, display=display)
        changed = f"\nTheir version of it:\n\n{answer.plan}" if answer.plan.strip() != args.plan.strip() else ""
        words, display = answer.feedback.strip(), _plan_display("not approved", args.plan)
        if not words:
            text = f"The user does not approve the plan, and will say what they want.{changed}"
            return ToolOutcome(text, display=display, ends_turn=True)
        told = f"{FEEDBACK} {words}\nRevise it and present it again."
        return ToolOutcome(f"The user does not approve the plan yet. {told}{changed}", display=display)


def _plan_display(summary: str, plan: str) -> Metadata:
    return {"kind": "text", "summary": summary, "answer": summary, "text": plan}


def _checked_plan(arguments: Metadata) -> PresentPlanArguments:
    args = validate(PresentPlanArguments, arguments, PLAN_TOOL)
    if not args.plan.strip():
        raise ToolError(f"{PLAN_TOOL}: the plan is empty.")
    if len(args.plan) > MAX_PLAN:
        raise ToolError(f"{PLAN_TOOL}: a plan may have {MAX_PLAN:,} characters at most; shorten it.")
    return args


MAX_ITEMS = 100

_BOXES = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


@dataclass(slots=True)
class TodoArguments:
    items: list[TodoItem]


class TodoTool:
    """Each call replaces the list, kept in ``context.memory.todo``."""

    group = "builtin"
    schema = ToolSchema(
        "todo",
        "Replace your todo list; use it for work of several steps.",
        parameters(
            {"items": listed(parameters({"text": TEXT, "status": {"enum": list(_BOXES)}}, "text", "status"))}, "items"
        ),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        items = validate(TodoArguments, arguments, "todo").items
        return Intent("internal", f"todo {_progress(items)}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        items = validate(TodoArguments, arguments, "todo").items
        if len(items) > MAX_ITEMS:
            raise ToolError(f"todo: more than {MAX_ITEMS} items.")
        listed = [asdict(item) for item in items]
        context.memory.todo = items
        text = "\n".join(f"{_BOXES[item.status]} {pictured_line(item.text)}" for item in items)
        display = {"kind": "list", "summary": _progress(items), "text": text, "items": listed}
        return ToolOutcome(f"The list is updated: {_progress(items)}.", display=display)


def _progress(items: list[TodoItem]) -> str:
    done = sum(item.status == "completed" for item in items)
    return f"{done} of {len(items)} done"


@dataclass(slots=True)
class SkillArguments:
    name: str


class SkillTool:
    """``find`` gives a skill's text and folder, ``names`` those there are."""

    group = "builtin"
    schema = ToolSchema(
        "skill",
        "Load a skill's instructions.",
        parameters({"name": TEXT}, "name"),
    )

    def __init__(self, find: Callable[[str], tuple[str, Path] | None], names: Callable[[], list[str]]) -> None:
        self._find = find
        self.names = names

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(SkillArguments, arguments, "skill")
        return Intent("internal", f"skill {plain_line(args.name, 64)}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(SkillArguments, arguments, "skill")
        found = self._find(args.name)
        if found is None:
            known = ", ".join(self.names()) or "none"
            raise ToolError(f"Unknown skill {plain_line(args.name, 64)!r}. Available: {known}.")
        text, folder = found
        lines = lines_in(text)
        body = f"The skill's folder, to which its paths are relative: {folder}\n\n{pictured(text)}"
        return ToolOutcome(body, display={"kind": "text", "summary": plural(lines, "line")})


LISTED_TYPES = 30
"""Types of subagents that the model is told of; it may name others."""


@dataclass(slots=True)
class SubagentArguments:
    description: str
    prompt: str
    background: bool | None = None
    type: str | None = None


class SubagentTool:
    """The work itself is the engine's (``context.subagent``); its tools are judged by the same permissions. ``types``
    are those there are, with their descriptions: they go with the schema, and without any it has no such argument."""

    group = "builtin"

    def __init__(self, types: Callable[[], Mapping[str, str]] = dict) -> None:
        self._types = types

    @property
    def schema(self) -> ToolSchema:
        arguments = {"description": described(TEXT, "3-6 words"), "prompt": TEXT, "background": FLAG}
        if types := self._types():
            lines = [f"{name}: {what}" for name, what in [*types.items()][:LISTED_TYPES]]
            if len(types) > LISTED_TYPES:
                lines.append("and " + ", ".join([*types][LISTED_TYPES:]))
            arguments["type"] = described(TEXT, "\n".join(lines))
        return ToolSchema(
            "subagent",
            "Give a self-contained task, e.g. a broad search, to an agent with a fresh context; only its answer "
            "returns.",
            parameters(arguments, "description", "prompt"),
        )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(SubagentArguments, arguments, "subagent")
        kind = f" {args.type}" if args.type in self._types() else ""
        where = " in the background" if args.background else ""
        return Intent("internal", f"subagent{kind}{where}: {pictured_line(args.description)[:100]}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(SubagentArguments, arguments, "subagent")
        if not args.prompt.strip():
            raise ToolError("subagent: prompt is empty.")
        if context.subagent is None:
            raise ToolError("No subagent can be started here. Do the task yourself.")
        # Without types the name is one of another program's, and the work is the same.
        types = self._types()
        kind = args.type if args.type and types and args.type != GENERAL else ""
        if kind and kind not in types:
            raise ToolError(
                f"There is no subagent type {pictured_line(kind)[:64]!r}. Leave it out, or use {', '.join(types)}."
            )
        task = Task(args.description, args.prompt, kind, bool(args.background))
        outcome = await context.subagent(task, context.emit)
        outcome.text = cap(outcome.text, context.config.output_limit, context.spill_dir, "subagent").text
        return outcome
