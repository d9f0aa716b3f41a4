"""What a user waits for and sees: the start, the first word, keys, and what is written while an answer streams."""

from __future__ import annotations

import re
import time
from statistics import median, quantiles

from tests.benchmarks.league import conversation
from tests.benchmarks.league.driving import COLUMNS, LINES, Hung, Server
from tests.benchmarks.league.rivals import Place, Rival
from tests.benchmarks.watched import Watched, watched

CLEARS = re.compile(rb"\x1b\[[23]J|\x1bc")
KEYS = 30
_BEGIN = "begin"
START_SECONDS = 60.0
KEY_SECONDS = 10.0
STREAM_SECONDS = 12


def timed(rival: Rival, place: Place, server: Server, environment: dict[str, str]) -> dict[str, float]:
    """Seconds of the start and of the first word, milliseconds of keys, clears and bytes a second while streaming.

    Raises Hung or EOFError where the agent does not do what it should."""
    # A terminal shows what is typed before a program reads keys itself; not here, so that what appears is the agent's.
    command = ["sh", "-c", f'stty -echo; printf {_BEGIN}; exec "$@"', "sh", *rival.command(place)]
    cleared = ["env", "-i", *(f"{key}={value}" for key, value in environment.items()), *command]
    with watched(cleared, place.project, {}, (COLUMNS, LINES)) as program:
        begun = program.wait_for(_BEGIN.encode(), 0, 10)
        figures = {"start_s": _first_key(program) - begun}
        program.watch(3.0)
        program.type(b"\x15" + b"\x7f" * 200)
        program.watch(1.0)
        keys = _keys(program, KEYS)
        figures |= {"key_p50_ms": median(keys), "key_p95_ms": quantiles(keys, n=20)[-1]}
        program.type(b"\x15" + b"\x7f" * (KEYS + 10))
        program.watch(1.0)
        return figures | _streamed(program, server)


def _first_key(program: Watched) -> float:
    """Types a key until one is shown."""
    key = "♥".encode()
    end = time.perf_counter() + START_SECONDS
    while time.perf_counter() < end:
        program.type(key)
        stop = time.perf_counter() + 0.1
        while time.perf_counter() < stop:
            program.watch(0.01)
            if key in program.seen:
                return time.perf_counter()
    raise Hung(f"no key was shown within {START_SECONDS:.0f} s")


def _keys(program: Watched, number: int) -> list[float]:
    """Milliseconds from pressing each key until it is shown; each is one that stands nowhere else."""
    found = []
    for n in range(number):
        program.watch(0.12)
        character = chr(0x100 + n).encode()
        since, at = program.written, program.type(character)
        try:
            found.append(1e3 * (program.wait_for(character, since, KEY_SECONDS) - at))
        except TimeoutError as error:
            raise Hung(f"a key was not shown within {KEY_SECONDS:.0f} s") from error
    return found


def _streamed(program: Watched, server: Server) -> dict[str, float]:
    server.tell(seconds=STREAM_SECONDS)
    since = len(server.seen())
    program.type(conversation.message("stream-1").encode())
    program.watch(1.0)
    begun, entered = program.written, program.type(b"\r")
    try:
        word = program.wait_for(conversation.FIRST_WORD.encode(), begun, 30)
    except TimeoutError as error:
        raise Hung("the answer's first word was not shown within 30 s") from error
    asked = next(one for one in server.seen()[since:] if one["kind"] == "turn")
    start, written = time.perf_counter(), program.written
    program.watch(1.0)
    keys = _keys(program, KEYS // 2)
    program.watch(max(0.0, start + STREAM_SECONDS - 2 - time.perf_counter()))
    seconds, data = time.perf_counter() - start, bytes(program.seen[written:])
    return {
        "first_word_s": word - entered,
        "before_request_s": asked["at"] - entered,
        "stream_key_p50_ms": median(keys),
        "stream_key_p95_ms": quantiles(keys, n=20)[-1],
        "clears": float(len(CLEARS.findall(data))),
        "bytes_a_second": len(data) / seconds,
        "synchronized": float(b"\x1b[?2026h" in data),
    }
