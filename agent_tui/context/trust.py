"""Trust in folders: what its user saw and said yes to holds, thing by thing; what is new or changed waits for them."""

from __future__ import annotations

import difflib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent_tui.config.files import Layer, layer_of_text
from agent_tui.context.brought import KINDS, MCP_FILE, PLACES, Brought, OwnCommand, TrustItem, layer_of, read_brought
from agent_tui.context.folder import Stamps, stamps
from agent_tui.errors import ConfigError
from agent_tui.paths import PROJECT_CONFIG
from agent_tui.records import dataclass
from agent_tui.store.facts import Trust
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import plural, size
from agent_tui.tools.files.fingerprints import changed_files

if TYPE_CHECKING:
    from agent_tui.tools.hooks import Hook
    from agent_tui.tools.mcp.config import ProjectServers
    from agent_tui.tools.rules.foreign import ForeignRules
    from agent_tui.tools.rules.standing import Which

KEPT_TEXT = 20_000
KEPT_TEXTS = 500_000
"""Characters of one text, and of all, that are kept to show later what changed."""

MOST_LINES = 4_000
"""Lines that are shown; of files beyond them the size is."""

State = Literal["trusted", "never", "changed", "elsewhere", "unknown"]
"""``never``: nobody was asked. ``elsewhere``: another repository was trusted at this path. ``unknown``: it cannot be
told what the folder brings. ``changed``: something of it waits."""

MANY = 4
"""Things that are named in one line."""
_HOLDS_BACK = frozenset({"hook", "rule", "setting"})
"""Kinds of which one that is gone is asked about: it may have held something back."""


@dataclass(slots=True, frozen=True)
class AcceptedItem:
    """One item as it was accepted. ``texts`` are those of its files, and its own under an empty path, as far as they
    are kept; ``files`` the digests by path."""

    key: tuple[str, str, str]
    digest: str
    files: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def was_refused(self) -> bool:
        """Whether it is a setting of the project's configuration that is none, or not the project's to say: earlier
        versions kept those, too."""
        kind, source, name = self.key
        if kind != "setting" or source != PROJECT_CONFIG.as_posix() or name == source:
            return False
        from agent_tui.config.schema import refusal

        with suppress(ValueError):
            return bool(refusal(name.split("."), json.loads(self.texts.get("", "null"))))
        return False

    def __str__(self) -> str:
        return str(TrustItem("file", self.key[1], self.key[2])).replace("file", self.key[0], 1)


def dumps(brought: Brought) -> str:
    """Returns what can be trusted of it as JSON, for ``loads``."""
    room, rows = KEPT_TEXTS, []
    for item in brought.items:
        if item.problem:
            continue
        texts: dict[str, str] = {}
        for path, text in (("", item.text), *((path, file.text) for path, file in item.files.items())):
            if text and len(text) <= min(KEPT_TEXT, room):
                room -= len(text)
                texts[path] = text
        rows.append([item.key, item.digest, {path: file.digest for path, file in item.files.items()}, texts])
    return json.dumps({"items": rows}, separators=(",", ":"))


def loads(data: str) -> list[AcceptedItem] | None:
    """None for what ``dumps`` did not write."""
    try:
        rows = json.loads(data)["items"]
        return [
            AcceptedItem((str(kind), str(source), str(name)), str(digest), dict(files), dict(texts))
            for (kind, source, name), digest, files, texts in rows
        ]
    except (ValueError, KeyError, TypeError):
        return None


@dataclass(slots=True, frozen=True)
class TrustDetail:
    """One thing as the user is asked about it, with others of its ``kind``. ``unshown`` counts its files that have no
    text to show. Not ``asked``: it is only told."""

    kind: str
    title: str
    lines: tuple[str, ...] = ()
    unshown: int = 0
    asked: bool = True


