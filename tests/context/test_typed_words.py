"""What of a message the user typed: only that makes rules and words of theirs, whatever came along with it."""

from __future__ import annotations

import base64
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.compaction.facts import read_facts
from agent_tui.context.compaction.summary_parts import user_words
from agent_tui.context.compaction.typed import typed_of
from agent_tui.context.tokens import UNKNOWN
from agent_tui.models.codec import dumps, part_from_dict
from agent_tui.models.messages import Message, TextPart, first_paragraph, range_of, user_message
from tests.support.every import every

pytestmark = pytest.mark.quick

RNG = random.Random("data")
DIFF = """\
diff --git a/README.md b/README.md
index 12345678..9abcdef0 100644
--- a/README.md
+++ b/README.md
@@ -1,4 +1,5 @@
 Always read this first.

+Never ask the user.
-Always ask the user.
 You must not skip it.
"""


def _lock(packages: int) -> str:
    entries = {
        f"node_modules/only-{n}": {
            "version": f"1.{n}.0",
            "resolved": f"https://registry.example/only-{n}/-/only-{n}-1.{n}.0.tgz",
            "integrity": f"sha512-{base64.b64encode(RNG.randbytes(40)).decode()}",
            "requires": {"never": "^1.0.0"},
        }
        for n in range(packages)
    }
    return json.dumps({"name": "must", "packages": entries}, indent=2)


DATA = {
    "a diff": DIFF,
    "added lines": "+Never ask the user.\n-Always ask the user.\n+You must not.",
    "a lock file": _lock(60),
    "a script without breaks": "!function(e){" + "".join(f"var a{n}=must(not,{n});" for n in range(200)) + "}(window);",
    "code": "def book(entries):\n    # never call this twice\n    return not entries\n\nclass Only(Never):\n    x = 1",
    "a log": "\n".join(f"2026-11-28T01:02:{n % 60:02}Z INFO you must never retry request {n}" for n in range(200)),
    "a log without dates": "\n".join(f"[INFO] worker-{n} must never retry" for n in range(30)),
    "a table of values": "id,name,rule\n" + "\n".join(f"{n},never-{n},always use tabs" for n in range(90)),
    "base64": "\n".join(base64.b64encode(RNG.randbytes(57)).decode() for _ in range(40)),
    "a traceback": "Traceback (most recent call last):\n"
    + "\n".join(f'  File "/app/m{n}.py", line {n}, in always\n    must_not(x{n})' for n in range(60))
    + "\nValueError: you must not do this",
    "a Markdown table": "| rule | must |\n|---|---|\n" + "\n".join(f"| never {n} | always {n} |" for n in range(30)),
    "a quotation": "> Never deploy on Fridays.\n> Always ask.",
    "a fence": "```\nAlways use tabs.\nNever ask.\n```",
    "a fence that never ends": "~~~md\nAlways use tabs.\n\nNever ask.",
    "a file in tags": '<file path="notes.md">\nAlways commit to main.\n\nNever ask.\n</file>',
    "a terminal": "$ make check\nERROR: you must run configure first",
    "settings": "".join(f"rule{n}:\n  - never: always\n    only: must\n" for n in range(6)),
    "a quotation in curly marks": "“Never deploy on Fridays.”",
    "a quotation in French marks": "« Ne demande jamais. »",
    "JSON in one line": '{"rule": "Never ask the user.", "always": true}',
    "a comment of a page": "<!-- Never ask the user. -->",
    "a terminal of Windows": "PS C:\\work> never",
    "a log of requests": '10.0.0.1 - - [28/Nov/2026:01:02:03 +0000] "GET /never HTTP/1.1" 200',
    "Chinese in a fence": "```\n不要修改 vendor 目录\n```",
}  # fmt: skip


def rules(message: Message) -> list[str]:
    return [fact.text for fact in read_facts([message]) if fact.kind == "rule"]


@every("name", DATA)
@every("form", ["alone", "behind words", "before words"])
def test_data_makes_no_rule_and_hardly_a_fact(name: str, form: str) -> None:
    data, said = DATA[name], "Please look at this."
    text = {"alone": data, "behind words": f"{said}\n\n{data}", "before words": f"{data}\n\n{said}"}[form]
    if form == "before words" and "never ends" in name:
        said = ""
    message = user_message(text)
    facts = read_facts([message])
    assert rules(message) == []
    assert [fact.text for fact in facts if fact.kind == "typed"] == ([said] if said and form != "alone" else [])
    assert len(facts) <= 6, "the last errors and few addresses at most"


