"""Calls as the published schemas of other agents' tools describe them: understood at once, and without a note.

The names and shapes are facts of those schemas (Claude Code 2.1 ``sdk-tools.d.ts``, Codex, Gemini CLI 0.61, OpenCode,
kimi-cli 1.52, mistral-vibe 3.0); the sentences are ours.
"""

# ruff: noqa: E501 - a call stands on one line where it can

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.aliases import _ARGUMENTS, MAX_SECONDS, own_name, understood
from agent_tui.tools.arguments import unknown_arguments
from agent_tui.tools.builtin.bash import MAX_TIMEOUT
from agent_tui.tools.registry import ToolRegistry, builtin_tools
from tests.support.every import every
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick

Given = dict[str, Any]
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch"
ONE = [{"old_string": "x", "new_string": "y"}]

CALLS: list[tuple[str, Given, str, Given]] = [
    # Claude Code
    ("Bash", {"command": "make", "description": "Build", "timeout": 120000}, "bash", {"command": "make", "timeout": 120}),
    ("Bash", {"command": "ls", "timeout": 600000}, "bash", {"command": "ls", "timeout": 600}),
    ("Bash", {"command": "npm run dev", "run_in_background": True, "timeout": 600000}, "bash",
     {"command": "npm run dev", "background": True}),
    ("Bash", {"command": "ls", "dangerouslyDisableSandbox": True}, "bash", {"command": "ls", "outside": True}),
    ("Read", {"file_path": "a", "offset": 2, "limit": 5}, "read", {"path": "a", "offset": 2, "limit": 5}),
    ("Read", {"file_path": "a", "pages": ""}, "read", {"path": "a"}),
    ("Write", {"file_path": "b", "content": "c"}, "write", {"path": "b", "content": "c"}),
    ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": False}, "edit",
     {"path": "a", "old_string": "x", "new_string": "y", "replace_all": False}),
    ("MultiEdit", {"file_path": "a", "edits": ONE}, "edit", {"path": "a", "edits": ONE}),
    ("Grep", {"pattern": "x", "path": ".", "glob": "*.py", "output_mode": "content", "-n": True, "-i": True, "-C": 2},
     "grep", {"pattern": "x", "path": ".", "glob": "*.py", "ignore_case": True, "context": 2}),
    ("Grep", {"pattern": "x", "output_mode": "files_with_matches", "head_limit": 10, "multiline": True}, "grep",
     {"pattern": "x", "files_only": True, "multiline": True}),
    ("Grep", {"pattern": "x", "-A": 3, "-B": 1, "offset": 0}, "grep", {"pattern": "x", "context": 3}),
    ("Glob", {"pattern": "**/*.py", "path": "."}, "glob", {"pattern": "**/*.py", "path": "."}),
    ("LS", {"path": ".", "ignore": ["node_modules"]}, "list", {"path": "."}),
    ("WebFetch", {"url": "https://example.org/", "prompt": "What does it say?"}, "fetch", {"url": "https://example.org/"}),
    ("TodoWrite", {"todos": [{"content": "do it", "status": "in_progress", "activeForm": "Doing it"}]}, "todo",
     {"items": [{"text": "do it", "status": "in_progress"}]}),
    ("Task", {"description": "find it", "prompt": "Find it.", "subagent_type": "Explore", "run_in_background": True},
     "subagent", {"description": "find it", "prompt": "Find it.", "background": True, "type": "Explore"}),
    ("Agent", {"description": "find it", "prompt": "Find it.", "model": "haiku", "run_in_background": False}, "subagent",
     {"description": "find it", "prompt": "Find it."}),
    ("BashOutput", {"bash_id": "job1", "filter": "x"}, "jobs", {"id": "job1"}),
    ("TaskOutput", {"task_id": "job1", "block": False, "timeout": 30000}, "jobs", {"id": "job1"}),
    ("KillShell", {"shell_id": "job1"}, "jobs", {"id": "job1", "stop": True}),
    ("TaskStop", {"task_id": "job1"}, "jobs", {"id": "job1", "stop": True}),
    ("ExitPlanMode", {"plan": "1. do it"}, "present_plan", {"plan": "1. do it"}),
    ("AskUserQuestion", {"questions": [{"question": "Which?", "header": "Way", "multiSelect": False, "options": [
        {"label": "a", "description": "the first"}, {"label": "b", "description": "the second"}]}]}, "ask",
     {"question": "Which?", "choices": ["a", "b"], "several": False}),
    # Anthropic's text editor
    ("str_replace_based_edit_tool", {"command": "view", "path": "a", "view_range": [2, 4]}, "read",
     {"path": "a", "offset": 2, "limit": 3}),
    ("str_replace_editor", {"command": "view", "path": "folder"}, "list", {"path": "folder"}),
    ("str_replace_editor", {"command": "create", "path": "b", "file_text": "c"}, "write", {"path": "b", "content": "c"}),
    ("str_replace_editor", {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}, "edit",
     {"path": "a", "old_string": "x", "new_string": "y"}),
    # Codex
    ("shell", {"command": ["bash", "-lc", "ls | wc -l"], "workdir": ".", "timeout_ms": 5000}, "bash",
     {"command": "ls | wc -l", "timeout": 5}),
    ("shell", {"command": ["git", "commit", "-m", "a b"], "with_escalated_permissions": True, "justification": "why"},
     "bash", {"command": "git commit -m 'a b'", "outside": True}),
    ("shell_command", {"command": "ls", "workdir": "folder", "login": True, "timeout_ms": 1000}, "bash",
     {"command": "cd folder && ls", "timeout": 1}),
    ("exec_command", {"cmd": "ls; pwd", "workdir": "a b", "yield_time_ms": 1000, "max_output_tokens": 500}, "bash",
     {"command": "cd 'a b' && {\nls; pwd\n}"}),
    ("exec_command", {"cmd": "ls", "sandbox_permissions": "use_default"}, "bash", {"command": "ls"}),
    ("exec_command", {"cmd": "ls", "sandbox_permissions": "require_escalated", "justification": "why"}, "bash",
     {"command": "ls", "outside": True}),
    ("container.exec", {"cmd": ["ls", "-la"]}, "bash", {"command": "ls -la"}),
    ("functions.shell", {"command": ["ls"]}, "bash", {"command": "ls"}),
    ("shell", {"command": ["apply_patch", PATCH]}, "apply_patch", {"input": PATCH}),
    ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"}, "apply_patch", {"input": PATCH}),
    ("bash", {"command": f"cd folder && apply_patch <<\"PATCH\"\n{PATCH}\nPATCH"}, "apply_patch",
     {"input": PATCH.replace("new.txt", "folder/new.txt")}),
    ("apply_patch", {"patch": PATCH}, "apply_patch", {"input": PATCH}),
    ("update_plan", {"explanation": "as agreed", "plan": [{"step": "do it", "status": "completed"}]}, "todo",
     {"items": [{"text": "do it", "status": "completed"}]}),
    ("list_dir", {"dir_path": ".", "offset": 1, "limit": 50, "depth": 2}, "list", {"path": ".", "depth": 2}),
    ("read_file", {"file_path": "a", "offset": 1, "limit": 5, "mode": "slice"}, "read",
     {"path": "a", "offset": 1, "limit": 5}),
    ("grep_files", {"pattern": "x", "include": "*.py", "path": ".", "limit": 20}, "grep",
     {"pattern": "x", "glob": "*.py", "path": "."}),
    ("view_image", {"path": "a"}, "read", {"path": "a"}),
    # Gemini CLI
    ("run_shell_command", {"command": "ls", "description": "look", "dir_path": "folder", "is_background": False}, "bash",
     {"command": "cd folder && ls", "background": False}),
    ("read_file", {"file_path": "a", "start_line": 3, "end_line": 7}, "read", {"path": "a", "offset": 3, "limit": 5}),
    ("write_file", {"file_path": "b", "content": "c"}, "write", {"path": "b", "content": "c"}),
    ("replace", {"file_path": "a", "instruction": "x to y", "old_string": "x", "new_string": "y",
                 "allow_multiple": True}, "edit", {"path": "a", "old_string": "x", "new_string": "y", "replace_all": True}),
    ("list_directory", {"dir_path": ".", "ignore": ["x"], "file_filtering_options": {"respect_git_ignore": True}},
     "list", {"path": "."}),
    ("search_file_content", {"pattern": "x", "dir_path": ".", "include_pattern": "*.py", "names_only": True}, "grep",
     {"pattern": "x", "path": ".", "glob": "*.py", "files_only": True}),
    ("grep_search", {"pattern": "a.b", "case_sensitive": False, "after": 2, "before": 1,
                     "total_max_matches": 9}, "grep", {"pattern": "a.b", "ignore_case": True, "context": 2}),
    ("glob", {"pattern": "*", "dir_path": ".", "case_sensitive": False, "respect_git_ignore": True}, "glob",
     {"pattern": "*", "path": "."}),
    ("write_todos", {"todos": [{"description": "do it", "status": "pending"}, {"description": "not this",
                                                                              "status": "cancelled"}]}, "todo",
     {"items": [{"text": "do it", "status": "pending"}]}),
    # OpenCode
    ("bash", {"command": "ls", "description": "Lists files", "timeout": 60000, "workdir": "folder"}, "bash",
     {"command": "cd folder && ls", "timeout": 60}),
    ("read", {"filePath": "a", "offset": 0, "limit": 10}, "read", {"path": "a", "offset": 0, "limit": 10}),
    ("write", {"filePath": "b", "content": "c"}, "write", {"path": "b", "content": "c"}),
    ("edit", {"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": True}, "edit",
     {"path": "a", "old_string": "x", "new_string": "y", "replace_all": True}),
    ("multiedit", {"filePath": "a", "edits": [{"oldString": "x", "newString": "y"}]}, "edit",
     {"path": "a", "edits": ONE}),
    ("grep", {"pattern": "x", "path": ".", "include": "*.py"}, "grep", {"pattern": "x", "path": ".", "glob": "*.py"}),
    ("webfetch", {"url": "https://example.org/", "format": "markdown", "timeout": 30}, "fetch",
     {"url": "https://example.org/"}),
    ("todowrite", {"todos": [{"id": "1", "content": "do it", "status": "pending", "priority": "high"}]}, "todo",
     {"items": [{"text": "do it", "status": "pending"}]}),
    ("apply_patch", {"patchText": PATCH}, "apply_patch", {"input": PATCH}),
    # kimi-cli
    ("Shell", {"command": "ls", "timeout": 60, "run_in_background": False}, "bash",
     {"command": "ls", "timeout": 60, "background": False}),
    ("ReadFile", {"path": "a", "line_offset": 2, "n_lines": 3}, "read", {"path": "a", "offset": 2, "limit": 3}),
    ("WriteFile", {"path": "b", "content": "c", "mode": "overwrite"}, "write", {"path": "b", "content": "c"}),
    ("StrReplaceFile", {"path": "a", "edit": {"old": "x", "new": "y"}}, "edit", {"path": "a", "edits": ONE}),
    ("Glob", {"pattern": "*.py", "directory": ".", "include_dirs": False}, "glob", {"pattern": "*.py", "path": "."}),
    ("Grep", {"pattern": "x", "ignore_case": True, "before_context": 1, "line_number": True}, "grep",
     {"pattern": "x", "ignore_case": True, "context": 1}),
    ("SetTodoList", {"todos": [{"title": "do it", "status": "done"}]}, "todo",
     {"items": [{"text": "do it", "status": "completed"}]}),
    ("FetchURL", {"url": "https://example.org/"}, "fetch", {"url": "https://example.org/"}),
    # mistral-vibe
    ("task", {"task": "Find all of the places where it is used.", "agent": "explore"}, "subagent",
     {"description": "Find all of the places where", "prompt": "Find all of the places where it is used.",
      "type": "explore"}),
    ("grep", {"pattern": "x", "path": ".", "max_matches": 5}, "grep", {"pattern": "x", "path": "."}),
    ("todo", {"action": "write", "todos": [{"id": "1", "content": "do it", "status": "pending", "priority": "low"}]},
     "todo", {"items": [{"text": "do it", "status": "pending"}]}),
]  # fmt: skip


