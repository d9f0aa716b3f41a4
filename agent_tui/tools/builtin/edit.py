"""edit, write, apply_patch: the tools that change files, whole or in part, all or none."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import field, replace
from itertools import islice
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import FLAG, TEXT, listed, parameters, reject_surrogates, validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.children.process import in_thread
from agent_tui.tools.files import text as files
from agent_tui.tools.files.beneath import at, info_of, known_to_commands, may_tell, resolve, shown
from agent_tui.tools.files.diffs import (
    ADD,
    BEGIN,
    DELETE,
    END,
    MAX_CHARACTERS,
    MOVE,
    UPDATE,
    FilePatch,
    apply_chunks,
    diff_display,
    parse_patch,
)
from agent_tui.tools.files.near import near_matches
from agent_tui.tools.files.notebook import Cells

_TELLING = 12
"""Characters from which on a text that is found says something."""


@dataclass(slots=True)
class Edit:
    old_string: str
    new_string: str
    replace_all: bool = False


@dataclass(slots=True)
class EditArguments:
    path: str
    edits: list[Edit] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class _EditPlan:
    """``before`` and ``after`` as people are shown them; ``data`` is what is written."""

    before: str
    after: str
    data: bytes
    file: files.TextFile
    replaced: int
    notes: list[str]


_EDIT = parameters({"old_string": TEXT, "new_string": TEXT, "replace_all": FLAG}, "old_string", "new_string")


class EditTool:
    """Edits apply in order, each to the result of the one before it, and are written only if all of them fit."""

    group = "builtin"
    schema = ToolSchema(
        "edit",
        "Replace exact strings in a file, in order, all or none. old_string must occur exactly once "
        "unless replace_all.",
        parameters({"path": TEXT, "edits": listed(_EDIT)}, "path", "edits"),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = _edit_arguments(arguments)
        path = resolve(args.path, context)
        name = shown(path, context)
        try:
            if files.is_large(path):
                return Intent("edit", f"edit {pictured(name)}", [path], display=_unplaced(args.edits, name))
            planned = _plan_edits(path, args.edits, context)
        except ToolError as problem:
            if may_tell(path, context):
                raise  # it would fail when it runs: nothing to ask the user about
            # Of a file that may not be read, nothing is said before the user agreed.
            display: Metadata = {"kind": "text", "text": str(problem), "path": pictured(name)}
        else:
            display = diff_display(planned.before, planned.after, name)
        return Intent("edit", f"edit {pictured(name)}", [path], display=display)

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _edit_arguments(arguments)
        path = resolve(args.path, context)
        name = shown(path, context)
        planned = await in_thread(lambda stop: _plan_edits(path, args.edits, context))
        files.save(context, path, planned.data, pictured(name), planned.file.info)
        display = await in_thread(lambda stop: diff_display(planned.before, planned.after, name))
        count = plural(planned.replaced, "replacement")
        encoding = planned.file.encoding
        kept = f" It keeps its {encoding.name} encoding." if encoding.legacy else ""
        told = " ".join([f"Edited {pictured(name)}: {count}.{kept}", *planned.notes])
        return ToolOutcome(told, display=display)


def _unplaced(edits: list[Edit], name: str) -> Metadata:
    """The edits of a file too large to be read before the user is asked: what is replaced, without its place."""
    lines: list[str] = []
    for number, edit in enumerate(edits, 1):
        everywhere = ", everywhere" if edit.replace_all else ""
        lines.append(f"@@ edit {number} of {len(edits)}{everywhere} @@")
        lines += [f"-{line}" for line in edit.old_string.split("\n")]
        lines += [f"+{line}" for line in edit.new_string.split("\n")]
    return {"kind": "diff", "text": pictured("\n".join(lines)[:MAX_CHARACTERS]), "path": pictured(name)}


def _edit_arguments(arguments: Metadata) -> EditArguments:
    """A single edit written flat is what many models were trained on; it is taken too."""
    if not arguments.get("edits") and "old_string" in arguments:
        flat = {k: v for k, v in arguments.items() if k in ("old_string", "new_string", "replace_all")}
        arguments = {k: v for k, v in arguments.items() if k not in flat} | {"edits": [flat]}
    args = validate(EditArguments, arguments, "edit")
    if not args.edits:
        raise ToolError("edit: edits is empty.")
    return args


def _plan_edits(path: Path, edits: list[Edit], context: ToolContext) -> _EditPlan:
    name = pictured(shown(path, context))
    file = files.load(path, name)
    files.require_unchanged(context, path, file.info)
    # A file with Windows line ends throughout is edited as the model sees it, and keeps them.
    cells = Cells.of(path, file.seen)
    text = original = cells.text if cells is not None else file.seen
    mixed = file.mixed and cells is None
    replaced = 0
    notes: list[str] = []
    for number, edit in enumerate(edits, 1):
        where = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        text, count, note = _apply_edit(text, edit, file.windows, mixed, where, name)
        replaced += count
        notes += [note] if note else []
    content = cells.saved(text) if cells is not None else text
    content = content.replace("\n", "\r\n") if file.windows else content
    seen = (original, text) if cells is not None else (file.text, content)
    return _EditPlan(*seen, file.encode(content, name), file, replaced, notes)


def _apply_edit(text: str, edit: Edit, windows: bool, mixed: bool, where: str, name: str) -> tuple[str, int, str]:
    """The text with an edit made, how often, and what differed where it only almost stood there. Raises ToolError."""
    reject_surrogates(edit.old_string, "edit", f"{where}old_string")
    reject_surrogates(edit.new_string, "edit", f"{where}new_string")
    old = edit.old_string.replace("\r\n", "\n") if windows else edit.old_string
    new = edit.new_string.replace("\r\n", "\n") if windows else edit.new_string
    if not old:
        raise ToolError(f"{where}old_string is empty. Use write to create a file.")
    if old == new:
        raise ToolError(f"{where}old_string and new_string are the same.")
    # Which lines end in which way is not seen: an end of the one kind stands for both.
    ends = re.escape(old).replace("\\\n", "\r?\n")
    sought = re.compile(ends if mixed and "\r" not in old else re.escape(old))
    places = list(islice(sought.finditer(text), 6)) if mixed else []
    count = sum(1 for _ in sought.finditer(text)) if mixed else text.count(old)
    if count == 0:
        if len(new.strip()) >= _TELLING and new in text:
            line = text.count("\n", 0, text.find(new)) + 1
            why = f"new_string stands in line {line} already: the edit may have been made before."
        elif "\ufffd" in old and re.search("[\udc80-\udcff]", text):
            why = "It holds bytes that are not UTF-8, which are shown as \ufffd: leave them out of old_string."
        else:
            near = near_matches(text, old, new)
            if len(near) == 1:
                (match,) = near
                start, end, line = match.start, match.end, text.count("\n", 0, match.start) + 1
                put = _with_ends_of(text, start, end, match.new) if mixed and "\r" not in match.new else match.new
                note = f"[{where}old_string fits only line {line}, but for {match.differs}]"
                return text[:start] + put + text[end:], 1, note
            why = "Read it again and copy old_string from there."
            if near:
                why = f"It fits in several places but for {near[0].differs}: add surrounding lines."
        raise ToolError(f"{where}old_string is not in {name}. Nothing was changed. {why}")
    if count > 1 and not edit.replace_all:
        places = places or list(islice(sought.finditer(text), 5))
        lines = ", ".join(str(text.count("\n", 0, place.start()) + 1) for place in places[:5])
        raise ToolError(
            f"{where}old_string occurs {count} times in {name} (lines {lines}). "
            "Add surrounding lines to make it unique, or set replace_all. Nothing was changed."
        )
    if mixed and "\r" not in new:
        return sought.sub(lambda place: _with_ends_of(text, place.start(), place.end(), new), text), count, ""
    return text.replace(old, new) if not mixed else sought.sub(lambda place: new, text), count, ""


def _with_ends_of(text: str, start: int, end: int, new: str) -> str:
    """What is put in a place of a file with line ends of both kinds: they are those of the lines that were there."""
    old, behind = text[start:end], text[end : text.find("\n", end) + 1]
    windows = "\r\n" in old if "\n" in old else behind.endswith("\r\n")
    ends = re.findall(r"\r?\n", old)
    lines = new.split("\n")
    same = ends if len(ends) == len(lines) - 1 else ["\r\n" if windows else "\n"] * (len(lines) - 1)
    return "".join(line + end for line, end in zip(lines, [*same, ""], strict=True))


@dataclass(slots=True)
class WriteArguments:
    path: str
    content: str


class WriteTool:
    """Creates a file or replaces all of one that was read before and has not changed since. What the model does not
    see of a file (how its lines end, a mark in front) stays as it was."""

    group = "builtin"
    schema = ToolSchema(
        "write",
        "Create a file, or replace one you have read.",
        parameters({"path": TEXT, "content": TEXT}, "path", "content"),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(WriteArguments, arguments, "write")
        path = resolve(args.path, context)
        name = shown(path, context)
        if may_tell(path, context):
            _require_known(path, context)  # it would fail when it runs: nothing to ask the user about
        large = files.is_large(path)
        before = None if large else _present(path, pictured(name))
        if before is not None and may_tell(path, context):
            before.encode(before.styled(args.content), pictured(name))  # what it cannot hold it will not hold later
        display = _replacing(before, args.content, name)
        if large and (info := info_of(path)) is not None:
            display["text"] = f"[the {info.st_size:,} bytes of the file are replaced by this]\n{display['text']}"
        return Intent("edit", f"write {pictured(name)}", [path], display=display)

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(WriteArguments, arguments, "write")
        reject_surrogates(args.content, "write", "content")
        path = resolve(args.path, context)
        name = shown(path, context)
        before, info = await in_thread(lambda stop: _replaced(path, context))
        style = before.style() if before is not None else ""
        data = plain = args.content.encode()
        if before is not None:
            data = before.encode(before.styled(args.content), pictured(name))
        files.save(context, path, data, pictured(name), info)
        lines = len(args.content.splitlines())
        verb = "Created" if info is None else "Replaced"
        display = await in_thread(lambda stop: _replacing(before, args.content, name))
        kept = f" It keeps its {style}; change that with bash." if style and data != plain else ""
        note = known_to_commands(path, context)
        told = f"{verb} {pictured(name)}: {plural(lines, 'line')}.{kept}"
        return ToolOutcome("\n".join(filter(None, [told, note])), display=display)


def _replaced(path: Path, context: ToolContext) -> tuple[files.TextFile | None, os.stat_result | None]:
    """The content and state of the file that is about to be replaced."""
    info = _require_known(path, context)
    return (_present(path, pictured(shown(path, context))) if info is not None else None), info


def _replacing(before: files.TextFile | None, content: str, name: str) -> Metadata:
    """The change to what is there, if anything is."""
    if before is None:
        return diff_display("", content, name)
    return diff_display(before.text, before.styled(content).removeprefix(files.BOM), name)


def _require_known(path: Path, context: ToolContext) -> os.stat_result | None:
    """The state of the file, None where there is none. Raises ToolError for one not read as it is now."""
    name = pictured(shown(path, context))
    try:
        with at(path) as place:
            info = place.info()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"{name} cannot be written: {error.strerror}.") from None
    if not stat.S_ISREG(info.st_mode):
        raise ToolError(f"{name} exists and is not a regular file.")
    if str(path) not in context.memory.files:
        raise ToolError(f"{name} exists. Read it before replacing it, or use edit.")
    files.require_unchanged(context, path, info)
    return info


def _present(path: Path, name: str) -> files.TextFile | None:
    """Returns the file as it is now; None where there is no text."""
    try:
        return files.load(path, name)
    except ToolError:
        return None


@dataclass(slots=True)
class ApplyPatchArguments:
    input: str


@dataclass(slots=True)
class _PatchedFile:
    """The change that a patch makes to one file. ``file`` None: it is not there; ``after`` None: it goes. ``form`` is
    the file whose encoding and line ends it has, and ``mode`` the permission bits of a file that is moved here."""

    path: Path
    name: str
    file: files.TextFile | None
    after: str | None
    form: files.TextFile | None
    mode: int | None = None
    moved_to: str = ""

    @property
    def before(self) -> str | None:
        return self.file.text if self.file is not None else None

    @property
    def info(self) -> os.stat_result | None:
        return self.file.info if self.file is not None else None

    def data(self, text: str) -> bytes:
        """The bytes of the file with a text. Raises ToolError."""
        return self.form.encode(text, self.name) if self.form is not None else text.encode()


@dataclass(slots=True)
class _PatchPlan:
    changes: dict[Path, _PatchedFile] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class ApplyPatchTool:
    """For models that are trained on this format, in the place of ``edit``. Each file is judged like one of ``edit``;
    nothing is written unless everything fits, and what was written is taken back when a later file cannot be."""

    group = "builtin"
    schema = ToolSchema(
        "apply_patch",
        f"Change files by a patch in the V4A format, all or none: {BEGIN} … {END} with {UPDATE}, {ADD}, {DELETE} and "
        f"{MOVE} sections.",
        parameters({"input": TEXT}, "input"),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        patches = _patches(arguments)
        paths = _patched_paths(patches, context)
        names = ", ".join(pictured(shown(path, context)) for path in paths[:3])
        summary = f"apply_patch {names}" + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        if any(files.is_large(path) for path in paths):
            text = pictured(str(arguments.get("input", "")))[:MAX_CHARACTERS]
            return Intent("edit", summary, paths, display={"kind": "diff", "text": text, "path": names})
        try:
            # What is looked at is what is judged: a path may lead elsewhere when it is resolved once more.
            display = _patch_display(_plan_patch(patches, replace(context, allowed_paths=frozenset(paths))))
        except ToolError as problem:
            if all(may_tell(path, context) for path in paths):
                raise  # it would fail when it runs: nothing to ask the user about
            display = {"kind": "text", "text": str(problem), "path": names}
        return Intent("edit", summary, paths, display=display)

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        patches = _patches(arguments)
        plan = await in_thread(lambda stop: _plan_patch(patches, context))
        _apply_patch(plan, context)
        display = await in_thread(lambda stop: _patch_display(plan))
        moved = {change.moved_to for change in plan.changes.values()} - {""}
        told = [_changed_line(change) for change in plan.changes.values() if change.name not in moved]
        lines = [f"Changed {plural(len(told), 'file')}:", *told]
        if plan.notes:
            lines += ["Check these places:", *plan.notes]
        return ToolOutcome("\n".join(lines), display=display)


def _patches(arguments: Metadata) -> list[FilePatch]:
    if "input" not in arguments and isinstance(arguments.get("patch"), str):
        arguments = {"input": arguments["patch"]}
    args = validate(ApplyPatchArguments, arguments, "apply_patch")
    reject_surrogates(args.input, "apply_patch", "input")
    return parse_patch(args.input)


def _patched_paths(patches: list[FilePatch], context: ToolContext) -> list[Path]:
    named = [name for patch in patches for name in (patch.path, patch.move_to) if name]
    return list(dict.fromkeys(resolve(name, context) for name in named))


def _plan_patch(patches: list[FilePatch], context: ToolContext) -> _PatchPlan:
    plan = _PatchPlan()
    for patch in patches:
        change = _looked_at(plan, resolve(patch.path, context), context)
        if patch.kind == "add":
            if change.after is not None:
                raise ToolError(f"{change.name} exists. Change it with {UPDATE}. Nothing was changed.")
            change.after = patch.content
            continue
        if change.after is None:
            raise ToolError(f"{change.name} does not exist; list or glob finds its name. Nothing was changed.")
        if patch.kind == "delete":
            change.after = None
            continue
        form = change.form and replace(change.form, text=change.after)
        text = change.after if form is None else change.after.replace("\r\n", "\n")
        cells = Cells.of(change.path, text)
        done = apply_chunks(text if cells is None else cells.text, patch.chunks, change.name)
        changed = done.text if cells is None else cells.saved(done.text)
        change.after = changed if form is None else form.styled(changed)
        plan.notes += [f"{change.name}, {note}" for note in done.notes]
        if patch.move_to:
            target = _looked_at(plan, resolve(patch.move_to, context), context)
            if target.path == change.path:
                continue
            if target.after is not None:
                raise ToolError(f"{target.name} exists: {change.name} cannot be moved there. Nothing was changed.")
            target.mode = stat.S_IMODE(change.info.st_mode) if change.info is not None else change.mode
            target.after, change.after, change.moved_to = change.after, None, target.name
            target.form = change.form
    plan.changes = {path: c for path, c in plan.changes.items() if c.before != c.after}
    for change in plan.changes.values():
        if change.after is not None:
            change.data(change.after)  # what it cannot hold it will not hold later
    if not plan.changes:
        raise ToolError("The patch leaves every file as it is: its - and + lines are the same.")
    return plan


def _looked_at(plan: _PatchPlan, path: Path, context: ToolContext) -> _PatchedFile:
    """The file as the patch has left it so far."""
    if path not in plan.changes:
        name = pictured(shown(path, context))
        file = files.load(path, name) if info_of(path) is not None else None
        if file is not None:
            files.require_unchanged(context, path, file.info)
        plan.changes[path] = _PatchedFile(path, name, file, None if file is None else file.text, file)
    return plan.changes[path]


def _apply_patch(plan: _PatchPlan, context: ToolContext) -> None:
    done: list[_PatchedFile] = []
    # What is new is there before what is old goes: a move never leaves the content nowhere.
    for change in sorted(plan.changes.values(), key=lambda change: change.after is None):
        try:
            _set(context, change, change.after, change.info)
        except ToolError as error:
            left = [problem for earlier in reversed(done) if (problem := _undo(context, earlier))]
            ending = f"These could not be taken back: {'; '.join(left)}." if left else "Nothing was changed."
            raise ToolError(f"{error} {ending}") from None
        done.append(change)


def _set(context: ToolContext, change: _PatchedFile, text: str | None, info: os.stat_result | None) -> None:
    if text is not None:
        files.save(context, change.path, change.data(text), change.name, info, change.mode)
    elif info is not None:
        files.remove(context, change.path, change.name, info)


def _undo(context: ToolContext, change: _PatchedFile) -> str:
    try:
        now = info_of(change.path)
        if change.info is not None and now is None:
            change.mode = stat.S_IMODE(change.info.st_mode)
        _set(context, change, change.before, now)
    except (ToolError, OSError) as error:
        return f"{change.name} ({error})"
    return ""


def _changed_line(change: _PatchedFile) -> str:
    if change.after is None:
        return f"R {change.name} → {change.moved_to}" if change.moved_to else f"D {change.name}"
    return f"{'A' if change.before is None else 'M'} {change.name}"


def _seen(path: Path, text: str | None) -> str:
    """A file's text as people are shown it: a notebook's cells."""
    try:
        cells = Cells.of(path, text or "")
    except ToolError:
        cells = None
    return text or "" if cells is None else cells.text


def _patch_display(plan: _PatchPlan) -> Metadata:
    """One diff of all files, each under its name where there are several."""
    texts: list[str] = []
    added = removed = 0
    for change in plan.changes.values():
        one = diff_display(_seen(change.path, change.before), _seen(change.path, change.after), change.name)
        added, removed = added + one["added"], removed + one["removed"]
        before = "/dev/null" if change.before is None else change.name
        after = "/dev/null" if change.after is None else change.name
        texts.append(f"--- {before}\n+++ {after}\n{one['text']}")
    names = ", ".join(change.name for change in plan.changes.values())
    text = "\n".join(texts)
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n[… the rest of the diff is left out]"
    return {"kind": "diff", "text": text, "path": names, "added": added, "removed": removed}
