"""The Agent: the one object the UI, the commands and headless mode talk to. Events go out to subscribers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_tui.config import PermissionMode
from agent_tui.context.accounting.lost import LostReasoning
from agent_tui.context.accounting.spending import BudgetLine, BudgetName
from agent_tui.context.past.history import History
from agent_tui.context.past.rebuilt import Session
from agent_tui.context.project.user_commands import UserCommand
from agent_tui.context.tokens.metrics import TokenCounterMetrics, format_metrics
from agent_tui.engine.about.report import Row
from agent_tui.engine.assembly import assemble
from agent_tui.engine.models.efforts import EffortChoice
from agent_tui.engine.parts import AgentParts
from agent_tui.engine.project.extensions import ToolRow
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.engine.runtime.runtime import Runtime
from agent_tui.engine.session.conversation import Conversation
from agent_tui.engine.turns.shell import run_shell
from agent_tui.errors import OPEN_ELSEWHERE
from agent_tui.models.branches import Branch, FilesMoved, Moved
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import Event, WaitingMessage
from agent_tui.models.jobs import JobInfo
from agent_tui.models.messages import AttachmentPart, Message, Metadata, Written, written_in
from agent_tui.models.questions import ApprovedMode, PlanAnswer, QuestionAnswer
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec, SentMessage
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.tools.files.pictures import fit_attachments, needs_fitting


class Agent:
    """A chat with one model in one project. All methods are to be called on the event loop's thread.

    Nothing here raises for what a model, a tool or a provider does: that arrives as events. AgentError is raised
    for what the user asked wrongly (an unknown model, a session that does not exist), and while the first session is
    still opening by what needs one.

    It only delegates, to the objects that ``assembly`` lists.
    """

    def __init__(self, parts: AgentParts) -> None:
        self.parts = parts
        self.settings, self.paths, self.store = parts.settings, parts.paths, parts.store
        self.root, self.cwd = parts.root, parts.cwd
        self._own = assemble(parts)

    async def start(self) -> None:
        """Opens the session and begins to warm up the worker. Raises AgentError when the session cannot be opened."""
        await self._own.lifetime.start()

    async def inspect(self) -> ContextUsage:
        """Opens the session asked for without changing it and says what its next request would cost.

        No MCP server is started: the tools of servers are those of the newest step.
        """
        await self._own.lifetime.look()
        return self.context_usage()

    async def close(self) -> None:
        """Ends what runs, stores what is left and lets the worker go. Raises StoreError, once all is closed, when
        something could not be stored to the last."""
        await self._own.lifetime.close()

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that."""
        return self._own.hub.subscribe(callback)

    def publish(self, event: Event) -> None:
        """Tells everybody."""
        self._own.hub.publish(event)

    async def settled(self) -> None:
        """Waits until nothing goes on in the background."""
        await self._own.hub.settled()

    @property
    def toolbox(self) -> Toolbox:
        return self._own.toolbox

    @property
    def opened(self) -> bool:
        """Whether there is a session: not before ``start`` has opened one."""
        return self._own.bindings.opened

    @property
    def runtime(self) -> Runtime:
        return self._own.bindings.current.runtime

    @property
    def conversation(self) -> Conversation:
        return self._own.bindings.current.conversation

    @property
    def info(self) -> SessionInfo:
        return self.conversation.info

    @property
    def messages(self) -> list[Message]:
        return self.conversation.path

    @property
    def records(self) -> list[CompactionRecord]:
        return self.conversation.own_records

    @property
    def steps(self) -> list[Step]:
        return self.conversation.steps

    @property
    def read_only(self) -> bool:
        return self.conversation.read_only

    @property
    def read_only_reason(self) -> str:
        return OPEN_ELSEWHERE if self.read_only else ""

    async def clear(self) -> LostReasoning | None:
        """Starts a new session; the old one stays and can be resumed. Returns the reasoning that stays with it."""
        return await self._own.sessions.clear()

    async def resume(self, session_id: str) -> None:
        """Continues another session; what waits here stays with this one. Raises StoreError when there is none of that
        id."""
        await self._own.sessions.resume(session_id)

    async def fork(self, message_id: str | None = None) -> None:
        """Continues in a copy of the session, up to and including ``message_id``."""
        await self._own.sessions.fork(message_id)

    def branches(self) -> list[Branch]:
        """The ways through the session's messages that are not the conversation in front."""
        return self._own.branches.all()

    def lost_by_going(self, head: str | None) -> LostReasoning | None:
        """The reasoning that would no longer be sent if the conversation ended with the message ``head``."""
        return self._own.branches.lost(head)

    def files_by_going(self, head: str | None) -> FilesMoved:
        """What would become of the files if they were put as the conversation that ends with ``head`` has them."""
        return self._own.branches.files(head)

    async def rewind(self, message_id: str, restore_files: bool = False) -> Moved:
        """Goes back to before one of the user's messages, which is returned; files too where asked."""
        return await self._own.branches.rewind(message_id, restore_files)

    async def go_to(self, head: str | None, restore_files: bool = False) -> Moved:
        """Goes on from any message of the session; files too where asked. Raises AgentError where it is not there."""
        return await self._own.branches.go_to(head, restore_files)

    async def go_back(self, restore_files: bool = False) -> Moved:
        """Returns to the branch that was left last. Raises AgentError where there is none."""
        return await self._own.branches.back(restore_files)

    def rename(self, title: str) -> None:
        """Gives the session a title."""
        self._own.sessions.rename(title)

    async def compact(self, focus: str = "") -> None:
        """Compacts now; ``focus`` tells the summary what matters. The outcome arrives as an event."""
        await self._own.sessions.compact(focus)

    def compact_preview(self, focus: str = "") -> str:
        """What ``/compact`` would do now, with numbers and without a model call."""
        return self._own.sessions.compact_preview(focus)

    async def compact_undo(self) -> None:
        """Takes the newest compaction back. The outcome arrives as an event."""
        await self._own.sessions.compact_undo()

    @property
    def busy(self) -> bool:
        """Whether a turn or a compaction runs."""
        return self._own.states.busy

    @property
    def waiting(self) -> list[WaitingMessage]:
        """What the user wrote and has no answer on its way, the next first."""
        return self._own.waiting.listed

    def expect(self, schema: Metadata | None, due: bool = False) -> None:
        """The JSON Schema that answers from now on have to fit: providers that can are asked to see to it. ``due``: the
        next answer is to be given without calling tools any more. It holds for the session and model in force."""
        self.runtime.expect(schema, due)

    def submit(
        self,
        text: str,
        attachments: Sequence[AttachmentPart] = (),
        pasted: Sequence[list[int]] = (),
        behind: str | None = None,
    ) -> None:
        """Sends a message, or queues it while a turn runs or the session is still opening, ``behind`` another one.
        ``pasted``: see ``Written``."""
        self._own.runner.submit(Written(text, list(attachments), list(pasted)), behind)

    def steer(self, text: str, attachments: Sequence[AttachmentPart] = (), pasted: Sequence[list[int]] = ()) -> None:
        """A message that goes in before the next step of the running turn."""
        self._own.runner.steer(Written(text, list(attachments), list(pasted)))

    def send_waiting(self, message_id: str | None = None) -> bool:
        """Sends what waits, one after the other; or the one of that id before all others, into the running turn where
        one runs. False when nothing does, or it cannot be now."""
        return self._own.runner.send_waiting(message_id)

    def take_back(self, message_id: str | None = None) -> Written | None:
        """Takes a message that waits back, the newest where none is named, with what was attached to it; None when it
        does not wait any more."""
        message = self._own.runner.take_back(message_id)
        return None if message is None else written_in(message)

    def move_waiting(self, message_id: str, by: int) -> bool:
        """Lets one of what waits go out earlier (``by`` < 0) or later; False where it cannot be."""
        return self._own.waiting.move(message_id, by)

    def interrupt(self) -> bool:
        """Ends the running turn, compaction or wait; queued messages stay. False when nothing runs."""
        return self._own.runner.interrupt()

    async def join(self) -> None:
        """Waits until no turn runs and nothing that would start one is queued."""
        await self._own.runner.join()

    def answer_permission(self, request_id: str, allow: bool, pattern: str | None = None, feedback: str = "") -> None:
        """The user's word on a PermissionAsked; ``pattern`` is remembered for the project."""
        self._own.desk.answer(request_id, allow, pattern, feedback)

    def answer_plan(self, request_id: str, mode: ApprovedMode | None, plan: str, feedback: str = "") -> None:
        """The user's word on a PlanPresented: approved with the mode to carry it out in, or (None) declined. A plan
        that was answered already is left alone, and the user told so."""
        self._own.questions.answer_plan(request_id, PlanAnswer(mode, plan, feedback))

    def answer_question(self, request_id: str, chosen: Sequence[str] = (), text: str = "") -> None:
        """The user's word on a QuestionAsked: what they chose, what they wrote, or neither (declined)."""
        self._own.questions.answer_question(request_id, QuestionAnswer(tuple(chosen), text))

    async def shell(self, command: str) -> None:
        """Runs the user's own command; command and output join the conversation."""
        self._own.runner.need_idle("run a command")
        work = run_shell(command, self._own.toolbox.context(), self.conversation, self.publish)
        await self._own.runner.exclusively(work, "run a command")
        self._own.accounts.recount()

    def jobs(self) -> list[JobInfo]:
        """The commands in the background, in the order they were started."""
        return self._own.background.infos()

    def job_output(self, job_id: str) -> str:
        """The newest output of one. Raises AgentError when there is none of that id."""
        return self._own.background.output(job_id)

    async def stop_job(self, job_id: str) -> str:
        """Ends one; a line on how it is then. Raises AgentError when there is none of that id."""
        return await self._own.background.stop(job_id)

    def keep_job(self, job_id: str, keep: bool = True) -> str:
        """Whether one goes on when the program ends; a line that says so. Raises AgentError when there is none of that
        id, or it has ended."""
        return self._own.background.keep(job_id, keep)

    def left_running(self) -> list[str]:
        """After ``close``: a line for each command that goes on."""
        return self._own.background.left_running()

    def heard(self, own_words: str) -> None:
        """The user wrote this themselves: hosts named in it may be fetched from."""
        self.parts.permissions.reach.name(own_words)

    async def fit_images(self, parts: Sequence[AttachmentPart]) -> tuple[list[AttachmentPart], list[str], list[str]]:
        """Attachments as the model in use takes them: a line for each image that was scaled down, and one for each
        that had to be left out."""
        limits = self._own.bindings.image_limits
        if not needs_fitting(parts, limits):
            return list(parts), [], []
        return await asyncio.to_thread(fit_attachments, parts, limits)

    @property
    def spec(self) -> ModelSpec:
        return self.runtime.info.spec

    @property
    def model_info(self) -> ModelInfo | None:
        """What is known about the model; None until it has been described."""
        return self.runtime.info if self._own.bindings.opened and self._own.bindings.current.described else None

    @property
    def effort(self) -> Effort:
        return self.runtime.wanted_effort

    def set_effort(self, effort: Effort) -> LostReasoning | None:
        """How much the model thinks, from the user's next message on; kept with the session. Returns the reasoning
        that is no longer sent then."""
        return self._own.models.set_effort(effort)

    async def until_described(self) -> None:
        """Waits until the model's facts have come, or could not be had."""
        await self._own.bindings.current.until_described()

    def levels(self) -> list[EffortChoice]:
        """The levels of thinking that the model has, as far as its facts are known."""
        return self._own.models.levels()

    def efforts(self) -> list[EffortChoice]:
        """The same, with what a change to each would lose and cost."""
        return self._own.models.efforts()

    def models(self) -> list[ModelSpec]:
        """Configured and detected models, the demo model last."""
        return self._own.models.all()

    async def describe(self, key: str) -> ModelInfo:
        """What is known about a model. Raises ConfigError for an unknown name."""
        return await self._own.models.describe(key)

    def lost_by_model(self, info: ModelInfo) -> LostReasoning | None:
        """The reasoning that would no longer be sent if this model went on."""
        return self._own.models.lost_by(info)

    async def set_model(self, key: str) -> tuple[ModelInfo, LostReasoning | None]:
        """Talks to another model from the next step on, after compacting with the old one where it must be. The
        reasoning that is no longer sent then comes with the model's facts.

        Raises ConfigError for an unknown name and AgentError while a turn runs.
        """
        return await self._own.models.switch(key)

    async def forget_limits(self) -> int:
        """Forgets what servers said of models' limits; how many models that was. This session's is described anew.
        Raises StoreError, and AgentError while a turn runs."""
        return await self._own.models.forget_limits()

    @property
    def metrics(self) -> TokenCounterMetrics:
        return self._own.accounts.metrics

    @property
    def in_flight(self) -> int:
        """Estimated tokens of the answer that is streaming."""
        return self.runtime.in_flight if self._own.bindings.opened else 0

    @property
    def pinned(self) -> list[str]:
        return self._own.fixed.pinned

    def context_usage(self) -> ContextUsage:
        """The calculator's answer for the next request, now."""
        return self._own.accounts.usage()

    def budgets(self) -> list[BudgetLine]:
        """Every budget, with its limit and what was spent of it."""
        purse = self.runtime.purse
        return purse.lines() if purse is not None else []

    def set_budget(self, name: BudgetName, limit: float | None) -> None:
        """What may be spent in this session, whatever the configuration says; None is no limit. Raises AgentError."""
        if self.runtime.purse is not None:
            self.runtime.purse.set(name, limit)

    def trigger_total(self) -> int:
        """The very integer the compactor compares with the limit."""
        return self._own.accounts.usage().total

    def part_text(self, fingerprint: str) -> str | None:
        """The text of a fixed part of the next request, deferred tools included; None where it is not at hand."""
        return self.runtime.prelude.texts.get(fingerprint)

    def sent_message(self, message_id: str) -> SentMessage | None:
        """A message as the next request sends it; None where it does not."""
        return next((item for item in self.conversation.view() if item.message.id == message_id), None)

    def history(self) -> History:
        """The session as it was before each of its steps. It stays with this session, and grows with it."""
        c = self.conversation
        return History(Session(c.messages, c.steps, c.every_record, c.summaries, self.runtime.policy(), c.inherited))

    async def refresh_context(self) -> bool:
        """Looks whether memory files or pinned files have changed and takes them as they are now; while a turn runs
        pinned files only. True when that changed what the next request is made of; then the numbers are told."""
        return await self._own.accounts.refresh()

    def recount(self) -> None:
        """Shows the numbers as they are now and counts what has no count yet."""
        self._own.accounts.recount()

    async def ready(self) -> None:
        """Waits until the model's window and limits are known and everything is counted: the numbers are final."""
        await self._own.accounts.ready()

    async def count_exact(self) -> int | None:
        """Asks the provider for the exact size of the next request; None where it cannot say, or must not be asked."""
        return await self._own.accounts.count_exact()

    def context_stats(self) -> str:
        """The token counter's metrics with what they mean, as text."""
        return format_metrics(self.metrics)

    def reset_context_stats(self) -> None:
        self.metrics.reset()

    def pin(self, path: str) -> None:
        """Sends a file with every request, as it is at that time. Raises AgentError when it cannot be read."""
        self._own.accounts.pin(path)

    def unpin(self, path: str) -> None:
        """Stops sending a pinned file. Raises AgentError when it is not pinned."""
        self._own.accounts.unpin(path)

    @property
    def branch(self) -> str:
        """The git branch at the start of the session; empty outside a repository."""
        return self.parts.workspace.git.branch

    @property
    def folders(self) -> list[Path]:
        """Where files are read and attached without asking: the project and the folders added to it."""
        return [self.root, *self.parts.added_dirs]

    @property
    def mode(self) -> PermissionMode:
        return self._own.mode.now

    def set_mode(self, mode: PermissionMode) -> None:
        """Changes the permission mode, at once."""
        self._own.mode.set(mode)

    @property
    def trusted(self) -> bool:
        return self._own.trusting.trusted

    def trust(self, sure: bool = False) -> str:
        """Trusts what the project brings along, from now on; ``sure`` is the answer to what was shown first."""
        return self._own.project.trust(sure)

    def trust_details(self) -> str:
        """What the folder brings along that is new to the user, or differs from what they trusted."""
        return self._own.trusting.details()

    def permission_rules(self) -> list[Row]:
        """(decision, rule, source) of every rule."""
        return self._own.project.permission_rules()

    def remove_permission_rule(self, rule: str) -> bool:
        """Forgets a remembered rule; False when there was none. Rules of the configuration are changed there."""
        return self._own.project.remove_permission_rule(rule)

    def tools(self) -> list[ToolRow]:
        """(name, group, description, tokens, enabled) of every tool."""
        return self._own.project.tools()

    def user_commands(self) -> list[UserCommand]:
        """The user's and the project's commands, and the prompts of MCP servers."""
        return self._own.project.user_commands()

    def skills(self) -> list[Row]:
        """(name, description, path) of every skill."""
        return self._own.project.skills()

    def mcp_servers(self) -> list[Row]:
        """(name, state, detail) of every MCP server."""
        return self._own.project.mcp_servers()

    async def mcp_reconnect(self, name: str) -> str:
        """Connects an MCP server again; one line on how that went."""
        return await self._own.project.mcp_reconnect(name)

    def mcp_resources(self) -> list[tuple[str, str]]:
        """(``server:uri``, description) of every MCP resource, as it is named after ``@``."""
        return self._own.project.mcp_resources()

    async def mcp_attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]:
        """The MCP resources that ``@server:uri`` words of a message name, and a line for each that failed."""
        return await self._own.project.mcp_attachments(text)

    async def sandbox_lines(self) -> list[str]:
        """Which sandbox holds, and what each domain means under it."""
        return await self._own.project.sandbox_lines()

    def tell_pictures(self, detail: str) -> None:
        """How the terminal shows pictures, as a screen has found out by asking it: what ``doctor`` says then."""
        self._own.project.tell_pictures(detail)

    def tell_drawing(self, problem: str) -> None:
        """What of the installed Textual cannot be used, as a screen has found out: what ``doctor`` says then."""
        self._own.project.tell_drawing(problem)

    async def doctor(self) -> list[Row]:
        """Checks of the installation: (ok, warn or fail; what; detail)."""
        return await self._own.project.doctor()
