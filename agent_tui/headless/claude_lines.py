"""The stream of events in the lines of Claude Code, for programs that were written for it and its SDK: what is printed,
what is asked, and what the answers mean."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TextIO

from agent_tui.control.control import Answer, GetContext, GetServers, Question, Request
from agent_tui.engine.agent import Agent
from agent_tui.engine.hooks import MODES_OF_HOOKS
from agent_tui.engine.transcript import call_blocks, called_as
from agent_tui.headless.claude_answers import COMPATIBLE, context_usage, introduction, mcp_status
from agent_tui.headless.incoming import answer_of, control_request
from agent_tui.headless.output import Printer
from agent_tui.models.events import Event, MessageAdded, StopReason
from agent_tui.models.messages import Message, Metadata, new_id
from agent_tui.models.steps import Step
from agent_tui.options import Options

_ENDS: dict[StopReason, str] = {
    "step_limit": "error_max_turns",
    "budget": "error_max_budget_usd",
    "error": "error_during_execution",
    "interrupted": "error_during_execution",
}


_SCHEMA = "error_max_structured_output_retries"
_EMPTY = "The answer was empty."
_FAILS: dict[StopReason, str] = {
    "step_limit": "The turn reached its limit of model calls (max_turns).",
    "budget": "The budget does not allow another call (max_budget_usd).",
    "interrupted": "The turn was interrupted.",
    "refused": "The model refused to answer.",
}
"""Why a turn that did not fail did not end well, either: the exit code says so, too."""


class ClaudePrinter(Printer):
    """Prints whole messages (``system``, ``assistant``, ``user``, ``result``) in the place of our events, of which the
    control requests and responses stay."""

    answers_once = True

    def __init__(self, agent: Agent, options: Options, out: TextIO, err: TextIO) -> None:
        super().__init__(agent, options, out, err)
        self._replays = options.driver is not None and options.driver.replays

    _begun = 0.0
    _first_of_turn = 0
    _introduced = False
    _told_failure = False

    def begin_turn(self) -> None:
        super().begin_turn()
        self._begun = time.monotonic()
        self._first_of_turn = len(self._agent.conversation.steps)

    def finish(self, code: int = 0) -> None:
        """What ends with an exit code that tells of an error ends with a result that says which: the SDK makes an
        exception of it."""
        if code and not self._told_failure:
            self._message("result", **failed_result(self.problem_text(code)))
        self._out.flush()

    def fail(self, text: str) -> None:
        """The caller says it as the last result."""

    def problem_text(self, code: int) -> str:
        """Why the run ends with an exit code though its turns ended well, or none was made."""
        told = [notice["text"] for notice in self._notices if notice["level"] != "info"]
        return told[-1] if told else f"The run ended with exit code {code}."

    def wrong_line(self, text: str, is_message: bool) -> None:
        self._tell(text)
        if is_message:  # somebody waits for its answer
            self._told_failure = True
            self._message("result", **failed_result(text))

    def introduction(self) -> Metadata:
        return introduction(self._agent)

    def done(self, request: Request, result: Metadata) -> Metadata:
        match request:
            case GetContext():
                return {**result, **context_usage(self._agent)}
            case GetServers():
                return mcp_status(self._agent)
        return result

    def _line(self, entry: Metadata) -> None:
        match entry["type"]:
            case "control_request" | "control_response" | "control_cancel_request":
                super()._line(entry)
            case "step_start" if not self._introduced:
                self._introduced = True
                self._message("system", subtype="init", **self._introduction())
            case "text" | "reasoning" as kind if not self._final:
                # As it arrives; the whole message comes after it.
                named = ("text_delta", "text") if kind == "text" else ("thinking_delta", "thinking")
                delta = {"type": named[0], named[1]: entry["text"]}
                event = {"type": "content_block_delta", "index": 0, "delta": delta}
                self._message("stream_event", event=event, parent_tool_use_id=None)
            case "interrupted":
                self._message("system", subtype="interrupted")
            case "tool_result":
                result = {
                    "type": "tool_result",
                    "tool_use_id": entry["call_id"],
                    "content": entry["text"],
                    "is_error": entry["is_error"],
                }
                self._message("user", message={"role": "user", "content": [result]}, parent_tool_use_id=None)
            case "turn_end":
                self._message("result", **self._result(entry))

    def handle(self, event: Event) -> None:
        super().handle(event)
        match event:
            case MessageAdded(message) if message.role == "user" and self._replays:
                said = {"role": "user", "content": message.text}
                self._message("user", message=said, parent_tool_use_id=None, uuid=message.id, isReplay=True)

    def _message(self, kind: str, **fields: Any) -> None:
        session = self._agent.conversation.info.id
        super()._line({"uuid": new_id("line"), **fields, "type": kind, "session_id": session})

    def _introduction(self) -> Metadata:
        agent = self._agent
        offered = agent.toolbox.offered(agent.runtime.info)
        return {
            "cwd": str(agent.cwd),
            "model": agent.models.spec.key,
            "permissionMode": MODES_OF_HOOKS.get(agent.mode.now, agent.mode.now),
            "tools": [called_as(tool.schema.name, {}, agent.cwd)[0] for tool in offered],
            "mcp_servers": [{"name": s["name"], "status": s["status"]} for s in mcp_status(agent)["mcpServers"]],
            "claude_code_version": COMPATIBLE,
            "output_style": "default",
            "apiKeySource": "none",
            "agents": [name for name, *_ in agent.project.agent_types()],
            "skills": [name for name, *_ in agent.project.skills()],
            "plugins": [],
            "slash_commands": [own.name for own in agent.project.user_commands()],
        }

    def _step_ended(self, step: Step, message: Message) -> None:
        super()._step_ended(step, message)
        content = call_blocks(message, self._agent.cwd)
        if content:
            whole: Metadata = {
                "id": message.id,
                "type": "message",
                "role": "assistant",
                "model": step.model,
                "content": content,
            }
            whole |= {"stop_reason": None, "usage": _usage([step])}
            self._message("assistant", message=whole, parent_tool_use_id=None)

    def ask(self, question: Question) -> None:
        """As a control request that the SDK answers: a permission by the name of its tool, a plan and a question as the
        tools that they are there. It has nothing for a turn that stopped or for what an MCP server asks: those come as
        in our own lines, and the SDK answers that it does not know them, which is a no."""
        tool, told = called_as(question.tool, question.input, self._agent.cwd)
        if question.kind == "plan":
            tool, told = "ExitPlanMode", {"plan": question.text}
        elif question.kind == "choice":
            options = [{"label": option.label, "description": ""} for option in question.options]
            asked: Metadata = {"question": question.text, "header": "", "options": options}
            tool, told = "AskUserQuestion", {"questions": [{**asked, "multiSelect": question.several}]}
        elif question.kind in ("stop", "server"):
            super().ask(question)
            return
        request = {
            "subtype": "can_use_tool",
            "tool_name": tool,
            "input": told,
            "tool_use_id": question.call_id or question.id,
            "decision_reason": question.reason,
            "permission_suggestions": [],
        }
        self._line(control_request(question.id, request))

    def answer_to(self, question: Question, said: Metadata) -> Answer:
        """What the SDK answered: a question of the model's in ``updatedInput``. To change a call is a no, and the model
        is told why."""
        if said.get("behavior") != "allow" or question.kind == "server":
            return answer_of(question, said)
        changed = said.get("updatedInput")
        if question.kind == "choice":
            answers = changed.get("answers") if isinstance(changed, dict) else None
            text = str(next(iter(answers.values()), "")) if isinstance(answers, dict) else ""
            by_label = {option.label: option.id for option in question.options}
            labels = [text] if text in by_label or not question.several else text.split(", ")
            known = [by_label[label] for label in labels if label in by_label]
            return Answer(question.id, tuple(known), "" if len(known) == len(labels) else text)
        _, as_asked = called_as(question.tool, question.input, self._agent.cwd)
        if question.kind == "permission" and changed not in (None, as_asked):
            return answer_of(question, {"behavior": "deny", "message": "A call runs as you made it, or not at all."})
        return answer_of(question, {"behavior": "allow"})

    def _result(self, entry: Metadata) -> Metadata:
        steps = self._agent.conversation.steps[self._first_of_turn :]
        failed = self.failure.message if self.failure is not None else self.schema_problem
        if failed is None and self.stop_reason not in ("end", "length"):
            failed = _FAILS.get(self.stop_reason)
        elif failed is None and not self.answer.strip():
            failed = _EMPTY
        self._told_failure = failed is not None
        turns = [step for step in steps if step.kind == "turn"]
        made = [step for step in steps if step.kind in ("turn", "attempt")]
        took = sum(step.finished - step.created for step in turns if step.finished is not None)
        found = {
            "subtype": _SCHEMA if self.schema_problem else _ENDS.get(self.stop_reason, "success"),
            "is_error": failed is not None,
            "duration_ms": round((time.monotonic() - self._begun) * 1000),
            "duration_api_ms": round(took * 1000),
            "num_turns": len(turns),
            "result": self.answer or failed or "",
            "stop_reason": self.stop_reason,
            "total_cost_usd": self._agent.context.usage().session.cost.whole,
            "usage": _usage(made),
            "permission_denials": [],
            "errors": [failed] if failed is not None else [],
        }
        return {**found, **({"structured_output": entry["output"]} if "output" in entry else {})}


def failed_result(text: str) -> Metadata:
    """What a run, or a message, that came to no turn ends with."""
    return {
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": True,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "result": text,
        "session_id": "",
        "total_cost_usd": 0.0,
        "usage": _usage([]),
        "permission_denials": [],
        "errors": [text],
    }


def _usage(steps: Sequence[Step]) -> Metadata:
    used = [step.usage for step in steps if step.usage is not None]

    def total(name: str) -> int:
        return sum(getattr(each, name) or 0 for each in used)

    read, written = total("cache_read"), total("cache_write")
    return {
        "input_tokens": max(0, total("input") - read - written),
        "output_tokens": total("output"),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
