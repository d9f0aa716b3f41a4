"""The agent without a screen, from the first message to the exit code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from agent_tui import terminal_output
from agent_tui.commands import registry
from agent_tui.commands.turn_words import EXIT_BY_REASON
from agent_tui.context.agents import type_of
from agent_tui.control.control import Control, ControlEvent, Interrupt, Question
from agent_tui.control.lines import MAX_LINE, own_input
from agent_tui.engine.agent import Agent
from agent_tui.engine.models import DEMO
from agent_tui.errors import (
    EXIT_DENIED,
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_PIPE,
    EXIT_REFUSED,
    EXIT_RETRYABLE,
    EXIT_USAGE,
    AgentError,
    ConfigError,
    RequiredServerError,
)
from agent_tui.headless.callbacks import Callbacks
from agent_tui.headless.incoming import (
    Answered,
    ControlRequest,
    Initialize,
    UserMessage,
    Wrong,
    incoming,
)
from agent_tui.headless.output import Printer
from agent_tui.headless.schema import REPAIRS, OutputSchema, SchemaFaultError, read_schema, repair_request
from agent_tui.models.events import Event, Notice, QuestionClosed, TurnEnded
from agent_tui.models.messages import AttachmentPart, Metadata, first_paragraph, range_of
from agent_tui.options import Options
from agent_tui.paths import with_home
from agent_tui.records import dataclass
from agent_tui.text.clean import clean_line
from agent_tui.tools.files.access import BadFile


def pictures(paths: Sequence[Path], agent: Agent, written: Callable[[str, int], str]) -> list[AttachmentPart]:
    """The files of ``--image``; ``written`` says how the user named each. Raises ConfigError for what is no picture."""
    if not paths:
        return []
    from agent_tui.commands.mentions import attachment

    found: list[AttachmentPart] = []
    for index, path in enumerate(paths):
        flag = written("images", index)
        whole = with_home(path)
        try:
            part = attachment(agent.cwd / whole, agent.cwd, agent.project.files)
        except BadFile as error:
            raise ConfigError(f"{flag} {path} {error}.") from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{flag} {path}: {getattr(error, 'strerror', None) or error}.") from None
        if not part.media_type.startswith("image/"):
            raise ConfigError(f"{flag} {path}: not an image (PNG, JPEG, GIF or WebP).")
        found.append(part)
    return found


@dataclass(slots=True, frozen=True)
class PreparedMessage:
    """A message as it is sent; ``typed`` is what of its text the user typed (``TextPart.typed``)."""

    text: str
    attachments: list[AttachmentPart]
    typed: list[list[int]]


async def expanded(agent: Agent, typed: str, piped: str, whole: bool = False) -> tuple[str, list[list[int]]]:
    """The text to send, and what of it the user typed: the prompt of the command line (``whole``), or else the first
    paragraph of what a program sent or was piped in alone. A line that looks like a command is one, or a mistake."""
    prompt = "\n\n".join(part for part in (typed, piped) if part)
    if not prompt.startswith("/"):
        return prompt, [[0, len(typed)]] if whole and typed else first_paragraph(prompt)
    name, args = registry.split(prompt)
    if agent.parts.extensions is not None:
        await agent.parts.extensions.command_ready(name)
    if (own := registry.own(name, agent)) is not None:
        text = own.expand(args)
        text = text if isinstance(text, str) else await text
        return text, range_of(args if whole and not piped else args.partition("\n")[0], text)
    if registry.find(name) is not None or name in registry.ELSEWHERE:
        raise ConfigError(f"/{name} is a chat command; -p sends a message.")
    if registry.is_command(typed or piped, agent):
        hint = f"{registry.instead(name, agent)} ".lstrip()
        raise ConfigError(f"Unknown command /{name}. {hint}Put a space before it to send it as text.")
    return prompt, [[0, len(typed)]] if whole and typed else first_paragraph(prompt)


async def prepared(
    agent: Agent, typed: str, piped: str = "", given: Sequence[AttachmentPart] = (), *, whole: bool = False
) -> PreparedMessage:
    """The message to send: a user command expanded, files and resources attached that were named with ``@`` by
    the user themselves: what is piped in, and the text of a command, may be anyone's. ``whole``: see ``expanded``.

    Only MCP servers that are required are waited for. Raises RequiredServerError where one does not come, and
    ConfigError for a command that only the chat has or nobody knows.
    """
    if agent.parts.extensions is not None:
        await agent.parts.extensions.ready()
    agent.project.heard(typed)
    (prompt, own), found = await expanded(agent, typed, piped, whole), list(given)
    if "@" in typed:
        from agent_tui.commands.mentions import expand_mentions

        named, problems = await asyncio.to_thread(expand_mentions, typed, agent.cwd, agent.project.files)
        resources, unread = await agent.project.mcp_attachments(typed)
        found += [*named, *resources]
        for problem in [*problems, *unread]:
            agent.events.publish(Notice("warning", f"Not attached: {problem}", "attachment"))
    return PreparedMessage(prompt, await agent.project.fitted(found), own)


async def need_model(agent: Agent, options: Options) -> None:
    """Raises ConfigError where the model has no key, and where the demo model would answer without having been asked
    for: a script that lost its key must not go on with made-up text."""
    settings = agent.settings
    named = options.model is not None or settings.default_model is not None or DEMO in settings.models
    if agent.models.spec.model == DEMO and not named:
        raise ConfigError(
            "No model is configured. Set a provider's key (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …) or "
            f"name a model in {agent.paths.config_file} (agent-tui config init writes an example); -m demo tries the "
            "demo model."
        )
    if (problem := await agent.models.key_problem()) is not None:
        raise ConfigError(problem)


log = logging.getLogger(__name__)


class Run:
    """Messages, one turn each. ``stopped`` is set when no further turn is to begin, ``broken`` when the message that is
    being made ready is not to be sent."""

    def __init__(self, agent: Agent, printer: Printer, options: Options, schema: OutputSchema | None) -> None:
        self.agent = agent
        self.printer = printer
        self.output_error: OSError | None = None
        self.code = EXIT_OK
        self._options = options
        self._schema = schema
        self._over = asyncio.Event()
        self._stopped = asyncio.Event()
        self._broken = asyncio.Event()
        self._unsent = 0
        self._held = 0  # bytes of the messages that wait
        self._steps_before = 0
        self._control: Control | None = None
        self._doing: set[asyncio.Task[None]] = set()
        self._callbacks = Callbacks(lambda entry: self.write(partial(self.printer.control, entry)))
        if options.input_format == "stream-json":
            agent.carry_to_servers(self._callbacks.carry)
        self._wrong_lines = False
        self._driven = False

    def handle(self, event: Event) -> None:
        """Prints an event. When nobody reads the output any more, the turn is ended."""
        try:
            if self.output_error is None:
                self.printer.handle(event)
        except OSError as error:
            self.output_error = error
            self._stopped.set()
            self.agent.turns.interrupt()
        finally:
            if isinstance(event, TurnEnded):
                self._over.set()

    def stop(self) -> None:
        """Ends the turn, and the run with it."""
        self._stopped.set()
        self.code = self.code or EXIT_INTERRUPTED
        if not self.agent.turns.interrupt():
            self.printer.stop_reason = "interrupted"
            self._over.set()

    def write(self, write: Callable[[], None]) -> None:
        """Prints, as long as somebody reads."""
        try:
            if self.output_error is None:
                write()
        except OSError as error:
            self.output_error = error

    async def one(self, piped: str) -> None:
        """The prompt of the command line, with what was piped in."""
        await self._message(partial(self._prepare, self._options.prompt, piped, self._options.images, whole=True))

    async def many(self) -> None:
        """The prompt of the command line, if there is one, then the messages of standard input until it ends. The exit
        code is that of the first turn that did not end well. Raises ConfigError where nothing comes at all."""
        self._control = Control(self.agent, self._heard, numbers=False)
        waiting: asyncio.Queue[UserMessage | ConfigError | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read(waiting, self._control))
        stopping = asyncio.create_task(self._stopped.wait())
        try:
            asked = bool(self._options.prompt.strip())
            if asked:
                await self.one("")
            while not self._stopped.is_set():
                coming = asyncio.create_task(waiting.get())
                await asyncio.wait({coming, stopping}, return_when=asyncio.FIRST_COMPLETED)
                message = coming.result() if coming.done() else None
                coming.cancel()
                if isinstance(message, ConfigError):
                    raise message
                if message is None:
                    break
                asked = True
                self._held -= message.size
                if message.verbatim:
                    await self._message(partial(self._as_it_is, message))
                else:
                    await self._message(partial(self._prepare, message.text, "", (), message.attachments))
            if self._doing:
                await asyncio.wait(self._doing)
            if not (asked or self._driven or self._stopped.is_set()):
                raise ConfigError("No prompt: standard input ended without a message.")
            if not asked and not self._stopped.is_set():
                self.printer.stop_reason = "end"
            if self._wrong_lines:
                self.code = self.code or EXIT_USAGE
        finally:
            reading.cancel()
            stopping.cancel()
            for task in self._doing:
                task.cancel()
            self._control.end()

    async def _read(self, waiting: asyncio.Queue[UserMessage | ConfigError | None], control: Control) -> None:
        try:
            async for item in incoming(own_input()):
                match item:
                    case UserMessage() if self._held + item.size > 2 * MAX_LINE and self._held:
                        self._wrong(Wrong("Too many messages are queued; this one was refused.", is_message=True))
                    case UserMessage():
                        control.pass_over_stop()
                        self._unsent += 1
                        self._held += item.size
                        await waiting.put(item)
                    case Interrupt():
                        self._interrupt()
                    case ControlRequest():
                        self._driven = True
                        task = asyncio.create_task(self._do(control, item), name="control request")
                        self._doing.add(task)
                        task.add_done_callback(self._doing.discard)
                    case Answered():
                        if not self._callbacks.take(item):
                            self._answer(control, item)
                    case Wrong():
                        self._wrong(item)
        except ConfigError as error:
            await waiting.put(error)
        control.nobody_answers()
        self._callbacks.gone()
        await waiting.put(None)

    def _interrupt(self) -> bool:
        """Ends the turn that runs, or keeps the message that is being made ready from being sent."""
        if self.agent.turns.interrupt():
            return True
        if self._unsent:
            self._broken.set()
        return bool(self._unsent) or (self._control is not None and self._control.pass_over_stop())

    def _wrong(self, item: Wrong) -> None:
        if item.id:
            self._driven = True
            self._respond(item.id, {"subtype": "error", "error": item.text})
        else:
            if not self.printer.answers_once:
                self._wrong_lines = True
            elif item.is_message:
                self.code = EXIT_USAGE  # until the next turn: that of the last result counts there
            self.write(partial(self.printer.wrong_line, item.text, item.is_message))

    async def _do(self, control: Control, asked: ControlRequest) -> None:
        try:
            if isinstance(asked.request, Initialize):
                done = self._initialize(asked.request.brings)
            elif isinstance(asked.request, Interrupt):
                done = {"interrupted": self._interrupt()}
            else:
                done = self.printer.done(asked.request, await control.do(asked.request))
        except AgentError as error:
            self._respond(asked.id, {"subtype": "error", "error": str(error)})
        else:
            self._respond(asked.id, {"subtype": "success", "response": done})

    def _initialize(self, brings: Metadata) -> Metadata:
        """Takes over what the driver brings along. Raises ConfigError."""
        hooks = self._callbacks.hooks(brings.get("hooks") or {})
        agents, skills = brings.get("agents") or {}, brings.get("skills")
        if not isinstance(agents, dict) or not all(isinstance(said, dict) for said in agents.values()):
            raise ConfigError("initialize: agents must be an object of objects.")
        if not (skills is None or (isinstance(skills, list) and all(isinstance(name, str) for name in skills))):
            raise ConfigError("initialize: skills must be a list of names.")
        self.agent.project.bring([type_of(name, said) for name, said in agents.items()], skills)
        self.agent.bring_hooks(hooks)
        return self.printer.introduction()

    def _respond(self, name: str, response: Metadata) -> None:
        entry = {"type": "control_response", "response": {"request_id": name, **response}}
        self.write(partial(self.printer.control, entry))

    def _answer(self, control: Control, answered: Answered) -> None:
        question = next((one for one in control.questions if one.id == answered.id), None)
        try:
            if question is None:
                raise ConfigError("This question is closed: it was answered, or its turn has ended.")
            answer = self.printer.answer_to(question, answered.said)
            question.answer(*answer.options, text=answer.text)
        except (AgentError, ValueError) as error:
            self._wrong(Wrong(f"Answer to {clean_line(answered.id)[:60]!r}: {error}"))
            if self.printer.answers_once and question is not None and question in control.questions:
                question.decline()
        else:
            if answered.said.get("interrupt") is True:
                self._interrupt()

    def _heard(self, event: ControlEvent) -> None:
        match event:
            case Question(kind="stop") if self._unsent:
                event.decline()  # the next message waits already
            case Question():
                self.write(partial(self.printer.ask, event))
            case QuestionClosed(request_id):
                # Nobody has to answer any more: the turn was interrupted, or the mode says it all.
                self.write(partial(self.printer.control, {"type": "control_cancel_request", "request_id": request_id}))
            case _:
                pass  # the printer tells it

    async def _message(self, prepare: Callable[[], Awaitable[PreparedMessage]]) -> None:
        """One message, its turn, and what it takes until its answer fits the schema."""
        self.printer.begin_turn()
        self._steps_before = len(self.agent.conversation.steps)
        preparing = asyncio.ensure_future(prepare())
        ending = {asyncio.create_task(event.wait()) for event in (self._stopped, self._broken)}
        await asyncio.wait({preparing, *ending}, return_when=asyncio.FIRST_COMPLETED)
        for task in ending:
            task.cancel()
        self._unsent = max(0, self._unsent - 1)
        if self._stopped.is_set() or self._broken.is_set():
            preparing.cancel()
            self._broken.clear()
            self.printer.stop_reason = "interrupted"
        else:
            await self._turn(preparing.result())
            await self._fit_schema()
        self.write(self.printer.end_turn)
        self.code = self._exit_code() if self.printer.answers_once else self.code or self._exit_code()

    async def _turn(self, message: PreparedMessage, *, due: bool = False) -> None:
        self._over.clear()
        if self._schema is not None:
            self.agent.runtime.expect(self._schema.schema, due)
        self.agent.turns.submit(message.text, message.attachments, typed=message.typed)
        await self._over.wait()
        await (self.agent.turns.join() if self._control is None else self._control.over())

    async def _fit_schema(self) -> None:
        if self._schema is None:
            return
        limit, begun = self.agent.settings.agent.step_limit, self._steps_before
        for left in range(REPAIRS, -1, -1):
            if self.printer.stop_reason != "end" or self._stopped.is_set():
                return
            try:
                self.printer.fits(self._schema.value(self.printer.answer))
                return
            except ValueError as error:
                problem = str(error)
            except SchemaFaultError as error:
                self.printer.fits_not(f"The answer cannot be checked against the schema: {error}")
                return
            # One that was refused, and made again, is none of the model's.
            made = [s for s in self.agent.conversation.steps[begun:] if s.failure is None or s.message_id is not None]
            if left and sum(step.kind == "turn" for step in made) >= limit:
                self.printer.fits_not(f"The answer does not fit the schema: {problem}; --max-turns {limit} reached")
                return
            if left:
                self.printer.problem(f"The answer does not fit the schema: {problem}. Asking again.", "schema_repair")
                await self._turn(PreparedMessage(repair_request(problem), [], []), due=True)
        self.printer.fits_not(f"The answer does not fit the schema: {problem}")

    def _exit_code(self) -> int:
        printer = self.printer
        if printer.failure is not None and printer.failure.retryable:
            return EXIT_RETRYABLE
        if printer.stop_reason not in ("end", "length"):
            return EXIT_BY_REASON[printer.stop_reason]
        if self._options.fail_on_denial and printer.denied:
            return EXIT_DENIED
        if printer.schema_problem is not None:
            return EXIT_ERROR
        return EXIT_OK if printer.answer.strip() else EXIT_REFUSED

    async def _prepare(
        self, typed: str, piped: str, images: Sequence[Path], given: Sequence[AttachmentPart] = (), whole: bool = False
    ) -> PreparedMessage:
        """The message to send, as ``prepared`` makes it. Raises ConfigError for a picture that is none, too."""
        given = [*given, *await asyncio.to_thread(pictures, images, self.agent, self._options.written)]
        return await prepared(self.agent, typed, piped, given, whole=whole)

    async def _as_it_is(self, message: UserMessage) -> PreparedMessage:
        if self.agent.parts.extensions is not None:
            await self.agent.parts.extensions.ready()
        return PreparedMessage(message.text, await self.agent.project.fitted(message.attachments), [])


def _on_signals(stop: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)


async def _made(make_agent: Callable[[], Awaitable[Agent]]) -> Agent | None:
    """The agent; None where a signal came first, and nothing is left of what was begun."""
    making = asyncio.ensure_future(make_agent())
    _on_signals(making.cancel)
    await asyncio.wait({making})
    return None if making.cancelled() else making.result()


def _printer(agent: Agent, options: Options, out: TextIO) -> Printer:
    if options.output_format != "claude-json":
        return Printer(agent, options, out, sys.stderr)
    from agent_tui.headless.claude_lines import ClaudePrinter

    return ClaudePrinter(agent, options, out, sys.stderr)


async def run_headless(
    make_agent: Callable[[], Awaitable[Agent]],
    options: Options,
    out: TextIO | None = None,
    *,
    piped: str = "",
) -> int:
    """Sends the prompt, followed by what was piped in, or the messages of standard input; prints what comes of it and
    returns the exit code. SIGINT, SIGTERM, SIGHUP and SIGQUIT interrupt the turn and end the run.

    Raises AgentError for what the user has to mend before anything can be sent.
    """
    schema = None
    if options.output_schema is not None:
        schema = read_schema(options.output_schema, options.written("output_schema"))
        options.instructions.append(schema.instructions)
    agent = await _made(make_agent)
    if agent is None:
        return EXIT_INTERRUPTED
    printer = _printer(agent, options, out or sys.stdout)
    run = Run(agent, printer, options, schema)
    agent.subscribe(run.handle, numbers=False)
    _on_signals(run.stop)
    try:
        await agent.start()
        if options.driver is not None and options.driver.fork:
            await agent.sessions.fork()
        if options.driver is not None and options.driver.effort:
            agent.models.set_effort(options.driver.effort)
        printer.begin()
        if agent.conversation.read_only:
            run.code = EXIT_ERROR
        else:
            await need_model(agent, options)
            await (run.many() if options.input_format == "stream-json" else run.one(piped))
        run.write(partial(printer.finish, run.code))
    except (ConfigError, RequiredServerError) as error:
        if agent.opened:  # a stream of events ends as every other does
            run.write(partial(printer.fail, str(error)))
        raise
    finally:
        session = agent.conversation.info.id if agent.opened else ""
        await agent.close()
        if options.ephemeral and session:
            shutil.rmtree(agent.paths.cache / "output" / session, ignore_errors=True)
    if run.output_error is not None:
        log.info("Nobody reads the output: %s", run.output_error)
        if isinstance(run.output_error, BrokenPipeError):
            return EXIT_PIPE
        terminal_output.complain(f"standard output: {run.output_error.strerror or run.output_error}")
        return EXIT_ERROR
    return run.code
