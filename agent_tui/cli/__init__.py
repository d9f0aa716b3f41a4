"""The command line: flags, subcommands, exit codes. Everything heavy is imported where it is needed."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from agent_tui import door
from agent_tui.cli.arguments import SHARED_FLAGS, SUBCOMMANDS, build_parser
from agent_tui.errors import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_USAGE, AgentError, ConfigError
from agent_tui.options import Options


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code. One clear line on stderr for whatever goes wrong."""
    arguments = [_valid(argument) for argument in (sys.argv[1:] if argv is None else argv)]
    _open_missing_streams()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except AgentError as error:
        door.complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _give_up_stdout()
        return EXIT_ERROR
    except OSError as error:
        door.complain(f"{error.filename or 'output'}: {error.strerror or error}")
        _give_up_stdout()
        return EXIT_ERROR
    return code


def _give_up_stdout() -> None:
    """What is still buffered and cannot be written must not be tried again at the end of the process."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (OSError, ValueError):
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _run(arguments: list[str]) -> int:
    arguments = subcommand_first(arguments)
    if arguments and arguments[0] in SUBCOMMANDS:
        from agent_tui.cli import subcommands

        return subcommands.run(arguments)
    return _chat(parse_options(arguments))


def subcommand_first(arguments: list[str]) -> list[str]:
    """The arguments with a subcommand at their head, where only flags that subcommands share stand before it.

    Raises ConfigError for a flag that this subcommand does not know.
    """
    at, flags = 0, []
    while at < len(arguments) and (flag := arguments[at].partition("=")[0]) in SHARED_FLAGS:
        flags.append(flag)
        at += 1 if "=" in arguments[at] else 2
    if not 0 < at < len(arguments) or arguments[at] not in SUBCOMMANDS:
        return arguments
    for flag in flags:
        if arguments[at] not in SHARED_FLAGS[flag]:
            raise ConfigError(f"agent-tui {arguments[at]} has no {flag}; it is for {', '.join(SHARED_FLAGS[flag])}.")
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
        raise OSError(errno.EBADF, "it is closed", "standard output")


def _valid(argument: str) -> str:
    """An argument without the surrogates that stand for bytes outside UTF-8."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def parse_options(arguments: Sequence[str]) -> Options:
    """Flags as Options. Wrong usage ends the program with exit code 2, as argparse does."""
    values = build_parser().parse_args(arguments)
    headless = values.headless is not None
    prompt = values.headless or values.prompt
    if values.headless and values.prompt:
        raise ConfigError(f"Two prompts: {values.headless!r} and {values.prompt!r}. Put one in quotes.")
    if values.output_format != "text" and not headless:
        raise ConfigError("--output-format goes with -p/--print.")
    if values.continue_newest and values.resume is not None:
        raise ConfigError("-c/--continue and -r/--resume name two sessions; give one of them.")
    if headless and values.resume == "":
        raise ConfigError("--resume needs an ID with -p/--print; agent-tui sessions lists them.")
    return Options(
        prompt=prompt,
        headless=headless,
        output_format=values.output_format,
        model=values.model,
        continue_newest=values.continue_newest,
        resume=values.resume,
        config=values.config,
        add_dirs=values.add_dirs,
        permission_mode=values.permission_mode,
        trust=values.trust,
        can_ask=not headless,
    )


def _chat(options: Options) -> int:
    if options.headless:
        return _headless(options)
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        door.complain("the chat needs a terminal; without one use: agent-tui -p PROMPT")
        return EXIT_USAGE
    return _screen(options)


def _headless(options: Options) -> int:
    import asyncio

    piped = "" if sys.stdin.isatty() else _piped().strip("\n")
    if not options.prompt.strip() and not piped.strip():
        raise ConfigError("Nothing to ask: give a prompt after -p, or pipe one in.")
    _begin_worker()
    from agent_tui.bootstrap import make_agent
    from agent_tui.headless import run_headless

    run = run_headless(lambda: make_agent(options), options.prompt, options.output_format, piped=piped)
    return asyncio.run(run)


def _begin_worker() -> None:
    """Has the provider worker get ready while everything else is imported: the first request waits for it. The chat
    begins it right after its first frame instead: there it would cost the prompt 50 ms, and typing takes longer."""
    from agent_tui.paths import user_paths
    from agent_tui.providers.worker.start import start_early

    start_early(user_paths().log_file)


def _piped() -> str:
    """Standard input to its end. Bytes outside UTF-8 are replaced, and stderr says so."""
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise AgentError(f"Standard input cannot be read: {error.strerror or error}.") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        door.complain(f"standard input is not UTF-8 (byte {error.start}); what is not was replaced")
        return data.decode("utf-8-sig", "replace")


def _screen(options: Options) -> int:
    # No collection while modules are loaded: it finds nothing and costs a tenth of the start. The UI switches it on.
    gc.disable()
    from agent_tui.config.early import early_settings
    from agent_tui.paths import project_root, user_paths
    from agent_tui.ui.app import run_ui

    paths = user_paths()

    async def factory() -> object:
        from agent_tui.bootstrap import make_agent

        return await make_agent(options)

    return run_ui(
        factory,  # type: ignore[arg-type]
        early_settings(options.config, paths),
        paths,
        project_root(Path.cwd()),
        prompt=options.prompt,
    )
