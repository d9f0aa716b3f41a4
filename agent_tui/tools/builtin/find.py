"""list, glob, grep: the tools that find files and what stands in them."""

from __future__ import annotations

import base64
import json
import re
import stat
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.pipes.programs import find_program
from agent_tui.pipes.start import isolated
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured, pictured_line
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import FLAG, INTEGER, TEXT, described, parameters, reject_surrogates, validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.builtin.bash import environment
from agent_tui.tools.children.bounded import run_bounded
from agent_tui.tools.children.process import Stop, in_thread
from agent_tui.tools.files.beneath import info_of, inside, resolve, resolve_from, shown
from agent_tui.tools.files.walk import Glob, expand_braces, walk
from agent_tui.tools.sandbox.policy import Launch, free

MAX_ENTRIES = 500


@dataclass(slots=True)
class ListArguments:
    path: str = "."
    depth: int = 1


class ListTool:
    """One entry a line, folders with ``/`` at their end."""

    group = "builtin"
    schema = ToolSchema(
        "list",
        "List a folder, leaving out what .gitignore excludes.",
        parameters({"path": TEXT, "depth": described(INTEGER, "levels, default 1")}),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        path = resolve(validate(ListArguments, arguments, "list").path, context)
        return Intent("read", f"list {pictured(shown(path, context))}", [path])

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(ListArguments, arguments, "list")
        path = resolve(args.path, context)
        require_folder(path, context)
        return await in_thread(lambda stop: _list(path, args.depth, context.root.resolve(), stop))


def require_folder(path: Path, context: ToolContext) -> None:
    """Raises ToolError unless ``path`` is an existing folder."""
    info = info_of(path)
    if info is None or not stat.S_ISDIR(info.st_mode):
        problem = "is not a folder" if info is not None else "does not exist"
        raise ToolError(f"{pictured(shown(path, context))} {problem}.")


def _list(path: Path, depth: int, root: Path, stop: Stop) -> ToolOutcome:
    lines: list[str] = []
    more = False
    for entry in walk(path, root, max(1, depth)):
        if len(lines) >= MAX_ENTRIES or stop.is_set():
            more = True
            break
        lines.append(pictured_line(entry.path) + ("/" if entry.is_dir else ""))
    display = {"kind": "text", "summary": plural(len(lines), "entry", "entries")}
    if more:
        lines.append(f"[more than {MAX_ENTRIES} entries; list a folder below, or use glob]")
    return ToolOutcome("\n".join(lines) or "[empty, or all ignored]", display=display)


MAX_FILES = 500
_NEWLINE = re.compile(r"(?<!\\)(?:\\\\)*\\n")
_PLAIN = re.compile(r"[^*?\[\]{}]*/")  # the folders in front of the first sign that stands for something else


@dataclass(slots=True)
class GlobArguments:
    pattern: str
    path: str = "."


class GlobTool:
    """Files only, sorted by path; what .gitignore excludes is left out. Links are not followed."""

    group = "builtin"
    schema = ToolSchema(
        "glob",
        "Find files by pattern, e.g. `**/*.py`, `src/*.{ts,tsx}`.",
        parameters({"pattern": TEXT, "path": TEXT}, "pattern"),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = _arguments(arguments, context)
        return Intent("read", f"glob {pictured_line(args.pattern)}", [resolve(args.path, context)])

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _arguments(arguments, context)
        base = resolve(args.path, context)
        require_folder(base, context)
        pattern = Glob(args.pattern)
        name = shown(base, context)
        prefix = "" if name == "." else name.rstrip("/") + "/"
        return await in_thread(lambda stop: _glob(base, context.root.resolve(), pattern, prefix, stop))


def _arguments(arguments: Metadata, context: ToolContext) -> GlobArguments:
    """A pattern that begins with a folder of the file system, or leads upwards, is searched from there. A leading
    ``/`` alone means the top of the folder searched, as in .gitignore."""
    args = validate(GlobArguments, arguments, "glob")
    plain = _PLAIN.match(args.pattern)
    folder = plain.group().rstrip("/") if plain is not None else ""
    leads_away = args.pattern.startswith(("~/", "../")) or "/../" in f"/{folder}/"
    if folder.startswith("/"):
        own = resolve_from(f"{args.path}/{folder}", context.cwd)
        there = resolve_from(folder, context.cwd)
        leads_away = inside(there, context) or (there.is_dir() and not own.is_dir())
    if not folder or not leads_away:
        return args
    start = folder if folder.startswith(("/", "~")) else f"{args.path}/{folder}"
    return GlobArguments("/" + args.pattern[len(folder) :].lstrip("/"), start)


def _glob(base: Path, root: Path, pattern: Glob, prefix: str, stop: Stop) -> ToolOutcome:
    found: list[str] = []
    more = False
    for entry in walk(base, root):
        if stop.is_set():
            break
        if entry.is_dir or not pattern.matches(entry.path):
            continue
        if len(found) == MAX_FILES:
            more = True
            break
        found.append(pictured_line(pictured(prefix) + entry.path))
    display = {"kind": "text", "summary": f"{len(found)}+ files" if more else plural(len(found), "file")}
    if more:
        found.append(f"[more than {MAX_FILES} files; narrow the pattern]")
    return ToolOutcome("\n".join(found) or "No files match.", display=display)


MAX_MATCHES = 200
LINE_CHARACTERS = 500
MAX_LINES = 30
"""Lines of one match that are shown."""
TIMEOUT = 60.0
_MAX_EVENT = 32_000_000  # bytes of one line of a searcher's answer


@dataclass(slots=True)
class GrepArguments:
    pattern: str
    path: str = "."
    glob: str | None = None
    ignore_case: bool = False
    files_only: bool = False
    context: int = 0
    multiline: bool = False
    """Also ``.`` matches the end of a line."""

    @property
    def over_lines(self) -> bool:
        """What names the end of a line is never found within one."""
        return self.multiline or "\n" in self.pattern or _NEWLINE.search(self.pattern) is not None


RUST, PYTHON = "Rust's syntax: no lookaround", "Python's syntax"
"""Whose regular expressions the two searchers understand."""

_PARAMETERS = parameters(
    {
        "pattern": TEXT,
        "path": TEXT,
        "glob": described(TEXT, "only these files, e.g. `*.py`"),
        "ignore_case": FLAG,
        "files_only": FLAG,
        "context": described(INTEGER, "lines around each match"),
        "multiline": FLAG,
    },
    "pattern",
)


class GrepTool:
    """Both searchers run as a child that can be killed: a regular expression may take forever. They answer in
    ripgrep's JSON, so what the model sees is made in one place."""

    group = "builtin"

    def __init__(self, ripgrep: str | None = None) -> None:
        """``ripgrep`` is its path; looked for when None; none is used when it is empty."""
        self._ripgrep = find_program("rg") if ripgrep is None else ripgrep
        self._dialect = RUST if self._ripgrep else PYTHON
        self.schema = ToolSchema(
            "grep",
            f"Search file contents by regex ({self._dialect}), leaving out what .gitignore excludes; "
            f"at most {MAX_MATCHES} matches.",
            _PARAMETERS,
        )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(GrepArguments, arguments, "grep")
        where = "" if args.path == "." else f" in {pictured_line(args.path)}"
        return Intent("read", f"grep {pictured_line(args.pattern)}{where}", [resolve(args.path, context)])

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(GrepArguments, arguments, "grep")
        args.context = min(max(args.context, 0), 20)
        for name, value in (("pattern", args.pattern), ("glob", args.glob or "")):
            reject_surrogates(value, "grep", name)
            if "\0" in value:
                raise ToolError(f"grep: {name} contains a NUL character.")
        base = resolve(args.path, context)
        info = info_of(base)
        if info is None:
            raise ToolError(f"{pictured(shown(base, context))} does not exist.")
        folder, target = (base, ".") if stat.S_ISDIR(info.st_mode) else (base.parent, base.name)
        launch = await self._held_ripgrep(args, folder, target, context)
        if launch is None:
            place = {"folder": str(folder), "target": target, "root": str(context.root.resolve())}
            request = asdict(args) | place | {"over_lines": args.over_lines}
            launch = free(isolated("agent_tui.tools.builtin.searcher", json.dumps(request)), environment())
        relative = "" if args.path == "." else shown(folder, context).rstrip("/") + "/"
        prefix = "" if relative == "./" else relative
        answer = _Answer(prefix, args, context.config.output_limit, lambda name: context.hidden(folder / name))
        where = folder if launch.domain == "look" else Path("/")
        end = await run_bounded(launch, where, TIMEOUT, _Lines(answer).take)
        if end.why == "time":
            answer.notes.append(f"[stopped after {TIMEOUT:g} s; narrow the search]")
        if end.code > 1 and not answer.lines and not answer.complete:
            problem = answer.problem or "the pattern or the glob cannot be used"
            raise ToolError(
                f"grep: {problem}. The pattern is a regex ({self._dialect}): put a backslash before literal "
                "characters such as ( [ { . * + ?"
            )
        return answer.outcome()

    async def _held_ripgrep(
        self, args: GrepArguments, folder: Path, target: str, context: ToolContext
    ) -> Launch | None:
        """Ripgrep, held to look: it goes by names, and what holds commands keeps it from where a link leads that one of
        them puts in its way. None where it is missing, or the sandbox shows it not or not the folder: our own searcher
        goes by descriptors. Where nothing holds commands there is nothing to be led around."""
        if not self._ripgrep:
            return None
        argv = _ripgrep(self._ripgrep, args, target)
        if context.jail is None or not (await context.jail.ready()).holds("look"):
            return replace(free(argv, environment()), domain="look")
        sees = context.jail.sees
        if not (inside(folder, context) or sees(folder, "read")) or not sees(Path(self._ripgrep).resolve(), "read"):
            return None
        return await context.jail.launch(argv, "look", folder)


def _ripgrep(program: str, args: GrepArguments, target: str) -> list[str]:
    argv = [program, "--no-config", "--json", "--sort=path", "--hidden", "--glob=!.git", "--no-require-git"]
    argv += ["--no-ignore-global", "--no-ignore-dot", "--no-follow", "--crlf", "--encoding=none"]
    argv += [f"--context={args.context}"]
    if args.glob and "/" not in args.glob:
        # As a file type: unlike --glob it does not bring back what .gitignore excludes. Other globs are applied to
        # the answer.
        argv += [f"--type-add=wanted:{one}" for one in expand_braces(args.glob)] + ["--type=wanted"]
    argv += ["--ignore-case"] if args.ignore_case else []
    argv += ["--max-count=1"] if args.files_only else []
    argv += ["--multiline"] if args.over_lines else []
    argv += ["--multiline-dotall"] if args.multiline else []
    return [*argv, f"--regexp={args.pattern}", "--", "./" + target if target != "." else "."]


class _Lines:
    """Cuts what a search says into lines, for ``answer``; False once that takes no more."""

    def __init__(self, answer: _Answer) -> None:
        self._answer = answer
        self._pending: list[bytes] = []
        self._size = 0

    async def take(self, data: bytes) -> bool:
        first, *rest = data.split(b"\n")
        if self._size <= _MAX_EVENT:
            self._pending.append(first)
        self._size += len(first)
        for line in rest:
            if self._size > _MAX_EVENT:
                self._answer.note(f"[a match in a line of more than {_MAX_EVENT:,} bytes is left out]")
            elif not self._answer.take(b"".join(self._pending)):
                return False
            self._pending, self._size = [line], len(line)
        return True


class _Answer:
    """Ripgrep's events as text: ``path:line:text`` for matches, ``path-line-text`` around them."""

    def __init__(self, prefix: str, args: GrepArguments, limit: int, hidden: Callable[[str], bool]) -> None:
        self._prefix, self._files_only, self._limit, self._hidden = prefix, args.files_only, limit, hidden
        self._seen: dict[str, bool] = {}
        self._grouped = args.context > 0
        self._glob = Glob(args.glob) if args.glob else None
        self.lines: list[str] = []
        self.notes: list[str] = []
        self.problem = self.hint = ""
        self._matches = self._size = 0
        self._last: tuple[str, int] | None = None
        self.complete = False
        """All was searched, but for what could not be read."""

    def note(self, line: str) -> None:
        if line not in self.notes:
            self.notes.append(line)

    def take(self, raw: bytes) -> bool:
        """Notes one event; False when there is no room for more."""
        try:
            event: dict[str, Any] = json.loads(raw)
        except ValueError:
            return True
        kind, data = event.get("type"), event.get("data", {})
        self.complete = self.complete or kind == "summary"
        if kind == "problem":
            self.problem = str(data)[:300]
        if kind == "note":
            self.hint = f"\n[{str(data)[:300]}]"
        if kind not in ("match", "context") or (kind == "context" and self._files_only) or not self._wanted(data):
            return True
        if (kind == "match" and self._matches == MAX_MATCHES) or self._size > self._limit:
            self.notes.append(f"[more matches than the {self._matches} shown; narrow the search]")
            return False
        self._add(data, kind == "match")
        return True

    def _wanted(self, data: dict[str, Any]) -> bool:
        name = _text(data["path"]).removeprefix("./")
        if name not in self._seen:
            self._seen[name] = (self._glob is None or self._glob.matches(name)) and not self._hidden(name)
        return self._seen[name]

    def _add(self, data: dict[str, Any], match: bool) -> None:
        path = pictured_line(self._prefix + _text(data["path"]).removeprefix("./"))
        number = int(data["line_number"])
        self._matches += match
        if self._files_only:
            text = path
        else:
            sign = ":" if match else "-"
            first, *more = _text(data["lines"]).removesuffix("\n").split("\n")
            first = _around(first, data) if len(first) > LINE_CHARACTERS or "length" in data else first
            if self._grouped and self._last is not None and self._last != (path, number - 1):
                self.lines.append("--")
            self._last = (path, number + len(more))
            others = [line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}…" for line in more]
            shown = [line.removesuffix("\r") for line in (first, *others[: MAX_LINES - 1])]
            text = "\n".join(f"{path}{sign}{number + at}{sign}{pictured(line)}" for at, line in enumerate(shown))
            if len(more) >= MAX_LINES:
                text += f"\n[… {len(more) + 1 - MAX_LINES:,} more lines of this match]"
        self.lines.append(text)
        self._size += len(text) + 1

    def outcome(self) -> ToolOutcome:
        counted = plural(self._matches, *(("file",) if self._files_only else ("match", "matches")))
        text = "\n".join([*self.lines, *self.notes]) or "No matches."
        return ToolOutcome(text + self.hint, display={"kind": "text", "summary": counted})


def _around(content: str, data: dict[str, Any]) -> str:
    """The part of a long line that holds its first match."""
    spans = data.get("submatches") or [{"start": 0}]
    before = content.encode("utf-8", "surrogateescape")[: int(spans[0]["start"])]
    start = max(0, min(len(before.decode("utf-8", "replace")) - 100, len(content) - LINE_CHARACTERS))
    end = start + LINE_CHARACTERS
    whole = f"{int(data['length']):,} bytes" if "length" in data else f"{len(content):,} characters"
    return ("…" if start or data.get("from") else "") + content[start:end] + f"… [{whole}]"


def _text(value: dict[str, str]) -> str:
    """Ripgrep sends what is not UTF-8 as base64."""
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode("utf-8", "replace")
