"""The one conversation that every agent has, what its model answers, and the facts that are planted in it.

A message ends with its name in parentheses, by which the server knows what to answer: how many tool results came after
it is how far the turn is.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

from tests.support import floor
from tests.support.floor import Act, Plan, Read, Turn
from tests.support.true_provider.wire import words_of

MARK = re.compile(r"\(part ([a-z]+-\d+)\)")
FIRST_WORD = "Zephyrus"
"""Begins the streamed answer and stands nowhere else."""

SHORT, FILES, OWN_COMMAND = "short talk", "files read", "a command of the user's"
STOPPED, RESTARTED, COMPACTED = "a stopped answer", "after a restart", "after a compaction"
SCENES = (SHORT, FILES, OWN_COMMAND, STOPPED, RESTARTED, COMPACTED)
USERS_COMMAND = "!cat columns.txt"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that later work depends on. ``found`` is the text that must still be in a request."""

    kind: str
    found: str


FACTS = (
    Fact("decision", "retry limit stays at 7"),
    Fact("decision", "SQLite and not Postgres"),
    Fact("decision", "amounts are stored in cents"),
    Fact("the user's words", "never touch the legacy importer"),
    Fact("the user's words", "Oslo has to see it before Friday"),
    Fact("path", "orders.csv"),
    Fact("path", "measured.txt"),
    Fact("path", "ledger.py"),
    Fact("path", "timings.log"),
    Fact("error", "E4417: ledger out of balance by 318 cents"),
    Fact("error", "TimeoutError: gateway oslo-3 gave no answer"),
)

MESSAGES = {
    "talk-1": (
        "We work on a small bookkeeping service. Decided, for all of this session: the retry limit stays at 7, we use "
        "SQLite and not Postgres, and amounts are stored in cents. Answer in a few sentences."
    ),
    "talk-2": (
        "Two more things: never touch the legacy importer, and Oslo has to see it before Friday. Answer shortly."
    ),
    "talk-3": "Go on.",
    "files-1": "Read orders.csv and say what it holds.",
    "files-2": "Read measured.txt, then digits.txt.",
    "files-3": "Read ledger.py, then timings.log, and say what went wrong.",
    "files-4": "Go on.",
    "command-1": "Go on.",
    "stream-0": "Tell it at length.",
    "stopped-1": "Go on.",
    "again-1": "Go on.",
    "again-2": "Go on.",
    "again-3": "Go on.",
    "again-4": "Go on.",
    "after-1": "Go on.",
    "stream-1": "Tell it at length.",
}
READS = {
    "files-1": ("orders.csv",),
    "files-2": ("measured.txt", "digits.txt"),
    "files-3": ("ledger.py", "timings.log"),
}
_TALK = (
    "Understood. The service keeps its books in one table, every entry has two sides that add up to nothing, and what "
    "is sent twice is booked once because the key of a request is kept with it. I would begin with the tests of the "
    "ledger, then the reader of the orders, and leave the reports for later."
)
_PLAIN = "The work goes on as agreed. Nothing else has to be said about it here, and the next step is clear."
_STREAMED = (
    "the parser reads every line of this module and keeps what it found in a table that callers may change later "
    "because tests expect order while errors are raised only when something was written twice or never closed"
)
STREAMED = words_of(_STREAMED)


FLOOR: dict[str, Turn] = {}
"""The turns of the session that ``floor`` plants its facts in, by the names that they have here."""
ROUNDS: list[list[str]] = []
"""Those before each of its compactions."""
for _turns in floor.session():
    ROUNDS.append([f"floor-{len(FLOOR) + n}" for n in range(len(_turns))])
    FLOOR.update(zip(ROUNDS[-1], _turns, strict=True))
FLOOR["floor-999"] = floor.idle(999)
"""What is said after the last one."""


def message(name: str) -> str:
    return f"{FLOOR[name].says if name in FLOOR else MESSAGES[name]} (part {name})"


def acts(name: str) -> list[Act]:
    """The tools that the model calls in a turn, one after the other. Each agent has a plan approved in its own way:
    none is handed in here."""
    if name in FLOOR:
        return [act for act in FLOOR[name].does if not isinstance(act, Plan)]
    return [Read(file) for file in READS.get(name, ())]


def answer(name: str) -> str:
    """What the model says at the end of a turn: the same in every turn of one kind."""
    if name in FLOOR:
        return FLOOR[name].answers
    return _TALK if name.startswith("talk") and name != "talk-3" else "Done so far; I go on when you say so."


def summary(prompt: str) -> str:
    """A summary that names no fact, in the form that the prompt asks for."""
    heads = [head for head in dict.fromkeys(re.findall(r"^#{2,3} .+$", prompt, re.M)) if len(head) < 80]
    text = "\n\n".join(f"{head}\n{_PLAIN}" for head in heads) or _PLAIN
    tags = re.findall(r"<(summary|state_snapshot|compressed_chat_history)>", prompt)
    return f"<{tags[-1]}>\n{text}\n</{tags[-1]}>" if tags else text


def write_files(folder: Path) -> None:
    """The project of the conversation, the same at every time: CSV, columns of digits, code, a log with its errors.

    Each below 20 kB, the most that an agent's tool for reading takes whole."""
    rng = random.Random(24)
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["id,customer,placed,net_cents,tax_cents,weight_g,lat,lon"]
    for n in range(300):
        place = f"{rng.uniform(57, 64):.6f},{rng.uniform(5, 15):.6f}"
        rows.append(
            f"{104_000 + n},C-{rng.randint(10_000, 99_999)},2026-{rng.randint(1, 11):02}-{rng.randint(1, 28):02},"
            f"{rng.randint(900, 250_000)},{rng.randint(90, 60_000)},{rng.randint(20, 40_000)},{place}"
        )
    columns = ["  ".join(f"{rng.uniform(0, 1_000):10.4f}" for _ in range(6)) for _ in range(265)]
    short = ["  ".join(f"{rng.uniform(0, 1_000):10.4f}" for _ in range(6)) for _ in range(110)]
    digits = ["".join(rng.choices("0123456789", k=100)) for _ in range(190)]
    code = ['"""Books entries."""', "", "from dataclasses import dataclass", ""]
    for n in range(64):
        code += [
            "",
            f"def book_{n}(entries: list[Entry], account: str, limit: int = {rng.randint(1, 90)}) -> int:",
            f'    """Adds up what account number {n} has received."""',
            "    total = 0",
            "    for entry in entries:",
            "        if entry.account == account and entry.cents <= limit * 100:",
            f"            total += entry.cents + {rng.randint(1, 9)}",
            "    return total",
        ]
    log = []
    for n in range(230):
        log.append(
            f"2026-11-{rng.randint(1, 22):02}T{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
            f".{rng.randint(0, 999):03}Z INFO worker-{rng.randint(1, 8)} booked {rng.randint(1, 99)} entries in "
            f"{rng.uniform(0.1, 90):.3f} ms"
        )
        if n == 90:
            log.append("2026-11-20T03:12:09.114Z ERROR E4417: ledger out of balance by 318 cents")
        if n == 170:
            log.append("2026-11-20T03:14:41.870Z ERROR TimeoutError: gateway oslo-3 gave no answer")
    for name, lines in {
        "orders.csv": rows,
        "measured.txt": columns,
        "columns.txt": short,
        "digits.txt": digits,
        "ledger.py": code,
        "timings.log": log,
    }.items():
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
