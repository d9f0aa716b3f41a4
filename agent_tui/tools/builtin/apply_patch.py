"""apply_patch: several files changed by one patch, all or none."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import reject_surrogates, validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.children.threads import in_thread
from agent_tui.tools.files import seen
from agent_tui.tools.files import text as files
from agent_tui.tools.files.beneath import info_of
from agent_tui.tools.files.diffs import MAX_CHARACTERS, diff_display
from agent_tui.tools.files.patch import ADD, BEGIN, DELETE, END, MOVE, UPDATE, FilePatch, apply_chunks, parse_patch
from agent_tui.tools.files.paths import may_tell, resolve, shown


@dataclass(slots=True)
class ApplyPatchArguments:
    input: str


@dataclass(slots=True)
class _Change:
    """What becomes of one file. ``before`` and ``info`` None: it is not there; ``after`` None: it goes. ``mode`` are
    the permission bits of a file that is moved here."""

    path: Path
    name: str
    before: str | None
    info: os.stat_result | None
    after: str | None
    mode: int | None = None
    moved_to: str = ""


@dataclass(slots=True)
class _Plan:
    changes: dict[Path, _Change] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class ApplyPatchTool:
    """For models that are trained on this format, in the place of ``edit``. Each file is judged like one of ``edit``;
    nothing is written unless everything fits, and what was written is taken back when a later file cannot be."""

    group = "builtin"
    schema = ToolSchema(
        "apply_patch",
        f"Change files by a patch in the V4A format, all or none: {BEGIN} … {END} with {UPDATE}, {ADD}, {DELETE} and "
        f"{MOVE} sections.",
        {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        patches = _patches(arguments)
        paths = _paths(patches, context)
        names = ", ".join(pictured(shown(path, context)) for path in paths[:3])
        summary = f"apply_patch {names}" + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        if any(files.is_large(path) for path in paths):
            text = pictured(str(arguments.get("input", "")))[:MAX_CHARACTERS]
            return Intent("edit", summary, paths, display={"kind": "diff", "text": text, "path": names})
        try:
            # What is looked at is what is judged: a path may lead elsewhere when it is resolved once more.
            display = _display(_plan(patches, replace(context, allowed_paths=frozenset(paths))))
        except ToolError as problem:
            if all(may_tell(path, context) for path in paths):
                raise  # it would fail when it runs: nothing to ask the user about
            display = {"kind": "text", "text": str(problem), "path": names}
        return Intent("edit", summary, paths, display=display)

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        patches = _patches(arguments)
        plan = await in_thread(lambda stop: _plan(patches, context))
        _apply(plan, context)
        display = await in_thread(lambda stop: _display(plan))
        moved = {change.moved_to for change in plan.changes.values()} - {""}
        told = [_line(change) for change in plan.changes.values() if change.name not in moved]
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


def _paths(patches: list[FilePatch], context: ToolContext) -> list[Path]:
    named = [name for patch in patches for name in (patch.path, patch.move_to) if name]
    return list(dict.fromkeys(resolve(name, context) for name in named))


def _plan(patches: list[FilePatch], context: ToolContext) -> _Plan:
    plan = _Plan()
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
        style = files.style_of(change.after)
        text = change.after.removeprefix(files.BOM)
        done = apply_chunks(text.replace("\r\n", "\n") if style.windows else text, patch.chunks, change.name)
        change.after = style.applied(done.text)
        plan.notes += [f"{change.name}, {note}" for note in done.notes]
        if patch.move_to:
            target = _looked_at(plan, resolve(patch.move_to, context), context)
            if target.path == change.path:
                continue
            if target.after is not None:
                raise ToolError(f"{target.name} exists: {change.name} cannot be moved there. Nothing was changed.")
            target.mode = stat.S_IMODE(change.info.st_mode) if change.info is not None else change.mode
            target.after, change.after, change.moved_to = change.after, None, target.name
    plan.changes = {path: c for path, c in plan.changes.items() if c.before != c.after}
    if not plan.changes:
        raise ToolError("The patch leaves every file as it is: its - and + lines are the same.")
    return plan


def _looked_at(plan: _Plan, path: Path, context: ToolContext) -> _Change:
    """The file as the patch has left it so far."""
    if path not in plan.changes:
        name = pictured(shown(path, context))
        if info_of(path) is not None:
            before, info = files.load(path, name)
            seen.require_unchanged(context, path, info)
            plan.changes[path] = _Change(path, name, before, info, before)
        else:
            plan.changes[path] = _Change(path, name, None, None, None)
    return plan.changes[path]


def _apply(plan: _Plan, context: ToolContext) -> None:
    done: list[_Change] = []
    # What is new is there before what is old goes: a move never leaves the content nowhere.
    for change in sorted(plan.changes.values(), key=lambda change: change.after is None):
        try:
            _set(context, change, change.after, change.info)
        except ToolError as error:
            left = [problem for earlier in reversed(done) if (problem := _undo(context, earlier))]
            ending = f"These could not be taken back: {'; '.join(left)}." if left else "Nothing was changed."
            raise ToolError(f"{error} {ending}") from None
        done.append(change)


def _set(context: ToolContext, change: _Change, text: str | None, info: os.stat_result | None) -> None:
    if text is not None:
        files.save(context, change.path, text, change.name, info, change.mode)
    elif info is not None:
        files.remove(context, change.path, change.name, info)


def _undo(context: ToolContext, change: _Change) -> str:
    try:
        now = info_of(change.path)
        if change.info is not None and now is None:
            change.mode = stat.S_IMODE(change.info.st_mode)
        _set(context, change, change.before, now)
    except (ToolError, OSError) as error:
        return f"{change.name} ({error})"
    return ""


def _line(change: _Change) -> str:
    if change.after is None:
        return f"R {change.name} → {change.moved_to}" if change.moved_to else f"D {change.name}"
    return f"{'A' if change.before is None else 'M'} {change.name}"


def _display(plan: _Plan) -> Metadata:
    """One diff of all files, each under its name where there are several."""
    texts: list[str] = []
    added = removed = 0
    for change in plan.changes.values():
        one = diff_display(change.before or "", change.after or "", change.name)
        added, removed = added + one["added"], removed + one["removed"]
        before = "/dev/null" if change.before is None else change.name
        after = "/dev/null" if change.after is None else change.name
        texts.append(f"--- {before}\n+++ {after}\n{one['text']}")
    names = ", ".join(change.name for change in plan.changes.values())
    text = "\n".join(texts)
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n[… the rest of the diff is left out]"
    summary = f"+{added} -{removed}"
    return {"kind": "diff", "text": text, "summary": summary, "path": names, "added": added, "removed": removed}
