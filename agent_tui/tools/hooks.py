"""Hooks: commands that run at events of a session. Which of them an event concerns, how one runs, what it answers.

Names and JSON are those of Claude Code, so that a script which was written for it does here what it does there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import os.path
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from agent_tui.config import HOOK_EVENTS
from agent_tui.config.files import Layer
from agent_tui.config.schema import matcher_problem
from agent_tui.errors import AgentError, ToolError
from agent_tui.models.messages import Metadata
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import duration
from agent_tui.tools.arguments import parse_arguments
from agent_tui.tools.base import GENERAL
from agent_tui.tools.mcp_names import CALL, is_mcp_name, short_name
from agent_tui.tools.starter import Ran

TIMEOUT, LAST_TIMEOUT = 60.0, 1.5
"""Seconds a hook may take; at the end of a session, where the user waits to leave."""

BLOCKING = frozenset(
    {"PreToolUse", "PermissionRequest", "UserPromptSubmit", "PostToolUse", "Stop", "SubagentStop", "PreCompact"}
)
"""Events at which exit code 2 and ``"decision": "block"`` mean something."""
GUARDING = frozenset({"PreToolUse", "PermissionRequest", "UserPromptSubmit"})
"""Events at which a hook holds something back: one that the user accepted and that is no longer so lets none pass."""
TEXT_ADDS = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events at which plain output is added to the context."""

_NAMES: Mapping[str, str] = {
    "read": "Read", "write": "Write", "edit": "Edit MultiEdit", "apply_patch": "apply_patch Edit Write MultiEdit",
    "list": "LS", "glob": "Glob", "grep": "Grep", "bash": "Bash", "jobs": "BashOutput TaskOutput KillShell",
    "fetch": "WebFetch", "web_search": "WebSearch", "todo": "TodoWrite", "subagent": "Task Agent",
    "ask": "AskUserQuestion", "present_plan": "ExitPlanMode", "skill": "Skill",
}  # fmt: skip
"""What our tools are called in matchers besides their own names; hooks are told the first one."""


@dataclass(slots=True, frozen=True)
class Hook:
    """A command at an event, or a ``call`` of the program that drives the run, which ``command`` names then. ``own``:
    the user's own configuration names it. ``source`` says where it is from. ``blocks``: so does its failure.
    ``refused``: it was accepted and is not as it was, so that it does not run, and why."""

    event: str
    command: str
    matcher: str = ""
    timeout: float | None = None
    source: str = ""
    own: bool = False
    call: Callable[[Metadata], Awaitable[Metadata]] | None = None
    blocks: bool = False
    refused: str = ""

    @property
    def seconds(self) -> float:
        return self.timeout or (LAST_TIMEOUT if self.event == "SessionEnd" else TIMEOUT)

    @property
    def label(self) -> str:
        return f"{self.event} hook `{one_line(self.command, 60)}`"

    @property
    def when(self) -> str:
        """The event, with what it is for: ``PreToolUse Bash``."""
        return one_line(f"{self.event} {self.matcher}".strip(), 100)

    def concerns(self, subjects: Sequence[str]) -> bool:
        """Returns whether its matcher fits one of the names of what happens; events without a name concern all."""
        if self.matcher in ("", "*") or not subjects:
            return True
        if _LIST.fullmatch(self.matcher):
            return not {name.strip() for name in re.split("[|,]", self.matcher)}.isdisjoint(subjects)
        return any(re.search(self.matcher, subject) for subject in subjects)


_LIST = re.compile(r"[\w\-, |]+", re.ASCII)


def tool_names(tool: str) -> list[str]:
    """The names by which matchers know a tool; the first is what hooks and scripts for Claude Code are told."""
    return [*_NAMES.get(tool, "").split(), tool, *([short_name(tool)] if is_mcp_name(tool) else [])]


def told_call(tool: str, arguments: Metadata, cwd: Path) -> tuple[list[str], Metadata]:
    """The names and the input of a call in the words that scripts know; those of the server's tool where one is called
    by way of ``mcp_call``."""
    name, inner = arguments.get("name"), arguments.get("arguments")
    if tool == CALL and isinstance(name, str) and is_mcp_name(name):
        with contextlib.suppress(ToolError):
            inner = parse_arguments(inner) if isinstance(inner, str) else inner
            return tool_names(name), inner if isinstance(inner, dict) else {}
    return tool_names(tool), told_input(tool, arguments, cwd)


