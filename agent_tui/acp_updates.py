"""What editors say and are told, in the form of the Agent Client Protocol: messages, tool calls, diffs, choices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from acp import RequestError, helpers, schema

from agent_tui.commands import registry
from agent_tui.commands.project import MODE_HELP
from agent_tui.config import PERMISSION_MODES
from agent_tui.context.compaction.notices import done_text
from agent_tui.control.control import ControlEvent, Option, Question
from agent_tui.engine.agent import Agent
from agent_tui.errors import AgentError
from agent_tui.headless.incoming import image_part
from agent_tui.models.events import (
    AnswerInterrupted,
    CompactionEnded,
    ContextEdited,
    MessageAdded,
    Notice,
    PartDelta,
    RetryWaiting,
    StepEnded,
    StopReason,
    ToolOutput,
    ToolStarted,
)
from agent_tui.models.failure import BEGINS_AGAIN
from agent_tui.models.messages import (
    TOLD,
    AttachmentPart,
    Message,
    Metadata,
    ToolCallPart,
    ToolResultPart,
    attached_name,
    written_in,
)
from agent_tui.models.search import search_calls
from agent_tui.text.clean import clean_line, cut
from agent_tui.text.diff import read_diff
from agent_tui.text.numbers import duration
from agent_tui.tools.arguments import call_summary, parse_arguments

COMMANDS = ("context", "compact", "usage", "trust")
"""Commands of the chat that an editor has too; they answer with text."""
REASONS: dict[StopReason, schema.StopReason] = {
    "end": "end_turn",
    "step_limit": "max_turn_requests",
    "interrupted": "cancelled",
    "refused": "refusal",
    "length": "max_tokens",
    "budget": "max_turn_requests",
    "error": "end_turn",
}
_TITLE = 4_000
"""Characters of the title of a question."""
_KINDS: dict[str, schema.ToolKind] = {
    "read": "read",
    "list": "search",
    "glob": "search",
    "grep": "search",
    "edit": "edit",
    "write": "edit",
    "apply_patch": "edit",
    "bash": "execute",
    "fetch": "fetch",
    "web_search": "fetch",
    "todo": "think",
    "present_plan": "think",
}


def wrong(text: str) -> RequestError:
    """What the editor asked for cannot be done; editors show the message."""
    return RequestError(-32602, text, {"error": text})


def message_of(prompt: Sequence[Any]) -> tuple[str, list[AttachmentPart]]:
    """The blocks of a prompt as text and attachments; a link is named where it stands, and the agent reads it where it
    may. Raises RequestError for what is not taken."""
    text, linked = "", False
    attached: list[AttachmentPart] = []
    for block in prompt:
        match block.type:
            case "text" | "resource_link":
                more, link = (block.text, False) if block.type == "text" else (_place(block.uri), True)
                if text and more and not (text[-1].isspace() or more[0].isspace()):
                    text += " " if link or linked else "\n\n"
                text, linked = text + more, link
            case "image":
                attached.append(_image(block.data, len(attached) + 1))
            case "resource" if isinstance(block.resource, schema.TextResourceContents):
                place = _place(block.resource.uri)
                attached.append(
                    AttachmentPart(attached_name(Path(place).name or place), "text/plain", text=block.resource.text)
                )
            case "resource" if str(block.resource.mime_type).startswith("image/"):
                attached.append(_image(block.resource.blob, len(attached) + 1))
            case kind:
                raise wrong(f"Blocks of type {kind} are not supported, except for text and images.")
    return text, attached


def _image(data: str, number: int) -> AttachmentPart:
    try:
        return image_part(data, number)
    except ValueError as error:
        raise wrong(f"Cannot read the image: {error}.") from None


def _place(uri: str) -> str:
    match = re.fullmatch(r"file://[^/]*(/[^?#]*).*", uri, re.IGNORECASE | re.DOTALL)
    return unquote(match[1]) if match is not None else uri


def server_entry(server: Any) -> Metadata:
    """A server of the editor's as ``.mcp.json`` has it. Raises RequestError for one of a kind that is not reached."""
    if isinstance(server, schema.AcpMcpServer):
        raise wrong(f"The MCP server {server.name!r} can be reached through the editor alone.")
    if (url := getattr(server, "url", None)) is not None:
        return {
            "type": getattr(server, "type", "http"),
            "url": url,
            "headers": {each.name: each.value for each in server.headers},
        }
    return {"command": server.command, "args": server.args, "env": {each.name: each.value for each in server.env}}


def commands(agent: Agent) -> schema.AvailableCommandsUpdate:
    """The commands that may be typed in the editor."""
    theirs = [(own.name, own.description or own.name, "") for own in agent.project.user_commands()]
    ours = [(found.name, found.summary, found.args) for name in COMMANDS if (found := registry.find(name))]
    return helpers.update_available_commands(
        schema.AvailableCommand(
            name=name,
            description=what,
            input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=args)) if args else None,
        )
        for name, what, args in [*ours, *theirs]
    )


