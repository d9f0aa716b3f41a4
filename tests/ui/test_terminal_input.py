"""What a terminal sends, byte for byte: pastes are text to their end, keys are what was meant, and nothing fails."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual import events

from agent_tui.terminal_input import (
    BURST,
    ESCAPE_WAIT,
    LOST,
    SEQUENCE_WAIT,
    SILENCE,
    KeyPress,
    PastedText,
    TerminalInput,
    TerminalReader,
    TerminalReport,
    TypedText,
    pasted_text,
)
from agent_tui.ui.textual_private.keys import TerminalMessages
from tests.benchmarks.fuzz_keys import fuzz
from tests.support.app import Clock
from tests.support.every import every
from tests.support.forms import examples

START, END = b"\x1b[200~", b"\x1b[201~"


def read(*pieces: bytes | float) -> list[TerminalInput]:
    """What comes of bytes, and of seconds between them; enough of those at the end."""
    clock = Clock()
    reader, found = TerminalReader(clock), list[TerminalInput]()
    for piece in (*pieces, 2 * SEQUENCE_WAIT, LOST):
        if isinstance(piece, bytes):
            found += reader.feed(piece)
        else:
            clock.now += piece
            found += reader.tick()
    assert reader.flush() == [] and reader.wait is None
    return found


def pasted(text: str) -> list[TerminalInput]:
    return [PastedText(text)]


def typed(text: str, *keys: str) -> list[TerminalInput]:
    return [TypedText(text), *map(KeyPress, keys)]


EVIL = b"\x1b[m\x03!touch x\r"


@every(
    ("inside", "text"),
    [
        (b"\x1b[31mred\x1b[0m\r\nline\r\n", "red\nline\n"),
        (EVIL, "!touch x\n"),
        (b"a" + START + b"b\r", "ab\n"),
        (b"\xff\xe9b\x00\x07\x7f\tc", "\ufffd\ufffdb\tc"),
        ("é漢\x9b31m\x85".encode(), "é漢"),
        (b"a\x1b[201 b\x1b[201\nc", "a201\nc"),
        (b"\x1b]52;c;AAAA\x07x\x1bP1$r\x1b\\y\x1b[<0;1;1Mz", "xyz"),
        (b"\r\r\n\n", "\n\n\n"),
        (b"x" * 100_000, "x" * 100_000),
    ],
)
def test_a_paste_is_text_to_its_end_mark(inside: bytes, text: str) -> None:
    assert read(START + inside + END + b"k") == [*pasted(text), TypedText("k")]


@settings(max_examples=examples(150, 3_000), deadline=None)
@given(st.binary(max_size=40), st.data())
def test_nothing_in_a_paste_is_a_key_however_it_is_cut(noise: bytes, data: st.DataObject) -> None:
    inside = data.draw(st.sampled_from([b"", EVIL, b"1\r", b"\x1b[13u"])) + noise.replace(b"\x1b[201~", b"")
    whole = START + inside + END
    if whole.count(END) != 1:
        return
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=12)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    seconds = data.draw(st.sampled_from([0.0, 0.01]))
    found = read(*(part for piece in pieces for part in (piece, seconds)))
    expected = pasted_text(inside.decode("utf-8", "surrogateescape"))
    assert found == (pasted(expected) if expected else [])


@pytest.mark.parametrize(
    "pieces",
    [
        (START + b"foo" + END + b"!touch x\r" + END,),
        (START + b"foo" + END + b"\x03!touch x\r" + END,),
        (START + b"foo" + END, BURST / 2, b"!touch x\r", BURST / 2, END),
    ],
)
def test_an_end_mark_in_a_paste_does_not_end_it_early(pieces: Sequence[bytes | float]) -> None:
    assert read(*pieces) == pasted("foo!touch x\n")


def test_a_paste_that_does_not_end_is_seen_and_can_be_ended() -> None:
    begun = (START + b"a\r", SILENCE)
    assert read(*begun, b"\x03", b"b") == [PastedText("a\n"), KeyPress("\x03"), TypedText("b")]
    assert read(*begun, b"\x1b[1089::99;5u") == [PastedText("a\n"), KeyPress("\x1b[99;5u")]
    assert read(START + b"a", SILENCE / 2, b"\x03", b"b" + END) == pasted("ab")
    assert read(*begun, b"!b\r", SILENCE, b"\r" + END) == [PastedText("a\n"), PastedText("!b\n"), PastedText("\n")]
    assert read(*begun, LOST, b"\x03") == [PastedText("a\n"), KeyPress("\x03")]
    assert read(START + b"a\x1b[3", SILENCE, b"1mb" + END) == [PastedText("a"), PastedText("b")]


@every(
    ("pieces", "found"),
    [
        ((b"a\rb\r",), pasted("a\nb\n")),
        ((b"a\r\nb",), pasted("a\nb")),
        ((b"\rb",), pasted("\nb")),
        ((b"a\r\x03!b\r\x1b[<0;1;1M\x1b[A",), pasted("a\n!b\n")),
        ((b"a\r", BURST / 2, b"b\r"), pasted("a\nb\n")),
        ((b"a\rb", BURST / 2, b"c\r", BURST / 2, b"d\r"), pasted("a\nbc\nd\n")),
        ((b"a", 0.01, b"\r", 0.01, b"b"), [TypedText("a"), *pasted("\nb")]),
        ((b"\x15a\rb",), [KeyPress("\x15"), *pasted("a\nb")]),
        ((b"hello\r",), typed("hello", "\r")),
        ((b"hello\r\n",), typed("hello", "\r")),
        ((b"a\r", 2 * BURST, b"b\r"), [*typed("a", "\r"), *typed("b", "\r")]),
        ((b"a\r\x03",), typed("a", "\r", "\x03")),
        ((b"a", 1.0, b"\r", BURST / 2, b"b"), [*typed("a", "\r"), TypedText("b")]),
        ((b"/model\r\x1b[B\r",), typed("/model", "\r", "\x1b[B", "\r")),
        ((b"a" + START + b"b\rc" + END + b"\r",), [TypedText("a"), PastedText("b\nc"), KeyPress("\r")]),
        ((START + b"a" + END + START + b"b" + END + b"\r",), [*pasted("a"), *pasted("b"), KeyPress("\r")]),
    ],
)
def test_lines_that_come_at_once_are_a_paste(pieces: Sequence[bytes | float], found: list[TerminalInput]) -> None:
    assert read(*pieces) == found


def test_an_enter_that_is_pressed_alone_does_not_wait() -> None:
    clock = Clock()
    reader = TerminalReader(clock)
    assert reader.feed(b"a") == typed("a")
    clock.now += 0.1
    assert reader.feed(b"\r") == [KeyPress("\r")] and reader.wait is None


def test_the_mouse_does_not_keep_lines_waiting() -> None:
    clock = Clock()
    reader = TerminalReader(clock)
    assert reader.feed(b"a\r") == []
    for _ in range(3):
        clock.now += BURST / 2
        found = reader.feed(b"\x1b[<35;1;1M")
    assert [one for one in found if isinstance(one, KeyPress)] or reader.wait is None


@every(
    ("sequence", "meant"),
    [
        ("\x1b[99;5u", "\x1b[99;5u"),
        ("\x1b[1089::99;5u", "\x1b[99;5u"),
        ("\x1b[1057:1057:99;6u", "\x1b[99;6u"),
        ("\x1b[1092:1060:97;3u", "\x1b[97;3u"),
        ("\x1b[1089::99;;1089u", "\x1b[1089;1;1089u"),
        ("\x1b[1089::99u", "\x1b[1089;1;1089u"),
        ("\x1b[106::99;5u", "\x1b[106;5u"),
        ("\x1b[97:65:97;2;65u", "\x1b[97;2;65u"),
        ("\x1b[97:65;2u", "\x1b[97;2;65u"),
        ("\x1b[97;65u", "\x1b[97;1;65u"),
        ("\x1b[97;;229u", "\x1b[97;1;229u"),
        ("\x1b[97;3;229u", "\x1b[97;3;229u"),
        ("\x1b[97;1:2u", "\x1b[97;1;97u"),
        ("\x1b[99;69u", "\x1b[99;5u"),
        ("\x1b[0;;104:105u", "\x1b[0;1;104:105u"),
        ("\x1b[57441;2u", "\x1b[57441;2u"),
        ("\x1b[27;5;99~", "\x1b[99;5u"),
        ("\x1b[27;2;13~", "\x1b[13;2u"),
        ("\x1b[27;6;67~", "\x1b[99;6u"),
        ("\x1b[1;129A", "\x1b[A"),
        ("\x1b[1;5:2A", "\x1b[1;5A"),
        ("\x1b[3;5:1~", "\x1b[3;5~"),
        ("\x1bOP", "\x1bOP"),
        ("\x1b[[A", "\x1b[[A"),
        ("\x1b\r", "\x1b\r"),
        ("\x9b1;5C", "\x1b[1;5C"),
    ],
)
def test_a_key_is_what_was_meant(sequence: str, meant: str) -> None:
    assert read(sequence.encode()) == [KeyPress(meant)]
    cuts = [n for n in range(2, len(sequence)) if sequence[0] == "\x1b"]
    for cut in cuts:
        assert read(sequence[:cut].encode(), 0.01, sequence[cut:].encode()) == [KeyPress(meant)], cut


@every(
    "sequence",
    [
        "\x1b[99;1:3u",
        "\x1b[99;5:3u",
        "\x1b[1;1:3A",
        "\x1b[3;1:3~",
        "\x1b[1114112;1u",
        "\x1b[99999999999999999999u",
        "\x1b[55296u",
        "\x1b[0u",
        "\x1b[5u",
        "\x1b[133u",
        "\x1b[97;99999u",
        "\x1b[1:2:3:4;x",
        "\x1b[27;5;~",
        "\x1b[12",
        "\x1b]11;rgb:ffff",
        "\x1bP1+r544e",
        "\x85",
    ],
)
def test_what_is_no_key_writes_nothing(sequence: str) -> None:
    assert [one for one in read(sequence.encode()) if not isinstance(one, TerminalReport)] == []


REPORTS = [
    "\x1b[<35;10;20M",
    "\x1b[<0;-1;5m",
    "\x1b[<99999999999;-5;M",
    "\x1b[M !!",
    "\x1b[M\u0131\u0141!",
    "\x1b[35;1;1M",
    "\x1b[I",
    "\x1b[3;1R",
    "\x1b[?62;4c",
    "\x1b[?2026;2$y",
    "\x1b[48;24;80;0;0t",
    "\x1b]11;rgb:1111/2222/3333\x1b\\",
    "\x1b]52;c;" + "QUJD" * 20_000 + "\x07",
    "\x1bP>|XTerm(370)\x1b\\",
    "\x1b_Gi=31;OK\x1b\\",
]


@every("report", REPORTS)
def test_a_report_is_no_text_however_it_is_cut(report: str) -> None:
    data = report.encode()
    for cut in range(2, min(len(data), 40)):
        assert read(b"a" + data[:cut], 0.3 if cut > 2 else 0.05, data[cut:] + b"b") == [
            TypedText("a"), TerminalReport(report), TypedText("b")
        ], cut  # fmt: skip


def test_bytes_of_an_old_mouse_are_no_letters() -> None:
    assert read(b"\x1b[M\xff\xfe\xfda")[1:] == typed("a")


@every(
    ("pieces", "found"),
    [
        ((b"\x1b",), [KeyPress("\x1b")]),
        ((b"\x1b", 2 * ESCAPE_WAIT, b"a"), [KeyPress("\x1b"), TypedText("a")]),
        ((b"\x1b", ESCAPE_WAIT / 2, b"a"), [KeyPress("\x1ba")]),
        ((b"\x1b[",), [KeyPress("\x1b[")]),
        ((b"\x1b\x1b[A",), [KeyPress("\x1b"), KeyPress("\x1b[A")]),
        ((b"\x1b]half\x1b[D",), [KeyPress("\x1b]"), TypedText("half"), KeyPress("\x1b[D")]),
        ((b"\x1b[1\x03",), [KeyPress("\x03")]),
        ((b"\xe9", 2 * SEQUENCE_WAIT, b"a"), [TypedText("\ufffd"), TypedText("a")]),
        (("é".encode()[:1], 0.3, "é".encode()[1:]), [TypedText("é")]),
        ((b"\x00\x00",), [KeyPress("\x00"), KeyPress("\x00")]),
    ],
)
def test_what_is_not_whole_is_what_it_was(pieces: Sequence[bytes | float], found: list[TerminalInput]) -> None:
    assert read(*pieces) == found


@given(st.text())
def test_of_a_text_no_letter_is_lost(text: str) -> None:
    letters = re.sub("[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "", text)
    assert "".join(one.text for one in read(letters.encode()) if isinstance(one, TypedText)) == letters


@every(
    ("sequence", "keys"),
    [
        ("\x1b[99;5u", [("ctrl+c", None)]),
        ("\x03", [("ctrl+c", "\x03")]),
        ("\x1b[13;2u", [("shift+enter", None)]),
        ("\x1b[13u", [("enter", "\r")]),
        ("\x1b[97;1;97u", [("a", "a")]),
        ("\x1b[97;2;65u", [("A", "A")]),
        ("\x1b[97;3u", [("alt+a", None)]),
        ("\x1b[0;1;104:105u", [("h", "h"), ("i", "i")]),
        ("\x1b[1;5A", [("ctrl+up", None)]),
        ("\x1b[Z", [("shift+tab", None)]),
        ("\x1bOP", [("f1", None)]),
        ("\x1bx", [("alt+x", "x")]),
        ("\x1b[99~", []),
        ("\x1b[5K", []),
        ("\x1b[57500u", []),
    ],
)
def test_textual_knows_the_key_by_its_name(sequence: str, keys: list[tuple[str, str | None]]) -> None:
    made = [key for key in TerminalMessages().of(KeyPress(sequence)) if isinstance(key, events.Key)]
    assert [(key.key, key.character) for key in made] == keys


@every(
    ("report", "size"),
    [
        ("\x1b[48;24;80;480;800t", (80, 24)),
        ("\x1b[48;24;80;0;0t", (80, 24)),
        ("\x1b[48;999999;999999;0;0t", None),
        ("\x1b[48;0;0;0;0t", None),
        ("\x1b[48;;;;t", None),
    ],
)
def test_a_size_that_no_terminal_has_is_not_believed(report: str, size: tuple[int, int] | None) -> None:
    messages = list(TerminalMessages().of(TerminalReport(report)))
    assert [tuple(message.size) for message in messages if isinstance(message, events.Resize)] == (
        [size] if size else []
    )


def test_nothing_that_a_terminal_could_send_fails() -> None:
    """A few of the millions of ``tests/benchmarks/fuzz_keys.py``."""
    found = fuzz(examples(3_000, 100_000), seed=7)
    assert set(found) == {"TypedText", "KeyPress", "PastedText", "TerminalReport"}
