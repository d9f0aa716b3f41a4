"""Why a step read less than it could: named, priced, told once, and never guessed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from agent_tui.context.cache_forecast import forecast, forecast_basis, miss_sums
from agent_tui.context.cache_misses import Judged, PrefixSizes, judge, reaches
from agent_tui.context.request_differences import SentHistory
from agent_tui.context.sent_lists import SentLists, SentMessages
from agent_tui.models.requests import Target
from agent_tui.models.rows import RowId
from agent_tui.models.steps import FixedPart, Sent, Step
from agent_tui.models.usage import Prices, TokenUsage
from agent_tui.providers.catalog import caching_of
from agent_tui.providers.dialects.record import Caching
from agent_tui.text.numbers import duration
from tests.support.every import every

pytestmark = pytest.mark.quick

CLAUDE = Target("anthropic", "chat", "claude-sonnet-4-6", "claude")
GPT = Target("azure", "chat", "gpt-5-mini", "gpt")
LATER_GPT = Target("openai", "responses", "gpt-5.6-sol", "gpt")
GEMINI = Target("gemini", "chat", "gemini-3-pro-preview", "gemini")
LOCAL = Target("hosted_vllm", "chat", "qwen3", "unknown")
PRICES = Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6, 6e-6)
EACH, FIXED = 1_000, 5_000
"""Tokens of a message, and of the fixed parts."""


def part(row: RowId, group: str, label: str, content: str = "") -> FixedPart:
    return FixedPart(row, group, label, 400, content or label, raw_tokens=100)


PARTS = [part("system", "system", ""), part("memory", "AGENTS.md", "AGENTS.md"), part("tools", "builtin", "read")]


@dataclass
class Session:
    """Steps of one session against a cache that gives what it is told to."""

    target: Target = CLAUDE
    steps: list[Step] = field(default_factory=list)
    lists: SentLists = field(default_factory=SentLists)
    now: float = 1_000_000.0

    def step(
        self,
        messages: Sequence[str],
        read: int | None,
        *,
        after: float = 10.0,
        fixed: list[FixedPart] = PARTS,
        settings: dict[str, str] | None = None,
        summaries: tuple[str, ...] = (),
        keys: list[str] | None = None,
        target: Target | None = None,
        whole: int | None = None,
        marks: list[int] | None = None,
    ) -> Judged:
        """One call that sends a message for each letter; an upper-case one is sent otherwise."""
        target = target or self.target
        self.now += after
        count = len(messages)
        total = FIXED + count * EACH if whole is None else whole
        step = Step(
            f"s{len(self.steps)}", "turn", target.model, target.provider, target.api, target.model,
            status="complete", created=self.now, fixed=tuple(fixed),
        )  # fmt: skip
        marks = marks or [0, max(0, count - 1), count]
        found = {"model": target.model, **(settings or {})}
        step.sent = Sent(found, marks)
        self.lists.record(step, SentMessages(keys or list(messages), list(messages)), self.steps)
        write = None if read is None or self.caching(target).keeping == "automatic" else total - read
        step.usage = TokenUsage(total, 10, cache_read=read, cache_write=write)
        sizes = PrefixSizes(lambda n: min(FIXED, n * FIXED // len(fixed)), lambda n: FIXED + n * EACH)
        judged = judge(step, self.steps, self.history(step), self.caching(target), sizes, PRICES, summaries)
        step.expected_read, step.miss = judged.expected, judged.miss
        self.steps.append(step)
        return judged

    def history(self, *ahead: Step) -> SentHistory:
        return SentHistory(self.lists, [*self.steps, *ahead])

    def caching(self, target: Target) -> Caching:
        return caching_of(target)


def warm(target: Target = CLAUDE) -> Session:
    """A session whose cache holds ten messages."""
    session = Session(target)
    session.step("abcdefgh", 0)
    assert session.step("abcdefghij", FIXED + 8 * EACH).miss is None
    return session


def said(judged: Judged) -> tuple[str, str]:
    assert judged.miss is not None
    return judged.miss.cause, judged.miss.what


def test_what_goes_on_as_expected_is_silent() -> None:
    judged = warm().step("abcdefghijkl", 15_000)
    assert judged == Judged(15_000)


def test_tools_that_came_are_named_and_priced() -> None:
    came = [*PARTS, part("tools", "mcp:github", "mcp__github__list"), part("tools", "mcp:github", "mcp__github__get")]
    judged = warm().step("abcdefghijkl", 0, fixed=came)
    assert said(judged) == ("ours", "tools changed: MCP server github added")
    assert judged.miss is not None and judged.miss.cost_usd == pytest.approx(judged.miss.tokens * (3.75e-6 - 0.3e-6))


@every(
    ("change", "words"),
    [
        ({"fixed": [PARTS[0], part("memory", "AGENTS.md", "AGENTS.md", "new"), PARTS[2]]}, "AGENTS.md edited"),
        ({"fixed": [PARTS[0], PARTS[2]]}, "AGENTS.md removed"),
        ({"fixed": [part("system", "system", "", "new"), *PARTS[1:]]}, "System prompt changed"),
        (
            {"fixed": [PARTS[0], PARTS[2], part("documents", "a.py", "a.py")]},
            "AGENTS.md removed, a.py added",
        ),
        ({"settings": {"thinking": "high"}}, "thinking switched"),
        ({"settings": {"schema": "{}"}}, "answer schema changed"),
        ({"target": replace(CLAUDE, model="claude-opus-4-6")}, "model switched: claude-sonnet-4-6 → claude-opus-4-6"),
    ],
)
def test_each_change_of_ours_has_its_words(change: dict[str, object], words: str) -> None:
    session = warm()
    read = FIXED if words == "thinking switched" else 0
    assert said(session.step("abcdefghijkl", read, **change)) == ("ours", words)  # type: ignore[arg-type]
    # What follows reads what this one left: it is not told twice.
    assert session.step("abcdefghijklmn", FIXED + 12 * EACH, **change).miss is None  # type: ignore[arg-type]


@every(
    ("messages", "keys", "words"),
    [
        ("aBcdefghij", ["a", "b#cleared", *"cdefghij"], "old results cleared"),
        ("aBcdefghij", ["a", "b#clip900", *"cdefghij"], "a long result cut"),
        ("aBcdefghij", ["a", *"bcdefghij"], "reasoning or images sent differently"),
        ("Sefghijkl", ["sum", *"efghijkl"], "compacted"),
        ("aXefghijkl", ["a", "x", *"efghijkl"], "rewound"),
    ],
)
def test_changed_messages_are_named(messages: str, keys: list[str], words: str) -> None:
    judged = warm().step(messages, FIXED, keys=keys, summaries=("sum",))
    assert said(judged) == ("ours", words)


def test_an_older_summary_that_comes_back_is_an_undo() -> None:
    session = warm()
    summaries = ("sum1", "sum2")
    assert said(session.step("Sfghijkl", FIXED, keys=["sum1", *"fghijkl"], summaries=summaries))[1] == "compacted"
    assert said(session.step("Tijklmn", FIXED, keys=["sum2", *"ijklmn"], summaries=summaries))[1] == "compacted"
    judged = session.step("Sfghijklmnopq", FIXED, keys=["sum1", *"fghijklmnopq"], summaries=summaries, after=400)
    assert judged.miss is not None and judged.miss.cause == "expired"
    session.step("Tijklmnopq", FIXED, keys=["sum2", *"ijklmnopq"], summaries=summaries)
    many = "Sfghijklmnopqrs" + "0123456789tuvwxyz"
    assert said(session.step(many, FIXED, keys=["sum1", *many[1:]], summaries=summaries))[1] == "compaction undone"


def test_a_compaction_undone_is_named() -> None:
    session = warm()
    session.step("Sij", FIXED, keys=["sum", "i", "j"], summaries=("sum",))
    session.now += 280
    judged = session.step("abcdefghijkl", FIXED, summaries=("sum",), after=40)
    assert judged.miss is not None and judged.miss.cause in ("ours", "expired")


def test_what_the_time_took_is_expired_and_nothing_else_is() -> None:
    assert said(warm().step("abcdefghijkl", 0, after=301)) == ("expired", "idle for 5 min 1 s")
    assert said(warm().step("abcdefghijkl", 0, after=299)) == ("unknown", "")
    # What was changed after it had gone cost nothing.
    assert said(warm().step("abcdefghijkl", 0, after=400, fixed=PARTS[1:]))[0] == "expired"


def test_it_is_only_called_expired_where_the_provider_says_so() -> None:
    assert said(warm(GPT).step("abcdefghijkl", 0, after=1_800)) == ("unknown", "")
    assert said(warm(GPT).step("abcdefghijkl", 0, after=3_700))[0] == "expired"
    assert said(warm(LOCAL).step("abcdefghijkl", 0, after=100_000)) == ("unknown", "")
    assert said(warm(LATER_GPT).step("abcdefghijkl", 0, after=1_799)) == ("unknown", "")
    late = said(warm(LATER_GPT).step("abcdefghijkl", 0, after=100_000))
    assert late == ("unknown", f"idle for {duration(100_000)}, kept for at least {duration(1_800)}")


def test_nothing_is_said_below_the_thresholds() -> None:
    assert warm().step("abcdefghijkl", 15_000 - 1_999).miss is None
    assert warm().step("abcdefghijkl", 15_000 - 2_001).miss is not None
    big = Session()
    big.step("a", 0, whole=100_000)
    assert big.step("ab", 91_000, whole=101_000).miss is None


def test_who_does_not_report_reads_is_not_judged() -> None:
    session = Session(GPT)
    session.step("abcdefghij", None)
    assert session.step("abcdefghijkl", None) == Judged()
    # Who has never cached anything may not cache at all.
    session = Session(LOCAL)
    session.step("abcdefghij", 0)
    assert session.step("abcdefghijkl", 0) == Judged()


def test_gemini_leaves_out_a_zero() -> None:
    assert said(warm(GEMINI).step("abcdefghijkl", None)) == ("unknown", "")


def test_the_best_earlier_step_is_compared_with() -> None:
    session = warm()
    session.step("abcdefghijkl", 15_000)
    # Back to an earlier message: what the newest call sent is no longer sent, and nothing is missed.
    assert session.step("abcdefghX", FIXED + 8 * EACH).miss is None
    # On the other way again: the first one still holds it.
    assert session.step("abcdefghijklm", FIXED + 12 * EACH).miss is None
    assert said(session.step("abcdefghijklmno", 0)) == ("unknown", "")


def test_back_to_a_model_that_still_holds_it_is_no_miss() -> None:
    session = warm()
    other = replace(CLAUDE, model="claude-opus-4-6")
    assert said(session.step("abcdefghijk", 0, target=other))[1].startswith("model switched")
    assert session.step("abcdefghijklm", 15_000).miss is None


def test_sums_are_by_cause() -> None:
    session = warm()
    session.step("abcdefghijkl", 0)
    session.step("abcdefghijklm", 0, after=400)
    sums = miss_sums(session.steps)
    assert {cause: one.count for cause, one in sums.items()} == {"unknown": 1, "expired": 1}
    assert sums["unknown"].tokens == 15_000 and (sums["unknown"].cost.whole or 0) > 0


def test_old_steps_without_what_they_sent_are_left_alone() -> None:
    session = warm()
    for step in session.steps:
        step.sent = None
    assert session.step("abcdefghijkl", 0) == Judged()


def test_reasoning_that_the_provider_leaves_out_itself_is_no_miss() -> None:
    session = warm()
    for step in session.steps:
        step.sent_reasoning = [(5, 1.0, 1)]
    judged = session.step("abcdefghijkl", FIXED + 5 * EACH)
    session.steps[-1].sent_reasoning = [(5, 0.0, 1)]
    again = judge(
        session.steps[-1],
        session.steps[:-1],
        session.history(),
        caching_of(CLAUDE),
        PrefixSizes(lambda n: FIXED, lambda n: FIXED + n * EACH),
        PRICES,
    )
    assert judged.miss is not None and again.miss is None and again.expected is not None
    assert again.expected <= FIXED + 5 * EACH


@pytest.mark.parametrize("marked", [False, True], ids=["nothing marked near", "marked near"])
def test_what_a_rewind_will_cost_is_foreseen_before_the_next_message_is_written(marked: bool) -> None:
    """Only a beginning of what was sent last is left then, and it may have no marker near its end."""
    session, left = Session(), "abcdefghij"
    session.step(left, 0, fixed=PARTS if marked else PARTS[1:])
    session.step(f"{left}klmnopqrstuvwxyz0123456789", FIXED)
    step = replace(session.steps[-1], id="next", usage=TokenUsage(FIXED + len(left) * EACH, 0))
    step.sent = Sent({"model": CLAUDE.model}, [0, len(left) - 1, len(left)])
    sizes = PrefixSizes(lambda n: min(FIXED, n * FIXED // len(PARTS)), lambda n: FIXED + n * EACH)
    history = SentHistory(session.lists, session.steps, (step, SentMessages(list(left), list(left))))
    known = forecast_basis(step, session.steps, history, session.caching(CLAUDE), sizes, PRICES)
    assert known is not None
    found = forecast(known, session.now + 1)
    said = None if found.cold is None else (found.cold.cause, found.cold.what, found.cold.tokens)
    assert said == (None if marked else ("ours", "rewound", len(left) * EACH))


def test_what_begins_a_long_turn_is_known_to_the_token_as_long_as_it_is_marked() -> None:
    """However many steps marked the message that began the turn, and however wrong the estimate of it is."""
    session = Session()
    session.step("abc", 0)
    for _ in range(50):
        session.step("abcd", FIXED, after=100.0, marks=[0, 3, 4])
    session.step("abce", FIXED, after=1.0, marks=[0, 3, 4])
    wrong = PrefixSizes(lambda n: FIXED, lambda n: FIXED + n * EACH - 500)
    last = session.steps[-1]
    found = reaches(last, session.steps[:-1], session.history(), caching_of(CLAUDE), wrong)
    assert max(reach.tokens for reach in found) == FIXED + 3 * EACH
    assert max(reach.tokens for reach in found if reach.alive(last.created, None)) == FIXED + 3 * EACH


@every(
    ("target", "own", "life", "gone"),
    [
        (CLAUDE, False, 300.0, None),
        (Target("bedrock", "chat", "anthropic.claude-sonnet-4-5", "claude"), False, 300.0, None),
        (Target("openrouter", "chat", "anthropic/claude-sonnet-4.6", "claude"), False, 300.0, None),
        (Target("openrouter", "chat", "moonshotai/kimi-k2", "kimi"), False, None, None),
        (Target("openai", "responses", "gpt-5-mini", "gpt"), False, None, 3_600.0),
        (Target("openai", "responses", "gpt-5", "gpt"), False, None, 86_400.0),
        (LATER_GPT, False, None, None),
        (Target("azure", "chat", "gpt-6-sol", "gpt"), False, None, None),
        (Target("openai", "chat", "qwen3", "unknown"), True, None, None),
        (Target("deepseek", "chat", "deepseek-chat", "deepseek"), False, None, None),
        (GEMINI, False, None, None),
        (LOCAL, False, None, None),
        (Target("anthropic", "chat", "some-proxy-model", "unknown"), False, None, None),
    ],
)
def test_lives_are_those_that_are_documented(target: Target, own: bool, life: float | None, gone: float | None) -> None:
    found = caching_of(target, own)
    assert (found.life, found.gone) == (life, gone)


def test_where_only_ends_are_kept_no_other_beginning_is_found() -> None:
    session = warm(LATER_GPT)
    judged = session.step("abcdefghijklmnopqrs", 15_000)
    assert judged == Judged(15_000)
    # A request ended there, so it is found to the token; nobody ended in the middle.
    assert session.step("abcdefghX", FIXED + 8 * EACH).expected == FIXED + 8 * EACH
    assert said(session.step("abcdeY", 0)) == ("ours", "rewound")


@every(
    ("provider", "model", "least"),
    [
        ("anthropic", "claude-opus-5", 512),
        ("anthropic", "claude-opus-5-5", 512),
        ("anthropic", "claude-fable-5-1", 512),
        ("anthropic", "claude-haiku-5-5-20260901", 512),
        ("anthropic", "claude-sonnet-5", 1_024),
        ("anthropic", "claude-sonnet-5-20260501", 1_024),
        ("anthropic", "claude-sonnet-5-5", 512),
        ("anthropic", "claude-opus-4-8", 1_024),
        ("anthropic", "claude-opus-4-7", 2_048),
        ("bedrock", "us.anthropic.claude-opus-4-7", 4_096),
        ("bedrock", "anthropic.claude-fable-5", 1_024),
        ("anthropic", "claude-mythos-preview", 2_048),
        ("openrouter", "anthropic/claude-opus-4.6", 4_096),
        ("anthropic", "claude-haiku-4-5", 4_096),
        ("anthropic", "claude-3-5-haiku-latest", 2_048),
        ("anthropic", "claude-sonnet-4-6", 1_024),
        ("gemini", "gemini-3-pro-preview", 4_096),
        ("gemini", "gemini-2.5-flash", 2_048),
        ("openai", "gpt-5.6", 1_024),
    ],
)
def test_the_shortest_prompts_are_those_that_are_documented(provider: str, model: str, least: int) -> None:
    family = "claude" if "claude" in model else model.partition("-")[0]
    assert caching_of(Target(provider, "chat", model, family)).minimum == least


class Talk:
    """A conversation that is changed in every way that costs a cache; each way returns its words."""

    def __init__(self, rng: random.Random, target: Target) -> None:
        self.rng, self.session, self.number = rng, Session(target), 0
        self.cleared: set[str] = set()
        self.summaries: list[str] = []
        self.path = [self._new() for _ in range(8)]
        self.left: list[str] = []
        self.before: list[list[str]] = []
        self.compacted: list[list[str]] = []
        self.settings: dict[str, str] = {"thinking": "high"}
        self.memory, self.tools = "AGENTS.md", ["read"]

    def _new(self, kind: str = "m") -> str:
        self.number += 1
        return f"{kind}_{self.number:04}"

    def rewind(self) -> str:
        place = self.rng.randrange(2, len(self.path) - 2)
        self.left, self.path = self.path, [*self.path[:place], self._new()]
        return "rewound"

    def switch_branch(self) -> str:
        self.left, self.path = self.path, self.left
        return "branch switched"

    def compact(self) -> str:
        self.before.append(self.path)
        self.summaries.append(self._new("sum"))
        self.path = [self.summaries[-1], *self.path[self.rng.randrange(2, len(self.path) - 1) :]]
        return "compacted"

    def undo(self) -> str:
        kept = self.before.pop()
        self.path = [*kept, *self.path[-1:]]
        return "compaction undone"

    def rewind_past_the_compaction(self) -> str:
        self.left, self.compacted = self.path, self.before
        self.path, self.before = [*self.before[0][:-1], self._new()], []
        return "rewound"

    def back_to_the_summary(self) -> str:
        self.left, self.path = self.path, self.left
        self.before, self.compacted = self.compacted, []
        return "branch switched"

    def prune(self) -> str:
        self.cleared.add(self._clearable()[0])
        return "old results cleared"

    def _clearable(self) -> list[str]:
        return [key for key in self.path[:4] if key not in (*self.cleared, *self.summaries)]

    def edit(self) -> str:
        self.memory = self._new("edit")
        return "AGENTS.md edited"

    def change_tools(self) -> str:
        came = "grep" not in self.tools
        self.tools = ["read", "grep"] if came else ["read"]
        return f"tools changed: grep {'added' if came else 'removed'}"

    def think(self) -> str:
        self.settings = {**self.settings, "thinking": self._new("effort")}
        return "thinking switched"

    def possible(self) -> dict[str, bool]:
        """What can be done to the messages now."""
        return {
            "rewind": len(self.path) > 5 and not self.before and not self.compacted,
            "switch_branch": len(self.left) > 4 and not self.before and self.left[:2] == self.path[:2],
            "rewind_past_the_compaction": bool(self.before),
            "back_to_the_summary": bool(self.compacted),
            "compact": len(self.path) > 5 and not self.compacted,
            "undo": bool(self.before),
            "prune": bool(self._clearable()),
        }

    def step(self, read: int | None) -> Judged:
        fixed = [PARTS[0], part("memory", "AGENTS.md", "AGENTS.md", self.memory)]
        fixed += [part("tools", "builtin", name) for name in self.tools]
        keys = [f"{key}#cleared" if key in self.cleared else key for key in self.path]
        return self.session.step(
            keys, read, keys=keys, fixed=fixed, settings=self.settings, after=5.0, summaries=tuple(self.summaries)
        )


@every("target", [CLAUDE, GPT, LATER_GPT, GEMINI])
@every("seed", range(12))
def test_every_operation_is_named_and_nothing_else_is(seed: int, target: Target) -> None:
    """The cache gives nothing, whatever was done: what is named is exactly that, and without it nobody is blamed."""
    rng = random.Random(seed)
    talk = Talk(rng, target)
    talk.step(0)
    talk.session.steps[-1].usage = TokenUsage(13_000, 10, cache_read=1_000, cache_write=12_000)
    heard: set[str] = set()
    for _ in range(40):
        done = []
        if rng.random() < 0.6:
            names = [name for name, can in talk.possible().items() if can]
            done.append(getattr(talk, rng.choice(names))())
        for other in (talk.edit, talk.change_tools, talk.think):
            if rng.random() < 0.12:
                done.append(other())
        if not done or rng.random() < 0.5:
            talk.path = [*talk.path, talk._new(), talk._new()]
        cause, what = said(talk.step(0))
        assert (cause, {*what.split(", ")} - {""}) == ("ours" if done else "unknown", {*done})
        heard |= {*done}
    assert len(heard) >= 6
