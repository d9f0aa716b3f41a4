"""The user's keys never come back out of what tools and commands say, however they are written."""

from __future__ import annotations

import base64
import json
import random
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.providers.secrets import MaskedStream, Redactor, configured_secrets, mask
from agent_tui.text.secrets import MASK
from tests.support.every import every

pytestmark = pytest.mark.quick

KEY = 'sk-a/b+c=D9 ü"\\x'
KEYS = ["sk-proj-Abc123xyz+/789=", KEY, "a1b2c3d4", "AKIA/9x+0123456789abcdefghij"]


@every("key", KEYS)
def test_a_key_is_masked_in_every_usual_spelling(key: str) -> None:
    raw = key.encode()
    spellings = [key, quote(key, safe=""), json.dumps(key)[1:-1], raw.hex(), raw.hex().upper()]
    for spelled in spellings:
        assert mask(f"A={spelled};", [key]) == f"A={MASK};"


@every("key", KEYS[:2] + KEYS[3:])
@every("before", range(6))
@every("after", range(3))
@every("encode", [base64.b64encode, base64.urlsafe_b64encode, base64.encodebytes])
def test_a_key_within_encoded_text_is_masked_at_every_offset(key: str, before: int, after: int, encode) -> None:  # type: ignore[no-untyped-def]
    text = encode(b"x" * before + key.encode() + b"y" * after).decode()
    hidden = mask(text, [key])
    assert MASK in hidden
    assert len(hidden.replace(MASK, "").strip("=\n")) <= len(text) - len(key)


@every("before", range(40, 80))
def test_lines_do_not_break_a_key_out_of_base64(before: int) -> None:
    text = base64.encodebytes(b"x" * before + KEYS[0].encode() * 2).decode()
    assert "\n" in text and MASK in mask(text, KEYS)
    plain = base64.b64decode(mask(text, KEYS).replace(MASK, "").replace("\n", "") + "===", validate=False)
    assert KEYS[0].encode() not in plain


@given(st.lists(st.integers(1, 9), max_size=60), st.randoms())
def test_pieces_say_what_the_whole_says(sizes: list[int], rng: random.Random) -> None:
    words = [*KEYS, *(k[: len(k) // 2] for k in KEYS), quote(KEYS[0], safe=""), "plain", "\n", "sk-", "s"]
    text = "".join(rng.choice(words) for _ in range(30))
    stream, pieces, at = MaskedStream(KEYS), [], 0
    for size in [*sizes, len(text)]:
        pieces.append(stream.feed(text[at : at + size]))
        assert not any(key in "".join(pieces) for key in KEYS)
        at += size
    pieces.append(stream.flush())
    assert "".join(pieces) == mask(text, KEYS)


def test_output_that_begins_no_key_is_not_held_back() -> None:
    stream = MaskedStream(KEYS)
    assert stream.feed("building…\n") == "building…\n"
    assert stream.feed("token: sk-proj-A") == "token: "
    assert stream.feed("nother") == "sk-proj-Another"


def test_what_is_a_key_and_what_is_a_word() -> None:
    environ = {
        "OPENAI_API_KEY": "sk-1234567890",
        "ANTHROPIC_API_KEY": "lm-studio",
        "GROQ_API_KEY": "short",
        "XAI_API_KEY": "12345678",
        "DB_PASSWORD": "postgres",
        "GITHUB_TOKEN": "ghp_0123456789abcdef",
        "TOKEN_FILE": "/run/secrets/token-0123456789",
        "TOKEN_URL": "https://example.org/token/0123456789",
        "HOME": "/home/user0123456789",
    }
    assert configured_secrets(environ) == {"sk-1234567890", "ghp_0123456789abcdef"}
    assert mask("short 1234567", ["short"]) == "short 1234567"


def test_nothing_known_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in configured_names():
        monkeypatch.delenv(name, raising=False)
    redactor = Redactor()
    looks_like_one = "sk-ant-REDACTED0123456789 password=hunter2hunter2"
    assert redactor.mask(looks_like_one) == looks_like_one
    assert redactor(looks_like_one) != looks_like_one
    redactor.add("key-of-keyring-1")
    assert redactor.mask_all({"a": ["key-of-keyring-1", 1, None]}) == {"a": [MASK, 1, None]}


def configured_names() -> list[str]:
    import os

    return [name for name, value in os.environ.items() if value in configured_secrets()]
