"""Regret: what was read, run or recalled again after a compaction because it had taken that from what is sent.

Pure. A call counts where the same call's result was among what a compaction in force had taken, where none of it was
sent any more, and where nothing has changed since: what a model looks at again because it is another now is no regret.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.compaction.summary_parts import in_our_words
from agent_tui.context.tokens import Family, estimate_message
from agent_tui.models.messages import RECALL_TOOL, Message, Metadata, ToolCallPart
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Prices
from agent_tui.records import dataclass
from agent_tui.text.clean import printable_line

CHANGES = frozenset({"edit", "write", "apply_patch"})
"""Tools that change files: a command that is run again after them is run for what they did."""

NEVER = CHANGES | {"todo", "ask", "present_plan", "subagent", "jobs"}
"""Tools that are not called for what they show."""

SHOWN = 60
"""Characters of what a call was about."""

_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(slots=True)
class Regret:
    """What came back after one compaction. ``tokens`` are those of the results that were sent anew, ``usd`` what that
    cost at the full price of input; None where no price is known."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = None
    what: list[str] = field(default_factory=list)
    """Each call in a few words, as ``read src/app.py``, oldest first."""


def regrets(
    records: Sequence[CompactionRecord], path: Sequence[Message], family: Family, prices: Prices | None = None
) -> dict[str, Regret]:
    """Returns the regret of each compaction that has one, by its ``operation_id``.

    ``records`` are all that were made on the conversation's branch, those that were undone included: what came back
    until then cost as well. ``path`` is the conversation from its first message. Takes about 20 ms for a thousand
    calls, and nothing where there was no compaction.
    """
    found: dict[str, Regret] = {}
    if not records:
        return found
    made = sorted((record for record in records if record.kind != "restore"), key=lambda record: record.created)
    taken = [frozenset(record.message_ids) for record in made]
    calls: dict[str, tuple[ToolCallPart, float]] = {}
    looks = _Looks()
    for message in path:
        calls.update((call.call_id, (call, message.created)) for call in message.tool_calls)
        result = message.tool_result
        if result is None or result.is_error or result.call_id not in calls:
            continue
        call, asked = calls[result.call_id]
        name, arguments = in_our_words(call.name, call.arguments)
        gone = [(r, ids) for r, ids in zip(made, taken, strict=True) if r.created < asked and in_force(r, asked)]
        blamed: CompactionRecord | None = None
        if name == RECALL_TOOL:  # all that it shows was missed
            blamed = gone[-1][0] if gone else None
        elif name not in NEVER:
            before = looks.same(name, arguments, result.text)
            blamed = next((record for record, ids in gone if before & ids), None)
            if before and not before <= frozenset[str]().union(*(ids for _, ids in gone)):
                blamed = None  # one of them is still sent
        looks.note(name, arguments, message.id, result.text)
        if blamed is not None:
            one = found.setdefault(blamed.operation_id, Regret(usd=0.0))
            one.calls += 1
            size = estimate_message(message, family).tokens
            usd = None if prices is None else priced_call(prices, size, 0, 0).usd
            one.tokens += size
            one.usd = None if usd is None or one.usd is None else one.usd + usd
            one.what.append(call_words(name, arguments))
    return found


def sum_of(found: Iterable[Regret]) -> Regret | None:
    """Returns what came back after several compactions together; None where nothing did."""
    total = Regret(usd=0.0)
    for one in found:
        total.calls += one.calls
        total.tokens += one.tokens
        total.usd = None if total.usd is None or one.usd is None else total.usd + one.usd
    return total if total.calls else None


def in_force(record: CompactionRecord, at: float) -> bool:
    """Returns whether a compaction, made before, was in force at a time (seconds since the epoch)."""
    if not record.switched:
        return record.active
    return sum(switched <= at for switched in record.switched) % 2 == 0


class _Looks:
    """What was looked at until now: the results, by what their calls asked for. A change forgets what it concerns."""

    def __init__(self) -> None:
        self._files: dict[str, list[tuple[str, frozenset[str]]]] = {}
        self._others: dict[str, tuple[str, str]] = {}

    def same(self, name: str, arguments: Metadata, text: str) -> frozenset[str]:
        """The results that showed all of ``text`` before, by their messages' ids."""
        if name == "read":
            lines = _lines(text)
            shown = self._files.get(_file(arguments), ()) if lines else ()
            return frozenset(message_id for message_id, earlier in shown if lines <= earlier)
        known = self._others.get(_key(name, arguments))
        return frozenset({known[0]}) if known is not None and known[1] == _shape(name, text) else frozenset()

    def note(self, name: str, arguments: Metadata, message_id: str, text: str) -> None:
        if name in CHANGES:
            self._others = {key: shown for key, shown in self._others.items() if not key.startswith("bash ")}
        elif name == "read":
            self._files.setdefault(_file(arguments), []).append((message_id, _lines(text)))
        else:
            self._others[_key(name, arguments)] = (message_id, _shape(name, text))


def _lines(text: str) -> frozenset[str]:
    """The lines of a file that a result shows, with their numbers; without what is said of them."""
    return frozenset(line for line in text.splitlines() if not line.startswith("["))


def _file(arguments: Metadata) -> str:
    return posixpath.normpath(str(arguments.get("path") or ""))


def _key(name: str, arguments: Metadata) -> str:
    asked: Mapping[str, object] = {"command": arguments.get("command")} if name == "bash" else arguments
    return f"{name} {json.dumps(asked, sort_keys=True, default=str)}"


def _shape(name: str, text: str) -> str:
    """What a result says; of a command without numbers, for those are times more often than not."""
    return _NUMBERS.sub("0", text) if name == "bash" else text


def call_words(name: str, arguments: Metadata) -> str:
    """``read src/app.py``: arguments are hostile text."""
    about = next(
        (str(arguments[key]) for key in ("path", "command", "pattern", "url", "query") if key in arguments), ""
    )
    return printable_line(f"{name} {about}".rstrip(), SHOWN)
