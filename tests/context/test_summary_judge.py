"""What is a summary, and what is rubbish: one pure judge for compactions, folds and briefs."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.compaction.answers import read_answer
from agent_tui.context.compaction.judge import (
    ASKED_AGAIN,
    ProblemCode,
    Replaced,
    judge_summary,
)
from agent_tui.context.compaction.summary import MODEL_SECTIONS, question_text, system_text
from agent_tui.models.requests import FinishReason
from tests.support.compaction_world import long_sections, sections
from tests.support.every import every

pytestmark = pytest.mark.quick

MUCH = Replaced(20_000, "The user and the assistant talk about the ledger, `src/app.py` and 1,200 orders. " * 20)
RNG = random.Random("rubbish")


def under(*bodies: str) -> str:
    return "\n\n".join(f"## {name}\n{bodies[n % len(bodies)]}" for n, name in enumerate(MODEL_SECTIONS))


def letters(words: int) -> str:
    return " ".join("".join(RNG.choices("bcdfghjklmnpqrstvwxz", k=7)) for _ in range(words))


RUBBISH: dict[str, tuple[str, FinishReason, ProblemCode]] = {
    "cut off at the limit": (sections("Good."), "length", "truncated"),
    "no end is known, and the last headings are missing": (sections("Good.")[:300], "unknown", "truncated"),
    "it stops in a sentence": (sections("Good.").partition("## Open")[0].rstrip(".\n ") + " to", "stop", "truncated"),
    "a block of code that never ends": (f"{sections('Good.')}\n```python\nx = 1", "stop", "truncated"),
    "prose": ("The user wanted a parser. It was written, and the tests pass.", "stop", "headings"),
    "headings alone": ("\n\n".join(f"## {name}" for name in MODEL_SECTIONS), "stop", "headings"),
    "it goes on with the work": ("Sure! I edit it now.\n```python\nx = 1\n```\nThat is done.", "stop", "headings"),
    "a copy of the talk": ("[user] Fix it.\n\n[assistant] It is fixed, and all tests pass.", "stop", "headings"),
    "one line": (under("- The user wants to fix it.\n" * 30), "stop", "repeats"),
    "one line below each heading": (under("The user wants the ledger to be fixed soon."), "stop", "repeats"),
    "one phrase on one line": ("## Goal\n" + "I will continue. " * 200, "stop", "repeats"),
    "words without an end": ("## Goal\n" + "and then the ledger " * 100, "stop", "repeats"),
    "a loop after a good beginning": (sections("Good.") + "\n- run the tests again" * 60, "stop", "repeats"),
    "nothing": ("", "stop", "empty"),
    "blanks": (" \n\n\t", "stop", "empty"),
    "thoughts in tags": ("<think>I should sum this up.</think>\n", "stop", "thoughts"),
    "thoughts that never end": ("<think>I should sum this up, beginning with", "stop", "thoughts"),
    "cut off in its thoughts": ("<think>I should", "length", "truncated"),
    "a refusal": ("I'm sorry, but I can't help with that request.", "stop", "refused"),
    "a refusal below each heading": (under("I cannot assist with that."), "stop", "refused"),
    "a refusal of the provider": (sections("Good."), "refused", "refused"),
    "an apology in German": ("Es tut mir leid, das kann ich nicht zusammenfassen.", "stop", "refused"),
    "an apology in Chinese": ("抱歉,我无法完成这个请求。", "stop", "refused"),
    "a question": ("Would you like me to summarise the conversation from the start?", "stop", "question"),
    "the prompt": (system_text(500), "stop", "echo"),
    "the question": (question_text(3, 500, ""), "stop", "echo"),
    "the marks of the input": (f"BEGIN CONVERSATION 0123456789ab\n{sections('Good.')}", "stop", "echo"),
    "a call": ("", "tool_calls", "tool"),
    "a call as text": ('<tool_call>{"name": "read", "arguments": {}}</tool_call>', "stop", "tool"),
    "a call as JSON": ('{"name": "read", "arguments": {"path": "x"}}', "stop", "tool"),
    "JSON": ('{"summary": "## Goal\\nBuild it"}', "stop", "json"),
    "JSON in a fence": ('```json\n{"goal": "Build it", "done": ["a", "b"]}\n```', "stop", "json"),
    "base64": ("## Goal\n" + base64.b64encode(RNG.randbytes(3_000)).decode(), "stop", "noise"),
    "letters": (under(letters(20), letters(20)), "stop", "noise"),
    "no characters": (under("a\ufffd \ufffd\ufffd b \ufffd" * 9, "\ufffd" * 30), "stop", "noise"),
    "another script": (under(*(f"ข้อความนี้ไม่เกี่ยวข้องกับการสนทนา{n}" for n in range(7))), "stop", "language"),
    "a word": ("## Goal\nLedger.\n## Open questions\nNone.", "stop", "thin"),
    "nothing below each": (under("None.", "N/A", "(nothing)", "…", "-"), "stop", "thin"),
}  # fmt: skip


@every("name", RUBBISH)
def test_rubbish_is_no_summary_and_the_model_is_told_why(name: str) -> None:
    text, finish, code = RUBBISH[name]
    problem = judge_summary(text, finish, MUCH)
    assert problem is not None and problem.code == code, problem
    assert ASKED_AGAIN[code] and problem.text[0].islower() and not problem.text.endswith(".")


CHINESE = (
    "实现解析器并且通过所有的测试。", "不要修改 vendor 目录,回答要简短。", "使用 SQLite,因为只有一个进程写入。",
    "词法分析器已经完成,测试通过。", "正在处理报告的拆分。", "重放十月的订单并比较结果。", "谁负责汇率缓存还不清楚。",
)  # fmt: skip
HEADS = ("目标", "要求", "决定", "完成", "进行中", "下一步", "问题")
FIGURES = "\n".join(f"| case {n} | passed in {n * 37 % 91} ms | src/f{n}.py |" for n in range(12))
GOOD: dict[str, tuple[str, Replaced]] = {
    "as asked for": (sections("Good."), MUCH),
    "in a fence": (f"```markdown\n{sections('Good.')}\n```", MUCH),
    "with talk before it": (f"Here is the summary:\n\n{sections('Good.')}", MUCH),
    "behind thoughts": (f"<think>First the goal.</think>\n{sections('Good.')}", MUCH),
    "in Chinese": ("\n\n".join(map("## {}\n{}".format, HEADS, CHINESE)), Replaced(5_000, "用户说:请实现解析器")),
    "in Chinese under our headings": (under(*CHINESE), Replaced(5_000, "请")),
    "in Latin letters of a Chinese talk": (sections("Good."), Replaced(5_000, "请实现解析器")),
    "of a short talk": ("## Goal\nFix the typo.\n\n## Done\n(none)\n\n## Next steps\nFix it.", Replaced(90, "fix")),
    "a table": (f"{sections('Good.')}\n\n| n | result | file |\n|---|---|---|\n{FIGURES}", MUCH),
    "paths and digests": (
        sections("See src/agent/compaction/very/long/path/to/a/file/of/the/ledger/service/module.py at "
                 "4be1f0a97c23d5586e0ab71f9d2c64e34be1f0a97c23d5586e0ab71f9d2c64e3."), MUCH),
    "code": (f"{sections('Good.')}\n```python\ndef book(cents: int) -> None: ...\n```\nKeep its name.", MUCH),
    "what cannot be done is told": (sections("The worker cannot help with refunds; I cannot reproduce it."), MUCH),
    "very long": (long_sections(900), MUCH),
}  # fmt: skip


@every("name", GOOD)
def test_a_summary_is_taken_whatever_its_language_and_form(name: str) -> None:
    text, replaced = GOOD[name]
    assert judge_summary(text, "stop", replaced) is None
    assert read_answer(text)


@pytest.mark.parametrize("finish", ["unknown", "tool_calls"])
def test_a_whole_summary_is_one_however_the_server_ends_it(finish: FinishReason) -> None:
    assert judge_summary(sections("Good."), finish, MUCH) is None


@given(
    st.one_of(
        st.text(max_size=400),
        st.lists(st.sampled_from(["## Goal\n", "```", "None.\n", "a b. ", "{", "<think>", "?", "汉"])).map("".join),
    ),
    st.sampled_from(["stop", "length", "tool_calls", "refused", "unknown"]),
    st.integers(0, 200_000),
)
def test_every_answer_is_a_summary_with_sections_or_is_told_to_be_none(
    text: str, finish: FinishReason, size: int
) -> None:
    problem = judge_summary(text, finish, Replaced(size, text[::2]))
    if problem is None:
        assert finish not in ("length", "refused") and any(map(str.strip, read_answer(text).values()))
    else:
        assert ASKED_AGAIN[problem.code]
