"""Databases as earlier versions left them, kept as what sqlite3 dumps."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

_DATA = Path(__file__).resolve().parents[1] / "store" / "data"

PROJECT = "/home/user/project"
"""The project of most sessions in them."""


def restore(path: Path, version: int = 8) -> Path:
    """Makes the database of a schema version at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript((_DATA / f"schema_{version}.sql").read_text("utf-8"))
    connection.close()
    return path


def as_it_read(version: int = 8) -> dict[str, Any]:
    """What the program of that version read from it: the rows of ``sessions --json``, the project's newest session,
    the ``session`` of each export (subagents too), what waits, the ids of each conversation."""
    found: dict[str, Any] = json.loads((_DATA / f"schema_{version}.json").read_text("utf-8"))
    return found


def as_listed_now(then: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of ``sessions --json`` as they are now: their messages were those of all branches then, and are those
    of the conversation that is opened."""
    return [{**row, "messages": len(then["paths"][row["id"]])} for row in then["listed"]]


def rows(path: Path, *without: str) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in a database file but the tables named, by table."""
    connection = sqlite3.connect(path)
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names if name not in without}
    connection.close()
    return found