@every(("name", "given", "tool", "ours"), CALLS)
def test_what_was_learned_with_other_agents_is_understood_without_a_note(
    name: str, given: Given, tool: str, ours: Given, tmp_path: Path
) -> None:
    context = make_context(tmp_path / "project")
    (context.root / "a").write_text("x\n")
    (context.root / "folder").mkdir()
    found, arguments = understood(name, json.loads(json.dumps(given)), context.root)
    assert (found, arguments) == (tool, ours)
    one = ToolRegistry(builtin_tools(types=lambda: {"explore": "Finds things."})).get(found)
    assert unknown_arguments(one.schema.parameters, arguments) == []
    one.intent(arguments, context)


def test_the_table_knows_every_argument_of_every_tool() -> None:
    for tool in builtin_tools():
        name = tool.schema.name
        module = sys.modules[type(tool).__module__]
        fields = dataclasses.fields(getattr(module, f"{name.title().replace('_', '')}Arguments"))
        assert list(_ARGUMENTS[name]) == [field.name for field in fields]
        assert understood(name, {}, Path("/"))[0] == own_name(name.upper()) == name
    assert MAX_SECONDS == MAX_TIMEOUT


@every("name", [tool.schema.name for tool in builtin_tools()])
def test_what_is_ours_stays_as_it_is(name: str) -> None:
    given = {own: f"a {own}" for own in _ARGUMENTS[name]}
    assert understood(name, given, Path("/")) == (name, given)


