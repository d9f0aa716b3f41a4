"""What commands have to say in any width: nothing is cut but beside a bar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent_tui.commands.info import Action, Info, InfoLine, Row, Section, layout

pytestmark = pytest.mark.quick

WORDS = st.lists(st.sampled_from(["a", "rule", "bash(npm", "日本語", "x" * 50, "é", "→"]), max_size=12).map(" ".join)
ROWS = st.builds(
    Row, WORDS, WORDS, st.sampled_from(["", "$0.42", "≥ $0.0087", "1,200,000"]), st.sampled_from(["", "ok", "on"])
)
INFOS = st.lists(st.builds(Section, WORDS, st.lists(ROWS, max_size=5), WORDS), min_size=1, max_size=3)


def text_of(line: InfoLine) -> str:
    return "".join(text for text, _ in line.pieces)


@given(INFOS, st.integers(20, 200))
def test_every_line_fits_and_every_word_is_there(sections: list[Section], width: int) -> None:
    info = Info("Title", sections)
    lines = layout(info, width)
    assert all(cell_len(text_of(line)) <= width for line in lines)
    laid = "".join("".join(text_of(line).split()) for line in lines)
    for section in sections:
        for row in section.rows:
            own = [line for line in lines if line.row is row]
            assert own[0].first and not any(line.first for line in own[1:]), "a cursor has one place on it"
            drawn = "".join("".join(text_of(line).split()) for line in own)
            assert sorted(drawn.strip("✓●")) == sorted("".join((row.name + row.value + row.text).split()))
        assert "".join(section.title.split()) in laid and "".join(section.note.split()) in laid


def bars(width: int) -> list[str]:
    rows = [Row(f"{n}. a turn {'日本 ' * 9 * n}", "93 % cached · 12 calls", "$0.42", bar=n / 2) for n in range(3)]
    return [text_of(line) for line in layout(Info("Usage", [Section("", rows)]), width)]


def test_bars_are_one_line_each_below_each_other_in_eighths() -> None:
    for width in (40, 56, 76, 126):
        lines = bars(width)
        assert len(lines) == 3 and all(cell_len(line) <= width for line in lines)
    assert all(cell_len(line) <= 20 for line in bars(20)) and not any("█" in line for line in bars(20))
    lengths = [sum("▏▎▍▌▋▊▉█".index(sign) + 1 for sign in line if sign in "▏▎▍▌▋▊▉█") for line in bars(76)]
    assert lengths[0] == 0 and lengths[2] == 2 * lengths[1] > 0
    assert "93 % cached" in bars(56)[0] and "12 calls" not in bars(56)[0] and "12 calls" in bars(126)[0]


def test_as_lines_it_has_no_bars_and_names_the_commands_that_change_it() -> None:
    info = Info(
        "Rules",
        [Section("Here", [Row("allow", "x", bar=1.0)])],
        "/rules",
        [Action("d", "remove", "/rules remove {row}", "RULE")],
    )
    assert info.text.splitlines() == ["Here", "  allow  x", "", "Change it with /rules remove RULE."]


def test_a_search_keeps_rows_with_all_its_words_and_whole_sections_by_their_title() -> None:
    info = Info(
        "Tools", [Section("Built in", [Row("read", "Reads a file"), Row("bash")]), Section("Git", [Row("log", "file")])]
    )
    assert [row.name for row in info.matching("file reads").rows] == ["read"]
    assert [row.name for row in info.matching("built").rows] == ["read", "bash"]
    assert info.matching("zebra").sections == [] and info.matching(" ") is info


HOSTILE = "ev\x1b]0;title\x07il\x1b[31m\u202eabc\r\n\tz\ud800"


def test_no_character_of_others_acts() -> None:
    info = Info("Title", [Section(HOSTILE, [Row(HOSTILE, HOSTILE, HOSTILE), Row("a", HOSTILE, bar=0.5)], HOSTILE)])
    for text in (info.text.replace("\n", ""), *map(text_of, layout(info, 30)), *map(text_of, layout(info, 200))):
        assert text.isprintable()
