"""Programs are found in one place and processes started in one, whoever needs them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.sources import product, words

STARTS = {
    *(f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output", "getoutput")),
    *("subprocess.getstatusoutput", "os.system", "os.popen", "os.startfile", "os.fork", "os.forkpty", "pty.fork"),
    *("os.posix_spawn", "os.posix_spawnp", "pty.spawn", "multiprocessing.Process", "multiprocessing.Pool"),
    *("webbrowser.open", "webbrowser.get", "webbrowser.open_new", "webbrowser.open_new_tab"),
    *("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell", "anyio.open_process", "anyio.run_process"),
    *(f"os.{kind}{how}" for kind in ("exec", "spawn") for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    *("shutil.which", "os.get_exec_path", "mcp.client.stdio.stdio_client", "textual.app.App.open_url"),
}
"""What finds programs or starts processes, in the standard library and in the libraries that are used."""

ALLOWED = {
    # The one that starts.
    "pipes/start.py": {"subprocess.run", "subprocess.Popen", "asyncio.create_subprocess_exec"},
    # It is given our own interpreter.
    "tools/mcp/transport.py": {"mcp.client.stdio.stdio_client"},
    # They run isolated, as children, and become the command that was found before.
    "tools/sandbox/confine.py": {"os.fork", "os.execvpe"},
    "tools/sandbox/supervise.py": {"os.fork", "os.execvpe"},
    "tools/sandbox/processes.py": {"os.popen"},  # /bin/ps, where there is no /proc
    # It runs inside the sandbox, in the place of git's own programs.
    "tools/sandbox/relay.py": {"os.fork", "os.execv", "subprocess.run", "subprocess.Popen"},
}


def used(source: str) -> Iterator[str]:
    """The names that are called or handed on, whole: what was imported under another name as it is called at home."""
    tree = ast.parse(source)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    types = {id(part) for node in ast.walk(tree) for part in types_in(node)}
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if id(node) in types:
            continue
        if isinstance(node, ast.Attribute | ast.Name):
            first, dot, rest = ast.unparse(node).partition(".")
            yield known.get(first, first) + dot + rest
        todo += ast.iter_child_nodes(node)


def types_in(node: ast.AST) -> Iterator[ast.AST]:
    """The annotations of a definition, in which a process is a type."""
    yield from (part for name in ("annotation", "returns") if (part := getattr(node, name, None)) is not None)


def test_programs_are_found_and_processes_started_in_one_place() -> None:
    found = {
        file: names
        for file, text in product().items()
        if any(words(file).issuperset(name.split(".")) for name in STARTS)
        and (names := STARTS.intersection(used(text)))
    }
    assert found == ALLOWED


def test_what_is_called_by_another_name_is_seen() -> None:
    source = "import subprocess as s\nfrom shutil import which as w\nfrom os import execv\nw('a')\ns.run([])\nt = execv"
    assert STARTS.intersection(used(source)) == {"shutil.which", "subprocess.run", "os.execv"}
    assert not STARTS.intersection(used("import subprocess\ndef f(p: subprocess.Popen[bytes]) -> None: ..."))
