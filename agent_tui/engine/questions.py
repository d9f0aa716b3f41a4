"""Asks the user and waits: whether a tool call may run, a plan to approve, a question with choices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from agent_tui.errors import AgentError, ToolError
from agent_tui.models.events import (
    APPROVED_MODES,
    ApprovedMode,
    Event,
    Notice,
    PermissionAnswered,
    PermissionAsked,
    PlanAnswer,
    PlanPresented,
    QuestionAnswer,
    QuestionAsked,
    QuestionClosed,
    RuleOffer,
)
from agent_tui.models.messages import FEEDBACK, PLAN_TOOL, REFUSED, ToolCallPart, new_id
from agent_tui.records import dataclass
from agent_tui.tools.base import Intent, Tool
from agent_tui.tools.builtin.conversation import NOBODY
from agent_tui.tools.git.remotes import RemoteReach
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.rules.decision import PLAN_MESSAGE, PLAN_REASON, RULE_ASKS, Decision
from agent_tui.tools.sandbox.policy import Domain, Network
from agent_tui.tools.sandbox.words import Stopped

A = TypeVar("A", PlanAnswer, QuestionAnswer)

NOT_IN_PLAN_MODE = f"{PLAN_TOOL} works in plan mode only, and the mode is {{mode}}: do the work."

ANSWERED = "Already answered."


class QuestionDesk:
    """Questions go out as events, and wait. An approved plan changes the permission mode, by ``change_mode``."""

    def __init__(
        self,
        permissions: Permissions,
        publish: Callable[[Event], None],
        change_mode: Callable[[ApprovedMode], None],
    ) -> None:
        self._permissions = permissions
        self._publish = publish
        self._change_mode = change_mode
        self._plans: dict[str, asyncio.Future[PlanAnswer]] = {}
        self._questions: dict[str, tuple[QuestionAsked, asyncio.Future[QuestionAnswer]]] = {}

    async def approve(self, plan: str) -> PlanAnswer | None:
        """Asks the user about a plan and returns the answer; None when nobody is there. Raises ToolError outside plan
        mode."""
        mode = self._permissions.mode
        if mode != "plan":
            raise ToolError(NOT_IN_PLAN_MODE.format(mode=mode))
        if not self._permissions.can_ask:
            self._publish(PlanPresented("", plan))
            return None
        request_id = new_id("plan")
        future: asyncio.Future[PlanAnswer] = asyncio.get_running_loop().create_future()
        self._plans[request_id] = future
        self._publish(PlanPresented(request_id, plan))
        try:
            answer = await future
        finally:
            del self._plans[request_id]
            self._publish(QuestionClosed(request_id))
        if answer.mode is not None:
            self._change_mode(answer.mode)
        return answer

    async def choose(self, question: str, choices: tuple[str, ...], several: bool) -> QuestionAnswer:
        """Asks the user a question and returns the answer. Raises ToolError when nobody is there."""
        if not self._permissions.can_ask:
            raise ToolError(NOBODY)
        asked = QuestionAsked(new_id("ask"), question, choices, several)
        future: asyncio.Future[QuestionAnswer] = asyncio.get_running_loop().create_future()
        self._questions[asked.request_id] = (asked, future)
        self._publish(asked)
        try:
            return await future
        finally:
            del self._questions[asked.request_id]
            self._publish(QuestionClosed(asked.request_id))

    def answer_plan(self, request_id: str, mode: ApprovedMode | None, plan: str, feedback: str = "") -> None:
        """The user's word on a plan: approved with the mode to carry it out in, or (None) declined. One that waits no
        more is left as it is, and the user told so. Raises AgentError for a mode that no plan is carried out in, and
        for a plan without a word."""
        if mode is not None and mode not in APPROVED_MODES:
            raise AgentError(f"A plan is approved with one of {', '.join(APPROVED_MODES)}, not {mode!r}.")
        if mode is not None and not plan.strip():
            raise AgentError("The plan is empty.")
        self._settle(self._plans.get(request_id), PlanAnswer(mode, plan, feedback))

    def answer_question(self, request_id: str, chosen: Sequence[str] = (), text: str = "") -> None:
        """The user's word on a question: what they chose, what they wrote, or neither (declined). One that waits no
        more is left as it is, and the user told so. Raises AgentError for what is not among the choices."""
        asked, future = self._questions.get(request_id, (None, None))
        if asked is not None:
            strange = [choice for choice in chosen if choice not in asked.choices]
            if strange or (len(chosen) > 1 and not asked.several):
                raise AgentError("Not one of the choices." if strange else "Choose only one.")
        self._settle(future, QuestionAnswer(tuple(chosen), text))

    def _settle(self, future: asyncio.Future[A] | None, answer: A) -> None:
        if future is None or future.done():
            self._publish(Notice("info", ANSWERED, "answered"))
        else:
            future.set_result(answer)


@dataclass(slots=True, frozen=True)
class CallVerdict:
    """The verdict on whether a call may run."""

    allowed: bool
    text: str = ""
    """Tells the model why not."""
    domain: Domain | None = None
    """What a command is held to; None: what the mode says."""
    network: Network | None = None
    """What it may reach; None: what the configuration says."""
    remotes: tuple[RemoteReach, ...] = ()
    """What its git commands may reach besides."""
    again: Callable[[Stopped], Awaitable[CallVerdict]] | None = None
    """Of a command that is only let look: the verdict on running it once more, to do what was stopped, for which the
    user is asked."""


@dataclass(slots=True)
class _Open:
    """A question that waits for the user."""

    future: asyncio.Future[_Answer | Decision]
    tool: str
    intent: Intent
    offers: Sequence[RuleOffer] = ()
    again: bool = False
    """It is about a command that has run in ``look``."""
    deciding: asyncio.Task[None] | None = None
    """Decides in the permission mode of now whether it is still to be asked; a "yes" waits for that."""


@dataclass(slots=True, frozen=True)
class _Answer:
    allow: bool
    offer: RuleOffer | None
    feedback: str


def _settle(future: asyncio.Future[_Answer | Decision], result: _Answer | Decision) -> None:
    if not future.done():
        future.set_result(result)


class PermissionDesk:
    """Judges tool calls by ``permissions``; questions go out as events, one at a time, and what needs none waits for
    none. ``ready`` is waited for before the first command is judged: what the sandbox holds is tried only then."""

    def __init__(
        self,
        permissions: Permissions,
        publish: Callable[[Event], None],
        ready: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.permissions = permissions
        self._ready = ready
        self._publish = publish
        self._open: dict[str, _Open] = {}
        self._deciding = asyncio.Lock()
        self._one_at_a_time = asyncio.Lock()
        permissions.when_mode_changes(self.mode_changed)

    async def judge(self, call: ToolCallPart, tool: Tool, intent: Intent, asker: str = "") -> CallVerdict:
        """Returns the verdict on whether a call may run; waits for the user where the rules say ask. ``asker`` is who
        makes the call, where that is not the session itself."""
        name = intent.tool or tool.schema.name
        decision = await self._judged(name, intent)
        if decision.action == "ask":
            async with self._one_at_a_time:
                # The answer to the question before may have settled this one.
                decision = await self._judged(name, intent)
                if decision.action == "ask":
                    return await self._ask(call, name, intent, decision, asker)
        if decision.action == "allow":
            return self._allowed(call, name, intent, decision, asker)
        return self._denied(intent, decision)

    async def _judged(self, name: str, intent: Intent, permissions: Permissions | None = None) -> Decision:
        """The decision by the permissions of now, or by others."""
        judge = permissions or self.permissions
        async with self._deciding:
            decision = await self._decide(name, intent, judge)
        question = decision.if_stopped
        if decision.action == "allow" and question is not None and (intent.goes_on or question.network):
            # What goes on cannot begin again, and what needs the network would only find that it has none.
            return judge.put(name, intent, question)
        return decision

    async def _decide(self, name: str, intent: Intent, judge: Permissions) -> Decision:
        # What commands may read is no question for a file tool either.
        held = intent.kind == "command" or (intent.kind == "read" and not judge.inside(intent.paths))
        if held and self._ready is not None:
            await self._ready()
        if held or intent.kind == "network":
            # It may look through folders for links and for what a rule denies, and ask git what the project names.
            return await asyncio.to_thread(judge.decide, name, intent)
        return judge.decide(name, intent)

    async def _offers(
        self, name: str, intent: Intent, decision: Decision, stopped: Stopped | None
    ) -> Sequence[RuleOffer]:
        """The rules that an answer may add: those after which nothing of the call would be asked any more. What was
        ``stopped`` of a command is asked about as one: rules for half of it are none."""
        needs: list[str] = []
        if intent.kind == "command" and decision.network and decision.domain == "work":
            needs = self.permissions.network_rules(intent.command or "", stopped.hosts if stopped else ())
            if stopped is not None and not needs:
                return ()
        folders = stopped.rules if stopped is not None else ()
        reach = [*folders, *needs]
        if stopped is not None and (stopped.ports or stopped.writes != bool(folders)):
            reach = []
        both = [*needs, *decision.patterns] if decision.patterns else []
        patterns = both if stopped is not None else decision.patterns
        offers = [RuleOffer(tuple(needs))] if needs and reach == needs else []
        offers += [RuleOffer(tuple(patterns))] if patterns else []
        offers += [RuleOffer((rule,), "session") for rule in decision.session]
        settles = [offer for offer in offers if await self._settles(name, intent, offer)]
        # Where what is opened does not settle it alone, it is opened together with what runs.
        for rules in (reach, both) if intent.kind == "command" else ():
            if rules and await self._settles(name, intent, offer := RuleOffer(tuple(rules), "session")):
                return [*settles, offer]
        return settles

    async def _settles(self, name: str, intent: Intent, offer: RuleOffer) -> bool:
        """Returns whether nothing of a call would be asked any more after an offer."""
        return (await self._judged(name, intent, self.permissions.after(offer))).action == "allow"

    async def _again(
        self, call: ToolCallPart, name: str, intent: Intent, question: Decision, asker: str, stopped: Stopped
    ) -> CallVerdict:
        """Returns the verdict on whether a command that was only let look may run once more and do what the sandbox
        ``stopped``."""
        async with self._one_at_a_time:
            open_already = self.permissions.granted_network is not None and self.permissions.opens(stopped.hosts)
            network = question.network or (
                stopped.network and not open_already and self.permissions.network in ("ask", "registries")
            )
            reason = f"wants {stopped.what}" + (f"; {question.shows}" if question.shows else "")
            question = replace(question, reason=reason, network=network)
            decision = self.permissions.put(name, intent, question)
            if decision.action == "deny":
                return self._denied(intent, decision)
            return await self._ask(call, name, intent, decision, asker, stopped)

    def _denied(self, intent: Intent, decision: Decision) -> CallVerdict:
        why = decision.message or decision.reason
        if not self.permissions.can_ask:
            self._publish(Notice("warning", f"{intent.summary}: {why}", "permission_denied"))
        return CallVerdict(False, why)

    async def _ask(
        self,
        call: ToolCallPart,
        name: str,
        intent: Intent,
        decision: Decision,
        asker: str,
        stopped: Stopped | None = None,
    ) -> CallVerdict:
        if intent.ask_hooks is not None:
            choice, why = await intent.ask_hooks()
            if choice == "deny":
                return CallVerdict(False, f"Blocked by the user's PermissionRequest hook: {why}")
            if choice == "allow" and RULE_ASKS not in decision.reason:
                return self._allowed(call, name, intent, decision, asker)
        request_id = new_id("ask")
        future: asyncio.Future[_Answer | Decision] = asyncio.get_running_loop().create_future()
        question = self._open[request_id] = _Open(future, name, intent, again=stopped is not None)
        display = intent.display or {"kind": "text", "text": intent.summary}
        if intent.expects is not None:
            try:
                display = {**display, "text": f"{display.get('text', '')}\n{await intent.expects()}".strip()}
            except ToolError as error:
                return CallVerdict(False, str(error))
        reason = decision.reason + self._where(intent, decision, stopped is not None)
        reason = f"{asker}: {reason}" if asker else reason
        try:
            question.offers = await self._offers(name, intent, decision, stopped)
            if not future.done():  # a change of the mode may have answered it meanwhile
                offers = question.offers
                self._publish(PermissionAsked(request_id, call.call_id, name, intent.summary, display, offers, reason))
            answer = await future
        except BaseException:
            self._publish(PermissionAnswered(request_id, False))
            raise
        finally:
            self._open.pop(request_id, None)
        if isinstance(answer, Decision):  # the mode has changed, and says it all
            self._publish(PermissionAnswered(request_id, answer.action == "allow"))
            if answer.action == "allow":
                return self._allowed(call, name, intent, answer, asker)
            return CallVerdict(False, answer.message or answer.reason)
        self._publish(PermissionAnswered(request_id, answer.allow))
        if answer.allow:
            self.permissions.seen_remotes(decision)
            if answer.offer is not None:
                return await self._accepted(call, name, intent, decision, asker, stopped, answer.offer)
            return self._allowed(call, name, intent, decision, asker)
        feedback = answer.feedback.strip()
        rest = f"{FEEDBACK} {feedback}" if feedback else "Do not try it again as is."
        return CallVerdict(False, f"{REFUSED} {rest}")

    async def _accepted(
        self,
        call: ToolCallPart,
        name: str,
        intent: Intent,
        decision: Decision,
        asker: str,
        stopped: Stopped | None,
        offer: RuleOffer,
    ) -> CallVerdict:
        """The verdict once rules were given: they allow the call, and not the answer that brought them."""
        self.permissions.accept(offer)
        now = await self._judged(name, intent)
        if now.action == "deny":
            return self._denied(intent, now)
        if now.action == "ask":
            return await self._ask(call, name, intent, now, asker, stopped)
        if any(rule.startswith("network(") for rule in offer.rules) and self.permissions.tells_hosts_apart():
            decision = replace(decision, network=False)
        return self._allowed(call, name, intent, decision, asker)

    def _allowed(self, call: ToolCallPart, name: str, intent: Intent, decision: Decision, asker: str) -> CallVerdict:
        self.permissions.passed(name, intent, decision)
        if intent.kind != "command":
            return CallVerdict(True)
        network = "allow" if decision.network else self.permissions.granted_network
        again: Callable[[Stopped], Awaitable[CallVerdict]] | None = None
        if decision.if_stopped is not None and decision.domain == "look":
            again = partial(self._again, call, name, intent, decision.if_stopped, asker)
        reaches = tuple(remote.reach for remote in decision.remotes if remote.reach is not None)
        return CallVerdict(True, domain=decision.domain, network=network, remotes=reaches, again=again)

    def _where(self, intent: Intent, decision: Decision, again: bool) -> str:
        """Returns in words what the answer "yes" means for a command where the sandbox holds others."""
        if intent.kind != "command" or not self.permissions.holds("work"):
            return ""
        if decision.domain == "free":
            return " · runs outside the sandbox"
        apart = "" if self.permissions.tells_hosts_apart() else ": any host, as hosts cannot be told apart here"
        if again:
            return f" · runs again, with the network{apart}" if decision.network else " · runs again in the sandbox"
        return " · runs in the sandbox" + (f", with the network open{apart}" if decision.network else "")

    def answer(self, request_id: str, allow: bool, offer: RuleOffer | None = None, feedback: str = "") -> None:
        """The user's word, and with a yes the rules that come into force. An answer to a question that is no longer
        open does nothing. Raises AgentError for rules that were not offered."""
        question = self._open.get(request_id)
        if question is None or question.future.done():
            return
        if offer is not None and offer not in question.offers:
            raise AgentError("These rules were not offered with the question.")
        given = _Answer(allow, offer, feedback)
        if allow and question.deciding is not None:
            question.deciding.add_done_callback(lambda _: _settle(question.future, given))
        else:
            question.future.set_result(given)

    def mode_changed(self) -> None:
        """Has the open questions answered that need no answer any more in the permission mode of now."""
        for question in self._open.values():
            question.deciding = asyncio.create_task(self._decide_anew(question, question.deciding), name="mode")

    async def _decide_anew(self, question: _Open, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        mode = self.permissions.mode
        try:
            decision = await self._decide(question.tool, question.intent, self.permissions)
        except Exception as error:  # the call fails with it, as at a first decision
            if not question.future.done():
                question.future.set_exception(error)
            return
        if question.again and decision.action == "allow" and decision.domain == "look":
            # It has looked: a mode that lets it do no more says no, one that would ask then is asking.
            if decision.if_stopped is not None:
                return
            decision = Decision("deny", PLAN_REASON, PLAN_MESSAGE)
        if decision.action != "ask" and self.permissions.mode == mode:  # another one meanwhile is decided after this
            _settle(question.future, decision)
