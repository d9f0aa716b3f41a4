"""The command line: flags, subcommands, exit codes. Everything heavy is imported where it is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_tui.arguments import SUBCOMMANDS, build_parser
from agent_tui.errors import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_USAGE, AgentError, ConfigError
from agent_tui.options import Options


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code. One clear line on stderr for whatever goes wrong."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments and arguments[0] in SUBCOMMANDS:
            from agent_tui import subcommands

            return subcommands.run(arguments)
        return _chat(parse_options(arguments))
    except AgentError as error:
        print(f"agent-tui: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_ERROR


def parse_options(arguments: Sequence[str]) -> Options:
    """Flags as Options. Wrong usage ends the program with exit code 2, as argparse does."""
    values = build_parser().parse_args(arguments)
    headless = values.headless is not None
    prompt = values.headless or values.prompt if headless else values.prompt
    if values.output_format != "text" and not headless:
        raise ConfigError("--output-format goes with -p/--print.")
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
        print("agent-tui: the chat needs a terminal; without one use: agent-tui -p PROMPT", file=sys.stderr)
        return EXIT_USAGE
    return _screen(options)


def _headless(options: Options) -> int:
    import asyncio

    prompt = with_stdin(options.prompt, sys.stdin.isatty, sys.stdin.read)
    if not prompt.strip():
        raise ConfigError("Nothing to ask: give a prompt after -p, or pipe one in.")
    from agent_tui.bootstrap import make_agent
    from agent_tui.headless import run_headless

    return asyncio.run(run_headless(lambda: make_agent(options), prompt, options.output_format))


def with_stdin(prompt: str, is_terminal: Callable[[], bool], read: Callable[[], str]) -> str:
    """The prompt with what was piped in after it."""
    try:
        piped = "" if is_terminal() else read()
    except (OSError, ValueError, UnicodeDecodeError):
        piped = ""
    return "\n\n".join(part for part in (prompt, piped.strip("\n")) if part)


def _screen(options: Options) -> int:
    from agent_tui.early import early_settings
    from agent_tui.paths import project_root, user_paths
    from agent_tui.ui.app import run_ui

    paths = user_paths()

    async def factory() -> object:
        from agent_tui.bootstrap import make_agent

        return await make_agent(options)

    return run_ui(
        factory,  # type: ignore[arg-type]
        early_settings(options, paths),
        paths,
        project_root(Path.cwd()),
        prompt=options.prompt,
    )
