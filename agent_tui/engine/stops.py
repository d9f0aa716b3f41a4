"""Asks what to do when a turn stopped at something that the user can change: a budget, a key, a wrong model, a full
context. Once that is changed the turn goes on where it stopped, and nothing is typed again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from agent_tui.context.accounting.next_input import max_output_for
from agent_tui.context.accounting.spending import (
    BudgetLine,
    BudgetName,
    ExpectedCall,
    call_words,
    first_broken,
    limit_problem,
    limit_words,
    next_limit,
    parse_limit,
    spent_words,
)
from agent_tui.context.compaction.plan import message_tokens
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.edits import Edits
from agent_tui.engine.model_control import ModelControl
from agent_tui.engine.models import DEMO
from agent_tui.engine.runner import Runner
from agent_tui.engine.session_control import CompactionControl
from agent_tui.engine.state import AgentState, RunState
from agent_tui.errors import AgentError
from agent_tui.models.events import (
    Event,
    Notice,
    QuestionClosed,
    SessionChanged,
    StopAsked,
    TurnEnded,
    TurnStarted,
    Way,
)
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Message, new_id
from agent_tui.providers.catalog import Called
from agent_tui.providers.failure_lines import unpaid
from agent_tui.providers.listing import nearest
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import tokens, total_text

LARGE = 1_000
"""Tokens of a message from which on it is proposed to be dropped."""
OTHER_MODEL = Way("m", "Continue with another model…", models=True)
STOP = Way("n", "Stop here")

_WHOSE: dict[BudgetName, str] = {
    "run": "The run's",
    "turn": "The turn's",
    "session": "The session's",
    "day": "Today's",
}

Act = Callable[[str], Awaitable[bool]]
"""Does what is answered, and says whether the turn can go on now."""


class Stops:
    """Puts the question after such a turn, as an event, and does what is answered. It is open until something else
    begins: a turn, another session."""

    def __init__(
        self,
        state: AgentState,
        context: ContextControl,
        runner: Runner,
        models: ModelControl,
        edits: Edits,
        compaction: CompactionControl,
    ) -> None:
        self._state = state
        self._context = context
        self._runner = runner
        self._models = models
        self._edits = edits
        self._compaction = compaction
        self._asked: StopAsked | None = None
        self._acts: dict[str, Act] = {}
        self._model = ""
        self._session = ""
        self._turns = 0
        self._answering = self._editing = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        state.events.subscribe(self._heard)

    async def settled(self) -> None:
        """Waits until no such question is open, or about to be."""
        await self._quiet.wait()

    async def answer(self, request_id: str, key: str, text: str = "") -> None:
        """The user's word: the ``key`` of a way, with the ``text`` it asks for. Raises AgentError where that cannot be
        done; the question stays open then. An answer to one that is closed does nothing."""
        asked = self._asked
        if asked is None or asked.request_id != request_id:
            return
        if (act := self._acts.get(key)) is None:
            self._close()
            return
        if self._answering:
            return
        self._answering = True
        try:
            if await act(text):
                await self._go_on(asked)
        finally:
            self._answering = False

    def _heard(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._turns += 1
                self._close()
            case SessionChanged(_, reload):
                # An answer that changes what is sent reloads the session itself.
                if (reload and not self._editing) or self._state.conversation.info.id != self._session:
                    self._close()
                elif self._asked is not None and not self._answering and self._models.spec.key != self._model:
                    self._state.events.spawn(self._go_on(self._asked), "stop")
            case TurnEnded(reason, failure) if self._state.parts.permissions.can_ask:
                asks = failure is not None and failure.kind in ("auth", "not_found", "context_overflow")
                if reason == "budget" or (reason == "error" and asks):
                    self._session = self._state.conversation.info.id
                    self._quiet.clear()
                    self._state.events.spawn(self._ask(failure, self._turns, self._session), "stop")

    def _close(self) -> None:
        asked, self._asked = self._asked, None
        if asked is not None:
            self._acts = {}
            self._quiet.set()
            self._state.events.publish(QuestionClosed(asked.request_id))

    async def _ask(self, failure: Failure | None, turn: int, session: str) -> None:
        try:
            await self._put(failure, turn, session)
        finally:
            if self._asked is None:
                self._quiet.set()

    async def _put(self, failure: Failure | None, turn: int, session: str) -> None:
        await self._until_idle()
        acts: dict[Way, Act | None] = {}
        if failure is None:
            question = self._budget(acts)
        elif failure.kind == "auth":
            question = await self._key(failure, acts)
        elif failure.kind == "not_found":
            question = await self._unknown_model(acts)
        else:
            question = await self._full(acts)
        now = (self._turns, self._state.conversation.info.id)
        if not question or now != (turn, session) or self._state.run.now is not RunState.IDLE:
            return
        self._acts = {way.key: act for way, act in acts.items() if act is not None}
        self._model = self._models.spec.key
        self._asked = StopAsked(new_id("ask"), question, tuple(acts))
        self._state.events.publish(self._asked)

    async def _until_idle(self) -> None:
        while self._runner.busy:
            await self._runner.join()
            await asyncio.sleep(0)

    async def _go_on(self, asked: StopAsked) -> None:
        """Unless something else began meanwhile: what was to be changed may have taken long."""
        await self._until_idle()
        if self._asked is not asked or self._state.run.now is not RunState.IDLE:
            return
        self._close()
        if not self._runner.go_on():
            # The answer itself was cut off: a model goes on only where something is said to it.
            self._runner.submit("Go on.", typed=[])

    # A budget

    def _next_call(self) -> ExpectedCall:
        runtime = self._state.runtime
        usage = runtime.usage()
        return runtime.expected(usage, max_output_for(usage, runtime.info.limits))

    def _broken(self) -> BudgetLine | None:
        """The budget that is in the way of the next call, or lets it answer only in part."""
        budget, call, runtime = self._state.runtime.budget, self._next_call(), self._state.runtime
        if budget is None:
            return None
        most = max_output_for(runtime.usage(), runtime.info.limits)
        return first_broken(budget.lines(), call) or budget.longest(call, most)[1]

    def _budget(self, acts: dict[Way, Act | None]) -> str:
        line = self._broken()
        if line is None:
            return ""
        proposed = next_limit(line, self._next_call())

        async def raise_it(_: str) -> bool:
            return self._raise(line.name, proposed)

        async def other(text: str) -> bool:
            return self._raise(line.name, parse_limit(text))

        limit = limit_words(line.limit)
        acts[Way("y", f"Raise it to {limit_words(proposed)} and continue")] = raise_it
        acts[Way("o", "Another amount…", asks=f"An amount, e.g. {limit_words(proposed)}, or off")] = other
        acts[OTHER_MODEL] = acts[STOP] = None
        whose, spent = f"{_WHOSE[line.name]} budget of {limit}", spent_words(line)
        if (line.left or 0.0) <= 0:
            return f"{whose} is reached: {spent}"
        return f"{whose} is too small: {spent}, the next call may take {call_words(self._next_call())}"

    def _raise(self, name: BudgetName, limit: float | None) -> bool:
        budget = self._state.runtime.budget
        line = next((line for line in budget.lines() if line.name == name), None) if budget is not None else None
        if budget is None or line is None:
            return False
        if (problem := limit_problem(line, limit, self._next_call())) is not None:
            raise AgentError(problem)
        budget.set(name, limit)
        return True

    # A key

    async def _key(self, failure: Failure, acts: dict[Way, Act | None]) -> str:
        spec = self._models.spec
        provider = spec.model.split("/", 1)[0]
        called, key = Called(provider, spec.api_base, spec.api_key_env), await self._models.key_of(spec)
        takes = spec.model != DEMO and (key.value is not None or key.missing is not None)

        async def keep(text: str) -> bool:
            return await self._use(text, keep=True)

        async def use(text: str) -> bool:
            return await self._use(text, keep=False)

        no_credit = unpaid(failure)
        if takes and not no_credit:
            asks = f"The key for {called.name}"
            # What is stored for a provider is not meant for a server of one's own.
            if not called.own:
                place = await self._state.keys.place()
                acts[Way("k", f"Enter a key and keep it in {place}", asks=asks, secret=True)] = keep
            acts[Way("s", "Enter a key for this run only", asks=asks, secret=True)] = use
        acts[Way("t", "Try again")] = self._again
        acts[OTHER_MODEL] = acts[STOP] = None
        if no_credit:
            return f"{called.first} has no credit left"
        return f"{called.first} {'has no key yet' if key.missing is not None else 'refused the key'}"

    async def _again(self, _: str) -> bool:
        return True

    async def _use(self, text: str, *, keep: bool) -> bool:
        asked, spec = self._asked, self._models.spec
        said = await self._models.give_key(spec, text, keep=keep)
        self._state.events.publish(Notice("info", said, "key_taken"))
        if self._asked is not asked:
            return False
        await self._models.switch(spec.key)
        return True

    # A wrong model

    async def _unknown_model(self, acts: dict[Way, Act | None]) -> str:
        """What the provider does not know: proposed is the name that is most like it, of those that can be used."""
        spec = self._models.spec
        await self._models.look()
        own = [one.key for one in self._models.all() if one.model != spec.model]
        near = await asyncio.to_thread(nearest, spec.model, own)
        usable = [name for name in near if await self._models.missing_key(name) is None]
        if usable:
            meant = usable[0]

            async def use(_: str) -> bool:
                await self._models.switch(meant)
                return True

            acts[Way("y", f"Continue with {meant}")] = use
        acts[Way("t", "Try again")] = self._again
        acts[OTHER_MODEL] = acts[STOP] = None
        called = Called(spec.model.split("/", 1)[0], spec.api_base, spec.api_key_env)
        return f"{called.first_place} does not know {one_line(spec.model, 60)}"

    # A full context

    async def _full(self, acts: dict[Way, Act | None]) -> str:
        usage = self._state.runtime.usage()
        if (await self._compaction.preview()).after:
            acts[Way("c", "Compact now and continue")] = self._compact
        if (largest := self._largest()) is not None:
            message, size = largest

            async def drop(_: str) -> bool:
                with self._own_edit():
                    line = await self._edits.drop([message.id])
                self._state.events.publish(Notice("info", line, "dropped"))
                return True

            acts[Way("d", f"Drop {self._named(message)} ({tokens(size, True)} tokens) and continue")] = drop
        acts[OTHER_MODEL] = acts[STOP] = None
        window = f" of {tokens(usage.window, False)}" if usage.window else ""
        return f"The context is full: {total_text(usage)}{window} tokens"

    async def _compact(self, _: str) -> bool:
        made = len(self._state.conversation.own_records)
        with self._own_edit():
            await self._compaction.now()
        # What came of it is told; where nothing did, the other ways are left.
        return len(self._state.conversation.own_records) > made

    @contextmanager
    def _own_edit(self) -> Iterator[None]:
        self._editing = True
        try:
            yield
        finally:
            self._editing = False

    def _largest(self) -> tuple[Message, int] | None:
        """The largest message that may be dropped, with its tokens: none that is pinned, nor what is to be answered."""
        conversation, sizes = self._state.conversation, message_tokens(self._context.usage())
        asked = next((m for m in reversed(conversation.path) if m.role == "user"), None)
        kept = conversation.info.state.pinned_messages
        found = [m for m in conversation.path if sizes.get(m.id, 0) >= LARGE and m is not asked and m.id not in kept]
        largest = max(found, key=lambda m: sizes[m.id], default=None)
        return None if largest is None else (largest, sizes[largest.id])

    def _named(self, message: Message) -> str:
        if (result := message.tool_result) is not None:
            return f"the result of {one_line(result.name, 40)}"
        return f"{'your message' if message.role == 'user' else 'the answer'} “{one_line(message.text, 30)}”"
