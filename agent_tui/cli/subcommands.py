"""The subcommands: what can be asked of agent-tui without a chat."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_tui import terminal_output
from agent_tui.cli.arguments import Parser
from agent_tui.cli.serve import add_serve
from agent_tui.errors import EXIT_ERROR, EXIT_OK, AgentError, ConfigError
from agent_tui.options import Options
from agent_tui.paths import project_root, user_paths
from agent_tui.text.clean import clean_line, one_line
from agent_tui.text.numbers import age, plural


def add_check(actions: Any) -> None:
    """Adds both to the actions of ``sessions``."""
    check = actions.add_parser("check", help="read everything, say what cannot be read; exit code 1 if anything")
    check.add_argument("id", nargs="?", metavar="ID", help="only this session")
    check.add_argument("--json", action="store_true")
    check.set_defaults(run=_check)
    repair = actions.add_parser("repair", help="make a sound copy; what is damaged is kept beside it")
    repair.add_argument("id", nargs="?", metavar="ID", help="copy only this session, inside the database")
    repair.set_defaults(run=_repair)


def _check(values: argparse.Namespace) -> int:
    from agent_tui.store.repair import as_json, check, open_for_reading

    with open_for_reading(user_paths().database) as store:
        report = check(store, values.id)
        if store.problem is not None and store.damaged:
            report.file.insert(0, store.problem)
        elif store.problem is not None:
            terminal_output.complain(one_line(store.problem))
    terminal_output.say(as_json(report) if values.json else _text(report) or "No sessions yet.")
    return EXIT_OK if report.sound else EXIT_ERROR


def _repair(values: argparse.Namespace) -> None:
    (_repair_one if values.id else _repair_all)(values.id)


def _repair_one(session_id: str) -> None:
    from agent_tui.store.repair import repair_session
    from agent_tui.store.store import BUSY_TIMEOUT, Store

    with Store.open(user_paths().database, write_timeout=BUSY_TIMEOUT) as store:
        made = repair_session(store, session_id)
    if made is None:
        terminal_output.tell(f"Nothing of {session_id} is damaged; nothing was changed.")
        return
    info, content = made
    for line in content.missing:
        terminal_output.tell(f"lost: {line}")
    terminal_output.say(info.id)
    terminal_output.tell(f"Copied what can be read; the damaged session stays as {info.parent_session}.")


def _repair_all(_: None) -> None:
    from agent_tui.store.repair import repair_file

    path = user_paths().database
    made = repair_file(path)
    if made is None:
        terminal_output.tell("Nothing is damaged; nothing was changed.")
        return
    terminal_output.say(_text(made.report))
    terminal_output.tell(f"The repaired database is in place; the damaged one is kept as {made.kept}.")


def _text(report: Any) -> str:
    from agent_tui.store.repair import lines

    return "\n".join(clean_line(line) for line in lines(report))


def run(arguments: Sequence[str]) -> int:
    """Runs one subcommand and returns the exit code. Raises AgentError for what the user has to mend."""
    values, rest = build_parser().parse_known_args(arguments)
    if rest and arguments[0] != "serve":
        build_parser().parse_args(arguments)  # says which are wrong, and ends
    values.rest = rest
    code: int | None = values.run(values)
    return code or EXIT_OK


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="agent-tui", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)

    context = commands.add_parser("context", help="what the next request of a session would cost")
    context.add_argument("--session", metavar="ID", help="default: the project's newest")
    context.add_argument("-m", "--model", metavar="NAME", help="as if the session went on with this model")
    context.add_argument("--step", type=int, metavar="N", help="as it was before its Nth step was sent")
    context.add_argument("--diff", type=int, metavar="M", help="with --step: compared with step M (default: N-1)")
    context.add_argument("--rows", action="store_true", help="every row as a sentence, messages with their ids")
    context.add_argument("--json", action="store_true")
    context.add_argument("--config", type=Path, metavar="FILE")
    context.set_defaults(run=_context)
    _add_edits(context.add_subparsers())

    sessions = commands.add_parser("sessions", help="list, delete, check and repair sessions")
    sessions.add_argument("--all", action="store_true", help="of all projects")
    sessions.add_argument(
        "--search", metavar="WORDS", help="those in which all the words were said, by you or the model, and where"
    )
    sessions.add_argument("--json", action="store_true")
    sessions.set_defaults(run=_sessions)
    actions = sessions.add_subparsers()
    delete = actions.add_parser("delete", help="delete a session for good")
    delete.add_argument("id", metavar="ID")
    delete.add_argument("-y", "--yes", action="store_true", help="do not ask")
    delete.set_defaults(run=_delete)

    add_check(actions)

    export = commands.add_parser("export", help="a session as JSON, Markdown or HTML")
    export.add_argument("id", metavar="ID")
    export.add_argument("--format", choices=("json", "md", "html"), default="json")
    export.add_argument("-o", "--output", type=Path, metavar="FILE", help="default, and -: standard output")
    export.add_argument("--force", action="store_true", help="write over a file that is there already")
    export.set_defaults(run=_export)

    models = commands.add_parser("models", help="the models that can be used here")
    models.add_argument("--json", action="store_true")
    models.add_argument("--config", type=Path, metavar="FILE")
    models.set_defaults(run=_models)

    auth = commands.add_parser("auth", help="keys in the system's keyring")
    auth_actions = auth.add_subparsers(required=True)
    for name, text in (("set", "store a key; it is asked for, or read from a pipe"), ("remove", "remove a key")):
        action = auth_actions.add_parser(name, help=text)
        action.add_argument("provider", metavar="PROVIDER", help="LiteLLM's name, e.g. anthropic")
        action.set_defaults(run=_auth_set if name == "set" else _auth_remove)
    auth_actions.add_parser("list", help="providers with a stored key").set_defaults(run=_auth_list)

    doctor = commands.add_parser("doctor", help="check this installation")
    doctor.add_argument("--config", type=Path, metavar="FILE")
    doctor.add_argument("--forget", action="store_true", help="forget what servers taught of models")
    doctor.set_defaults(run=_doctor)

    config = commands.add_parser("config", help="path, show or init")
    config.add_argument("--config", type=Path, metavar="FILE", help="one more file, as for the chat")
    config.add_argument("action", choices=("path", "show", "init"))
    config.set_defaults(run=_config)

    add_serve(commands, _chat_flags)

    completions = commands.add_parser("completions", help="a completion script for a shell")
    completions.add_argument("shell", choices=("bash", "zsh", "fish"))
    completions.set_defaults(run=_completions)
    return parser


def _add_edits(actions: Any) -> None:
    """Adds what is done to the context by hand to the actions of ``context``."""
    from agent_tui.commands.edits import EDITS

    for name, text in EDITS.items():
        action = actions.add_parser(name, help=text)
        if name != "undo":
            action.add_argument("ids", nargs="+", metavar="ID", help="a message, or ID..ID; context --rows shows them")
        if name in ("drop", "fold"):
            action.add_argument("--dry-run", action="store_true", help="only say what that would free and cost")
            action.add_argument("--yes", action="store_true", help=argparse.SUPPRESS)  # as in the chat
        if name == "drop":
            action.add_argument("--later", action="store_true", help="once the provider's cache is cold")
        action.add_argument("--session", metavar="ID", default=argparse.SUPPRESS, help="default: the project's newest")
        action.add_argument("--config", type=Path, metavar="FILE", default=argparse.SUPPRESS)
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


def _chat_flags(flags: Sequence[str]) -> Path:
    """The folder that a chat with these flags works in. Raises ConfigError for flags that no chat with a screen
    takes."""
    from agent_tui.cli import parse_options

    options = parse_options(flags)
    if options.headless:
        raise ConfigError("agent-tui serve opens the chat; -p answers without a screen.")
    folder = Path.cwd() / (options.folder or Path()).expanduser()
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
        raise ConfigError("--rows goes alone: it tells the rows of now as sentences.")
    if values.step is None and values.diff is not None:
        raise ConfigError("--diff goes with --step: the step that is compared.")
    if values.step is not None and values.model is not None:
        raise ConfigError("-m says with which model the session would go on; a step has had its own.")

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


def _tell(problem: str | None) -> None:
    """Why only a copy of the sessions is shown."""
    if problem is not None:
        terminal_output.complain(one_line(problem, 400))


def _sessions(values: argparse.Namespace) -> None:
    from agent_tui.store.export_data import session_row
    from agent_tui.store.repair import open_for_reading

    project = None if values.all else str(project_root(Path.cwd()))
    if values.search is not None:
        _search(values.search, project, values.json)
        return
    with open_for_reading(user_paths().database) as store:
        found = store.sessions.all(project, empty=False)
        _tell(store.problem)
    if values.json:
        terminal_output.say_json([session_row(info) for info in found])
        return
    for info in found:
        where = f"  {clean_line(info.project)}" if values.all else ""
        title = one_line(info.title or info.preview or "(untitled)", 60)
        fork = " (fork)" if info.copied else ""
        count = plural(info.messages, "message")
        terminal_output.say(f"{info.id}  {age(info.updated):>8}  {count:>13}  {title}{fork}{where}")
    if not found:
        terminal_output.tell("No sessions here yet." if project else "No sessions yet.")


def _search(query: str, project: str | None, as_json: bool) -> None:
    from contextlib import closing

    from agent_tui.store.export_data import hit_row
    from agent_tui.store.repair import open_for_reading
    from agent_tui.text.search import search_words

    if not search_words(query):
        raise ConfigError("--search needs words to look for.")
    with open_for_reading(user_paths().database) as store:
        _tell(store.problem)
        with closing(store.search.reader()) as reader:
            found = [hit for hit in reader.hits(query, project) if hit.session.messages]
    if as_json:
        terminal_output.say_json([hit_row(hit) for hit in found])
        return
    for hit in found:
        info = hit.session
        where = f"  {clean_line(info.project)}" if project is None else ""
        title = one_line(info.title or info.preview or "(untitled)", 60)
        terminal_output.say(f"{info.id}  {age(hit.created or info.updated):>8}  {title}{where}")
        if hit.message_id is not None:
            left = ", on another branch" if hit.left_behind else ""
            terminal_output.say(f"    {'you' if hit.role == 'user' else 'model'}{left}: {clean_line(hit.line)}")
    if not found:
        terminal_output.tell(
            f"No session has these words in it{'' if project is None else ' here; --all looks in all projects'}."
        )


def _delete(values: argparse.Namespace) -> None:
    from agent_tui.store.store import BUSY_TIMEOUT, Store

    with Store.open(user_paths().database, write_timeout=BUSY_TIMEOUT) as store:
        info = store.sessions.get(values.id)
        if not values.yes:
            if not sys.stdin.isatty():
                raise ConfigError("Deleting cannot be undone. Add --yes to confirm.")
            title = one_line(info.title or "untitled", 60)
            every = plural(store.messages.tree_size(info.id)[0], "message")
            answer = terminal_output.ask(f"Delete {info.id} ({title}, {every}) for good? [y/N] ")
            if answer.strip().lower() not in ("y", "yes"):
                terminal_output.tell("Kept.")
                return
        store.delete(info.id)
    terminal_output.tell(f"Deleted {info.id}.")


def _export(values: argparse.Namespace) -> None:
    from agent_tui.store.export_text import render
    from agent_tui.store.repair import open_for_reading
    from agent_tui.store.salvage import lacks

    with open_for_reading(user_paths().database) as store:
        export = store.export(values.id)
        _tell(store.problem)
    text = render(export, values.format)
    if missing := export.get("missing"):
        terminal_output.complain(f"this session is damaged; it lacks {one_line(lacks(missing), 400)}.")
    if values.output is None or str(values.output) == "-":
        terminal_output.say(text.removesuffix("\n"))
        return
    _write_export(values.output, text, force=values.force)


def _write_export(path: Path, text: str, *, force: bool) -> None:
    """Writes to a file that is not there yet; over one only where that was asked for. What is no file (``/dev/null``, a
    pipe) holds nothing that could be lost. Raises AgentError."""
    mode = "w" if force or (path.exists() and not path.is_file()) else "x"
    try:
        with path.open(mode, encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} is there already; nothing was written. --force writes over it.") from None
    except OSError as error:
        raise AgentError(f"{path} cannot be written: {error.strerror or error}.") from error


def _models(values: argparse.Namespace) -> None:
    from agent_tui.bootstrap import make_agent
    from agent_tui.commands.model import model_line
    from agent_tui.models.codec import to_dict

    async def show() -> None:
        agent = await make_agent(Options(config=values.config), looking=True)
        try:
            infos = [await agent.models.describe(spec.key) for spec in agent.models.all()]
        finally:
            await agent.close()
        if values.json:
            rows = [
                {
                    "key": i.spec.key,
                    "model": i.spec.model,
                    "limits": to_dict(i.limits),
                    "prices": to_dict(i.prices),
                    "problem": i.problem,
                }
                for i in infos
            ]
            terminal_output.say_json(rows)
            return
        for info in infos:
            terminal_output.say(clean_line(model_line(info)))

    asyncio.run(show())


def _auth_set(values: argparse.Namespace) -> None:
    from agent_tui.providers.catalog import set_key

    key = terminal_output.ask_secret(f"Key for {values.provider}: ") if sys.stdin.isatty() else sys.stdin.readline()
    set_key(values.provider, key)
    terminal_output.tell(f"Stored a key for {values.provider}.")


def _auth_remove(values: argparse.Namespace) -> None:
    from agent_tui.providers.catalog import remove_key

    remove_key(values.provider)
    terminal_output.tell(f"Removed the key for {values.provider}.")


def _auth_list(values: argparse.Namespace) -> None:
    from agent_tui.providers.catalog import list_providers

    for name in list_providers():
        terminal_output.say(clean_line(name))


def _doctor(values: argparse.Namespace) -> int:
    from agent_tui.bootstrap import make_agent
    from agent_tui.engine.terminal import ask_terminal

    if values.forget:
        _forget_limits()
        return EXIT_OK
    from agent_tui.ui.textual_private.names import missing, problem

    async def check() -> list[tuple[str, str, str]]:
        agent = await make_agent(Options(config=values.config), looking=True)
        try:
            agent.project.tell_pictures(
                (await asyncio.to_thread(ask_terminal, agent.settings.ui.images, os.environ)).detail
            )
            agent.project.tell_drawing(problem(missing()))
            return await agent.project.doctor()
        finally:
            await agent.close()

    rows = asyncio.run(check())
    for state, what, detail in rows:
        terminal_output.say(clean_line(f"{state:<5} {what:<22} {detail}"))
    return EXIT_ERROR if any(state == "fail" for state, _, _ in rows) else EXIT_OK


def _forget_limits() -> None:
    from agent_tui.store.facts import forgotten_text
    from agent_tui.store.store import BUSY_TIMEOUT, Store

    with Store.open(user_paths().database, write_timeout=BUSY_TIMEOUT) as store:
        count = store.learned.forget_all()
    terminal_output.say(forgotten_text(count))


def _config(values: argparse.Namespace) -> None:
    from agent_tui.bootstrap import config_layers, load_settings
    from agent_tui.config.schema import example_text, show_settings
    from agent_tui.store.repair import open_for_reading

    paths = user_paths()
    if values.action == "path":
        terminal_output.say(clean_line(str(paths.config_file)))
        return
    if values.action == "init":
        if paths.config_file.exists():
            raise ConfigError(f"{paths.config_file} exists already; nothing was changed.")
        paths.config_file.parent.mkdir(parents=True, exist_ok=True)
        paths.config_file.write_text(example_text(), "utf-8")
        terminal_output.say(clean_line(str(paths.config_file)))
        return
    from agent_tui.context.trust import FolderTrust

    options, root = Options(config=values.config), project_root(Path.cwd())
    with open_for_reading(paths.database) as store:
        trusted = FolderTrust(root, store.trust).trusted
    settings = load_settings(options, paths, root, trusted)
    for layer in config_layers(options, paths, root, trusted):
        if layer.values:
            terminal_output.say(clean_line(f"# from {layer.where}"))
    terminal_output.say(show_settings(settings))


def _completions(values: argparse.Namespace) -> None:
    from agent_tui.cli.arguments import SUBCOMMANDS, script
    from agent_tui.cli.arguments import build_parser as chat_parser

    terminal_output.say(script(values.shell, chat_parser(), SUBCOMMANDS))
