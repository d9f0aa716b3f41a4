"""Whether a folder is trusted: what it brings along is what the user saw and said yes to, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from agent_tui.context.project.brought import LISTED, Change, Content, changes, places, read_content, stamps
from agent_tui.store.facts import Trust

State = Literal["trusted", "never", "unconfirmed", "changed", "elsewhere", "unknown"]
"""``never``: nobody was asked. ``unconfirmed``: trusted by a version that did not look at contents. ``elsewhere``:
another repository was trusted at this path. ``unknown``: it cannot be told what the folder brings."""

MANY = 4
"""Changes that are named in one line."""


class FolderTrust:
    """The trust of one folder. Reads its files when made; ``holds`` and ``accept`` look again. ``identity`` tells the
    repository that was there then from others at the same path."""

    def __init__(self, root: Path, stored: Trust) -> None:
        self.root = root
        self._stored = stored
        self._stamps = stamps(root)
        self.content = read_content(root)
        self.identity = self.content.identity
        self._trusted: Content | None = None
        row = stored.get(root)
        if row is not None and row.content is not None:
            self._trusted = Content.loads(row.identity, row.content)
        self._known = row is not None
        self.state: State = self._judge()

    @property
    def trusted(self) -> bool:
        return self.state == "trusted"

    def _judge(self) -> State:
        if self.content.problem:
            return "unknown"
        if self._trusted is None:
            return "unconfirmed" if self._known else "never"
        if self._trusted.identity != self.content.identity:
            return "elsewhere"
        return "trusted" if self._trusted.files == self.content.files else "changed"

    def holds(self) -> bool:
        """Whether the folder is still as it was trusted. Cheap while no file was touched."""
        if not self.trusted:
            return False
        now = stamps(self.root)
        if now != self._stamps:
            self._stamps, self.content = now, read_content(self.root)
            self.state = self._judge()
        return self.trusted

    def changes(self) -> list[Change]:
        """What is different from what was trusted; everything, where that is not known."""
        before = self._trusted if self._trusted is not None else Content("", {})
        return changes(before, self.content)

    def accept(self) -> bool:
        """Trusts what the folder brings along, if it is what ``content`` says, which is what the user was shown.
        Otherwise ``content`` is brought up to date, to be shown, and nothing is trusted: False."""
        now = read_content(self.root)
        same = now == self.content and not now.problem
        self.content, self._stamps = now, stamps(self.root)
        if same:
            self._stored.put(self.root, now.identity, now.dumps())
            self._trusted, self._known = now, True
        self.state = self._judge()
        return same

    def line(self) -> str:
        """One line for the user; empty when nothing is ignored."""
        ignored = places(self.root)
        what = f"so {', '.join(ignored)} {'is' if len(ignored) == 1 else 'are'} ignored" if ignored else ""
        match self.state:
            case "trusted":
                return ""
            case "never":
                return f"This folder is not trusted, {what}; /trust (or --trust) reads them." if what else ""
            case "unknown":
                return f"This folder cannot be trusted: {self.content.problem}{f', {what}' if what else ''}."
            case "unconfirmed":
                why = "This folder was trusted before its contents were looked at"
            case "elsewhere":
                why = "Another repository was trusted at this path"
            case "changed":
                found = self.changes()
                names = ", ".join(map(str, found[:MANY])) + (f" and {len(found) - MANY} more" * (len(found) > MANY))
                why = f"This folder changed since you trusted it ({names})"
        if not what and self.state != "changed":
            return ""
        return f"{why}{f', {what}' if what else ''}; /trust shows it and asks (--trust trusts it as it is)."

    def details(self) -> str:
        """What would be trusted, with what is different in it, file by file."""
        found = self.changes()
        if not found:
            return "It brings nothing along that is ignored without trust."
        lines: list[str] = []
        for change in found[:LISTED]:
            lines += [f"  {change}", *(f"      {line}" for line in change.lines)]
        if len(found) > LISTED:
            lines.append(f"  … and {len(found) - LISTED:,} more files")
        return "\n".join(lines)
