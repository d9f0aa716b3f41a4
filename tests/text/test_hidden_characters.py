"""What turns the direction of text or takes no room is shown as what it is: in forms, questions and lists."""

from __future__ import annotations

import pytest

from agent_tui.text.clean import asked_words, clean, clean_line, one_line, spelled
from agent_tui.tools.mcp.forms import fields_of
from tests.support.every import every

pytestmark = pytest.mark.quick

HIDDEN = [*"\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069"]


@every("char", HIDDEN)
def test_every_list_and_form_shows_it(char: str) -> None:
    name, code = f"invoice{char}fdp.exe", f"⟨U+{ord(char):04X}⟩"
    shown = f"invoice{code}fdp.exe"
    assert (
        one_line(name) == clean(name) == clean_line(name) == spelled(name) == asked_words(name, 99, line=True) == shown
    )
    (field,) = fields_of(
        {"type": "object", "properties": {name: {"type": "string", "description": name, "enum": [name]}}}
    )
    assert (field.title, field.about, field.choices[0].label) == (shown, shown, shown)
    assert field.choices[0].value == field.name == name, "what is sent is the server's own"
    assert field.shown(name) == shown


def test_a_text_that_is_offered_to_be_changed_is_what_is_seen() -> None:
    (field,) = fields_of({"type": "object", "properties": {"n": {"type": "string", "default": "a\u202eb\x1b[31m"}}})
    assert field.shown(field.default) == "a⟨U+202E⟩b␛[31m"
    assert field.written(field.default) == "ab"


def test_control_characters_reach_no_terminal() -> None:
    for said in (one_line("a\x1b[31m\x9b\x07b"), clean("a\x1b]0;x\x07b\r\nc"), asked_words("a\x1b[2Jb\x9bc", 99)):
        assert not [char for char in said if char != "\n" and not char.isprintable()]
