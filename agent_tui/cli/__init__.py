"""The command line: flags, subcommands, exit codes. Everything heavy is imported where it is needed."""

from __future__ import annotations

import errno
import gc
import io
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from agent_tui import terminal_output
from agent_tui.cli.arguments import SUBCOMMANDS, build_parser, given, is_driven, named_as_given
from agent_tui.config import FLAGS
from agent_tui.errors import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_OK, EXIT_PIPE, EXIT_USAGE, AgentError, ConfigError
from agent_tui.options import SESSION_NAME, STREAMS, Options, Served
from agent_tui.paths import settle_home, with_home

if TYPE_CHECKING:
    from agent_tui.config import Settings
    from agent_tui.driver_options import DriverOptions
    from agent_tui.engine.agent import Agent
    from agent_tui.paths import Paths


def main(argv: Sequence[str] | None = None, served: Served | None = None) -> int:
    """Runs the program and returns its exit code. One clear line on stderr for whatever goes wrong. ``served``: the
    chat, on a page of the browser."""
    arguments = [_valid(argument) for argument in (sys.argv[1:] if argv is None else argv)]
    _open_missing_streams()
    if sys.platform == "win32":
        terminal_output.complain("agent-tui does not run on Windows itself. Run it in WSL (wsl --install).")
        return EXIT_USAGE
    settle_home()
    driven = is_driven(arguments, os.environ)
    try:
        try:
            code = _serve(parse_options(arguments), served) if served else _run(arguments, driven)
        except SystemExit:
            # After --help and --version: what could not be written is an error there, too.
            sys.stdout.flush()
            raise
        if code == EXIT_OK:
            sys.stdout.flush()
        else:
            # What failed was said already.
            _give_up("stdout")
    except AgentError as error:
        text = named_as_given(str(error), arguments)
        terminal_output.complain(text)
        if driven:
            from agent_tui.cli.agent_sdk import say_refused

            say_refused(text)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _give_up("stdout")
        return EXIT_PIPE
    except OSError as error:
        terminal_output.complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
        _give_up("stdout")
        return EXIT_ERROR
    finally:
        _give_up("stderr")
    return code


def _give_up(name: Literal["stdout", "stderr"]) -> None:
    """Gives up what is still buffered and cannot be written: it must not be tried again at the end of the process."""
    stream = getattr(sys, name)
    try:
        stream.flush()
    except (OSError, ValueError):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError):
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def _run(arguments: list[str], driven: bool) -> int:
    if driven:
        from agent_tui.cli.agent_sdk import in_flags

        return _chat(parse_options(*in_flags(arguments)))
    arguments = subcommand_first(arguments)
    if arguments and arguments[0] in SUBCOMMANDS:
        from agent_tui.cli import subcommands

        return subcommands.run(arguments)
    return _chat(parse_options(arguments))


def subcommand_first(arguments: list[str]) -> list[str]:
    """The arguments with a subcommand at their head, where only flags and their values stand before it.

    Raises ConfigError for a flag of the chat that this subcommand does not know.
    """
    name = next((argument for argument in arguments if argument in SUBCOMMANDS), None)
    if name is None or not arguments[0].startswith("-"):
        return arguments
    from agent_tui.cli.subcommands import flags_of

    own = flags_of(name)
    chat = {spelling: flag.kind != "switch" for flag in FLAGS if not flag.optional for spelling in flag.spellings}
    at, given = 0, []
    while at < len(arguments) and (flag := arguments[at].partition("=")[0]) in own | chat:
        given.append(flag)
        at += 2 if (own | chat)[flag] and "=" not in arguments[at] else 1
    if arguments[at : at + 1] != [name]:
        return arguments
    for flag in given:
        if flag not in own and name != "serve":
            raise ConfigError(f"agent-tui {name} has no {flag}. Run `agent-tui {name} --help` to list its flags.")
    return [*arguments[at:], *arguments[:at]]


