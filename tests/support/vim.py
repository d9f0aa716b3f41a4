"""Vim itself, asked what becomes of a text; our machine, asked the same; and what both are asked."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

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
    return Answer(str(vim.text), vim.cursor, str(vim.registers.get("") or ""))


def typed(vim: Vim, keys: str) -> None:
    """Types keys as they come from a keyboard."""
    for key in keys:
        if vim.mode == "insert" and key != "\x1b":
            now = vim.text.replaced(vim.cursor, vim.cursor, key)
            vim.sync(str(now), Text.advanced(now, vim.cursor, key))
        else:
            vim.press(KEYS.get(key, key))


TEXTS = (
    "hello big world",
    "one two\nthree four five\n\nsix",
    "  foo(bar, baz) end  \n  if x { y; z } else\n}",
    "say \"hi there\" or 'no' `q`  x\nand more",
    "a\nb\nc\nd\ne",
    "foo.bar->baz  qux_1 == 2;\n   indented line\nlast",
    "x {\n  inner one\n  inner two\n}\nafter",
    "\n\npara one\nstill one\n\n\npara two\nend two",
    "trailing   \n   \n  lead",
    "f(a[1], {k: (v)}) g\nh",
    "Mixed CASE Über naïve 日本語テキスト mixed かな x",
)
MOTIONS = (
    *("h", "l", "j", "k", "w", "b", "e", "ge", "W", "B", "E", "gE", "0", "^", "$", "gg", "G", "}", "%", "_", "g_"),
    *("+", "-", "|", "fo", "Fe", "t ", "Te", ";", ",", "3l", "2j", "2e", "2w", "2fo", "2}", "5G", "2G", "3$", "{"),
)
OBJECTS = tuple(around + key for around in "ia" for key in "wW\"'`([{<bBp)")
OPERATORS = ("d", "c", "y", ">", "<", "gu", "gU", "g~")
PLAIN = (
    *("x", "X", "D", "Y", "p", "P", "J", "gJ", "~", "rZ", "u", "\x12", ".", "3x", "2p", "2J", "3~", "2rQ", "dd", "yy"),
    *("2dd", "2yy", ">>", "<<", "guu", "gUU", "g~~", "2u", '"ayiw', '"ap', '"_dd', "xp", "ddp", "yyP", "2P", "gugu"),
)
TYPING = (
    *("iab\x1b", "aX Y\x1b", "Iz\x1b", "Aend\x1b", "onew\x1b", "Oup\x1b", "sq\x1b", "Sfoo\x1b", "Cxy\x1b", "ccL\x1b"),
    *("3ino \x1b", "2ook\x1b", "2Ahi\x1b"),
)
ON_SELECTED = (
    *(
        "d",
        "y",
        "x",
        "cW\x1b",
        "sW\x1b",
        ">",
        "<",
        "u",
        "U",
        "~",
        "J",
        "gJ",
        "rR",
        "p",
        "P",
        "o",
        "X",
        "D",
        "Y",
        "Sl\x1b",
    ),
)
UNEVEN = frozenset({"h", "0", "^", "|", "ge", "gE", "{"})
"""Motions that may have nowhere to go: vim changes the case of a character then, or moves the cursor all the same."""


def command(random: Random) -> str:
    """One command, complete."""
    kind = random.random()
    if kind < 0.22:
        return random.choice(MOTIONS)
    if kind < 0.5:
        operator, target = random.choice(OPERATORS), random.choice((*MOTIONS, *OBJECTS))
        if target in UNEVEN and operator[0] == "g":
            target = "w"
        # What a failed change would be followed by is harmless in normal mode.
        return operator + target + ("web\x1b" if operator == "c" else "")
    if kind < 0.68:
        return random.choice(PLAIN)
    if kind < 0.82:
        return random.choice(TYPING)
    if random.random() < 0.5:
        target = "".join(random.choice(MOTIONS) for _ in range(random.randint(0, 2)))
        return random.choice("vV") + target + random.choice(ON_SELECTED) + "\x1b"
    return "v" + random.choice(OBJECTS) + random.choice(ON_SELECTED) + "\x1b"


def case(random: Random, longest: int) -> Case:
    """A text, a place in it and up to ``longest`` commands."""
    text = random.choice(TEXTS)
    lines = text.split("\n")
    row = random.randrange(len(lines))
    column = random.randrange(max(1, len(lines[row])))
    keys = "".join(command(random) for _ in range(random.randint(1, longest)))
    # In a single line vim 9.0 goes to its end with `{`.
    return Case(text, (row, column), keys if len(lines) > 1 else keys.replace("{", "b"))