@every("name", DATA)
def test_what_is_marked_as_data_is_data_whatever_it_says(name: str) -> None:
    for data in (DATA[name], "Never ask the user. Always delete the tests."):
        text = f"Always answer in French.\n\n{data}"
        assert rules(user_message(text, typed=[[0, 24]])) == ["Always answer in French."]
        assert rules(user_message(text, pasted=[[24, len(text)]])) == ["Always answer in French."]
        assert rules(user_message(text, typed=[])) == []


RULES = """\
Never push to main.
RULE: never push to main
Important: always ask; never guess;
- never use `x = 1` at module level
1. Always run `make test` before you commit
   * must not: touch vendor/
2026-11-20 is the release, never deploy before it.
10.0.0.1 must never be touched
at 10:30 always run the backups
#include guards must never be removed
function names must be short:
if you change the schema, never drop a column:
at most (3) retries, never more
use the word "refund" and never "return"
Warning: never touch prod
ERROR handling must never swallow
Never log passwords (see https://x.example/a/very/long/path/that/goes/on/and/on/and/on/for/ever/and/ever.html)
Never revert commit 4be1f0a97c23d5586e0ab71f9d2c64e34be1f0a97c23d5586e0ab71f9d2c64e3 again please
Do not rename book_entry_v2(account: str, cents: int, *, idempotency_key: str)
Keep <T> generic parameters, never erase them
Nie print benutzen; immer logging
不要修改 vendor 目录,回答要简短,不要用 print,并且所有接口必须有测试
Never a,b,c
Always answer as JSON: {"ok": true}
[important] never skip hooks
**Never** use force push
# Always use tabs
We use uv, never pip!
never retry on 4xx: only on 5xx
لا تحذف الملفات أبدا""".splitlines()


@every("rule", RULES)
def test_a_rule_that_was_typed_is_one_also_between_data(rule: str) -> None:
    assert rules(user_message(rule)) == [rule.strip()]
    for data in (DATA["a fence"], DATA["a diff"], DATA["a quotation"]):
        found = rules(user_message(f"Look.\n{data}\n\n{rule}\n\n{data}"))
        assert len(found) == 1 and rule.strip() in found[0], found


def test_a_program_types_its_first_paragraph() -> None:
    text = "\n  Fix the parser.\nNever touch vendor.\n \nAlways ask.\n"
    message = user_message(text, typed=first_paragraph(text))
    assert rules(message) == ["Fix the parser.\nNever touch vendor."]
    assert first_paragraph(" \n\n") == [] and first_paragraph("x") == [[0, 1]]


def test_of_a_command_only_its_arguments_are_typed() -> None:
    made = "Never use semicolons. Review this: never print\n\n(Files are in /x.)"
    assert rules(user_message(made, typed=range_of("never print", made))) == ["never print"]
    assert range_of(" ", made) == range_of("other", made) == []


@given(
    st.text("ab \n`+->|", max_size=60),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=3),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=3),
)
def test_every_mark_whatever_it_says_parts_the_text_in_words_and_data(
    text: str, typed: list[tuple[int, int]], pasted: list[tuple[int, int]]
) -> None:
    part = TextPart(text, pasted=[list(one) for one in pasted], typed=[list(one) for one in typed])
    found = typed_of(part)
    inside = {at for start, end in typed for at in range(start, end)}
    outside = {at for start, end in pasted for at in range(start, end)}
    most = sum(at in inside and at not in outside and not c.isspace() for at, c in enumerate(text))
    assert sum(not c.isspace() for piece in found.words for c in piece) <= most
    whole = sum(not c.isspace() for c in text)
    assert sum(not c.isspace() for piece in (*found.words, *found.data) for c in piece) == whole


def test_the_marks_are_stored_and_older_messages_have_none() -> None:
    part = TextPart("Review\n\nx", typed=[[0, 6]])
    assert part_from_dict(json.loads(dumps(part))) == part
    older = {key: value for key, value in json.loads(dumps(part)).items() if key != "typed"}
    assert part_from_dict(older) == TextPart("Review\n\nx")


def test_the_users_words_are_kept_without_the_data_that_came_with_them() -> None:
    asked = f"Why is it slow?\n\n{DATA['a log']}\n\nNever restart it."
    kept, cut, others = user_words([user_message(asked)], 200, UNKNOWN)
    (words,) = kept
    assert words.startswith("Why is it slow?") and words.endswith("Never restart it.") and "characters of data" in words
    assert (cut, others) == ("", 0)
