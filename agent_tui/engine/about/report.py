"""What the Agent can say about its project and installation: permission rules, tools, health."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from agent_tui.config import Settings
from agent_tui.engine.about.newline import new_line_keys
from agent_tui.engine.about.pictures import graphics
from agent_tui.engine.parts import AgentParts
from agent_tui.errors import StoreError
from agent_tui.models.requests import ModelInfo
from agent_tui.providers.catalog import shown_address
from agent_tui.store.repair import file_problems
from agent_tui.store.search_index import index_file
from agent_tui.store.store import Store
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, size

Row = tuple[str, str, str]


OTHERS = "of another repository at this path: not used"


def permission_rules(settings: Settings, store: Store, root: Path, identity: str) -> list[Row]:
    """(decision, rule, source) of every permission rule, those of the configuration first, and last those that were
    allowed in another repository at this path, which are not in force."""
    rules = settings.permissions
    configured = [("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow)]
    rows: list[Row] = [(decision, rule, "config") for decision, texts in configured for rule in texts]
    rows += [("allow", rule, "project") for rule in store.rules.allowed(root, identity)]
    return rows + [("asked", rule, OTHERS) for rule in store.rules.of_others(root, identity)]


def doctor(parts: AgentParts, info: ModelInfo, trusted: bool, pictures: str = "") -> list[Row]:
    """Checks of this installation: (ok, warn or fail; what; detail). ``pictures`` is how the terminal shows them, where
    it was asked already."""
    rows: list[Row] = [
        ("ok", "agent-tui", importlib.metadata.version("agent-tui") if _installed("agent-tui") else "from a checkout"),
        ("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
    ]
    for package in ("textual", "rich", "litellm", "tiktoken", "mcp", "pydantic", "platformdirs"):
        rows.append(("ok" if _installed(package) else "fail", package, _version(package)))
    rows.append(("ok", "configuration", str(parts.paths.config_file)))
    rows.append(_database(parts))
    rows.append(_search_index(parts.store))
    rows.append(_log(parts.paths.log_file))
    rows.append(_model(info))
    said = "trusted" if trusted else "not trusted"
    rows.append(("ok" if trusted else "warn", "folder", f"{parts.root} ({said})"))
    for program, use in (("git", "branch and status work"), ("rg", "grep works")):
        found = shutil.which(program)
        rows.append(("ok", program, found) if found else ("warn", program, f"not found; {use} without it, slower"))
    rows.append(_sandbox(parts))
    rows.append(_terminal())
    rows += [("ok", what, detail) for what, detail in new_line_keys(os.environ)]
    rows.append(("ok", "pictures", pictures or graphics(parts.settings.ui.images, os.environ).detail))
    if _installed("keyring"):
        rows.append(("ok", "keyring", "installed"))
    else:
        rows.append(("warn", "keyring", "not installed; keys come from the environment"))
    return rows


def learned_rows(store: Store) -> list[Row]:
    """What servers said of models' limits by refusing a request."""
    rows: list[Row] = []
    for known in store.learned.limits():
        said = (("window", known.window), ("input at most", known.max_input), ("output at most", known.max_output))
        facts = ", ".join(f"{name} {value:,}" for name, value in said if value is not None)
        where = f" at {shown_address(known.server)}" if known.server else ""
        day = time.strftime("%Y-%m-%d", time.localtime(known.learned_at))
        rows.append(("ok", "learned limit", f"{known.model}{where}: {facts} (refused on {day}; --forget forgets it)"))
    return rows


def _sandbox(parts: AgentParts) -> Row:
    from agent_tui.tools.sandbox.words import ports_line, status_line, unheld

    if parts.jail is None:
        return ("warn", "sandbox", "none")
    sandbox = parts.jail.tried()
    meaning = unheld(parts.permissions.mode, sandbox)
    config = parts.jail.config
    said = (status_line(sandbox), ports_line(sandbox, config.network, config.loopback), meaning)
    line = "; ".join(part for part in said if part)
    return ("ok" if sandbox.holds("look") and sandbox.holds("work") else "warn", "sandbox", line)


def _database(parts: AgentParts) -> Row:
    file = parts.store.file
    if not parts.store.writable:
        return ("fail", "sessions", f"nothing can be stored: {parts.store.problem}")
    with closing(sqlite3.connect(file)) as connection:
        problems = file_problems(connection)
    if problems:
        return ("fail", "sessions", f"{file} is damaged ({problems[0][:120]}): run agent-tui sessions repair")
    mode = file.stat().st_mode & 0o777
    detail = f"{file} ({size(file.stat().st_size)}, mode {mode:04o}, SQLite {sqlite3.sqlite_version})"
    return ("ok" if mode == 0o600 or os.name == "nt" else "warn", "sessions", detail)


def _search_index(store: Store) -> Row:
    try:
        health = store.search.health()
    except StoreError as error:
        return ("warn", "search index", f"cannot be looked at: {error}")
    file, slow = index_file(store.file), "searches read every text instead, and are slower"
    if not health.possible:
        return ("warn", "search index", f"the SQLite of this Python has no full-text search (FTS5): {slow}")
    if health.problem:
        why = one_line(health.problem, 300)
        return ("warn", "search index", f"{why}: {slow}. The next chat makes it anew; where that fails, remove {file}")
    every = plural(health.total, "session")
    if not health.size:
        return ("ok", "search index", f"none yet of {every}: a chat makes it in the background")
    line = f"{health.sessions:,} of {every} ({size(health.size)})"
    if health.sessions < health.total:
        line += "; a chat adds the rest in the background, and until then searches read it"
    return ("ok", "search index", line)


def _log(file: Path) -> Row:
    if os.access(file, os.W_OK):
        return ("ok", "log", str(file))
    return ("warn", "log", f"{file} cannot be written: nothing is logged")


def _model(info: ModelInfo) -> Row:
    limits = info.limits
    window = f"{limits.window:,} tokens ({limits.origin})" if limits.window else "unknown window"
    if info.problem:
        return ("fail", "model", f"{info.spec.key}: {info.problem}")
    return ("ok" if limits.window else "warn", "model", f"{info.spec.key}: {window}")


def _terminal() -> Row:
    term = os.environ.get("TERM", "")
    colours = os.environ.get("COLORTERM", "") or ("256 colours" if "256" in term else "16 colours")
    state = "ok" if sys.stdout.isatty() else "warn"
    return (state, "terminal", f"{term or 'unknown'}, {colours}" + (", NO_COLOR" if os.environ.get("NO_COLOR") else ""))


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _version(package: str) -> str:
    return importlib.metadata.version(package) if _installed(package) else "missing; reinstall agent-tui"
