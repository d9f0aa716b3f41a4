"""The subcommands: what can be asked of agent-tui without a chat."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agent_tui import terminal_output
from agent_tui.cli.arguments import Parser, add_command, add_flag, subparsers_of, takes_values
from agent_tui.cli.auth import add_auth
from agent_tui.cli.importing import add_import
from agent_tui.cli.mcp import add_mcp
from agent_tui.cli.serve import add_serve
from agent_tui.cli.sessions import add_sessions
from agent_tui.config import FLAGS
from agent_tui.errors import EXIT_ERROR, EXIT_OK, AgentError, ConfigError
from agent_tui.options import Options
from agent_tui.paths import project_root, user_paths, with_home
from agent_tui.text.clean import clean_line, one_line


def run(arguments: Sequence[str]) -> int:
    """Runs one subcommand and returns the exit code. Raises AgentError for what the user has to mend."""
    values, rest = build_parser().parse_known_args(arguments)
    if rest and arguments[0] != "serve":
        build_parser().parse_args(arguments)  # says which are wrong, and ends
    values.rest = rest
    if values.folder is not None:
        from agent_tui.cli import go_to

        go_to(values.folder, "--cd")
    code: int | None = values.run(values)
    return code or EXIT_OK


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="agent-tui", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)

    context = add_command(
        commands,
        "context",
        "show what the next request of a session would cost, row by row",
        "",
        "-m openai/gpt-5",
        "--step 12 --diff 8",
        "drop ID --dry-run",
    )
    context.add_argument("--session", metavar="ID", help="default: the project's newest")
    context.add_argument("-m", "--model", metavar="NAME", help="what it would cost with this model")
    context.add_argument("--step", type=int, metavar="N", help="the context before step N")
    context.add_argument("--diff", type=int, metavar="M", help="with --step: what changed since step M (default: N-1)")
    context.add_argument("--rows", action="store_true", help="one sentence per row; messages with their ids")
    context.add_argument("--json", action="store_true", help="print JSON")
    context.set_defaults(run=_context)
    _add_edits(context.add_subparsers())

    add_sessions(commands)

    models = add_command(commands, "models", "list the models you can use", "", "claude sonnet", "--json")
    models.add_argument("words", nargs="*", metavar="WORDS", help="search all known models")
    models.add_argument("--json", action="store_true", help="print JSON")
    models.set_defaults(run=_models)

    add_auth(commands)

    doctor = add_command(commands, "doctor", "check this installation", "", "--forget")
    doctor.add_argument("--forget", action="store_true", help="forget limits of models learned from their servers")
    doctor.set_defaults(run=_doctor)

    config = add_command(commands, "config", "show or create the configuration file", "init", "show", "path")
    config.add_argument(
        "action",
        choices=("path", "show", "init"),
        help="path: print where the file is; show: print every setting in use; init: create the file",
    )
    config.set_defaults(run=_config)

    add_import(commands)
    add_mcp(commands)

    acp = add_command(
        commands, "acp", "serve an editor over standard input and output", "", "-m openai/gpt-5 --permission-mode plan"
    )
    acp.add_argument("-m", "--model", metavar="NAME", help="the model of new sessions")
    for flag in FLAGS:
        if flag.name in ("permission-mode", "trust"):
            add_flag(acp, flag)
    acp.set_defaults(run=_acp)

    completions = add_command(commands, "completions", "print a completion script for a shell", "fish | source", "zsh")
    completions.add_argument("shell", choices=("bash", "zsh", "fish"))
    completions.set_defaults(run=_completions)
    for one in subparsers_of(parser):
        # Said of the whole program: they stand before a subcommand, behind it, and behind what it does.
        for flag in FLAGS:
            if flag.name in ("config", "cd"):
                add_flag(one, flag, argparse.SUPPRESS)
    parser.set_defaults(config=None, folder=None)
    add_serve(commands, _chat_flags)
    return parser


def flags_of(name: str) -> dict[str, bool]:
    """The flags of a subcommand by all their spellings, and whether each takes a value."""
    return takes_values(next(one for one in subparsers_of(build_parser()) if one.prog == f"agent-tui {name}"))


def _add_edits(actions: Any) -> None:
    """Adds what is done to the context by hand to the actions of ``context``."""
    from agent_tui.commands.edits import EDITS, IDS

    for name, text in EDITS.items():
        examples = {"undo": [""], "fold": ["ID..ID --dry-run", "ID..ID"], "drop": ["ID --dry-run", "ID ID#1"]}
        action = add_command(actions, name, text, *examples.get(name, ["ID"]))
        if name != "undo":
            action.add_argument("ids", nargs="+", metavar="ID", help=IDS)
        if name in ("drop", "fold"):
            action.add_argument(
                "--dry-run", action="store_true", help="show what this would free and cost, change nothing"
            )
            action.add_argument("--yes", action="store_true", help=argparse.SUPPRESS)  # as in the chat
        if name == "drop":
            action.add_argument("--later", action="store_true", help="do it once the provider's cache is cold")
        action.add_argument("--session", metavar="ID", default=argparse.SUPPRESS, help="default: the project's newest")
        action.set_defaults(run=_edit, edit=name)


def _edit(values: argparse.Namespace) -> None:
    from agent_tui.bootstrap import make_agent
    from agent_tui.commands.edits import from_shell
    from agent_tui.errors import StoreError

    dry = getattr(values, "dry_run", False)

    async def edit() -> str:
        agent = await make_agent(Options(resume=values.session, config=values.config), looking=dry)
        agent.subscribe(_narrate)
        try:
            await agent.inspect(editing=not dry)
            ids = getattr(values, "ids", [])
            return await from_shell(agent, values.edit, ids, dry=dry, later=getattr(values, "later", False))
        except StoreError:
            raise
        except AgentError as error:
            raise ConfigError(str(error)) from error
        finally:
            await agent.close()

    terminal_output.say(asyncio.run(edit()))


def _acp(values: argparse.Namespace) -> None:
    if find_spec("acp") is None:
        raise AgentError("agent-tui acp needs the agent-client-protocol package: pip install 'agent-tui[acp]'.")
    from agent_tui.acp import serve

    trust, mode = bool(values.trust), values.permission_mode
    options = Options(model=values.model, config=values.config, trust=trust, permission_mode=mode, editor=True)
    asyncio.run(serve(options))


def _chat_flags(flags: Sequence[str]) -> Path:
    """The folder that a chat with these flags works in. Raises ConfigError for flags that no chat with a screen
    takes."""
    from agent_tui.cli import parse_options

    options = parse_options(flags)
    if options.headless:
        raise ConfigError("agent-tui serve opens the chat; it does not take -p.")
    folder = Path.cwd() / with_home(options.folder or Path())
    if not folder.is_dir():
        raise ConfigError(f"{options.written('folder')} {options.folder}: no such folder.")
    return folder


def _context(values: argparse.Namespace) -> None:
    from agent_tui.bootstrap import make_agent
    from agent_tui.commands.bookkeeping import report_text
    from agent_tui.commands.context import rows_text
    from agent_tui.commands.context_texts import course_text
    from agent_tui.commands.past_words import past_json, past_text, past_view
    from agent_tui.commands.report import ContextReport
    from agent_tui.commands.report_json import context_json

    if values.rows and (values.step is not None or values.json):
        raise ConfigError("--rows cannot be combined with --step or --json.")
    if values.step is None and values.diff is not None:
        raise ConfigError("--diff needs --step, the step to compare.")
    if values.step is not None and values.model is not None:
        raise ConfigError("-m cannot be combined with --step: a past step already had its model.")

    async def inspect() -> None:
        options = Options(model=values.model, resume=values.session, config=values.config)
        agent = await make_agent(options, looking=True)
        agent.subscribe(_narrate)
        try:
            usage = await agent.inspect()
            if values.step is not None:
                view = past_view(
                    agent.context.history(), values.step, values.diff, {m.id for m in agent.conversation.path}
                )
                if values.json:
                    terminal_output.say_json(past_json(view))
                else:
                    terminal_output.say(past_text(view))
            else:
                report = replace(ContextReport.compared(agent), usage=usage, trigger=None, in_flight=0, read_only="")
                if values.rows:
                    terminal_output.say(rows_text(agent, None))
                elif values.json:
                    terminal_output.say_json(context_json(report, {message.id for message in agent.conversation.path}))
                else:
                    terminal_output.say(report_text(report, course_text(agent)))
        finally:
            await agent.close()

    asyncio.run(inspect())


def _narrate(event: object) -> None:
    from agent_tui.models.events import Notice

    if isinstance(event, Notice):
        terminal_output.complain(one_line(event.text))


def _models(values: argparse.Namespace) -> None:
    from agent_tui.bootstrap import make_agent
    from agent_tui.commands.model import choice_line, model_line
    from agent_tui.engine.model_list import ModelChoice
    from agent_tui.models.codec import to_dict

    async def show() -> None:
        agent = await make_agent(Options(config=values.config), looking=True)

        async def row(choice: ModelChoice) -> dict[str, Any] | str:
            try:
                info = await agent.models.describe(choice.name) if values.json or choice.spec is not None else None
            except ConfigError as error:
                return {"key": choice.name, "model": choice.model, "problem": str(error)} if values.json else str(error)
            if info is None:
                return choice_line(choice, agent.models.list.key_of(choice.provider))
            if not values.json:
                return model_line(info)
            numbers = {"limits": to_dict(info.limits), "prices": to_dict(info.prices)}
            return {"key": choice.name, "model": choice.model, **numbers, "problem": info.problem}

        try:
            await agent.models.look()
            words = " ".join(values.words)
            found = agent.models.list.search(words) if words else agent.models.list.usable()
            rows = [await row(choice) for choice in found]
        finally:
            await agent.close()
        if values.json:
            terminal_output.say_json(rows)
            return
        for line in rows:
            terminal_output.say(clean_line(str(line)))
        if words and not rows:
            terminal_output.tell("No model matches.")
        elif not words:
            terminal_output.tell("Run `agent-tui models WORDS` to search all models, even those without a key.")

    asyncio.run(show())


def _doctor(values: argparse.Namespace) -> int:
    from agent_tui.bootstrap import make_agent
    from agent_tui.engine.graphics import ask_terminal

    if values.forget:
        _forget_limits()
        return EXIT_OK

    async def check() -> list[tuple[str, str, str]]:
        agent = await make_agent(Options(config=values.config), looking=True)
        try:
            agent.project.tell_pictures(
                (await asyncio.to_thread(ask_terminal, agent.settings.ui.images, os.environ)).detail
            )
            return await agent.project.doctor()
        finally:
            await agent.close()

    rows = asyncio.run(check())
    for state, what, detail in rows:
        terminal_output.say(clean_line(f"{state:<5} {what:<22} {detail}"))
    return EXIT_ERROR if any(state == "fail" for state, _, _ in rows) else EXIT_OK


def _forget_limits() -> None:
    from agent_tui.cli.stores import store_to_change
    from agent_tui.store.facts import forgotten_text

    with store_to_change() as store:
        count = store.learned.forget_all()
    terminal_output.say(forgotten_text(count))


def _config(values: argparse.Namespace) -> None:
    from agent_tui.bootstrap import config_layers, load_settings
    from agent_tui.cli.stores import store_to_read
    from agent_tui.config.schema import example_text, show_settings

    paths = user_paths()
    if values.action == "path":
        terminal_output.say(clean_line(str(paths.config_file)))
        return
    if values.action == "init":
        if paths.config_file.exists():
            raise ConfigError(f"{paths.config_file} already exists; nothing was changed.")
        paths.config_file.parent.mkdir(parents=True, exist_ok=True)
        paths.config_file.write_text(example_text(), "utf-8")
        terminal_output.say(clean_line(str(paths.config_file)))
        return
    from agent_tui.context.trust import FolderTrust

    options, root = Options(config=values.config), project_root(Path.cwd())
    with store_to_read() as store:
        project = FolderTrust(root, store.trust).config()
    settings = load_settings(options, paths, project)
    for layer in config_layers(options, paths, project):
        if layer.values:
            terminal_output.say(clean_line(f"# from {layer.where}"))
    terminal_output.say(show_settings(settings))


def _completions(values: argparse.Namespace) -> None:
    from agent_tui.cli.arguments import SUBCOMMANDS, script
    from agent_tui.cli.arguments import build_parser as chat_parser

    terminal_output.say(script(values.shell, chat_parser(), SUBCOMMANDS))