def test_what_our_own_name_says_wins_over_what_others_call_it() -> None:
    assert understood("read", {"file_path": "b", "path": "a"}, Path("/")) == ("read", {"path": "a"})
    assert understood("read", {"file_path": "b", "path": None}, Path("/")) == ("read", {"path": "b"})


@every(
    ("given", "seconds"),
    [(30, 30), (3_600, 3_600), (3_601, 3.601), (5_000, 5), (600_000, 600), ("90000", 90), (0.5, 0.5)],
)
def test_a_time_beyond_the_longest_wait_is_in_milliseconds(given: object, seconds: float) -> None:
    found = understood("Bash", {"command": "ls", "timeout": given}, Path("/"))[1]["timeout"]
    assert float(found) == seconds


@every(
    ("name", "given", "said"),
    [
        ("WriteFile", {"path": "a", "content": "b", "mode": "append"}, "append"),
        ("str_replace_editor", {"command": "insert", "path": "a", "insert_line": 1, "new_str": "b"}, "insert"),
        ("AskUserQuestion", {"questions": [{"question": "a?"}, {"question": "b?"}]}, "one question"),
    ],
)
def test_what_would_mean_something_else_here_is_refused(name: str, given: Given, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        understood(name, given, Path("/"))


@every(
    ("name", "given", "left"),
    [
        ("shell", {"command": ["ls"], "env": {"A": "b"}}, ["env"]),
        ("read", {"path": "a", "encoding": "latin-1"}, ["encoding"]),
        ("Grep", {"pattern": "x", "type": "py"}, ["type"]),
    ],
)
def test_what_is_not_known_stays_to_be_named(name: str, given: Given, left: list[str]) -> None:
    tool, arguments = understood(name, given, Path("/"))
    assert unknown_arguments(ToolRegistry(builtin_tools()).get(tool).schema.parameters, arguments) == left


@every(
    "command",
    [
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\nrm -rf src",
        f"ls && apply_patch <<'EOF'\n{PATCH}\nEOF",
        f"apply_patch <<'EOF' && make\n{PATCH}\nEOF",
        f"cd $(evil) && apply_patch <<'EOF'\n{PATCH}\nEOF",
        f"apply_patch <<'EOF'\n{PATCH}\nEOF | sh",
    ],
)
def test_a_command_that_does_more_than_apply_a_patch_stays_a_command(command: str) -> None:
    assert understood("bash", {"command": command}, Path("/")) == ("bash", {"command": command})


HARD: list[Any] = [
    None,
    "",
    [],
    {},
    True,
    0,
    -1,
    1e308,
    "\0",
    "\ud800",
    [None],
    [{}],
    [[]],
    {"command": 1},
    "[1]",
    ["a"],
]


def test_whatever_is_sent_is_put_into_words_or_refused_in_words(tmp_path: Path) -> None:
    context = make_context(tmp_path / "project")
    registry = ToolRegistry(builtin_tools())
    for name, given, _, _ in CALLS:
        for key in given:
            for value in HARD:
                try:
                    tool, arguments = understood(name, {**given, key: value}, context.root)
                    registry.get(tool).intent(arguments, context)
                except ToolError as error:
                    str(error).encode("utf-8", "backslashreplace")
