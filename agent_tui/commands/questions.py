"""The answers that the agent's questions can get: permissions, plans, and what the model asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.records import dataclass
from agent_tui.text.cells import shorten
from agent_tui.text.clean import spelled
from agent_tui.tools.mcp_names import is_mcp_name, split_tool_name

if TYPE_CHECKING:
    from agent_tui.models.events import ApprovedMode, PermissionAsked, QuestionAsked

ALWAYS_KEYS, SESSION_KEYS = "abc", "stu"
"""The keys of the answers that are remembered: of so many one each."""
LONG_PATTERN = 400
"""Cells of a pattern that are shown."""
LONG = 160
"""Characters; choices of a question that are longer than this stand in its text too, whole."""


@dataclass(slots=True, frozen=True)
class PermissionChoice:
    """An answer to a permission question; ``feedback`` asks for words first."""

    key: str
    label: str
    allow: bool
    pattern: str | None = None
    feedback: bool = False


def permission_choices(asked: PermissionAsked) -> list[PermissionChoice]:
    """Returns the possible answers: once, always by pattern, no, no with a word about what to do instead. A choice
    remembers the one pattern it names; of very many the first are offered, and the others are asked about when they
    come."""
    always = [
        PermissionChoice(key, _always(pattern), True, pattern)
        for key, pattern in zip(ALWAYS_KEYS, asked.patterns, strict=False)
    ]
    session = [
        PermissionChoice(key, _for_session(rule, asked.tool), True, rule)
        for key, rule in zip(SESSION_KEYS, asked.session, strict=False)
    ]
    return [
        PermissionChoice("y", "Yes, until the session ends" if asked.lasts else "Yes, this once", True),
        *always,
        *session,
        PermissionChoice("n", "No", False),
        # Only a model can be told what to do instead; the program itself asks about no call.
        *([PermissionChoice("f", "No, and say what to do instead", False, feedback=True)] if asked.call_id else []),
    ]


def _always(rule: str) -> str:
    if rule.startswith("network("):
        return f"Always allow {_reach(rule)} in this project"
    return f"Always allow {shorten(spelled(rule, line=True), LONG_PATTERN)} in this project"


def _reach(rule: str) -> str:
    """Returns what a rule like ``network(pypi.org)`` opens, in words."""
    where = rule.removesuffix(")").removeprefix("network(")
    return "package registries" if where == "registries" else shorten(spelled(where, line=True), 100)


def _for_session(rule: str, tool: str) -> str:
    """A rule like ``edit(./src/**)`` in words, as an answer to what ``tool`` wants."""
    if rule.startswith("network("):
        return f"Yes, and {_reach(rule)} for this session"
    what, _, where = rule.removesuffix(")").partition("(")
    where = where.removesuffix("/**").removeprefix("./")
    if tool == "bash" and where not in (".", ""):
        return f"Yes, and let commands write in {shorten(spelled(where, line=True), 100)} for this session"
    if is_mcp_name(what):
        server, called = split_tool_name(what)
        return f"Yes, {shorten(spelled(f'{server}: {called}', line=True), 100)} for this session"
    verb = "edits" if what == "edit" else "reading"
    if where in (".", ""):
        return f"Yes, all {verb} in the project for this session"
    return f"Yes, {verb} in {shorten(spelled(where, line=True), 100)} for this session"


@dataclass(slots=True, frozen=True)
class PlanChoice:
    """An answer to a plan: the mode to carry it out in, or None."""

    key: str
    label: str
    mode: ApprovedMode | None = None
    feedback: bool = False
    edit: bool = False


PLAN_CHOICES = (
    PlanChoice("y", "Yes, and ask before changes", "ask"),
    PlanChoice("e", "Yes, and accept edits", "accept-edits"),
    PlanChoice("a", "Yes, and don't ask again (auto)", "auto"),
    PlanChoice("c", "Edit the plan", edit=True),
    PlanChoice("f", "No, and say what to plan instead", feedback=True),
    PlanChoice("n", "No, end the turn"),
)


def question_text(asked: QuestionAsked) -> str:
    """The question, and the choices that are too long for a row."""
    text = asked.question.strip()
    if any(len(choice) > LONG for choice in asked.choices):
        text += "\n" + "".join(f"\n{n}. {choice}" for n, choice in enumerate(asked.choices, 1))
    return text