def modes(agent: Agent) -> schema.SessionModeState:
    """The permission modes; ``bypass`` only where it was set at the start."""
    now = agent.mode.now
    return schema.SessionModeState(
        current_mode_id=now,
        available_modes=[
            schema.SessionMode(id=mode, name=mode, description=MODE_HELP[mode])
            for mode in PERMISSION_MODES
            if mode != "bypass" or now == mode
        ],
    )


def config_options(agent: Agent) -> list[Any]:
    """What is chosen for a session: mode, model and, where the model has levels, how much it thinks. Editors that know
    of these ask for nothing else."""
    mode, levels = modes(agent), agent.models.levels()
    keys = dict.fromkeys([agent.models.spec.key, *(spec.key for spec in agent.models.all())])
    found = [
        _select(
            "mode", "Mode", "mode", mode.current_mode_id, [(m.id, m.description or "") for m in mode.available_modes]
        ),
        _select("model", "Model", "model", agent.models.spec.key, [(key, "") for key in keys]),
    ]
    if not levels[0].only:
        now = next(level.effort for level in levels if level.current)
        options = [(level.effort, level.words) for level in levels]
        found.append(_select("thinking", "Thinking", "thought_level", now, options))
    return found


def _select(id: str, name: str, category: Any, current: str, options: Sequence[tuple[str, str]]) -> Any:
    return schema.SessionConfigOptionSelect(
        id=id,
        name=name,
        category=category,
        type="select",
        current_value=current,
        options=[schema.SessionConfigSelectOption(value=v, name=v, description=what or None) for v, what in options],
    )


def usage(agent: Agent) -> schema.UsageUpdate | None:
    """How full the context is, and what the session has cost where all of that is known."""
    now = agent.context.usage()
    if not now.window:
        return None
    cost = now.session.cost.whole
    told = schema.Cost(amount=cost, currency="USD") if cost else None
    return schema.UsageUpdate(session_update="usage_update", used=now.total, size=now.window, cost=told)


def asked(question: Question, folder: Path) -> tuple[schema.ToolCallUpdate, list[schema.PermissionOption]]:
    """A question as a permission, which is all that an editor can be asked. What is too long for a title stands below
    it in full; of what an MCP server wants the address and the price come first."""
    said, content = question.text, _content(question.display, question.input, folder)
    if question.kind != "permission":
        if question.kind == "server":
            about = question.url or question.reason
            said = f"{question.server}: {about}\n{said}" if about else f"{question.server}: {said}"
        content += [_text(said)] if len(said) > _TITLE else []
    call = schema.ToolCallUpdate(
        tool_call_id=question.call_id or question.id,
        title=said if question.kind == "permission" else cut(said, _TITLE),
        kind=_KINDS.get(question.tool, "other"),
        content=content,
        raw_input=question.input or None,
        field_meta={"reason": question.reason} if question.reason else None,
    )
    return call, [
        schema.PermissionOption(option_id=option.id, name=option.label, kind=_option_kind(option))
        for option in question.options
        if not option.asks  # an editor has no field for it
    ]


def form(question: Question) -> schema.ElicitationSchema:
    """A question of the model's as a form: what to choose, and room for words."""
    labels = [option.label for option in question.options]
    fields: dict[str, Any] = {}
    if question.several and labels:
        items = schema.StringMultiSelectItems(type="string", enum=labels)
        fields["choices"] = schema.ElicitationMultiSelectPropertySchema(type="array", title="Choices", items=items)
    elif labels:
        fields["choices"] = schema.ElicitationStringPropertySchema(type="string", title="Choice", enum=labels)
    fields["text"] = schema.ElicitationStringPropertySchema(type="string", title="In your words")
    return schema.ElicitationSchema(type="object", properties=fields)


def filled(question: Question, content: Metadata) -> tuple[list[str], str]:
    """The ids of the options and the words of a form that was filled in. Raises ValueError for what is none."""
    chosen, text = content.get("choices") or [], content.get("text") or ""
    labels = [chosen] if isinstance(chosen, str) else chosen
    by_label = {option.label: option.id for option in question.options}
    if not isinstance(text, str) or not isinstance(labels, list) or not all(label in by_label for label in labels):
        raise ValueError("this is no answer")
    return [by_label[label] for label in labels], text


def _option_kind(option: Option) -> schema.PermissionOptionKind:
    if option.kind == "reject":
        return "reject_once"
    return "allow_always" if option.kind == "allow_always" else "allow_once"


def _content(display: Metadata, arguments: Metadata, folder: Path) -> list[Any]:
    """A change as diffs, one for each place in a file, anything else as text."""
    text = str(display.get("text") or "")
    if display.get("kind") != "diff":
        return [_text(text)] if text else []
    path = str(arguments.get("path") or display.get("path") or "")
    return list(_diffs(text, path, folder)) or ([_text(text)] if text else [])


