"""Ways back: other sessions, by title or by what was said in them, and earlier messages of this one."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from textual import message
from textual.binding import Binding, BindingType
from textual.content import Content

from agent_tui.commands.sessions import branch_text, files_text, first_words, head_of, leaves_text, tree, words_of
from agent_tui.context.accounting.lost import lost_text
from agent_tui.errors import StoreError
from agent_tui.models.messages import Message
from agent_tui.models.session import Branch, SessionHit
from agent_tui.records import dataclass
from agent_tui.text.cells import fit, shorten
from agent_tui.text.clean import clean, one_line
from agent_tui.text.numbers import age, plural, tokens
from agent_tui.text.search import search_words
from agent_tui.ui.keys import TypingGuard
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint, Piece, width_of

if TYPE_CHECKING:
    from rich.style import Style

    from agent_tui.engine.agent import Agent
    from agent_tui.store.search import SearchReader


log = logging.getLogger(__name__)

MOST = 500
"""Sessions that a search shows."""
_BATCH = 0.05
"""Seconds between two looks at what a search has found so far."""
_YIELD = 0.0005
"""Seconds after each hit that the interpreter is left to the screen."""
_WHO = {"user": "you", "assistant": "model"}


class SearchRequest(NamedTuple):
    """A search for the thread: its number, the text to look for, and the project, None for all."""

    number: int
    text: str
    project: str | None


class ResumeAt(NamedTuple):
    """The chosen session, and what was looked for in it: words, and the message with them where one is known."""

    session_id: str
    query: str = ""
    message_id: str | None = None
    left_behind: bool = False


class SessionPicker(Picker[SessionHit, ResumeAt]):
    """Answers what is to be resumed. Searches run in a thread that it has as long as it is open, and hits come as they
    are found; a letter ends the search of the one before. Until the first hits are there the rows stay what they
    were."""

    TITLE_TEXT = "Resume a session"
    PLACEHOLDER = "search titles, your messages and answers"
    HINT = "Enter resume · Ctrl+A all projects · Esc close"
    PREVIEW_LINES = 2
    NO_MATCH = "No session matches."
    EMPTY = "No sessions yet."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+a", "all", "All projects", show=False, priority=True)]

    @dataclass
    class Found(message.Message):
        """More of what search number ``number`` finds. ``ended`` with the last, ``problem`` where it failed."""

        number: int
        hits: list[SessionHit]
        ended: bool = False
        problem: str = ""

    def __init__(self, agent: Agent, search: str = "") -> None:
        super().__init__(search)
        self.agent = agent
        self.everywhere = False
        self.project = str(agent.root)
        self.now = time.time()
        self._listed: dict[bool, list[SessionHit]] = {}
        self._searches = 0
        self._reader: SearchReader | None = None
        self._wanted: SimpleQueue[SearchRequest | None] = SimpleQueue()
        self._waits = False
        self._entered = False

    def entries(self, search: str) -> Sequence[SessionHit]:
        """The sessions that are there without a search: this project's, then others', newest first."""
        if self.everywhere not in self._listed:
            found = self.agent.store.sessions.all(None if self.everywhere else self.project)
            found = [s for s in found if s.messages or s.id != self.agent.conversation.info.id]
            found.sort(key=lambda info: info.project != self.project)
            self._listed[self.everywhere] = [SessionHit(info, created=info.updated) for info in found]
        return self._listed[self.everywhere]

    def search(self, text: str, *, first: bool = False) -> None:
        self._stop()
        self._entered = False
        if not search_words(text):
            super().search(text, first=first)
            self._say("" if self.shown else " · none")
            return
        self.searched = text
        self._waits = True
        self._say(" · searching…")
        if self._reader is None:
            self._reader = self.agent.store.search()
            Thread(target=self._serve, args=(self._reader,), name="search", daemon=True).start()
        self._wanted.put(SearchRequest(self._searches, text, None if self.everywhere else self.project))

    def _stop(self) -> None:
        """Ends the search that runs; what it still tells is not heard."""
        self._searches += 1
        self._waits = False
        if self._reader is not None:
            self._reader.stop()

    def on_unmount(self) -> None:
        self._stop()
        self._wanted.put(None)

    def _serve(self, reader: SearchReader) -> None:
        with contextlib.closing(reader):
            while (wanted := self._wanted.get()) is not None:
                if wanted.number == self._searches:
                    self._look(reader, *wanted)

    def _look(self, reader: SearchReader, number: int, text: str, project: str | None) -> None:
        """In the thread: one search from its beginning to its end."""
        found: list[SessionHit] = []
        count, told = 0, time.monotonic()

        def tell(**more: object) -> None:
            self.post_message(self.Found(number, found, **more))  # type: ignore[arg-type]

        try:
            for hit in reader.hits(text, project, lambda: number != self._searches):
                if not hit.session.messages:
                    continue
                found.append(hit)
                count += 1
                if count >= MOST:
                    break
                if count == 1 or time.monotonic() - told > _BATCH:
                    tell()
                    found, told = [], time.monotonic()
                # The screen's thread may be waiting for the interpreter, and comes first.
                time.sleep(_YIELD)
        except StoreError as error:
            tell(ended=True, problem=str(error))
        except Exception:
            log.exception("A search failed")
            tell(ended=True, problem="the search failed; see the log")
        else:
            tell(ended=True)

    def on_session_picker_found(self, event: Found) -> None:
        event.stop()
        if event.number != self._searches:
            return
        new, self._waits = self._waits, False
        known = [] if new else list(self.shown)
        self.shown = [*known, *event.hits]
        count = len(self.shown)
        self.rows.set_count(count, 0 if new else None)
        if event.ended:
            self.say_empty(one_line(event.problem, 300))
        else:
            self.remove_class("-empty")
        if new:
            self._preview()
        if event.problem:
            self._say(f" · {plural(count, 'session')}, then {one_line(event.problem, 80)}" if count else " · failed")
        elif not event.ended:
            self._say(f" · {plural(count, 'session')}…")
        else:
            self._say(f" · the first {count:,}" if count >= MOST else f" · {plural(count, 'session')}")
        if self._entered and self.shown:
            self._choose(0)

    def _say(self, text: str) -> None:
        scope = "all projects" if self.everywhere else "this project"
        other = "this project" if self.everywhere else "all projects"
        frame = self.query_one("#frame")
        frame.border_title = Content(f"{self.TITLE_TEXT} · {scope}{text}")
        self.hint = self.HINT.replace("all projects", other)
        self.fit(self.size)

    def draw(self, entry: SessionHit, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        info = entry.session
        current = " current" if info.id == self.agent.conversation.info.id else ""
        fork = " fork" if info.copied else ""
        when = fit(age(entry.created or info.updated, self.now), 7, right=True)
        elsewhere = "" if info.project == self.project else one_line(Path(info.project).name, 24)
        room_for_place = (width - 40) // 2 if entry.message_id is None else (width - 64) // 2
        place = f" {fit(elsewhere, min(18, room_for_place))}" if room_for_place >= 8 and self.everywhere else ""
        name = one_line(info.title or info.preview, 200) or "untitled"
        style = paint("primary" if here else "foreground", bold=here)
        end: list[Piece] = [(fork, paint("secondary")), (current, paint("accent")), (place, paint("secondary"))]
        if entry.message_id is None:
            end += [(when, paint("muted"))]
            room = max(8, width - width_of(end))
            marked = entry.line == name and entry.spans
            return [*(_marked(name, entry.spans, room, style, paint) if marked else [(fit(name, room), style)]), *end]
        end = [(place, paint("secondary")), (when, paint("muted"))]
        room = max(8, width - width_of(end))
        marks = [(fork, paint("secondary")), (current, paint("accent"))]
        named = max(0, room * 2 // 5 - width_of(marks))
        title = fit(name, named) if room > 50 else ""
        who = "other branch" if entry.left_behind else _WHO.get(entry.role or "", "")
        begin = [(title, style), *marks, ("  ", style)] if title else []
        line = _marked(entry.line, entry.spans, room - width_of(begin) - len(who) - 2, paint("foreground"), paint)
        return [*begin, (f"{who}: ", paint("muted")), *line, *end]

    def width_of(self, entry: SessionHit) -> int:
        info = entry.session
        place = 19 if self.everywhere else 0
        said = 0 if entry.message_id is None else cell_len(entry.line) + 14
        return cell_len(one_line(info.title or info.preview, 200)) + said + 10 + place + 7 + 3

    def preview(self, entry: SessionHit) -> str:
        info = entry.session
        unread = ""
        try:
            others, said = self.agent.store.messages.tree_size(info.id)[1], self.agent.store.messages.said(info)
        except StoreError:
            others, said, unread = 0, info.messages, "partly unreadable"
        branches = f" and {plural(others, 'more branch', 'more branches')}" if others else ""
        facts = (
            one_line(info.project, 200) if info.project != self.project else "",
            one_line(info.title, 80) if entry.message_id is not None else "",
            "on another branch (/rewind to go there)" if entry.left_behind else "",
            one_line(info.model, 60),
            "a fork of another session" if info.copied else "",
            "handed off from another session" if info.state.handed_from else "",
            plural(said, "message") + branches,
            info.id,
            unread,
        )
        words = entry.line if entry.message_id is not None else " ".join(clean(info.preview).split())
        return f"{shorten(words, 300) or 'no text'}\n{' · '.join(filter(None, facts))}"

    def chosen(self, entry: SessionHit) -> None:
        query = self.searched if search_words(self.searched) else ""
        self.dismiss(ResumeAt(entry.session.id, query, entry.message_id, entry.left_behind))

    def _choose(self, index: int) -> None:
        """Enter means what the typed text finds, also where that is not there yet."""
        if self._waits:
            self._entered = True
        else:
            super()._choose(index)

    def action_all(self) -> None:
        self.everywhere = not self.everywhere
        self.search(self.search_text)


def _marked(line: str, spans: Sequence[tuple[int, int]], room: int, style: Style, paint: Paint) -> list[Piece]:
    """A line in exactly ``room`` cells, around the first of its ``spans``, which look found."""
    first = spans[0][0] if spans else 0
    if cell_len(line) > room and first > room // 3:
        start = first - room // 3
        line, spans = "…" + line[start + 1 :], [(max(1, a - start), b - start) for a, b in spans]
    out: list[Piece] = []
    at = 0
    for begin, end in [*spans, (len(line), len(line))]:
        for text, look in ((line[at:begin], style), (line[begin:end], paint("warning", reverse=True))):
            if text and room > 0:
                out.append((shorten(text, room), look))
                room -= cell_len(out[-1][0])
        at = end
    return [*out, (" " * room, style)]


WIDE = 76
"""Cells from which on a branch's row says what its numbers are."""

