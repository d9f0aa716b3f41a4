"""Edits of the context by its screen: what is marked is dropped, folded, pinned, restored, once its price was seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agent_tui.commands.edits import message_words
from agent_tui.errors import AgentError
from agent_tui.models.messages import TOLD
from agent_tui.models.rows import MESSAGES
from agent_tui.records import dataclass
from agent_tui.text.cells import shorten
from agent_tui.ui.screens.context_lines import RowLine
from agent_tui.ui.screens.context_view import ContextView

if TYPE_CHECKING:
    from textual.worker import Worker

    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Message

Edit = Literal["drop", "fold", "pin", "restore", "undo"]
Work = Callable[[], Awaitable[str]]
Answer = Literal["now", "later", "not"]

FIXED = {
    "system": "The system prompt is sent with every request: it tells the model how to work here.",
    "environment": "The environment is sent with every request: it tells the model where it works.",
    "memory": "Memory files are sent with every request. To shrink one, edit the file; the next compaction rereads it.",
    "skills": "Skill names are sent with every request. To remove one, delete its folder.",
    "servers": "A server's instructions are sent with its tools. Turn it off with enabled = false in its [mcp] table.",
    "tools": "Tools are sent with every request. Turn them off with disabled in [tools] or a server's enabled = false.",
}
"""Why a part that goes with every request cannot be dropped here, and what does it instead."""
WHAT = "Select a message, or mark some with Space: "
ALL = "Press Enter to open Messages and mark some. /clear begins a new conversation."
REASONING = "Reasoning is sent with its answer. Open the row to drop single answers, or reduce it with /thinking."
AT_WORK = "Will be done when the running step ends."
SHOWN = 30
"""Cells of the words that tell where a range begins and ends."""
ANOTHER = "The session changed; nothing was done."


@dataclass(slots=True, frozen=True)
class EditQuestion:
    """What is asked before an edit happens: its line, and what does it, now or later."""

    line: str
    do: Work
    later: Work | None
    session: str


def message_ids(lines: Sequence[RowLine]) -> list[str]:
    """The ids of the messages and attachments that these lines stand for: their own, or those of all of a kind. Raises
    AgentError for a line that stands for none."""
    ids: list[str] = []
    for line in lines:
        row, kind = line.row, line.key.partition("/")[0]
        if row is not None and row.part_id is not None:
            ids.append(row.part_id)
        elif kind in FIXED:
            raise AgentError(FIXED[kind])
        elif kind == MESSAGES.id and line.depth == 0:
            raise AgentError(ALL)
        elif row is None or kind != MESSAGES.id or not row.children:
            raise AgentError(f"{WHAT}only messages can be dropped, folded and pinned.")
        elif row.id == "reasoning":
            raise AgentError(REASONING)
        else:
            ids += [leaf.part_id for leaf in row.leaves() if leaf.part_id is not None and leaf.label not in TOLD]
    return list(dict.fromkeys(ids))


def _is_document(line: RowLine) -> bool:
    return line.row is not None and bool(line.row.path) and line.kind_id == "documents"


def _range_words(chosen: Collection[str], folded: Sequence[Message]) -> str:
    """Why a fold takes more than was chosen: all from the first message that it takes to the last."""
    first, last = (shorten(message_words(message), SHOWN) for message in (folded[0], folded[-1]))
    more = sum(message.id not in chosen for message in folded)
    return f"A summary replaces a whole range: {more:,} more than chosen, from “{first}” to “{last}”."


class ContextEdits:
    """The edits of one screen. A question stands in the foot until it is answered, or the cursor moves on."""

    def __init__(self, agent: Agent, view: ContextView) -> None:
        self._agent = agent
        self._view = view
        self._question: EditQuestion | None = None
        self._working: list[Worker[Any]] = []

    @property
    def asking(self) -> bool:
        """Whether a question waits for its answer: any other line in the foot has taken it away."""
        return self._question is not None and self._view.said == self._question.line

    def begin(self, name: Edit) -> None:
        """Does this to what is marked; drops and folds are asked for before."""
        edits = {"drop": self._drop, "fold": self._fold, "restore": self._restore, "pin": self._pin}
        self._run(edits.get(name, lambda: self._do(self._agent.edits.undo)))

    def answer(self, answer: Answer) -> None:
        """Does what was asked, now or once it costs nothing, or leaves all as it is."""
        question, self._question = self._question, None
        do = None if question is None else {"now": question.do, "later": question.later}.get(answer)
        if question is None or do is None:
            self._view.say("")
        elif question.session != self._agent.conversation.info.id:
            self._view.say(ANOTHER)
        else:
            self._run(partial(self._do, do))

    async def _drop(self) -> None:
        lines = self._view.rows.chosen()
        if lines and all(line.kind == "dropped" for line in lines):
            await self._restore()
            return
        if any(line.kind == "dropped" for line in lines):
            raise AgentError("Some marked messages are already dropped. Mark only dropped messages, or none of them.")
        if lines and all(_is_document(line) for line in lines):
            for line in lines:
                assert line.row is not None and line.row.path is not None
                self._agent.context.unpin(line.row.path)
            self._view.unmark()
            self._view.say(f"Unpinned {', '.join(line.label for line in lines)}.")
            return
        if any(line.key.partition("/")[0] == "documents" for line in lines):
            raise AgentError("Press Enter to open Documents, then d on one to unpin it.")
        ids, edits = message_ids(lines), self._agent.edits
        plan = edits.plan(ids)
        self._ask(
            f"{plan.line} d: drop now · l: drop later, free · Esc: cancel",
            lambda: edits.drop(ids),
            lambda: edits.drop(ids, later=True),
        )

    async def _fold(self) -> None:
        edits = self._agent.edits
        wanted = {each.partition("#")[0] for each in message_ids(self._view.rows.chosen())}
        ids = [message.id for message in self._agent.conversation.path if message.id in wanted]
        if not ids:
            raise AgentError(f"{WHAT}z folds them into a summary.")
        self._view.say("Planning…")
        plan = await edits.plan_fold(ids[0], ids[-1])
        line = f"{plan.line} z: fold · Esc: cancel"
        if not wanted.issuperset(plan.part_ids):
            folded = [message for message in self._agent.conversation.path if message.id in plan.part_ids]
            line = f"{_range_words(wanted, folded)} {line}"
        self._ask(line, lambda: edits.fold(ids[0], ids[-1]))

    def refused(self) -> set[str]:
        """The keys of ``begin`` that would do nothing with what is marked, or else selected."""
        lines, edits = self._view.rows.chosen(), self._agent.edits
        no = set[str]() if edits.undoable else {"u"}
        if self._agent.conversation.read_only:
            return no | {"d", "z", "p"}
        if lines and all(line.kind == "dropped" for line in lines):
            return no | {"z", "p"}
        if lines and all(_is_document(line) for line in lines):
            return no | {"z", "p"}
        try:
            ids = message_ids(lines)
        except AgentError:
            ids = []
        mixed = any(line.kind == "dropped" for line in lines)
        if not ids or mixed or edits.refusal(ids):
            no.add("d")
        wanted = {each.partition("#")[0] for each in ids}
        if mixed or not any(message.id in wanted for message in self._agent.conversation.path):
            no.add("z")
        own = (line.row.message_id for line in lines if line.row is not None)
        if not any(id and self._agent.pins.message(id) for id in own):
            no.add("p")
        return no

    async def _restore(self) -> None:
        lines = [line for line in self._view.rows.chosen() if line.kind == "dropped"]
        if not lines:
            raise AgentError("Select a dropped message, at the end of the list, then r to restore it.")
        await self._do(lambda: self._agent.edits.restore(message_ids(lines)))

    async def _pin(self) -> None:
        from agent_tui.commands.context import toggle_pin

        lines = self._view.rows.chosen()
        found = [self._agent.pins.message(line.row.message_id) for line in lines if line.row and line.row.message_id]
        messages: dict[str, Message] = {message.id: message for message in found if message is not None}
        if not messages:
            raise AgentError("Press Enter to open a row of messages, then p on one to pin it.")
        said = [toggle_pin(self._agent, message) for message in messages.values()]
        self._view.unmark()
        self._view.say(" ".join(said))

    def _ask(self, line: str, do: Work, later: Work | None = None) -> None:
        line = " · ".join(line.splitlines())
        self._question = EditQuestion(line, do, later, self._agent.conversation.info.id)
        self._view.say(line)

    async def _do(self, do: Work) -> None:
        self._view.say(AT_WORK if self._agent.turns.busy else "Working…")
        self._view.unmark()
        self._view.say(" · ".join((await do()).splitlines()))

    def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Works beside the screen, and beyond it: an edit that waits for a step outlives the screen."""

        async def told() -> None:
            try:
                await work()
            except AgentError as error:
                self._view.say(str(error))

        self._working = [each for each in self._working if not each.is_finished]
        self._working.append(self._view.app.run_worker(told(), name="edit", group="edits", exit_on_error=False))