def told_input(tool: str, arguments: Metadata, cwd: Path) -> Metadata:
    """The arguments of a call in the words that scripts know: paths whole, a time limit in milliseconds."""
    told = dict(arguments)
    if tool in ("read", "write", "edit") and isinstance(path := told.pop("path", None), str):
        told = {"file_path": os.path.normpath(cwd / Path(path).expanduser()), **told}
    if tool == "bash" and isinstance(timeout := told.get("timeout"), (int, float)):
        told["timeout"] = round(timeout * 1000)
    if tool == "subagent":
        told["subagent_type"] = told.pop("type", None) or GENERAL
    if "background" in told:
        told["run_in_background"] = told.pop("background")
    return told


def changed_input(tool: str, arguments: Metadata, told: Metadata) -> Metadata:
    """The arguments of a call whose input was changed to ``told``, so that the tool understands them."""
    if tool == CALL:
        return {**arguments, "arguments": told}
    return {"timeout_ms" if tool == "bash" and name == "timeout" else name: value for name, value in told.items()}


async def run_refused(hook: Hook) -> Ran:
    """How a hook ends that is not as the user accepted it."""
    return Ran(problem=hook.refused, changed=hook.refused)


def missing_guard(name: str, source: str, command: str) -> Hook | None:
    """What stands in the place of a hook that was accepted by this name (``PreToolUse Bash, at most 5 s``) and is not
    there as it was; None where it held nothing back."""
    event, _, matcher = re.sub(r", at most [\d.]+ s$", "", name).partition(" ")
    if event not in GUARDING:
        return None
    return Hook(event, command, matcher, source=source, refused=f"in {source}")


async def run_callback(hook: Hook, told: Metadata) -> Ran:
    """Has the driver run a hook of its own, as long as that may take."""
    assert hook.call is not None
    try:
        async with asyncio.timeout(hook.seconds):
            return Ran(said=await hook.call(told))
    except TimeoutError:
        return Ran(problem=f"took more than {duration(hook.seconds)} and was given up")
    except AgentError as error:
        return Ran(problem=f"failed: {one_line(str(error), 300)}")


Choice = Literal["", "allow", "ask"]


@dataclass(slots=True)
class HookAnswer:
    """The meaning of what one hook, or all of an event together, answered. ``blocked`` says why it may not be (None: it
    may), ``ends`` why all is to stop. ``tells`` is for the user, ``adds`` for the model, ``changed`` the input to run
    with. ``problem``: it could not be understood."""

    blocked: str | None = None
    choice: Choice = ""
    why: str = ""
    changed: Metadata | None = None
    ends: str | None = None
    tells: list[str] = field(default_factory=list)
    adds: list[str] = field(default_factory=list)
    problem: str = ""

    def join(self, other: HookAnswer) -> None:
        """Takes over what another hook answered: to block wins over to ask, and that over to allow."""
        self.blocked = other.blocked if self.blocked is None else self.blocked
        self.ends = other.ends if self.ends is None else self.ends
        self.changed = other.changed if self.changed is None else self.changed
        if other.choice == "ask" or not self.choice:
            self.choice, self.why = other.choice or self.choice, other.why or self.why
        self.tells += other.tells
        self.adds += other.adds


