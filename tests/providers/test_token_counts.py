from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.models.calibration import KINDS, raw_total
from agent_tui.providers import counting
from agent_tui.providers.counting import RUN, by_kind, count_all, pieces
from tests.support.every import every
from tests.support.forms import examples
from tests.support.model_calls import run_python


def count(text: str) -> int:
    return raw_total(by_kind(text))


@pytest.mark.quick
@pytest.mark.versions
def test_plain_text() -> None:
    assert [*map(raw_total, count_all(["", "hello world", "hello world hello"]))] == [0, 2, 3]


@pytest.mark.quick
@pytest.mark.versions
@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("the house is on fire", {"words": 4, "pieces": 1}),
        ("The readFile of a", {"words": 3, "pieces": 2, "capitals": 2}),
        ("1234567 89", {"digits": 4, "more digits": 5, "space": 1}),
        ("    \n\n", {"space": 1}),
        ("==== ()", {"symbols": 2}),
        ("こんにちは", {"wide": 1}),
        ("Приветствую", {"letters": 4}),
        ("नमस्ते", {"scripts": 4}),
        ("안녕하세요", {"korean": 2}),
        ("привет שלום", {"letters": 3}),
        ("καλημέρα", {"scripts": 4}),
        ("→ “a”", {"symbols": 3, "fragments": 1}),
    ],
)
def test_tokens_are_told_apart_by_what_they_consist_of(text: str, kinds: dict[str, int]) -> None:
    assert {kind: count for kind, count in zip(KINDS, by_kind(text), strict=True) if count} == kinds


@pytest.mark.quick
@pytest.mark.versions
def test_the_vocabulary_is_in_memory_once() -> None:
    assert count("hello world") == 2
    assert vars(counting.encoding())["_mergeable_ranks"] == {}, "tiktoken keeps it under another name: 25 MB more"


@pytest.mark.quick
@pytest.mark.versions
def test_special_tokens_are_text() -> None:
    assert count("<|endoftext|>") > 1
    assert count("<|im_start|>user") > 3


@pytest.mark.slow
@every(
    "text",
    [
        "a" * 300_000,
        " " * 1_500_000 + "x",
        "\n" * 300_000,
        "=" * 300_000,
        "\x00" * 100_000,
        "中" * 100_000,
        "👍" * 100_000,
    ],
)
def test_pathological_texts_are_counted(text: str) -> None:
    assert 0 < count(text) <= 4 * len(text)


@pytest.mark.quick
@pytest.mark.versions
def test_lone_surrogates_are_counted() -> None:
    assert count("a \ud800 b") > 2


@pytest.mark.quick
def test_cutting_changes_nothing_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "PIECE", 100)
    text = "The quick brown fox jumps over the lazy dog and runs home. " * 200
    assert len(list(pieces(text))) > 10
    assert count(text) == len(counting.encoding().encode_ordinary(text))


@settings(max_examples=examples(25, 200), deadline=None)
@given(st.lists(st.sampled_from(["word ", "x" * (RUN + 7), " " * (RUN + 3), "né\n", "\t", "1.5 "]), max_size=12))
def test_pieces_are_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    assert "".join(pieces(text)) == text


@pytest.mark.quick
@pytest.mark.versions
def test_it_counts_without_the_network_and_without_litellm() -> None:
    code = (
        "import os, socket, sys\n"
        "os.environ.pop('TIKTOKEN_CACHE_DIR', None)\n"
        "def refuse(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = refuse\n"
        "from agent_tui.providers.counting import by_kind\n"
        "print(sum(by_kind('hello world')), 'litellm' in sys.modules)\n"
    )
    assert run_python(code).stdout == "2 False\n"
