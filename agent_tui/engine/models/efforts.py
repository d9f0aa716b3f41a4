"""How much the model of a session can think: the levels that differ for it, and what a change to each costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from agent_tui.context.accounting.lost import LostReasoning
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest
from agent_tui.models.steps import ColdRequest
from agent_tui.providers.dialects.encoding import Thinking
from agent_tui.providers.reasoning import thinking_for
from agent_tui.text.numbers import tokens

EFFORTS: tuple[Effort, ...] = get_args(Effort)
NOT_AT_ALL = "does not think"
"""What is said of a level that switches thinking off."""


@dataclass(slots=True, frozen=True)
class EffortChoice:
    """A level that the model has. ``words`` say what is asked of the provider, ``names`` are all that ask for the same,
    its own among them. ``only``: there is no other, and ``words`` say so. ``lost`` is the reasoning that would no
    longer be sent, ``cold`` what the next request would pay anew; both None where nothing is."""

    effort: Effort
    words: str
    current: bool
    names: tuple[Effort, ...]
    only: bool = False
    lost: LostReasoning | None = None
    cold: ColdRequest | None = None

    def told(self, name: Effort) -> str:
        """The level by one of its names, with what it is for this model where that does not say it."""
        others = " and ".join(other for other in self.names if other not in (name, "off"))
        same = f", the same as {others}" if others else ""
        return name if self.words == NOT_AT_ALL else f"{name} ({self.words}{same})"


def levels(request: ModelRequest, info: ModelInfo, wanted: Effort) -> list[EffortChoice]:
    """The levels that make different requests of this one, the least first. One name stands for those that are the
    same: the one in force, else the first that thinks."""
    asked = {effort: thinking_for(replace(request, effort=effort), info) for effort in EFFORTS}
    groups: list[list[Effort]] = []
    for effort in EFFORTS:
        same = next((group for group in groups if _same(asked[group[0]], asked[effort])), None)
        if same is None:
            groups.append([effort])
        else:
            same.append(effort)
    chosen: list[EffortChoice] = []
    for group in groups:
        thinking = [effort for effort in group if effort != "off"]
        current = wanted in group
        name = wanted if current else (thinking or group)[0]
        only = len(groups) == 1
        words = _no_levels(info) if only else _words(asked[name], group)
        chosen.append(EffortChoice(name, words, current, tuple(group), only))
    return chosen


def setting_problem(info: ModelInfo) -> str | None:
    """What to tell of a level in the configuration that this model does not have; None where it has it."""
    spec, wanted = info.spec, info.spec.reasoning_effort
    if wanted is None:
        return None
    request = ModelRequest("levels", spec, "", [], [], [], info.limits.max_output, wanted)
    chosen = next(choice for choice in levels(request, info, wanted) if choice.current)
    setting = f'models.{spec.key}.reasoning_effort = "{wanted}"'
    if chosen.only:
        return f"{setting} changes nothing: {chosen.words}."
    if wanted == "off" and chosen.words != NOT_AT_ALL:
        return f"{setting}: {spec.key} cannot be switched off, so it is asked for the least."
    return None


def _no_levels(info: ModelInfo) -> str:
    if info.reasoning is None:
        return f"{info.spec.key} is not known to think, so it is asked for no level of it"
    return f"{info.spec.key} has no levels of thinking"


def _same(one: Thinking, other: Thinking) -> bool:
    """Whether two levels are the same request. What is merely called off is."""
    return one.kwargs == other.kwargs


def _words(thinking: Thinking, group: list[Effort]) -> str:
    if group == ["off"]:
        return NOT_AT_ALL if not _asks(thinking) else "as little as it can: it cannot be switched off"
    words = _asks(thinking) or "thinks"
    return f"{words}; it cannot be switched off" if "off" in group else words


def _asks(thinking: Thinking) -> str:
    """What the request says of thinking; empty where that is nothing, or that there is to be none."""
    given = thinking.kwargs
    wanted = given.get("thinking") or (given.get("extra_body") or {}).get("thinking")
    if isinstance(wanted, dict) and wanted.get("budget_tokens"):
        return f"thinks up to {tokens(wanted['budget_tokens'], False)} tokens a step"
    reasoning = given.get("reasoning") or (given.get("extra_body") or {}).get("reasoning")
    level = given.get("reasoning_effort") or (given.get("output_config") or {}).get("effort")
    if isinstance(reasoning, dict):
        level = reasoning.get("effort")
    return f"the provider's level “{level}”" if level and level != "none" else ""