def answer_of(hook: Hook, ran: Ran, payload: Metadata | None = None) -> HookAnswer:
    """Returns what a hook means that was told ``payload``. Its JSON wins over its exit code, unless that is 2."""
    if ran.problem:
        # A hook of the project runs only once it was accepted; one of the user's own may name files nobody has seen.
        if ran.changed and hook.event in GUARDING and (ran.known or not hook.own):
            line = f"changed since you accepted it ({ran.changed}), so this is blocked; /trust shows the change"
            return HookAnswer(problem=line, blocked="it changed since it was accepted; /trust shows the change")
        return HookAnswer(problem=ran.problem, blocked=ran.problem if hook.blocks and hook.event in BLOCKING else None)
    text, said = ran.output.strip(), one_line(ran.errors, 500)
    adds_text, is_object = hook.event in TEXT_ADDS, text.startswith("{") and text.endswith("}")
    answer = HookAnswer()
    data = ran.said if ran.said is not None else decision_in(text, payload or {}, at_end=adds_text)
    if data is not None:
        try:
            answer = _understood(hook, data)
        except ValueError as error:
            answer = HookAnswer(problem=f"answered what cannot be used: {error}")
    elif is_object or (_LOOKS_DECIDED.search(text) and (text.endswith("}") or not adds_text)):
        answer = HookAnswer(problem="answered what cannot be used: not valid JSON")
    elif decision_in(ran.errors.strip(), payload or {}, at_end=True) is not None:
        answer = HookAnswer(problem="wrote its decision to standard error; it is read from standard output")
    if ran.code == 2:
        if hook.event in BLOCKING:
            reason = ran.errors.strip() or "it gave no reason"
            answer.blocked, answer.problem = reason if answer.blocked is None else answer.blocked, ""
        elif not answer.problem:
            answer.problem = f"exit code 2{f': {said}' if said else ''}"
    elif ran.code != 0 and data is None and not answer.problem:
        how = f"exit code {ran.code}" if ran.code > 0 else f"ended by signal {-ran.code}"
        answer.problem = f"{how}{f': {said}' if said else ''}"
    elif data is None and text and not answer.problem and hook.event in TEXT_ADDS:
        answer.adds.append(text)
    return answer


_DECIDES, _TELLS = frozenset(("decision", "hookSpecificOutput")), frozenset(("stopReason", "systemMessage"))
"""What the JSON of a hook decides by, beside ``continue``, and what it tells by."""
_LOOKS_DECIDED = re.compile(r"""["'](?:decision|permissionDecision|hookSpecificOutput)["']\s*:""")
_MOST_TRIED = 500
"""Places at which an object may begin that are tried, the last ones of the output."""


def decision_in(text: str, payload: Metadata, *, at_end: bool) -> Metadata | None:
    """Returns the last JSON object in a hook's output that decides, else the last that tells something; None where
    there is none. Login shells, version managers and package runners print before it and after it, and loggers objects
    of their own. ``at_end``: nothing may follow it, since what the hook prints is text for the model. An output that
    is one object is it.

    What only repeats something of the ``payload`` is no decision: a model could write one into the arguments of a call
    that a hook prints.
    """
    decoder, found, best = json.JSONDecoder(), None, 0
    starts = [match.start() for match in re.finditer(r"\{", text)]
    after = -1
    for start in starts[:1] + starts[1:][-_MOST_TRIED:]:
        if start < after:
            continue  # within an object that was read
        try:
            value, after = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        is_whole = start == 0 and after == len(text)
        weight = 0 if at_end and text[after:].strip() else _weight(value)
        if (is_whole or weight) and weight >= best and not _repeats(payload, value, text[start:after]):
            found, best = value, weight
    return found


def _weight(value: Metadata) -> int:
    """2 for what decides, 1 for what only tells something, 0 for what does neither, such as a line of a log."""
    if value.get("continue", True) is not True or any(value.get(key) for key in _DECIDES):
        return 2
    return int(any(value.get(key) for key in _TELLS))


def _repeats(payload: Metadata, value: Metadata, text: str) -> bool:
    """Returns whether an object, written as ``text``, stands in a payload."""
    waiting: list[Any] = [*payload.values()]
    while waiting:
        match waiting.pop():
            case str() as said if text in said:
                return True
            case dict() as inner if inner == value:
                return True
            case dict() as inner:
                waiting += inner.values()
            case list() as items:
                waiting += items
    return False


def _understood(hook: Hook, data: Metadata) -> HookAnswer:
    """Raises ValueError for what is not of the form that hooks answer in."""
    answer, event = HookAnswer(), hook.event
    if data.get("continue", True) not in (True, False):
        raise ValueError("continue is neither true nor false")
    if data.get("continue") is False:
        answer.ends = _text(data, "stopReason") or "no reason given"
    if message := _text(data, "systemMessage"):
        answer.tells.append(message)
    decision, reason = _text(data, "decision"), _text(data, "reason")
    if decision not in ("", "block", "approve"):
        raise ValueError(f"decision is {decision[:40]!r}")
    if decision == "block" and event in BLOCKING:
        answer.blocked = reason or "it gave no reason"
    elif decision == "approve" and event == "PreToolUse":
        answer.choice, answer.why = "allow", reason
    own = data.get("hookSpecificOutput") or {}
    if not isinstance(own, dict) or (_text(own, "hookEventName") or event) != event:
        raise ValueError("hookSpecificOutput is not of this event")
    if added := _text(own, "additionalContext"):
        answer.adds.append(added)
    changed = own.get("updatedInput")
    if event == "PreToolUse":
        _choose(answer, _text(own, "permissionDecision"), _text(own, "permissionDecisionReason"))
    elif event == "PermissionRequest" and (made := own.get("decision")) is not None:
        if not isinstance(made, dict) or made.get("updatedInput") or made.get("updatedPermissions"):
            raise ValueError("decision can only allow or deny here")
        _choose(answer, _text(made, "behavior"), _text(made, "message"))
        if made.get("interrupt") is True and answer.blocked is not None:
            answer.ends = answer.blocked
    if changed is not None:
        if event != "PreToolUse" or not isinstance(changed, dict):
            raise ValueError("updatedInput is not of this event")
        answer.changed = changed
    return answer


