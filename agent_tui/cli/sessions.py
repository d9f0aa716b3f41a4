"""Stored sessions from the shell: listed, searched, checked, repaired, deleted, exported."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from agent_tui import terminal_output
from agent_tui.cli.arguments import add_command
from agent_tui.errors import EXIT_ERROR, EXIT_OK, AgentError, ConfigError
from agent_tui.paths import private_dir, project_root, user_paths, write_new
from agent_tui.text.clean import clean_line, one_line
from agent_tui.text.numbers import age, plural


def add_sessions(commands: Any) -> None:
    """Adds ``sessions`` and ``export`` to the subcommands."""
    sessions = add_command(
        commands,
        "sessions",
        "list, search, delete, check and repair sessions",
        "",
        '--all --search "release notes"',
        "delete ID",
    )
    _add_listing(sessions)
    actions = sessions.add_subparsers()
    _add_listing(add_command(actions, "list", "list sessions (the default)", "", "--all"))
    delete = add_command(actions, "delete", "delete a session permanently", "ID", "ID --yes")
    delete.add_argument("id", metavar="ID", help="the session's id")
    delete.add_argument("-y", "--yes", action="store_true", help="don't ask")
    delete.set_defaults(run=_delete)

    _add_check(actions)

    export = add_command(
        commands,
        "export",
        "export a session as JSON, Markdown or HTML",
        "ID > session.json",
        "ID --format html -o session.html",
    )
    export.add_argument("id", metavar="ID", help="the session's id")
    export.add_argument("--format", choices=("json", "md", "html"), default="json", help="default: json")
    export.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to FILE; default, and -: standard output (a page goes to a file instead of a terminal)",
    )
    export.add_argument("--force", action="store_true", help="overwrite an existing file")
    export.set_defaults(run=_export)


def _add_listing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="include all projects")
    parser.add_argument("--search", metavar="WORDS", help="find sessions in which you or the model said these words")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_sessions)


def _add_check(actions: Any) -> None:
    """Adds both to the actions of ``sessions``."""
    check = add_command(actions, "check", "list what is damaged in the database (exit code 1 if anything)", "", "ID")
    check.add_argument("id", nargs="?", metavar="ID", help="only this session")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=_check)
    repair = add_command(actions, "repair", "repair the database; the damaged one is kept beside it", "")
    repair.add_argument("id", nargs="?", help=argparse.SUPPRESS)  # one session could be repaired alone once
    repair.set_defaults(run=_repair)


def _check(values: argparse.Namespace) -> int:
    from agent_tui.cli.stores import store_to_read
    from agent_tui.store.repair import check

    with store_to_read() as store:
        report = check(store, values.id)
        if store.problem is not None and store.damaged:
            report.file.insert(0, store.problem)
    lines = [clean_line(line) for line in report.lines()]
    terminal_output.say(report.as_json() if values.json else "\n".join(lines) or "No sessions yet.")
    return EXIT_OK if report.sound else EXIT_ERROR


def _repair(values: argparse.Namespace) -> None:
    from agent_tui.store.repair import repair_file

    if values.id:
        raise ConfigError("`agent-tui sessions repair` takes no ID: it repairs the whole database.")
    made = repair_file(user_paths().database)
    terminal_output.tell(clean_line(made.line()) if made is not None else "No damage found; nothing was changed.")


def _sessions(values: argparse.Namespace) -> None:
    from agent_tui.cli.stores import store_to_read
    from agent_tui.store.export_data import session_row

    project = None if values.all else str(project_root(Path.cwd()))
    if values.search is not None:
        _search(values.search, project, values.json)
        return
    with store_to_read() as store:
        found = store.sessions.all(project, empty=False)
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
        terminal_output.tell(
            "No sessions in this project yet. Run `agent-tui sessions --all` to list those of all projects."
            if project
            else "No sessions yet."
        )


def _search(query: str, project: str | None, as_json: bool) -> None:
    from contextlib import closing

    from agent_tui.cli.stores import store_to_read
    from agent_tui.store.export_data import hit_row
    from agent_tui.text.search import search_words

    if not search_words(query):
        raise ConfigError("--search needs at least one word.")
    with store_to_read() as store, closing(store.search()) as reader:
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
            f"No session{'' if project is None else ' of this project'} has these words."
            f"{'' if project is None else ' Add --all to search all projects.'}"
        )


def _delete(values: argparse.Namespace) -> None:
    from agent_tui.cli.stores import store_to_change

    with store_to_change() as store:
        info = store.sessions.get(values.id)
        if not values.yes:
            if not sys.stdin.isatty():
                raise ConfigError("Deleting cannot be undone. Add --yes to confirm.")
            title = one_line(info.title or "untitled", 60)
            every = plural(store.messages.tree_size(info.id)[0], "message")
            answer = terminal_output.ask(f"Delete {info.id} ({title}, {every}) permanently? [y/N] ")
            if answer.strip().lower() not in ("y", "yes"):
                terminal_output.tell("Not deleted.")
                return
        store.delete(info.id)
    shutil.rmtree(user_paths().cache / "output" / info.id, ignore_errors=True)
    terminal_output.tell(f"Deleted {info.id}.")


def _export(values: argparse.Namespace) -> None:
    from agent_tui.cli.stores import store_to_read
    from agent_tui.commands.export import render

    with store_to_read() as store:
        info, content = store.whole(values.id)
    text = render(info, content, values.format)
    if values.output is None and values.format == "html" and sys.stdout.isatty():
        try:
            written = write_new(private_dir(user_paths().exports), info.id, ".html", text)
        except OSError as error:
            raise AgentError(f"Cannot write the page: {error.strerror or error}. Use -o FILE.") from error
        terminal_output.say(f"Exported to {written}.")
        return
    if values.output is None or str(values.output) == "-":
        terminal_output.say(text.removesuffix("\n"))
        return
    _write_export(values.output, text, force=values.force)


def _write_export(path: Path, text: str, *, force: bool) -> None:
    """Writes to a file that is not there yet; over one only where that was asked for. What is no file (``/dev/null``, a
    pipe of the user's) holds nothing that could be lost. Raises AgentError."""
    from agent_tui.tools.files.access import BadFile, FileAccess
    from agent_tui.tools.files.beneath import is_within

    files, data = FileAccess([project_root(Path.cwd())]), text.encode("utf-8", "replace")
    try:
        if path.exists() and not path.is_file() and not is_within(files.locate(path), files.folders):
            path.write_bytes(data)
        else:
            files.write(path, data, over=force)
    except FileExistsError:
        raise ConfigError(f"{path} already exists; nothing was written. Add --force to overwrite it.") from None
    except (OSError, BadFile) as error:
        raise AgentError(f"Cannot write {path}: {getattr(error, 'strerror', None) or error}.") from error