def _open_missing_streams() -> None:
    """Standard input that was closed reads as empty, standard error swallows what is written, and writing to closed
    standard output fails: an answer that nobody gets is an error. None of them lends its number to files opened
    later. Text that the terminal's encoding lacks is escaped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            stand_in = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115, PTH123
            setattr(sys, name, _Closed(stand_in) if name == "stdout" else stand_in)
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Closed(io.TextIOBase):
    """Stands for a stream that was closed before the program began. ``stand_in`` keeps its number taken."""

    def __init__(self, stand_in: IO[Any]) -> None:
        self._stand_in = stand_in

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "closed", "standard output")


def _valid(argument: str) -> str:
    """An argument without the surrogates that stand for bytes outside UTF-8."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def parse_options(arguments: Sequence[str], driver: DriverOptions | None = None) -> Options:
    """Flags, and the variables that stand for them, as Options. Wrong usage ends the program with exit code 2, as
    argparse does, or raises ConfigError where a ``driver`` reads it; so do flags that contradict each other."""
    if any(a.startswith("--") and a.partition("=")[0] not in _FLAGS for a in arguments):
        from agent_tui.cli.other_agents import in_our_flags

        arguments = in_our_flags(arguments)
    parser = build_parser()
    parser.raises = driver is not None
    values = parser.parse_intermixed_args(arguments)
    if values.headless is None and values.prompt[:1] in (["exec"], ["run"]) and len(values.prompt) > 1:
        values.headless, values.prompt = "", values.prompt[1:]  # what other agents call it
    headless = values.headless is not None or values.input_format == "stream-json"
    said = given(values)
    if not headless:
        typed = sorted(f.spellings[-1] for f in FLAGS if f.headless and getattr(values, f.dest) not in (None, []))
        if typed:
            raise ConfigError(f"{typed[0]} needs -p/--print.")
        said = {name: value for name, value in said.items() if name not in _HEADLESS}
    prompts = [text for text in (values.headless, *values.prompt) if text]
    wait = "-" in prompts
    prompts = [text for text in prompts if text != "-"]
    if wait and not headless:
        raise ConfigError("- (standard input) needs -p/--print.")
    if prompts and not headless and prompts[0].isalpha() and "--" not in arguments:
        from agent_tui.cli.other_agents import no_command

        if problem := no_command(prompts[0], SUBCOMMANDS):
            raise ConfigError(problem)
    if len(prompts) > 1:
        raise ConfigError(f"Two prompts: {prompts[0]!r} and {prompts[1]!r}. Quote a prompt that has spaces.")
    sessions = {name: flag for name, flag in _ONE_SESSION.items() if said.get(name) not in (None, False)}
    if len(sessions) > 1:
        # What was typed wins over the variables of others as it does over its own.
        typed = [name for name in sessions if getattr(values, name) not in (None, False)]
        if len(typed) != 1:
            raise ConfigError(f"{' and '.join([*sessions.values()][:2])} cannot be combined; use one of them.")
        said = {name: value for name, value in said.items() if name not in sessions or name in typed}
    if headless and said.get("resume") == "":
        raise ConfigError("--resume needs an ID with -p/--print. Run `agent-tui sessions` to list them.")
    options = Options(
        prompt=prompts[0] if prompts else "",
        headless=headless,
        can_ask=not headless or said.get("permission_prompt_tool") is not None,
        wait_for_input=wait,
        driver=driver,
        **said,
    )
    _check(options)
    return options


_FLAGS = frozenset(f"--{flag.name}" for flag in FLAGS)
_HEADLESS = frozenset(flag.dest for flag in FLAGS if flag.headless)
_ONE_SESSION = {
    "continue_newest": "-c/--continue",
    "resume": "-r/--resume",
    "session": "--session",
    "ephemeral": "--ephemeral",
}


def _check(options: Options) -> None:
    if options.session is not None and not re.fullmatch(SESSION_NAME, options.session):
        raise ConfigError(
            f"{options.written('session')} {options.session!r}: must be 1 to 64 of the characters "
            "A-Z a-z 0-9 . _ - and start with a letter or digit."
        )
    if options.max_turns is not None and options.max_turns < 1:
        raise ConfigError(f"{options.written('max_turns')} {options.max_turns}: must be at least 1.")
    if options.budget is not None and not 0 < options.budget < float("inf"):
        raise ConfigError(f"{options.written('budget')} {options.budget:g}: must be more than 0 dollars.")
    if options.input_format == "stream-json" and options.output_format not in STREAMS:
        raise ConfigError("--input-format stream-json needs --output-format stream-json.")
    if options.system_prompt and options.system_prompt_file is not None:
        raise ConfigError("--system-prompt and --system-prompt-file cannot be combined; use one of them.")
    if options.permission_prompt_tool and options.input_format != "stream-json":
        raise ConfigError(f"{options.written('permission_prompt_tool')} needs --input-format stream-json.")
    if options.input_format == "stream-json" and options.wait_for_input:
        raise ConfigError("- and --input-format stream-json both read standard input; use one of them.")


