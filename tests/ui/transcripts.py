"""An app that holds a transcript, and what its screen says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.message import Message as Posted

from agent_tui.models.messages import Message, Part, TextPart, user_message
from agent_tui.ui.transcript import Transcript


class Holder(App[None]):
    """Keeps what the transcript posted in ``posted``."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.transcript = Transcript(**options)
        self.posted: list[Posted] = []

    def compose(self) -> ComposeResult:
        yield self.transcript

    def on_transcript_link_clicked(self, message: Posted) -> None:
        self.posted.append(message)

    def on_link_clicked(self, message: Posted) -> None:
        self.posted.append(message)

    def on_copy_requested(self, message: Posted) -> None:
        self.posted.append(message)

    def on_pin_asked(self, message: Posted) -> None:
        self.posted.append(message)

    def on_screen_asked(self, message: Posted) -> None:
        self.posted.append(message)

    def on_find_changed(self, message: Posted) -> None:
        self.posted.append(message)

    def on_follow_changed(self, message: Posted) -> None:
        self.posted.append(message)


def answer(text: str, id: str = "m1", *parts: Part) -> Message:
    """A complete answer with ``parts`` before its text."""
    return Message(id, "assistant", [*parts, TextPart(text)])


def screen(transcript: Transcript) -> list[str]:
    """The drawn lines, as a terminal would get them, without trailing spaces."""
    strips = [transcript.render_line(y) for y in range(transcript.size.height)]
    width = transcript.scrollable_content_region.width
    assert all(cell_len(strip.text) == width for strip in strips), "a line is not as wide as the view"
    return [strip.text.rstrip() for strip in strips]


def body(transcript: Transcript) -> list[str]:
    """The drawn lines without empty ones at both ends."""
    lines = screen(transcript)
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def chat(count: int) -> list[Message]:
    """``count`` questions with an answer of ten lines each."""
    out: list[Message] = []
    for n in range(count):
        question = user_message(f"question {n}")
        question.id = f"u{n}"
        out += [question, answer("\n".join(f"- answer {n} line {k}" for k in range(10)), f"a{n}")]
    return out


def texts(lines: Sequence[str]) -> str:
    return "\n".join(lines)