class FolderTrust:
    """The trust of one folder. Reads its files when made; ``look`` and ``accept`` look again. ``identity`` tells the
    repository that was there then from others at the same path."""

    def __init__(self, root: Path, stored: Trust, cwd: Path | None = None) -> None:
        self.root = root
        self.has_servers = True
        """Whether the servers of the project's ``.mcp.json`` count in this run."""
        self._stored, self._cwd = stored, cwd or root
        self._commands: Sequence[OwnCommand] = ()
        self._record: list[AcceptedItem] | None = None
        self._identity = ""
        row = stored.get(root)
        if row is not None:
            self._record, self._identity = loads(row.content), row.identity
        self._take(self._read())
        self.identity, self._seen = self.brought.identity, self.brought

    @property
    def commands(self) -> Sequence[OwnCommand]:
        """The user's own commands that run by themselves: the files they name in the folder are asked about, too."""
        return self._commands

    @commands.setter
    def commands(self, commands: Sequence[OwnCommand]) -> None:
        self._commands = commands
        self._take(self._read())
        self._seen = self.brought

    def _now(self) -> Stamps:
        return stamps(self.root, PLACES, [name for item in self.brought.items for name in item.files])

    def _read(self) -> Brought:
        self._began = time.time_ns()
        return read_brought(self.root, self._cwd, self._commands)

    def _take(self, brought: Brought) -> None:
        self.brought = brought
        found = self._now()
        # What was written while it was read, as coarse as a file's time is, may be another now: it is read again.
        self._stamps = found if all(when < self._began - 50_000_000 for _, when, _, _ in found) else ()
        self.state, left = self._folder_state(), Counter[tuple[tuple[str, str, str], str]]()
        if self.trusted:
            left.update((known.key, known.digest) for known in self._record or ())
        accepted, waiting = list[TrustItem](), list[TrustItem]()
        for item in brought.items:
            if item.problem:
                continue
            known = (item.key, item.digest)
            (accepted if left[known] > 0 else waiting).append(item)
            left[known] -= 1
        self.accepted, self.waiting = tuple(accepted), tuple(waiting)
        self.refused = tuple(item for item in brought.items if item.problem)
        there = {item.key for item in brought.items}
        record = (self._record or ()) if self.trusted else ()
        self.gone = tuple(
            one for one in record if one.key not in there and one.key[0] in _HOLDS_BACK and not one.was_refused
        )
        if self.state == "trusted" and (self.waiting or self.gone):
            self.state = "changed"

    def _folder_state(self) -> State:
        if self.brought.problem:
            return "unknown"
        if self._record is None:
            return "never"
        return "trusted" if self._identity == self.brought.identity else "elsewhere"

    @property
    def trusted(self) -> bool:
        """Whether this repository was trusted: what was accepted of it holds."""
        return self.state in ("trusted", "changed")

    @property
    def was_accepted(self) -> bool:
        """Whether something of this repository was accepted, also where what is there now cannot be told."""
        return self.trusted or (self.state == "unknown" and self._record is not None)

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits for the user."""
        return self.state == "trusted"

    def look(self) -> bool:
        """Looks at the folder again, cheaply while no file was touched. True where something else is accepted now."""
        if self._stamps and self._now() == self._stamps:
            return False
        before = [(item.key, item.digest) for item in self.accepted]
        self._take(self._read())
        return before != [(item.key, item.digest) for item in self.accepted]

    def accept(self) -> bool:
        """Trusts what the folder brings along, if it is what was read first, or what ``question`` showed last.
        Otherwise nothing is trusted: False, and what is there now is what is to be shown."""
        now = self._read()
        same = not now.problem and (now.identity, now.content) == (self._seen.identity, self._seen.content)
        if same:
            self._stored.put(self.root, now.identity, dumps(now))
            self._record, self._identity = loads(dumps(now)), now.identity
        self._seen = now
        self._take(now)
        return same

    # What is accepted

    def config(self) -> Layer | None:
        """What was accepted of the project's configuration file; None where that is nothing."""
        source = PROJECT_CONFIG.as_posix()
        items = [item for item in self.accepted if item.source == source]
        rules = [(which, rule) for place, which, rule in self.missing_rules() if place == source]
        if items and self.brought.config is None:
            return layer_of_text(self.root / PROJECT_CONFIG, items[0].text)  # it is no TOML: this says what is wrong
        layer = self.brought.config or Layer(str(self.root / PROJECT_CONFIG), {}, {})
        return layer_of(layer, items, rules) if items or rules else None

    def missing_rules(self) -> list[tuple[str, Which, str]]:
        """(file, which, rule) of those that deny or ask, were accepted and are gone: they hold until the user knows."""
        found: list[tuple[str, Which, str]] = []
        for kind, source, name in (one.key for one in self.gone):
            which, _, rule = name.partition(" ")
            if kind == "rule" and which in ("deny", "ask"):
                found.append((source, "deny" if which == "deny" else "ask", rule))
        return found

    def foreign_rules(self) -> ForeignRules:
        """The rules in other agents' settings: those that were accepted here, and the user's own."""
        from agent_tui.tools.rules.foreign import ForeignRules, foreign_rules

        accepted = {(item.source, *item.value) for item in self._accepted("rule") if not item.keys}
        here = ForeignRules()
        if self.trusted:
            here = foreign_rules(self.root, lambda *rule: rule in accepted, self.missing_rules())
        return here.joined(foreign_rules(Path.home()))

    def hooks(self) -> list[Hook]:
        """The hooks that were accepted; none of a configuration that is wrong, which is said where it is read."""
        items = list(self._accepted("hook"))
        found = [item.value for item in items if not item.keys]
        try:
            layer = self.config()
            if layer is not None and "hooks" in layer.values:
                from agent_tui.config.schema import check
                from agent_tui.tools.hooks import configured_hooks

                check([layer])
                found = [*configured_hooks(layer, PROJECT_CONFIG.as_posix(), own=False), *found]
        except ConfigError:
            items = [item for item in items if not item.keys]
        return [*found, *self._missing_guards(items)]

    def _missing_guards(self, items: Sequence[TrustItem]) -> list[Hook]:
        """What stands for hooks that were accepted and are not among ``items``, which run: until the user has seen
        that, they hold back what they held back."""
        there = Counter((item.key, item.digest) for item in items)
        record = (self._record or ()) if self.was_accepted else ()
        from agent_tui.tools.hooks import missing_guard

        guards: list[Hook] = []
        for one in record:
            if one.key[0] != "hook":
                continue
            if there[one.key, one.digest] > 0:
                there[one.key, one.digest] -= 1
            elif (guard := missing_guard(one.key[2], one.key[1], one.texts.get("", str(one)))) is not None:
                guards.append(guard)
        return guards

    def configured_servers(self) -> set[str]:
        """The MCP servers of the configuration file that were accepted."""
        return {item.name for item in self._accepted("MCP server") if item.keys}

    def servers(self) -> ProjectServers:
        """The MCP servers of ``.mcp.json``, and which of them wait."""
        from agent_tui.tools.mcp.config import ProjectServers

        if not self.has_servers:
            return ProjectServers()
        here = [item for item in self.brought.items if item.source == MCP_FILE.as_posix()]
        why = "; ".join(item.problem for item in here if item.kind == "file")
        servers = [item for item in here if item.kind == "MCP server"]
        accepted = {item.name for item in self._accepted("MCP server") if item.source == MCP_FILE.as_posix()}
        return ProjectServers(
            {item.name: item.value for item in servers},
            {item.name: item.problem or "" for item in servers if item.name not in accepted},
            why,
        )

    def files(self) -> frozenset[Path]:
        """The files of skills, commands and types of subagents that were accepted, as they are now."""
        self.look()
        return frozenset(item.value for kind in ("skill", "command", "subagent type") for item in self._accepted(kind))

    def changed_since_accepted(self, files: Mapping[str, str]) -> list[str]:
        """The paths among the ``fingerprint`` of a command's files that are not as the user accepted them; all of them
        where the folder was never trusted."""
        record = (self._record or ()) if self.trusted else ()
        accepted = {path: digest for one in record for path, digest in one.files.items()}
        return changed_files(accepted, files)

    def _accepted(self, kind: str) -> Iterator[TrustItem]:
        return (item for item in self.accepted if item.kind == kind)

    @property
    def lets_git_out(self) -> bool:
        """Whether git may run outside the sandbox: every program that it would run by itself was accepted."""
        return self.trusted and not any(item.kind == "git hook" for item in (*self.waiting, *self.refused))

    # What is said

    def line(self) -> str:
        """One line for the user; empty where nothing is left out."""
        left_out = [item for item in self.waiting if item.kind != "git hook"]
        what = f"so {counted(left_out)} {'is' if len(left_out) == 1 else 'are'} ignored" if left_out else ""
        review = "run /trust to review it (--trust trusts it as is)."
        refused = _refusals(self.refused)
        match self.state:
            case "trusted":
                return refused
            case "never":
                line = f"This folder is not trusted, {what}; run /trust (or --trust) to use them." if what else ""
            case "unknown":
                return f"This folder cannot be trusted: {self.brought.problem}, so nothing of it is used."
            case "elsewhere":
                line = f"Another repository was trusted at this path, {what}; {review}" if what else ""
            case "changed":
                named = [*(f"{item} {self._how(item)}" for item in self.waiting), *(f"{one} gone" for one in self.gone)]
                more = f" and {len(named) - MANY} more" * (len(named) > MANY)
                unused = "; not used until you have seen it" * bool(self.waiting)
                line = f"Changed since you trusted this folder: {', '.join(named[:MANY])}{more}{unused}; {review}"
        return " ".join(filter(None, (line, refused)))

    def _how(self, item: TrustItem) -> str:
        before = self._before(item)
        if before is None:
            return "new"
        changed = [
            path for path in item.files.keys() | before.files.keys() if _digest(item, path) != before.files.get(path)
        ]
        return (
            f"changed ({', '.join(spelled(path, line=True) for path in sorted(changed)[:2])})" if changed else "changed"
        )

    def _before(self, item: TrustItem) -> AcceptedItem | None:
        """The item as it was accepted, where it is another one now."""
        record = (self._record or ()) if self.trusted else ()
        used = {(one.key, one.digest) for one in self.accepted}
        return next((one for one in record if one.key == item.key and (one.key, one.digest) not in used), None)

    def question(self) -> list[TrustDetail]:
        """Returns all that would be accepted, whole: what is new, and how what was accepted differs; then what cannot
        be. ``accept`` takes what is shown here."""
        self._take(self._read())
        self._seen = self.brought
        room = MOST_LINES
        shown: list[TrustDetail] = []
        above: set[tuple[str, ...]] = set()
        for item in self.waiting:
            shown.append(self._shown(item, room, above))
            room -= len(shown[-1].lines)
        gone = "Gone since you trusted this folder"
        for one in self.gone:
            shown.append(TrustDetail(gone, f"{one}", tuple(_lines("- ", one.texts.get("", "")))))
        refused = "Cannot be trusted, whatever you answer"
        for item in self.refused:
            shown.append(TrustDetail(refused, f"{item}: {spelled(item.problem, line=True)}", asked=False))
        return shown

    def _shown(self, item: TrustItem, room: int, above: set[tuple[str, ...]]) -> TrustDetail:
        """``above`` are the files as they are shown already; those of this item are added."""
        before = self._before(item)
        how = "" if not self.trusted else ", new" if before is None else ", changed"
        old = before.texts if before is not None else {}
        title, lines, unshown = f"{item}{how}", list[str](), 0
        if item.text and "\n" not in item.text and item.kind == "setting" and not old:
            title = f"{spelled(item.name, line=True)} = {spelled(item.text)}, in {spelled(item.source, line=True)}{how}"
        elif item.text:
            is_other = "" in old and old[""] != item.text
            front = "$ " if item.kind == "hook" else ""
            lines += _difference(old[""], item.text) if is_other else _lines(front, item.text)
        for path, file in item.files.items():
            name, known = spelled(path, line=True), before.files.get(path) if before is not None else None
            if known == file.digest:
                lines.append(f"{name}: as you saw it")
            elif file.text is None or len(lines) + file.text.count("\n") + len(file.text) // 80 > room:
                unshown += 1
                lines.append(f"{name}: {'' if path.endswith('/') else f'{size(file.size)}, '}cannot be shown here")
            else:
                count = plural(len(file.text.splitlines()), "line")
                said = _difference(old[path], file.text) if path in old else _lines("    ", file.text)
                whole = (f"{name}, {'changed' if known is not None else count}:", *said)
                lines += [f"{name}: shown above"] if whole in above else whole
                above.add(whole)
        if before is not None:
            lines += [
                f"{spelled(path, line=True)}: not run any more" for path in before.files if path not in item.files
            ]
        return TrustDetail(KINDS[item.kind], title, tuple(lines), unshown)


def counted(items: list[TrustItem]) -> str:
    """``2 hooks, 1 MCP server``."""
    numbers = Counter(item.kind for item in items)
    return ", ".join(plural(numbers[kind], kind) for kind in KINDS if numbers[kind])


def _refusals(items: tuple[TrustItem, ...]) -> str:
    named = "; ".join(f"{item}: {spelled(item.problem, line=True)}" for item in items[:MANY])
    return f"Not trusted: {named}{f'; and {len(items) - MANY} more' * (len(items) > MANY)}." if items else ""


def _digest(item: TrustItem, path: str) -> str | None:
    file = item.files.get(path)
    return None if file is None else file.digest


def _lines(front: str, text: str) -> list[str]:
    return [front + spelled(line, line=True) for line in text.removesuffix("\n").split("\n")] if text else []


def _difference(before: str, now: str) -> list[str]:
    """The lines that differ, whole."""
    lines = islice(difflib.unified_diff(before.split("\n"), now.split("\n"), n=0, lineterm=""), 2, None)
    return [f"{line[0]} {spelled(line[1:], line=True)}" for line in lines if line[:1] in "+-"]
