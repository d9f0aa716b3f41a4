"""Files are opened where this list says. What agent-tui reads by itself and sends, and what it writes by itself into a
project or where its user says, goes through ``tools/files/access.py``, which knows links, deny rules and races."""

from __future__ import annotations

import ast
import re

from tests.support.sources import matching

OPENERS = {"paths.py", "tools/files/access.py", "tools/files/beneath.py", "tools/files/text.py"}
"""By descriptors, from the root folder down; ``paths.py`` what must be no pipe and no device."""

ELSEWHERE = {
    "agent-tui's own folders, temporary files and package": """
        acp.py cli/subcommands.py commands/desktop.py commands/export/page.py config/schema.py engine/transcript.py
        history.py
        pipes/pipe.py providers/demo_script.py providers/litellm_files.py serve/server.py store/backup.py
        store/database.py store/locks.py store/private_file.py store/repair.py tools/children/git_broker.py
        tools/git/outside.py tools/git/repository.py
        tools/output.py tools/sandbox/box.py tools/sandbox/keep.py tools/sandbox/protected.py ui/first_frame.py
        ui/theme.py""",
    "copies for /rewind and of the repository: the folder is held open, no link is followed": """
        tools/files/kept.py tools/files/repository_copy.py""",
    "what the system says of processes, and the ends of pipes": """
        cli/__init__.py cli/piped.py control/lines.py pipes/programs.py tools/children/process.py
        tools/sandbox/attempts.py tools/sandbox/processes.py""",
    "files, devices and pipes of the user's, named at the start": "cli/agent_sdk.py cli/sessions.py headless/schema.py",
    "the sandbox: what is held, masked and shown, and the scripts that start it": """
        tools/sandbox/confine.py tools/sandbox/newroot.py tools/sandbox/outputs.py
        tools/sandbox/policy.py tools/sandbox/relay.py tools/sandbox/share.py
        tools/sandbox/supervise.py tools/sandbox/watch.py""",
    "configuration and what tells whether it is as it was trusted: compared, obeyed where trusted, never sent": """
        config/files.py""",
}
"""Everything else that opens a file, by why neither a model nor a project gains by it."""

CONTENT = {"read_text", "read_bytes", "write_text", "write_bytes"}
COPIES = {"copy", "copy2", "copyfile", "copytree", "move"}
MODE = re.compile(r"[rwxabt+]+")
MAY_OPEN = re.compile(rf"\b(open|{'|'.join(CONTENT | COPIES)})\s*\(")


def opens(call: ast.Call) -> bool:
    """Whether a call opens a file by its path: ``open``, ``os.open``, the methods of paths, copies by ``shutil``."""
    if isinstance(call.func, ast.Name):
        return call.func.id == "open"
    if not isinstance(call.func, ast.Attribute):
        return False
    name, base = call.func.attr, ast.unparse(call.func.value)
    if name in CONTENT or (base == "shutil" and name in COPIES):
        return True
    if name != "open" or base in ("os", "io"):
        return name == "open"
    first = call.args[0] if call.args else None
    is_mode = isinstance(first, ast.Constant) and isinstance(first.value, str) and MODE.fullmatch(first.value)
    return bool(is_mode) or any(word.arg in ("mode", "encoding", "errors", "buffering") for word in call.keywords)


def found_in(source: str) -> list[str]:
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [f"{call.lineno}: {ast.unparse(call)[:80]}" for call in calls if opens(call)]


def test_the_walk_finds_what_it_looks_for() -> None:
    for source in (
        "open(p)",
        "p.open('rb')",
        "p.open(encoding='utf-8')",
        "os.open(p, flags)",
        "p.read_text()",
        "(a / b).write_bytes(x)",
        "shutil.copytree(a, b)",
    ):
        assert found_in(source), source
    assert not found_in("store.open(path); panel.open(); files.read_beginning(p, 1, 'own'); text.replace('a', 'b')")


def test_no_file_is_opened_but_where_it_is_known_why() -> None:
    known = OPENERS | {file for files in ELSEWHERE.values() for file in files.split()}
    found = {file: found_in(text) for file, text in matching(MAY_OPEN).items()}
    assert {file: calls for file, calls in found.items() if calls and file not in known} == {}
    assert [file for file in sorted(known) if not found.get(file)] == [], "it opens nothing any more"