def _diffs(text: str, path: str, folder: Path) -> Iterator[Any]:
    old: list[str] = []
    new: list[str] = []
    fresh = re.search(r"^@@ -0,0 ", text, re.MULTILINE) is not None

    def told() -> Iterator[Any]:
        if old or new:
            before = None if fresh and not old else "\n".join(old)
            yield helpers.tool_diff_content(str(folder / path), "\n".join(new), before)
        old.clear()
        new.clear()

    for line in read_diff(text, path).lines:
        if line.kind in ("gap", "file"):
            yield from told()
            path = line.path or path
        if line.kind in ("same", "removed"):
            old.append(line.text)
        if line.kind in ("same", "added"):
            new.append(line.text)
    yield from told()


def _text(text: str) -> Any:
    return helpers.tool_content(helpers.text_block(text))


def _call(call: ToolCallPart, folder: Path) -> list[Any]:
    try:
        arguments = parse_arguments(call.arguments)
    except AgentError:
        arguments = {}
    path, line = arguments.get("path"), arguments.get("offset")
    place = schema.ToolCallLocation(path=str(folder / path)) if isinstance(path, str) else None
    if place is not None and isinstance(line, int) and line > 0:
        place.line = line
    begun = helpers.start_tool_call(
        call.call_id,
        cut(clean_line(call_summary(call.name, call.arguments)), _TITLE),
        kind=_KINDS.get(call.name, "other"),
        status="pending",
        locations=[place] if place is not None else None,
        raw_input=arguments,
    )
    items = next((v for v in arguments.values() if isinstance(v, list)), []) if call.name == "todo" else []
    entries = [
        helpers.plan_entry(str(item.get("text") or item.get("content") or ""), status=_status(item.get("status")))
        for item in items
        if isinstance(item, dict)
    ]
    return [begun, *([helpers.update_plan(entries)] if entries else [])]


def _status(status: object) -> schema.PlanEntryStatus:
    return "completed" if status in ("done", "completed") else "in_progress" if status == "in_progress" else "pending"


def _result(result: ToolResultPart, folder: Path) -> Any:
    display = result.display or {}
    content = _content(display, {}, folder) if display.get("kind") == "diff" else []
    return helpers.update_tool_call(
        result.call_id, status="failed" if result.is_error else "completed", content=content or [_text(result.text)]
    )


def _searches(message: Message, folder: Path) -> list[Any]:
    found: list[Any] = []
    for call, result in search_calls(message.parts):
        found += [*_call(call, folder), *([_result(result, folder)] if result is not None else [])]
    return found


def updates(event: ControlEvent, folder: Path) -> list[Any]:
    """What an event tells the editor."""
    match event:
        case PartDelta(_, delta) if delta.text and delta.kind == "text":
            return [helpers.update_agent_message_text(delta.text)]
        case PartDelta(_, delta) if delta.text and delta.kind == "reasoning":
            return [helpers.update_agent_thought_text(delta.text)]
        case AnswerInterrupted():
            # Nothing that was said can be taken back.
            return [helpers.update_agent_message_text(f"\n\n[{BEGINS_AGAIN}]\n\n")]
        case StepEnded(_, message):
            return [*_searches(message, folder), *(u for call in message.tool_calls for u in _call(call, folder))]
        case ToolStarted(call_id, _, summary):
            return [helpers.update_tool_call(call_id, title=summary, status="in_progress")]
        case ToolOutput(call_id, text):
            return [helpers.update_tool_call(call_id, content=[_text(text)])]
        case MessageAdded(message) if message.tool_result is not None:
            return [_result(message.tool_result, folder)]
        case Notice(level, text, code) if level != "info" or code == "untrusted":
            return [helpers.update_agent_thought_text(f"{text}\n")]
        case ContextEdited(record) if record.by == "agent":
            return [helpers.update_agent_thought_text(f"{done_text(record)}\n")]
        case CompactionEnded(_, text, _, False):
            return [helpers.update_agent_thought_text(f"{text}\n")]
        case RetryWaiting(seconds, attempt, attempts, failure):
            text = f"{failure.message} Trying again in {duration(seconds)} ({attempt} of {attempts - 1}).\n"
            return [helpers.update_agent_thought_text(text)]
    return []


def told_again(message: Message, folder: Path) -> list[Any]:
    """A stored message, as it was told when it came."""
    if message.tool_result is not None:
        return [_result(message.tool_result, folder)]
    if message.role == "user":
        return _said(message)
    thought = [helpers.update_agent_thought_text(message.reasoning)] if message.reasoning else []
    said = [helpers.update_agent_message_text(message.text)] if message.text else []
    called = (update for call in message.tool_calls for update in _call(call, folder))
    return [*thought, *_searches(message, folder), *said, *called]


def _said(message: Message) -> list[Any]:
    written = written_in(message)
    found = [helpers.update_user_message_text(written.text)] if written.text else []
    for part in written.attachments:
        if part.name in TOLD:
            continue
        if part.is_image:
            found.append(helpers.update_user_message(helpers.image_block(part.data or "", part.media_type)))
        elif part.text is not None:
            held = helpers.embedded_text_resource(part.path or part.name, part.text, mime_type=part.media_type)
            found.append(helpers.update_user_message(helpers.resource_block(held)))
    return found
