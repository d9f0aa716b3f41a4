"""Our machine of vim's keys, asked what becomes of a text."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.ui.vim.machine import Vim
from agent_tui.ui.vim.text import Place, TextBuffer

KEYS = {"\x1b": "escape", "\x12": "ctrl+r"}


@dataclass(slots=True, frozen=True)
class Case:
    """``keys`` are typed at ``place`` of ``text``; ``\\x1b`` is Esc, ``\\x12`` Ctrl+R."""

    text: str
    place: Place
    keys: str


@dataclass(slots=True, frozen=True)
class Answer:
    """The text, the cursor, and what the unnamed register holds."""

    text: str
    place: Place
    kept: str


def answer_of_ours(case: Case) -> Answer:
    """What our machine makes of it; in insert mode the keys are put in as the prompt would."""
    vim = Vim()
    vim.begin("kept")
    typed(vim, '\x1byiw"ayiwfQ')
    vim.begin(case.text, case.place)
    vim.press("escape")
    typed(vim, "i\x1b")
    vim.sync(case.text, case.place)
    typed(vim, case.keys + "\x1b")
    return Answer(str(vim.text), vim.cursor, str(vim.registers.get("") or ""))


def typed(vim: Vim, keys: str) -> None:
    """Types keys as they come from a keyboard."""
    for key in keys:
        if vim.mode == "insert" and key != "\x1b":
            now = vim.text.replaced(vim.cursor, vim.cursor, key)
            vim.sync(str(now), TextBuffer.advanced(now, vim.cursor, key))
        else:
            vim.press(KEYS.get(key, key))
