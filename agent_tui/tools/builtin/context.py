"""context: the model looks at what fills its context, and tends it."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import get_args

from agent_tui.errors import ToolError
from agent_tui.models.messages import CONTEXT_TOOL, Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured_line
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import TEXT, listed, parameters, validate
from agent_tui.tools.base import ContextAction, Intent, OwnContext, ToolContext, ToolOutcome

MOST_NAMES = 100


@dataclass(slots=True)
class ContextArguments:
    action: ContextAction
    names: list[str] = field(default_factory=list)
    text: str = ""
    focus: str = ""


class ContextTool:
    """Works on the context of who calls it (``ToolContext.own``): the session's, or a subagent's."""

    group = "builtin"
    schema = ToolSchema(
        CONTEXT_TOOL,
        "Tend your own context as it fills, beside other calls. status: how full it is, results by name. drop: "
        "let go of results you are done with; recall brings them back. fold: your text replaces the messages from the "
        "first to the last name. keep: your text survives every compaction word for word. compact: summarise older "
        "messages with a focus.",
        parameters(
            {"action": {"enum": list(get_args(ContextAction))}, "names": listed(TEXT), "text": TEXT, "focus": TEXT},
            "action",
        ),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args, own = _checked(arguments), _own(context)
        about = {"drop": plural(len(args.names), "result"), "fold": args.text, "keep": args.text, "compact": args.focus}
        summary = f"{CONTEXT_TOOL} {args.action} {pictured_line(about.get(args.action, ''))[:100]}".rstrip()
        names = (
            f"Messages {args.names[0]} to {args.names[-1]} become:" if args.action == "fold" else " ".join(args.names)
        )
        display = {"kind": "text", "text": "\n".join(filter(None, [names, args.text or args.focus])) or summary}
        expects = partial(own.expected, args.action, args.names, args.text, args.focus)
        return Intent("internal", summary, display=display, asks=own.asks(args.action), expects=expects)

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _checked(arguments)
        return await _own(context).tend(args.action, args.names, args.text, args.focus)


def _own(context: ToolContext) -> OwnContext:
    if context.own is None:
        raise ToolError(f"{CONTEXT_TOOL}: there is no conversation here.")
    return context.own


def _checked(arguments: Metadata) -> ContextArguments:
    """Raises ToolError for a call that lacks what its action needs."""
    given = arguments.get("names")
    # Names are digits: some models write them as numbers.
    names = [f"{name:06}" if type(name) is int else name for name in given] if isinstance(given, list) else given
    args = validate(ContextArguments, {**arguments, **({"names": names} if names else {})}, CONTEXT_TOOL)
    args.names = list(dict.fromkeys(name.strip().strip("[]#") for name in args.names if name.strip()))[:MOST_NAMES]
    args.text, args.focus = args.text.strip(), args.focus.strip()
    if args.action in ("drop", "fold") and not args.names:
        raise ToolError(f"{CONTEXT_TOOL}: {args.action} needs names; status lists them.")
    if args.action in ("fold", "keep") and not args.text:
        raise ToolError(f"{CONTEXT_TOOL}: {args.action} needs a text.")
    return args
