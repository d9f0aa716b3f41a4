"""Hooks as a session runs them: what they keep from happening, what they add, and what the user is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_tui.bootstrap import numbers_of
from agent_tui.config import PermissionMode, PermissionsConfig, Settings
from agent_tui.engine.state import AgentParts
from agent_tui.models.events import CompactionEnded, Notice, PermissionAsked
from agent_tui.models.messages import Message, attachments_of
from agent_tui.models.rows import ROW_KINDS
from agent_tui.tools.hooks import Hook
from tests.support.agents import Recorder, parts_for, results, running, say, waiting
from tests.support.forms import one_of
from tests.support.scripts import step
from tests.support.waiting import PATIENCE, Bell


def hook(event: str, command: str, matcher: str = "", *, timeout: float | None = None, own: bool = True) -> Hook:
    return Hook(event, command, matcher, timeout, "test", own)


def answering(event: str, matcher: str = "", *, own: bool = True, **output: object) -> Hook:
    """A hook that answers so."""
    return hook(event, f"cat > /dev/null; cat <<'END'\n{json.dumps(output)}\nEND", matcher, own=own)


def decides(event: str, **fields: object) -> Hook:
    return answering(event, hookSpecificOutput={"hookEventName": event, **fields})


def agent_parts(
    tmp_path: Path,
    *hooks: Hook,
    script: str | None = None,
    mode: PermissionMode = "auto",
    can_ask: bool = True,
    deny: Sequence[str] = (),
    ask: Sequence[str] = (),
) -> AgentParts:
    settings = Settings(permissions=PermissionsConfig(mode, deny=list(deny), ask=list(ask)))
    parts = parts_for(tmp_path / "home", tmp_path / "project", script=script, settings=settings, can_ask=can_ask)
    parts.hooks, parts.numbers = lambda: hooks, numbers_of
    return parts


def told(tmp_path: Path, name: str = "told") -> list[dict[str, object]]:
    """What hooks that append what they read to a file of the project were told."""
    return [json.loads(line) for line in (tmp_path / "project" / name).read_text().splitlines()]


def lines(seen: Recorder, code: str) -> list[str]:
    return [event.text for event in seen.of(Notice) if event.code == code]


def added(message: Message) -> list[tuple[str, str | None]]:
    return [(part.name, part.text) for part in attachments_of(message) if part.is_hook]


WRITES = step(write={"path": "new.txt", "content": "hello\n"}) + step("done")
RUNS = step(bash={"command": "echo one > ran.txt"}) + step("done")


@pytest.mark.quick
async def test_a_hook_blocks_a_call_and_the_model_is_told_why(tmp_path: Path) -> None:
    blocks = hook("PreToolUse", "cat >> told; echo 'not this file' >&2; exit 2", "Write")
    async with running(agent_parts(tmp_path, blocks, script=WRITES)) as (agent, _):
        await say(agent, "write it")
        (result,) = results(agent)
        assert result.is_error and "not this file" in result.text
        assert not (tmp_path / "project/new.txt").exists()
        (seen,) = told(tmp_path)
        path = str(tmp_path / "project/new.txt")
        assert (seen["hook_event_name"], seen["tool_name"]) == ("PreToolUse", "Write")
        assert seen["tool_input"] == {"file_path": path, "content": "hello\n"}
        assert (seen["session_id"], seen["permission_mode"]) == (agent.conversation.info.id, "auto")
        assert seen["cwd"] == str(tmp_path / "project")
        context = seen["context"]
        assert isinstance(context, dict) and context["total"] > 0
        assert sum(row["tokens"] for row in context["rows"]) == context["total"]


async def test_a_matcher_that_does_not_fit_runs_nothing(tmp_path: Path) -> None:
    async with running(agent_parts(tmp_path, hook("PreToolUse", "touch ran", "Bash|Edit"), script=WRITES)) as (
        agent,
        _,
    ):
        await say(agent, "write it")
        assert (tmp_path / "project/new.txt").exists() and not (tmp_path / "project/ran").exists()


async def test_a_hook_changes_the_input_and_what_runs_is_judged(tmp_path: Path) -> None:
    changes = decides("PreToolUse", permissionDecision="allow", updatedInput={"command": "echo two > ran.txt"})
    async with running(agent_parts(tmp_path, changes, script=RUNS, mode="bypass")) as (agent, _):
        await say(agent, "run it")
        assert (tmp_path / "project/ran.txt").read_text() == "two\n"
        assert "A hook changed the input" in results(agent)[0].text
        stored = agent.conversation.path[1].tool_calls[0]
        assert "one" in stored.arguments, "what the model wrote stays as it was"
    denied = agent_parts(tmp_path / "again", changes, script=RUNS, mode="bypass", deny=["bash(echo two*)"])
    async with running(denied) as (agent, _):
        await say(agent, "run it")
        assert results(agent)[0].is_error and not (tmp_path / "again/project/ran.txt").exists()


@pytest.mark.forms(1)
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_a_hook_answers_the_question(tmp_path: Path, event: str) -> None:
    said = {"permissionDecision": "allow"} if event == "PreToolUse" else {"decision": {"behavior": "allow"}}
    async with running(agent_parts(tmp_path, decides(event, **said), script=WRITES, mode="ask")) as (agent, seen):
        await say(agent, "write it")
        assert (tmp_path / "project/new.txt").exists() and not seen.of(PermissionAsked)


async def test_a_yes_of_a_hook_needs_nobody_to_ask(tmp_path: Path) -> None:
    allows = decides("PreToolUse", permissionDecision="allow")
    async with running(agent_parts(tmp_path, allows, script=WRITES, mode="ask", can_ask=False)) as (agent, _):
        await say(agent, "write it")
        assert (tmp_path / "project/new.txt").exists()


@pytest.mark.forms(1)
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_a_yes_of_a_hook_changes_no_rule(tmp_path: Path, event: str) -> None:
    said = {"permissionDecision": "allow"} if event == "PreToolUse" else {"decision": {"behavior": "allow"}}
    allows = decides(event, **said)
    denied = agent_parts(tmp_path / "deny", allows, script=WRITES, mode="ask", deny=["write(new.txt)"])
    async with running(denied) as (agent, seen):
        await say(agent, "write it")
        assert results(agent)[0].is_error and not (tmp_path / "deny/project/new.txt").exists()
    asked = agent_parts(tmp_path / "ask", allows, script=WRITES, mode="accept-edits", ask=["write(new.txt)"])
    async with running(asked) as (agent, seen):
        agent.turns.submit("write it")
        await seen.until(lambda: seen.of(PermissionAsked))
        agent.permissions.answer(seen.of(PermissionAsked)[0].request_id, False)
        await agent.turns.join()
    async with running(agent_parts(tmp_path / "plan", allows, script=WRITES, mode="plan")) as (agent, _):
        await say(agent, "write it")
        assert results(agent)[0].is_error and not (tmp_path / "plan/project/new.txt").exists()


async def test_a_project_can_ask_and_deny_and_allow_nothing(tmp_path: Path) -> None:
    said = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    theirs = answering("PreToolUse", own=False, hookSpecificOutput=said)
    async with running(agent_parts(tmp_path, theirs, script=WRITES, mode="ask")) as (agent, seen):
        agent.turns.submit("write it")
        await seen.until(lambda: seen.of(PermissionAsked))
        assert "only hooks of your own configuration can allow" in lines(seen, "hook_failed")[0]
        agent.permissions.answer(seen.of(PermissionAsked)[0].request_id, False)
        await agent.turns.join()


async def test_a_hook_asks_about_what_would_run_unasked(tmp_path: Path) -> None:
    asks = decides("PreToolUse", permissionDecision="ask", permissionDecisionReason="is this right")
    async with running(agent_parts(tmp_path, asks, script=WRITES, mode="accept-edits")) as (agent, seen):
        agent.turns.submit("write it")
        await seen.until(lambda: seen.of(PermissionAsked))
        question = seen.of(PermissionAsked)[0]
        assert "is this right" in question.reason and not question.offers
        agent.permissions.answer(question.request_id, True)
        await agent.turns.join()
        assert (tmp_path / "project/new.txt").exists()


async def test_what_hooks_say_of_a_call_is_sent_with_its_result_and_priced(tmp_path: Path) -> None:
    after = hook("PostToolUse", "cat >> told; echo 'run the formatter' >&2; exit 2", "Write")
    before = decides("PreToolUse", additionalContext="a word before")
    async with running(agent_parts(tmp_path, before, after, script=WRITES)) as (agent, seen):
        await say(agent, "write it")
        message = next(m for m in agent.conversation.path if m.role == "tool")
        expected = [("PreToolUse hook", "a word before"), ("PostToolUse hook", "run the formatter")]
        assert added(message) == expected
        (seen_by_hook,) = told(tmp_path)
        response = seen_by_hook["tool_response"]
        assert isinstance(response, dict) and response["success"] is True
        rows = {row.id: row for top in agent.context.usage().rows for row in top.children}
        assert [row.label for row in rows["hooks"].children] == ["PreToolUse hook", "PostToolUse hook"]
        assert 0 < rows["hooks"].tokens == sum(row.tokens for row in rows["hooks"].children)
        usage = agent.context.usage()
        assert sum(row.tokens for row in usage.rows) == usage.total
        assert any("added 13 characters" in line for line in lines(seen, "hook_added"))


async def test_a_failed_call_is_no_work_that_was_done(tmp_path: Path) -> None:
    fails = step(read={"path": "not-there"}) + step("done")
    async with running(agent_parts(tmp_path, hook("PostToolUse", "touch ran"), script=fails)) as (agent, _):
        await say(agent, "read it")
        assert results(agent)[0].is_error and not (tmp_path / "project/ran").exists()


async def test_a_hook_adds_a_row_to_a_prompt_that_survives_the_session(tmp_path: Path) -> None:
    adds = hook("UserPromptSubmit", "cat >> told; echo 'branch: main'")
    begins = hook("SessionStart", "cat >> told; echo 'sprint: 12'")
    async with running(agent_parts(tmp_path, adds, begins)) as (agent, _):
        await say(agent, "hello there")
        session = agent.conversation.info.id
        message = agent.conversation.path[0]
        assert added(message) == [("SessionStart hook", "sprint: 12"), ("UserPromptSubmit hook", "branch: main")]
        kinds = [entry["hook_event_name"] for entry in told(tmp_path)]
        assert kinds == ["SessionStart", "UserPromptSubmit"]
        assert [told(tmp_path)[0]["source"], told(tmp_path)[1]["prompt"]] == ["startup", "hello there"]
        rows = {row.id: row for top in agent.context.usage().rows for row in top.children}
        assert [row.label for row in rows["hooks"].children] == ["SessionStart hook", "UserPromptSubmit hook"]
        await say(agent, "and again")
        assert added(agent.conversation.path[2]) == [("UserPromptSubmit hook", "branch: main")], "a start is told once"
    again = parts_for(tmp_path / "home", tmp_path / "project", resume=session)
    async with running(again) as (agent, _):
        assert len(added(agent.conversation.path[0])) == 2
        rows = {row.id: row for top in agent.context.usage().rows for row in top.children}
        assert rows["hooks"].tokens > 0 and ROW_KINDS["hooks"].label == rows["hooks"].label


async def test_a_blocked_message_is_not_sent_and_waits(tmp_path: Path) -> None:
    blocks = hook("UserPromptSubmit", "grep -q secret && { echo 'no secrets' >&2; exit 2; }; exit 0")
    async with running(agent_parts(tmp_path, blocks)) as (agent, seen):
        await say(agent, "a secret")
        assert agent.conversation.path == [] and waiting(agent, "failed") == ["a secret"]
        failure = seen.last_end.failure
        assert failure is not None and failure.kind == "hook" and "no secrets" in failure.message
        assert agent.turns.take_back() is not None
        await say(agent, "a word")
        assert [m.role for m in agent.conversation.path] == ["user", "assistant"]


async def test_a_message_into_a_running_turn_is_asked_about_too(tmp_path: Path) -> None:
    blocks = hook("UserPromptSubmit", "grep -q secret && { echo 'no secrets' >&2; exit 2; }; exit 0")
    script = (
        step(bash={"command": "sleep 0.3"})
        + step(
            "done",
        )
        + step("never")
    )
    async with running(agent_parts(tmp_path, blocks, script=script, mode="bypass")) as (agent, seen):
        agent.turns.submit("go")
        await seen.until(lambda: [m for m in agent.conversation.path if m.role == "assistant"])
        agent.turns.steer("a secret")
        await agent.turns.join()
        assert all("secret" not in message.text for message in agent.conversation.path)
        assert waiting(agent, "failed") == ["a secret"]


async def test_a_stop_hook_has_the_model_go_on_with_a_word(tmp_path: Path) -> None:
    stops = hook("Stop", "cat >> told; test -e tested || { touch tested; echo 'run the tests' >&2; exit 2; }")
    script = step("finished") + step("tests are green")
    async with running(agent_parts(tmp_path, stops, script=script)) as (agent, seen):
        await say(agent, "do it")
        assert [m.role for m in agent.conversation.path] == ["user", "assistant", "user", "assistant"]
        assert added(agent.conversation.path[2]) == [("Stop hook", "run the tests")]
        assert [entry["stop_hook_active"] for entry in told(tmp_path)] == [False, True]
        assert [entry["last_assistant_message"] for entry in told(tmp_path)] == ["finished", "tests are green"]
        assert not lines(seen, "hook")
        assert lines(seen, "hook_added") == ["Stop hook: the model goes on: run the tests"]
        assert seen.last_end.stop_reason == "end"


async def test_a_stop_hook_that_never_agrees_is_not_asked_for_ever(tmp_path: Path) -> None:
    async with running(agent_parts(tmp_path, hook("Stop", "echo more >&2; exit 2"))) as (agent, seen):
        await say(agent, "do it")
        assert seen.last_end.stop_reason == "end"
        assert sum(bool(added(m)) for m in agent.conversation.path) == 8
        assert any("8 times in a row" in line for line in lines(seen, "hook"))


async def test_continue_false_ends_the_turn(tmp_path: Path) -> None:
    ends = hook("PostToolUse", 'echo \'{"continue": false, "stopReason": "that is enough"}\'')
    async with running(agent_parts(tmp_path, ends, script=WRITES)) as (agent, seen):
        await say(agent, "write it")
        assert [m.role for m in agent.conversation.path] == ["user", "assistant", "tool"]
        assert lines(seen, "hook") == ["A hook stopped the turn: that is enough"]


EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")


@pytest.mark.parametrize("event", one_of(EVENTS, every=3))
async def test_esc_ends_a_hook_that_hangs(tmp_path: Path, event: str) -> None:
    hangs = hook(event, f"cat > /dev/null; echo begun > {tmp_path}/bell; sleep 1000 & sleep 1000")
    parts = agent_parts(tmp_path, hangs, script=WRITES)
    with Bell(tmp_path / "bell") as bell:
        async with running(parts) as (agent, seen):
            agent.turns.submit("write it")
            assert await bell.rung() == "begun\n"
            agent.turns.interrupt()
            async with asyncio.timeout(PATIENCE):
                await agent.turns.join()
            assert seen.last_end.stop_reason == "interrupted"
            if event == "PostToolUse":
                assert "new.txt" in results(agent)[0].text, "what the tool did is not lost"


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("command", "said"),
    one_of(
        [
            ("exit 1", "exit code 1."),
            ("echo oops >&2; exit 7", "exit code 7: oops."),
            ("echo '{\"decision\": 5}'", "answered what cannot be used: decision is no text."),
            ("head -c 3000000 /dev/zero", "printed more than 1 MB and was ended."),
            (r"printf '\033[31m\xff\xfe' >&2; exit 4", "exit code 4"),
        ],
        2,
    ),
)
async def test_one_that_fails_is_a_line_and_the_session_goes_on(tmp_path: Path, command: str, said: str) -> None:
    broken = [
        hook(event, command) for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    ]
    async with running(agent_parts(tmp_path, *broken, script=WRITES)) as (agent, seen):
        await say(agent, "write it")
        assert (tmp_path / "project/new.txt").exists() and seen.last_end.stop_reason == "end"
        told_of = lines(seen, "hook_failed")
        assert len(told_of) == 5 and all(said in line and "\x1b" not in line for line in told_of)


async def test_one_that_is_late_is_a_line(tmp_path: Path) -> None:
    late = hook("PreToolUse", "sleep 1000", timeout=0.2)
    async with running(agent_parts(tmp_path, late, script=WRITES)) as (agent, seen):
        await say(agent, "write it")
        assert (tmp_path / "project/new.txt").exists()
        assert lines(seen, "hook_failed") == ["PreToolUse hook `sleep 1000`: took more than 0.2 s and was ended."]


async def test_the_same_failure_is_told_once_until_it_works(tmp_path: Path) -> None:
    flaky = hook("UserPromptSubmit", "test -e works")
    async with running(agent_parts(tmp_path, flaky)) as (agent, seen):
        await say(agent, "one")
        await say(agent, "two")
        assert len(lines(seen, "hook_failed")) == 1
        (tmp_path / "project/works").touch()
        await say(agent, "three")
        (tmp_path / "project/works").unlink()
        await say(agent, "four")
        assert len(lines(seen, "hook_failed")) == 2


async def test_hooks_of_an_event_run_side_by_side_and_the_same_one_once(tmp_path: Path) -> None:
    meets = "touch $0-%s; for i in $(seq 500); do test -e $0-%s && exit 0; sleep 0.02; done; exit 1"
    pair = [hook("PreToolUse", meets % way) for way in (("a", "b"), ("b", "a"))]
    twice = [hook("PreToolUse", "echo x >> count"), hook("PreToolUse", "echo x >> count", "Write")]
    async with running(agent_parts(tmp_path, *pair, *twice, script=WRITES)) as (agent, seen):
        await say(agent, "write it")
        assert lines(seen, "hook_failed") == []
        assert (tmp_path / "project/count").read_text() == "x\n"


async def test_long_words_are_cut_and_kept_in_a_file(tmp_path: Path) -> None:
    long = hook("UserPromptSubmit", "seq 1 20000")
    async with running(agent_parts(tmp_path, long)) as (agent, _):
        await say(agent, "hello")
        ((_, text),) = added(agent.conversation.path[0])
        assert text is not None and len(text) < 10_300 and "everything is in" in text
        kept = next((tmp_path / "home/cache/output").rglob("hook*.txt"))
        assert kept.read_text().splitlines()[-1] == "20000"


async def test_compaction_is_told_of_and_can_be_kept_from_happening(tmp_path: Path) -> None:
    blocks = hook("PreCompact", "cat >> told; test -e allowed || { echo 'not now' >&2; exit 2; }", "manual")
    after = hook("PostCompact", "cat >> told")
    again = hook("SessionStart", "echo 'the plan is in PLAN.md'", "compact")
    parts = agent_parts(tmp_path, blocks, after, again)
    async with running(parts) as (agent, seen):
        for text in ("one " * 4_000, "two " * 4_000, "three", "four", "five"):
            await say(agent, text)
        await agent.compaction.now("the tests")
        ended = seen.of(CompactionEnded)[-1]
        assert ended.outcome == "cancelled" and "not now" in ended.text
        (tmp_path / "project/allowed").touch()
        await agent.compaction.now("the tests")
        assert seen.of(CompactionEnded)[-1].outcome == "done"
        first, _, done = told(tmp_path)
        assert (first["trigger"], first["custom_instructions"]) == ("manual", "the tests")
        assert (done["hook_event_name"], done["trigger"]) == ("PostCompact", "manual") and done["compact_summary"]
        await say(agent, "go on")
        newest = [m for m in agent.conversation.path if m.role == "user"][-1]
        assert added(newest) == [("SessionStart hook", "the plan is in PLAN.md")]


async def test_the_end_of_a_session_is_told_once_with_its_reason(tmp_path: Path) -> None:
    ends = hook("SessionEnd", "cat >> told", timeout=20)
    begins = hook("SessionStart", "cat >> begun")
    async with running(agent_parts(tmp_path, ends, begins)) as (agent, _):
        await say(agent, "hello")
        first = agent.conversation.info.id
        await agent.sessions.clear()
        await say(agent, "hello again")
    assert [(e["reason"], e["session_id"] == first) for e in told(tmp_path)] == [
        ("clear", True),
        ("prompt_input_exit", False),
    ]
    assert [e["source"] for e in told(tmp_path, "begun")] == ["startup", "clear"]


async def test_subagents_are_known_by_their_id(tmp_path: Path) -> None:
    hooks = [hook(event, "cat >> told") for event in ("PreToolUse", "SubagentStop", "Stop", "UserPromptSubmit")]
    script = step(subagent={"description": "look", "prompt": "look around"})
    script += step(list={"path": "."}) + step("found it") + step("all done")
    async with running(agent_parts(tmp_path, *hooks, script=script)) as (agent, _):
        await say(agent, "go")
        seen = [(e["hook_event_name"], e.get("tool_name"), "agent_id" in e) for e in told(tmp_path)]
        assert seen == [
            ("UserPromptSubmit", None, False),
            ("PreToolUse", "Task", False),
            ("PreToolUse", "LS", True),
            ("SubagentStop", None, True),
            ("Stop", None, False),
        ]
        assert len({e["session_id"] for e in told(tmp_path)}) == 1


async def test_a_question_to_the_user_is_a_notification(tmp_path: Path) -> None:
    async with running(
        agent_parts(tmp_path, hook("Notification", "cat >> told", "permission_prompt"), script=WRITES, mode="ask")
    ) as (agent, seen):
        agent.turns.submit("write it")
        await seen.until(lambda: seen.of(PermissionAsked))
        await agent.events.settled()
        assert told(tmp_path)[0]["notification_type"] == "permission_prompt"
        agent.permissions.answer(seen.of(PermissionAsked)[0].request_id, False)
        await agent.turns.join()


async def test_keys_are_masked_in_what_hooks_say(tmp_path: Path) -> None:
    adds = hook("UserPromptSubmit", "echo 'the key is sk-very-secret-key-123456'")
    parts = agent_parts(tmp_path, adds)
    parts.secrets.add("sk-very-secret-key-123456")
    async with running(parts) as (agent, seen):
        await say(agent, "hello")
        assert "very-secret" not in str(agent.conversation.path) and "very-secret" not in str(seen.of(Notice))
