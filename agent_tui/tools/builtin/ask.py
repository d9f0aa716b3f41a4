"""ask: a question to the user, with choices."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.questions import QuestionAnswer
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured_line
from agent_tui.tools.arguments import validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome

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
        {
            "type": "object",
            "properties": {
                "question": {"type": "string"},
                "choices": {"type": "array", "items": {"type": "string"}, "description": "2-6, your advice first"},
                "several": {"type": "boolean", "description": "more than one may be chosen"},
            },
            "required": ["question", "choices"],
        },
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        return Intent("question", f"ask: {pictured_line(_checked(arguments).question)[:100]}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _checked(arguments)
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


def _checked(arguments: Metadata) -> AskArguments:
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