SHOWN = 4
"""Messages of the user's that are listed of a branch."""

DEEPEST = 3
"""Levels of branches of branches that are drawn further in."""


@dataclass(slots=True, frozen=True)
class WayBack:
    """Go back to before ``message``, or to where ``branch`` ends; ``files`` too; or a ``fork`` there instead."""

    message: Message | None = None
    branch: Branch | None = None
    files: bool = False
    fork: bool = False


class RewindPicker(Picker["Message | Branch", WayBack]):
    """The conversation, newest message first, and where it forks the branches that are not in it."""

    TITLE_TEXT = "Rewind to before a message"
    PLACEHOLDER = "search your messages"
    HINT = "Enter go back · Ctrl+R files · Ctrl+F fork · Tab branch · Esc close"
    PREVIEW_LINES = 5
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "files", "With files", show=False, priority=True),
        Binding("ctrl+f", "fork", "Fork", show=False, priority=True),
        Binding("tab", "branch(1)", "Next branch", show=False, priority=True),
        Binding("shift+tab", "branch(-1)", "Previous branch", show=False, priority=True),
    ]

    def __init__(self, agent: Agent, clock: Callable[[], float]) -> None:
        super().__init__()
        self.agent = agent
        self.now = time.time()
        self.guard = TypingGuard(clock)
        path = agent.conversation.path
        self.leave = {m.id: len(path) - i for i, m in enumerate(path)}
        self.all = list(tree(path, agent.branches.all()))
        self.told: dict[str | None, str] = {}
        self.moving: set[str | None] = set()
        """Where going to would put files as they were."""

    def start_at(self) -> int:
        return next((i for i, entry in enumerate(self.shown) if isinstance(entry, Message)), 0)

    def entries(self, search: str) -> Sequence[Message | Branch]:
        wanted = search.lower()
        return [entry for entry in self.all if wanted in self._words(entry)] if wanted else self.all

    @staticmethod
    def _words(entry: Message | Branch) -> str:
        said = [entry] if isinstance(entry, Message) else [m for m in entry.own if m.role == "user"]
        return "\n".join(message.text for message in said).lower()

    def draw(self, entry: Message | Branch, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        color = paint("primary" if here else "foreground")
        if isinstance(entry, Message):
            return [(fit(first_words(entry), max(4, width - 8)), color), (self._age(entry.created), paint("muted"))]
        lead = "  " * min(entry.depth, DEEPEST) + "├─ "
        size = tokens(entry.tokens, True)
        count = f"{plural(len(entry.own), 'message')} · {size}" if width >= WIDE else f"{len(entry.own):,} · {size}"
        room = 22 if width >= WIDE else 12
        space = max(4, width - 8 - room - len(lead))
        return [
            (lead, paint("accent")),
            (fit(words_of(entry, space), space), color),
            (fit(count, room, right=True), paint("faint")),
            (self._age(entry.updated), paint("muted")),
        ]

    def width_of(self, entry: Message | Branch) -> int:
        if isinstance(entry, Message):
            return max(WIDE, cell_len(first_words(entry)) + 8)
        return WIDE + 4 + 22

    def _age(self, then: float) -> str:
        return " " + (fit(age(then, self.now), 7, right=True) if then else " " * 7)

    def refused(self) -> Container[str]:
        entry = self.current
        no = () if any(isinstance(each, Branch) for each in self.shown) else ("Tab",)
        if entry is None:
            return (*no, "Enter", "Ctrl+R", "Ctrl+F")
        return no if head_of(entry) in self.moving else (*no, "Ctrl+R")

    def preview(self, entry: Message | Branch) -> str:
        head = head_of(entry)
        if head not in self.told:
            self.told[head] = self._changes(head)
        facts = leaves_text(self.leave[entry.id]) if isinstance(entry, Message) else branch_text(entry)
        said = clean(entry.text)[:600] if isinstance(entry, Message) else _all_said(entry)
        return f"{facts}{self.told[head]}\n\n{said}"

    def _changes(self, head: str | None) -> str:
        try:
            moved = self.agent.branches.files(head)
            self.moving |= {head} if moved.put else set()
            files = files_text(moved, self.agent.root)
        except StoreError as error:
            files = f"Cannot read its files: {error}"
        parts = [files, lost_text(self.agent.branches.lost(head), would=True)]
        return "".join(f" {part}" for part in parts if part)

    def on_screen_resume(self) -> None:
        self.guard.appeared()

    def chosen(self, entry: Message | Branch) -> None:
        self._answer(entry)

    def action_files(self) -> None:
        self._answer(self.current, files=True)

    def action_fork(self) -> None:
        self._answer(self.current, fork=True)

    def action_branch(self, by: int) -> None:
        """To the next row of a branch, from the last on to the first."""
        places = [i for i, entry in enumerate(self.shown) if isinstance(entry, Branch)][::by]
        following = [i for i in places if (i - self.rows.cursor) * by > 0] or places
        if following:
            self.rows.move_to(following[0])

    def _answer(self, entry: Message | Branch | None, *, files: bool = False, fork: bool = False) -> None:
        """A key that came with those that opened this screen chooses nothing."""
        if entry is None or self.guard.accidental():
            return
        message, branch = (entry, None) if isinstance(entry, Message) else (None, entry)
        self.dismiss(WayBack(message, branch, files, fork))


def _all_said(branch: Branch) -> str:
    said = [message for message in branch.own if message.role == "user"] or [branch.first]
    more = [f"and {plural(len(said) - SHOWN, 'more message')} of yours"] if len(said) > SHOWN else []
    return "\n".join([*(f"› {first_words(message)}" for message in said[:SHOWN]), *more])
