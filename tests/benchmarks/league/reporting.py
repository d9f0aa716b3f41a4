"""The tables of the league, in Markdown. What could not be measured says so, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.benchmarks.league import versions
from tests.benchmarks.league.conversation import FACTS, SCENES
from tests.benchmarks.league.everyone import RIVALS
from tests.benchmarks.league.running import Result, Row
from tests.benchmarks.league.vocabularies import NAMES

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
NOTHING = "not measured"
_TIMES = (
    ("start to first key", "start_s", "{:.2f} s"),
    ("Enter to request", "before_request_s", "{:.2f} s"),
    ("Enter to first word", "first_word_s", "{:.2f} s"),
    ("key p50", "key_p50_ms", "{:.0f} ms"),
    ("p95", "key_p95_ms", "{:.0f} ms"),
    ("key while streaming p50", "stream_key_p50_ms", "{:.0f} ms"),
    ("p95", "stream_key_p95_ms", "{:.0f} ms"),
    ("screen clears", "clears", "{:.0f}"),
    ("bytes a second", "bytes_a_second", "{:,.0f}"),
    ("load of the machine", "load", "{:.0f}"),
)


def put(path: Path, text: str) -> None:
    """Replaces what stands between the marks of a file."""
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", "utf-8")


def tables(found: dict[str, list[Result]]) -> str:
    """All tables. ``found`` is what was measured by vocabulary."""
    every = [result for results in found.values() for result in results]
    dates = sorted({result.date for result in every if result.date})
    minutes = sum(result.seconds for result in every) / 60
    names = "; ".join(NAMES[name] for name in found)
    parts = [f"Measured {' and '.join(dates)}, {minutes:.0f} minutes in all. Vocabularies: {names}."]
    for vocabulary, results in found.items():
        parts += [f"### Counted by {NAMES[vocabulary]}", _worst(results), _errors(results)]
    first = next(iter(found.values()))
    for vocabulary, results in found.items():
        parts += [f"### Asking and compacting ({NAMES[vocabulary]})", _compactions(results)]
    if any(result.times for result in first):
        parts += ["### Waiting", _waiting(first)]
    parts += ["### Who took part", _agents(first), _missing(found)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _title(result: Result) -> str:
    return RIVALS[result.name].title


def _error(row: Row) -> int | None:
    return None if row.shown is None else row.shown - row.true


def _signed(value: int | None) -> str:
    return NOTHING if value is None else f"{value:+,}".replace("-", "−")


def _worst(results: list[Result]) -> str:
    """The worst row of ours, before all else."""
    ours = [(result, row) for result in results if not RIVALS[result.name].package for row in result.rows]
    known = [(abs(error), result, row) for result, row in ours if (error := _error(row)) is not None]
    if not known:
        return ""
    _, result, row = max(known, key=lambda one: one[0])
    return (
        f"The worst row of ours: **{_title(result)}, {row.scene}: shown {_number(row)}, true {row.true:,}, "
        f"error {_signed(_error(row))}** ({_share(result, _error(row) or 0)} of the window)."
    )


def _share(result: Result, tokens: float) -> str:
    return f"{100 * tokens / RIVALS[result.name].window:.1f} %".replace("-", "−")


def _number(row: Row) -> str:
    if row.shown is None:
        return NOTHING
    spread = "" if row.high is None else f" ± {row.high - row.shown:,}"
    return f"{row.shown:,}{spread}"


def _errors(results: list[Result]) -> str:
    """Each agent's errors by scene, the worst first among ours, then among the others."""

    def cells(result: Result) -> list[str]:
        rows = {row.scene: row for row in result.rows}
        return [_title(result), *(_signed(_error(rows[s])) if s in rows else NOTHING for s in SCENES)]

    return _table(["error in tokens", *SCENES], map(cells, results))


def _compactions(results: list[Result]) -> str:
    kinds = {kind: [fact.found for fact in FACTS if fact.kind == kind] for kind in dict.fromkeys(f.kind for f in FACTS)}

    def cells(result: Result) -> list[str]:
        asking = _signed(result.asking)
        quiet = (
            "" if not RIVALS[result.name].headless else NOTHING if result.headless is None else _signed(result.headless)
        )
        told = [f"{len(result.kept[kind])} of {len(all_)}" if result.kept else NOTHING for kind, all_ in kinds.items()]
        kept = f"**{sum(map(len, result.kept.values()))} of {len(FACTS)}**" if result.kept else NOTHING
        row = next((row for row in result.rows if row.scene == SCENES[-1]), None)
        size = f"{result.summary_input:,}" if result.summary_input else NOTHING
        cached = NOTHING if result.summary_cached is None else f"{100 * result.summary_cached:.0f} %"
        after = f"{row.true:,}" if row else NOTHING
        return [_title(result), asking, quiet, f"{result.side_tokens:,}", *told, kept, after, size, cached]

    head = [
        "agent",
        "asking adds",
        "asking without a screen adds",
        "tokens of other requests",
        *kinds,
        "facts kept",
        "next input after it",
    ]
    return _table([*head, "summary's input", "of it cached"], map(cells, results))


def _waiting(results: list[Result]) -> str:
    def cells(result: Result) -> list[str]:
        times = result.times
        return [_title(result), *(form.format(times[key]) if key in times else NOTHING for _, key, form in _TIMES)]

    return _table(["agent", *(head for head, _, _ in _TIMES)], map(cells, results))


def _agents(results: list[Result]) -> str:
    def cells(result: Result) -> list[str]:
        rival = RIVALS[result.name]
        package = versions.AGENTS[rival.name].partition(":")[2].split(" ", 1)[-1] if rival.package else "this checkout"
        asked = f"`{rival.ask}`" if rival.ask else "stands on the screen"
        return [rival.title, f"`{package}`", rival.dialect, rival.told, asked, "; ".join(rival.notes)]

    head = ["agent", "version", "dialect", "where it is told the window", "asked by", "note"]
    return _table(head, map(cells, results))


def _missing(found: dict[str, list[Result]]) -> str:
    lines = [
        f"- {_title(result)}, {name} ({vocabulary}): {_plain(why)}"
        for vocabulary, results in found.items()
        for result in results
        for name, why in result.missing.items()
    ]
    untimed = [one for one in next(iter(found.values())) if not one.times and not one.missing]
    lines += [f"- {_title(one)}, times: they were not taken in this run." for one in untimed]
    lines += [f"- {name}: {why}." for name, why in versions.LEFT_OUT.items()]
    return "\n".join(["### Not measured", "", *lines])


def _plain(why: str) -> str:
    """The first sentence of a reason, without the screen that came with it."""
    return " ".join(why.partition("; the screen:")[0].split())[:300] + "."
