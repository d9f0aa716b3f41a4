"""``sessions check`` and ``sessions repair``."""

from __future__ import annotations

import argparse
from typing import Any

from agent_tui import door
from agent_tui.errors import EXIT_ERROR, EXIT_OK
from agent_tui.paths import user_paths
from agent_tui.text.clean import clean_line, one_line


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
            door.complain(one_line(store.problem))
    door.say(as_json(report) if values.json else _text(report) or "No sessions yet.")
    return EXIT_OK if report.sound else EXIT_ERROR


def _repair(values: argparse.Namespace) -> int:
    return _repair_one(values.id) if values.id else _repair_all()


def _repair_one(session_id: str) -> int:
    from agent_tui.store.repair import repair_session
    from agent_tui.store.store import BUSY_TIMEOUT, Store

    with Store.open(user_paths().database, write_timeout=BUSY_TIMEOUT) as store:
        made = repair_session(store, session_id)
    if made is None:
        door.tell(f"Nothing of {session_id} is damaged; nothing was changed.")
        return EXIT_OK
    info, content = made
    for line in content.missing:
        door.tell(f"lost: {line}")
    door.say(info.id)
    door.tell(f"Copied what can be read; the damaged session stays as {info.parent_session}.")
    return EXIT_OK


def _repair_all() -> int:
    from agent_tui.store.repair import repair_file

    path = user_paths().database
    made = repair_file(path)
    if made is None:
        door.tell("Nothing is damaged; nothing was changed.")
        return EXIT_OK
    door.say(_text(made.report))
    door.tell(f"The repaired database is in place; the damaged one is kept as {made.kept}.")
    return EXIT_OK


def _text(report: Any) -> str:
    from agent_tui.store.repair import lines

    return "\n".join(clean_line(line) for line in lines(report))