def _chat(options: Options) -> int:
    _go_to_folder(options)
    if options.headless:
        with _ended_by_signals():
            return _headless(options)
    from agent_tui.config.files import early_settings, why_plain
    from agent_tui.paths import user_paths

    paths = user_paths()
    settings = early_settings(options.config, paths)
    why = why_plain(options.plain, settings.ui.plain, os.environ)
    if why and (options.plain or sys.stdin.isatty()):
        return _plain(options, settings, paths, why)
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        terminal_output.complain(
            "the chat needs a terminal; without one, run agent-tui -p PROMPT, or --plain to chat in plain lines"
        )
        return EXIT_USAGE
    return _screen(options, settings, paths)


def _go_to_folder(options: Options) -> None:
    if options.folder is not None:
        go_to(options.folder, options.written("folder"))


def go_to(folder: Path, flag: str) -> None:
    """Works there from now on. Raises ConfigError, which names the ``flag``."""
    try:
        os.chdir(with_home(folder))
    except OSError as error:
        raise ConfigError(f"{flag} {folder}: {error.strerror or error}.") from None


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Until a run has handlers of its own, what asks it to end does what Ctrl+C does: the exit code is the same however
    early it comes. What the caller ignores (``nohup``) stays ignored."""

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    mine = [
        number
        for name in ("SIGTERM", "SIGHUP", "SIGQUIT")
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) == signal.SIG_DFL
    ]
    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def _headless(options: Options) -> int:
    import asyncio

    from agent_tui.cli.piped import piped_in

    asked, piped = bool(options.prompt.strip()) or options.input_format == "stream-json", ""
    if options.input_format == "text":
        piped = piped_in(wait=options.wait_for_input or not asked)
    if not asked and not piped.strip():
        raise ConfigError("No prompt. Give one after -p, or pipe one in.")
    from agent_tui.bootstrap import make_agent
    from agent_tui.headless.run import run_headless

    return asyncio.run(run_headless(lambda: make_agent(options), options, piped=piped))


async def _make_agent(options: Options) -> Agent:
    """Imports what the first frame does not need: in a thread, so that keys have their turn meanwhile."""
    import asyncio
    from importlib import import_module

    await asyncio.to_thread(import_module, "agent_tui.bootstrap")
    from agent_tui.bootstrap import make_agent

    return await make_agent(options)


def _serve(options: Options, served: Served) -> int:
    """A chat that is served; one that has ended goes on with its session."""
    if options.headless:
        raise ConfigError("agent-tui serve opens the chat; it does not take -p.")
    _go_to_folder(options)
    if served.resume:
        options = replace(options, prompt="", resume=served.resume, session=None, continue_newest=False)
    from agent_tui.config.files import early_settings
    from agent_tui.paths import user_paths

    paths = user_paths()
    return _screen(options, early_settings(options.config, paths), paths, served)


def _plain(options: Options, settings: Settings, paths: Paths, why: str) -> int:
    from agent_tui.paths import project_root
    from agent_tui.plain.run import run_plain

    return run_plain(partial(_make_agent, options), options, settings, paths, project_root(Path.cwd()), why)


def _screen(options: Options, settings: Settings, paths: Paths, served: Served | None = None) -> int:
    # No collection while modules are loaded: it finds nothing and costs a tenth of the start. The UI switches it on.
    gc.disable()
    from agent_tui.paths import project_root
    from agent_tui.ui.first_frame import first_frame

    new = not (options.prompt or options.continue_newest or options.session or options.resume is not None)
    frame = first_frame(settings.ui, paths, os.environ, face=new) if served is None else None
    try:
        from agent_tui.ui.app import ChatStart, run_ui

        if served is not None:
            # Textual has read it by now; what is run from here on has a terminal of its own, or none.
            os.environ.pop("TEXTUAL_COLOR_SYSTEM", None)
        start = ChatStart(options.prompt, options.resume == "", served=served, face=new, frame=frame)
        root = project_root(Path.cwd())
        return run_ui(partial(_make_agent, options), settings, paths, root, start, called_as(options))
    finally:
        if frame is not None:
            frame.close()


def called_as(options: Options) -> list[str]:
    """Returns how the program was called, as far as that has to be said again to find a session of it. What variables
    said they say the next time, too."""
    named = (("-C", "folder", options.folder), ("--config", "config", options.config))
    given = [(flag, str(value)) for flag, name, value in named if value is not None and name not in options.variables]
    return ["agent-tui", *(word for pair in given for word in pair)]