def _choose(answer: HookAnswer, choice: str, why: str) -> None:
    match choice:
        case "deny":
            answer.blocked = why or "it gave no reason"
        case "allow" | "ask":
            answer.choice, answer.why = choice, why
        case "" | "defer":
            pass
        case _:
            raise ValueError(f"it decides {choice[:40]!r}")


def _text(data: Metadata, name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str | None):
        raise ValueError(f"{name} is no text")
    return (value or "").strip()


def hooks_of_settings(root: Path, place: Path, text: str) -> tuple[list[Hook], list[str]]:
    """The hooks in the text of a project's ``.claude/settings.json``, and a line for each thing that cannot be used."""
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        return [], ["not read: not valid JSON"]
    groups = settings.get("hooks") if isinstance(settings, dict) else None
    if not groups:
        return [], []
    if settings.get("disableAllHooks") is True:
        return [], ["no hook runs: disableAllHooks is set"]
    hooks: list[Hook] = []
    problems: list[str] = []
    for event, entries in groups.items() if isinstance(groups, dict) else [("hooks", None)]:
        if event not in HOOK_EVENTS or not isinstance(entries, list):
            problems.append(f"{event}: not an event known here" if isinstance(entries, list) else f"{event}: no list")
            continue
        for entry in entries:
            handlers = entry.get("hooks") if isinstance(entry, dict) else None
            for handler in handlers if isinstance(handlers, list) else [None]:
                try:
                    hooks.append(_handler(root, event, entry, handler, place, problems))
                except ValueError as error:
                    problems.append(f"{event}: {error}")
    return hooks, problems


_KNOWN = frozenset({"type", "command", "args", "timeout", "statusMessage", "shell"})


def _handler(root: Path, event: str, entry: Any, handler: Any, place: Path, problems: list[str]) -> Hook:
    """Raises ValueError for a hook that does not run, with why; what only is not known is added to ``problems``."""
    if not isinstance(handler, dict):
        raise ValueError("not run: no hook is there")
    kind, matcher = handler.get("type", "command"), entry.get("matcher") or ""
    command, arguments, timeout = handler.get("command"), handler.get("args"), handler.get("timeout")
    if kind != "command":
        raise ValueError(f"not run: its type is {str(kind)[:40]}")
    if not isinstance(command, str) or not command.strip():
        raise ValueError("not run: it has no command")
    if "if" in handler:
        raise ValueError(f"not run: it has a condition (if): {command}")
    if not isinstance(matcher, str) or (problem := matcher_problem(matcher)) is not None:
        raise ValueError(f"not run: its matcher is {problem if isinstance(matcher, str) else 'no text'}: {command}")
    if isinstance(arguments, list) and all(isinstance(word, str) for word in arguments):
        words = [word.replace("${CLAUDE_PROJECT_DIR}", str(root)) for word in (command, *arguments)]
        command = shlex.join(words)
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0):
        raise ValueError(f"not run: its timeout is no number of seconds: {command}")
    for name in sorted(handler.keys() - _KNOWN):
        problems.append(f"{event}: {name} is passed over: {command}")
    return Hook(event, command, matcher, timeout and min(float(timeout), 3_600.0), place.as_posix())


def configured_hooks(layer: Layer, source: str, *, own: bool) -> list[Hook]:
    """The hooks of a checked layer of the configuration."""
    events = (layer.values.get("hooks") or {}).items()
    return [Hook(event, **entry, source=source, own=own) for event, entries in events for entry in entries]
