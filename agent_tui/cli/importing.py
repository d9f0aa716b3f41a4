"""``agent-tui import``: copies what was written for other agents to where ours is, for good."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui import terminal_output
from agent_tui.cli.arguments import add_command
from agent_tui.errors import AgentError, ConfigError
from agent_tui.paths import Paths, project_root, shown_path, user_paths
from agent_tui.records import dataclass
from agent_tui.text.clean import clean_line
from agent_tui.text.numbers import plural, size

if TYPE_CHECKING:
    from agent_tui.tools.files.access import FileAccess, Reach
    from agent_tui.tools.rules.foreign import ForeignRules


LARGEST = 5_000_000
"""Bytes of a file that is copied."""


@dataclass(slots=True, frozen=True)
class FileCopy:
    """A file, or the folder of a skill, to copy: the project's, or the user's own."""

    source: Path
    target: Path
    reach: Reach = "own"


def add_import(commands: Any) -> None:
    """Adds the subcommand."""
    parser = add_command(
        commands,
        "import",
        "copy commands, skills, agents and rules of Claude Code and Codex to agent-tui",
        "",
        "--dry-run",
    )
    parser.add_argument("--dry-run", action="store_true", help="only list what would be copied")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=_import)


def _import(values: argparse.Namespace) -> None:
    from agent_tui.tools.files.access import FileAccess
    from agent_tui.tools.rules.foreign import foreign_rules

    paths, root = user_paths(), project_root(Path.cwd())
    files = FileAccess([root])
    found = list(_copies(paths, root, Path.home()))
    rules = foreign_rules(root)
    new = [copy for copy in found if not copy.target.exists()]
    for copy in found:
        state = "" if copy in new else "  (is there already, kept)"
        terminal_output.say(clean_line(f"{shown_path(copy.source, root)} -> {shown_path(copy.target, root)}{state}"))
    for place, which in dict.fromkeys((place, which) for which, _, place in rules.rules):
        listed = ", ".join(rule for one, rule, where in rules.rules if (where, one) == (place, which))
        terminal_output.say(clean_line(f"{place} -> rules that {which} in this project: {listed}"))
    for line in rules.unused:
        terminal_output.tell(clean_line(f"not used: {line}"))
    if not (new or rules.rules):
        terminal_output.tell("Nothing to import.")
        return
    if values.dry_run:
        return
    if not values.yes:
        if not sys.stdin.isatty():
            raise ConfigError("Add --yes to import this.")
        if terminal_output.ask("Import this? [y/N] ").strip().lower() not in ("y", "yes"):
            terminal_output.tell("Nothing was changed.")
            return
    copied = sum(_copied(copy, files) for copy in new)
    _keep(paths, root, rules)
    terminal_output.tell(f"Imported {plural(copied, 'file')} and {plural(len(rules.rules), 'rule')}.")


def _copies(paths: Paths, root: Path, home: Path) -> Iterator[FileCopy]:
    """What there is to copy: the project's, then the user's own."""
    from agent_tui.context.agents import AGENTS_FOLDERS
    from agent_tui.context.prompt import NAMES, NAMES_AT_HOME
    from agent_tui.context.skills import COMMANDS_FOLDERS, FILE, SKILLS_FOLDERS, markdown_files

    for own, *others in (COMMANDS_FOLDERS, AGENTS_FOLDERS):
        for base, target, reach in _both(root, home, own, paths.config / own.name):
            for folder in (base / other for other in others):
                for file in markdown_files(folder):
                    yield FileCopy(file, target / file.relative_to(folder), reach)
    own, *others = SKILLS_FOLDERS
    for base, target, reach in _both(root, home, own, paths.config / "skills"):
        for folder in (base / other for other in others):
            for file in sorted(folder.glob(f"*/{FILE}")):
                yield FileCopy(file.parent, target / file.parent.name, reach)
    if not any((paths.config / name).exists() for name in NAMES):
        yield from (FileCopy(home / n, paths.config / NAMES[0]) for n in NAMES_AT_HOME[:1] if (home / n).is_file())


def _both(root: Path, home: Path, own: Path, users: Path) -> tuple[tuple[Path, Path, Reach], ...]:
    """Where others keep something, where it is to go, and how far its links may lead: of the project, and the user."""
    return ((root, root / own, "project"), (home, users, "own"))


def _copied(copy: FileCopy, files: FileAccess) -> bool:
    """Raises AgentError for what cannot be written."""
    from agent_tui.tools.files.access import BadFile

    whole = [copy.source]
    if copy.source.is_dir():
        whole = sorted(Path(folder, name) for folder, _, names in os.walk(copy.source) for name in names)
    try:
        found = [files.read(path, LARGEST, copy.reach) for path in whole]
        if any(len(one.data) > LARGEST for one in found):
            raise BadFile(f"is larger than {size(LARGEST)}")
    except BadFile as error:
        terminal_output.tell(clean_line(f"not copied: {copy.source} {error}"))
        return False
    for path, one in zip(whole, found, strict=True):
        target = copy.target / path.relative_to(copy.source)
        try:
            files.write(target, one.data, make=True, mode=stat.S_IMODE(one.info.st_mode))
        except FileExistsError:
            raise AgentError(f"{target} has just come into being. Import again to see what is left.") from None
    return True


def _keep(paths: Paths, root: Path, rules: ForeignRules) -> None:
    """Stores the rules as those that the user gave for the project."""
    from agent_tui.cli.stores import store_to_change
    from agent_tui.context.folder import identity_of

    if not rules.rules:
        return
    with store_to_change() as store:
        identity = identity_of(root)
        known = set(store.rules.of(root, identity))
        for which, rule, _ in rules.rules:
            if (which, rule) not in known:
                store.rules.add(root, identity, rule, which)
