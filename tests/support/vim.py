"""vim itself, asked what becomes of a text; and our machine, asked the same."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.ui.vim.machine import Vim
from agent_tui.ui.vim.text import Place, Text

KEYS = {"\x1b": "escape", "\x12": "ctrl+r"}

_SCRIPT = r"""
set nocompatible noautoindent shiftwidth=4 expandtab nojoinspaces startofline cpoptions-=; encoding=utf-8 noswapfile
set noshowcmd nomore belloff=all undolevels=1000
let out = []
for case in json_decode(join(readfile($CASES), "\n"))
  set undolevels=-1
  silent %delete _
  call setline(1, 'kept')
  call feedkeys("yiw\"ayiwfQ", 'xt')
  call setline(1, case[0])
  set undolevels=1000
  call feedkeys("i\<Esc>", 'xt')
  call setcursorcharpos(case[1], case[2])
  silent! call feedkeys(case[3] .. "\<Esc>", 'xt')
  let place = getcursorcharpos()
  call add(out, [getline(1, '$'), place[1], place[2], getreg('"'), getregtype('"')])
endfor
call writefile([json_encode(out)], $ANSWERS)
qall!
"""


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


def available() -> bool:
    """Whether vim is here: nothing of the program needs it."""
    return shutil.which("vim") is not None


def answers_of_vim(cases: Sequence[Case], folder: Path) -> list[Answer]:
    """What vim makes of them, all in one run."""
    given = [[case.text.split("\n"), case.place[0] + 1, case.place[1] + 1, case.keys] for case in cases]
    files = {name: folder / name for name in ("cases", "answers", "script")}
    files["cases"].write_text(json.dumps(given), encoding="utf-8")
    files["script"].write_text(_SCRIPT, encoding="utf-8")
    environment = {
        "CASES": str(files["cases"]),
        "ANSWERS": str(files["answers"]),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
    }
    command = ["vim", "-u", "NONE", "-U", "NONE", "-i", "NONE", "-N", "-n", "-T", "dumb", "--not-a-term", "-S"]
    subprocess.run(
        [*command, str(files["script"])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment | {"PATH": "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin"},
        timeout=600,
        check=False,
    )
    found = json.loads(files["answers"].read_text(encoding="utf-8"))
    return [Answer("\n".join(lines), (row - 1, column - 1), kept) for lines, row, column, kept, _ in found]


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
    return Answer(str(vim.text), vim.cursor, vim.register())


def typed(vim: Vim, keys: str) -> None:
    """Types keys as they come from a keyboard."""
    for key in keys:
        if vim.mode == "insert" and key != "\x1b":
            now = vim.text.replaced(vim.cursor, vim.cursor, key)
            vim.sync(str(now), Text.advanced(now, vim.cursor, key))
        else:
            vim.press(KEYS.get(key, key))
