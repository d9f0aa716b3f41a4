"""What a list shows of what is typed: words first, in any order; scattered letters only where no word is found."""

from __future__ import annotations

import pytest

from agent_tui.text.search import match, match_paths
from tests.support.every import every

pytestmark = pytest.mark.quick

NAMES = [
    "openai/gpt-5-plus",
    "anthropic/claude-sonnet-5",
    "anthropic/claude-opus-5",
    "bedrock/anthropic.claude-opus-5",
    "octopus/small",
    "opus-mine",
]


@every(
    ("typed", "found"),
    [
        ("opus", ["opus-mine", NAMES[2], NAMES[3], "octopus/small"]),
        ("5 OPUS anthropic", [NAMES[2], NAMES[3]]),
        ("claude  sonnet ", [NAMES[1]]),
        ("gpt5", [NAMES[0]]),
        ("mine opus", ["opus-mine"]),
        ("[", []),
        ("", NAMES),
    ],
)
def test_words_match_before_scattered_letters(typed: str, found: list[str]) -> None:
    assert match(typed, NAMES)[: max(1, len(found))] == found
    assert typed == "gpt5" or len(match(typed, NAMES)) == len(found), "no scattered letters beside words"


def test_words_of_a_path_come_in_any_order() -> None:
    paths = ["docs/parser.md", "src/parser/main.py", "src/main.py", "m/a/i/n.py"]
    assert match_paths("main parser", paths) == ["src/parser/main.py"]
    assert match_paths("main", paths) == ["src/main.py", "src/parser/main.py", "m/a/i/n.py"]
